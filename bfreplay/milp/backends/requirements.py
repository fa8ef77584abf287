"""Which versions of solver packages are known to be good, and what is wrong on this machine in one line."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion


def unmet(package: str, sound: str, *, why: str, fix: str) -> str:
    """Empty when ``package`` is installed in a ``sound`` version (``">=13,<14"``), else what is wrong and ``fix``.

    ``why`` says what is wrong with other versions.
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        return f"{package} is not installed; {fix}"
    try:
        if SpecifierSet(sound).contains(found, prereleases=True):
            return ""
    except InvalidVersion:  # somebody's own build, with a word for a number
        pass
    return f"{package} {found} is not known to be sound ({why}); {fix}"


def refuse_beside(solver: str, modules: tuple[str, ...]) -> None:
    """Raise ``RuntimeError`` where one of ``modules`` is loaded: ``solver`` brings other builds of the same libraries.

    The loader takes a library of one name once, so the second to come would run, or fail, on the first one's. For the
    same reason ``available`` and ``version`` of these back ends import nothing.
    """
    loaded = [module for module in modules if module in sys.modules]
    if loaded:
        raise RuntimeError(
            f"{solver} cannot be loaded into a process that has loaded {loaded[0]}: both bring the same libraries; "
            "solve in a worker process (isolated=True, the default)"
        )


OR_TOOLS = ("ortools.sat.python.cp_model_helper", "ortools.linear_solver.pywraplp")
"""Modules that load OR-Tools' libraries, builds of CBC and HiGHS among them."""
