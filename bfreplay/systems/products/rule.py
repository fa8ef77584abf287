"""Base of the rules that products ship: options of all of them, jobs as a rule sees them, and its decision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.options import Number, Whole, option
from bfreplay.policies.policy import (
    ANY_TRIGGER,
    Decision,
    Placement,
    PolicyCapabilities,
    PolicyOptions,
    PolicyWithOptions,
    Round,
    Trigger,
)
from bfreplay.policies.state import NEVER_US, PolicyState

US_PER_S = 1_000_000
MOST_S = 1e9
"""Longest time of an option in seconds, 31 years: sums of times in microseconds stay within 64 bits."""


@dataclass(frozen=True)
class RuleOptions(PolicyOptions):
    """Options of all rules. What a change costs is the jobs' own, or the run's: ``--restart-cost``.

    Parameters
    ----------
    max_nodes
        Most nodes of a job, but never fewer than its minimum. ``None``: its own ``max_nodes`` alone.
    restart_s
        Seconds that every start and every change of a running job take besides what it pays itself.
    snooze_s
        Seconds after a start or restart in which a running job does not grow. No product but HyperPod has it.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    max_nodes: int | None = option(None, Whole(1))
    restart_s: float = option(0.0, Number(least=0, most=MOST_S))
    snooze_s: float = option(0.0, Number(least=0, most=MOST_S))


def _are_hit(state: PolicyState) -> NDArray[np.bool_]:
    """Return whether nodes were reclaimed from each job since the last decision, (J,)."""
    return np.zeros(state.n_jobs, np.bool_) if state.lost_nodes is None else state.lost_nodes > 0


class RuleJobs:
    """The J jobs of a state as plain lists, which rules go through job by job.

    Attributes
    ----------
    now_us, n_idle
        As in the state.
    number, count, least, most, hit, weight
        Of each job: its number in order of submission, nodes held now, fewest and most nodes, whether nodes were
        reclaimed from it since the last decision, and its weight, which stands for a priority.
    nodes
        As in the state, for rules that choose nodes.
    snooze_ends_us
        When the jobs that may not grow yet may, by their rows.
    """

    def __init__(self, state: PolicyState, most_nodes: int | None, snooze_us: int) -> None:
        self.now_us, self.n_idle, self.n_jobs = state.time_us, state.n_idle, state.n_jobs
        self.nodes = state.nodes
        self.number: list[int] = state.job.tolist()
        self.count: list[int] = state.current.tolist()
        self.least: list[int] = state.min_nodes.tolist()
        most = state.max_nodes
        if most_nodes is not None:
            most = np.maximum(np.minimum(most, most_nodes), state.min_nodes)
        allowed = None if state.costs is None else state.costs.allowed
        self._allowed = allowed if allowed is not None and allowed.shape[1] > 1 else None
        self.most = [self._largest_allowed(row, n_nodes) for row, n_nodes in enumerate(most.tolist())]
        self.weight: list[float] = state.weight.tolist()
        self.hit: list[bool] = _are_hit(state).tolist()
        self.snooze_ends_us: dict[int, int] = {}
        if snooze_us and state.started_us is not None:
            for row, started_us in enumerate(state.started_us.tolist()):
                if self.runs(row) and not self.hit[row] and started_us + snooze_us > self.now_us:
                    self.snooze_ends_us[row] = started_us + snooze_us

    def __iter__(self) -> Iterator[int]:
        """Rows of the jobs, first come first served."""
        return iter(range(self.n_jobs))

    def runs(self, row: int) -> bool:
        """Return whether a job has enough nodes to run."""
        return self.count[row] >= self.least[row] > 0

    def fit(self, row: int, n_nodes: int) -> int:
        """Return the most nodes that a job can use of ``n_nodes``: 0 if its minimum does not fit."""
        n_nodes = self._largest_allowed(row, min(n_nodes, self._most_now(row)))
        return n_nodes if n_nodes >= self.least[row] else 0

    def fit_from(self, row: int, n_nodes: int) -> int:
        """Return the fewest nodes that a job can use, at least ``n_nodes``: 0 if it cannot use as many."""
        n_nodes = max(n_nodes, self.least[row])
        if self._allowed is not None and n_nodes <= self.most[row]:
            allowed = self._allowed[row, n_nodes : self.most[row] + 1]
            n_nodes = n_nodes + int(allowed.argmax()) if allowed.any() else self.most[row] + 1
        return n_nodes if n_nodes <= self._most_now(row) else 0

    def _largest_allowed(self, row: int, n_nodes: int) -> int:
        if self._allowed is None or n_nodes <= 0:
            return n_nodes
        return int(np.flatnonzero(self._allowed[row, : n_nodes + 1])[-1])

    def _most_now(self, row: int) -> int:
        return self.count[row] if row in self.snooze_ends_us else self.most[row]

    def by_priority(self) -> list[int]:
        """Return the rows by weight, largest first, then in order of submission."""
        return sorted(self, key=lambda row: (-self.weight[row], self.number[row]))

    def n_free(self, counts: Sequence[int]) -> int:
        """Return the idle nodes that are left beside ``counts``."""
        return self.n_idle - sum(counts)


@dataclass(frozen=True, slots=True)
class Shares:
    """Answer of a rule.

    Parameters
    ----------
    counts
        Nodes of each job: as many as it holds, or so many that it can use; below its minimum it holds them and waits.
    until_us
        When the rule wants to be asked again, if nothing happens before. ``NEVER_US``: it need not be.
    failed
        Rows of the jobs that are given up, with a count of 0.
    nodes
        Numbers of the nodes of each job, those that it keeps first; ``None``: the replay places the counts.
    """

    counts: list[int]
    until_us: int = NEVER_US
    failed: list[int] = field(default_factory=list)
    nodes: list[list[int]] | None = None


class RulePolicy(PolicyWithOptions):
    """Base of the rules. A subclass writes ``shares`` and ``why``; its product and our reading of it are data.

    Attributes
    ----------
    product
        Name and version of the product that the rule was read from.
    readings
        What the product leaves open, and how it is read here.
    """

    wakes_on = ANY_TRIGGER | Trigger.ROUND
    capabilities = PolicyCapabilities(asks_solver=False, restarts_jobs=True, decides_again=True)
    options_type = RuleOptions
    options: RuleOptions
    product: ClassVar[str]
    readings: ClassVar[tuple[str, ...]]

    def __init__(self, options: RuleOptions | None = None) -> None:
        super().__init__(options)
        self.forget()

    @abstractmethod
    def shares(self, jobs: RuleJobs) -> Shares:
        """Return the nodes of each job."""

    @abstractmethod
    def why(self, state: PolicyState, job_row: int) -> str:
        """Return why a job has the nodes that it was given by the last decision, which was on ``state``."""

    def jobs_of(self, state: PolicyState) -> RuleJobs:
        """Return the jobs of a state with the bounds that the rule knows."""
        return RuleJobs(state, self.options.max_nodes, round(self.options.snooze_s * US_PER_S))

    def decide(self, state: PolicyState) -> Decision:
        """Return the counts of the rule, the restarts, and the time of its next look."""
        self.note_time(state)
        jobs = self.jobs_of(state)
        answer = self.shares(jobs)
        counts = np.array(answer.counts, np.int64)
        ends_us = (end_us for row, end_us in jobs.snooze_ends_us.items() if counts[row] < jobs.most[row])
        until_us = min(answer.until_us, *ends_us, NEVER_US)
        failed = np.isin(np.arange(state.n_jobs), answer.failed) if answer.failed else None
        placement = None
        if answer.nodes is not None:
            placement = Placement(tuple(np.array(nodes, np.int64) for nodes in answer.nodes))
        rules = Round(until_us, failed=failed)
        return Decision(counts, placement=placement, round=rules, restart_s=self._restarts_s(state, counts))

    def waits_s(self, state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the seconds for which each job waits before it restarts on ``counts``, by the rule, (J,)."""
        return np.zeros(state.n_jobs)

    def _restarts_s(self, state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the seconds that jobs restart for besides what they pay themselves, (J,)."""
        seconds = self.options.restart_s + self.waits_s(state, counts)
        keeps, hit = counts == state.current, _are_hit(state)
        seconds[(counts < state.min_nodes) | (keeps & ~hit)] = 0.0
        if state.costs is not None:  # the restart takes the place of the pause that the reclaim has begun
            goes_on = keeps & hit & (seconds > 0.0)
            seconds[goes_on] += state.costs.pause_left_s[goes_on]
        return seconds if seconds.any() else None

    def describe(self) -> dict[str, object]:
        """Return every option, the product, and our reading of it."""
        return {**super().describe(), "product": self.product, "readings": list(self.readings)}
