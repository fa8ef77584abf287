"""A policy with a parameter that looks at the log before the replay. ``python examples/own_policy_with_parameter.py``.

The command line takes it too:
``bfreplay replay sample --jobs sample --policy "own_policy_with_parameter:OnlyLongPools(seconds=10)"``.
"""

import numpy as np

import bfreplay
from bfreplay import Decision, NodeEvents, Policy, PolicyState, Solver


class OnlyLongPools(Policy):
    """One job gets all nodes, and none when the next event of the log is near."""

    name = "only-long-pools"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.times_us = np.zeros(0, np.int64)

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, seconds: float = 30.0) -> "OnlyLongPools":
        """Make the policy of options of the run and, with a default, the parameters in brackets."""
        return cls(seconds)

    def foresee(self, events: NodeEvents) -> None:
        """Note the times at which the pool changes in the part of the log that will be replayed."""
        _, *changes = events.batches()
        self.times_us = np.concatenate([change.time_us for change in changes])

    def decide(self, state: PolicyState) -> Decision:
        """Node counts for the jobs in ``state``."""
        counts = np.zeros(state.n_jobs, dtype=np.int64)
        after = self.times_us[np.searchsorted(self.times_us, state.time_us, side="right") :]
        wanted = min(int(state.max_nodes[0]), state.n_idle)
        is_long = not after.size or after[0] - state.time_us > self.seconds * 1e6
        if is_long and wanted >= state.min_nodes[0]:
            counts[0] = wanted
        return Decision(counts)

    def describe(self) -> dict[str, object]:
        """Every parameter, for the run's record."""
        return {"name": self.name, "seconds": self.seconds}

    def close(self) -> None:
        """Forget the log."""
        self.times_us = np.zeros(0, np.int64)


if __name__ == "__main__":
    run = bfreplay.replay_log("sample", "sample", OnlyLongPools(10))
    print(run.record["config"]["policy"], run.summary["bound"]["share"])
