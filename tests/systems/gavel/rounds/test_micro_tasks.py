"""Steps, finishes, restarts and leases of a round."""

import numpy as np
import pytest

from tests.systems.gavel.rounds.small_rounds import PLENTY, give, rules, run_round, who, with_jobs


def test_a_job_does_the_whole_steps_that_fit_and_finishes_when_they_are_done():
    how = rules()
    state = with_jobs(how, [1], [[0.13]])
    give(state, how, 0.0, [[1.0]])
    task = run_round(state, how, 1000.0, [0])
    assert task.steps.tolist() == [[13.0, 0.0]]
    assert task.finish_s.tolist() == [1000.0 + 13.0 / 0.13]
    assert task.start_s.tolist() == [1000.0]


def test_a_job_does_no_more_steps_than_are_left():
    how = rules()
    state = with_jobs(how, [1], [[2.0]])
    give(state, how, 0.0, [[1.0]])
    task = run_round(state, how, 0.0, [0], steps_left=[31.0])
    assert (task.steps[0, 0], task.finish_s[0]) == (31.0, 15.5)


def test_a_job_that_cannot_do_a_step_in_a_round_makes_a_part_of_one():
    how = rules()
    state = with_jobs(how, [1], [[0.004]])
    give(state, how, 0.0, [[1.0]])
    task = run_round(state, how, 0.0, [0])
    assert task.steps[0, 0] == pytest.approx(0.4, rel=1e-15)
    assert task.finish_s[0] == pytest.approx(100.0, rel=1e-15)


def test_a_pair_finishes_with_its_later_member():
    how = rules()
    state = with_jobs(how, [1, 1], [[5.0], [5.0]], [(0, 1)], [[[2.0, 3.0]]])
    give(state, how, 0.0, [[0.0], [0.0]], [(0, 1)], [[1.0]])
    task = run_round(state, how, 0.0, [0], steps_left=[PLENTY, 33.0])
    assert who(task) == [("0+1", 0, [0])]
    assert task.steps.tolist() == [[200.0, 33.0]]
    assert task.finish_s.tolist() == [100.0]


def test_a_restart_costs_time_at_the_start_and_staying_costs_nothing():
    how = rules(restart_s=20.0)
    state = with_jobs(how, [1], [[2.0]])
    give(state, how, 0.0, [[1.0]])
    first = run_round(state, how, 0.0, [0, 0], steps_left=[500.0])
    assert (first.restarts[0, 0], first.steps[0, 0], first.finish_s[0]) == (True, 160.0, 100.0)
    stayed = run_round(state, how, 100.0, [0, 0], steps_left=[340.0])
    assert (stayed.restarts[0, 0], stayed.steps[0, 0], stayed.finish_s[0]) == (False, 200.0, 200.0)
    moved = run_round(state, how, 200.0, [0, 0], steps_left=[140.0], gone=[0])
    assert (moved.restarts[0, 0], moved.steps[0, 0], moved.finish_s[0]) == (True, 140.0, 290.0)


def test_a_job_that_is_joined_on_its_own_node_does_not_restart_and_the_other_does():
    how = rules(restart_s=20.0)
    state = with_jobs(how, [1, 1], [[1.0], [1.0]], [(0, 1)], [[[1.0, 1.0]]])
    give(state, how, 0.0, [[1.0], [0.0]], [(0, 1)], [[0.0]])
    assert who(run_round(state, how, 0.0, [0])) == [("0", 0, [0])]
    give(state, how, 0.0, [[0.0], [0.0]], [(0, 1)], [[1.0]])
    pair = run_round(state, how, 100.0, [0])
    assert pair.restarts.tolist() == [[False, True]]
    assert pair.steps.tolist() == [[100.0, 80.0]]
    assert pair.finish_s.tolist() == [200.0]


def test_a_lease_is_extended_on_the_same_nodes_only():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.9], [0.8]])
    run_round(state, how, 0.0, [0, 0, 0])
    assert (state.extensions, state.opportunities) == (0, 0)
    run_round(state, how, 100.0, [0, 0, 0])
    assert (state.extensions, state.opportunities) == (2, 2)
    run_round(state, how, 200.0, [0, 0, 0], gone=[0])
    assert who(state.last) == [("0", 0, [2]), ("1", 0, [1])]
    assert (state.extensions, state.opportunities) == (3, 4)


def test_a_job_that_ended_is_no_opportunity_and_one_that_gets_nothing_is():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.9], [0.8]])
    run_round(state, how, 0.0, [0, 0])
    state.remove_jobs(np.array([0]))
    run_round(state, how, 100.0, [0, 0], gone=[0, 1])
    assert (state.extensions, state.opportunities) == (0, 1)


def test_a_pair_that_lost_a_member_is_still_an_opportunity():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2, [(0, 1)], [[[1.0, 1.0]]])
    give(state, how, 0.0, [[0.0], [0.0]], [(0, 1)], [[1.0]])
    run_round(state, how, 0.0, [0])
    state.remove_jobs(np.array([0]))
    assert who(run_round(state, how, 100.0, [0])) == [("1", 0, [0])]
    # the entry is another one, so its lease is not extended; the job itself goes on where it was
    assert (state.extensions, state.opportunities) == (0, 1)
    assert not state.last.restarts[0, 0]


def test_a_job_whose_rate_changes_runs_at_the_new_one_and_not_where_it_has_none():
    how = rules()
    state = with_jobs(how, [1, 1], [[0.0], [2.0]])
    give(state, how, 0.0, [[1.0], [1.0]])
    assert not state.set_rates(np.array([[0.0], [2.0]]))
    assert state.set_rates(np.array([[3.0], [0.0]]))
    task = run_round(state, how, 0.0, [0, 0])
    assert task.member[:, 0].tolist() == [0]
    assert task.steps[0, 0] == 300.0
