"""Reasons for the nodes of a job: one decision, its changes, and the next best whole decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError
from bfreplay.milp.charge_rule import DOWN, START, UP, charged_rate
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.exact.solver import LARGEST, PROOF_TOLERANCE, optimal_counts
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import agrees, magnitude, objective_of
from bfreplay.policies.look_ahead import ForesightPolicy, LookAheadPolicy
from bfreplay.policies.objectives.objective import horizon_s
from bfreplay.policies.state import NO_DEADLINE_US, PolicyState
from bfreplay.replay.engine import ProgressCallback
from bfreplay.replay.progress import Semantics
from bfreplay.runs.explain.decision_answer import (
    Change,
    ChangePrice,
    DecisionAnswer,
    EmptyPool,
    ReclaimPrice,
    WholeDecision,
)
from bfreplay.runs.explain.job_story import ChangeCost, Life, cost_of_change, is_active_after
from bfreplay.runs.explain.saved_tables import nodes_over_time, refuse_unknown_job
from bfreplay.runs.run_config import PolicyDescription
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_decisions import RecordedDecision, decision_at, recorded_decisions, refuse_placed_by_policy
from bfreplay.runs.saved_inputs import GivenInputs
from bfreplay.wording import count
from bfreplay.workload import ElasticJob, Restart
from bfreplay.workload.change_costs import seconds_at


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One feasible answer to a decision.

    Parameters
    ----------
    counts : (J,) int64
        Nodes per job.
    objective
        Objective of all jobs together, recomputed from the problem.
    """

    counts: NDArray[np.int64]
    objective: float


def best_of_all(problem: AllocationProblem) -> Alternative | None:
    """Return the proven optimum; ``None`` when bounds and change limit leave no answer.

    Raises
    ------
    BfreplayError
        Values are too large to calculate with.
    """
    return _best(problem.value, problem.capacity)


def best_with(problem: AllocationProblem, job: int, count: int) -> Alternative | None:
    """Return the best answer in which ``job`` has ``count`` nodes; ``None`` where none is feasible.

    Raises as ``best_of_all``.
    """
    if not 0 <= count < problem.value.shape[1]:
        return None
    job_values = problem.value.copy()
    job_values[job, np.arange(job_values.shape[1]) != count] = -np.inf
    return _best(job_values, problem.capacity)


def best_without(problem: AllocationProblem, job: int, count: int) -> Alternative | None:
    """Return the best answer in which ``job`` has any other number of nodes; ``None`` where none is feasible.

    The table of values excludes the count, so the answer is as exact as the optimum. Raises as
    ``best_of_all``.
    """
    job_values = problem.value.copy()
    job_values[job, count] = -np.inf
    return _best(job_values, problem.capacity)


def _best(value: NDArray[np.float64], capacity: int) -> Alternative | None:
    if value.max(initial=0.0) < LARGEST:
        counts, objective, upper_bound, proof_stage = optimal_counts(value, capacity, PROOF_TOLERANCE)
        if proof_stage == -1:
            return None
        if proof_stage >= 0 and math.isfinite(objective) and math.isfinite(upper_bound):
            return Alternative(counts, float(objective))
    raise BfreplayError("the objective is too large, or not a number: check rates and weights")


def explain_decision(
    run: RunResult,
    job: str,
    time_us: int,
    *,
    objective: str | None = None,
    t_fwd_s: float | None = None,
    progress: ProgressCallback | None = None,
    **inputs: Unpack[GivenInputs],
) -> DecisionAnswer | EmptyPool:
    """Explain the nodes that ``job`` has at ``time_us``, by the decision in force then.

    Arguments and errors as ``recorded_decisions``; and

    Raises
    ------
    InputError
        The run has no such job; the job was not active then (the message says when it was); or the policy chose the
        nodes itself.
    """
    refuse_unknown_job(run, job)
    refuse_placed_by_policy(run, "remove --at: the story of the job shows its nodes over time")
    index = decision_at(run, time_us)
    life = Life(run, job)
    life.refuse_outside(time_us)
    table = run.columns("decisions", "n_jobs", "n_idle")
    n_jobs, n_idle = (table[name][index].as_py() for name in ("n_jobs", "n_idle"))
    if not n_jobs:
        raise life.not_active(time_us)
    if not n_idle:
        if life.last_pause_before(time_us) is not None and not is_active_after(run, job, index, progress, **inputs):
            raise life.not_active(time_us)
        return _empty_pool(run, job, index)
    (decision,) = recorded_decisions(run, [index], objective=objective, t_fwd_s=t_fwd_s, progress=progress, **inputs)
    if job not in decision.job_names:
        raise life.not_active(time_us)
    return answer(run, decision, decision.job_names.index(job))


def answer(run: RunResult, decision: RecordedDecision, index: int) -> DecisionAnswer:
    """Explain the nodes of the ``index``-th job of a decision."""
    config = run.record.config
    policy = config.policy_description
    problem, chosen_counts, job_names = decision.problem, decision.counts, decision.job_names
    if _has_change_limit(policy):
        problem = problem.within_published_limit()
    nodes_before, nodes_after = int(problem.current[index]), int(chosen_counts[index])
    value_before, value_after = (_value(problem, index, n_nodes) for n_nodes in (nodes_before, nodes_after))
    rescale_loss = _loss(problem, index, nodes_after)
    objective = objective_of(problem, chosen_counts)
    best_value = objective if np.isfinite(objective) else None
    best = best_of_all(problem)
    is_optimal = best is not None and best_value is not None and agrees(best_value, best.objective, magnitude(problem))
    solver_answer = decision.about["answer"]
    has_costs = decision.state.costs is not None
    n_held, n_reclaimed = int(decision.held[index]), int(decision.reclaimed[index])
    job, rates = decision.jobs[index], decision.state.throughput[index]
    is_published = config.semantics == Semantics.PUBLISHED
    change = cost_of_change(job, rates, nodes_before, nodes_after, is_published=is_published)
    reclaim = cost_of_change(job, rates, n_held, n_held - n_reclaimed, notice_s=config.notice_s)
    is_priced = "price_s" in config.policy
    whole = partial(_whole, job_names, index, best_value)

    return DecisionAnswer(
        job=job_names[index],
        decision=decision.index,
        time=iso_utc(decision.time_us),
        trigger=decision.about["trigger"],
        n_idle=problem.capacity,
        n_jobs=problem.n_jobs,
        held=n_held,
        reclaimed=n_reclaimed,
        before=nodes_before,
        after=nodes_after,
        preemption_cost_samples=reclaim.samples,
        rescale_cost_samples=change.samples,
        t_fwd_s=decision.about["t_fwd_s"],
        objective_spec=policy.objective_spec,
        is_believed=policy.learning is not None,
        value_before=value_before,
        value_after=value_after,
        value_gained=value_after - value_before,
        rescale_loss=rescale_loss,
        value_net=value_after - value_before - rescale_loss,
        free_before=problem.capacity - int(problem.current.sum()),
        free_after=problem.capacity - int(chosen_counts.sum()),
        others=tuple(_others(decision, index)),
        counts=dict(zip(job_names, chosen_counts.tolist(), strict=True)),
        chosen_objective=best_value,
        is_optimal=is_optimal,
        optimum=None if is_optimal else whole(best),
        runner_up=whole(best_without(problem, index, nodes_after)),
        as_it_was=None if nodes_before == nodes_after else whole(best_with(problem, index, nodes_before)),
        solver=solver_answer["solver"],
        quality=solver_answer["quality"],
        notes=tuple(_notes(run, decision, index, is_optimal=is_optimal)),
        horizon_s=None if is_priced or not has_costs else horizon_s(decision.state, decision.about["t_fwd_s"]),
        change_price=_change_price(decision, index, change, rescale_loss) if has_costs else None,
        reclaim_price=_reclaim_price(run, decision, index, reclaim) if has_costs and n_reclaimed else None,
        reclaims_per_hour=None if decision.reasons is None else decision.reasons.reclaims_per_hour(index),
    )


def _value(problem: AllocationProblem, index: int, nodes: int) -> float:
    """Return the value of ``nodes`` to a job before the loss of a rescale; 0 below its minimum."""
    return float(problem.gain[index, nodes if nodes >= problem.min_nodes[index] else 0])


def _loss(problem: AllocationProblem, index: int, nodes_after: int) -> float:
    """Return what the job loses more by ``nodes_after`` than by staying, which may cost the rest of a pause."""
    return float(problem.loss[index, nodes_after]) - _loss_by_staying(problem, index)


def _loss_by_staying(problem: AllocationProblem, index: int) -> float:
    """Return what the rest of a pause costs; 0 where a reclaim left it on a count that is forbidden."""
    loss_now = float(problem.loss[index, problem.current[index]])
    return loss_now if math.isfinite(loss_now) else 0.0


def _whole(
    job_names: Sequence[str], index: int, best_value: float | None, alternative: Alternative | None
) -> WholeDecision | None:
    if alternative is None:
        return None
    difference = None if best_value is None else _difference(best_value, alternative.objective, len(job_names))
    difference_percent = math.nan if difference is None or not best_value else 100 * difference / abs(best_value)
    return WholeDecision(
        nodes=int(alternative.counts[index]),
        objective=alternative.objective,
        counts=dict(zip(job_names, alternative.counts.tolist(), strict=True)),
        difference=difference,
        difference_percent=difference_percent if math.isfinite(difference_percent) else None,
    )


def _difference(best_value: float, other_value: float, n_jobs: int) -> float:
    """Return ``best_value - other``, or 0 within the rounding of the exact solver."""
    difference = best_value - other_value
    rounding = PROOF_TOLERANCE * (n_jobs + 2) * max(abs(best_value), abs(other_value))
    return 0.0 if abs(difference) <= rounding else difference


def _others(decision: RecordedDecision, index: int) -> list[Change]:
    columns = (decision.held, decision.reclaimed, decision.problem.current, decision.counts)
    rows = np.column_stack(columns).tolist()
    changes = [Change(job_name, *node_counts) for job_name, node_counts in zip(decision.job_names, rows, strict=True)]
    del changes[index]
    return [change for change in changes if not change.held == change.before == change.after]


_CHANGES = {START: "start", UP: "scale-up", DOWN: "scale-down"}


def _reclaim_price(run: RunResult, decision: RecordedDecision, index: int, cost: ChangeCost) -> ReclaimPrice:
    job, nodes_left = decision.jobs[index], int(decision.held[index] - decision.reclaimed[index])
    assert decision.state.costs is not None
    unsaved_samples = float(decision.state.costs.unsaved_samples[index])
    return ReclaimPrice(
        seconds=cost.seconds,
        is_pause=job.restart == Restart.PAUSE,
        notice_s=min(run.record.config.notice_s, seconds_at(job.scale_down_cost_s, nodes_left)),
        lost_samples=Life(run, job.name).lost_to_reclaims(decision.index, unsaved_samples),
    )


def _change_price(decision: RecordedDecision, index: int, cost: ChangeCost, rescale_loss: float) -> ChangePrice:
    """Return the parts of the price of a change, of a job with costs by count, pauses or work at risk."""
    state, job, before = decision.state, decision.jobs[index], int(decision.problem.current[index])
    assert state.costs is not None
    has_changed = bool(decision.counts[index] != before)
    at_risk = float(state.costs.unsaved_samples[index])
    pause_left_s = float(state.costs.pause_left_s[index])
    pause_loss = _loss_by_staying(decision.problem, index)
    restart_loss = float(decision.restart_loss[index]) if has_changed else 0.0
    return ChangePrice(
        change=_CHANGES[cost.kind] if has_changed else "none",
        seconds=cost.seconds if has_changed else 0.0,
        is_pause=job.restart == Restart.PAUSE,
        samples=cost.samples,
        pause_left_s=pause_left_s,
        pause_left_samples=pause_left_s * charged_rate(float(state.throughput[index, before]), before, job.min_nodes),
        at_risk_samples=at_risk,
        at_risk_since=iso_utc(_last_save_us(state, index, job)) if at_risk else None,
        restart_loss=restart_loss,
        at_risk_loss=rescale_loss - restart_loss + pause_loss if has_changed else 0.0,
        pause_left_loss=pause_loss,
    )


def _last_save_us(state: PolicyState, index: int, job: ElasticJob) -> int:
    """Return the last checkpoint of a job that runs, or its last start."""
    assert state.next_save_us is not None
    assert state.started_us is not None
    if state.next_save_us[index] == NO_DEADLINE_US:
        return int(state.started_us[index])
    return int(state.next_save_us[index]) - round(1e6 * job.work_saved_every_s)


def _has_change_limit(policy: PolicyDescription) -> bool:
    """Return whether the decisions of the run obey the published model's limit on changes."""
    solver_name = "" if policy.solver is None else policy.solver.name
    return solver_name == ExactSolver(published_limit=True).name or solver_name.startswith("published on ")


_LOOKING_AHEAD = (ForesightPolicy.name, LookAheadPolicy.name)


def _notes(run: RunResult, decision: RecordedDecision, index: int, *, is_optimal: bool) -> Iterator[str]:
    config, solver_answer = run.record.config, decision.about["answer"]
    policy, measure = config.policy_description, f"by the jobs' own curves over {decision.about['t_fwd_s']:g} s"
    if policy.t_fwd_s is None and policy.forward_time is None:
        why = decision.whys[index] if decision.whys else None
        if why is not None:
            yield f"the rule: {why}"
        yield f"the policy {policy.name!r} does not maximise an objective: the decision is measured {measure}"
    elif policy.name in _LOOKING_AHEAD:
        yield f"the policy {policy.name!r} values counts over future pools: the decision is measured here {measure}"
    elif config.semantics == Semantics.PUBLISHED and decision.index == 0:
        yield "the first map of the published program is drawn at random, not decided"
    elif solver_answer["process_status"] == "not_needed":
        yield "the policy does not decide at this event: every job kept its nodes"
    elif decision.reasons is None and not is_optimal and solver_answer["quality"] != "proven":
        yield f"the solver {solver_answer['solver']!r} did not prove its answer optimal, and it is not"
    if decision.reasons is not None:
        reclaims = f"{decision.reasons.reclaims_per_hour(index):.3g} reclaims an hour of the job's nodes"
        yield f"the policy {policy.name!r} values counts by what reclaims leave: it had learned to expect {reclaims}"
        best = int(decision.reasons.best[index])
        if best != decision.counts[index]:
            yield f"the solver gave it {count(best, 'node')}, some of which added nothing where they were"
        restarts_s = decision.reasons.restarts_s
        if restarts_s is not None and restarts_s[index] > 0:
            yield f"it moves to other nodes, for a restart of {restarts_s[index]:g} s"
    if run.record.summary.ignores_costs:
        price_s = config.policy.get("price_s")
        own = "" if price_s is None else f", but was told {price_s:g} s for every change"
        yield f"the policy does not know what changes of these jobs cost{own}"
    if solver_answer["fell_back_from"]:
        yield f"{solver_answer['fell_back_from']!r} gave no usable answer: {solver_answer['message']}"
    if _has_change_limit(policy):
        most_change = decision.problem.within_published_limit().change_limit
        yield f"under the published model's limit no job may gain or lose more than {most_change} nodes at once"
    current, fewest_nodes = int(decision.problem.current[index]), int(decision.problem.min_nodes[index])
    if 0 < current < fewest_nodes:
        yield f"it cannot run on the {count(current, 'node')} left to it (min_nodes {fewest_nodes})"


def _empty_pool(run: RunResult, job: str, index: int) -> EmptyPool:
    decision_table = run.columns("decisions", "time", "n_reclaimed")
    time_us = decision_table["time"].cast("int64")[index].as_py()
    nodes_of_job = nodes_over_time(run, job)
    step_before = int(np.searchsorted(nodes_of_job.edge_us, time_us, side="left")) - 1
    return EmptyPool(
        job=job,
        decision=index,
        time=iso_utc(time_us),
        n_reclaimed=decision_table["n_reclaimed"][index].as_py(),
        held=int(nodes_of_job.counts[step_before]) if step_before >= 0 else 0,
    )
