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
    return {"python": platform.python_version(), **{package: _version(package) for package in _PACKAGES}}


@cache  # reading one takes a millisecond, and every run of a sweep records all of them
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print data for a bug report: versions, machine, and the state of the hot loops."""
    from bfreplay._compiled import IS_COMPILED
    from bfreplay._compiling import compile_mode

    values_by_name = {
        **versions(),
        "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "hot loops": f"compiled, {compile_mode()}" if IS_COMPILED else "plain Python (numba is missing or off)",
    }
    for package, value in values_by_name.items():
        print(f"{package:<10} {value}")
