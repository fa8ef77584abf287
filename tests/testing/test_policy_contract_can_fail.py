"""A contract that nothing can break is none: what that of a policy asks for is broken, one thing at a time."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.policies import ANY_TRIGGER, Decision, Policy, PolicyCapabilities, Trigger
from bfreplay.replay import Semantics
from bfreplay.saved_state import UnsavedError
from bfreplay.testing import PolicyContract
from tests.replay.placed import decision_of


class Sound(Policy):
    name = "sound"

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


class TestTheSoundOne(PolicyContract):
    policy = Sound


class RestartsAndSeesTheQueue(Sound):
    """Restarts jobs while others wait."""

    capabilities = PolicyCapabilities(restarts_jobs=True, sees_queue=True)

    def decide(self, state):
        return Decision(super().decide(state).counts, restart_s=np.full(state.n_jobs, 1.0 * len(state.waiting)))


class TestOneWithMoreThanCounts(PolicyContract):
    policy = RestartsAndSeesTheQueue


class SeesTheQueueUndeclared(RestartsAndSeesTheQueue):
    capabilities = PolicyCapabilities(restarts_jobs=True)


class RestartsUndeclared(RestartsAndSeesTheQueue):
    capabilities = PolicyCapabilities(sees_queue=True)


class RestartsForANegativeTime(RestartsAndSeesTheQueue):
    def decide(self, state):
        return Decision(super().decide(state).counts, restart_s=np.full(state.n_jobs, -1.0))


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


class Places(Sound):
    """In rounds: whoever comes first takes nodes of the first type with room, two share where they can."""

    name = "places"
    wakes_on = Trigger.ROUND
    capabilities = PolicyCapabilities(node_types=True, in_rounds=True)

    def decide(self, state):
        return decision_of(self.fields(state))

    def fields(self, state):
        free = np.flatnonzero(state.nodes.is_idle)
        assigned = [np.zeros(0, np.int64)] * state.n_jobs
        partner = np.full(state.n_jobs, -1)
        for j in range(state.n_jobs):
            for other in range(j):
                count = assigned[other].size
                if partner[other] < 0 < count and state.min_nodes[j] <= count <= state.max_nodes[j]:
                    partner[j], partner[other], assigned[j] = other, j, assigned[other]
                    break
            for node_type in range(len(state.nodes.type_names)) if not assigned[j].size else ():
                of_type = free[state.nodes.node_type[free] == node_type][: state.max_nodes[j]]
                if of_type.size >= state.min_nodes[j]:
                    assigned[j] = of_type
                    free = np.setdiff1d(free, of_type)
                    break
        return {
            "counts": np.array([nodes.size for nodes in assigned]),
            "assigned": tuple(assigned),
            "partner": partner,
            "samples": np.full(state.n_jobs, 500.0),
            "restart_s": np.full(state.n_jobs, 2.0),
            "until_us": state.time_us + 300_000_000,
        }

    def summary(self):
        return {"n_rounds": 0}


class TestTheOneThatPlaces(PolicyContract):
    policy = Places


class TestTheOneThatPlacesNarrowJobs(PolicyContract):
    policy = Places
    widest = 1


def _answering(**changes):
    """A policy whose decisions differ from those of the sound one: each field is made from it and the state."""

    class Changed(Places):
        def fields(self, state):
            fields = super().fields(state)
            return fields | {name: change(fields, state) for name, change in changes.items()}

    return Changed


def _mixed(fields, state):
    """Every second node of those that are idle, whatever its type, for the first job."""
    nodes = np.flatnonzero(state.nodes.is_idle)[:: max(1, state.n_idle // 2)][: state.max_nodes[0]]
    nothing = [np.zeros(0, np.int64)] * (state.n_jobs - 1)
    return {"counts": np.array([nodes.size] + [0] * (state.n_jobs - 1)), "assigned": (nodes, *nothing)}


class MixesTypes(Places):
    def fields(self, state):
        return super().fields(state) | _mixed(None, state) | {"partner": None}


class SleepsThrough(Places):
    wakes_on = ANY_TRIGGER


class WritesIntoTheNodes(Places):
    def decide(self, state):
        state.nodes.is_idle[:] = True
        return super().decide(state)


class CountsInfinitely(Places):
    def summary(self):
        return {"n_rounds": float("nan")}


class Remembers(Sound):
    """Every third decision gives nothing: what it counts is a part of its state."""

    n_decisions = 0

    def decide(self, state):
        self.n_decisions += 1
        return super().decide(state) if self.n_decisions % 3 else Decision(np.zeros(state.n_jobs, dtype=np.int64))


class Forgets(Remembers):
    not_saved = ("n_decisions",)


class HoldsAFunction(Sound):
    def __init__(self):
        self.handle = lambda: None


SAVES = "test_its_state_can_be_saved_and_restored_between_any_two_decisions"


def test_the_state_of_a_policy_is_found_by_itself():
    contract = PolicyContract()
    contract.policy = Remembers
    getattr(contract, SAVES)()


class DeclaresRoundsOnly(Sound):
    capabilities = PolicyCapabilities(in_rounds=True)


class DeclaresToChooseNodes(Sound):
    capabilities = PolicyCapabilities(chooses_nodes=True)


class DeclaresByText(Sound):
    capabilities = "node types"


_BUSY = {"assigned": lambda fields, state: tuple(nodes + 1 for nodes in fields["assigned"])}
_TWICE = {"assigned": lambda fields, state: tuple(nodes * 0 for nodes in fields["assigned"])}
BROKEN_PLACERS = {
    "mixes types": MixesTypes,
    "takes busy nodes": _answering(**_BUSY),
    "takes a node twice": _answering(**_TWICE),
    "names no nodes": _answering(assigned=lambda fields, state: None),
    "shares without saying so": _answering(partner=lambda fields, state: None),
    "shares one-sidedly": _answering(partner=lambda fields, state: np.minimum(fields["partner"], 0)),
    "pairs of a wrong shape": _answering(partner=lambda fields, state: np.array([-1] * (state.n_jobs + 1))),
    "negative limits": _answering(samples=lambda fields, state: -fields["samples"]),
    "endless restarts": _answering(restart_s=lambda fields, state: np.full(state.n_jobs, np.inf)),
    "fractions of a microsecond": _answering(not_before_us=lambda fields, state: np.full(state.n_jobs, 0.5)),
    "gives up whom it serves": _answering(failed=lambda fields, state: np.ones(state.n_jobs, np.bool_)),
    "looks back": _answering(until_us=lambda fields, state: state.time_us),
    "sleeps through its own time": SleepsThrough,
}


@pytest.mark.parametrize("name", BROKEN_PLACERS)
def test_a_broken_policy_that_places_fails(name):
    contract = PolicyContract()
    contract.policy = BROKEN_PLACERS[name]
    with pytest.raises(AssertionError):
        contract.test_its_counts_are_allowed()


@pytest.mark.parametrize(
    ("policy", "test", "arguments", "error"),
    [
        (Indescribable, "test_it_says_what_it_is", (), ValueError),
        (Forgets, SAVES, (), AssertionError),
        (HoldsAFunction, SAVES, (), UnsavedError),
        (GivesTooMuch, "test_its_counts_are_allowed", (), AssertionError),
        (SeesTheQueueUndeclared, "test_its_counts_are_allowed", (), TypeError),
        (RestartsUndeclared, "test_its_counts_are_allowed", (), InputError),
        (RestartsForANegativeTime, "test_its_counts_are_allowed", (), AssertionError),
        (AnswersFloats, "test_its_counts_are_allowed", (), AssertionError),
        (AnswersForOneJobMore, "test_its_counts_are_allowed", (), AssertionError),
        (GivesLessThanTheMinimum, "test_its_counts_are_allowed", (), AssertionError),
        (Fickle, "test_a_replay_with_it_closes_its_ledger_and_repeats", (Semantics.CONTINUOUS,), AssertionError),
        (WritesIntoTheNodes, "test_it_changes_nothing_that_it_sees", (), ValueError),
        (DeclaresRoundsOnly, "test_it_says_what_it_is", (), AssertionError),
        (DeclaresByText, "test_it_says_what_it_is", (), AssertionError),
        (DeclaresToChooseNodes, "test_its_counts_are_allowed", (), AssertionError),
        (CountsInfinitely, "test_it_says_what_it_is", (), ValueError),
        (WritesIntoTheState, "test_it_changes_nothing_that_it_sees", (), ValueError),
        (Fickle, "test_two_of_them_decide_alike", (), AssertionError),
        (TrainsNothing, "test_a_replay_with_it_closes_its_ledger_and_repeats", (Semantics.CONTINUOUS,), AssertionError),
    ],
)
def test_a_broken_policy_fails(policy, test, arguments, error):
    contract = PolicyContract()
    contract.policy = policy
    with pytest.raises(error):
        getattr(contract, test)(*arguments)
