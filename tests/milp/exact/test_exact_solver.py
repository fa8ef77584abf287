"""The exact solver against the plain dynamic program and against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.decisions import optimum_by_dynamic_program
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.exact.relaxation import concave_hulls, critical_price
from bfreplay.milp.exact.solver import PROOF_TOLERANCE, optimal_counts
from bfreplay.milp.judgement import Judgement, against_referee
from bfreplay.milp.problem import AllocationProblem, published_change_limit
from bfreplay.milp.solution import ProcessStatus, Quality, SolverStatus
from bfreplay.milp.verify import objective_of, violation
from tests.examples import examples
from tests.milp.small_problems import by_count_problems, left_on_seven


def _tables(max_jobs: int, max_count: int):
    """Tables of any shape, with forbidden counts, repeated values and several magnitudes."""
    numbers = st.one_of(st.integers(-3, 6).map(float), st.floats(-1e7, 1e7, allow_nan=False), st.just(-np.inf))
    return st.integers(1, max_count).flatmap(
        lambda k: st.lists(
            st.lists(numbers, min_size=k, max_size=k).map(lambda row: [0.0, *row]), min_size=1, max_size=max_jobs
        )
    )


@settings(deadline=None, max_examples=examples(400))
@given(table=_tables(6, 9), capacity=st.integers(0, 30))
def test_the_optimum_is_that_of_the_dynamic_program(table, capacity):
    value = np.array(table)
    counts, objective, bound, stage = optimal_counts(value, capacity, PROOF_TOLERANCE)
    _, expected = optimum_by_dynamic_program(value, capacity)
    assert stage >= 0
    scale = max(1.0, float(np.abs(value[np.isfinite(value)]).max()))
    assert objective == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)
    assert counts.sum() <= capacity
    assert value[np.arange(len(table)), counts].sum() == pytest.approx(objective, abs=1e-9 * scale)
    assert bound >= objective - 1e-9 * scale


@settings(deadline=None, max_examples=examples(200))
@given(table=_tables(3, 4), capacity=st.integers(0, 9))
def test_the_optimum_is_that_of_trying_everything(table, capacity):
    value = np.array(table)
    best = max(
        sum(value[j, n] for j, n in enumerate(counts))
        for counts in itertools.product(range(value.shape[1]), repeat=value.shape[0])
        if sum(counts) <= capacity
    )
    _, objective, _, _ = optimal_counts(value, capacity, PROOF_TOLERANCE)
    assert objective == pytest.approx(best, rel=1e-9, abs=1e-3)


@settings(deadline=None, max_examples=examples(400))
@given(problem=by_count_problems())
@example(problem=left_on_seven())
@example(problem=left_on_seven(start=40.0))
@example(problem=left_on_seven(start=40.0, staying=np.inf))
def test_the_optimum_of_losses_by_count_is_that_of_trying_everything(problem):
    """Each count's worth is worked out here from gains, losses and bounds, without the value table."""
    best, limit = -np.inf, problem.capacity if problem.change_limit is None else problem.change_limit
    for counts in itertools.product(range(problem.gain.shape[1]), repeat=problem.n_jobs):
        bounds = zip(counts, problem.current, problem.min_nodes, problem.max_nodes, strict=True)
        is_allowed = all(abs(n - now) <= limit and (n == 0 or low <= n <= high) for n, now, low, high in bounds)
        if is_allowed and sum(counts) <= problem.capacity:
            best = max(best, sum(problem.gain[j, n] - problem.loss[j, n] for j, n in enumerate(counts)))
    solution = ExactSolver().solve(problem)
    if best == -np.inf:
        assert solution.solver_status is SolverStatus.INFEASIBLE
    else:
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9 * np.abs(problem.gain).max())
        assert violation(problem, solution.counts) == ""


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_on_decisions_of_realistic_shape_is_that_of_the_dynamic_program(seed):
    rng = np.random.default_rng(seed)
    n_jobs, width, capacity = 20, 65, int(rng.integers(30, 900))
    single = rng.uniform(1e3, 1e4, n_jobs)[:, None]
    gain = 120 * single * np.arange(width) ** rng.uniform(0.7, 1.05, n_jobs)[:, None]
    current = np.minimum(rng.integers(0, 65, n_jobs), capacity // n_jobs)
    rate = gain[np.arange(n_jobs), current] / 120
    problem = AllocationProblem(
        current, rng.integers(1, 5, n_jobs), np.full(n_jobs, 64), gain, 18 * rate, 11 * rate, capacity
    )
    _, expected = optimum_by_dynamic_program(problem.value, capacity)
    solution = ExactSolver().solve(problem)
    assert solution.objective == pytest.approx(expected, rel=1e-12)
    assert violation(problem, solution.counts) == ""
    assert solution.quality is Quality.PROVEN
    assert solution.gap < 1e-9


def test_the_hull_of_a_table_with_a_dent_skips_the_dent():
    value = np.array([[0.0, 1.0, 5.0, 6.0, 6.5, 6.0]])
    points, worth, slope, start, stop = concave_hulls(value, 5)
    assert points[start[0] : stop[0]].tolist() == [0, 2, 3, 4]  # 1 lies below the chord; 5 is past the maximum
    assert worth.tolist() == [0.0, 5.0, 6.0, 6.5]
    assert slope[1:].tolist() == [2.5, 1.0, 0.5]


def test_the_critical_price_is_the_slope_of_the_first_segment_that_does_not_fit():
    value = np.array([[0.0, 10.0, 18.0], [0.0, 9.0, 11.0]])
    hulls = concave_hulls(value, 4)
    price, broken, vertex = critical_price(hulls, 2)
    assert (price, broken) == (8.0, 0)
    assert [hulls.points[v] for v in vertex] == [1, 1]


def _two_jobs(**changes: object) -> AllocationProblem:
    fields: dict[str, object] = {
        "current": np.array([2, 0]),
        "min_nodes": np.array([1, 2]),
        "max_nodes": np.array([3, 3]),
        "gain": np.array([[0.0, 10.0, 16.0, 18.0], [0.0, 7.0, 14.0, 21.0]]),
        "scale_up_loss": np.array([1.0, 0.0]),
        "scale_down_loss": np.array([5.0, 0.0]),
        "capacity": 3,
    }
    return AllocationProblem(**{**fields, **changes})


def test_a_decision_worked_out_by_hand():
    # keep 2 (16), or give one up for 2 of the other: 10 - 5 + 14 = 19, or give all up: 0 - 5 + 21 = 16; grow: 17
    solution = ExactSolver().solve(_two_jobs())
    assert solution.counts.tolist() == [1, 2]
    assert solution.objective == 19.0


def test_a_change_limit_forbids_larger_changes():
    solution = ExactSolver().solve(_two_jobs(change_limit=1))
    assert solution.counts.tolist() == [3, 0]
    assert solution.objective == 17.0


def test_the_published_limit_is_half_of_the_idle_nodes_rounded_up():
    assert [published_change_limit(n) for n in (0, 1, 2, 3, 4, 5)] == [0, 1, 1, 2, 2, 3]
    limited = ExactSolver(published_limit=True).solve(_two_jobs(current=np.array([0, 0])))
    free = ExactSolver().solve(_two_jobs(current=np.array([0, 0]), change_limit=2))
    assert limited.objective == free.objective


def test_a_decision_without_a_feasible_answer_says_so():
    # 3 nodes held, 5 needed; neither stopping nor growing is within the limit
    problem = _two_jobs(current=np.array([2, 0]), min_nodes=np.array([3, 2]), change_limit=0)
    solution = ExactSolver().solve(problem)
    assert solution.counts is None
    assert solution.solver_status is SolverStatus.INFEASIBLE
    assert solution.quality is Quality.NONE
    assert solution.process_status is ProcessStatus.OK


def test_no_job_at_all_is_worth_nothing():
    empty = np.zeros(0, dtype=np.int64)
    problem = AllocationProblem(empty, empty, empty, np.zeros((0, 1)), np.zeros(0), np.zeros(0), 5)
    solution = ExactSolver().solve(problem)
    assert solution.counts.tolist() == []
    assert solution.objective == 0.0


def test_objective_of_counts_that_break_a_bound_is_minus_infinity():
    problem = _two_jobs()
    assert objective_of(problem, np.array([0, 1])) == -np.inf  # below min_nodes
    assert objective_of(problem, np.array([2, 2])) == -np.inf  # above capacity
    assert "4 of 3 idle nodes" in violation(problem, np.array([2, 2]))
    assert "job 1 gets 1 nodes" in violation(problem, np.array([0, 1]))


def test_the_same_problem_gets_the_same_answer_among_equals():
    gain = np.tile(10.0 * np.arange(5), (4, 1))
    zero = np.zeros(4, dtype=np.int64)
    problem = AllocationProblem(zero, zero + 1, zero + 4, gain, np.zeros(4), np.zeros(4), 6)
    answers = {tuple(ExactSolver().solve(problem).counts.tolist()) for _ in range(5)}
    assert answers == {(4, 2, 0, 0)}  # first come, first served


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_an_interrupt_that_compiled_code_hides_comes_out_as_one(monkeypatch, link):
    def interrupted(*_):
        error = SystemError("CPUDispatcher(...) returned a result with an exception set")
        setattr(error, link, KeyboardInterrupt())
        raise error

    monkeypatch.setattr("bfreplay.milp.exact.solver.optimal_counts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ExactSolver().solve(_two_jobs())


def test_another_system_error_stays_one(monkeypatch):
    def broken(*_):
        raise SystemError("something else")

    monkeypatch.setattr("bfreplay.milp.exact.solver.optimal_counts", broken)
    with pytest.raises(SystemError, match="something else"):
        ExactSolver().solve(_two_jobs())


_BIG = 1.7e308
_SOUND_ROW = [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"gain": np.array([[0.0, np.inf, 1.0, 1.0], _SOUND_ROW])},
        {"gain": np.array([_SOUND_ROW, [0.0, 1.0, np.nan, 3.0]])},
        {"gain": np.array([_SOUND_ROW, [0.0, 1.0, np.nan, 3.0]]), "capacity": 100},
        {"gain": np.full((2, 4), _BIG), "capacity": 100},  # their sum is too large
        {"gain": np.array([[-_BIG, -_BIG, 1.0, _BIG], [-_BIG, -_BIG, 5.0, _BIG]])},  # their differences are
    ],
)
def test_numbers_that_overflow_are_an_error_not_an_optimum(changes):
    solution = ExactSolver().solve(_two_jobs(**changes))
    assert solution.solver_status is SolverStatus.ERROR
    assert solution.process_status is ProcessStatus.OK
    assert solution.quality is Quality.NONE
    assert solution.counts is None
    assert "too large" in solution.message


def test_large_numbers_that_do_not_overflow_are_solved():
    gain = np.array([[0.0, 0.3, 0.6, 1.0], [0.0, 0.3, 0.6, 1.0]]) * 1e289
    solution = ExactSolver().solve(_two_jobs(gain=gain))
    assert solution.quality is Quality.PROVEN
    assert solution.objective == pytest.approx(1e289)


def test_numbers_at_the_edge_of_what_a_float_holds_end():
    gain = np.array([[0.0, 3.0, 1.0, 4.0], [0.0, 2.0, 5.0, 6.0]]) * 5e-324
    solution = ExactSolver().solve(_two_jobs(gain=gain, scale_up_loss=np.zeros(2), scale_down_loss=np.zeros(2)))
    assert solution.quality is Quality.PROVEN


def test_curves_whose_hulls_would_overflow_are_an_error_not_an_optimum():
    gain = 1e305 * np.random.default_rng(0).random((2, 601)).cumsum(axis=1)
    bounds = (np.ones(2, dtype=np.int64), np.full(2, 600))
    problem = AllocationProblem(np.zeros(2, dtype=np.int64), *bounds, gain, np.zeros(2), np.zeros(2), 700)
    assert ExactSolver().solve(problem).solver_status is SolverStatus.ERROR


def test_an_optimum_that_no_referee_could_check_is_not_called_proven():
    judged = against_referee(
        _two_jobs(),
        Judgement(Quality.PROVEN, np.array([1, 2]), None, 19.0, 19.0),
        ExactSolver().solve(_two_jobs(gain=np.full((2, 4), np.nan))),
    )
    assert judged.quality is Quality.FEASIBLE
    assert "could not check" in judged.message
