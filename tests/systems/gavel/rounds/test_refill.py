"""Nodes that nobody has, given away in mid-round."""

import numpy as np
import pytest

from bfreplay.systems.gavel.rounds.next_round import credit, refill
from bfreplay.systems.gavel.rounds.state import Assignment, RoundRules, RoundState
from tests.systems.gavel.rounds.small_rounds import PLENTY, available, give, rules, run_round, who, with_jobs


def refill_round(
    state: RoundState, how: RoundRules, now_s: float, n_nodes: int, gone: list[int], kept: list[bool]
) -> Assignment:
    """Refill until 100 s, after crediting those that are not kept until now."""
    k = state.last.n_tasks
    credit(state, np.full(k, now_s), ~np.array(kept, np.bool_))
    left = np.full(state.jobs.number.shape[0], PLENTY)
    types = np.zeros(n_nodes, np.int16)
    return refill(state, how, now_s, 100.0, types, available([0] * n_nodes, gone), left, np.array(kept, np.bool_))


def test_a_gang_that_lost_a_node_leaves_the_rest_to_the_next_in_the_queue():
    how = rules()
    state = with_jobs(how, [2, 1, 1], [[2.0]] * 3)
    give(state, how, 0.0, [[0.9], [0.8], [0.1]])
    assert who(run_round(state, how, 0.0, [0] * 3)) == [("0", 0, [0, 1]), ("1", 0, [2])]
    now = refill_round(state, how, 40.0, 3, gone=[0], kept=[False, True])
    assert who(now) == [("1", 0, [2]), ("2", 0, [1])]
    # job 1 as it was; job 2 for what is left of the round
    assert now.start_s.tolist() == [0.0, 40.0]
    assert now.finish_s.tolist() == [100.0, 100.0]
    assert now.steps[:, 0].tolist() == [200.0, 120.0]
    assert now.restarts[:, 0].tolist() == [True, True]


def test_the_one_that_lost_its_node_may_go_on_elsewhere_and_restarts():
    how = rules(restart_s=10.0)
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    run_round(state, how, 0.0, [0, 0], gone=[1])
    now = refill_round(state, how, 40.0, 2, gone=[0], kept=[False])
    assert who(now) == [("0", 0, [1])]
    assert (now.restarts[0, 0], now.steps[0, 0], now.finish_s[0]) == (True, 50.0, 100.0)


def test_everyone_is_credited_for_the_time_that_he_ran():
    how = rules()
    state = with_jobs(how, [2, 1, 1], [[2.0]] * 3)
    give(state, how, 0.0, [[0.9], [0.8], [0.1]])
    run_round(state, how, 0.0, [0] * 3)
    refill_round(state, how, 40.0, 3, gone=[0], kept=[False, True])
    credit(state)
    assert state.entries.time_s[:, 0].tolist() == [90.0, 150.0, 110.0]
    assert state.total_s.tolist() == [150.0 + 40.0 + 100.0 + 60.0]


def test_who_began_in_mid_round_keeps_its_nodes_in_the_next_round_without_restart():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.6], [0.5]])
    run_round(state, how, 0.0, [0, 0, 0], gone=[0, 2])
    assert who(refill_round(state, how, 50.0, 3, gone=[0], kept=[True])) == [("0", 0, [1]), ("1", 0, [2])]
    credit(state)
    assert sorted(who(run_round(state, how, 100.0, [0, 0, 0]))) == [("0", 0, [1]), ("1", 0, [2])]
    assert not state.last.restarts[:, 0].any()
    assert (state.extensions, state.opportunities) == (2, 2)


def test_a_pair_is_not_begun_beside_a_member_that_runs():
    how = rules()
    pairs, rates = [(0, 1), (1, 2)], [[[1.0, 1.0]], [[1.0, 1.0]]]
    state = with_jobs(how, [1] * 3, [[1.0]] * 3, pairs, rates)
    give(state, how, 0.0, [[0.9], [0.0], [0.0]], pairs, [[0.0], [0.0]])
    assert who(run_round(state, how, 0.0, [0, 0], gone=[1])) == [("0", 0, [0])]
    state.entries.share[2, 0], state.entries.share[4, 0] = 0.9, 0.5
    assert state.entries.member[[2, 4]].tolist() == [[0, 1], [1, 2]]
    # 0+1 has the higher share, but job 0 runs
    assert who(refill_round(state, how, 50.0, 2, gone=[], kept=[True])) == [("0", 0, [0]), ("1+2", 0, [1])]
    assert state.jobs.task.tolist() == [0, 1, 1]


def test_a_job_that_arrived_in_mid_round_takes_a_node_that_would_stay_empty():
    how = rules()
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    run_round(state, how, 0.0, [0, 0])
    state.add_jobs(how, np.array([1]), np.array([1]), np.array([[3.0]]))
    now = refill_round(state, how, 90.0, 2, gone=[], kept=[True])
    assert who(now) == [("0", 0, [0]), ("1", 0, [1])]
    assert now.steps[1, 0] == 30.0


def test_nothing_is_begun_after_the_end_of_the_round():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[1.0], [0.0]])
    run_round(state, how, 0.0, [0, 0], gone=[1])
    now = refill_round(state, how, 100.0, 2, gone=[], kept=[True])
    assert now.steps[1:, 0].tolist() == [0.0]
    assert now.finish_s[1:].tolist() == [100.0]


def test_nodes_of_micro_tasks_that_nobody_has_ended_are_not_given_away():
    how = rules()
    state = with_jobs(how, [1], [[1.0]])
    give(state, how, 0.0, [[1.0]])
    run_round(state, how, 0.0, [0])
    types, left = np.zeros(1, np.int16), np.array([PLENTY])
    with pytest.raises(ValueError, match="must be credited"):
        refill(state, how, 10.0, 100.0, types, available([0]), left, np.array([False]))
    with pytest.raises(ValueError, match="cannot continue"):
        refill(state, how, 10.0, 100.0, types, available([0], [0]), left, np.array([True]))
