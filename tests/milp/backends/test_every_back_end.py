"""Every registered back end keeps the contract that strangers' ones inherit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from bfreplay.milp.backends import BACKENDS, version_of
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from bfreplay.milp.judgement import judge
from bfreplay.milp.milp_solver import pairing_fault
from bfreplay.milp.solution import Quality, SolverStatus
from bfreplay.testing import BackendContract
from bfreplay.testing.milp import must_solve
from tests.examples import examples
from tests.milp.backends.present import present
from tests.milp.small_problems import optimum_by_enumeration, problems


@pytest.mark.parametrize("backend_name", BACKENDS.built_in, scope="class")
class TestOurBackEnds(BackendContract):
    @pytest.fixture(scope="class")
    @classmethod
    def instance(cls, backend_name):
        return present(backend_name)

    @pytest.mark.slow  # takes a second, all that it gives the solver
    def test_a_start_is_used_where_that_is_declared(self, worker, instance):
        super().test_a_start_is_used_where_that_is_declared(worker, instance)

    @pytest.mark.slow  # takes all of its limits too
    @pytest.mark.parametrize("limit_s", [0.05, 0.5])
    def test_a_time_limit_is_a_status_and_bounds_stay_bounds(self, limit_s, worker, instance):
        super().test_a_time_limit_is_a_status_and_bounds_stay_bounds(limit_s, worker, instance)

    @pytest.mark.slow  # starts Python
    def test_nothing_reaches_standard_output_or_error(self, backend_name, instance):
        super().test_nothing_reaches_standard_output_or_error(backend_name, instance)

    def test_it_tells_its_licence_and_version(self, instance):
        assert instance.capabilities.licence
        assert any(character.isdigit() for character in version_of(instance))

    @pytest.mark.parametrize("formulation_name", FORMULATIONS.built_in)
    def test_decisions_get_the_optimum_that_enumeration_finds(self, formulation_name, worker, instance):
        formulation = formulation_of(formulation_name)
        if reason := pairing_fault(formulation, instance):
            pytest.skip(f"{formulation_name}: {reason}")

        @settings(max_examples=examples(12))
        @given(problem=problems())
        def gets_its_optimum(problem):
            posed = problem.within_published_limit() if formulation.change_limited else problem
            best, counts = optimum_by_enumeration(posed)
            model = formulation.build(problem)
            answer = must_solve(
                worker, instance, model if instance.capabilities.warm_start else replace(model, start=None)
            )
            if counts is None:
                assert answer.solver_status is SolverStatus.INFEASIBLE, answer.message
                return
            verdict = judge(posed, formulation, model, answer)
            assert verdict.quality is Quality.PROVEN, verdict.message
            assert verdict.objective == pytest.approx(best, rel=1e-6)

        gets_its_optimum()
