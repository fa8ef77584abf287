"""Versions of bfreplay and its dependencies, for run records and bug reports."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

_PACKAGES = (
    "bfreplay",
    "numpy",
    "pandas",
    "pyarrow",
    "numba",
    "click",
    "matplotlib",
    "scipy",
    "arch",
    "distributed",
    "mip",
    "cbcbox",
    "pulp",
    "highspy",
    "gurobipy",
    "pyscipopt",
    "ortools",
)


def versions() -> dict[str, str]:
    """Return the versions of Python, bfreplay and its dependencies by name; ``"not installed"`` for missing ones."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


@cache  # reading one takes a millisecond, and every run of a sweep records all of them
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print data for a bug report: versions, machine, and the state of the hot loops."""
    from bfreplay._compiled import IS_COMPILED

    rows = {
        **versions(),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "hot loops": "compiled" if IS_COMPILED else "plain Python (numba is missing or switched off)",
    }
    for name, value in rows.items():
        print(f"{name:<10} {value}")
