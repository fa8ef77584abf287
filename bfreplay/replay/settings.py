"""Settings of a replay besides its log, jobs and policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks, defaults
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import scale_up_cost
from bfreplay.policies import Decision, Placement, PolicyState
from bfreplay.replay.placement import PlacementRule
from bfreplay.replay.progress import Semantics
from bfreplay.workload import Restart
from bfreplay.workload.elastic_job import COSTS

SeedMap = Callable[[PolicyState, NDArray[np.int64], np.random.Generator], Decision]
"""(state, free node numbers, generator) -> first map."""


def random_seed_map(state: PolicyState, free: NDArray[np.int64], rng: np.random.Generator) -> Decision:
    """Give each idle node to a random job; jobs below ``min_nodes`` get none.

    Nodes above a job's ``max_nodes`` stay free, which the published program does not check.
    """
    owner = rng.integers(0, state.n_jobs, size=free.size)
    assigned = []
    for job_row in range(state.n_jobs):
        nodes = free[owner == job_row][: int(state.max_nodes[job_row])]
        assigned.append(nodes if nodes.size >= state.min_nodes[job_row] else nodes[:0])
    counts = np.array([nodes.size for nodes in assigned], dtype=np.int64)
    return Decision(counts, placement=Placement(tuple(assigned)))


def charge_first_map(records: NDArray[np.void]) -> float:
    """Charge every job of the first map for a scale-up from the same rate, and return the samples."""
    cost: NDArray[np.float64] = scale_up_cost(records["rate"], records["scale_up_cost_s"])
    records["rescale_cost"] = cost
    records["rescale_debt"] = cost
    return float(cost.sum())


def not_published(problem: str, fix: str) -> InputError:
    """Return the error for a replay that the published clock does not know."""
    return InputError(
        problem,
        column="semantics",
        value=Semantics.PUBLISHED.value,
        expected="continuous time",
        fix=fix,
    )


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Options of a replay.

    Parameters
    ----------
    max_parallel
        Most jobs active at once; the others queue, first come first served.
    semantics
        Continuous time, or the published program's; a ``Semantics`` or its word.
    seed
        Seed of the random first assignment of nodes with published semantics, >= 0.
    record_nodes
        Also write which node was held by whom (``nodes.parquet``).
    until_done
        The replay ends when the last job is done, if that is before the end of the log.
    measured
        Numbers of the jobs, in order of submission, that the run is about: from the first to the one before the second.
        The replay ends when they are done; the others only keep the machine busy. ``None``: all.
    prices
        Dollars of a node-hour by node type, > 0, for the run's cost; ``defaults.NODE_PRICES`` of types that are not
        there.
    clear_s
        Seconds that it takes to clear a node of a job when a batch job starts on it; batch starts are late by it.
    notice
        Jobs are told that a node is reclaimed, and save their state while it is cleared.
    reserve
        Idle nodes that are left alone, if there are as many.
    min_age_s
        Seconds for which a node has to be idle before a job may have it.
    settle_s
        Pool events, arrivals and completions wait for a decision until all has been quiet for so long, at most ten
        times as long after the first of them.
    placement
        Which nodes a job gets: those of lowest number, or runs of neighbouring nodes; a ``PlacementRule`` or its word.
    restart_cost, work_saved_every, saves
        What replaces the costs of the jobs: seconds, or their text by count, for which every change pauses a job; the
        checkpoint interval in seconds; the ``saves`` of ``ElasticJob``. ``None``: as the jobs say.
    seed_map
        Replaces the random first map of the published semantics.

    Raises
    ------
    InputError
        A number or word that makes no sense.
    """

    max_parallel: int = defaults.MAX_PARALLEL
    semantics: Semantics = Semantics.CONTINUOUS
    seed: int = 0
    record_nodes: bool = False
    until_done: bool = False
    measured: tuple[int, int] | None = None
    prices: Mapping[str, float] = field(default_factory=dict, hash=False)
    clear_s: float = defaults.CLEAR_S
    notice: bool = False
    reserve: int = 0
    min_age_s: float = 0.0
    settle_s: float = 0.0
    placement: PlacementRule = PlacementRule.LOWEST_ID
    restart_cost: float | str | None = None
    work_saved_every: float | None = None
    saves: str | None = None
    seed_map: SeedMap = field(default=random_seed_map, repr=False)

    def __post_init__(self) -> None:
        for column, least in (("max_parallel", 1), ("seed", 0), ("reserve", 0)):
            checks.whole(column, getattr(self, column), least, math.inf)
        if self.measured is not None and not 0 <= self.measured[0] < self.measured[1]:
            raise InputError(
                "the range of measured jobs is empty",
                column="measured",
                value=self.measured,
                expected="two whole numbers, the first >= 0 and below the second",
            )
        for column in ("clear_s", "min_age_s", "settle_s"):
            checks.number(column, getattr(self, column), least=0)
        for node_type, price in self.prices.items():
            checks.number(f"price of {node_type}", price, above=0)
        for column, words in (("placement", PlacementRule), ("semantics", Semantics)):
            word = checks.one_of(column, getattr(self, column), [known.value for known in words])
            object.__setattr__(self, column, words(word))
        for conflicts, what_it_does, options in (
            (self.reserve or self.min_age_s, "leaves no idle node alone", "--reserve and --min-age"),
            (self.settle_s, "decides at every event", "--settle"),
            (self.placement is PlacementRule.RUNS, "gives out idle nodes by number", "--placement"),
        ):
            if conflicts and self.semantics is Semantics.PUBLISHED:
                problem = f"the published clock of BFTrainer {what_it_does}"
                raise not_published(problem, f"remove --semantics, or {options}")

    @property
    def notice_s(self) -> float | None:
        """Seconds in which a job can save its state while a node is cleared; ``None``: it is not told."""
        return self.clear_s if self.notice else None

    @property
    def costs_of_jobs(self) -> dict[str, Any]:
        """Fields of ``ElasticJob`` that replace those of every job."""
        costs: dict[str, Any] = {}
        if self.restart_cost is not None:
            costs |= dict.fromkeys(COSTS, self.restart_cost) | {"restart": Restart.PAUSE.value}
        if self.work_saved_every is not None:
            costs["work_saved_every_s"] = self.work_saved_every
        return costs if self.saves is None else costs | {"saves": self.saves}

    def price_of(self, node_type: str) -> float | None:
        """Return the dollars of a node-hour; ``None`` if unknown."""
        return self.prices.get(node_type, defaults.NODE_PRICES.get(node_type))

    def to_config(self, node_types: Iterable[str]) -> dict[str, Any]:
        """Return the settings as the record of a run keeps them, with the known prices of the log's node types."""
        config = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "seed_map"}
        if not self.settle_s:
            del config["settle_s"]  # the default leaves no trace in a record
        prices = {name: float(price) for name in node_types if (price := self.price_of(name)) is not None}
        return config | {"prices": prices}
