"""Pairs of a formulation and a back end, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from bfreplay.errors import BfreplayError, InputError, SolverUnavailableError
from bfreplay.milp.backends import BACKENDS, Backend, backend_of, why_not
from bfreplay.milp.formulations import FORMULATIONS, Formulation, formulation_of
from bfreplay.milp.milp_solver import pairing_fault
from bfreplay.result_folders.lab import NotCompared

EXACT = "exact"
"""Name of the exact solver's row."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormulation:
    """A formulation with its name in tables."""

    name: str
    formulation: Formulation


@dataclass(frozen=True, slots=True, eq=False)
class NamedBackend:
    """A back end with its name in tables, and the location of its class."""

    name: str
    location: str
    backend: Backend


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A formulation on a back end that accepts it."""

    formulation: NamedFormulation
    backend: NamedBackend

    @property
    def name(self) -> str:
        """Name of the pair, such as ``"choices on cbc"``."""
        return f"{self.formulation.name} on {self.backend.name}"


@dataclass(frozen=True, slots=True, eq=False)
class PairPlan:
    """All possible pairs, and the skipped ones with the reason."""

    pairs: tuple[Pair, ...]
    left_out: tuple[NotCompared, ...]

    @property
    def backends(self) -> tuple[NamedBackend, ...]:
        """Distinct back ends of the pairs."""
        return tuple({pair.backend.name: pair.backend for pair in self.pairs}.values())


def plan_pairs(
    formulations: Sequence[str | Formulation] | None = None,
    backends: Sequence[str] | None = None,
    *,
    more_formulations: Sequence[str | Formulation] = (),
    more_backends: Sequence[str] = (),
    reformulate_sets: bool = False,
) -> PairPlan:
    """Pair every formulation with every back end.

    Parameters
    ----------
    formulations, backends
        Registered names or ``package.module:Class`` (a formulation may be an instance). ``None``: every registered
        one that works here; others are skipped with the reason.
    more_formulations, more_backends
        Additional ones.
    reformulate_sets
        Replace special ordered sets by binaries on back ends without them.

    Raises
    ------
    InputError
        A named one is unknown or cannot be made, or no pair is left.
    SolverUnavailableError
        A named back end does not work here.
    """
    left_out: list[NotCompared] = []
    pairs = []
    for formulation, backend in product(
        _formulations(formulations, more_formulations, left_out), _backends(backends, more_backends, left_out)
    ):
        reason = pairing_fault(formulation.formulation, backend.backend, reformulate_sets=reformulate_sets)
        if reason:
            left_out.append(NotCompared(formulation.name, backend.name, reason))
        else:
            pairs.append(Pair(formulation, backend))
    if not pairs:
        reasons = "; ".join(each.reason for each in left_out) or "no names"
        raise InputError(
            "no pair of a formulation and a back end can be compared",
            value=reasons,
            expected="at least one back end that works here and accepts one of the formulations",
            fix="see 'bfreplay solvers'; --reformulate-sets helps if only special ordered sets are the reason",
        )
    return PairPlan(tuple(pairs), tuple(left_out))


def _formulations(
    named: Sequence[str | Formulation] | None, more: Sequence[str | Formulation], left_out: list[NotCompared]
) -> list[NamedFormulation]:
    found: dict[str, Formulation] = {}  # by name as typed
    if named is None:
        for name in FORMULATIONS.names():
            try:
                found[name] = formulation_of(name)
            except BfreplayError as error:  # a broken one of another package is skipped
                left_out.append(NotCompared(name, "", str(error).splitlines()[0]))
    for number, each in enumerate([*(named or ()), *more]):
        if not isinstance(each, str):
            found[f"{type(each).__name__} ({number + 1})"] = each
        elif each not in found:
            found[each] = formulation_of(each)
    names = distinct_names((typed, made.name) for typed, made in found.items())
    return [NamedFormulation(name, made) for name, made in zip(names, found.values(), strict=True)]


def _backends(named: Sequence[str] | None, more: Sequence[str], left_out: list[NotCompared]) -> list[NamedBackend]:
    found: dict[str, Backend] = {}
    if named is None:
        for name in BACKENDS.names():
            try:
                made = backend_of(name)
                reason = why_not(made)
            except BfreplayError as error:  # as above
                reason = str(error).splitlines()[0]
            if reason:
                left_out.append(NotCompared("", name, reason))
            else:
                found[name] = made
    for name in [*(named or ()), *more]:
        if name not in found:
            found[name] = backend_of(name)
            if reason := why_not(found[name]):
                raise SolverUnavailableError(f"{name} does not work here: {reason}")
    names = distinct_names((typed, made.name) for typed, made in found.items())
    return [
        NamedBackend(name, BACKENDS.location(typed), made)
        for name, (typed, made) in zip(names, found.items(), strict=True)
    ]


def distinct_names(found: Iterable[tuple[str, str]]) -> list[str]:
    """Return the name in tables for each (name as typed, own name).

    Registered ones keep their name. Others have their own name, or if it is in use the class's, or else the name as
    typed, which is unique.
    """
    pairs = list(found)
    taken = {own for typed, own in pairs if typed == own}
    names: list[str] = []
    for typed, own in pairs:
        if typed != own:
            own = next(name for name in (own, typed.rpartition(":")[2], typed) if name not in taken)
            taken.add(own)
        names.append(own)
    return names
