"""Interface of solvers of linear models, and their answers."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus


def unmet(package: str, sound: str, *, why: str, fix: str) -> str:
    """Return the fault of an installed ``package``, with ``fix``; empty for a ``sound`` version (``">=13,<14"``).

    ``why`` says what is wrong with other versions.
    """
    from packaging.specifiers import SpecifierSet  # most runs never need it
    from packaging.version import InvalidVersion

    try:
        release = version(package)
    except PackageNotFoundError:
        return f"{package} is not installed; {fix}"
    try:
        if SpecifierSet(sound).contains(release, prereleases=True):
            return ""
    except InvalidVersion:  # somebody's own build, with a word for a number
        pass
    return f"{package} {release} is not known to be sound ({why}); {fix}"


def refuse_beside(solver: str, modules: tuple[str, ...]) -> None:
    """Raise ``RuntimeError`` where one of ``modules`` is loaded: ``solver`` brings other builds of the same libraries.

    The loader takes a library of one name once, so the second to come would run, or fail, on the first one's. For the
    same reason ``available`` and ``version`` of these back ends import nothing.
    """
    conflicts = [module for module in modules if module in sys.modules]
    if conflicts:
        raise RuntimeError(
            f"{solver} cannot be loaded into a process that has loaded {conflicts[0]}: both bring the same libraries; "
            "solve in a worker process (isolated=True, the default)"
        )


OR_TOOLS = ("ortools.sat.python.cp_model_helper", "ortools.linear_solver.pywraplp")
"""Modules that load OR-Tools' libraries, builds of CBC and HiGHS among them."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities of a back end, as data.

    Parameters
    ----------
    sos
        Special ordered sets of type 2 with sound answers.
    continuous
        Columns that are not integer.
    warm_start
        A start solution may be given.
    crash_isolated
        The solver runs as a process that the back end starts: a crash of it leaves this process alive even without
        ``isolation``. The worker then ends its whole process group itself when its parent dies.
    licence
        What one needs to run it: ``"EPL-2.0"``, or a licence to buy.
    in_process
        It neither crashes nor hangs on sound models, and may run in a process that holds more than itself.
    excludes
        Modules that bring other builds of its libraries: beside them it cannot be loaded.
    """

    sos: bool
    continuous: bool = True
    warm_start: bool = False
    crash_isolated: bool = False
    licence: str = ""
    in_process: bool = False
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Options of one solve.

    Parameters
    ----------
    time_limit_s
        The solver's own limit; it may return what it has.
    relative_gap
        Largest gap, relative to the objective, that may be called optimal.
    threads, seed
        1 and fixed by default: the same model gives the same answer.
    """

    time_limit_s: float
    relative_gap: float = 0.0
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """A solver's claim; nothing in it is verified.

    Parameters
    ----------
    solver_status
        The solver's own status, mapped; unknown is never success.
    x : (C,) float64 or None
        Column values.
    objective, bound
        As the solver reports them, in the model's own objective (scaling undone, constant added); ``nan`` and
        ``inf`` when it reports none.
    message
        Anything a person should read.
    build_s, solve_s
        Seconds spent handing the model over, and solving it.
    """

    solver_status: SolverStatus
    x: NDArray[np.float64] | None = None
    objective: float = math.nan
    bound: float = math.inf
    message: str = ""
    build_s: float = 0.0
    solve_s: float = 0.0


class ModelRefusedError(Exception):
    """Raised by ``Backend.solve``: it cannot take this model (size, missing capability)."""


@runtime_checkable
class Backend(Protocol):
    """Solves one linear model after the other. Made without arguments; keeps no state between solves.

    It may also have ``version() -> str``, the solver's and its package's version for tables and reports; see
    ``version_of``.
    """

    @property
    def name(self) -> str:
        """Registered name, e.g. ``"cbc"``."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Its abilities."""
        ...

    def available(self) -> str:
        """Return why it does not work on this machine and how to fix it; empty when it works."""
        ...

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Maximise. A model it cannot take raises ``ModelRefusedError``; anything else raised is a failure."""
        ...


def objective_scale(model: LinearModel) -> float:
    """Return the divisor that makes the objective's largest coefficient 1; 1 for an objective of zeros.

    MILP solvers work with absolute tolerances: unscaled, objectives of 1e7 gave slightly suboptimal "optimal"
    answers. Every back end divides by it and undoes it in what it reports.
    """
    largest = float(np.abs(model.objective).max(initial=0.0))
    return largest if largest > 0.0 and math.isfinite(largest) else 1.0


@contextmanager
def silent_stdout() -> Iterator[None]:
    """Send file descriptor 1 to nowhere for a while, for the whole process.

    Python's own buffer is flushed before, and C's after, so that nothing said inside appears later.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    c_library = ctypes.CDLL(None)
    c_library.fflush(None)
    saved_stdout = os.dup(1)
    null_device = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null_device, 1)
        yield
    finally:
        c_library.fflush(None)
        os.dup2(saved_stdout, 1)
        os.close(null_device)
        os.close(saved_stdout)
