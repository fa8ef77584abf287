"""Contracts of formulations and of back ends."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from bfreplay.milp.backends import Backend, BackendAnswer, Capabilities, SolveOptions, backend_of, version_of, why_not
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.formulations import FORMULATIONS, Formulation, formulation_of
from bfreplay.milp.formulations.formulation import build_model, needs_constant_losses
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.judgement import against_referee, judge
from bfreplay.milp.milp_solver import MilpSolver, pairing_fault
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, SolverStatus
from bfreplay.testing.decisions import (
    by_count_decisions,
    corner_decisions,
    decisions_of_replay,
    point_fault,
    random_by_count_decisions,
    random_decisions,
    wide_decisions,
)
from bfreplay.testing.models import infeasible_models, knapsack, market_split, solvable_models, unbounded_models
from bfreplay.testing.subject import made, subject

CORNERS = corner_decisions() | by_count_decisions()


class FormulationContract:
    """Inherit, and set ``formulation`` to your class.

    ``backend`` is the registered name of a back end that takes its models. CBC takes every kind.

    It demands of a formulation:

    - The class is made without arguments; ``needs_sos``, ``needs_continuous`` and ``change_limited`` are bools, and the
      models are as they say.
    - The optimum of a model is that of the decision, with a proof; where ``change_limited``, of the decision with the
      ``published_change_limit``.
    - A job without any allowed count makes the model infeasible: a decision whose limit of changes leaves a job no
      count has no answer, not zeros.
    - ``value`` is -inf where a count is not allowed; values may be negative, also at 0 nodes, and curves have dents.
    - Decisions whose losses depend on the count (``AllocationProblem.by_count``) have their optimum too, unless it says
      ``needs_constant_losses = True``.
    - No (row, column) pair stands twice; names of columns and of rows are unique; a ``start`` is feasible.
    - ``build`` changes no array of the decision, and gives the same model each time.
    """

    formulation: type[Formulation]
    backend: str = "cbc"

    def make(self) -> Formulation:
        """Return a new formulation, as a solver makes one."""
        instance: Formulation = made(subject(self, "formulation", *FORMULATIONS.needs), "formulation")
        return instance

    @pytest.fixture(scope="class")
    @classmethod
    def worker(cls) -> Iterator[IsolatedBackend]:
        """The back end, in one process for all tests of the class."""
        with IsolatedBackend(cls.backend) as worker:
            yield worker

    def test_it_is_made_without_arguments_and_says_what_it_is(self) -> None:
        instance = self.make()
        assert isinstance(instance, Formulation)
        assert isinstance(instance.name, str)
        assert instance.name
        constant_losses = getattr(instance, "needs_constant_losses", False)
        for flag in (instance.needs_sos, instance.needs_continuous, instance.change_limited, constant_losses):
            assert isinstance(flag, bool)

    @pytest.mark.parametrize("corner", CORNERS)
    def test_models_are_well_formed_and_as_announced(self, corner: str) -> None:
        for problem in (self.decision(corner), *random_decisions(3, seed=1)):
            model = build_model(self.make(), problem)
            assert not model.sets or self.make().needs_sos, "it holds sets, and needs_sos is False"
            continuous = not model.is_integer.all()
            assert not continuous or self.make().needs_continuous, "needs_continuous is False"
            places = set(zip(model.entry_row.tolist(), model.entry_column.tolist(), strict=True))
            assert len(places) == len(model.entry_row), "a (row, column) pair occurs twice"
            assert len(set(model.column_names)) == model.n_columns, "two columns have the same name"
            assert len(set(model.row_names)) == model.n_rows, "two rows have the same name"

    @pytest.mark.parametrize("corner", CORNERS)
    def test_building_changes_nothing_and_is_repeatable(self, corner: str) -> None:
        problem = self.decision(corner)
        first, second = build_model(self.make(), problem), build_model(self.make(), problem)
        assert _same(first, second), "the same decision gave two different models"

    @pytest.mark.parametrize("corner", CORNERS)
    def test_a_start_is_feasible(self, corner: str) -> None:
        for problem in (self.decision(corner), *random_decisions(3, seed=2)):
            model = build_model(self.make(), problem)
            if model.start is not None:
                assert point_fault(model, model.start) == ""

    @pytest.mark.parametrize("corner", CORNERS)
    def test_it_has_the_optimum_of_the_decision(self, corner: str, worker: IsolatedBackend) -> None:
        self.check_optimum(CORNERS[corner], worker)

    def test_it_has_the_optimum_of_random_decisions(self, worker: IsolatedBackend) -> None:
        for problem in random_decisions():
            self.check_optimum(problem, worker)

    def test_it_has_the_optimum_of_random_decisions_with_losses_by_count(self, worker: IsolatedBackend) -> None:
        for problem in random_by_count_decisions():
            self.check_optimum(problem, worker)

    def test_it_has_the_optimum_of_wide_decisions(self, worker: IsolatedBackend) -> None:
        for problem in wide_decisions():
            self.check_optimum(problem, worker)

    def test_it_has_the_optimum_of_the_decisions_of_a_replay(self, worker: IsolatedBackend) -> None:
        for problem in decisions_of_replay():
            self.check_optimum(problem, worker)

    def decision(self, corner: str) -> AllocationProblem:
        """Return the corner; the test is skipped where the formulation declares that it takes no such decision."""
        problem, formulation = CORNERS[corner], self.make()
        if needs_constant_losses(formulation) and not problem.has_constant_losses:
            pytest.skip(f"{formulation.name} takes no losses by count, as declared")
        return problem

    def check_optimum(self, problem: AllocationProblem, worker: IsolatedBackend) -> None:
        """Solve one decision and compare the answer with the exact solver's; or see it refused, as declared."""
        instance = self.make()
        question = problem.within_published_limit() if instance.change_limited else problem
        exact_answer = ExactSolver().solve(question)
        solution = MilpSolver(
            instance, self.backend, worker=worker, fallback="none", referee=ExactSolver(), time_limit_s=60.0
        ).solve(problem)
        answer = solution.rejected or solution
        if needs_constant_losses(instance) and not problem.has_constant_losses:
            assert answer.process_status is ProcessStatus.REFUSED
            return
        assert answer.process_status is ProcessStatus.OK, answer.message
        if exact_answer.counts is None:
            assert answer.solver_status is SolverStatus.INFEASIBLE, f"infeasible, but answered: {answer.counts}"
        else:
            assert answer.quality is Quality.PROVEN, answer.message


def _same(first: LinearModel, second: LinearModel) -> bool:
    for field in fields(LinearModel):
        value, other_value = getattr(first, field.name), getattr(second, field.name)
        if field.name == "sets":
            pairs = [(x.kind, x.columns.tolist(), x.weights.tolist()) for x in value]
            if pairs != [(x.kind, x.columns.tolist(), x.weights.tolist()) for x in other_value]:
                return False
        elif not np.array_equal(np.asarray(value, dtype=object), np.asarray(other_value, dtype=object)):
            return False
    return True


OPTIONS = SolveOptions(30.0)

GRACE_S = 30.0
"""Generous, since no clause is about speed: a busy machine may exceed a time limit by far."""

TOLERANCE = 1e-6
"""Tolerance of columns and rows, as MILP solvers have it."""

RANDOM_DECISIONS = 12
"""Decisions for each formulation."""

SOLVABLE, INFEASIBLE, UNBOUNDED = solvable_models(), infeasible_models(), unbounded_models()
WITHOUT_AN_ANSWER = (SolverStatus.NO_SOLUTION, SolverStatus.INFEASIBLE, SolverStatus.UNBOUNDED)


class BackendContract:
    """Inherit, and set ``backend``: a registered name, or ``package.module:Class``, importable in a worker.

    It must solve every model, with two exceptions: it must refuse what its capabilities exclude, and may refuse
    infinite bounds, by ``ModelRefusedError`` with its own name and the reason in the message.

    It demands of a back end:

    - It maximises; ``objective`` and ``bound`` are in the model's own objective, unscaled, with the constant added, and
      no bound is below an answer of its own. No answer: ``x`` is ``None`` and ``objective`` nan.
    - ``x`` is float64, one value a column, finite, and feasible within 1e-6.
    - Infeasible and unbounded models are called so, not solved and not failed.
    - A time limit is a status, ``FEASIBLE`` or ``NO_SOLUTION``; only a proof, within ``relative_gap``, is ``OPTIMAL``.
    - The same model, options and seed give the same answer; several threads and one may alternate.
    - A ``start`` is used if ``capabilities.warm_start``, and one that breaks bounds does no harm.
    - Nothing is written to standard output or error.
    """

    backend: str

    @pytest.fixture(scope="class")
    @classmethod
    def backend_name(cls, request: pytest.FixtureRequest) -> str:
        """Name of the tested back end."""
        if not isinstance(getattr(cls, "backend", None), str):  # pytest repeats the failure of a fixture in each test
            for test in [item for item in request.session.items if getattr(item, "cls", None) is cls][1:]:
                test.add_marker(pytest.mark.skip(reason="as the first test of its class"))
        name: str = subject(cls, "backend")
        return name

    @pytest.fixture(scope="class")
    @classmethod
    def instance(cls, backend_name: str) -> Backend:
        """Back end in this process, for its name and capabilities; it solves nothing here."""
        backend = backend_of(backend_name)
        if reason := why_not(backend):
            pytest.fail(f"back end {backend_name} does not work here: {reason}")
        return backend

    @pytest.fixture(scope="class")
    @classmethod
    def worker(cls, backend_name: str, instance: Backend) -> Iterator[IsolatedBackend]:
        """The back end in one process for all tests of the class; a crash fails one of them."""
        with IsolatedBackend(backend_name, grace_s=GRACE_S) as worker:
            yield worker

    def test_it_says_what_it_is(self, backend_name: str, instance: Backend) -> None:
        assert isinstance(instance, Backend)
        assert isinstance(instance.name, str)
        assert instance.name
        assert instance.name == backend_name or ":" in backend_name, "it is registered under another name than its own"
        assert isinstance(instance.capabilities, Capabilities)
        assert instance.available() == ""
        assert not version_of(instance).startswith("version() failed")

    @pytest.mark.parametrize("case", SOLVABLE)
    def test_it_finds_the_optimum(self, case: str, worker: IsolatedBackend, instance: Backend) -> None:
        solvable = SOLVABLE[case]
        answer = answer_to_check(worker, instance, solvable.model)
        if answer is not None:
            assert answer.solver_status is SolverStatus.OPTIMAL, answer.message
            assert answer.objective == pytest.approx(solvable.optimum, rel=1e-7)
            assert answer.bound == pytest.approx(solvable.optimum, rel=1e-6)
            if solvable.x is not None:
                assert answer.x is not None
                assert answer.x.tolist() == pytest.approx(list(solvable.x), rel=0.0, abs=1e-6)

    @pytest.mark.parametrize("case", INFEASIBLE)
    def test_it_calls_an_infeasible_model_infeasible(
        self, case: str, worker: IsolatedBackend, instance: Backend
    ) -> None:
        answer = answer_to_check(worker, instance, INFEASIBLE[case])
        if answer is not None:
            assert answer.solver_status is SolverStatus.INFEASIBLE, answer.message

    @pytest.mark.parametrize("case", UNBOUNDED)
    def test_it_calls_an_unbounded_model_unbounded(self, case: str, worker: IsolatedBackend, instance: Backend) -> None:
        answer = answer_to_check(worker, instance, UNBOUNDED[case])
        if answer is not None:
            assert answer.solver_status is SolverStatus.UNBOUNDED, answer.message

    @pytest.mark.parametrize("limit_s", [0.05, 0.5])
    def test_a_time_limit_is_a_status_and_bounds_stay_bounds(
        self, limit_s: float, worker: IsolatedBackend, instance: Backend
    ) -> None:
        answer = must_solve(worker, instance, market_split(exact=False), SolveOptions(limit_s))
        if answer.solver_status is SolverStatus.OPTIMAL:
            assert answer.objective == pytest.approx(0.0, abs=1e-6), "it calls an answer optimal that is not"
        else:
            assert answer.solver_status in (SolverStatus.FEASIBLE, SolverStatus.NO_SOLUTION), answer.message
        assert answer.bound >= -1e-6, "its bound excludes the optimum"

    def test_almost_no_time_gives_no_optimum_that_was_not_proven(
        self, worker: IsolatedBackend, instance: Backend
    ) -> None:
        answer = must_solve(worker, instance, _model_of_a_decision(), SolveOptions(1e-6))
        if answer.solver_status is SolverStatus.OPTIMAL:
            assert answer.objective == pytest.approx(_optimum_of_the_decision())
        else:
            assert answer.solver_status in (SolverStatus.NO_SOLUTION, SolverStatus.FEASIBLE), answer.message

    def test_a_start_is_used_where_that_is_declared(self, worker: IsolatedBackend, instance: Backend) -> None:
        """No solver finds a feasible point of this model in time without its start."""
        if not instance.capabilities.warm_start:
            pytest.skip(f"{instance.name} takes no start, as declared")
        answer = must_solve(worker, instance, market_split(exact=True), SolveOptions(1.0))
        assert answer.x is not None, f"it has lost the start: {answer.message}"

    def test_the_same_model_and_seed_give_the_same_answer(self, worker: IsolatedBackend, instance: Backend) -> None:
        model = _model_of_a_decision()
        for seed in (0, 7, 2**31 - 2):
            options = SolveOptions(30.0, seed=seed)
            first, second = (must_solve(worker, instance, model, options) for _ in range(2))
            np.testing.assert_array_equal(first.x, second.x)
            assert (first.objective, first.bound) == (second.objective, second.bound)

    def test_several_threads_and_one_again(self, worker: IsolatedBackend, instance: Backend) -> None:
        for threads in (2, 1, 2):
            answer = must_solve(worker, instance, _model_of_a_decision(), SolveOptions(30.0, threads=threads))
            assert answer.objective == pytest.approx(_optimum_of_the_decision())

    def test_a_gap_bounds_what_may_be_called_optimal(self, worker: IsolatedBackend, instance: Backend) -> None:
        solvable = knapsack()
        rough = must_solve(worker, instance, solvable.model, SolveOptions(30.0, relative_gap=0.2))
        assert rough.solver_status is SolverStatus.OPTIMAL, rough.message
        assert rough.objective >= solvable.optimum / 1.25 - 1e-6, "its answer is worse than the gap allows"
        assert rough.bound >= solvable.optimum - 1e-6, "its bound excludes the optimum"

    def test_nothing_reaches_standard_output_or_error(self, backend_name: str, instance: Backend) -> None:
        tasks = [
            (SOLVABLE["whole columns"].model, OPTIONS),
            (SOLVABLE["a start that breaks bounds"].model, OPTIONS),
            (INFEASIBLE["integrality"], OPTIONS),
            (market_split(exact=False), SolveOptions(0.2)),
        ]
        process = subprocess.run(
            [sys.executable, "-P", "-c", _SOLVE_ALL, backend_name],
            input=pickle.dumps((sys.path, tasks)),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")

    @pytest.mark.parametrize("formulation_name", FORMULATIONS.built_in)
    def test_random_decisions_get_their_optimum(
        self, formulation_name: str, worker: IsolatedBackend, instance: Backend
    ) -> None:
        formulation = formulation_of(formulation_name)
        if reason := pairing_fault(formulation, instance):
            pytest.skip(f"{formulation_name}: {reason}")
        by_count = [] if needs_constant_losses(formulation) else random_by_count_decisions(RANDOM_DECISIONS, seed=5)
        for problem in (*random_decisions(RANDOM_DECISIONS, seed=4), *by_count):
            question = problem.within_published_limit() if formulation.change_limited else problem
            exact_answer = ExactSolver().solve(question)
            model = formulation.build(problem)
            answer = must_solve(
                worker, instance, model if instance.capabilities.warm_start else replace(model, start=None)
            )
            if exact_answer.counts is None:
                assert answer.solver_status is SolverStatus.INFEASIBLE, answer.message
            else:
                verdict = against_referee(question, judge(question, formulation, model, answer), exact_answer)
                assert verdict.quality is Quality.PROVEN, verdict.message


def must_solve(
    worker: IsolatedBackend, instance: Backend, model: LinearModel, options: SolveOptions = OPTIONS
) -> BackendAnswer:
    """Return its answer to a model that it may not refuse."""
    answer = answer_to_check(worker, instance, model, options)
    assert answer is not None
    return answer


def answer_to_check(
    worker: IsolatedBackend, instance: Backend, model: LinearModel, options: SolveOptions = OPTIONS
) -> BackendAnswer | None:
    """Return its answer after the checks for every answer; ``None`` for a refusal that is allowed."""
    outcome = worker.solve(model, options)
    exclusions = []
    if model.sets and not instance.capabilities.sos:
        exclusions.append("special ordered set")
    if not model.is_integer.all() and not instance.capabilities.continuous:
        exclusions.append("continuous")
    if outcome.process_status is ProcessStatus.REFUSED:
        endless = np.isinf(model.column_lower).any() or np.isinf(model.column_upper).any()
        reasons = [*exclusions, "bounds"] if endless else exclusions
        assert reasons, f"it refuses a model that it must take: {outcome.message}"
        assert instance.name in outcome.message, f"the refusal does not name {instance.name}: {outcome.message}"
        assert any(reason in outcome.message for reason in reasons), (
            f"the refusal has none of {reasons}: {outcome.message}"
        )
        return None
    assert outcome.process_status is ProcessStatus.OK, outcome.message
    assert outcome.answer is not None, outcome.message
    assert not exclusions, f"it takes a model that its capabilities exclude: {exclusions}"
    _check(model, outcome.answer)
    return outcome.answer


def _check(model: LinearModel, answer: BackendAnswer) -> None:
    assert isinstance(answer.solver_status, SolverStatus)
    assert answer.build_s >= 0
    assert answer.solve_s >= 0
    assert not math.isinf(answer.objective)
    assert not math.isnan(answer.bound)
    if answer.x is None:
        assert answer.solver_status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE), "it has no answer"
        assert math.isnan(answer.objective), "it has no answer, and an objective"
        return
    assert answer.solver_status not in WITHOUT_AN_ANSWER, f"it says {answer.solver_status}, and has an answer"
    assert isinstance(answer.x, np.ndarray)
    assert answer.x.shape == (model.n_columns,)
    assert answer.x.dtype == np.float64
    assert np.isfinite(answer.x).all(), "a column value is not finite"
    assert point_fault(model, answer.x, TOLERANCE) == ""
    worth = float(model.objective @ answer.x) + model.objective_constant
    slack = 1e-6 * np.abs(model.objective).max(initial=0.0)
    assert answer.objective == pytest.approx(worth, rel=1e-6, abs=slack), "its answer is not worth what it claims"
    assert answer.bound >= worth - max(slack, 1e-6 * abs(worth)), "its bound is below its own answer"


_SOLVE_ALL = """
import pickle, sys
from bfreplay.milp.backends import backend_of
sys.path[:], tasks = pickle.load(sys.stdin.buffer)
backend = backend_of(sys.argv[1])
assert backend.available() == ""
for model, options in tasks:
    backend.solve(model, options)
"""


def _model_of_a_decision() -> LinearModel:
    return formulation_of("choices").build(corner_decisions()["a dent in the curve"])


def _optimum_of_the_decision() -> float:
    return ExactSolver().solve(corner_decisions()["a dent in the curve"]).objective
