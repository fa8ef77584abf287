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
    omissions: list[NotCompared] = []
    pairs = []
    for formulation, backend in product(
        _formulations(formulations, more_formulations, omissions), _backends(backends, more_backends, omissions)
    ):
        reason = pairing_fault(formulation.formulation, backend.backend, reformulate_sets=reformulate_sets)
        if reason:
            omissions.append(NotCompared(formulation.name, backend.name, reason))
        else:
            pairs.append(Pair(formulation, backend))
    if not pairs:
        reasons = "; ".join(omission.reason for omission in omissions) or "no names"
        raise InputError(
            "no pair of a formulation and a back end can be compared",
            value=reasons,
            expected="at least one back end that works here and accepts one of the formulations",
            fix="see 'bfreplay solvers'; --reformulate-sets helps if only special ordered sets are the reason",
        )
    return PairPlan(tuple(pairs), tuple(omissions))


def _formulations(
    selection: Sequence[str | Formulation] | None, additions: Sequence[str | Formulation], omissions: list[NotCompared]
) -> list[NamedFormulation]:
    formulations: dict[str, Formulation] = {}  # by name as typed
    if selection is None:
        for name in FORMULATIONS.names():
            try:
                formulations[name] = formulation_of(name)
            except BfreplayError as error:  # a broken one of another package is skipped
                omissions.append(NotCompared(name, "", str(error).splitlines()[0]))
    for position, choice in enumerate([*(selection or ()), *additions]):
        if not isinstance(choice, str):
            formulations[f"{type(choice).__name__} ({position + 1})"] = formulation_of(choice)
        elif choice not in formulations:
            formulations[choice] = formulation_of(choice)
    names = distinct_names((spelling, formulation.name) for spelling, formulation in formulations.items())
    return [NamedFormulation(name, formulation) for name, formulation in zip(names, formulations.values(), strict=True)]


def _backends(
    selection: Sequence[str] | None, additions: Sequence[str], omissions: list[NotCompared]
) -> list[NamedBackend]:
    backends: dict[str, Backend] = {}
    if selection is None:
        for backend_name in BACKENDS.names():
            try:
                backend = backend_of(backend_name)
                reason = why_not(backend)
            except BfreplayError as error:  # as above
                reason = str(error).splitlines()[0]
            if reason:
                omissions.append(NotCompared("", backend_name, reason))
            else:
                backends[backend_name] = backend
    for backend_name in [*(selection or ()), *additions]:
        if backend_name not in backends:
            backends[backend_name] = backend_of(backend_name)
            if reason := why_not(backends[backend_name]):
                raise SolverUnavailableError(f"{backend_name} does not work here: {reason}")
    names = distinct_names((spelling, backend.name) for spelling, backend in backends.items())
    return [
        NamedBackend(backend_name, BACKENDS.location(spelling), backend)
        for backend_name, (spelling, backend) in zip(names, backends.items(), strict=True)
    ]


def distinct_names(spelled_names: Iterable[tuple[str, str]]) -> list[str]:
    """Return the name in tables for each (name as typed, own name).

    Registered ones keep their name. Others have their own name, or if it is in use the class's, or else the name as
    typed, which is unique.
    """
    pairs = list(spelled_names)
    used_names = {own_name for spelling, own_name in pairs if spelling == own_name}
    names: list[str] = []
    for spelling, own_name in pairs:
        if spelling != own_name:
            own_name = next(
                name for name in (own_name, spelling.rpartition(":")[2], spelling) if name not in used_names
            )
            used_names.add(own_name)
        names.append(own_name)
    return names
