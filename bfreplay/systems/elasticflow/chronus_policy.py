"""Chronus in the replay: accepted jobs hold leases by a plan, the others run on the remaining nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solver import Solver
from bfreplay.policies.spec import keywords_from
from bfreplay.policies.state import LONG_AGO_US, NO_DEADLINE_US, PolicyState
from bfreplay.systems.elasticflow.fixed_policies import FixedPolicy, rates_at
from bfreplay.systems.elasticflow.options import ChronusOptions
from bfreplay.systems.elasticflow.published.chronus import MARGIN
from bfreplay.systems.elasticflow.published.leases import LeaseMilp, LeaseRequest, Plan, fits, pack

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
