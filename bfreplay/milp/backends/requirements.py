"""Which versions of solver packages are known to be good, and what is wrong on this machine in one line."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version


def unmet(package: str, at_least: str, below: str, *, why: str, fix: str) -> str:
    """Empty when ``package`` is installed with ``at_least <= version < below``, else what is wrong and ``fix``.

    ``why`` says what is wrong with other versions.
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        return f"{package} is not installed; {fix}"
    if release(at_least) <= release(found) < release(below):
        return ""
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


def release(text: str) -> tuple[int, ...]:
    """``(1, 17, 5)`` of ``"1.17.5"``; stops at the first part that is no number."""
    parts: list[int] = []
    for part in text.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)
