"""Whether a replay could carry out a policy's decision."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies import Decision, PolicyState

_NOBODY = -1


def why_not_allowed(decision: Decision, state: PolicyState) -> str:
    """What is wrong with a decision on a state that names its nodes; empty when nothing is."""
    counts = decision.counts
    if not isinstance(counts, np.ndarray) or not np.issubdtype(counts.dtype, np.integer):
        return f"counts are no array of whole numbers: {counts!r}"
    if counts.shape != (state.n_jobs,):
        return f"counts of shape {counts.shape} for {state.n_jobs} jobs"
    partner = np.full(state.n_jobs, _NOBODY) if decision.partner is None else decision.partner
    wrong = _why_no_pairs(partner, state) or _why_not_these_counts(counts, partner, state)
    return wrong or _why_not_these_nodes(decision, partner, state) or _why_not_then(decision, state)


def _why_no_pairs(partner: NDArray[np.int64], state: PolicyState) -> str:
    if partner.shape != (state.n_jobs,):
        return f"partners of shape {partner.shape} for {state.n_jobs} jobs"
    for j in np.flatnonzero(partner >= 0).tolist():
        other = int(partner[j])
        if other >= state.n_jobs or other == j or partner[other] != j:
            return f"row {other} is the partner of row {j}, but not the other way round"
        if state.colocation is None:
            return f"rows {j} and {other} share nodes, and the jobs have no table of what they make together"
    return ""


def _why_not_these_counts(counts: NDArray[np.int64], partner: NDArray[np.int64], state: PolicyState) -> str:
    is_second = (partner >= 0) & (partner < np.arange(counts.size))
    used = int(counts[~is_second].sum())
    if used > state.n_idle:
        return f"{used} nodes are given of {state.n_idle} idle ones"
    is_within = (counts >= state.min_nodes) & (counts <= state.max_nodes)
    outside = ~(is_within | (counts == 0) | (counts == state.current))
    if outside.any():
        j = int(np.flatnonzero(outside)[0])
        return (
            f"row {j} gets {counts[j]} nodes: neither 0 nor {state.min_nodes[j]} to {state.max_nodes[j]}, nor the "
            f"{state.current[j]} that it holds"
        )
    return ""


def _why_not_these_nodes(decision: Decision, partner: NDArray[np.int64], state: PolicyState) -> str:
    nodes = state.nodes
    assert nodes is not None
    if decision.assigned is None:
        needed = len(nodes.type_names) > 1 or (partner >= 0).any()
        return "counts without nodes, where nodes are of several types or shared" if needed else ""
    chosen = [np.asarray(each).tolist() for each in decision.assigned]
    if [len(each) for each in chosen] != decision.counts.tolist():
        return f"{[len(each) for each in chosen]} nodes for the counts {decision.counts.tolist()}"
    is_idle, node_type = nodes.is_idle, nodes.node_type
    for j, each in enumerate(chosen):
        if len(set(each)) < len(each) or not all(isinstance(k, int) and 0 <= k < is_idle.size for k in each):
            return f"row {j} gets nodes that there are not, or one of them twice: {each}"
        if not is_idle[each].all():
            return f"row {j} gets nodes that are not idle: {each}"
        if len({int(node_type[k]) for k in each}) > 1:
            return f"row {j} gets nodes of several types: {each}"
    for one, other in combinations(range(state.n_jobs), 2):
        if partner[one] == other and chosen[one] != chosen[other]:
            return f"rows {one} and {other} share nodes, but have others: {chosen[one]} and {chosen[other]}"
        if partner[one] != other and set(chosen[one]) & set(chosen[other]):
            return f"rows {one} and {other} have the same nodes, but are no partners: {chosen[one]} and {chosen[other]}"
    return ""


def _why_not_then(decision: Decision, state: PolicyState) -> str:
    """What is wrong with limits, losses and times."""
    shape = (state.n_jobs,)
    for name, numbers in (("samples", decision.samples), ("restart_s", decision.restart_s)):
        if numbers is not None and (numbers.shape != shape or not (numbers >= 0).all()):
            return f"{name} are not one number >= 0 for each job"
    if decision.restart_s is not None and not np.isfinite(decision.restart_s).all():
        return "restart_s are not finite"
    times = decision.not_before_us
    if times is not None and (times.shape != shape or not np.issubdtype(times.dtype, np.integer)):
        return "not_before_us are not one whole number for each job"
    failed = decision.failed
    if failed is not None and (failed.shape != shape or failed.dtype != np.bool_ or decision.counts[failed].any()):
        return "failed is not one truth for each job, or is true of one that gets nodes"
    if decision.until_us is not None and decision.until_us <= state.time_us:
        return "until_us is not later than the decision"
    return ""
