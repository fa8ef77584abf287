"""Max-min fairness: the least served job is served best, over all jobs together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.milp.charge_rule import charged_rates, rescale_costs
from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies.objectives.built_in import best_rate, log_service, service
from bfreplay.policies.objectives.objective import problem_from
from bfreplay.policies.state import PolicyState


class MaxMin:
    """Maximise the least ``s_j / weight_j``; of the allocations that do, take the proportionally fair one.

    ``s_j(n) = (progress_j + t_fwd P_j(n) - rescale loss_j(n)) / (best rate_j x (now + t_fwd - admitted_j))``, no unit,
    is what job j will have got since its admission, as a share of what dedicated nodes at its best count would have
    given it. Jobs that no count would lift above what they get with none (their ``min_nodes`` exceed the idle nodes, or
    they have no rate) do not hold the others down. What a preemption still costs is not known to a policy and left out.

    The decision is posed so that any solver finds it: counts below the level carry a penalty larger than everything
    that an allocation can win by them, and above it the sum of ``weight_j x log(s_j + 0.001)`` decides. That sum also
    keeps jobs from starving where there are more jobs than nodes and the least is 0 whatever one does. Use it when
    nobody is to wait long, at the price of throughput.

    Parameters
    ----------
    slack
        Part of what the decision can add to the least that may be given up, for what the other jobs gain by it: fewer
        rescales, for one. 1 leaves proportional fairness alone. (A part of the least itself would be no bound: after
        some hours one decision adds less than a hundredth to it.)

    Raises
    ------
    InputError
        ``slack`` is not within 0 to 1.
    """

    def __init__(self, slack: float = 0.0) -> None:
        self.slack = checks.number("slack", slack, least=0.0, most=1.0)

    def problem(self, state: PolicyState, t_fwd_s: float) -> AllocationProblem:
        """The decision as gains. They hold what rescaling costs already, so nothing is lost beside them."""
        share = service_after(state, t_fwd_s)
        weighted_share = share / state.weight[:, None]
        count = np.arange(share.shape[1])
        most_nodes = np.minimum(state.max_nodes, state.n_idle)[:, None]
        is_allowed = (count == 0) | ((count >= state.min_nodes[:, None]) & (count <= most_nodes))
        best_within = np.maximum.accumulate(np.where(is_allowed, weighted_share, -np.inf), axis=1)
        can_gain = best_within[:, -1] > weighted_share[:, 0]
        in_reach = np.where((count <= most_nodes) & can_gain[:, None], best_within, np.inf)
        common_level = best_level(in_reach, best_within[can_gain, -1], state.n_idle)
        if self.slack and can_gain.any():
            common_level -= self.slack * (common_level - float(weighted_share[can_gain, 0].min()))
        job_values = state.weight[:, None] * log_service(share)
        job_values -= job_values[:, :1]
        is_enough = (weighted_share >= common_level) | ~can_gain[:, None]
        least_counts = np.where(can_gain, np.count_nonzero(in_reach < common_level, axis=1), 0)
        gain = np.where(
            is_enough, job_values, job_values - _penalty(np.where(is_allowed, job_values, -np.inf), least_counts)
        )
        return problem_from(state, gain, np.zeros(state.n_jobs))


def service_after(state: PolicyState, t_fwd_s: float) -> NDArray[np.float64]:
    """``(J, K + 1)``: ``service`` at the end of the forward-looking time, less what the change itself costs.

    A job that runs on its ``current`` nodes loses its rate on them for the seconds that rescaling takes, as in the
    replay; one that holds fewer than ``min_nodes`` loses nothing.
    """
    count = np.arange(state.throughput.shape[1])
    rate_now = state.throughput[np.arange(state.n_jobs), state.current]
    rate_now = charged_rates(rate_now, state.current, state.min_nodes)
    up_s, down_s = state.scale_up_cost_s[:, None], state.scale_down_cost_s[:, None]
    rescale_cost = rescale_costs(rate_now[:, None], state.current[:, None], count, up_s, down_s)
    return service(state, t_fwd_s * state.throughput - rescale_cost, best_rate(state, count), t_fwd_s)


def best_level(in_reach: NDArray[np.float64], highest: NDArray[np.float64], capacity: int) -> float:
    """Return the largest level that all jobs can reach together, exactly: it is one of the values in the table.

    ``in_reach[j, n] (J, K + 1)`` is the most that job j can get with at most n nodes, ``inf`` where it may not have n,
    and ``highest`` the most that each can get at all. Rows increase, so the least count that brings job j to a level is
    the number of values in its row below the level, and all of them together fit exactly when at most ``capacity``
    values of the whole table are below it. So the level is the value with ``capacity`` others before it, or what the
    job with the lowest top can get. ``-inf`` without a job.
    """
    if highest.size == 0:
        return -np.inf
    highest_level = float(highest.min())
    if in_reach.size <= capacity:
        return highest_level
    return min(highest_level, float(np.partition(in_reach, capacity, axis=None)[capacity]))


def _penalty(job_values: NDArray[np.float64], least_counts: NDArray[np.int64]) -> float:
    """More than any allocation is worth above the one of ``least_counts (J,)`` counts, which reaches the level.

    ``job_values (J, K + 1)`` is ``-inf`` where a count is not allowed.
    """
    reaching = float(job_values[np.arange(least_counts.size), least_counts].sum())
    margin = float(np.abs(job_values, where=job_values > -np.inf, out=np.zeros_like(job_values)).max())
    return float(job_values.max(axis=1).sum()) - reaching + margin
