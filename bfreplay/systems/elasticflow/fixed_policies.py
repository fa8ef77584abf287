"""ElasticFlow's baselines in the replay: every job runs on the nodes that its user asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import Decision, Round
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, PolicyState
from bfreplay.systems.elasticflow.deadline_policies import ChronusOptions, ElasticFlowOptions, ElasticFlowPolicy
from bfreplay.systems.elasticflow.published.chronus import MARGIN
from bfreplay.systems.elasticflow.published.leases import LeaseMilp, LeaseRequest, Plan, fits, pack

QUEUE_LIMITS_NODE_S = (3250.0, 7200.0)
"""Node seconds after which Tiresias moves a job to the second and to the third queue."""

_US_PER_S = 1e6


class FixedPolicy(ElasticFlowPolicy):
    """Base of policies that choose the jobs to run, each on its ``requested_nodes``."""

    @abstractmethod
    def rank(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the state in the order in which jobs run if they fit, (J,); ``requested (J,)``: nodes."""

    def until_us(self, state: PolicyState, requested: NDArray[np.int64], is_running: NDArray[np.bool_]) -> int | None:
        """Return the time of the next decision, from ``requested (J,)`` and ``is_running (J,)`` of each job.

        The default: after a slot, if a job waits.
        """
        return None if is_running.all() else state.time_us + round(self.options.slot_s * _US_PER_S)

    def decide_now(self, state: PolicyState) -> Decision:
        """Run the jobs that fit, in the order of ``rank``."""
        requested = state.max_nodes if state.requested_nodes is None else state.requested_nodes
        n_free = state.n_idle
        is_running = np.zeros(state.n_jobs, np.bool_)
        for job_row in self.rank(state, requested).tolist():
            if requested[job_row] <= n_free:
                is_running[job_row] = True
                n_free -= int(requested[job_row])
        self.note_runs(state, is_running)
        return Decision(np.where(is_running, requested, 0), round=Round(self.until_us(state, requested, is_running)))

    def note_runs(self, state: PolicyState, is_running: NDArray[np.bool_]) -> None:
        """Note the jobs that run from now on."""


def rates_at(state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the samples/s on ``requested`` nodes, above 0, (J,)."""
    return np.maximum(state.throughput[np.arange(state.n_jobs), requested], 1e-300)


class Tiresias(FixedPolicy):
    """Least attained service first, in three queues (Tiresias, NSDI'19); no job moves up again.

    Within a queue running jobs come first, then the others by arrival. The service of a job is the node-seconds of its
    progress.
    """

    def _service_node_s(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.float64]:
        return state.progress / rates_at(state, requested) * requested

    def rank(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return jobs by queue, then running ones first, then by arrival."""
        # a job that has just reached a limit may be a rounding below it
        queue = np.searchsorted(QUEUE_LIMITS_NODE_S, self._service_node_s(state, requested) * (1 + 1e-9), side="right")
        return np.lexsort((state.job, state.current == 0, queue))

    def until_us(self, state: PolicyState, requested: NDArray[np.int64], is_running: NDArray[np.bool_]) -> int | None:
        """Return the time at which the first job reaches the limit of its queue, if a job waits."""
        if is_running.all():
            return None
        service_node_s = self._service_node_s(state, requested)
        limits_node_s = np.array([*QUEUE_LIMITS_NODE_S, np.inf])
        limit_node_s = limits_node_s[np.searchsorted(QUEUE_LIMITS_NODE_S, service_node_s * (1 + 1e-9), side="right")]
        debt_samples = np.zeros(state.n_jobs) if state.owed is None else state.owed
        remaining_s = (limit_node_s - service_node_s) / requested + debt_samples / rates_at(state, requested)
        soonest_s = float(remaining_s[is_running].min(initial=np.inf))
        return None if not np.isfinite(soonest_s) else state.time_us + max(int(np.ceil(soonest_s * _US_PER_S)), 1)


class Gandiva(FixedPolicy):
    """Jobs take turns, a slot at a time (Gandiva, OSDI'18); nodes are divided among the sizes by demand."""

    def __init__(self, options: ElasticFlowOptions | None = None) -> None:
        super().__init__(options)
        self._last_turn: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """Forget all turns."""
        self._last_turn.clear()
        self._turn = 0
        self._turn_ends_us = LONG_AGO_US

    def rank(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return jobs within the share of their size, the longest without a turn first, then the others likewise."""
        last_turn = np.array([self._last_turn.get(job_number, -1) for job_number in state.job.tolist()])
        if self._is_mid_slot(state):
            last_turn = np.where(state.current > 0, -2, last_turn)  # no job is stopped before its slot ends
        by_turn = np.lexsort((state.job, last_turn))
        time_share = min(1.0, state.n_idle / max(int(requested.sum()), 1))
        is_within_share = np.zeros(state.n_jobs, np.bool_)
        for size in np.unique(requested).tolist():
            most_jobs = int(time_share * int(np.count_nonzero(requested == size)))
            is_within_share[[job_row for job_row in by_turn.tolist() if requested[job_row] == size][:most_jobs]] = True
        return by_turn[np.argsort(~is_within_share[by_turn], kind="stable")]

    def _is_mid_slot(self, state: PolicyState) -> bool:
        return state.time_us < self._turn_ends_us

    def note_runs(self, state: PolicyState, is_running: NDArray[np.bool_]) -> None:
        """Count a turn for those that run."""
        if not self._is_mid_slot(state):
            self._turn += 1
            self._turn_ends_us = state.time_us + round(self.options.slot_s * _US_PER_S)
        self._last_turn.update(dict.fromkeys(state.job[is_running].tolist(), self._turn))

    def until_us(self, state: PolicyState, requested: NDArray[np.int64], is_running: NDArray[np.bool_]) -> int | None:
        """Return the end of the turn, if a job waits."""
        return None if is_running.all() else max(self._turn_ends_us, state.time_us + 1)


class Themis(FixedPolicy):
    """Finish-time fairness (Themis, NSDI'20): shares of time that keep the worst ratio of finish times least.

    The ratio of a job is its time from submission to end over that with an equal share of the nodes. Shares are kept
    slot by slot: the jobs furthest below theirs run first.
    """

    def __init__(self, options: ElasticFlowOptions | None = None) -> None:
        super().__init__(options)
        self._received: dict[int, float] = {}

    def forget(self) -> None:
        """Forget the turns that jobs had."""
        self._received.clear()

    def rank(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return jobs by share over the turns that they had, the largest first."""
        samples_per_s = rates_at(state, requested)
        elapsed_s = (state.time_us - state.submit_us) / _US_PER_S
        remaining_s = np.minimum((state.work - state.progress) / samples_per_s, 1e12)
        equal_share = np.minimum(1.0, state.n_idle / state.n_jobs / requested)
        alone_s = (state.progress / samples_per_s + remaining_s) / equal_share
        time_share = finish_time_shares(elapsed_s, remaining_s, alone_s, requested, state.n_idle)
        n_turns = np.array([self._received.get(job_number, 0.0) for job_number in state.job.tolist()])
        return np.lexsort((state.job, -time_share / (1.0 + n_turns)))

    def note_runs(self, state: PolicyState, is_running: NDArray[np.bool_]) -> None:
        """Count a turn for those that run."""
        for job_number in state.job[is_running].tolist():
            self._received[job_number] = self._received.get(job_number, 0.0) + 1.0


def finish_time_shares(
    elapsed_s: NDArray[np.float64],
    remaining_s: NDArray[np.float64],
    alone_s: NDArray[np.float64],
    requested: NDArray[np.int64],
    n_nodes: int,
) -> NDArray[np.float64]:
    """Return shares of time with the least worst ratio ``(elapsed_s + left_s / share) / alone_s``.

    All arguments are ``(J,)``. The least ratio at which the shares that jobs need fit on the nodes is found by
    bisection; spare time goes to all in equal proportion.

    Returns
    -------
    (J,) float64
        From 0 to 1.
    """

    def shares_for(ratio: float) -> NDArray[np.float64]:
        room_s = np.maximum(ratio * alone_s - elapsed_s, 1e-9)
        return np.minimum(remaining_s / room_s, 1.0)

    low = float(((elapsed_s + remaining_s) / alone_s).max())
    high = low
    while float((shares_for(high) * requested).sum()) > n_nodes and high < 1e12:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float((shares_for(middle) * requested).sum()) > n_nodes else (low, middle)
    time_share = shares_for(high)
    nodes_in_use = float((time_share * requested).sum())
    return np.minimum(time_share * max(n_nodes / nodes_in_use, 1.0), 1.0) if nodes_in_use > 0 else time_share


GREEDY = "greedy"


class Chronus(FixedPolicy):
    """Leases of a fixed length, planned by a linear model (Chronus, SoCC'21).

    A job with a deadline is accepted on arrival if the leases that it needs fit before its deadline beside those of
    the jobs accepted before; no job is declined. At the start of each lease a model chooses the accepted jobs that hold
    it: on as many nodes as possible if all jobs are accepted, otherwise on as few, which leaves more to the others.
    """

    capabilities = replace(FixedPolicy.capabilities, linear_programs=True)
    options_type = ChronusOptions
    options: ChronusOptions
    not_saved = ("_solver",)

    def __init__(self, options: ChronusOptions | None = None) -> None:
        super().__init__(options)
        backend = self.options.backend
        self._solver = None if self.options.published or backend == GREEDY else LeaseMilp(backend)
        self._n_solves = self._n_fallbacks = 0
        self.forget()

    def forget(self) -> None:
        """Forget the jobs of a replay."""
        self._is_accepted: dict[int, bool] = {}
        self._holders: set[int] = set()
        self._lease_ends_us = LONG_AGO_US

    def rank(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return holders of the lease, then jobs that were not accepted, the most urgent first, then accepted ones."""
        requests = self._requests(state, requested)
        for job_row, job_number in enumerate(state.job.tolist()):
            if job_number not in self._is_accepted:
                self._is_accepted[job_number] = self._fits(state, requests, job_row)
        is_accepted = np.array([self._is_accepted[job_number] for job_number in state.job.tolist()])
        if state.time_us >= self._lease_ends_us:
            self._lease_ends_us = state.time_us + round(self.options.lease_s * _US_PER_S)
            self._holders = self._plan_lease(state, requests, is_accepted)
        is_holder = np.array([job_number in self._holders for job_number in state.job.tolist()])
        to_deadline_s = (state.deadline_us - float(state.time_us)) / _US_PER_S
        # the seconds that jobs may wait; inf without a deadline
        slack_s = np.where(state.deadline_us == NO_DEADLINE_US, np.inf, to_deadline_s - self._left_s(state, requested))
        return np.lexsort((state.job, slack_s, is_accepted, ~is_holder))

    def until_us(self, state: PolicyState, requested: NDArray[np.int64], is_running: NDArray[np.bool_]) -> int | None:
        """Return the end of the lease."""
        return self._lease_ends_us

    def _left_s(self, state: PolicyState, requested: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the remaining seconds of jobs on ``requested`` nodes, with a margin, (J,)."""
        debt_samples = 0.0 if state.owed is None else state.owed
        return np.minimum(MARGIN * (state.work - state.progress + debt_samples) / rates_at(state, requested), 1e12)

    def _requests(self, state: PolicyState, requested: NDArray[np.int64]) -> list[LeaseRequest]:
        """Return the leases that jobs ask for, counted from now; none are available without a deadline."""
        lease_us = self.options.lease_s * _US_PER_S
        n_leases = np.ceil(self._left_s(state, requested) / self.options.lease_s).clip(1.0)
        n_available = (state.deadline_us - float(state.time_us)) // lease_us
        n_available = np.where(state.deadline_us == NO_DEADLINE_US, 0.0, n_available).clip(0.0, 1e6)
        return [LeaseRequest(*map(int, request)) for request in zip(requested, n_leases, n_available, strict=True)]

    def _fits(self, state: PolicyState, requests: list[LeaseRequest], job_row: int) -> bool:
        """Return whether the leases of the job in ``job_row`` fit beside those of jobs accepted before."""
        if requests[job_row].needed > requests[job_row].available:
            return False
        accepted_others = [
            index for index, job_number in enumerate(state.job.tolist()) if self._is_accepted.get(job_number, False)
        ]
        nothing = np.zeros(0, np.int64)
        plans = pack([requests[index] for index in accepted_others], nothing, state.n_idle)
        accepted_rows = [index for index, plan in zip(accepted_others, plans, strict=True) if plan is not None]
        return fits([requests[index] for index in [*accepted_rows, job_row]], nothing, state.n_idle)

    def _plan_lease(self, state: PolicyState, requests: list[LeaseRequest], is_accepted: NDArray[np.bool_]) -> set[int]:
        """Return the numbers of the jobs that hold the lease which begins now."""
        is_possible = np.array(
            [request.needed <= request.available and request.gpus <= state.n_idle for request in requests]
        )
        feasible_rows = np.flatnonzero(is_accepted & is_possible).tolist()
        lease_requests = [requests[job_row] for job_row in feasible_rows]
        plans: Sequence[Plan | None] | None = None
        if self._solver is not None and lease_requests:
            self._n_solves += 1
            plans = self._solver.plans(lease_requests, state.n_idle, fill_first=bool(is_accepted.all()))
            self._n_fallbacks += plans is None
        if plans is None:
            plans = pack(lease_requests, np.zeros(0, np.int64), state.n_idle)
        holders = [job_row for job_row, plan in zip(feasible_rows, plans, strict=True) if plan is None or plan[0]]
        late_rows = np.flatnonzero(is_accepted & ~is_possible).tolist()
        return set(state.job[[*holders, *late_rows]].tolist())

    def summary(self) -> dict[str, object] | None:
        """Return the number of plans by a solver, and of those replaced by the greedy rule."""
        return {**(super().summary() or {}), "n_solves": self._n_solves, "n_fallbacks": self._n_fallbacks}

    def close(self) -> None:
        """End the worker process of the back end, if any."""
        super().close()
        if self._solver is not None:
            self._solver.close()
