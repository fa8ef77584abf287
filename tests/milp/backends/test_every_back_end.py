"""What every back end must do, by hand-made models and by random decisions."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from bfreplay.milp.backends import Backend, BackendAnswer, SolveOptions, version_of
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.judgement import judge
from bfreplay.milp.milp_solver import refused
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import ProcessStatus, Quality, SolverStatus
from tests.milp.backends.small_models import INF, holds, linear, market_split
from tests.milp.small_problems import optimum_by_enumeration, problem_of_two, problems

OPTIONS = SolveOptions(30.0)
WITHOUT_AN_ANSWER = (SolverStatus.NO_SOLUTION, SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED)


def answer_of(isolated: IsolatedBackend, model: LinearModel, options: SolveOptions = OPTIONS) -> BackendAnswer:
    ran = isolated.solve(model, options)
    assert ran.process_status is ProcessStatus.OK, ran.message
    assert ran.answer is not None, ran.message
    answer = ran.answer
    assert answer.build_s >= 0
    assert answer.solve_s >= 0
    assert not math.isinf(answer.objective)
    assert not math.isnan(answer.bound)
    if answer.x is None:
        assert math.isnan(answer.objective)
    else:
        assert answer.x.shape == (model.n_columns,)
        assert answer.x.dtype == np.float64
        assert holds(model, answer.x)
        worth = float(model.objective @ answer.x) + model.objective_constant
        assert answer.objective == pytest.approx(worth, rel=1e-6, abs=1e-6 * np.abs(model.objective).max(initial=0.0))
    if answer.solver_status in WITHOUT_AN_ANSWER:
        assert answer.x is None
    return answer


def assert_optimum(isolated: IsolatedBackend, backend: Backend, model: LinearModel, optimum: float, x=None) -> None:
    """The model has this optimum, or the back end says that it does not take continuous columns."""
    if not backend.capabilities.continuous and not model.is_integer.all():
        ran = isolated.solve(model, OPTIONS)
        assert ran.process_status is ProcessStatus.REFUSED
        assert backend.name in ran.message
        assert "continuous" in ran.message
        return
    answer = answer_of(isolated, model)
    assert answer.solver_status is SolverStatus.OPTIMAL, answer.message
    assert answer.objective == pytest.approx(optimum, rel=1e-7)
    assert answer.bound == pytest.approx(optimum, rel=1e-6)
    if x is not None:
        np.testing.assert_allclose(answer.x, x, atol=1e-6)


def infinite_bounds_are_refused(isolated: IsolatedBackend, backend: Backend, model: LinearModel) -> bool:
    """CP-SAT alone takes finite bounds only, and says so."""
    if backend.name != "cp-sat":
        return False
    ran = isolated.solve(model, OPTIONS)
    assert ran.process_status is ProcessStatus.REFUSED
    assert "cp-sat takes finite bounds only, and x" in ran.message
    return True


def test_it_is_what_the_protocol_and_the_registry_say(backend, backend_name):
    assert isinstance(backend, Backend)
    assert backend.name == backend_name
    assert backend.capabilities.licence
    assert any(character.isdigit() for character in version_of(backend))


def test_whole_columns(isolated, backend):
    model = linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10])
    assert_optimum(isolated, backend, model, 11, [3, 1])


def test_whole_columns_that_the_relaxation_gets_wrong(isolated, backend):
    """The relaxation is worth 10.5 at (1.5, 3)."""
    model = linear([1, 3], [(-INF, {0: 2, 1: 1}, 6), (-INF, {0: -2, 1: 4}, 9)])
    assert_optimum(isolated, backend, model, 8, [2, 2])


def test_whole_and_continuous_columns(isolated, backend):
    model = linear([3, 2], [(-INF, {0: 1, 1: 1}, 3.7)], upper=[3.5, 1.2], whole=[True, False])
    assert_optimum(isolated, backend, model, 10.4, [3, 0.7])


def test_continuous_columns_only(isolated, backend):
    model = linear([3, 2], [(-INF, {0: 1, 1: 1}, 3.7)], upper=[3.5, 1.2], whole=False)
    assert_optimum(isolated, backend, model, 10.9, [3.5, 0.2])


def test_an_equation(isolated, backend):
    assert_optimum(isolated, backend, linear([1, 1], [(7, {0: 2, 1: 3}, 7)], upper=5), 3, [2, 1])


def test_a_row_with_two_sides_holds_on_both(isolated, backend):
    model = linear([3, 2], [(-INF, {0: 1}, 9), (2, {0: 1, 1: 2}, 5), (-INF, {1: 1}, 9)])
    assert_optimum(isolated, backend, model, 15, [5, 0])
    assert_optimum(isolated, backend, replace(model, objective=-model.objective), -2, [0, 1])


def test_rows_with_one_side_and_rows_without_any(isolated, backend):
    model = linear([-1, -1], [(-INF, {0: 1, 1: 1}, INF), (3, {0: 1}, INF), (-INF, {1: -1}, -2), (-INF, {}, INF)])
    assert_optimum(isolated, backend, model, -5, [3, 2])


def test_a_constant_in_the_objective(isolated, backend):
    assert_optimum(isolated, backend, linear([3, 2], [(-INF, {0: 1, 1: 1}, 4)], upper=3, constant=100), 111, [3, 1])


def test_an_objective_of_zeros(isolated, backend):
    assert_optimum(isolated, backend, linear([0, 0], [(3, {0: 1, 1: 1}, 3)], constant=5), 5)


def test_negative_bounds(isolated, backend):
    model = linear([1, -1], [(-4, {0: 1, 1: 1}, INF)], lower=[-5, -3], upper=[-2, 4])
    assert_optimum(isolated, backend, model, 0, [-2, -2])


def test_bounds_that_are_not_whole(isolated, backend):
    assert_optimum(isolated, backend, linear([1, -1], lower=[0.5, 0.5], upper=[2.5, 2.5]), 1, [2, 1])


def test_infinite_upper_bounds(isolated, backend):
    model = linear([2, 1], [(-INF, {0: 1, 1: 1}, 700), (-INF, {0: 1}, 200)], upper=INF)
    if not infinite_bounds_are_refused(isolated, backend, model):
        assert_optimum(isolated, backend, model, 900, [200, 500])


def test_infinite_lower_bounds(isolated, backend):
    model = linear([-1, -2], [(-30, {0: 1}, INF), (-5, {0: 1, 1: 1}, INF)], lower=-INF, upper=[INF, 400])
    if not infinite_bounds_are_refused(isolated, backend, model):
        # worth is at most -(a) - 2 (-5 - a) = 10 + a, and a is at most what b allows: a = -5 - b
        unbounded = answer_of(isolated, model)
        assert unbounded.solver_status is SolverStatus.UNBOUNDED, unbounded.message
        assert_optimum(isolated, backend, replace(model, column_upper=np.array([25.0, 400.0])), 35, [25, -30])


def test_an_empty_row_that_holds(isolated, backend):
    assert_optimum(isolated, backend, linear([1], [(-1, {}, 2), (0, {}, 0), (-INF, {0: 1}, 4)]), 4)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, INF), (-INF, -1)])
def test_an_empty_row_that_demands_something_is_infeasible(isolated, low, high):
    """What ``choices`` builds for a job whose change limit allows no count at all."""
    model = linear([1], [(low, {}, high), (-INF, {0: 1}, 4)])
    assert answer_of(isolated, model).solver_status is SolverStatus.INFEASIBLE


def test_no_rows_at_all(isolated, backend):
    assert_optimum(isolated, backend, linear([3, -2], constant=1), 31, [10, 0])


def test_no_columns_at_all(isolated, backend):
    assert_optimum(isolated, backend, linear([], [(-1, {}, 1)], constant=7), 7, [])
    assert answer_of(isolated, linear([], [(1, {}, 1)])).solver_status is SolverStatus.INFEASIBLE


@pytest.mark.parametrize(
    "model",
    [
        linear([1, 1], [(5, {0: 1, 1: 1}, INF), (-INF, {0: 1, 1: 1}, 4)]),
        linear([1, 1], [(5, {0: 1, 1: 1}, 4)]),
        linear([1, 1], [(3, {0: 2, 1: 2}, 3)]),
        linear([1, 1], lower=[0, 5], upper=[3, 4]),
        linear([1, 1], lower=[0.2, 0], upper=[0.8, 1]),
        linear([0, 0], [(2, {0: 1, 1: 1}, INF)], upper=[1, 0]),
    ],
    ids=["rows", "sides", "integrality", "bounds", "nothing whole", "bounds and row"],
)
def test_an_infeasible_model_is_called_infeasible_without_an_answer(isolated, model):
    answer = answer_of(isolated, model)
    assert answer.solver_status is SolverStatus.INFEASIBLE, answer.message
    assert answer.x is None
    assert math.isnan(answer.objective)


@pytest.mark.parametrize("whole", [True, False])
def test_an_unbounded_model_is_called_unbounded(isolated, backend, whole):
    model = linear([1, 1], [(0, {0: 1, 1: -1}, 3)], upper=INF, whole=whole)
    if not whole and not backend.capabilities.continuous:
        pytest.skip(f"{backend.name} takes no continuous columns, as declared")
    if not infinite_bounds_are_refused(isolated, backend, model):
        answer = answer_of(isolated, model)
        assert answer.solver_status is SolverStatus.UNBOUNDED, answer.message
        assert answer.x is None


@pytest.mark.parametrize("factor", [1e-7, 1.0, 1e7])
def test_the_size_of_the_objective_does_not_matter(isolated, backend, factor):
    """(1, 1, 1, 0) and (0, 1, 1, 1) differ by a hundred-thousandth of the largest coefficient."""
    worth = np.array([1.00001, 2.7, 1.9, 1.0]) * factor
    model = linear(worth.tolist(), [(-INF, dict.fromkeys(range(4), 1.0), 3)], upper=1, constant=2 * factor)
    assert_optimum(isolated, backend, model, (1.00001 + 2.7 + 1.9 + 2) * factor, [1, 1, 1, 0])


def test_differences_of_a_millionth_are_told_apart(isolated):
    """With CBC's own increment of 1e-5 the first of these columns found would be called optimal."""
    worth = 1.0 + 2e-6 * np.random.default_rng(1).permutation(40)
    model = linear(worth.tolist(), [(-INF, dict.fromkeys(range(40), 1.0), 1)], upper=1)
    assert answer_of(isolated, model).objective == pytest.approx(float(worth.max()), rel=1e-7)


def curve_by_set(kind: int) -> LinearModel:
    """Weights on (0, 0), (1, -1), (2, 3), at 1: worth -1 by neighbours, 1.5 by the two ends."""
    return linear(
        [0, -1, 3],
        [(1, {0: 1, 1: 1, 2: 1}, 1), (1, {1: 1, 2: 2}, 1)],
        upper=1,
        whole=False,
        sets=[(kind, [0, 1, 2], [0.0, 1.0, 2.0])],
    )


def test_at_most_two_neighbours_of_an_sos2_are_used(isolated, backend):
    if backend.capabilities.sos:
        assert_optimum(isolated, backend, curve_by_set(2), -1, [0, 1, 0])


def test_at_most_one_member_of_an_sos1_is_used(isolated, backend):
    if backend.capabilities.sos:
        model = linear(
            [3, 4, 3], [(-INF, {0: 1, 1: 1, 2: 1}, 5)], upper=[3, 1, 2], whole=False, sets=[(1, [0, 1, 2], [1, 2, 3])]
        )
        assert_optimum(isolated, backend, model, 9, [3, 0, 0])


def test_several_sets_of_either_kind(isolated, backend):
    if backend.capabilities.sos:
        two = linear(
            [1, 2, 3, 2, 9, 2],
            upper=1,
            whole=False,
            sets=[(2, [0, 1, 2], [1, 2, 3]), (1, [3, 4], [1, 2]), (2, [5, 0], [1, 2])],
        )
        assert_optimum(isolated, backend, two, 5 + 9 + 2, [0, 1, 1, 0, 1, 1])


def test_sets_are_refused_by_name_where_they_are_not_taken(isolated, backend):
    if not backend.capabilities.sos:
        ran = isolated.solve(replace(curve_by_set(2), is_integer=np.ones(3, dtype=bool)), OPTIONS)
        assert ran.process_status is ProcessStatus.REFUSED
        assert f"{backend.name} takes no special ordered sets" in ran.message


@pytest.mark.parametrize("limit_s", [0.05, 0.5])
def test_a_time_limit_is_a_status_and_bounds_stay_bounds(isolated, limit_s):
    """CBC's own bound was below the optimum, and of the wrong sign, in answers that it had not proven."""
    model = market_split(exact=False)
    answer = answer_of(isolated, model, SolveOptions(limit_s))
    assert answer.solver_status in (SolverStatus.FEASIBLE, SolverStatus.NO_SOLUTION), answer.message
    assert answer.bound >= -1e-6  # the optimum


def test_almost_no_time_gives_no_optimum_that_was_not_proven(isolated, backend):
    model = formulation_of("choices").build(problem_of_two())
    answer = answer_of(isolated, model, SolveOptions(1e-6))
    if answer.solver_status is SolverStatus.OPTIMAL:
        assert answer.objective == pytest.approx(12.0)
    else:
        assert answer.solver_status in (SolverStatus.NO_SOLUTION, SolverStatus.FEASIBLE)


def test_a_start_is_used_where_that_is_declared(isolated, backend):
    """Without its start nobody finds a feasible point of this model in time."""
    if backend.capabilities.warm_start:
        answer = answer_of(isolated, market_split(exact=True), SolveOptions(1.0))
        assert answer.x is not None, answer.message


@pytest.mark.parametrize(
    "start",
    [[3, 1], [0, 1], [0, 0], [3, 10], [-7, 1e6], [0.5, 0.5]],
    ids=["optimal", "feasible", "breaks a row", "breaks another", "breaks bounds", "fractional"],
)
def test_no_start_changes_the_optimum(isolated, backend, start):
    model = linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10], start=start)
    assert_optimum(isolated, backend, model, 11, [3, 1])


def test_a_start_does_not_make_an_infeasible_model_feasible(isolated):
    model = linear([1, 1], [(3, {0: 2, 1: 2}, 3)], start=[1, 0])
    assert answer_of(isolated, model).solver_status is SolverStatus.INFEASIBLE


def test_the_same_model_and_seed_give_the_same_answer(isolated):
    model = formulation_of("choices").build(problem_of_two())
    for seed in (0, 7, 2**31 - 2):
        options = SolveOptions(30.0, seed=seed)
        first, second = answer_of(isolated, model, options), answer_of(isolated, model, options)
        np.testing.assert_array_equal(first.x, second.x)
        assert (first.objective, first.bound) == (second.objective, second.bound)


def test_several_threads_and_one_again(isolated):
    model = formulation_of("choices").build(problem_of_two())
    for threads in (2, 1, 2):
        assert answer_of(isolated, model, SolveOptions(30.0, threads=threads)).objective == pytest.approx(12.0)


def test_a_gap_bounds_what_may_be_called_optimal(isolated):
    rng = np.random.default_rng(2)
    weights, worth = rng.integers(10, 60, 30), rng.integers(10, 60, 30)
    model = linear(worth.tolist(), [(-INF, dict(enumerate(weights.tolist())), 300)], upper=1)
    best = answer_of(isolated, model).objective
    rough = answer_of(isolated, model, SolveOptions(30.0, relative_gap=0.2))
    assert rough.solver_status is SolverStatus.OPTIMAL
    assert best / 1.25 - 1e-6 <= rough.objective <= best + 1e-6
    assert rough.bound >= best - 1e-6


SILENT = """
import sys
from bfreplay.milp.backends import SolveOptions, backend_of
from tests.milp.backends.small_models import linear, market_split
backend = backend_of(sys.argv[1])
assert backend.available() == ""
backend.solve(linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10]), SolveOptions(30.0))
backend.solve(linear([3, 2], [(1, {0: 1, 1: 1}, 4)], upper=[3, 10], start=[9, 9]), SolveOptions(30.0))
backend.solve(linear([1, 1], [(3, {0: 2, 1: 2}, 3)]), SolveOptions(30.0))
backend.solve(market_split(exact=False), SolveOptions(0.2))
"""


def test_nothing_reaches_standard_output_or_error(backend, backend_name):
    done = subprocess.run(
        [sys.executable, "-c", SILENT, backend_name], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("formulation_name", list(FORMULATIONS.built_in))
def test_random_decisions_get_their_optimum(isolated, backend, formulation_name):
    formulation = formulation_of(formulation_name)
    reason = refused(formulation, backend)
    if reason:
        pytest.skip(f"{formulation_name}: {reason}")

    @settings(max_examples=12)
    @given(problem=problems())
    def gets_its_optimum(problem):
        posed = problem.held_to_published_limit() if formulation.change_limited else problem
        best, counts = optimum_by_enumeration(posed)
        model = formulation.build(problem)
        if not backend.capabilities.warm_start:
            model = replace(model, start=None)
        answer = answer_of(isolated, model)
        if counts is None:
            assert answer.solver_status is SolverStatus.INFEASIBLE, answer.message
            return
        verdict = judge(posed, formulation, model, answer)
        assert verdict.quality is Quality.PROVEN, verdict.message
        assert verdict.objective == pytest.approx(best, rel=1e-6)

    gets_its_optimum()
