"""Options of Gavel's policies in a replay, and the number of nodes that a job then uses at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.options import Number, OneOf, Whole, option
from bfreplay.policies.policy import PolicyOptions
from bfreplay.systems.gavel.quirks import PUBLISHED_RESET_S, Quirks, published_order
from bfreplay.systems.gavel.rounds.state import RoundRules
from bfreplay.systems.gavel.shares.share_problem import SharePolicy

WORDS = ("min", "max")


def checked_gang(name: str, gang: str | int) -> str | int:
    """Return ``gang``, which is a word of ``WORDS`` or a number of nodes; ``InputError`` for anything else."""
    if not isinstance(gang, str):
        return checks.whole(name, gang, 1)
    if gang not in WORDS:
        expected = "min, max, or a number of nodes >= 1"
        raise InputError("invalid number of nodes", column=name, value=gang, expected=expected)
    return gang


def gangs(
    min_nodes: NDArray[np.int64], max_nodes: NDArray[np.int64], gang: str | int, most_nodes: int
) -> NDArray[np.int64]:
    """Return the nodes of each job, (J,): its least, its most, or ``gang`` within these bounds, ``(J,)`` each.

    A job that may use fewer nodes uses at most ``most_nodes``, the nodes of the largest type.
    """
    most_usable = np.maximum(np.minimum(max_nodes, most_nodes), min_nodes)
    if gang == "min":
        return min_nodes.copy()
    return most_usable if gang == "max" else np.minimum(np.maximum(int(gang), min_nodes), most_usable)


def _any_seed(name: str, seed: int) -> int:
    return checks.whole(name, seed, 0, math.inf)


def _type_names(_name: str, types: str | Sequence[str]) -> tuple[str, ...]:
    names = types.split(";") if isinstance(types, str) else types
    return tuple(filter(None, names))


def _node_prices(_name: str, prices: Mapping[str, float]) -> Mapping[str, float]:
    for node_type, price in prices.items():
        checks.number(f"price of {node_type}", price, above=0)
    return prices


@dataclass(frozen=True)
class GavelOptions(PolicyOptions):
    """Options of a ``GavelPolicy``.

    Parameters
    ----------
    round_s
        Length of a round, seconds > 0.
    least_reset_s
        Least time between two recomputations of shares; 0: at the first round after every arrival and completion.
    restart_s
        Seconds of work that a job loses when it starts, or continues on other nodes than in the round before; shorter
        than a round. 0 in the published simulator.
    gang
        Number of nodes that an elastic job uses: ``"min"``, ``"max"``, or a number. Rigid jobs use their own.
    inner
        Policy among the jobs of one entity, under the hierarchical policy: ``"fairness"`` or ``"fifo"``.
    seed
        Seed of policies that draw (fifo, gandiva), and of the order of types under policies that ignore types.
    global_queue
        The job with the highest priority on any type goes first, instead of type after type.
    published
        Repeat the published program: its least time between recomputations, its order of types, and its defects
        (``Quirks``).
    refill
        Nodes that join, and jobs whose nodes were reclaimed, do not wait for the next round.
    types
        Node types in the order in which rounds fill them, as a sequence or ``"v100;k80"``; by default as they were
        listed.
    prices
        Prices of a node-hour by type, for policies that count costs; by default ``defaults.NODE_PRICES``.
    profiled
        Packed policies estimate the rates of pairs: a job is measured beside each reference job type with this
        probability (``PairEstimator``). ``None``: they know them.
    references
        Number of job types that are references for these estimates; ``None``: all.

    Raises
    ------
    InputError
        A value out of range.
    """

    published_reset_s: ClassVar[float] = PUBLISHED_RESET_S
    published_quirks: ClassVar[Quirks] = Quirks.published()

    round_s: float = option(360.0, checks.round_length)
    least_reset_s: float = option(0.0, Number(least=0))
    restart_s: float = option(0.0, Number(least=0))
    gang: str | int = option("max", checked_gang)
    inner: str = option("fairness", OneOf(("fairness", "fifo")))
    seed: int = option(0, _any_seed)
    global_queue: bool = option(False, checks.truth)
    published: bool = option(False, checks.truth)
    refill: bool = option(True, checks.truth)
    types: str | Sequence[str] = option("", _type_names)
    prices: Mapping[str, float] | None = option(None, _node_prices)
    profiled: float | None = option(None, Number(least=0, most=1))
    references: int | None = option(None, Whole(1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.restart_s >= self.round_s:
            raise InputError(
                "a restart takes as long as a round",
                column="restart_s",
                value=self.restart_s,
                expected=f"seconds below round_s ({self.round_s:g})",
                fix="make rounds longer",
            )
        if self.published and self.least_reset_s not in (0.0, self.published_reset_s):
            raise InputError(
                "the published program has its own least time between two recomputations",
                column="least_reset_s",
                value=self.least_reset_s,
                expected=f"{self.published_reset_s:g} with published=true",
                fix="leave it out",
            )
        if self.published:
            object.__setattr__(self, "least_reset_s", self.published_reset_s)
        if self.references is not None and self.profiled is None:
            raise InputError(
                "references has no effect without profiled: the rates of pairs are known",
                column="references",
                value=self.references,
                expected="references with profiled",
                fix="add profiled=0.6, or leave it out",
            )

    @property
    def quirks_of_rounds(self) -> Quirks:
        """Defects of the published program that are repeated."""
        return self.published_quirks if self.published else Quirks()

    def rules(self, types_in_log: tuple[str, ...], type_names: tuple[str, ...], shares: SharePolicy) -> RoundRules:
        """Return the rules of the rounds.

        Parameters
        ----------
        types_in_log
            Node types as the log lists them.
        type_names
            Node types in alphabetical order.
        shares
            Policy that computes the shares.

        Raises
        ------
        InputError
            ``types`` does not name the types of the log.
        """
        order = self.types or (published_order(types_in_log) if self.published else types_in_log)
        if sorted(order) != sorted(types_in_log):
            raise InputError(
                "the order of node types does not name each of them once",
                column="types",
                value=";".join(order),
                expected=f"{', '.join(types_in_log)} in some order",
            )
        return RoundRules(
            type_order=tuple(type_names.index(name) for name in order),
            round_s=self.round_s,
            least_reset_s=self.least_reset_s,
            shuffles_types=shares.shuffles_types,
            runs_only_its_own=shares.runs_only_its_own,
            global_queue=self.global_queue,
            restart_s=self.restart_s,
            seed=self.seed,
            quirks=self.quirks_of_rounds,
        )

    def price_per_hour(self, type_names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the price of a node-hour of each type, (n,), NaN if unknown."""
        prices = {**defaults.NODE_PRICES, **(self.prices or {})}
        return np.array([prices.get(name, math.nan) for name in type_names])

    def to_json(self) -> dict[str, Json]:
        """Return every option, for the run record."""
        return {**super().to_json(), "types": list(self.types), "prices": dict(self.prices or {})}
