"""Chronus in the replay: leases, on a clock of its own."""

from __future__ import annotations

from functools import partial

from bfreplay.errors import InputError
from bfreplay.milp.solver import Solver
from bfreplay.policies.deadlines.admission import SLOT_S
from bfreplay.policies.policy import Decision
from bfreplay.policies.state import PolicyState
from bfreplay.systems.elasticflow.deadline_policies import ElasticFlowPolicy
from bfreplay.systems.elasticflow.options import ChronusOptions
from bfreplay.systems.elasticflow.played_back import Program
from bfreplay.systems.elasticflow.published.chronus import chronus
from bfreplay.systems.elasticflow.published.lease_model import LeaseMilp

GREEDY = "greedy"


class Chronus(ElasticFlowPolicy):
    """Jobs run in leases of four minutes; accepted jobs by a plan, the others on what is left (Chronus, SoCC'21).

    Its scheduler runs beforehand, on servers that are never reclaimed, and the replay repeats its schedule. Without
    ``published`` a linear model plans the leases, and jobs make no progress while they wait.
    """

    plays_back = True
    options: ChronusOptions

    def __init__(self, options: ChronusOptions | None = None) -> None:
        super().__init__(options or ChronusOptions())

    @classmethod
    def from_options(
        cls,
        *,
        t_fwd_s: float | str,
        solver: Solver,
        slot_s: float = SLOT_S,
        published: bool = False,
        gpus_each: int = 8,
        backend: str = "highs",
    ) -> Chronus:
        """Neither the forward-looking time nor the solver matters; see ``ChronusOptions`` for the others."""
        return cls(ChronusOptions(slot_s, published, gpus_each, backend))

    def published_program(self) -> Program:
        """The scheduler, with its back end."""
        if self.options.published or self.options.backend == GREEDY:
            return partial(chronus, credits_waiting=self.options.published)
        return partial(chronus, credits_waiting=False, solver=LeaseMilp(self.options.backend))

    def decide_now(self, state: PolicyState) -> Decision:
        """Never asked: the schedule is known."""
        raise InputError("Chronus was asked for a decision of its own", expected="its schedule")
