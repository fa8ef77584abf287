"""Time that ran goes to who ran."""

import numpy as np

from bfreplay.systems.gavel.quirks import Quirks
from bfreplay.systems.gavel.rounds.next_round import FAILURES_ALLOWED, credit
from tests.systems.gavel.rounds.small_rounds import give, rules, run_round, with_jobs


def test_a_micro_task_is_credited_from_the_start_of_the_round_to_its_finish():
    how = rules(type_order=(0, 1))
    state = with_jobs(how, [1, 1], [[1.0, 0.0], [0.0, 1.0]])
    give(state, how, 0.0, [[1.0, 0.0], [0.0, 1.0]])
    run_round(state, how, 1000.0, [0, 1], steps_left=[500.0, 30.0])
    credit(state)
    assert state.entries.time_s.tolist() == [[150.0, 50.0], [50.0, 80.0]]
    assert state.total_s.tolist() == [200.0, 130.0]
    assert state.round_end_s == 1100.0


def test_a_pair_is_credited_once_and_its_members_alone_are_not():
    how = rules()
    state = with_jobs(how, [2, 2], [[1.0]] * 2, [(0, 1)], [[[1.0, 1.0]]])
    give(state, how, 0.0, [[0.0], [0.0]], [(0, 1)], [[1.0]])
    run_round(state, how, 0.0, [0, 0])
    credit(state)
    assert state.entries.time_s[:, 0].tolist() == [50.0, 50.0, 150.0]
    assert state.total_s.tolist() == [250.0]


def test_one_that_ended_early_gets_the_time_until_then_and_nothing_twice():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.5], [0.5]])
    run_round(state, how, 0.0, [0, 0])
    credit(state, np.array([40.0, 40.0]), np.array([True, False]))
    assert state.entries.time_s[:, 0].tolist() == [90.0, 50.0]
    credit(state)
    credit(state)
    assert state.entries.time_s[:, 0].tolist() == [90.0, 150.0]
    assert state.total_s.tolist() == [240.0]


def test_time_of_a_job_that_is_gone_still_counts_in_the_total():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.5], [0.5]])
    run_round(state, how, 0.0, [0, 0])
    state.remove_jobs(np.array([0]))
    credit(state)
    assert state.entries.time_s[:, 0].tolist() == [150.0]
    assert state.total_s.tolist() == [300.0]


def test_after_an_idle_gap_time_counts_from_the_start_of_the_round():
    how = rules()
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 1000.0, [[1.0]])
    run_round(state, how, 1000.0, [0])
    credit(state)
    assert state.entries.time_s[0, 0] == 150.0


def test_as_published_the_gap_counts_too():
    how = rules(quirks=Quirks(stale_round_start=True))
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 1000.0, [[1.0]])
    run_round(state, how, 1000.0, [0])
    credit(state)
    assert state.entries.time_s[0, 0] == 1150.0
    run_round(state, how, 5000.0, [0])
    credit(state)
    assert state.entries.time_s[0, 0] == 1150.0 + 4000.0


def test_a_gang_with_fewer_steps_than_nodes_ends_like_any_other():
    how = rules()
    state = with_jobs(how, [4], [[8.0]])
    give(state, how, 0.0, [[1.0]])
    task = run_round(state, how, 0.0, [0] * 4, steps_left=[2.0])
    assert (task.fails[0], task.steps[0, 0], task.finish_s[0]) == (False, 2.0, 0.25)
    assert credit(state).tolist() == []


def test_as_published_it_fails_and_is_dropped_at_the_fifth_time():
    how = rules(quirks=Quirks(few_steps_fail=True))
    state = with_jobs(how, [4, 1], [[8.0], [8.0]])
    give(state, how, 0.0, [[1.0], [0.1]])
    for k in range(FAILURES_ALLOWED):
        task = run_round(state, how, 100.0 * k, [0] * 5, steps_left=[2.0, 0.5])
        # a job on one node may do a part of a step
        assert task.fails.tolist() == [True, False]
        state.changed = False
        assert credit(state).tolist() == ([0] if k == FAILURES_ALLOWED - 1 else [])
        assert state.changed
    assert FAILURES_ALLOWED == 5
    assert state.entries.time_s[0, 0] == 50.0
