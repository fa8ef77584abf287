"""Solvers by the names that a user types, and which of them work on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay import defaults
from bfreplay.errors import InputError
from bfreplay.milp.backends import BACKENDS, backend_of
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from bfreplay.milp.milp_solver import Fallback, MilpSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Solution
from bfreplay.milp.solver import Solver

EXACT = "exact"
COUNTS = "counts"
DEFAULT_MILP_FORMULATION = "choices"
_ALIASES = {"cbc": "cbc-mip"}


def solver_of(
    name: str = EXACT,
    formulation: str | None = None,
    *,
    time_limit_s: float = defaults.TIME_LIMIT_S,
    fallback: Fallback = "exact",
) -> Solver:
    """Make a solver.

    Parameters
    ----------
    name
        ``"exact"``, a MILP back end (``"cbc"``), or ``package.module:Class`` of one.
    formulation
        For a back end: a formulation's name or ``package.module:Class``; the multiple-choice one by default.
        For the exact solver: ``"counts"`` (default), or ``"published"`` for the optimum under the published
        model's accidental limit on changes.
    time_limit_s, fallback
        For a back end: seconds a decision may take, and what answers when it fails (``"exact"`` or ``"keep"``).

    Raises
    ------
    InputError
        No such name.
    SolverUnavailableError
        It cannot run here; the message says why and how to fix it.
    """
    if name == EXACT:
        if formulation not in (None, COUNTS, "published"):
            raise InputError(
                "the exact solver needs no MILP formulation",
                column="formulation",
                value=formulation,
                expected=f"{COUNTS!r}, or 'published' for the optimum under the published limit",
                fix="name a back end to solve this formulation: --solver cbc",
            )
        return ExactSolver(published_limit=formulation == "published")
    return MilpSolver(
        formulation or DEFAULT_MILP_FORMULATION,
        _ALIASES.get(name, name),
        time_limit_s=time_limit_s,
        fallback=fallback,
        referee=ExactSolver(),
    )


def solve(problem: AllocationProblem, solver: str = EXACT, formulation: str | None = None) -> Solution:
    """Answer one decision with the solver of that name; see ``solver_of``.

    Raises
    ------
    InputError
        The problem's shapes, bounds or numbers are off, or no such solver.
    """
    problem.validate()
    made = solver_of(solver, formulation)
    try:
        return made.solve(problem)
    finally:
        made.close()


@dataclass(frozen=True, slots=True)
class SolverEntry:
    """One line of ``bfreplay solvers``: what it is called, what it solves, and why it does not work if so."""

    name: str
    formulations: tuple[str, ...]
    licence: str
    problem: str  # empty when it works here


def solver_entries() -> list[SolverEntry]:
    """Every solver that bfreplay knows, working or not."""
    aliases = {name: alias for alias, name in _ALIASES.items()}
    entries = [SolverEntry(EXACT, (COUNTS, "published"), "Apache-2.0", "")]
    for name in BACKENDS.names():
        backend = backend_of(name)
        able = backend.capabilities
        usable = tuple(n for n in FORMULATIONS.names() if able.sos or not formulation_of(n).needs_sos)
        entries.append(SolverEntry(aliases.get(name, name), usable, able.licence, backend.available()))
    return entries
