"""Recomputation of shares, and the effect of the old ones."""

import numpy as np
import pytest

from bfreplay.systems.gavel.quirks import Quirks
from bfreplay.systems.gavel.rounds.next_round import credit, reset_is_due
from tests.systems.gavel.rounds.small_rounds import give, rules, run_round, with_jobs


def arrive(state, how, job):
    state.add_jobs(how, np.array([job]), np.array([1]), np.ones((1, state.n_types)))


def test_every_arrival_and_completion_makes_a_recomputation_due_unless_told_otherwise():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    assert reset_is_due(state, how, 0.0)
    give(state, how, 0.0, [[1.0], [1.0]])
    assert not reset_is_due(state, how, 100.0)
    arrive(state, how, 2)
    assert reset_is_due(state, how, 100.0)
    give(state, how, 100.0, [[1.0], [1.0], [1.0]])
    state.remove_jobs(np.array([0]))
    assert reset_is_due(state, how, 100.0)


def test_nodes_that_come_or_go_make_it_due_when_the_caller_says_so():
    how = rules()
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    state.changed = True
    assert reset_is_due(state, how, 100.0)


def test_the_least_time_between_recomputations_is_kept_from_the_first_one_on():
    how = rules(least_reset_s=1920.0)
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    arrive(state, how, 1)
    assert not reset_is_due(state, how, 1919.0)
    assert reset_is_due(state, how, 1920.0)


def test_a_job_does_not_wait_for_shares_when_no_other_has_any():
    how = rules(least_reset_s=1920.0)
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    arrive(state, how, 1)
    state.remove_jobs(np.array([0]))
    assert reset_is_due(state, how, 100.0)


def test_as_published_a_recomputation_at_time_0_is_none_and_a_job_waits_though_nobody_runs():
    how = rules(least_reset_s=1920.0, quirks=Quirks(reset_at_zero_means_never=True))
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    arrive(state, how, 1)
    assert reset_is_due(state, how, 100.0)
    give(state, how, 100.0, [[1.0], [0.0]])
    state.remove_jobs(np.array([0]))
    assert not reset_is_due(state, how, 2019.0)
    state.last_reset_s = None
    assert reset_is_due(state, how, 2019.0)


def test_time_promised_and_not_given_goes_to_the_deficit():
    # two jobs, one node, half the time each; job 0 runs 100 s and job 1 does not: each was promised 50 s
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    give(state, how, 0.0, [[0.5], [0.5]])
    assert state.total_s.tolist() == [100.0]  # half a round for each
    run_round(state, how, 0.0, [0])
    credit(state)
    assert state.entries.time_s[:, 0].tolist() == [150.0, 50.0]
    assert state.total_s.tolist() == [200.0]
    give(state, how, 100.0, [[0.2], [0.8]])
    assert state.entries.deficit_s[:, 0].tolist() == [-50.0, 50.0]
    assert state.entries.time_s[:, 0].tolist() == [50.0, 50.0]
    assert state.entries.share[:, 0].tolist() == [0.2, 0.8]
    assert state.last_reset_s == 100.0


def test_deficits_add_up_over_recomputations():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    for k in range(3):
        give(state, how, 100.0 * k, [[0.5], [0.5]])
        # job 1 never runs: its deficit is 50 s more each time
        assert state.entries.deficit_s[1, 0] == 50.0 * k


def test_a_recomputation_without_jobs_is_one():
    how = rules(least_reset_s=1920.0)
    state = with_jobs(how, [1], [[1.0]])
    state.remove_jobs(np.array([0]))
    give(state, how, 500.0, [])
    assert state.last_reset_s == 500.0
    assert not state.changed


def test_shares_of_pairs_go_to_the_pairs_by_their_jobs():
    how = rules()
    both = [[[1.0, 1.0]]] * 3
    state = with_jobs(how, [1] * 3, [[1.0]] * 3, [(0, 1), (0, 2), (1, 2)], both)
    state.remove_jobs(np.array([0]))
    arrive(state, how, 7)
    give(state, how, 0.0, [[0.1], [0.2], [0.3]], [(0, 1)], [[0.4]])
    # jobs 1 and 2, their pair, and job 7
    assert state.entries.member.tolist() == [[1, -1], [2, -1], [1, 2], [7, -1]]
    assert state.entries.share[:, 0].tolist() == [0.1, 0.2, 0.4, 0.3]
    assert state.entries.has_share.tolist() == [True] * 4


def test_entries_that_nobody_asked_about_have_no_share():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2, [(0, 1)], [[[1.0, 1.0]]])
    give(state, how, 0.0, [[0.5], [0.0]])
    assert state.entries.has_share.tolist() == [True, True, False]
    give(state, how, 0.0, [[0.5], [0.0]], [(0, 1)], [[0.5]])
    give(state, how, 0.0, [[0.5], [0.0]])
    assert state.entries.has_share.tolist() == [True, True, False]
    assert state.entries.share[:, 0].tolist() == [0.5, 0.0, 0.0]


def test_jobs_that_are_not_numbered_in_order_of_arrival_are_refused():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    with pytest.raises(ValueError, match="order of arrival"):
        arrive(state, how, 1)
    with pytest.raises(ValueError, match="no such jobs"):
        state.remove_jobs(np.array([5]))
    with pytest.raises(ValueError, match="a pair needs an earlier job"):
        state.add_jobs(how, np.array([2]), np.array([1]), np.ones((1, 1)), np.array([[0, 1]]), np.ones((1, 1, 2)))
