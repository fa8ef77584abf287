"""Nodes that a job gets."""

from tests.systems.gavel.rounds.small_rounds import give, rules, run_round, who, with_jobs


def test_new_jobs_take_the_lowest_nodes_in_the_order_in_which_they_are_chosen():
    how = rules(type_order=(0, 1))
    state = with_jobs(how, [1, 2, 1], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    give(state, how, 0.0, [[0.1, 0.0], [0.0, 0.5], [0.9, 0.0]])
    got = who(run_round(state, how, 0.0, [0, 1, 0, 1, 0]))
    assert got == [("2", 0, [0]), ("0", 0, [2]), ("1", 1, [1, 3])]


def test_large_gangs_take_their_nodes_first():
    how = rules()
    state = with_jobs(how, [1, 2], [[1.0]] * 2)
    give(state, how, 0.0, [[0.9], [0.1]])
    assert who(run_round(state, how, 0.0, [0, 0, 0])) == [("0", 0, [2]), ("1", 0, [0, 1])]


def test_a_job_keeps_the_nodes_that_it_had():
    how = rules()
    state = with_jobs(how, [1, 1, 1], [[1.0]] * 3)
    give(state, how, 0.0, [[0.9], [0.8], [0.7]])
    assert who(run_round(state, how, 0.0, [0, 0])) == [("0", 0, [0]), ("1", 0, [1])]
    give(state, how, 0.0, [[0.1], [0.8], [0.9]])
    # job 2 is chosen before job 1, and yet leaves it its node
    assert who(run_round(state, how, 100.0, [0, 0])) == [("2", 0, [0]), ("1", 0, [1])]


def test_a_larger_gang_may_take_the_nodes_that_a_smaller_job_had():
    how = rules()
    state = with_jobs(how, [1, 2], [[1.0]] * 2)
    give(state, how, 0.0, [[1.0], [0.0]])
    run_round(state, how, 0.0, [0, 0, 0], gone=[2])
    assert who(state.last) == [("0", 0, [0])]
    assert sorted(who(run_round(state, how, 100.0, [0, 0, 0]))) == [("0", 0, [2]), ("1", 0, [0, 1])]


def test_a_gang_moves_as_a_whole_when_one_of_its_nodes_is_gone():
    how = rules()
    state = with_jobs(how, [2, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.9], [0.1]])
    assert who(run_round(state, how, 0.0, [0] * 6)) == [("0", 0, [0, 1]), ("1", 0, [2])]
    assert who(run_round(state, how, 100.0, [0] * 6, gone=[1])) == [("0", 0, [0, 2]), ("1", 0, [3])]


def test_a_job_that_paused_a_round_has_no_nodes_to_keep():
    how = rules()
    state = with_jobs(how, [1, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.5], [0.5]])
    run_round(state, how, 0.0, [0, 0])
    give(state, how, 0.0, [[0.0], [1.0]])
    assert who(run_round(state, how, 100.0, [0, 0], gone=[0])) == [("1", 0, [1])]
    give(state, how, 0.0, [[0.9], [0.1]])
    # job 1 stays on node 1, so job 0 is on node 0 again: the lowest one
    assert who(run_round(state, how, 200.0, [0, 0])) == [("0", 0, [0]), ("1", 0, [1])]
    assert state.last.restarts[:, 0].tolist() == [True, False]


def test_nodes_that_are_not_there_are_neither_counted_nor_given():
    how = rules()
    state = with_jobs(how, [2, 1], [[1.0]] * 2)
    give(state, how, 0.0, [[0.9], [0.1]])
    assert who(run_round(state, how, 0.0, [0, 0, 0], gone=[0, 2])) == [("1", 0, [1])]
    assert who(run_round(state, how, 100.0, [0, 0, 0], gone=[0, 1, 2])) == []


def test_a_pair_is_another_than_its_members_and_keeps_only_its_own_nodes():
    how = rules()
    state = with_jobs(how, [1, 1, 1], [[1.0]] * 3, [(0, 1)], [[[1.0, 1.0]]])
    give(state, how, 0.0, [[0.0], [0.9], [0.5]], [(0, 1)], [[0.0]])
    assert who(run_round(state, how, 0.0, [0, 0, 0], gone=[2])) == [("1", 0, [0]), ("2", 0, [1])]
    give(state, how, 0.0, [[0.0], [0.0], [0.5]], [(0, 1)], [[0.9]])
    run_round(state, how, 100.0, [0, 0, 0], gone=[0])
    assert who(state.last) == [("0+1", 0, [2]), ("2", 0, [1])]


def test_a_job_that_is_to_run_on_another_type_leaves_its_nodes():
    how = rules(type_order=(0, 1))
    state = with_jobs(how, [1], [[1.0, 1.0]])
    give(state, how, 0.0, [[0.9, 0.1]])
    assert who(run_round(state, how, 0.0, [0, 1])) == [("0", 0, [0])]
    give(state, how, 0.0, [[0.0, 1.0]])
    how = rules(type_order=(1, 0))
    assert who(run_round(state, how, 100.0, [0, 1])) == [("0", 1, [1])]
    assert state.last.restarts[0, 0]
