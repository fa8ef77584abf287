"""Solvers by the names that a user types, and which of them work on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from bfreplay import __version__, checks, defaults
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.backends import BACKENDS, backend_of, version_of, why_not
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.formulations import FORMULATIONS, Formulation, formulation_of
from bfreplay.milp.milp_solver import Fallback, MilpSolver, pairing_fault
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution, Solver
from bfreplay.registry import unknown_name

EXACT = "exact"
COUNTS = "counts"


def solver_of(
    name: str = EXACT,
    formulation: Formulation | str | None = None,
    *,
    time_limit_s: float = defaults.TIME_LIMIT_S,
    fallback: Fallback = "exact",
    **options: Any,
) -> Solver:
    """Make a solver.

    Parameters
    ----------
    name
        ``"exact"``, a MILP back end (``"cbc"``), or ``package.module:Class`` of one.
    formulation
        For a back end: a formulation, its name or ``package.module:Class``; the reduced multiple-choice one by default.
        For the exact solver: ``"counts"`` (default), or ``"published"`` for the optimum under the published
        model's accidental limit on changes.
    time_limit_s, fallback
        For a back end: seconds a decision may take, and what answers when it fails (``"exact"`` or ``"keep"``).
    options
        For a back end (the exact solver has no use for them): more of ``MilpSolver``'s, such as ``relative_gap``,
        ``threads``, ``seed``, ``warm_start``, ``reformulate_sets``, ``memory_limit_bytes`` and ``save_failures``.

    Raises
    ------
    InputError
        No such name, or its class cannot be imported or made, or the formulation is not for this solver.
    SolverUnavailableError
        It cannot run here; the message says why and how to fix it.
    """
    checks.text("name", name)
    checks.known_keys(options, [*signature(MilpSolver).parameters], "solver_of", "option")
    if name == EXACT:
        if formulation not in (None, COUNTS, "published"):
            raise _not_for_exact(formulation)
        return ExactSolver(published_limit=formulation == "published")
    if ":" not in name and name not in BACKENDS.names():
        raise unknown_name("solver", name, [EXACT, *BACKENDS.names()])
    if formulation == COUNTS:
        raise InputError(
            f"the formulation {COUNTS!r} is the exact solver's",
            value=formulation,
            expected=f"for {name}: one of {', '.join(FORMULATIONS.names())}; or package.module:Class",
            fix=f"take the solver {EXACT!r}, or leave the formulation out",
        )
    model_name = formulation or defaults.MILP_FORMULATION
    return MilpSolver(model_name, name, time_limit_s=time_limit_s, fallback=fallback, referee=ExactSolver(), **options)


def _not_for_exact(formulation: Formulation | str) -> InputError:
    if isinstance(formulation, str) and ":" not in formulation and formulation not in FORMULATIONS.names():
        return unknown_name("formulation", formulation, [COUNTS, *FORMULATIONS.names()])
    return InputError(
        f"the formulation {formulation!r} is a MILP: a back end must solve it, not the exact solver",
        value=formulation,
        expected=f"{COUNTS!r}, or 'published' for the optimum under the published limit",
        fix=f"take a back end as the solver, such as {BACKENDS.names()[0]!r}, with this formulation",
    )


def solve(
    problem: AllocationProblem, solver: Solver | str = EXACT, formulation: Formulation | str | None = None
) -> Solution:
    """Answer one decision.

    Parameters
    ----------
    problem
        The decision.
    solver
        ``"exact"``, the name of a back end, ``package.module:Class``, or a solver that ``solver_of`` made.
    formulation
        The model that a back end solves, its name or ``package.module:Class``; ``None``: the default one.

    Raises
    ------
    InputError
        The problem's shapes, bounds or numbers are off, or no such solver.
    """
    checks.instance("problem", problem, AllocationProblem, "an AllocationProblem")
    problem.validate()
    if not isinstance(solver, str):
        return solver.solve(problem)
    with closing(solver_of(solver, formulation)) as instance:
        return instance.solve(problem)


@dataclass(frozen=True, slots=True)
class SolverEntry:
    """One line of ``bfreplay solvers``.

    Parameters
    ----------
    name, version, licence
        What it is; ``version`` is empty where it does not work or does not tell.
    formulations
        What it solves.
    reformulated
        What it solves as well when special ordered sets may be posed by binaries.
    warm_start
        Whether it can begin from the current counts.
    problem
        Why it does not work here, and how to fix that; empty when it does.
    """

    name: str
    version: str = ""
    licence: str = ""
    formulations: tuple[str, ...] = ()
    reformulated: tuple[str, ...] = ()
    warm_start: bool = False
    problem: str = ""


def solver_entries() -> list[SolverEntry]:
    """Return every solver that bfreplay knows, working or not, then formulations of other packages that cannot be made.

    Each back end is tried on a small decision in a process of its own.
    """
    formulations, unusable = [], []
    for formulation_name in FORMULATIONS.names():
        try:
            formulations.append((formulation_name, formulation_of(formulation_name)))
        except BfreplayError as error:  # another package's: not offered to any solver, but told of
            unusable.append(SolverEntry(f"formulation {formulation_name}", problem=str(error).splitlines()[0]))
    entries = [SolverEntry(EXACT, f"bfreplay {__version__}", "Apache-2.0", (COUNTS, "published"))]
    with ThreadPoolExecutor(max_workers=4) as executor:  # each waits for a worker process
        entries += executor.map(partial(_entry, formulations), BACKENDS.names())
    return entries + unusable


def _entry(formulations: Sequence[tuple[str, Formulation]], backend_name: str) -> SolverEntry:
    try:
        backend = backend_of(backend_name)
    except BfreplayError as error:  # another package's may be broken: say so and list the others
        return SolverEntry(backend_name, problem=str(error).splitlines()[0])
    abilities = backend.capabilities
    solvable = [name for name, formulation in formulations if not pairing_fault(formulation, backend)]
    reformulable = [
        name for name, formulation in formulations if not pairing_fault(formulation, backend, reformulate_sets=True)
    ]
    problem = why_not(backend) or (_trial_fault(backend_name, solvable[-1]) if solvable else "")
    return SolverEntry(
        name=backend_name,
        version="" if problem else version_of(backend),
        licence=abilities.licence,
        formulations=tuple(solvable),
        reformulated=tuple(name for name in reformulable if name not in solvable),
        warm_start=abilities.warm_start,
        problem=" ".join(problem.split()),
    )


def _trial_fault(backend: str, formulation: str) -> str:
    """Return why the back end, in a process of its own, does not solve a small decision; empty where it does."""
    solver = MilpSolver(formulation, backend, time_limit_s=20.0, fallback="keep", referee=ExactSolver())
    try:
        with closing(solver):
            rejection = solver.solve(small_decision()).rejected
    except BfreplayError as error:
        return str(error).splitlines()[0]
    if rejection is None:
        return ""
    return rejection.message or f"it does not solve a small decision: {rejection.solver_status.value}"


def small_decision() -> AllocationProblem:
    """Return a decision of two jobs on five nodes, to try or warm up solvers."""
    return AllocationProblem(
        current=np.array([1, 2]),
        min_nodes=np.array([1, 2]),
        max_nodes=np.array([4, 4]),
        gain=np.array([[0.0, 2.0, 4.0, 8.0, 8.5], [0.0, 1.0, 5.0, 5.5, 5.75]]),
        scale_up_loss=np.ones(2),
        scale_down_loss=np.ones(2),
        capacity=5,
    )
