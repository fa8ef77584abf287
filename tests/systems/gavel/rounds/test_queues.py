"""Priorities, and who is chosen from the queues."""

import numpy as np
import pytest

from bfreplay.systems.gavel.rounds.allocation import NEVER_RAN, priorities
from bfreplay.systems.gavel.rounds.next_round import credit
from tests.systems.gavel.rounds.small_rounds import give, rules, run_round, who, with_jobs


def test_priority_is_the_share_over_the_part_of_the_time_received():
    share = np.array([[0.5, 0.0], [0.5, 1.0], [0.3, 0.3]])
    can_run = np.array([[True, True], [True, False], [True, True]])
    time_s = np.array([[50.0, 50.0], [150.0, 50.0], [0.0, 100.0]])
    got = priorities(share, can_run, time_s, np.array([200.0, 200.0]))
    # received 1/4 and 3/4 of 200 s; no share; cannot run there; has received nothing at all; received half
    expected = [[2.0, 0.0], [0.5 / 0.75, 0.0], [0.3 * NEVER_RAN, 0.6]]
    assert got == pytest.approx(np.array(expected), rel=1e-15)


def test_jobs_with_equal_shares_take_turns():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    give(state, how, 0.0, [[0.5], [0.5]])
    ran = []
    for k in range(4):
        ran.append(who(run_round(state, how, 100.0 * k, [0]))[0][0])
        credit(state)
    assert ran == ["0", "1", "0", "1"]


def test_a_job_with_twice_the_share_runs_twice_as_often():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    give(state, how, 0.0, [[2 / 3], [1 / 3]])
    ran = []
    for k in range(30):
        ran.append(who(run_round(state, how, 100.0 * k, [0]))[0][0])
        credit(state)
    assert ran.count("0") == 20


@pytest.mark.parametrize(("deficit", "first"), [([0.0, 0.0, 0.0], "0"), ([0.0, 5.0, 0.0], "1"), ([0.0, 5.0, 9.0], "2")])
def test_equal_priorities_are_decided_by_the_deficit_then_by_arrival(deficit: list[float], first: str):
    how = rules()
    state = with_jobs(how, [1, 1, 1], [[1.0]] * 3)
    give(state, how, 0.0, [[0.5]] * 3)
    state.entries.deficit_s = np.array(deficit)[:, None]
    assert who(run_round(state, how, 0.0, [0])) == [(first, 0, [0])]


def test_equal_priorities_and_deficits_are_decided_by_the_share():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0], [1.0]])
    give(state, how, 0.0, [[0.25], [0.5]])
    # 0.25 over a quarter, 0.5 over a half: both priorities are 1
    state.entries.time_s = np.array([[50.0], [100.0]])
    state.total_s = np.array([200.0])
    assert who(run_round(state, how, 0.0, [0])) == [("1", 0, [0])]


def test_a_gang_that_does_not_fit_lets_smaller_ones_pass():
    how = rules()
    state = with_jobs(how, [2, 2, 1], [[1.0]] * 3)
    give(state, how, 0.0, [[0.9], [0.8], [0.1]])
    assert sorted(who(run_round(state, how, 0.0, [0, 0, 0]))) == [("0", 0, [0, 1]), ("2", 0, [2])]


def test_types_are_filled_in_the_given_order_and_a_job_runs_on_one_of_them_only():
    how = rules(type_order=(1, 0))
    state = with_jobs(how, [1, 1], [[1.0, 1.0], [1.0, 1.0]])
    give(state, how, 0.0, [[0.9, 0.1], [0.8, 0.2]])
    # type 1 goes first though both jobs have more of type 0
    assert sorted(who(run_round(state, how, 0.0, [0, 0, 1]))) == [("0", 0, [0]), ("1", 1, [2])]


def test_one_queue_for_all_types_starts_with_the_highest_priority_of_any():
    how = rules(type_order=(1, 0), global_queue=True)
    state = with_jobs(how, [1, 1], [[1.0, 1.0], [1.0, 1.0]])
    give(state, how, 0.0, [[0.9, 0.1], [0.8, 0.2]])
    assert who(run_round(state, how, 0.0, [0, 0, 1])) == [("0", 0, [0]), ("1", 0, [1])]


def test_ties_of_one_queue_for_all_types_go_to_the_type_that_comes_first():
    how = rules(type_order=(1, 0), global_queue=True)
    state = with_jobs(how, [1, 1], [[1.0, 1.0], [1.0, 1.0]])
    give(state, how, 0.0, [[0.9, 0.1], [0.0, 0.0]])
    assert who(run_round(state, how, 0.0, [0, 0, 1])) == [("0", 0, [0]), ("1", 1, [2])]


def test_policies_that_do_not_know_types_fill_them_in_an_order_drawn_every_round():
    def orders(seed: int) -> list[list[int]]:
        how = rules(type_order=(2, 1, 0), shuffles_types=True, seed=seed)
        state = with_jobs(how, [1], [[1.0] * 3])
        drawn = []
        for k in range(20):
            run_round(state, how, 100.0 * k, [0, 1, 2])
            drawn.append(state.types.tolist())
        return drawn

    assert orders(0) == orders(0)
    assert orders(0) != orders(1)
    assert len({tuple(order) for order in orders(0)}) == 6


def test_a_type_that_is_not_in_the_order_stays_empty():
    how = rules(type_order=(0,))
    state = with_jobs(how, [1, 1], [[1.0, 1.0], [1.0, 1.0]])
    give(state, how, 0.0, [[0.5, 0.5], [0.5, 0.5]])
    assert who(run_round(state, how, 0.0, [0, 1])) == [("0", 0, [0])]


def test_nodes_that_would_stay_empty_go_to_jobs_without_priority_unless_the_policy_forbids_it():
    for forbids, expected in ((False, ["0", "1"]), (True, ["0"])):
        how = rules(runs_only_its_own=forbids)
        state = with_jobs(how, [1, 1], [[1.0], [1.0]])
        give(state, how, 0.0, [[1.0], [0.0]])
        assert [job for job, _, _ in who(run_round(state, how, 0.0, [0, 0]))] == expected


def test_a_job_never_runs_where_it_has_no_rate():
    how = rules(type_order=(0, 1))
    state = with_jobs(how, [1], [[0.0, 1.0]])
    give(state, how, 0.0, [[1.0, 0.0]])
    assert who(run_round(state, how, 0.0, [0, 1])) == [("0", 1, [1])]


def test_a_pair_needs_both_its_members_and_both_their_rates():
    how = rules(type_order=(0, 1))
    pairs = [(0, 1), (0, 2), (1, 2)]
    rates = [[[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
    state = with_jobs(how, [1] * 3, [[1.0, 1.0]] * 3, pairs, rates)
    # on type 0 the first pair cannot run, as job 1 has no rate there; 0+2 runs, and so neither does 1+2
    give(state, how, 0.0, [[0.0, 0.0]] * 3, pairs, [[0.9, 0.0], [0.8, 0.0], [0.7, 0.9]])
    assert who(run_round(state, how, 0.0, [0, 1])) == [("0+2", 0, [0]), ("1", 1, [1])]


def test_ties_of_pairs_go_to_the_entry_that_came_first():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2, [(0, 1)], [[[1.0, 1.0]]])
    state.add_jobs(how, np.array([2]), np.array([1]), np.ones((1, 1)), np.array([[1, 2], [0, 2]]), np.ones((2, 1, 2)))
    assert state.entries.member.tolist() == [[0, -1], [1, -1], [0, 1], [2, -1], [0, 2], [1, 2]]
    give(state, how, 0.0, [[0.0]] * 3, [(0, 1), (0, 2), (1, 2)], [[0.0], [0.5], [0.5]])
    assert who(run_round(state, how, 0.0, [0])) == [("0+2", 0, [0])]


def test_no_pair_takes_a_member_of_another_pair():
    how = rules()
    pairs = [(0, 2), (1, 2)]
    state = with_jobs(how, [1] * 3, [[1.0]] * 3, pairs, [[[1.0, 1.0]]] * 2)
    give(state, how, 0.0, [[0.0], [0.1], [0.0]], pairs, [[0.9], [0.8]])
    assert who(run_round(state, how, 0.0, [0, 0])) == [("0+2", 0, [0]), ("1", 0, [1])]
