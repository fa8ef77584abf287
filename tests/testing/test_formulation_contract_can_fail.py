"""A contract that nothing can break is none: what that of a formulation asks for is broken, one thing at a time."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp.formulations import FORMULATIONS
from bfreplay.milp.formulations.choices import Choices
from bfreplay.milp.formulations.formulation import FormulationError
from bfreplay.milp.formulations.node_level import NodeLevel
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.testing import FormulationContract
from tests.milp.faulty_formulations import ReadsConstantLosses


class Nameless(Choices):
    name = ""


class HidesItsSets(NodeLevel):
    needs_sos = False


class HidesItsContinuousColumns(NodeLevel):
    needs_continuous = False


class NamesColumnsTwice(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, column_names=("y",) * model.n_columns)


class NamesRowsTwice(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, row_names=("row",) * model.n_rows)


class PutsAnEntryTwice(Choices):
    def build(self, problem):
        model = super().build(problem)
        twice = {
            name: np.append(getattr(model, name), getattr(model, name)[:1]) for name in ("entry_row", "entry_column")
        }
        return replace(model, **twice, entry_value=np.append(model.entry_value, 0.0))


class BuildsOtherSetsEachTime(NodeLevel):
    made = itertools.count()

    def build(self, problem):
        model = super().build(problem)
        moved = next(self.made)
        return replace(model, sets=tuple(replace(each, weights=each.weights + moved) for each in model.sets))


class ChangesTheDecision(Choices):
    def build(self, problem):
        problem.gain[:, 0] -= 1.0
        return super().build(problem)


class BuildsAnotherModelEachTime(Choices):
    made = itertools.count()

    def build(self, problem):
        model = super().build(problem)
        return replace(model, objective=model.objective * (1 + next(self.made)))


class StartsOutside(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, start=np.full(model.n_columns, 1.0))


class ForgetsWhatRescalingCosts(Choices):
    def build(self, problem):
        free = np.zeros(problem.n_jobs)
        return super().build(replace(problem, scale_up_loss=free, scale_down_loss=free))


class AlwaysHasAnAnswer(Choices):
    def build(self, problem):
        model = super().build(problem)
        return replace(model, row_lower=np.full(model.n_rows, -np.inf))


class ForgetsWhatIsForbidden(Choices):
    def build(self, problem):
        return super().build(_all_allowed(problem))

    def read(self, problem, x):
        return super().read(_all_allowed(problem), x)


def _all_allowed(problem):
    if problem.has_constant_losses:
        return problem
    return replace(problem, loss=np.where(np.isfinite(problem.loss), problem.loss, 0.0))


class StaysForNothing(Choices):
    def build(self, problem):
        if problem.has_constant_losses:
            return super().build(problem)
        stays = np.arange(problem.loss.shape[1]) == problem.current[:, None]
        return super().build(replace(problem, loss=np.where(stays & np.isfinite(problem.loss), 0.0, problem.loss)))


class DeclaresConstantLossesByText(Choices):
    needs_constant_losses = "yes"


@pytest.fixture(scope="module")
def worker():
    """One process for all: it keeps nothing of a model when the next one comes."""
    with IsolatedBackend("cbc") as started:
        yield started


@pytest.mark.parametrize("formulation", [Nameless, DeclaresConstantLossesByText])
def test_a_formulation_without_a_name_or_with_a_flag_that_is_none_fails(formulation):
    with pytest.raises(AssertionError):
        contract(formulation).test_it_is_made_without_arguments_and_says_what_it_is()


@pytest.mark.parametrize(
    ("formulation", "test", "corner", "why"),
    [
        (HidesItsSets, "test_models_are_well_formed_and_as_announced", "a dent in the curve", "needs_sos"),
        (HidesItsContinuousColumns, "test_models_are_well_formed_and_as_announced", "all jobs alike", "continuous"),
        (NamesColumnsTwice, "test_models_are_well_formed_and_as_announced", "all jobs alike", "same name"),
        (NamesRowsTwice, "test_models_are_well_formed_and_as_announced", "all jobs alike", "two rows have the same"),
        (PutsAnEntryTwice, "test_models_are_well_formed_and_as_announced", "all jobs alike", "occurs twice"),
        (
            BuildsOtherSetsEachTime,
            "test_building_changes_nothing_and_is_repeatable",
            "a dent in the curve",
            "different",
        ),
        (BuildsAnotherModelEachTime, "test_building_changes_nothing_and_is_repeatable", "all jobs alike", "different"),
        (StartsOutside, "test_a_start_is_feasible", "all jobs alike", "row one"),
    ],
)
def test_a_broken_model_fails(formulation, test, corner, why):
    with pytest.raises(AssertionError, match=why):
        getattr(contract(formulation), test)(corner)


def test_changing_the_decision_fails():
    with pytest.raises(FormulationError, match=r"failed in build\(\): it changed problem.gain in place"):
        contract(ChangesTheDecision).test_building_changes_nothing_and_is_repeatable("all jobs alike")


@pytest.mark.parametrize(
    ("formulation", "corner", "why"),
    [
        (ForgetsWhatRescalingCosts, "rescaling costs more than it brings", "claims"),
        (AlwaysHasAnAnswer, "no answer within the limit", "infeasible, but answered"),
        (ForgetsWhatIsForbidden, "what is held is forbidden", "job 0 gets 3 nodes, allowed are 0 or 1 to 4, and not"),
        (ForgetsWhatIsForbidden, "no answer by count within the limit", "infeasible, but answered"),
        (StaysForNothing, "staying costs more than going", "claims"),
        (ReadsConstantLosses, "left on a count that is else forbidden", "has no scale_up_loss"),
    ],
)
def test_a_wrong_optimum_fails(formulation, corner, why, worker):
    with pytest.raises(AssertionError, match=why):
        contract(formulation).test_it_has_the_optimum_of_the_decision(corner, worker)


def _flat_curve(problem, limit):
    """What more than ``limit`` nodes add is forgotten."""
    gain = problem.gain.copy()
    gain[:, limit:] = gain[:, [min(limit, gain.shape[1] - 1)]]
    return replace(problem, gain=gain)


def _short_of_nodes(problem, limit):
    """Idle nodes beyond ``limit`` are not given away."""
    return replace(problem, capacity=min(problem.capacity, limit))


def _forgotten_nodes(problem, limit):
    """What a job holds beyond ``limit`` nodes is not known."""
    return replace(problem, current=np.minimum(problem.current, limit))


def _free_rescaling(problem, limit):
    """A job that holds more than ``limit`` nodes rescales for nothing."""
    few = problem.current <= limit
    return replace(problem, scale_up_loss=problem.scale_up_loss * few, scale_down_loss=problem.scale_down_loss * few)


def _wrong_above(limit, fault, parent):
    class Wrong(parent):
        def build(self, problem):
            return super().build(fault(problem, limit))

    return Wrong


@pytest.mark.parametrize("limit", [8, 32])
@pytest.mark.parametrize(
    ("fault", "parent"),
    [
        *((_flat_curve, FORMULATIONS.load(name, allow_code=False)) for name in FORMULATIONS.names()),
        (_short_of_nodes, Choices),
        (_forgotten_nodes, Choices),
        (_free_rescaling, Choices),
    ],
)
def test_a_fault_that_bites_on_many_nodes_only_fails(fault, parent, limit, worker):
    with pytest.raises(AssertionError):
        contract(_wrong_above(limit, fault, parent)).test_it_has_the_optimum_of_wide_decisions(worker)


def test_a_fault_that_bites_on_many_nodes_only_fails_on_the_decisions_of_a_replay(worker):
    with pytest.raises(AssertionError):
        contract(_wrong_above(8, _free_rescaling, Choices)).test_it_has_the_optimum_of_the_decisions_of_a_replay(worker)


@pytest.mark.parametrize("fault", [_flat_curve, _short_of_nodes, _forgotten_nodes, _free_rescaling])
def test_faults_of_many_nodes_pass_what_is_small(fault, worker):
    """So that it is the wide decisions that find them."""
    contract(_wrong_above(32, fault, Choices)).test_it_has_the_optimum_of_random_decisions(worker)


def contract(formulation) -> FormulationContract:
    theirs = FormulationContract()
    theirs.formulation = formulation
    return theirs
