"""One decision of a shadow: what its jobs lose, what it is charged, and what it decides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.bftrainer import problem_of
from bfreplay.policies.forward_time import decide, reclaim
from bfreplay.policies.state import JobTables
from tests.policies.small_states import state_of, states

LINEAR = 10.0 * np.tile(np.arange(9.0), (2, 1))


def _reclaimed(counts: list[int], held: list[int], lost: list[int], n_idle: int, min_nodes: list[int]) -> tuple:
    counts_ = np.array(counts)
    jobs = JobTables(LINEAR, np.array(min_nodes), np.array([8, 8]), np.zeros(2), np.array([2.0, 3.0]))
    cost = reclaim(counts_, np.array(held), np.array(lost), n_idle, jobs)
    return counts_.tolist(), cost


@pytest.mark.parametrize(
    ("counts", "held", "lost", "n_idle", "min_nodes", "left", "cost"),
    [
        ([4, 4], [4, 4], [0, 0], 8, [1, 1], [4, 4], 0.0),
        ([4, 4], [4, 4], [1, 0], 7, [1, 1], [3, 4], 40 * 2.0),  # as the real one
        ([8, 0], [4, 4], [2, 2], 8, [1, 1], [4, 0], 80 * 2.0),  # half of what it holds; who holds nothing loses nothing
        ([5, 3], [6, 2], [1, 0], 8, [1, 1], [4, 3], 50 * 2.0),  # 5/6 of a node: rounded up
        ([3, 4], [4, 4], [1, 0], 7, [1, 1], [3, 4], 0.0),  # it was the one left free
        ([3, 4], [4, 4], [2, 0], 6, [1, 1], [2, 4], 30 * 2.0),  # that, and one more
        ([4, 4], [4, 0], [0, 0], 5, [1, 1], [1, 4], 40 * 2.0),  # what no longer fits goes from the largest
        ([2, 4], [2, 4], [1, 4], 8, [3, 1], [1, 0], 40 * 3.0),  # below its minimum it makes nothing to lose
    ],
)
def test_a_shadow_loses_what_the_real_jobs_lost_in_proportion(counts, held, lost, n_idle, min_nodes, left, cost):
    assert _reclaimed(counts, held, lost, n_idle, min_nodes) == (left, cost)


@given(state=states(), t_fwd_s=st.sampled_from([1.0, 20.0, 300.0]))
def test_a_shadow_decides_as_bftrainer_and_is_charged_what_the_decision_says(state, t_fwd_s):
    problem = problem_of(state, t_fwd_s)
    counts = state.current.copy()
    jobs = JobTables._make(each.copy() for each in state.tables)
    charged, made = decide(counts, t_fwd_s, state.n_idle, jobs, np.empty(state.objective.shape))
    rows = np.arange(state.n_jobs)
    runs = counts >= state.min_nodes
    assert made == pytest.approx(float(state.objective[rows, counts][runs].sum()))
    assert t_fwd_s * made - charged == pytest.approx(ExactSolver().solve(problem).objective)
    loss = problem.scale_up_loss * (counts > state.current) + problem.scale_down_loss * (counts < state.current)
    assert charged == pytest.approx(float(loss.sum()))


def test_numbers_that_are_too_large_leave_all_as_it_is():
    state = state_of([[0.0, 1e308, 1.5e308], [0.0, 1e308, 1.6e308]], 2, current=[1, 1])
    counts = state.current.copy()
    charged, _ = decide(counts, 1.0, 2, JobTables._make(each.copy() for each in state.tables), np.empty((2, 3)))
    assert counts.tolist() == [1, 1]
    assert charged == 0.0
