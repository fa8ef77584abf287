"""Equal share: the heuristic that the published program offers beside its MILP."""

from __future__ import annotations

import numpy as np

from bfreplay.policies.policy import Decision, Policy, PolicyCapabilities
from bfreplay.policies.state import PolicyState


class EqualSharePolicy(Policy):
    """Every job gets the same share; what is left over goes first come, first served.

    As in the published log replayer: the share is ``n_idle // n_jobs``, none for a job whose ``min_nodes`` it
    does not exceed, at most ``max_nodes``; then the jobs in order take from the left-over up to ``max_nodes``,
    and a job that would stay below ``min_nodes`` is skipped.
    """

    name = "equal-share"
    capabilities = PolicyCapabilities(asks_solver=False)

    def decide(self, state: PolicyState) -> Decision:
        """Return the shares and the left-over nodes."""
        share = state.n_idle // state.n_jobs
        counts = np.where(share > state.min_nodes, np.minimum(share, state.max_nodes), 0).astype(np.int64)
        n_spare = state.n_idle - int(counts.sum())
        for job_index in range(state.n_jobs):
            n_taken = min(n_spare, int(state.max_nodes[job_index] - counts[job_index]))
            if counts[job_index] + n_taken >= state.min_nodes[job_index]:
                counts[job_index] += n_taken
                n_spare -= n_taken
        return Decision(counts)
