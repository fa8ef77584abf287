"""ElasticFlow's baselines in the replay: every job runs on the nodes that its user asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solver import Solver
from bfreplay.policies.policy import Decision, Round
from bfreplay.policies.spec import keywords_from
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, PolicyState
from bfreplay.systems.elasticflow.deadline_policies import ElasticFlowPolicy
from bfreplay.systems.elasticflow.options import ChronusOptions, ElasticFlowOptions
from bfreplay.systems.elasticflow.published.chronus import MARGIN
from bfreplay.systems.elasticflow.published.leases import LeaseMilp, LeaseRequest, Plan, fits, pack

QUEUE_LIMITS_NODE_S = (3250.0, 7200.0)
"""Node seconds after which Tiresias moves a job to the second and to the third queue."""

_US_PER_S = 1e6


class FixedPolicy(ElasticFlowPolicy):
    """Base of policies that choose the jobs to run, each on its ``requested_nodes``."""

    @abstractmethod
    def rank(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the state in the order in which jobs run if they fit, (J,); ``width (J,)``: nodes."""

    def until_us(self, state: PolicyState, width: NDArray[np.int64], runs: NDArray[np.bool_]) -> int | None:
        """Return the time of the next decision, from ``width (J,)`` and ``runs (J,)`` of each job.

        The default: after a slot, if a job waits.
        """
        return None if runs.all() else state.time_us + round(self.options.slot_s * _US_PER_S)

    def decide_now(self, state: PolicyState) -> Decision:
        """Run the jobs that fit, in the order of ``rank``."""
        width = state.max_nodes if state.requested_nodes is None else state.requested_nodes
        free = state.n_idle
        runs = np.zeros(state.n_jobs, np.bool_)
        for row in self.rank(state, width).tolist():
            if width[row] <= free:
                runs[row] = True
                free -= int(width[row])
        self.note_runs(state, runs)
        return Decision(np.where(runs, width, 0), round=Round(self.until_us(state, width, runs)))

    def note_runs(self, state: PolicyState, runs: NDArray[np.bool_]) -> None:
        """Note the jobs that run from now on."""


def rates_at(state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the samples/s on ``width`` nodes, above 0, (J,)."""
    return np.maximum(state.throughput[np.arange(state.n_jobs), width], 1e-300)


class Tiresias(FixedPolicy):
    """Least attained service first, in three queues (Tiresias, NSDI'19); no job moves up again.

    Within a queue running jobs come first, then the others by arrival. The service of a job is the node-seconds of its
    progress.
    """

    def _service_node_s(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
        return state.progress / rates_at(state, width) * width

    def rank(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return jobs by queue, then running ones first, then by arrival."""
        # a job that has just reached a limit may be a rounding below it
        queue = np.searchsorted(QUEUE_LIMITS_NODE_S, self._service_node_s(state, width) * (1 + 1e-9), side="right")
        return np.lexsort((state.job, state.current == 0, queue))

    def until_us(self, state: PolicyState, width: NDArray[np.int64], runs: NDArray[np.bool_]) -> int | None:
        """Return the time at which the first job reaches the limit of its queue, if a job waits."""
        if runs.all():
            return None
        served = self._service_node_s(state, width)
        limits = np.array([*QUEUE_LIMITS_NODE_S, np.inf])
        limit = limits[np.searchsorted(QUEUE_LIMITS_NODE_S, served * (1 + 1e-9), side="right")]
        owed = np.zeros(state.n_jobs) if state.owed is None else state.owed
        left_s = (limit - served) / width + owed / rates_at(state, width)
        soonest_s = float(left_s[runs].min(initial=np.inf))
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

    def rank(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return jobs within the share of their size, the longest without a turn first, then the others likewise."""
        turn = np.array([self._last_turn.get(job, -1) for job in state.job.tolist()])
        if self._is_mid_slot(state):
            turn = np.where(state.current > 0, -2, turn)  # no job is stopped before its slot ends
        order = np.lexsort((state.job, turn))
        share = min(1.0, state.n_idle / max(int(width.sum()), 1))
        within = np.zeros(state.n_jobs, np.bool_)
        for size in np.unique(width).tolist():
            most = int(share * int(np.count_nonzero(width == size)))
            within[[row for row in order.tolist() if width[row] == size][:most]] = True
        return order[np.argsort(~within[order], kind="stable")]

    def _is_mid_slot(self, state: PolicyState) -> bool:
        return state.time_us < self._turn_ends_us

    def note_runs(self, state: PolicyState, runs: NDArray[np.bool_]) -> None:
        """Count a turn for those that run."""
        if not self._is_mid_slot(state):
            self._turn += 1
            self._turn_ends_us = state.time_us + round(self.options.slot_s * _US_PER_S)
        self._last_turn.update(dict.fromkeys(state.job[runs].tolist(), self._turn))

    def until_us(self, state: PolicyState, width: NDArray[np.int64], runs: NDArray[np.bool_]) -> int | None:
        """Return the end of the turn, if a job waits."""
        return None if runs.all() else max(self._turn_ends_us, state.time_us + 1)


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

    def rank(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return jobs by share over the turns that they had, the largest first."""
        rate = rates_at(state, width)
        elapsed_s = (state.time_us - state.submit_us) / _US_PER_S
        left_s = np.minimum((state.work - state.progress) / rate, 1e12)
        equal = np.minimum(1.0, state.n_idle / state.n_jobs / width)
        alone_s = (state.progress / rate + left_s) / equal
        share = finish_time_shares(elapsed_s, left_s, alone_s, width, state.n_idle)
        received = np.array([self._received.get(job, 0.0) for job in state.job.tolist()])
        return np.lexsort((state.job, -share / (1.0 + received)))

    def note_runs(self, state: PolicyState, runs: NDArray[np.bool_]) -> None:
        """Count a turn for those that run."""
        for job in state.job[runs].tolist():
            self._received[job] = self._received.get(job, 0.0) + 1.0


def finish_time_shares(
    elapsed_s: NDArray[np.float64],
    left_s: NDArray[np.float64],
    alone_s: NDArray[np.float64],
    width: NDArray[np.int64],
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

    def needed_shares(ratio: float) -> NDArray[np.float64]:
        room_s = np.maximum(ratio * alone_s - elapsed_s, 1e-9)
        share: NDArray[np.float64] = np.minimum(left_s / room_s, 1.0)
        return share

    low = float(((elapsed_s + left_s) / alone_s).max())
    high = low
    while float((needed_shares(high) * width).sum()) > n_nodes and high < 1e12:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float((needed_shares(middle) * width).sum()) > n_nodes else (low, middle)
    share = needed_shares(high)
    used = float((share * width).sum())
    return np.minimum(share * max(n_nodes / used, 1.0), 1.0) if used > 0 else share


GREEDY = "greedy"

_US_PER_S = 1e6


class Chronus(FixedPolicy):
    """Leases of a fixed length, planned by a linear model (Chronus, SoCC'21).

    A job with a deadline is accepted on arrival if the leases that it needs fit before its deadline beside those of
    the jobs accepted before; no job is declined. At the start of each lease a model chooses the accepted jobs that hold
    it: on as many nodes as possible if all jobs are accepted, otherwise on as few, which leaves more to the others.
    """

    capabilities = replace(FixedPolicy.capabilities, linear_programs=True)
    options: ChronusOptions
    not_saved = ("_solver",)

    def __init__(self, options: ChronusOptions | None = None) -> None:
        super().__init__(options or ChronusOptions())
        backend = self.options.backend
        self._solver = None if self.options.published or backend == GREEDY else LeaseMilp(backend)
        self._n_solves = self._n_fallbacks = 0
        self.forget()

    @classmethod
    @keywords_from(ChronusOptions)
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, **chosen: Any) -> Chronus:
        """Return the policy with these ``ChronusOptions``; the forward-looking time and the solver have no effect."""
        return cls(ChronusOptions(**chosen))

    def forget(self) -> None:
        """Forget the jobs of a replay."""
        self._is_accepted: dict[int, bool] = {}
        self._holders: set[int] = set()
        self._lease_ends_us = LONG_AGO_US

    def rank(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return holders of the lease, then jobs that were not accepted, the most urgent first, then accepted ones."""
        requests = self._requests(state, width)
        for row, job in enumerate(state.job.tolist()):
            if job not in self._is_accepted:
                self._is_accepted[job] = self._fits(state, requests, row)
        accepted = np.array([self._is_accepted[job] for job in state.job.tolist()])
        if state.time_us >= self._lease_ends_us:
            self._lease_ends_us = state.time_us + round(self.options.lease_s * _US_PER_S)
            self._holders = self._plan_lease(state, requests, accepted)
        held = np.array([job in self._holders for job in state.job.tolist()])
        slack_s = self._slack_s(state, width)
        return np.lexsort((state.job, slack_s, accepted, ~held))

    def until_us(self, state: PolicyState, width: NDArray[np.int64], runs: NDArray[np.bool_]) -> int | None:
        """Return the end of the lease."""
        return self._lease_ends_us

    def _left_s(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the remaining seconds of jobs on ``width`` nodes, with a margin, (J,)."""
        owed = 0.0 if state.owed is None else state.owed
        return np.minimum(MARGIN * (state.work - state.progress + owed) / rates_at(state, width), 1e12)

    def _slack_s(self, state: PolicyState, width: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the seconds that jobs may wait, (J,); inf without a deadline."""
        to_deadline_s = (state.deadline_us - float(state.time_us)) / _US_PER_S
        return np.where(state.deadline_us == NO_DEADLINE_US, np.inf, to_deadline_s - self._left_s(state, width))

    def _requests(self, state: PolicyState, width: NDArray[np.int64]) -> list[LeaseRequest]:
        """Return the leases that jobs ask for, counted from now; none are available without a deadline."""
        lease_us = self.options.lease_s * _US_PER_S
        needed = np.ceil(self._left_s(state, width) / self.options.lease_s).clip(1.0)
        before = (state.deadline_us - float(state.time_us)) // lease_us
        before = np.where(state.deadline_us == NO_DEADLINE_US, 0.0, before).clip(0.0, 1e6)
        return [LeaseRequest(*map(int, each)) for each in zip(width, needed, before, strict=True)]

    def _fits(self, state: PolicyState, requests: list[LeaseRequest], row: int) -> bool:
        """Return whether the leases of the job in ``row`` fit beside those of jobs accepted before."""
        if requests[row].needed > requests[row].available:
            return False
        others = [k for k, job in enumerate(state.job.tolist()) if self._is_accepted.get(job, False)]
        nothing = np.zeros(0, np.int64)
        before = pack([requests[k] for k in others], nothing, state.n_idle)
        kept = [k for k, plan in zip(others, before, strict=True) if plan is not None]
        return fits([requests[k] for k in [*kept, row]], nothing, state.n_idle)

    def _plan_lease(self, state: PolicyState, requests: list[LeaseRequest], accepted: NDArray[np.bool_]) -> set[int]:
        """Return the numbers of the jobs that hold the lease which begins now."""
        possible = np.array([each.needed <= each.available and each.gpus <= state.n_idle for each in requests])
        rows = np.flatnonzero(accepted & possible).tolist()
        asked = [requests[row] for row in rows]
        plans: Sequence[Plan | None] | None = None
        if self._solver is not None and asked:
            self._n_solves += 1
            plans = self._solver.plans(asked, state.n_idle, fill_first=bool(accepted.all()))
            self._n_fallbacks += plans is None
        if plans is None:
            plans = pack(asked, np.zeros(0, np.int64), state.n_idle)
        holders = [row for row, plan in zip(rows, plans, strict=True) if plan is None or plan[0]]
        late = np.flatnonzero(accepted & ~possible).tolist()
        return set(state.job[[*holders, *late]].tolist())

    def summary(self) -> dict[str, object] | None:
        """Return the number of plans by a solver, and of those replaced by the greedy rule."""
        return {**(super().summary() or {}), "n_solves": self._n_solves, "n_fallbacks": self._n_fallbacks}

    def close(self) -> None:
        """End the worker process of the back end, if any."""
        super().close()
        if self._solver is not None:
            self._solver.close()
