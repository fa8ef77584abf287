"""Costs of changes from the pauses of restarts that were measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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


def fit_costs(restarts: Iterable[MeasuredRestart]) -> FittedCosts:
    """Return the median pause by the new count: in steps, or constant where one is enough.

    Counts are taken together with the next larger ones until they have ``FEWEST`` restarts, a remainder with those
    before it. From small counts to large, such a group joins the step before it while its median is within
    ``MERGED_WITHIN`` of the step's.
    """
    by_kind: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in _KINDS}
    n_unused = {"to 0 nodes": 0, "on as many nodes as before": 0}
    for restart in restarts:
        before, after = restart.nodes_before, restart.nodes_after
        if after == 0:
            n_unused["to 0 nodes"] += 1
        elif after == before:
            n_unused["on as many nodes as before"] += 1
        else:
            name = "start_cost_s" if before == 0 else "scale_up_cost_s" if after > before else "scale_down_cost_s"
            by_kind[name][after].append(restart.pause_s)
    warnings = [f"not used: {count(number, 'restart')} {where}." for where, number in n_unused.items() if number]
    for name, pauses in by_kind.items():
        n_restarts = sum(map(len, pauses.values()))
        if n_restarts == 0:
            warnings.append(f"no restart {_KINDS[name]}: {name} is not known.")
        elif n_restarts < FEWEST:
            warnings.append(f"fewer than {FEWEST} restarts {_KINDS[name]}: {name} may be far off.")
    steps = {name: _steps(pauses) for name, pauses in by_kind.items() if pauses}
    return FittedCosts(steps, tuple(warnings))


def _steps(pauses_of_count: Mapping[int, Sequence[float]]) -> tuple[CostStep, ...]:
    groups: list[CostStep] = []
    for nodes, pauses_s in sorted(pauses_of_count.items()):
        at_count = CostStep(nodes, nodes, tuple(pauses_s))
        if groups and len(groups[-1].pauses_s) < FEWEST:
            groups[-1] = groups[-1].joined(at_count)
        else:
            groups.append(at_count)
    if len(groups) > 1 and len(groups[-1].pauses_s) < FEWEST:
        remainder = groups.pop()
        groups[-1] = groups[-1].joined(remainder)
    steps = groups[:1]
    for group in groups[1:]:
        median_s = steps[-1].median_s
        if abs(group.median_s - median_s) <= MERGED_WITHIN * median_s:
            steps[-1] = steps[-1].joined(group)
        else:
            steps.append(group)
    return tuple(steps)


def _cost(steps: Sequence[CostStep]) -> Cost:
    first_counts = [0, *(step.first_nodes for step in steps[1:])]
    medians_s = (step.median_s for step in steps)
    return cost_of(CostByCount(tuple(zip(first_counts, medians_s, strict=True))))
