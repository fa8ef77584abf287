"""Checks of a policy's counts, one job each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay.policies import Decision
from bfreplay.replay.active import ActiveJobs
from bfreplay.replay.decision_checks import decision_fault
from bfreplay.replay.pool import NodePool, PoolView
from tests.policies.small_states import state_of

NODES = PoolView(NodePool(9, ActiveJobs(1, 9), 0))


@pytest.mark.parametrize(
    ("count", "held", "problem"),
    [
        (0, 3, ""),
        (2, 0, ""),
        (4, 0, ""),
        (-1, 0, "outside 0 to max_nodes"),
        (5, 4, "outside 0 to max_nodes"),
        (5, 5, ""),  # more than its maximum, but no more than it had
        (5, 6, ""),
        (1, 0, "between 0 and min_nodes"),
        (1, 3, "between 0 and min_nodes"),
        (1, 1, ""),  # a reclaim has left it one
        (9, 0, "sum to 9 of 8 idle nodes"),
    ],
)
def test_a_job_gets_what_its_bounds_and_the_pool_allow_or_keeps_what_it_has(count, held, problem):
    state = replace(state_of([[0.0] * 5], 8, current=[held], min_nodes=[2]), nodes=NODES)
    for kind in (np.int64, np.int16):
        said = decision_fault(Decision(np.array([count], kind)), state)
        assert problem in said
        assert bool(said) == bool(problem)


def test_counts_are_whole_numbers():
    state = replace(state_of([[0.0] * 5], 8), nodes=NODES)
    assert "float64 counts" in decision_fault(Decision(np.array([1.0])), state)
