"""Linear programs over arrays, and the rows that all of Gavel's policies share."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from bfreplay.errors import BfreplayError, InputError, SolverUnavailableError
from bfreplay.systems.gavel.shares import linear_program
from bfreplay.systems.gavel.shares.linear_policies import highest_common_level
from bfreplay.systems.gavel.shares.linear_program import METHODS, LinearProgram, feasible_set, gains_by_sharing
from bfreplay.systems.gavel.shares.share_problem import NO_PAIRS, ShareProblem
from tests.examples import examples

INF = np.inf
BOTH = sorted(METHODS)


def small_problem(rate, n_nodes, *, gang=None, pair=(), pair_rate=()):
    """Types a, b, ...; gangs of 1 where nothing is said."""
    rate = np.array(rate, dtype=np.float64)
    m, n = rate.shape
    return ShareProblem(
        job=np.arange(m),
        type_names=tuple("abcdef"[:n]),
        n_nodes=np.array(n_nodes),
        gang=np.ones(m, dtype=np.int64) if gang is None else np.array(gang),
        rate=rate,
        weight=np.ones(m),
        steps_left=np.full(m, 1000.0),
        age_s=np.zeros(m),
        to_deadline_s=np.full(m, INF),
        price_per_hour=np.ones(n),
        pair=np.array(pair, dtype=np.int64).reshape(-1, 2) if len(pair) else NO_PAIRS,
        pair_rate=np.array(pair_rate, dtype=np.float64).reshape(-1, n, 2),
    )


def bakery(optimum="vertex", cost=(3.0, 2.0)):
    """Maximise 3a + 2b subject to a + b <= 4, a + 3b <= 9, a <= 3: a = 3, b = 1, 11 in all."""
    program = LinearProgram(2, cost, 0.0, [3.0, INF], maximise=True, optimum=optimum)
    program.add_rows(csr_array([[1.0, 1.0], [1.0, 3.0]]), -INF, [4.0, 9.0])
    return program


@pytest.mark.parametrize("optimum", BOTH)
def test_a_program_solved_by_hand(optimum):
    answer = bakery(optimum).solve()
    assert answer.status == "optimal"
    assert answer.x == pytest.approx([3, 1])
    assert answer.objective == pytest.approx(11)


def test_the_dual_value_of_a_row_is_what_one_unit_more_of_it_brings():
    program = bakery()
    dual = program.solve().row_dual
    program.change_rows(0, -INF, [4.1])
    assert program.solve().objective == pytest.approx(11 + 0.1 * dual[0])
    assert dual == pytest.approx([2, 0])  # more of b; the second row has room

    cheapest = LinearProgram(1, [5.0], maximise=False)
    cheapest.add_rows(csr_array([[1.0]]), 2.0, INF)
    assert cheapest.solve().row_dual == pytest.approx([5])


@pytest.mark.parametrize("optimum", BOTH)
def test_minimising_finds_the_other_end(optimum):
    program = LinearProgram(2, [1.0, 2.0], 0.0, 1.0, maximise=False, optimum=optimum)
    program.add_rows(csr_array([[1.0, 1.0]]), 1.5, INF)
    answer = program.solve()
    assert answer.objective == pytest.approx(2)
    assert answer.x == pytest.approx([1, 0.5])


@pytest.mark.parametrize("optimum", BOTH)
def test_each_change_counts_in_the_next_solve(optimum):
    program = bakery(optimum, cost=(1.0, 10.0))
    assert program.solve().objective == pytest.approx(30)  # a = 0, b = 3
    program.change_coefficient(1, 1, 1.0)
    assert program.solve().objective == pytest.approx(40)  # a = 0, b = 4
    program.change_bounds(0.0, [3.0, 1.0])
    assert program.solve().objective == pytest.approx(13)  # a = 3, b = 1
    program.change_rows(0, -INF, 2.0)
    assert program.solve().objective == pytest.approx(11)  # a = 1, b = 1
    first = program.add_rows(csr_array([[1.0]]), -INF, 0.5)
    assert first == 2
    assert program.solve().x == pytest.approx([0.5, 1])


@pytest.mark.parametrize("optimum", BOTH)
def test_what_cannot_be_is_told_apart_from_what_has_no_end(optimum):
    impossible = bakery(optimum)
    impossible.add_rows(csr_array([[1.0, 0.0]]), 5.0, INF)
    answer = impossible.solve()
    assert answer.status == "infeasible"
    assert np.isnan(answer.x).all()
    assert np.isnan(answer.objective)
    impossible.change_rows(2, 0.0, INF)
    assert impossible.solve().objective == pytest.approx(11)

    endless = LinearProgram(2, [1.0, 0.0], maximise=True, optimum=optimum)
    endless.add_rows(csr_array([[1.0, -1.0]]), -INF, 1.0)
    assert endless.solve().status == "unbounded"


@pytest.mark.parametrize("optimum", BOTH)
def test_a_program_without_rows_goes_to_its_bounds(optimum):
    answer = LinearProgram(2, [1.0, -1.0], 0.0, 7.0, maximise=True, optimum=optimum).solve()
    assert answer.x == pytest.approx([7, 0])
    assert answer.row_dual.shape == (0,)


def test_the_central_answer_is_amidst_and_a_vertex_is_not():
    def shared_out(optimum):
        program = LinearProgram(4, np.ones(4), 0.0, 1.0, maximise=True, optimum=optimum)
        program.add_rows(csr_array(np.ones((1, 4))), -INF, 2.0)
        return program.solve().x

    assert shared_out("central") == pytest.approx([0.5] * 4)
    assert sorted(shared_out("vertex")) == pytest.approx([0, 0, 1, 1])


def test_another_status_is_an_error_that_names_it(monkeypatch):
    program = bakery()
    asked = []

    def undecided(method):
        asked.append(method)
        return "kIterationLimit"

    monkeypatch.setattr(program, "run", undecided)
    with pytest.raises(BfreplayError, match="kIterationLimit"):
        program.solve()
    assert len(asked) == 2


def test_where_the_interior_way_fails_a_vertex_is_the_answer(monkeypatch):
    program = bakery("central")
    run = program.run
    monkeypatch.setattr(program, "run", lambda method: "kUnknown" if method == "ipm" else run(method))
    assert program.solve().x == pytest.approx([3, 1])


def test_without_highs_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(linear_program, "_missing", lambda: "highspy is not installed; pip install highspy")
    with pytest.raises(SolverUnavailableError, match="pip install highspy"):
        LinearProgram(1, [1.0], maximise=True)


def test_highs_must_take_what_it_is_given():
    program = bakery()
    for row in ([1.0, 1.0, 1.0], [1e300]):
        with pytest.raises(InputError, match="refuses"):
            program.add_rows(csr_array([row]), 0.0, 1.0)


@settings(max_examples=examples(40))
@given(st.integers(0, 10_000))
def test_both_ways_agree_with_scipy(seed):
    generator = np.random.default_rng(seed)
    n, k = generator.integers(1, 8, size=2)
    matrix = generator.random((k, n)) * (generator.random((k, n)) < 0.7)
    cost, above = generator.normal(size=n), generator.random(k) + 0.1
    expected = linprog(-cost, A_ub=matrix, b_ub=above, bounds=(0, 1))
    for optimum in BOTH:
        program = LinearProgram(n, cost, 0.0, 1.0, maximise=True, optimum=optimum)
        program.add_rows(csr_array(matrix), -INF, above)
        answer = program.solve()
        assert answer.objective == pytest.approx(-expected.fun, rel=1e-9, abs=1e-9)
        assert answer.x.min() >= 0
        assert (matrix @ answer.x <= above + 1e-8).all()


def test_rows_of_nodes_and_time_of_two_jobs_and_their_pair():
    problem = small_problem([[4, 2], [8, 1]], [3, 5], gang=[2, 2], pair=[(0, 1)], pair_rate=[[[3, 6], [1, 0.1]]])
    feasible = feasible_set(problem, with_pairs=True)
    # columns: job 0 on a, b; job 1 on a, b; the pair on a, b
    assert feasible.capacity.toarray().tolist() == [[2, 0, 2, 0, 2, 0], [0, 2, 0, 2, 0, 2]]
    assert feasible.n_nodes.tolist() == [3, 5]
    assert feasible.time.toarray().tolist() == [[1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]]
    assert feasible_set(problem, with_pairs=True).throughput.toarray().tolist() == [
        [4, 2, 0, 0, 3, 1],
        [0, 0, 8, 1, 6, 0.1],
    ]
    # on a 3/4 + 6/8 > 1; on b 1/2 + 0.1/1 < 1: in turns they do more
    assert feasible.upper.tolist() == [1, 1, 1, 1, 1, 0]

    alone = feasible_set(problem, with_pairs=False)
    assert alone.n_columns == 4
    assert alone.capacity.toarray().tolist() == [[2, 0, 2, 0], [0, 2, 0, 2]]
    assert alone.throughput.toarray().tolist() == [[4, 2, 0, 0], [0, 0, 8, 1]]


def test_a_pair_of_which_one_stands_still_gains_nothing_by_sharing():
    problem = small_problem([[4, 4, 0], [8, 8, 8]], [1, 1, 1], pair=[(0, 1)], pair_rate=[[[4, 0], [2, 4], [1, 1]]])
    # the second is exactly as good as turns; on the third the first job runs beside another only
    assert gains_by_sharing(problem).tolist() == [[False, False, True]]


@settings(max_examples=examples(25))
@given(st.integers(0, 10_000))
def test_leaving_out_pairs_that_gain_nothing_costs_nothing(seed):
    generator = np.random.default_rng(seed)
    pair = list(itertools.combinations(range(4), 2))
    rate = generator.random((4, 2)) + 0.1
    pair_rate = rate[np.array(pair)].transpose(0, 2, 1) * generator.random((6, 2, 2))
    problem = small_problem(rate, [1, 1], pair=pair, pair_rate=pair_rate)
    throughput = feasible_set(problem, with_pairs=True).throughput
    found = highest_common_level(problem, np.ones(4), with_pairs=True, optimum="vertex")
    assert found.throughput(problem).min() == pytest.approx(found.objective)
    feasible = feasible_set(problem, with_pairs=True)
    program = LinearProgram(feasible.n_columns + 1, [0.0] * feasible.n_columns + [1.0], maximise=True)
    feasible.add_to(program)
    program.add_rows(csr_array(np.hstack([throughput.toarray(), -np.ones((4, 1))])), 0.0, INF)
    assert program.solve().objective == pytest.approx(found.objective)


def test_a_type_without_nodes_gets_no_share():
    problem = small_problem([[9, 1], [9, 1]], [0, 1])
    feasible = feasible_set(problem, with_pairs=False)
    assert feasible.upper.tolist() == [0, 1, 0, 1]
    shares = feasible.time_shares(np.array([-1e-12, 0.5, 0.0, 1 + 1e-12, 99.0]), 3.0)
    assert shares.share.tolist() == [[0, 0.5], [0, 1]]
    assert shares.pair_share.shape == (0, 2)
    assert shares.objective == 3.0
