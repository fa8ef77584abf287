"""A contract that nothing can break is none: what that of a policy asks for is broken, one thing at a time."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.policies import ANY_TRIGGER, Decision
from bfreplay.replay import Semantics
from bfreplay.testing import PolicyContract


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


class AnswersForOneJobMore(Sound):
    def decide(self, state):
        return Decision(np.append(super().decide(state).counts, 0))


class GivesLessThanTheMinimum(Sound):
    def decide(self, state):
        counts = super().decide(state).counts
        return Decision(np.where((counts > 0) & (state.min_nodes > 1), 1, counts))


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
        (AnswersForOneJobMore, "test_its_counts_are_allowed", (), AssertionError),
        (GivesLessThanTheMinimum, "test_its_counts_are_allowed", (), AssertionError),
        (Fickle, "test_a_replay_with_it_closes_its_books_and_repeats", (Semantics.CONTINUOUS,), AssertionError),
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
