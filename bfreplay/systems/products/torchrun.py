"""torchrun's elastic launch: the rendezvous of a job's agents, and a policy with the waits that follow from it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.options import Number, Whole, option
from bfreplay.policies.state import LONG_AGO_US, NEVER_US, PolicyState
from bfreplay.systems.products.rule import MOST_S, US_PER_S, RuleJobs, RuleOptions, RulePolicy, Shares

_BEAT_S = 5
"""Seconds between two heartbeats of an agent."""


class Rendezvous:
    """Agents of one job that agree on who is in its group, second by second; behaviour of PyTorch 2.14.1.

    The policy uses ``round_after`` instead, which is this for the events of a replay.

    Parameters
    ----------
    least, most
        MIN and MAX of ``--nnodes``.
    last_call_s, keep_alive_s
        Seconds from MIN agents to the end of a round below MAX, and from an agent's last heartbeat to its removal.

    Attributes
    ----------
    participants, is_complete, deadline_s
        Agents of the round, whether it is complete, and the end of its last call; inf for none.
    waiting, spare
        Agents that came after the round was complete, below MAX and at MAX.
    heartbeat_s
        Last heartbeat of each agent.
    running_since_s
        When each agent of the running group began; an agent that has not yet seen that its round is complete is absent.
    """

    def __init__(self, least: int, most: int, last_call_s: float = 30.0, keep_alive_s: float = 15.0) -> None:
        self.least, self.most = least, most
        self.last_call_s, self.keep_alive_s = last_call_s, keep_alive_s
        self.agents: list[str] = []
        self.participants: set[str] = set()
        self.waiting: set[str] = set()
        self.spare: set[str] = set()
        self.is_complete = False
        self.deadline_s = math.inf
        self.heartbeat_s: dict[str, int] = {}
        self.running_since_s: dict[str, int] = {}

    def step(self, now_s: int, new: Collection[str] = (), lost: Collection[str] = ()) -> list[str]:
        """Let agents come and go, and each act once; return those that run. To be called for every second."""
        self.agents = sorted({*self.agents, *new} - {*lost})
        restarts = not self.running_since_s.keys().isdisjoint(lost)
        for agent in [agent for agent, beat_s in self.heartbeat_s.items() if now_s - beat_s > self.keep_alive_s]:
            del self.heartbeat_s[agent]
            self._remove(agent)
        if restarts or self.waiting:
            for agent in self.running_since_s:
                if agent not in lost:  # its seat is taken until its heartbeat is too old
                    self._remove(agent)
            self.running_since_s = {}
        for agent in self.agents:
            if agent not in self.running_since_s:
                self._join(agent, now_s)
            elif (now_s - self.running_since_s[agent]) % _BEAT_S == 0:
                self.heartbeat_s[agent] = now_s
        return sorted(self.running_since_s)

    def _remove(self, agent: str) -> None:
        for members in (self.participants, self.waiting, self.spare):
            members.discard(agent)
        self.is_complete &= bool(self.participants)
        if len(self.participants) < self.least:
            self.deadline_s = math.inf

    def _join(self, agent: str, now_s: int) -> None:
        """Let an agent that does not run act once."""
        if len(self.participants) < self.most:
            self.spare.discard(agent)
        is_in = agent in self.participants
        if not (self.is_complete or is_in):
            self.waiting.discard(agent)
            self.participants.add(agent)
            self.heartbeat_s[agent] = now_s
            if len(self.participants) == self.least:
                self.deadline_s = now_s + self.last_call_s
        elif not (is_in or agent in self.waiting or agent in self.spare):
            (self.waiting if len(self.participants) < self.most else self.spare).add(agent)
            self.heartbeat_s[agent] = now_s
        if agent in self.participants and (self.deadline_s < now_s or len(self.participants) == self.most):
            self.is_complete, self.deadline_s = True, math.inf
        if self.is_complete and agent in self.participants:
            self.running_since_s[agent] = now_s
        elif now_s - self.heartbeat_s[agent] >= _BEAT_S:
            self.heartbeat_s[agent] = now_s


NOT_BEGUN = LONG_AGO_US, NEVER_US
"""Round of a job without nodes, for ``round_after``."""


@dataclass(frozen=True)
class TorchrunOptions(RuleOptions):
    """Options of ``products.torchrun``; the product's defaults, but for ``max_restarts``.

    Parameters
    ----------
    last_call_s
        Seconds for which a round waits for more nodes once MIN are there.
    keep_alive_s
        Seconds for which the seat of a lost node is taken. Measured: 10 to 16.
    join_timeout_s
        Seconds after which a job with fewer than MIN nodes gives them back.
    max_restarts
        Losses of nodes that a running job survives; the product's default is 0. ``None``: any number.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    last_call_s: float = option(30.0, Number(least=0, most=MOST_S))
    keep_alive_s: float = option(15.0, Number(least=0, most=MOST_S))
    join_timeout_s: float = option(600.0, Number(least=1, most=MOST_S))
    max_restarts: int | None = option(None, Whole(0))


def round_after(
    options: TorchrunOptions,
    before: tuple[int, int],
    now_us: int,
    n_nodes: int,
    bounds: tuple[int, int],
    has_lost: bool,
) -> tuple[int, int]:
    """Return when the agents of a job meet, and when their round is complete, after a change of its nodes.

    All times in microseconds; see ``Rendezvous``, whose times it has within 2 s.

    Parameters
    ----------
    before
        The same after the change before; ``NOT_BEGUN`` for a job without nodes.
    now_us
        Time of the change.
    n_nodes, bounds
        Nodes now, and MIN and MAX. With fewer than MIN the round is complete at ``NEVER_US``.
    has_lost
        Nodes were lost. If the group ran, the others meet when the seats are free; an open round goes on.
    """
    meet_us, complete_us = before
    if complete_us <= now_us:
        meet_us = now_us + has_lost * round(options.keep_alive_s * US_PER_S)
    elif complete_us == NEVER_US:
        meet_us = max(meet_us, now_us)
    if n_nodes < bounds[0]:
        return meet_us, NEVER_US
    if n_nodes == bounds[1]:  # agents look once a second
        return meet_us, max(meet_us, now_us) + US_PER_S
    return meet_us, max(meet_us + round(options.last_call_s * US_PER_S), now_us)


class Torchrun(RulePolicy):
    """Each job takes every free node up to its maximum, and restarts through a rendezvous at every change.

    What that takes is the wait of its restart: the last call, or 1 s at the maximum, and before either the time until
    the seat of a lost node is free. Nodes that come while a round is open join it without extending it.
    """

    name = "products.torchrun"
    options_type = TorchrunOptions
    options: TorchrunOptions
    product = "PyTorch 2.14.1, torchrun --nnodes=MIN:MAX"
    readings = (
        "free nodes go first come first served; too few for a job's minimum go to the next, and none is taken away",
        "any number of restarts (max_restarts); only losses of a running group count",
        "a job that timed out or lost all its nodes goes back into the queue and starts with a new budget of restarts",
        "the store of the rendezvous survives every loss",
        "a node lost during the last call does not extend it",
    )

    def forget(self) -> None:
        """Forget all rounds."""
        self._rounds: dict[int, tuple[int, int]] = {}
        self._give_up_us: dict[int, int] = {}
        self._n_failures: dict[int, int] = {}

    def shares(self, jobs: RuleJobs) -> Shares:
        """Return every free node to the first job that can use it."""
        counts, failed = list(jobs.count), []
        for row, number in enumerate(jobs.number):
            if jobs.hit[row] and self._rounds.get(number, NOT_BEGUN)[1] <= jobs.now_us:
                self._n_failures[number] = self._n_failures.get(number, 0) + 1
            most_failures = self.options.max_restarts
            if most_failures is not None and self._n_failures.get(number, 0) > most_failures:
                failed.append(row)
            if row in failed or not counts[row] or self._give_up_us.get(number, NEVER_US) <= jobs.now_us:
                counts[row] = 0
                self._rounds.pop(number, None)
                self._give_up_us.pop(number, None)
                if row not in failed:
                    self._n_failures.pop(number, None)
        n_free, until_us = jobs.n_free(counts), NEVER_US
        for row, number in enumerate(jobs.number):
            count = 0 if row in failed else jobs.fit(row, counts[row] + n_free)
            if count:
                n_free -= count - counts[row]
                counts[row] = count
                self._give_up_us.pop(number, None)
            elif counts[row]:
                timeout_us = round(self.options.join_timeout_s * US_PER_S)
                until_us = min(until_us, self._give_up_us.setdefault(number, jobs.now_us + timeout_us))
        return Shares(counts, until_us, failed=failed)

    def waits_s(self, state: PolicyState, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the seconds until rounds are complete, less what a job still owes of the round that it is in."""
        jobs, rounds, waits_s = self.jobs_of(state), {}, np.zeros(state.n_jobs)
        for row, n_nodes in enumerate(counts.tolist()):
            before_us = times_us = self._rounds.get(jobs.number[row], NOT_BEGUN)
            if jobs.hit[row] or n_nodes != jobs.count[row]:
                bounds = jobs.least[row], jobs.most[row]
                times_us = round_after(self.options, times_us, jobs.now_us, n_nodes, bounds, jobs.hit[row])
                waits_s[row] = (times_us[1] - jobs.now_us) / US_PER_S
                if jobs.now_us < before_us[1] < NEVER_US and not (state.costs and state.costs.pauses[row]):
                    n_before = jobs.count[row] + (0 if state.lost_nodes is None else int(state.lost_nodes[row]))
                    rate_before, rate = state.throughput[row, [n_before, n_nodes]].tolist()
                    owed = (before_us[1] - jobs.now_us) / US_PER_S * rate_before
                    waits_s[row] -= min(waits_s[row], owed / rate) if rate else 0.0
            if n_nodes:
                rounds[jobs.number[row]] = times_us
        self._rounds = rounds
        return waits_s

    def why(self, state: PolicyState, job_row: int) -> str:
        """Return why a job waits, or what its rendezvous does."""
        number = int(state.job[job_row])
        complete_us = self._rounds.get(number, NOT_BEGUN)[1]
        if number in self._n_failures and number not in self._rounds:
            return "it lost nodes once more than it may restart, and is given up"
        if number in self._give_up_us:
            left_s = (self._give_up_us[number] - state.time_us) / US_PER_S
            return f"it has fewer than its minimum, and gives its nodes back in {left_s:g} s"
        if complete_us == NEVER_US:
            return "its minimum was not free at its turn"
        wait_s = max(complete_us - state.time_us, 0) / US_PER_S
        when = f" in {wait_s:g} s" if wait_s else ""
        return f"it takes every free node at its turn, and its rendezvous is complete{when}"
