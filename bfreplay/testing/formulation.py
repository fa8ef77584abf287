"""Contract of formulations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import pytest

from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.formulations import Formulation
from bfreplay.milp.formulations.formulation import build_model
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, SolverStatus
from bfreplay.testing.decisions import (
    corner_decisions,
    point_fault,
    random_decisions,
    replayed_decisions,
    wide_decisions,
)

CORNERS = corner_decisions()


class FormulationContract:
    """Inherit, and set ``formulation`` to your class.

    ``backend`` is the registered name of a back end that takes its models. CBC takes every kind.
    """

    formulation: type[Formulation]
    backend: str = "cbc"

    @pytest.fixture(scope="class")
    @classmethod
    def worker(cls) -> Iterator[IsolatedBackend]:
        """The back end, in one process for all tests of the class."""
        with IsolatedBackend(cls.backend) as worker:
            yield worker

    def test_it_is_made_without_arguments_and_says_what_it_is(self) -> None:
        instance = self.formulation()
        assert isinstance(instance, Formulation)
        assert isinstance(instance.name, str)
        assert instance.name
        for flag in (instance.needs_sos, instance.needs_continuous, instance.change_limited):
            assert isinstance(flag, bool)

    @pytest.mark.parametrize("corner", CORNERS)
    def test_models_are_well_formed_and_as_announced(self, corner: str) -> None:
        for problem in (CORNERS[corner], *random_decisions(3, seed=1)):
            model = build_model(self.formulation(), problem)
            assert not model.sets or self.formulation().needs_sos, "it holds sets, and needs_sos is False"
            continuous = not model.is_integer.all()
            assert not continuous or self.formulation().needs_continuous, "needs_continuous is False"
            places = set(zip(model.entry_row.tolist(), model.entry_column.tolist(), strict=True))
            assert len(places) == len(model.entry_row), "a (row, column) pair occurs twice"
            assert len(set(model.column_names)) == model.n_columns, "two columns have the same name"
            assert len(set(model.row_names)) == model.n_rows, "two rows have the same name"

    @pytest.mark.parametrize("corner", CORNERS)
    def test_building_changes_nothing_and_is_repeatable(self, corner: str) -> None:
        problem = CORNERS[corner]
        before = [np.array(getattr(problem, name)) for name in _ARRAYS]
        first, second = build_model(self.formulation(), problem), build_model(self.formulation(), problem)
        for name, array in zip(_ARRAYS, before, strict=True):
            assert np.array_equal(getattr(problem, name), array), f"build() changed {name}"
        assert _same(first, second), "the same decision gave two different models"

    @pytest.mark.parametrize("corner", CORNERS)
    def test_a_start_is_feasible(self, corner: str) -> None:
        for problem in (CORNERS[corner], *random_decisions(3, seed=2)):
            model = build_model(self.formulation(), problem)
            if model.start is not None:
                assert point_fault(model, model.start) == ""

    @pytest.mark.parametrize("corner", CORNERS)
    def test_it_has_the_optimum_of_the_decision(self, corner: str, worker: IsolatedBackend) -> None:
        self.check_optimum(CORNERS[corner], worker)

    def test_it_has_the_optimum_of_random_decisions(self, worker: IsolatedBackend) -> None:
        for problem in random_decisions():
            self.check_optimum(problem, worker)

    def test_it_has_the_optimum_of_wide_decisions(self, worker: IsolatedBackend) -> None:
        for problem in wide_decisions():
            self.check_optimum(problem, worker)

    def test_it_has_the_optimum_of_the_decisions_of_a_replay(self, worker: IsolatedBackend) -> None:
        for problem in replayed_decisions():
            self.check_optimum(problem, worker)

    def check_optimum(self, problem: AllocationProblem, worker: IsolatedBackend) -> None:
        """Solve one decision and compare the answer with the exact solver's."""
        instance = self.formulation()
        posed = problem.held_to_published_limit() if instance.change_limited else problem
        best = ExactSolver().solve(posed)
        solution = MilpSolver(
            instance, self.backend, worker=worker, fallback="none", referee=ExactSolver(), time_limit_s=60.0
        ).solve(problem)
        answer = solution.rejected or solution
        assert answer.process_status is ProcessStatus.OK, answer.message
        if best.counts is None:
            assert answer.solver_status is SolverStatus.INFEASIBLE, f"infeasible, but answered: {answer.counts}"
        else:
            assert answer.quality is Quality.PROVEN, answer.message


_ARRAYS = ("current", "min_nodes", "max_nodes", "gain", "scale_up_loss", "scale_down_loss")


def _same(first: LinearModel, second: LinearModel) -> bool:
    for field in fields(LinearModel):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if field.name == "sets":
            pairs = [(x.kind, x.columns.tolist(), x.weights.tolist()) for x in a]
            if pairs != [(x.kind, x.columns.tolist(), x.weights.tolist()) for x in b]:
                return False
        elif not np.array_equal(np.asarray(a, dtype=object), np.asarray(b, dtype=object)):
            return False
    return True
