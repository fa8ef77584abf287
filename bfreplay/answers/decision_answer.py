"""What is told of one decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """Nodes of another job that changed at the same instant."""

    job: str
    held: int  # before anything happened
    reclaimed: int  # of these, taken back by the batch scheduler
    before: int  # when it was decided
    after: int


@dataclass(frozen=True, slots=True)
class WholeDecision:
    """A whole decision: its objective, and who has how many nodes in it."""

    nodes: int  # of the job that was asked about
    objective: float  # values of all jobs, less what they lose by rescaling
    counts: Mapping[str, int]
    difference: float | None  # the chosen decision's objective less this; None where the chosen one has none
    difference_percent: float | None  # of the chosen decision's objective; None where that is (nearly) 0


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """Why a job has the nodes it has since a decision.

    *Value* is what nodes are worth to one job, and *objective* what a whole decision is worth, both in the unit of the
    objective: for 'own' with weights of 1, samples over ``t_fwd_s``.

    Parameters
    ----------
    job
        Who was asked about.
    decision, time, trigger
        Row of the ``decisions`` table; when, ISO-8601 UTC; and what set it off.
    n_idle, n_jobs
        Idle nodes, held ones included, and active jobs.
    held, reclaimed, before, after
        Nodes of the job: before this instant; taken back by the batch scheduler at it; left when it was decided; and
        after the decision.
    preempt_cost_samples, rescale_cost_samples
        Charged for what was reclaimed, and for the change from ``before`` to ``after``.
    t_fwd_s, objective_spec
        Forward-looking time, and the objective that posed the decision, as ``--objective`` has it.
    is_believed
        The policy learned the curves: values are what it believed then.
    value_before, value_after, value_gained
        Of ``before`` and ``after`` nodes to the job over ``t_fwd_s`` (below its minimum as much as none); the
        difference. It is ``gain`` of the ``AllocationProblem``.
    rescale_loss, value_net
        What the objective gives up for the change; ``value_gained - rescale_loss``.
    free_before, free_after
        Idle nodes that nobody held when it was decided, and after the decision.
    others
        Other jobs whose nodes changed at this instant.
    counts
        The whole decision: nodes of every active job.
    chosen_objective
        Its objective; ``None`` where it is none that the objective would allow (a job was left with fewer nodes than
        its minimum).
    is_optimal
        No whole decision has a higher objective.
    optimum
        The best whole decision, where that is another.
    runner_up
        The best of those in which the job has another number of nodes; ``None`` where there is none.
    as_it_was
        The best of those in which the job keeps ``before``; ``None`` where it may not, or where it did.
    solver, quality
        Who decided, and what stands behind the answer (``docs/run-tables.md``).
    notes
        What else a reader should know, each a sentence.
    """

    job: str
    decision: int
    time: str
    trigger: str
    n_idle: int
    n_jobs: int
    held: int
    reclaimed: int
    before: int
    after: int
    preempt_cost_samples: float
    rescale_cost_samples: float
    t_fwd_s: float
    objective_spec: str
    is_believed: bool
    value_before: float
    value_after: float
    value_gained: float
    rescale_loss: float
    value_net: float
    free_before: int
    free_after: int
    others: tuple[Change, ...]
    counts: Mapping[str, int]
    chosen_objective: float | None
    is_optimal: bool
    optimum: WholeDecision | None
    runner_up: WholeDecision | None
    as_it_was: WholeDecision | None
    solver: str
    quality: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class EmptyPool:
    """Why a job has no nodes: no node is idle.

    Parameters
    ----------
    job
        Who was asked about.
    decision, time
        Row of the ``decisions`` table, and when, ISO-8601 UTC.
    n_left
        Nodes that the batch scheduler took back then, from whomever.
    held
        Nodes that the job held before.
    """

    job: str
    decision: int
    time: str
    n_left: int
    held: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)
