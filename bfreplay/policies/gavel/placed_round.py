"""An assignment of the round mechanism as the decision that the replay carries out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.gavel.clock import whole_us
from bfreplay.policies.gavel.rounds.assignment import Assignment
from bfreplay.policies.gavel.rounds.rules import RoundRules
from bfreplay.policies.gavel.rounds.state import RoundState
from bfreplay.policies.policy import Decision, NodesSeen, PolicyState

_NO_NODES = np.zeros(0, np.int64)


def seen(state: PolicyState) -> NodesSeen:
    """The nodes of a state.

    Raises
    ------
    ValueError
        The state was made without any: policies that place jobs need them.
    """
    if state.nodes is None:
        raise ValueError("the state does not say which nodes there are")
    return state.nodes


def busy_node_s(
    rounds: RoundState, ended_s: NDArray[np.float64] | None = None, which: NDArray[np.bool_] | None = None
) -> float:
    """Node seconds of the micro-tasks that ``credit`` would count now, with the same arguments."""
    last = rounds.last
    ended = last.finish_s if ended_s is None else ended_s
    counts = ~rounds.is_credited & ~last.fails
    if which is not None:
        counts &= which
    return float(((ended - last.counted_from_s) * np.diff(last.node_offset))[counts].sum())


class PlacedRound:
    """Collects what becomes of each job of a state in (the rest of) a round.

    Parameters
    ----------
    state
        What is decided on.
    rounds
        The mechanism after it has made ``assignment``.
    assignment
        Who runs where.
    rows : (m,) int64
        Row in ``state`` of each job of ``rounds``.

    Attributes
    ----------
    until_us
        When the last micro-task that began ends; -1 while none did.
    """

    def __init__(self, state: PolicyState, rounds: RoundState, assignment: Assignment, rows: NDArray[np.int64]) -> None:
        n = state.n_jobs
        self.until_us = -1
        self._state = state
        self._rounds = rounds
        self._assignment = assignment
        self._rows = rows
        task = rounds.entries.task
        self._entry_of = np.zeros(assignment.n_tasks, np.int64)
        self._entry_of[task[task >= 0]] = np.flatnonzero(task >= 0)
        self._counts = np.zeros(n, np.int64)
        self._assigned = [_NO_NODES] * n
        self._partner = np.full(n, -1, np.int64)
        self._samples = np.full(n, np.inf)
        self._restart_s = np.zeros(n)
        self._not_before_us = np.zeros(n, np.int64)

    def begin(self, rules: RoundRules, tasks: Iterable[int]) -> None:
        """Micro-tasks that start now."""
        state, assignment = self._state, self._assignment
        for task in tasks:
            members = self._place(task)
            of_type = self._rounds.entries.rate[self._entry_of[task], assignment.node_type[task]]
            rate = of_type[: len(members)]
            steps = assignment.steps[task, : len(members)] * (not assignment.fails[task])
            lost_s = rules.restart_s * assignment.restarts[task, : len(members)]
            self._samples[members] = steps
            self._restart_s[members] = lost_s
            # as the replay will work it out, to the microsecond
            progress = state.progress[members]
            ends_us = int(whole_us(((progress + steps) - progress + rate * lost_s) / rate).max())
            if len(members) == 2 and rules.quirks.pairs_end_together:
                self._not_before_us[members] = state.time_us + ends_us
            if assignment.fails[task]:
                ends_us = int(whole_us(np.array(assignment.finish_s[task] - assignment.start_s[task])))
            self.until_us = max(self.until_us, state.time_us + max(ends_us, 1))

    def go_on(self, tasks: Iterable[int], limit: NDArray[np.float64]) -> None:
        """Micro-tasks that began earlier in the round; ``limit (J,)``: the progress up to which each job may go."""
        for task in tasks:
            members = self._place(task)
            self._samples[members] = np.maximum(limit[members] - self._state.progress[members], 0.0)

    def _place(self, task: int) -> list[int]:
        """Give the members of a micro-task its nodes; returns their rows."""
        nodes = self._assignment.nodes_of(task)
        members = [int(self._rows[row]) for row in self._rounds.entries.member_row[self._entry_of[task]] if row >= 0]
        for row in members:
            self._counts[row] = nodes.size
            self._assigned[row] = nodes
        if len(members) == 2:
            self._partner[members[0]], self._partner[members[1]] = members[1], members[0]
        return members

    def decision(self, failed: NDArray[np.bool_] | None, until_us: int) -> Decision:
        """The decision, which holds until ``until_us``; -1 where nothing runs: until something happens."""
        return Decision(
            self._counts,
            assigned=tuple(self._assigned),
            partner=self._partner if (self._partner >= 0).any() else None,
            samples=self._samples,
            restart_s=self._restart_s if self._restart_s.any() else None,
            not_before_us=self._not_before_us if self._not_before_us.any() else None,
            failed=failed,
            until_us=None if until_us < 0 else until_us,
        )

    def limits(self) -> dict[int, float]:
        """Progress up to which each job that runs may go, by its number in the replay."""
        running = np.flatnonzero(self._counts)
        limit = self._state.progress[running] + self._samples[running]
        return dict(zip(self._state.job[running].tolist(), limit.tolist(), strict=True))
