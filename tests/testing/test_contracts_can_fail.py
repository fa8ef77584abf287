"""A contract that nothing can break is none: each clause is broken once."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp.formulations.choices import Choices
from bfreplay.milp.formulations.node_level import NodeLevel
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.policies import ANY_TRIGGER, Decision
from bfreplay.replay import Semantics
from bfreplay.testing import FormulationContract, PolicyContract


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


def test_a_formulation_without_a_name_fails():
    with pytest.raises(AssertionError):
        contract(Nameless).test_it_is_made_without_arguments_and_says_what_it_is()


@pytest.mark.parametrize(
    ("formulation", "test", "corner", "why"),
    [
        (HidesItsSets, "test_models_are_well_formed_and_as_announced", "a dent in the curve", "needs_sos"),
        (HidesItsContinuousColumns, "test_models_are_well_formed_and_as_announced", "all jobs alike", "continuous"),
        (NamesColumnsTwice, "test_models_are_well_formed_and_as_announced", "all jobs alike", "same name"),
        (ChangesTheDecision, "test_building_changes_nothing_and_is_repeatable", "all jobs alike", "changed gain"),
        (BuildsAnotherModelEachTime, "test_building_changes_nothing_and_is_repeatable", "all jobs alike", "different"),
        (StartsOutside, "test_a_start_is_feasible", "all jobs alike", "row one"),
    ],
)
def test_a_broken_model_fails(formulation, test, corner, why):
    with pytest.raises(AssertionError, match=why):
        getattr(contract(formulation), test)(corner)


@pytest.mark.parametrize(
    ("formulation", "corner", "why"),
    [
        (ForgetsWhatRescalingCosts, "rescaling costs more than it brings", "claims"),
        (AlwaysHasAnAnswer, "no answer within the limit", "there is no answer"),
    ],
)
def test_a_wrong_optimum_fails(formulation, corner, why):
    with IsolatedBackend("cbc") as worker, pytest.raises(AssertionError, match=why):
        contract(formulation).test_it_has_the_optimum_of_the_decision(corner, worker)


def contract(formulation) -> FormulationContract:
    theirs = FormulationContract()
    theirs.formulation = formulation
    return theirs


class Sound:
    name = "sound"
    wakes_on = ANY_TRIGGER

    @classmethod
    def from_options(cls, *, t_fwd_s, solver):
        return cls()

    def decide(self, state):
        """Whoever comes first takes all that it can use."""
        counts = np.zeros(state.n_jobs, dtype=np.int64)
        left = state.n_idle
        for j in range(state.n_jobs):
            wanted = min(left, int(state.max_nodes[j]))
            if wanted >= state.min_nodes[j]:
                counts[j] = wanted
                left -= wanted
        return Decision(counts)

    def describe(self):
        return {"name": self.name}

    def close(self):
        pass


class TestTheSoundOne(PolicyContract):
    policy = Sound


class Indescribable(Sound):
    def describe(self):
        return {"best": float("inf")}


class GivesTooMuch(Sound):
    def decide(self, state):
        return Decision(state.max_nodes.copy())


class AnswersFloats(Sound):
    def decide(self, state):
        return Decision(super().decide(state).counts * 1.0)


class WritesIntoTheState(Sound):
    def decide(self, state):
        state.current[:] = 0
        return super().decide(state)


class Fickle(Sound):
    generator = np.random.default_rng(0)

    def decide(self, state):
        counts = super().decide(state).counts
        return Decision(np.where(self.generator.random(state.n_jobs) < 0.5, counts, 0))


class TrainsNothing(Sound):
    def decide(self, state):
        return Decision(np.zeros(state.n_jobs, dtype=np.int64))


@pytest.mark.parametrize(
    ("policy", "test", "arguments", "error"),
    [
        (Indescribable, "test_it_says_what_it_is", (), ValueError),
        (GivesTooMuch, "test_its_counts_are_allowed", (), AssertionError),
        (AnswersFloats, "test_its_counts_are_allowed", (), AssertionError),
        (WritesIntoTheState, "test_it_changes_nothing_that_it_sees", (), ValueError),
        (Fickle, "test_two_of_them_decide_alike", (), AssertionError),
        (TrainsNothing, "test_a_replay_with_it_closes_its_books_and_repeats", (Semantics.CONTINUOUS,), AssertionError),
    ],
)
def test_a_broken_policy_fails(policy, test, arguments, error):
    contract = PolicyContract()
    contract.policy = policy
    with pytest.raises(error):
        getattr(contract, test)(*arguments)
