"""An objective of your own: shortest work first, against the default. ``python examples/gallery/own_objective.py``.

The command line takes it too: ``bfreplay replay sample --jobs sample --objective own_objective:shortest``.
"""

import matplotlib.pyplot as plt
import numpy as np

import bfreplay
from bfreplay.policies import PolicyState


def shortest(state: PolicyState, counts: np.ndarray, *, at_least: float = 1.0) -> np.ndarray:
    """Return the part of what a job still has to do that it does per second; ``at_least`` in samples."""
    left = np.maximum(state.work - state.progress, at_least)
    return state.weight[:, None] * state.throughput / left[:, None]


if __name__ == "__main__":
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    for objective in ("own", "own_objective:shortest", "own_objective:shortest + 0.2*speed-up"):
        run = bfreplay.replay_log("sample", "sample", objective=objective)
        took = run.summary.job_times["submit_to_finish"]
        hours = f"median {took['median_s'] / 3600:.1f} h, 95 % within {took['p95_s'] / 3600:.1f} h"
        print(f"{objective:<40} U = {run.u:.3f}; submit to finish: {hours}")
        completion_h = (run.jobs["finished"] - run.jobs["submitted"]).dt.total_seconds().dropna().sort_values() / 3600
        axes.step(completion_h, range(1, len(completion_h) + 1), where="post", label=objective)
    axes.set(xlabel="completion time, h", ylabel="jobs", title="Jobs finished within a time of their submission")
    axes.legend(loc="lower right")
    figure.savefig("own_objective.png")
