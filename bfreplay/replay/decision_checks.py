"""Checks that a policy's decision can be carried out: a policy of another package may return anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies import Decision, Placement, Policy, PolicyState, Round
from bfreplay.policies.state import NodesSeen
from bfreplay.registry import one_line
from bfreplay.wording import count

_MOST_S = 1e15
"""Of a restart: far longer than any log, and its samples are still numbers."""


def answer_of(policy: Policy, state: PolicyState) -> Decision:
    """Return the policy's decision on ``state``.

    Raises
    ------
    InputError
        It is something else, or a policy from outside bfreplay failed.
    """
    try:
        answer = policy.decide(state)
    except BfreplayError:
        raise
    except Exception as error:  # a stranger's policy may raise anything
        if type(getattr(policy, "inner", policy)).__module__.startswith("bfreplay."):
            raise
        raise InputError(
            f"the policy {policy.name!r} failed in decide() at {iso_utc(state.time_us)} "
            f"({state.n_jobs} jobs, {state.n_idle} idle nodes): {one_line(error)}",
            expected="decide(self, state), which returns a bfreplay.Decision",
        ) from error
    return require_decision(policy, answer)


def require_decision(policy: Policy, answer: object) -> Decision:
    """Return ``answer`` if it is a decision with parts of the right types.

    Raises
    ------
    InputError
        It is something else.
    """
    if not isinstance(answer, Decision):
        hint = "is a return missing?" if answer is None else "wrap the counts: Decision(counts)"
        raise InputError(f"the policy {policy.name!r} gave {type(answer).__name__}, not a Decision: {hint}")
    for part, part_type in ((answer.placement, Placement), (answer.round, Round)):
        if part is not None and not isinstance(part, part_type):
            raise InputError(
                f"the policy {policy.name!r} gave {type(part).__name__}, not a {part_type.__name__}, as a part of its "
                "decision",
                expected="Decision(counts, placement=Placement(assigned), round=Round(until_us))",
            )
    if answer.restart_s is not None and not policy.capabilities.restarts_jobs:
        raise InputError(
            f"the policy {policy.name!r} gave restart_s, and does not declare that it does",
            expected="capabilities = PolicyCapabilities(restarts_jobs=True)",
            fix="declare it, or leave restart_s out",
        )
    return answer


def decision_fault(decision: Decision, state: PolicyState) -> str:
    """Return the fault of a decision on ``state``, which names its nodes; empty if it has none."""
    nodes, placement = state.nodes, decision.placement
    assert nodes is not None
    problem = _counts_fault(np.asarray(decision.counts), placement, state)
    if not problem and placement is None and (len(nodes.type_names) > 1 or _share_nodes(state, nodes)):
        problem = "counts without nodes, where nodes are of several types or shared"
    if not problem and decision.round is not None:
        problem = _round_fault(decision.round, decision.counts, state)
    if problem or (placement is None and decision.restart_s is None):
        return problem
    problem = _restart_fault(decision, state)
    if problem or placement is None:
        return problem
    return _nodes_fault(np.asarray(decision.counts), placement, state, nodes)


def _counts_fault(counts: NDArray[np.int64], placement: Placement | None, state: PolicyState) -> str:
    before = state.current
    if counts.shape != before.shape:
        return f"counts of shape {counts.shape}, expected one for each of {count(before.size, 'job')}, in their order"
    if counts.dtype.kind not in "iu":
        return f"{counts.dtype} counts, expected whole numbers (np.int64)"
    partner = None if placement is None else placement.partner
    if partner is not None and partner.shape != counts.shape:
        return f"partners of shape {partner.shape} for {counts.size} jobs"
    max_nodes, min_nodes = state.max_nodes, state.min_nodes
    # copied, and so of one kind: each other one would compile the loop anew
    n_used, is_outside, is_between = _check_counts(np.array(counts, np.int64), before, min_nodes, max_nodes)
    if partner is not None:  # the nodes of two that share them are counted with the first
        n_used -= int(counts[(partner >= 0) & (partner < np.arange(partner.size))].sum())
    if n_used > state.n_idle:
        return f"counts that sum to {n_used} of {state.n_idle} idle nodes"
    if is_outside:
        return f"counts outside 0 to max_nodes {max_nodes.tolist()}"
    if is_between:
        return f"counts between 0 and min_nodes {min_nodes.tolist()}"
    return ""


@compiled
def _check_counts(
    counts: NDArray[np.int64],
    counts_before: NDArray[np.int64],
    min_nodes: NDArray[np.int64],
    max_nodes: NDArray[np.int64],
) -> tuple[int, bool, bool]:
    """Return (sum, whether one is outside 0 to ``max_nodes``, whether one is between 0 and ``min_nodes``).

    A job may keep what it had ``counts_before``, and one that had more than its maximum any part of it.
    """
    n_used = 0
    is_outside = False
    is_between = False
    for j in range(counts.shape[0]):
        n_used += counts[j]
        is_outside |= counts[j] < 0 or (counts[j] > max_nodes[j] and counts[j] > counts_before[j])
        is_between |= 0 < counts[j] < min_nodes[j] and counts[j] != counts_before[j]
    return n_used, is_outside, is_between


def _share_nodes(state: PolicyState, nodes: NodesSeen) -> bool:
    """Return whether two jobs hold the same nodes now."""
    if state.colocation is None:
        return False
    all_held = np.concatenate([nodes.held(job_row) for job_row in range(state.n_jobs)])
    return np.unique(all_held).size < all_held.size


def _round_fault(until: Round, counts: NDArray[np.int64], state: PolicyState) -> str:
    """Return the fault of the rules until the policy is asked again."""
    shape = (state.n_jobs,)
    if until.samples is not None and not _are_numbers(until.samples, np.inf, state):
        return "samples that are not one number >= 0 for each job"
    if until.not_before_us is not None and not _are_whole(until.not_before_us, state):
        return "not_before_us that are not one whole number for each job"
    failed = until.failed
    if failed is not None and (failed.shape != shape or failed.dtype != np.bool_ or np.asarray(counts)[failed].any()):
        return "jobs up that hold nodes, or not one truth for each job"
    if any(not 0 <= row < state.n_jobs or counts[row] or not reason for row, reason in until.declined.items()):
        return "declined jobs that hold nodes or are not there, or no reason"
    sizes, credit = until.batch_size, until.credit
    if sizes is not None and not (_are_whole(sizes, state) and (sizes >= 0).all()):
        return "batch sizes that are not one whole number >= 0 for each job"
    if credit is not None and (credit.shape != shape or not np.isfinite(credit).all()):
        return "credit that is not one finite number for each job"
    if until.until_us is not None and until.until_us <= state.time_us:
        return f"a time to be asked again that is not later: {iso_utc(until.until_us)}"
    return ""


def restart_s_of(decision: Decision) -> NDArray[np.float64] | None:
    """Return the policy's own cost of a change, (J,), from the decision or its placement."""
    if decision.restart_s is None and decision.placement is not None:
        return decision.placement.restart_s
    return decision.restart_s


def _restart_fault(decision: Decision, state: PolicyState) -> str:
    restart_s, placement = restart_s_of(decision), decision.placement
    if decision.restart_s is not None and placement is not None and placement.restart_s is not None:
        return "restart_s twice, with its decision and with its placement"
    if restart_s is not None and not _are_numbers(restart_s, _MOST_S, state):
        return "restart_s that are not one number >= 0 for each job"
    return ""


def _are_whole(array: NDArray[Any], state: PolicyState) -> bool:
    return array.shape == (state.n_jobs,) and np.issubdtype(array.dtype, np.integer)


def _are_numbers(array: NDArray[np.float64], largest: float, state: PolicyState) -> bool:
    return array.shape == (state.n_jobs,) and bool(((array >= 0) & (array <= largest)).all())


def _nodes_fault(counts: NDArray[np.int64], placement: Placement, state: PolicyState, nodes: NodesSeen) -> str:
    nodes_by_job, partner = placement.assigned, placement.partner
    if len(nodes_by_job) != counts.size:
        return f"nodes for {len(nodes_by_job)} of {counts.size} jobs"
    if any(len(of_job) != count for of_job, count in zip(nodes_by_job, counts.tolist(), strict=True)):
        return f"{[len(of_job) for of_job in nodes_by_job]} nodes, which are not its counts"
    fault = "" if partner is None else _why_not_partners(partner, nodes_by_job, state)
    if fault:
        return fault
    own = [np.asarray(of_job) for j, of_job in enumerate(nodes_by_job) if partner is None or not 0 <= partner[j] < j]
    chosen = np.concatenate([np.zeros(0, np.int64), *own])
    if not np.issubdtype(chosen.dtype, np.integer):
        return f"nodes as {chosen.dtype}, expected whole numbers (np.int64)"
    is_idle = nodes.is_idle
    outside = (chosen < 0) | (chosen >= is_idle.size)
    if outside.any():
        return f"node {chosen[outside][0]} of {is_idle.size}"
    chosen = chosen.astype(np.int64)
    if not is_idle[chosen].all():
        return f"node {chosen[~is_idle[chosen]][0]}, which is not idle"
    uses = np.bincount(chosen)
    if chosen.size and uses.max() > 1:
        return f"node {int(uses.argmax())} twice"
    for of_job in own:
        if of_job.size and (nodes.node_type[of_job] != nodes.node_type[of_job[0]]).any():
            return f"nodes {of_job.tolist()} of several types to one job"
    return ""


def _why_not_partners(partner: NDArray[np.int64], assigned: Sequence[NDArray[np.int64]], state: PolicyState) -> str:
    """Return the fault of a policy's pairs; empty if there is none."""
    if (partner >= 0).any() and state.colocation is None:
        return "jobs that share nodes, and the jobs have no table of what they make together"
    for job_row in np.flatnonzero(partner >= 0).tolist():
        other = int(partner[job_row])
        if other >= len(assigned) or other == job_row or partner[other] != job_row:
            return f"job {other} to job {job_row} as a partner, which is not mutual"
        if not np.array_equal(assigned[job_row], assigned[other]):
            return f"jobs {job_row} and {other} other nodes, though they share them"
    return ""
