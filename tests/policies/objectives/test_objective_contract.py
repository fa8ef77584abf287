"""Our objectives keep the contract that strangers' are asked to keep, and each of its clauses can fail."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.policies.objectives.catalogue import OBJECTIVES, objective_of
from bfreplay.replay import Semantics
from bfreplay.testing.objective import ObjectiveContract

HERE = "tests.policies.objectives.test_objective_contract"
OURS = [
    *OBJECTIVES.names(),
    "2*deadline(background=0) + own + 0.5*proportional-fairness + 1e-3*energy(price=2)",
    f"{HERE}:sound",
    *(
        pytest.param(spec, marks=pytest.mark.slow)
        for spec in (
            "max-min(slack=0.2)",
            "cost(price=0.1)",
            "0.7*throughput + 0.3*speed-up",
            f"{HERE}:Together(share=0.5)",
            f"0.5*{HERE}:sound + 0.5*priority",
        )
    ),
]


def sound(state, counts):
    return np.sqrt(counts) * np.ones((state.n_jobs, 1))


class Together:
    """Whole node counts are worth what they are, but one job may have no more than a share of the idle nodes."""

    def __init__(self, share=1.0):
        self.share = share

    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        too_many = np.arange(posed.gain.shape[1]) > self.share * state.n_idle
        return replace(posed, gain=np.where(too_many, 0.0, posed.gain))


@pytest.mark.parametrize("spec", OURS)
class TestOurObjectives(ObjectiveContract):
    @pytest.fixture(autouse=True)
    def _choose(self, spec):
        self.objective = spec


class SaysAnotherSpec:
    """Made by hand, and its spec makes another one."""

    spec = "speed-up"

    def __init__(self):
        self.inner = objective_of("throughput")

    def problem(self, state, t_fwd_s):
        return self.inner.problem(state, t_fwd_s)

    def describe(self):
        return objective_of("speed-up").describe()


class Indescribable(SaysAnotherSpec):
    def describe(self):
        return {"spec": self.spec, "best": float("nan")}


class ForgetsItsSpec(SaysAnotherSpec):
    def describe(self):
        return {"spec": "throughput"}


def divides_by_the_progress(state, counts):
    with np.errstate(all="ignore"):
        return counts / np.maximum(state.progress, 0.0)[:, None]


def writes_into_the_state(state, counts):
    state.throughput[:] = 1.0
    return state.throughput


MADE = itertools.count()


def never_twice_the_same(state, counts):
    return counts * (1.0 + next(MADE)) * np.ones((state.n_jobs, 1))


def likes_idle_nodes(state, counts):
    return -counts * np.ones((state.n_jobs, 1))


class GivesNodesThatAreNotThere:
    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        return replace(posed, capacity=posed.capacity + 1)


class ForgetsWhatJobsHold:
    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        return replace(posed, current=np.zeros_like(posed.current))


class GivesOneNodeToAll:
    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        return replace(posed, min_nodes=np.ones_like(posed.min_nodes))


class GivesMoreThanAllowed:
    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        return replace(posed, max_nodes=np.full_like(posed.max_nodes, posed.gain.shape[1] - 1))


class LeavesNoAnswer:
    def problem(self, state, t_fwd_s):
        posed = objective_of("own").problem(state, t_fwd_s)
        return replace(posed, change_limit=0)


REPLAY = "test_a_replay_with_it_closes_its_ledger_and_repeats"
SOUND = "test_it_poses_sound_decisions_for_jobs_of_every_kind"
AGAIN = "test_its_spec_makes_it_again"


@pytest.mark.parametrize("made", [SaysAnotherSpec, Indescribable, ForgetsItsSpec])
def test_an_objective_that_its_spec_does_not_make_again_fails(made):
    contract = ObjectiveContract()
    contract.make_objective = made
    with pytest.raises((AssertionError, ValueError)):
        getattr(contract, AGAIN)()


@pytest.mark.parametrize(
    ("name", "test", "arguments", "error"),
    [
        ("divides_by_the_progress", SOUND, (), InputError),
        ("writes_into_the_state", SOUND, (), InputError),
        ("writes_into_the_state", "test_it_changes_nothing_that_it_sees", (), InputError),
        ("never_twice_the_same", AGAIN, (), AssertionError),
        ("never_twice_the_same", "test_two_of_them_pose_the_same", (), AssertionError),
        ("likes_idle_nodes", REPLAY, (Semantics.CONTINUOUS,), AssertionError),
        ("GivesNodesThatAreNotThere", SOUND, (), AssertionError),
        ("GivesNodesThatAreNotThere", "test_its_counts_are_allowed", (), AssertionError),
        ("ForgetsWhatJobsHold", SOUND, (), AssertionError),
        ("GivesOneNodeToAll", SOUND, (), AssertionError),
        ("GivesMoreThanAllowed", SOUND, (), AssertionError),
        ("LeavesNoAnswer", SOUND, (), AssertionError),
    ],
)
def test_a_broken_objective_fails(name, test, arguments, error):
    contract = ObjectiveContract()
    contract.objective = f"{HERE}:{name}"
    with pytest.raises(error):
        getattr(contract, test)(*arguments)
