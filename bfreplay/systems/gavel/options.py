"""Options of Gavel's policies in a replay, and the number of nodes that a job then uses at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay.errors import InputError
from bfreplay.policies.state import PolicyState
from bfreplay.systems.gavel.quirks import PUBLISHED_RESET_S, Quirks, published_order
from bfreplay.systems.gavel.rounds.state import RoundRules
from bfreplay.systems.gavel.shares.share_problem import SharePolicy

WORDS = ("min", "max")


def checked_gang(gang: str | int) -> str | int:
    """Return ``gang`` after a check: a word of ``WORDS``, or a number of nodes.

    Raises
    ------
    InputError
        It is neither.
    """
    if isinstance(gang, str):
        if gang not in WORDS:
            raise InputError(
                "invalid number of nodes", column="gang", value=gang, expected="min, max, or a number of nodes >= 1"
            )
        return gang
    return checks.whole("gang", gang, 1)


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


def step_samples(state: PolicyState) -> NDArray[np.int64]:
    """Return the samples of one step of each job, (J,): of a step at its first batch size, 1 without batch sizes."""
    return np.ones(state.n_jobs, np.int64) if state.first_batch_size is None else state.first_batch_size


def rates(state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the steps/s of each job on ``width (J,)`` nodes of each type of the state, (J, T)."""
    by_type = state.throughput[:, None, :] if state.throughput_by_type is None else state.throughput_by_type
    steps_per_s: NDArray[np.float64] = by_type[np.arange(state.n_jobs), :, width] / step_samples(state)[:, None]
    return steps_per_s


@dataclass(frozen=True, slots=True)
class GavelOptions:
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
        Node types in the order in which rounds fill them; by default as they were listed.
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

    round_s: float = 360.0
    least_reset_s: float = 0.0
    restart_s: float = 0.0
    gang: str | int = "max"
    inner: Literal["fairness", "fifo"] = "fairness"
    seed: int = 0
    global_queue: bool = False
    published: bool = False
    refill: bool = True
    types: tuple[str, ...] = ()
    prices: Mapping[str, float] = field(default_factory=dict)
    profiled: float | None = None
    references: int | None = None

    def __post_init__(self) -> None:
        checks.round_length("round_s", self.round_s)
        checks.number("least_reset_s", self.least_reset_s, least=0)
        checks.number("restart_s", self.restart_s, least=0)
        checks.whole("seed", self.seed, 0, math.inf)
        checked_gang(self.gang)
        checks.one_of("inner", self.inner, ("fairness", "fifo"))
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
        for name, price in self.prices.items():
            checks.number(f"price of {name}", price, above=0)
        if self.profiled is not None:
            checks.number("profiled", self.profiled, least=0, most=1)
        if self.references is not None:
            checks.whole("references", self.references, 1)
            if self.profiled is None:
                raise InputError(
                    "references has no effect without profiled: the rates of pairs are known",
                    column="references",
                    value=self.references,
                    expected="references with profiled",
                    fix="add profiled=0.6, or leave it out",
                )

    @property
    def quirks(self) -> Quirks:
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
            quirks=self.quirks,
        )

    def price_per_hour(self, type_names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the price of a node-hour of each type, (n,), NaN if unknown."""
        return np.array([self.prices.get(name, defaults.NODE_PRICES.get(name, math.nan)) for name in type_names])

    def to_json(self) -> dict[str, object]:
        """Return every option, for the run record."""
        return {**asdict(self), "types": list(self.types), "prices": dict(self.prices)}
