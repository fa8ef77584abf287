"""A formulation of one's own, written with named variables, on the decisions of a replay.

It gives every job one binary for each count of nodes, and is the package's `choices`. The lab poses sampled decisions
to it and to others, checks every answer against the exact solver, and draws how long they take.
"""

import numpy as np

import bfreplay


class MyChoices:
    """Job j gets n nodes where ``y[j, n]`` is 1."""

    name, needs_sos, needs_continuous, change_limited = "my-choices", False, False, False

    def build(self, problem):
        """Return the model of one decision."""
        allowed = problem.value > -np.inf  # (J, K + 1): the counts that each job may have
        m = bfreplay.ModelBuilder()
        y = m.binary("y", allowed.shape, upper=allowed)
        m.add(y.sum(axis=1) == 1, "one")
        m.add((y * np.arange(allowed.shape[1])).sum() <= problem.capacity, "capacity")
        m.maximise(y * np.where(allowed, problem.value, 0.0))
        return m.build()

    def read(self, problem, x):
        """Return the counts that the values of the columns stand for."""
        return np.rint(x).astype(int).reshape(problem.n_jobs, -1) @ np.arange(problem.value.shape[1]), None
