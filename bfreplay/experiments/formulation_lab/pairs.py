"""Which formulation goes with which back end, and why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from bfreplay.errors import BfreplayError, InputError, SolverUnavailableError
from bfreplay.milp.backends import BACKENDS, Backend, backend_of, why_not
from bfreplay.milp.formulations import FORMULATIONS, Formulation, formulation_of
from bfreplay.milp.pairing import refused
from bfreplay.result_folders.lab import NotCompared

EXACT = "exact"
"""Name of the exact solver's row beside the pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormulation:
    """A formulation under the name that it has in every table."""

    name: str
    formulation: Formulation


@dataclass(frozen=True, slots=True, eq=False)
class NamedBackend:
    """A back end under the name that it has in every table, and where a worker finds its class."""

    name: str
    location: str
    backend: Backend


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A formulation on a back end that can take it."""

    formulation: NamedFormulation
    backend: NamedBackend

    @property
    def name(self) -> str:
        """``"choices on cbc"``."""
        return f"{self.formulation.name} on {self.backend.name}"


@dataclass(frozen=True, slots=True, eq=False)
class PairPlan:
    """Every pair that can be, and everything that cannot with the reason."""

    pairs: tuple[Pair, ...]
    left_out: tuple[NotCompared, ...]

    @property
    def backends(self) -> tuple[NamedBackend, ...]:
        """Back ends of the pairs, each once."""
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
        one that works here; what does not is left out with the reason.
    more_formulations, more_backends
        Beside those.
    reformulate_sets
        Pose special ordered sets by binaries on back ends without them.

    Raises
    ------
    InputError
        One that was named is unknown or cannot be made, or no pair is left.
    SolverUnavailableError
        A back end that was named does not work here.
    """
    left_out: list[NotCompared] = []
    pairs = []
    for formulation, backend in product(
        _formulations(formulations, more_formulations, left_out), _backends(backends, more_backends, left_out)
    ):
        reason = refused(formulation.formulation, backend.backend, reformulate_sets=reformulate_sets)
        if reason:
            left_out.append(NotCompared(formulation.name, backend.name, reason))
        else:
            pairs.append(Pair(formulation, backend))
    if not pairs:
        reasons = "; ".join(each.reason for each in left_out) or "nothing was named"
        raise InputError(
            "there is no pair of a formulation and a back end to compare",
            value=reasons,
            expected="at least one back end that works here and takes one of the formulations",
            fix="see 'bfreplay solvers'; --reformulate-sets helps where only special ordered sets are in the way",
        )
    return PairPlan(tuple(pairs), tuple(left_out))


def _formulations(
    named: Sequence[str | Formulation] | None, more: Sequence[str | Formulation], left_out: list[NotCompared]
) -> list[NamedFormulation]:
    found: dict[str, Formulation] = {}  # by what was typed, each once
    if named is None:
        for name in FORMULATIONS.names():
            try:
                found[name] = formulation_of(name)
            except BfreplayError as error:  # another package's may be broken: say so and go on
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
    """For each (as typed, its own name) the name in tables.

    Registered ones keep theirs. A stranger's has its own; where another has that already, its class's; then as it was
    typed, which nobody else can have, for nothing is taken twice.
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
