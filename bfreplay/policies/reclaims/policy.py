"""``ReclaimAwarePolicy``: BFTrainer's decision where reclaims cost work, with the frequency of reclaims learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay.errors import InputError
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import Quality, Solver
from bfreplay.policies.bftrainer import BFTrainerPolicy
from bfreplay.policies.names import OWN
from bfreplay.policies.objectives.objective import Objective
from bfreplay.policies.objectives.own import OwnObjective
from bfreplay.policies.objectives.separable import SeparableObjective
from bfreplay.policies.policy import ANY_TRIGGER, Decision, Placement, PolicyCapabilities, Round, Trigger
from bfreplay.policies.reclaims.memory import ReclaimMemory
from bfreplay.policies.reclaims.pool import Pool, costs_of
from bfreplay.policies.state import NEVER_US, PolicyState


class ReclaimAwarePolicy(BFTrainerPolicy):
    """BFTrainer's decision, with counts valued by what a job makes between reclaims, and nodes chosen for it.

    It remembers which nodes were reclaimed together (``ReclaimMemory``); nothing of the future. Jobs that lost a node,
    or have none, restart anyway: their nodes and the free ones are one pool. Another job stays on its nodes, with more
    or not, or moves: it restarts on the best nodes of the pool. Counts are those that maximise the objective over the
    forward-looking time, times the share of it that is kept on the best nodes of that number; then each job, most
    needed nodes first, takes the runs of neighbours that add most, and leaves nodes that add nothing.

    Parameters
    ----------
    t_fwd_s, solver, objective
        As of ``BFTrainerPolicy``; the time in seconds, and the objective one that values each job by itself.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    name = "reclaim-aware"
    wakes_on = ANY_TRIGGER | Trigger.ROUND
    capabilities = PolicyCapabilities(chooses_nodes=True, warm_up="reclaim-aware")

    def __init__(
        self,
        t_fwd_s: float = defaults.T_FWD_S,
        solver: Solver | str | None = None,
        objective: Objective | str = OWN,
    ) -> None:
        super().__init__(t_fwd_s, solver, objective)
        if self.t_fwd_s is None:
            raise InputError(
                "this policy needs a forward-looking time in seconds",
                column="t_fwd",
                value=t_fwd_s,
                expected="seconds > 0",
            )
        if not isinstance(self.objective, OwnObjective | SeparableObjective):
            raise InputError(
                "this policy values each job by itself",
                column="objective",
                value=self.objective.spec,
                expected="own, a term such as throughput, or a sum of terms",
            )
        self.memory = ReclaimMemory()

    @classmethod
    def from_options(  # type: ignore[override]  # fewer options
        cls, *, t_fwd_s: float, solver: Solver, objective: Objective | str | None = None
    ) -> ReclaimAwarePolicy:
        """Return the policy; all options matter."""
        return cls(t_fwd_s, solver, OWN if objective is None else objective)

    def check_types(self, type_names: Sequence[str]) -> None:
        """Raise ``InputError``: it knows nodes of one type."""
        raise InputError(
            f"the policy {self.name!r} chooses among nodes of one type",
            value=", ".join(type_names),
            expected="one node type",
            fix="choose one with --node-type",
        )

    def add_nodes(self, n_nodes: int) -> None:
        """Make room in the memory."""
        self.memory.add_nodes(n_nodes)

    def decide(self, state: PolicyState) -> Decision:
        """Return counts and nodes."""
        return self.reasons(state).decision

    def reasons(self, state: PolicyState) -> Reasons:
        """Decide, and return what the decision came from."""
        assert state.nodes is not None
        self.memory.note(state.nodes.is_idle, state.time_us)
        pool = Pool(state, self.memory.stretches())
        problem = self._problem(state, pool)
        solution = self.solver.solve(problem)
        counts = state.current if solution.counts is None else solution.counts
        nodes = pool.choose(counts)
        node_counts = np.array([chosen.size for chosen in nodes])
        if solution.counts is not None and (n_less := int((counts - node_counts).sum())):
            objective = float(problem.value[np.arange(state.n_jobs), node_counts].sum())
            message = f"nodes left that are reclaimed too often: {n_less}"
            solution = replace(
                solution, counts=node_counts, objective=objective, quality=Quality.FEASIBLE, message=message
            )
        placement = Placement(nodes, restart_s=pool.restarts_s(nodes))
        wake = Round(self._next_checkpoint_us(state, pool, node_counts))
        decision = Decision(node_counts, solution, self.t_fwd_s, placement, wake)
        return Reasons(decision, problem, counts, pool)

    def _next_checkpoint_us(self, state: PolicyState, pool: Pool, counts: NDArray[np.int64]) -> int:
        """Return when the next job has nothing at risk, unless that comes more often than every ``t_fwd_s``."""
        every_s = costs_of(state).save_every_s
        waits = (counts > 0) & (every_s >= float(self.t_fwd_s or 0.0))
        if state.next_save_us is None or counts.sum() == state.n_idle or not waits.any():
            return NEVER_US
        goes_on = pool.stays & (counts == state.current)
        next_us = np.where(goes_on, state.next_save_us, state.time_us + np.rint(every_s * 1e6).astype(np.int64))
        return int(next_us[waits].min())

    def _problem(self, state: PolicyState, pool: Pool) -> AllocationProblem:
        t_fwd_s = float(self.t_fwd_s or 0.0)
        given_up = pool.rates = state.objective
        value_rate = given_up
        if isinstance(self.objective, SeparableObjective):
            rates = self.objective.rates(state, t_fwd_s)
            value_rate, given_up = rates.value, np.maximum(rates.given_up, 0.0)
            pool.rates = np.maximum(rates.value, 0.0)
        gain, loss = pool.worths(value_rate, given_up, t_fwd_s)
        return AllocationProblem.by_count(state.current, state.min_nodes, state.max_nodes, gain, loss, state.n_idle)

    def close(self) -> None:
        """Close the solver, and forget what was learned."""
        super().close()
        self.memory = ReclaimMemory()


@dataclass(frozen=True, slots=True, eq=False)
class Reasons:
    """A decision, the problem and the counts (J,) that solve it best, and the nodes that it chose from."""

    decision: Decision
    problem: AllocationProblem
    best: NDArray[np.int64]
    pool: Pool

    @property
    def restarts_s(self) -> NDArray[np.float64] | None:
        """Seconds that jobs restart for which keep their count and move, (J,)."""
        return None if self.decision.placement is None else self.decision.placement.restart_s

    def reclaims_per_hour(self, job_row: int) -> float:
        """Return the reclaims that it expected of the nodes of one job."""
        return 3600.0 * self.pool.reclaims_of(job_row, int(self.decision.counts[job_row]))
