"""Costs of changes from the pauses of restarts that were measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bfreplay.wording import count
from bfreplay.workload.change_costs import Cost, CostByCount, cost_of

FEWEST = 3
"""Fewest restarts that a step is made of; neighbouring counts with fewer are taken together."""
MERGED_WITHIN = 0.10
"""Largest difference of the medians of neighbouring steps that are merged, relative to the lower step."""


@dataclass(frozen=True, slots=True)
class MeasuredRestart:
    """A start or change of a job's nodes: counts before and after it, and the seconds without progress."""

    nodes_before: int
    nodes_after: int
    pause_s: float


@dataclass(frozen=True, slots=True)
class CostStep:
    """New counts at which a change costs the same, and the pauses measured there.

    Parameters
    ----------
    first_nodes, last_nodes
        Smallest and largest measured count.
    pauses_s
        The pauses.
    """

    first_nodes: int
    last_nodes: int
    pauses_s: tuple[float, ...]

    @property
    def n_restarts(self) -> int:
        """Number of pauses."""
        return len(self.pauses_s)

    @property
    def median_s(self) -> float:
        """Median pause, to the millisecond."""
        return round(float(np.median(self.pauses_s)), 3)

    @property
    def quartiles_s(self) -> tuple[float, float]:
        """First and third quartile of the pauses."""
        low, high = np.quantile(self.pauses_s, (0.25, 0.75)).tolist()
        return low, high

    def joined(self, other: CostStep) -> CostStep:
        """Return both steps as one; ``other`` has the larger counts."""
        return CostStep(self.first_nodes, other.last_nodes, self.pauses_s + other.pauses_s)


@dataclass(frozen=True, slots=True)
class FittedCosts:
    """Costs of the changes of a model.

    Parameters
    ----------
    steps
        Steps of each cost for which there are restarts, by its name.
    warnings
        Sentences on restarts that are not used, and on costs with few or none.
    """

    steps: Mapping[str, tuple[CostStep, ...]]
    warnings: tuple[str, ...]

    def costs(self) -> dict[str, Cost]:
        """Return the cost of each kind of change as a job has it."""
        return {name: _cost(steps) for name, steps in self.steps.items()}


_KINDS = {
    "start_cost_s": "from 0 nodes",
    "scale_up_cost_s": "to more nodes",
    "scale_down_cost_s": "to fewer nodes",
}
_UNUSED = "to 0 nodes", "on as many nodes as before"


def fit_costs(restarts: Iterable[MeasuredRestart]) -> FittedCosts:
    """Return the median pause by the new count: in steps, or constant where one is enough.

    Counts are taken together with the next larger ones until they have ``FEWEST`` restarts, a remainder with those
    before it. From small counts to large, such a group joins the step before it while its median is within
    ``MERGED_WITHIN`` of the step's.
    """
    by_kind: dict[str, list[MeasuredRestart]] = {kind: [] for kind in (*_UNUSED, *_KINDS)}
    for restart in restarts:
        by_kind[_kind(restart)].append(restart)
    warnings = []
    for kind in _UNUSED:
        if by_kind[kind]:
            warnings.append(f"not used: {count(len(by_kind[kind]), 'restart')} {kind}.")
    for kind, change in _KINDS.items():
        if not by_kind[kind]:
            warnings.append(f"no restart {change}: {kind} is not known.")
        elif len(by_kind[kind]) < FEWEST:
            warnings.append(f"fewer than {FEWEST} restarts {change}: {kind} may be far off.")
    steps = {kind: _steps(by_kind[kind]) for kind in _KINDS if by_kind[kind]}
    return FittedCosts(steps, tuple(warnings))


def _kind(restart: MeasuredRestart) -> str:
    before, after = restart.nodes_before, restart.nodes_after
    if after == 0:
        return "to 0 nodes"
    if after == before:
        return "on as many nodes as before"
    if before == 0:
        return "start_cost_s"
    return "scale_up_cost_s" if after > before else "scale_down_cost_s"


def _steps(restarts: Iterable[MeasuredRestart]) -> tuple[CostStep, ...]:
    steps = []
    for restart in sorted(restarts, key=lambda restart: restart.nodes_after):
        nodes = restart.nodes_after
        steps.append(CostStep(nodes, nodes, (restart.pause_s,)))
    steps = _joined(steps, lambda low, high: low.first_nodes == high.first_nodes)
    steps = _joined(steps, lambda low, _: low.n_restarts < FEWEST)
    steps = _joined(steps, lambda _, high: high.n_restarts < FEWEST)
    return tuple(_joined(steps, _cost_the_same))


def _cost_the_same(low: CostStep, high: CostStep) -> bool:
    difference_s = abs(high.median_s - low.median_s)
    return difference_s <= MERGED_WITHIN * low.median_s


def _joined(steps: Iterable[CostStep], is_one: Callable[[CostStep, CostStep], bool]) -> list[CostStep]:
    """Join each step to the one before it where ``is_one`` of the two, which may have grown already."""
    joined: list[CostStep] = []
    for step in steps:
        if joined and is_one(joined[-1], step):
            step = joined.pop().joined(step)
        joined.append(step)
    return joined


def _cost(steps: Sequence[CostStep]) -> Cost:
    first_counts = [0, *(step.first_nodes for step in steps[1:])]
    medians_s = (step.median_s for step in steps)
    return cost_of(CostByCount(tuple(zip(first_counts, medians_s, strict=True))))
