"""A policy of your own: one job at a time gets all it can use. ``python examples/own_policy.py``.

The command line takes it too: ``bfreplay replay sample --jobs sample --policy own_policy:OneAtATime``.
"""

import numpy as np

import bfreplay
from bfreplay import Decision, Policy, PolicyState


class OneAtATime(Policy):
    """The first job takes up to its ``max_nodes``, then the next one, first come first served."""

    name = "one-at-a-time"

    def decide(self, state: PolicyState) -> Decision:
        """Node counts for the jobs in ``state``."""
        counts = np.zeros(state.n_jobs, dtype=np.int64)
        left = state.n_idle
        for j in range(state.n_jobs):
            wanted = min(left, int(state.max_nodes[j]))
            if wanted >= state.min_nodes[j]:
                counts[j] = wanted
                left -= wanted
        return Decision(counts)


if __name__ == "__main__":
    run = bfreplay.replay_log("sample", "sample", OneAtATime())
    print(f"U = {run.u:.3f}; {run.summary['jobs']}")
