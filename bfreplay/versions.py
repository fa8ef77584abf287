"""Versions of bfreplay and what it stands on, for run records and bug reports."""

from __future__ import annotations

import platform
from importlib import metadata

_PACKAGES = ("bfreplay", "numpy", "pandas", "pyarrow", "numba", "click", "mip", "cbcbox")


def versions() -> dict[str, str]:
    """Name -> version of Python, bfreplay and its dependencies; ``"not installed"`` for those that are missing."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def show_versions() -> str:
    """Text for a bug report: versions, machine, and which solvers work here."""
    lines = [f"{name:<10} {version}" for name, version in versions().items()]
    lines.append(f"{'machine':<10} {platform.machine()}, {platform.system()} {platform.release()}")
    return "\n".join(lines)
