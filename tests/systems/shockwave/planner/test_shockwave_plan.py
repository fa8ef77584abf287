"""Plans of a window: against brute force."""

import itertools
import math
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.errors import InputError, SolverUnavailableError
from bfreplay.milp.backends import BackendAnswer, SolveOptions, backend_of
from bfreplay.milp.backends.backend import OR_TOOLS
from bfreplay.milp.backends.highs import Highs
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus
from bfreplay.systems.shockwave.planner.options import PlannerOptions
from bfreplay.systems.shockwave.planner.problem import (
    Level,
    PlanProblem,
    RoundValues,
    counts_model,
    least_rounds,
)
from bfreplay.systems.shockwave.planner.solve import Plan, PlanSolver, backfill, pack_rounds
from tests.examples import examples
from tests.parity.shockwave_plan_records import HEAVIEST
from tests.systems.shockwave.planner.plans_by_definition import KNOTS, is_in_time, objective


def problem_of(
    jobs: list[tuple[int, int, int, float, float, float]], n_rounds: int, n_gpus: int, **more
) -> PlanProblem:
    """Jobs as (gang, epochs, done, seconds an epoch, remaining, target)."""
    gang, epochs, done, epoch_s, remaining_s, target_s = map(np.array, zip(*jobs, strict=True))
    given = {
        "elapsed_s": np.zeros(len(jobs)),
        "k": 1e-3,
        "priority_power": 5.0,
        "rhomax": 1.0,
        "log_knots": KNOTS,
        **more,
    }
    return PlanProblem(
        gang=gang,
        n_epochs=epochs,
        epochs_done=done,
        mean_epoch_s=epoch_s.astype(float),
        remaining_s=remaining_s.astype(float),
        remaining_of_weights_s=remaining_s.astype(float),
        target_s=target_s.astype(float),
        n_rounds=n_rounds,
        round_s=100.0,
        n_gpus=n_gpus,
        **given,
    )


def plan_of(problem: PlanProblem, **options) -> Plan:
    return PlanSolver(PlannerOptions(relative_gap=0.0, **options)).plan(problem)


def all_runs(problem: PlanProblem) -> list[np.ndarray]:
    """Every way to fill the rounds of a tiny window."""
    columns = [c for c in itertools.product([False, True], repeat=problem.n_jobs) if problem.gang @ c <= problem.n_gpus]
    return [np.array(filled).T for filled in itertools.product(columns, repeat=problem.n_rounds)]


@st.composite
def tiny_problems(draw: st.DrawFn) -> PlanProblem:
    n_jobs, n_rounds, n_gpus = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    jobs = []
    for _ in range(n_jobs):
        epochs = draw(st.integers(1, 9))
        epoch_s = draw(st.sampled_from([15.0, 40.0, 70.0, 130.0]))
        done = draw(st.integers(0, epochs))
        remaining_s = max(1.0, (epochs - done) * epoch_s * draw(st.sampled_from([0.6, 1.0, 1.3])))
        target_s = draw(st.sampled_from([90.0, 240.0, 500.0, 900.0, 2000.0]))
        jobs.append((draw(st.sampled_from([1, 1, 2, 4])), epochs, done, epoch_s, remaining_s, target_s))
    return problem_of(
        jobs,
        n_rounds,
        n_gpus,
        elapsed_s=np.full(n_jobs, draw(st.sampled_from([0.0, 150.0, 400.0]))),
        k=draw(st.sampled_from([0.0, 1e-3, 1e-1, 1e5])),
        rhomax=draw(st.sampled_from([1.0, 2.0])),
    )


@settings(max_examples=examples(300))
@given(tiny_problems())
def test_plans_are_as_good_as_brute_force(problem: PlanProblem) -> None:
    plan = plan_of(problem)
    assert (problem.gang @ plan.runs <= problem.n_gpus).all()
    ways = all_runs(problem)
    in_time = [runs for runs in ways if is_in_time(problem, runs)]
    assert (plan.calls[0].status is SolverStatus.OPTIMAL) == bool(in_time)
    equal = np.ones(problem.n_jobs)
    if in_time:
        assert is_in_time(problem, plan.runs)
        ways, weight = in_time, equal
    else:
        late = problem.rho > problem.rhomax
        weight = np.where(late, problem.rho**problem.priority_power, 1.0)
        urgent = late & (problem.remaining_s < problem.round_s)
        if urgent.any():
            first = [objective(problem, np.where(urgent, weight, 0.0), 0.0, runs) for runs in ways]
            found = objective(problem, np.where(urgent, weight, 0.0), 0.0, plan.runs)
            assert found == pytest.approx(max(first), rel=1e-6, abs=1e-6)
            ways = [runs for runs, value in zip(ways, first, strict=True) if value >= max(first) - 1e-9]
    best = max(objective(problem, weight, problem.k, runs) for runs in ways)
    found = objective(problem, weight, problem.k, plan.runs)
    assert found == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert plan.calls[-2].objective == pytest.approx(found, rel=1e-9, abs=1e-9)
    # utilities count beside a k that drowns them
    shortest = [
        r
        for r in ways
        if objective(problem, 0 * weight, 1.0, r) >= objective(problem, 0 * weight, 1.0, plan.runs) - 1e-9
    ]
    if problem.k == 1e5:
        most = max(objective(problem, weight, 0.0, runs) for runs in shortest)
        assert objective(problem, weight, 0.0, plan.runs) == pytest.approx(most, rel=1e-6, abs=1e-6)


@settings(max_examples=examples(100))
@given(tiny_problems())
def test_rounds_are_in_the_best_order(problem: PlanProblem) -> None:
    plan = plan_of(problem, published_weights=True)
    weight = problem.published_weights if plan.calls[0].status is SolverStatus.INFEASIBLE else np.ones(problem.n_jobs)
    if weight.max() > HEAVIEST:
        return
    counts = plan.runs.sum(axis=1)

    def lateness(runs: np.ndarray) -> float:
        return sum(w * np.flatnonzero(r).mean() for w, r in zip(weight, runs, strict=True) if r.any())

    best = min(lateness(runs) for runs in all_runs(problem) if (runs.sum(axis=1) == counts).all())
    assert plan.calls[-1].objective == pytest.approx(lateness(plan.runs), rel=1e-9)
    assert lateness(plan.runs) == pytest.approx(best, rel=1e-6, abs=1e-9)


def test_counts_that_fit_in_sum_but_in_no_packing_are_planned_by_rounds() -> None:
    """Two rounds of 2 GPUs: the wide job for one of them and a narrow one for both take 4, but cannot be packed."""
    wide, narrow = (2, 1, 0, 90.0, 110.0, 50.0), (1, 2, 0, 95.0, 190.0, 50.0)
    problem = problem_of([wide, narrow], 2, 2, k=0.0)
    plan = plan_of(problem)
    assert plan.calls[1].per_round
    best = max(objective(problem, problem.weights, 0.0, runs) for runs in all_runs(problem))
    assert objective(problem, problem.weights, 0.0, plan.runs) == pytest.approx(best)
    loose = replace(problem, n_gpus=3)
    assert not plan_of(loose).calls[1].per_round


def test_constraints_that_no_packing_meets_are_infeasible_though_others_gain() -> None:
    """The wide job needs one round and the narrow one two, as above; the third would fill what packing leaves."""
    wide, narrow = (2, 10, 0, 95.0, 950.0, 200 + 860 * 1.5), (1, 10, 0, 95.0, 950.0, 200 + 760 * 1.5)
    problem = problem_of([wide, narrow, (1, 1, 0, 95.0, 95.0, 1e6)], 2, 2, k=0.0)
    values = RoundValues.of(problem)
    assert least_rounds(values).tolist() == [1, 2, 0]
    assert not any(is_in_time(problem, runs) for runs in all_runs(problem))
    call = PlanSolver(PlannerOptions(relative_gap=1.0)).plan(problem).calls[0]
    assert (call.status, call.per_round) == (SolverStatus.INFEASIBLE, True)


def test_the_longest_remaining_time_counts_beyond_what_constraints_demand() -> None:
    """The first job needs a round of two to be in time. With both the second one would be the longest, at 450 s."""
    problem = problem_of([(1, 5, 0, 100.0, 500.0, 1000.0), (1, 9, 3, 75.0, 450.0, 1e6)], 2, 1, k=1.0)
    assert least_rounds(RoundValues.of(problem)).tolist() == [1, 0]
    assert plan_of(problem).runs.sum(axis=1).tolist() == [1, 1]


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_utilities_count_beside_a_k_that_drowns_them(seed: int) -> None:
    """One job is the longest whatever is done: it gets every round, and the others share what is left as without k."""
    rng = np.random.default_rng(seed)
    jobs = [(1, 400, 10, 300.0, 1e5, 1e6)]
    for _ in range(60):
        epochs, epoch_s = int(rng.integers(5, 300)), float(rng.uniform(5, 90))
        done = int(epochs * rng.random())
        jobs.append((int(rng.choice([1, 2, 4])), epochs, done, epoch_s, 100.0 + (epochs - done) * epoch_s, 20000.0))
    problem = problem_of(jobs, 10, 16, elapsed_s=np.full(len(jobs), 2e4), k=1e5)
    values, level = RoundValues.of(problem), Level(problem.weights, 0.0)
    assert not problem.is_urgent.any()
    least = np.array([10, *[0] * 60])
    most = backend_of("highs").solve(counts_model(values, level, least, None, per_round=True).model, SolveOptions(60.0))
    counts = PlanSolver(PlannerOptions(relative_gap=1e-6)).plan(problem).runs.sum(axis=1)
    assert counts[0] == 10
    gained = values.at(level, counts) - values.at(level, least)
    assert gained == pytest.approx(most.objective, rel=5e-6)


def test_jobs_about_to_be_too_late_come_first_however_heavy_others_are() -> None:
    """One GPU and one round. The urgent job is hardly late, the other one 5 times: it would win by weight."""
    urgent, late = (1, 2, 1, 90.0, 90.0, 150.0), (1, 9, 1, 90.0, 720.0, 290.0)
    problem = problem_of([urgent, late], 1, 1)
    assert problem.is_urgent.tolist() == [True, False]
    assert problem.weights[1] > problem.weights[0]
    plan = plan_of(problem)
    assert plan.runs.tolist() == [[True], [False]]
    assert plan.n_levels == 2
    assert plan_of(replace(problem, n_rounds=2)).runs.tolist() == [[True, False], [False, True]]
    assert plan_of(problem, published_weights=True).n_levels == 1


def test_a_gang_larger_than_the_cluster_gets_nothing() -> None:
    plan = plan_of(problem_of([(4, 1, 0, 90.0, 450.0, 50.0), (1, 5, 0, 90.0, 450.0, 50.0)], 2, 2))
    assert plan.runs.tolist() == [[False, False], [True, True]]
    assert plan.schedule == ((1,), (1,))
    assert not plan.calls[1].per_round


def test_idle_gpus_go_to_jobs_that_fit_by_remaining_time() -> None:
    runs = np.array([[True, False], [False, False], [False, False], [False, False]])
    gang, remaining_s = np.array([1, 2, 1, 1]), np.array([10.0, 90.0, 50.0, 50.0])
    assert backfill(runs, gang, lambda _: remaining_s, 3) == ((0, 1), (1, 2))
    assert backfill(runs, gang, lambda _: remaining_s, 2) == ((0, 2), (1,))


def test_packing_takes_the_freest_rounds_and_never_too_many_gpus() -> None:
    problem = problem_of([(2, 9, 0, 90.0, 450.0, 50.0), (1, 9, 0, 90.0, 450.0, 50.0)], 2, 2)
    nobody = np.zeros(2, dtype=bool)
    assert pack_rounds(problem, np.array([1, 2]), nobody).tolist() == [[True, False], [False, True]]
    assert pack_rounds(problem, np.array([1, 2]), np.array([False, True])).tolist() == [[False, False], [True, True]]


def _broken(problem: PlanProblem, monkeypatch: pytest.MonkeyPatch, change) -> Plan:
    """A plan with a back end whose answers ``change(answer, model)`` spoils."""
    solver = PlanSolver(PlannerOptions())
    ask = solver._answer
    monkeypatch.setattr(PlanSolver, "_answer", lambda _, model: change(ask(model), model))
    return solver.plan(problem)


LATE = problem_of([(1, 9, 0, 90.0, 800.0, 50.0), (1, 9, 3, 90.0, 500.0, 70.0), (2, 9, 3, 50.0, 300.0, 70.0)], 4, 2)


def test_without_an_answer_the_greedy_plan_is_taken_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _broken(LATE, monkeypatch, lambda *_: BackendAnswer(SolverStatus.NO_SOLUTION))
    assert plan.calls[1].status is SolverStatus.NO_SOLUTION
    assert plan.calls[1].greedy
    assert (LATE.gang @ plan.runs <= LATE.n_gpus).all()
    value = objective(LATE, LATE.weights, LATE.k, plan.runs)
    best = max(objective(LATE, LATE.weights, LATE.k, runs) for runs in all_runs(LATE))
    assert value > best - 0.1 * abs(best)


@pytest.mark.parametrize("x_of", [lambda model: model.column_upper, lambda model: -np.ones(model.n_columns)])
def test_an_answer_that_breaks_a_rule_is_not_believed(monkeypatch: pytest.MonkeyPatch, x_of) -> None:
    """More GPUs than there are; fewer rounds than none."""
    plan = _broken(LATE, monkeypatch, lambda answer, model: replace(answer, x=x_of(model)))
    assert plan.calls[1].status is SolverStatus.ERROR
    assert "breaks a rule" in plan.calls[1].message
    assert (LATE.gang @ plan.runs <= LATE.n_gpus).all()


def test_an_incumbent_at_the_time_limit_is_used_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _broken(LATE, monkeypatch, lambda answer, _: replace(answer, solver_status=SolverStatus.FEASIBLE))
    assert plan.calls[1].status is SolverStatus.FEASIBLE
    assert plan.runs.tolist() == plan_of(LATE).runs.tolist()


def test_urgent_jobs_keep_their_rounds_where_only_the_rest_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of([(1, 9, 1, 90.0, 720.0, 290.0), (1, 2, 1, 90.0, 90.0, 150.0)], 1, 1)
    asked = []

    def first_only(answer: BackendAnswer, model: LinearModel) -> BackendAnswer:
        asked.append(model)
        return answer if len(asked) == 1 else BackendAnswer(SolverStatus.NO_SOLUTION)

    plan = _broken(problem, monkeypatch, first_only)
    assert plan.runs.tolist() == [[False], [True]]
    assert plan.calls[1].status is SolverStatus.FEASIBLE
    assert plan.calls[1].gap == math.inf


def test_a_plan_to_begin_from_meets_the_rows_of_the_model() -> None:
    values, least = RoundValues.of(LATE), np.array([1, 0, 0])
    runs = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    posed = counts_model(values, Level(np.ones(3), 1.0), least, None, per_round=True, start=runs)
    model = posed.model
    assert posed.counts(model.start).tolist() == [2, 3, 1]
    rows = np.bincount(model.entry_row, weights=model.entry_value * model.start[model.entry_column])
    assert (rows >= model.row_lower - 1e-9).all()
    assert (rows <= model.row_upper + 1e-9).all()
    assert (model.start <= model.column_upper).all()
    gain = values.at(Level(np.ones(3), 1.0), np.array([2, 3, 1])) - values.at(Level(np.ones(3), 1.0), least)
    assert model.objective @ model.start == pytest.approx(gain)


def test_the_same_problem_gives_the_same_plan() -> None:
    assert plan_of(LATE).schedule == plan_of(LATE).schedule


def test_a_back_end_that_raises_is_an_error_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_) -> BackendAnswer:
        raise RuntimeError("no licence")

    monkeypatch.setattr(Highs, "solve", broken)
    call = plan_of(LATE).calls[1]
    assert (call.status, call.greedy) == (SolverStatus.ERROR, True)
    assert "no licence" in call.message


def test_highs_runs_in_a_worker_beside_or_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded after the planner was made, too: in this process HiGHS would refuse."""
    solver = PlanSolver(PlannerOptions(relative_gap=0.0))
    monkeypatch.setitem(sys.modules, OR_TOOLS[0], ModuleType("loaded"))
    plan = solver.plan(LATE)
    solver.close()
    assert plan.calls[1].status is SolverStatus.OPTIMAL
    monkeypatch.undo()
    assert plan.schedule == plan_of(LATE).schedule


def test_another_back_end_gives_as_good_a_plan() -> None:
    cbc, highs = plan_of(LATE, backend="cbc"), plan_of(LATE)
    assert cbc.calls[1].objective == pytest.approx(highs.calls[1].objective, rel=1e-6)


def test_a_back_end_without_continuous_columns_is_refused_at_once() -> None:
    if backend_of("cp-sat").available():
        pytest.skip("cp-sat is not installed")
    with pytest.raises(SolverUnavailableError, match="continuous"):
        PlanSolver(PlannerOptions(backend="cp-sat"))


@pytest.mark.parametrize(
    "wrong", [{"future_rounds": 0}, {"k": -1.0}, {"log_knots": (0.0, 0.5)}, {"log_knots": ()}, {"time_limit_s": 0.0}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        PlannerOptions(**wrong)
