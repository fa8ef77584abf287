"""An objective of your own: shortest work first, against the default. ``python examples/own_objective.py``.

The command line takes it too: ``bfreplay replay sample --jobs sample --objective own_objective:shortest``.
"""

import numpy as np

import bfreplay
from bfreplay.policies import PolicyState


def shortest(state: PolicyState, counts: np.ndarray, *, at_least: float = 1.0) -> np.ndarray:
    """The part of what a job still has to do that it does per second; ``at_least`` in samples."""
    left = np.maximum(state.work - state.progress, at_least)
    return state.weight[:, None] * state.throughput / left[:, None]


if __name__ == "__main__":
    log = bfreplay.load_events(bfreplay.sample_events_path())
    jobs = bfreplay.load_jobs(bfreplay.sample_jobs_path())
    for objective in ("own", "own_objective:shortest", "own_objective:shortest + 0.2*speed-up"):
        run = bfreplay.replay_log(log, jobs, bfreplay.BFTrainerPolicy(120, objective=objective))
        took = run.summary["job_times"]["submit_to_finish"]
        hours = f"median {took['median_s'] / 3600:.1f} h, 95 % within {took['p95_s'] / 3600:.1f} h"
        print(f"{objective:<40} U = {run.u:.3f}; submit to finish: {hours}")
