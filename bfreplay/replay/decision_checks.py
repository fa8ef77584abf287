"""Whether what a policy answers can be realised: a stranger's policy may answer anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.policies import Decision
from bfreplay.replay.active import ActiveJobs
from bfreplay.replay.pool import NodePool

_MOST_S = 1e15
"""Of a restart: far longer than any log, and its samples are still numbers."""


def why_not_realisable(
    decision: Decision, before: NDArray[np.int64], active: ActiveJobs, pool: NodePool, now_us: int, *, may_share: bool
) -> str:
    """What is wrong with a decision; empty when nothing is.

    Parameters
    ----------
    decision
        For the jobs that are active now.
    before : (J,) int64
        Nodes that they hold.
    active, pool
        The jobs and the nodes.
    now_us
        When.
    may_share
        There is a table of what jobs make that share nodes.
    """
    problem = (
        _why_not_these_counts(decision, before, active, pool)
        or _why_not_placeable(decision, active, may_share)
        or _why_not_until_then(decision, active.n, now_us)
    )
    if problem or decision.assigned is None:
        return problem
    return pool.why_not_assignable(np.asarray(decision.counts), decision.assigned, decision.partner)


def _why_not_these_counts(decision: Decision, before: NDArray[np.int64], active: ActiveJobs, pool: NodePool) -> str:
    counts = np.asarray(decision.counts)
    if counts.shape != before.shape or not np.issubdtype(counts.dtype, np.integer):
        return f"{counts.dtype} counts of shape {counts.shape} for {before.size} jobs, whole numbers are needed"
    partner = decision.partner
    is_second = np.zeros(counts.size, np.bool_) if partner is None else _is_second(partner)
    if is_second.shape != counts.shape:
        return f"partners of shape {is_second.shape} for {counts.size} jobs"
    used = int(counts[~is_second].sum())
    if used > pool.n_idle:
        return f"counts that sum to {used} of {pool.n_idle} idle nodes"
    most, least = (active.records[name][: active.n] for name in ("max_nodes", "min_nodes"))
    if (counts < 0).any() or ((counts > most) & (counts > before)).any():
        return f"counts outside 0 to max_nodes {most.tolist()}"
    if ((counts > 0) & (counts < least) & (counts != before)).any():
        return f"counts between 0 and min_nodes {least.tolist()}"
    return ""


def _why_not_placeable(decision: Decision, active: ActiveJobs, may_share: bool) -> str:
    shares = active.records["sharing"][: active.n].any() or decision.partner is not None
    if decision.assigned is None and (active.has_types or shares):
        return "counts without nodes, where nodes are of several types or shared"
    if decision.partner is not None and (decision.partner >= 0).any() and not may_share:
        return "jobs that share nodes, and the jobs have no table of what they make together"
    return ""


def _why_not_until_then(decision: Decision, n: int, now_us: int) -> str:
    """Of what holds until the policy is asked again."""
    for name, array, most in (("samples", decision.samples, np.inf), ("restart_s", decision.restart_s, _MOST_S)):
        if array is not None and (array.shape != (n,) or not ((array >= 0) & (array <= most)).all()):
            return f"{name} that are not one number >= 0 for each job"
    times_us = decision.not_before_us
    if times_us is not None and (times_us.shape != (n,) or not np.issubdtype(times_us.dtype, np.integer)):
        return "not_before_us that are not one whole number for each job"
    failed = decision.failed
    if failed is not None and (
        failed.shape != (n,) or failed.dtype != np.bool_ or np.asarray(decision.counts)[failed].any()
    ):
        return "jobs up that hold nodes, or not one truth for each job"
    if decision.until_us is not None and decision.until_us <= now_us:
        return f"a time to be asked again that is not later: {iso_utc(decision.until_us)}"
    return ""


def _is_second(partner: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(J,) whether a job is the second of two that share nodes, whose nodes are counted with the first."""
    is_second: NDArray[np.bool_] = (partner >= 0) & (partner < np.arange(partner.size))
    return is_second
