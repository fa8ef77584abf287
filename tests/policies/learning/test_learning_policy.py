"""The wrapper: what its inner policy is shown, and what it passes on."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import (
    ANY_TRIGGER,
    BFTrainerPolicy,
    Decision,
    EqualSharePolicy,
    Placement,
    Policy,
    PolicyCapabilities,
    PolicyState,
    Trigger,
)
from bfreplay.policies.learning import LearningPolicy, learning_from_record
from bfreplay.testing import PolicyContract
from tests.policies.small_states import SECOND, state_of
from tests.replay.tiny import job, log

RATES = [[0.0, 10.0, 18.0, 24.0, 28.0], [0.0, 10.0, 18.0, 24.0, 28.0], [0.0, 3.0, 6.0, 9.0, 12.0]]


class TestLearningPolicy(PolicyContract):
    def make(self) -> Policy:
        return LearningPolicy(BFTrainerPolicy(60.0, ExactSolver()), noise=0.1, measure_s=5.0)


def _at(seconds: float, current: list[int], **changes: object) -> PolicyState:
    return state_of(RATES[: len(current)], 8, time_us=round(seconds * SECOND), current=current, **changes)


def _believed(learner: LearningPolicy, *steps: tuple[PolicyState, list[int]]) -> PolicyState:
    """What is believed at the last step, before its counts are decided."""
    for state, counts in steps:
        believed = learner.believed_state(state)
        learner.note_decision(state, np.array(counts))
    return believed


def test_nothing_is_known_at_first_and_all_jobs_look_alike():
    believed = _believed(LearningPolicy(EqualSharePolicy()), (_at(0, [0, 0], weight=[1.0, 3.0]), [2, 0]))
    assert believed.throughput.tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 2
    assert believed.objective.tolist() == [[0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 3.0, 6.0, 9.0, 12.0]]


def test_a_measured_job_is_known_there_and_sets_what_is_hoped_of_the_others():
    steps = [(_at(0, [0, 0]), [2, 0]), (_at(30, [2, 0]), [2, 0])]
    believed = _believed(LearningPolicy(EqualSharePolicy()), *steps)
    assert believed.throughput.tolist() == [[0.0, 9.0, 18.0, 27.0, 36.0], [0.0, 18.0, 36.0, 54.0, 72.0]]


def test_jobs_of_one_model_learn_from_one_another_and_others_do_not():
    steps = [
        (_at(0, [0, 0, 0], model=[4, 4, 5]), [1, 0, 0]),
        (_at(30, [1, 0, 0], model=[4, 4, 5]), [3, 0, 0]),
        (_at(60, [3, 0, 0], model=[4, 4, 5]), [3, 0, 0]),
    ]
    # Amdahl's law through 10 on one node and 24 on three
    by_model = _believed(LearningPolicy(EqualSharePolicy(), "model"), *steps).throughput
    assert by_model[0].tolist() == by_model[1].tolist()
    assert by_model[0, [1, 3]].tolist() == [10.0, 24.0]
    assert by_model[0, 2] == pytest.approx(20 / (1 + (30 / 24 - 1) / 2))
    assert by_model[2].tolist() == [0.0, 20.0, 40.0, 60.0, 80.0]
    by_job = _believed(LearningPolicy(EqualSharePolicy(), "job"), *steps).throughput
    assert by_job[0, [1, 3]].tolist() == [10.0, 24.0]
    assert by_job[1].tolist() == [0.0, 20.0, 40.0, 60.0, 80.0]


def test_jobs_without_a_model_share_nothing():
    steps = [(_at(0, [0, 0]), [1, 0]), (_at(30, [1, 0]), [3, 0]), (_at(60, [3, 0]), [3, 0])]
    believed = _believed(LearningPolicy(EqualSharePolicy(), "model"), *steps)
    assert believed.throughput[1].tolist() == [0.0, 20.0, 40.0, 60.0, 80.0]


def test_a_job_that_is_new_has_the_usual_shape_of_those_that_are_known():
    steps = [(_at(30 * n, [n, 0, 0]), [n + 1, 0, 0]) for n in range(3)]
    believed = _believed(LearningPolicy(EqualSharePolicy()), *steps, (_at(90, [3, 0, 0]), [3, 0, 0])).throughput
    assert believed[0, 1:4].tolist() == [10.0, 18.0, 24.0]
    # the law of the first job, and on one node twice the best rate per node that is known
    assert believed[1, 1] == 20.0
    assert believed[1, 4] == pytest.approx(2 * believed[0, 4], rel=0.01)
    assert believed[1].tolist() == believed[2].tolist()


def test_counts_above_max_nodes_are_worth_nothing_as_in_the_replays_tables():
    steps = [(_at(0, [0, 0], max_nodes=[2, 4]), [2, 0]), (_at(30, [2, 0], max_nodes=[2, 4]), [2, 0])]
    believed = _believed(LearningPolicy(EqualSharePolicy()), *steps)
    assert believed.throughput[0].tolist() == [0.0, 9.0, 18.0, 0.0, 0.0]
    assert believed.objective[0].tolist() == [0.0, 9.0, 18.0, 0.0, 0.0]


def test_a_metric_of_the_users_own_is_known_where_it_was_measured():
    metric = [[0.0, 1.0, 1.5, 1.75, 1.8]]
    steps = [(_at(30 * n, [n], objective=metric), [n + 1]) for n in range(3)]
    believed = _believed(LearningPolicy(EqualSharePolicy()), *steps, (_at(90, [3], objective=metric), [3]))
    assert believed.objective[0, 1:4].tolist() == [1.0, 1.5, 1.75]
    ratio = believed.objective[0, 4] / believed.throughput[0, 4]
    assert ratio == pytest.approx(1.75 / 24)


def test_all_else_is_what_the_replay_says():
    state = _at(0, [1, 2])
    believed = LearningPolicy(EqualSharePolicy()).believed_state(state)
    for name in vars(state):
        if name not in ("throughput", "objective"):
            assert getattr(believed, name) is getattr(state, name)
    assert not believed.throughput.flags.writeable
    assert not believed.objective.flags.writeable


def test_noise_is_relative_repeatable_and_averages_out():
    def measured(seed: int, n: int) -> float:
        learner = LearningPolicy(EqualSharePolicy(), noise=0.2, seed=seed)
        steps = []
        for k in range(n):  # 2 nodes for 30 s, then none, again and again
            steps += [(_at(60 * k, [0]), [2]), (_at(60 * k + 30, [2]), [0])]
        return float(_believed(learner, *steps).throughput[0, 2])

    assert measured(1, 1) == measured(1, 1) != measured(2, 1)
    first = np.array([measured(seed, 1) for seed in range(400)])
    assert first.mean() == pytest.approx(18.0, rel=0.03)
    assert first.std() == pytest.approx(0.2 * 18.0, rel=0.15)
    assert measured(1, 400) == pytest.approx(18.0, rel=0.03)


def test_an_earlier_clock_or_a_close_is_a_new_beginning():
    steps = [(_at(0, [0]), [2]), (_at(30, [2]), [2])]
    learner = LearningPolicy(EqualSharePolicy())
    assert _believed(learner, *steps).throughput[0, 2] == 18.0
    assert learner.believed_state(_at(0, [0])).throughput[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert _believed(learner, *steps).throughput[0, 2] == 18.0
    learner.close()
    assert learner.believed_state(_at(60, [2])).throughput[0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_it_bears_the_name_of_its_inner_policy_and_says_how_it_learns():
    inner = BFTrainerPolicy(90.0)
    learner = LearningPolicy(inner, "model", noise=0.05, seed=3, measure_s=60)
    assert learner.name == "bftrainer"
    assert learner.wakes_on is inner.wakes_on
    learning = {"share": "model", "noise": 0.05, "seed": 3, "measure_s": 60.0}
    assert learner.describe() == {**inner.describe(), "learning": learning}


def test_it_is_made_again_from_the_record_of_a_run():
    learner = LearningPolicy(EqualSharePolicy(), "model", noise=0.05, seed=3, measure_s=60)
    record = json.loads(json.dumps({"config": {"policy": learner.describe()}}))
    again = LearningPolicy(EqualSharePolicy(), **(learning_from_record(record["config"]["policy"]) or {}))
    assert again.describe() == learner.describe()
    assert learning_from_record(EqualSharePolicy().describe()) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": "site"}, "share is unknown"),
        ({"noise": -0.1}, "noise is out of range"),
        ({"noise": float("nan")}, "noise is not finite"),
        ({"noise": 5.0}, "noise is out of range"),
        ({"measure_s": 0.0}, "measure_s is out of range"),
        ({"measure_s": float("inf")}, "measure_s is not finite"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        LearningPolicy(EqualSharePolicy(), **options)


class _Answers(EqualSharePolicy):
    wakes_on = Trigger.POOL

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.is_closed = False

    def decide(self, state: PolicyState) -> Decision:
        return self.answer

    def close(self) -> None:
        self.is_closed = True


def test_what_the_inner_policy_decides_is_passed_on_as_it_is_and_closing_reaches_it():
    answer = Decision(np.array([2]), placement=Placement((np.array([5, 7]),)))
    inner = _Answers(answer)
    learner = LearningPolicy(inner)
    assert learner.wakes_on is Trigger.POOL
    assert learner.decide(_at(0, [0])) is answer
    learner.close()
    assert inner.is_closed


class _Declares(EqualSharePolicy):
    """Declares all that a policy may."""

    capabilities = PolicyCapabilities(node_types=True, asks_solver=False, warm_up="equal-share")
    objective = "throughput"
    foreseen = None

    def check_jobs(self, jobs, most_nodes):
        raise InputError(f"{len(jobs)} jobs and {most_nodes} nodes are not for me")

    def foresee(self, events):
        self.foreseen = events

    def summary(self):
        return {"n_looked": 1}


def test_it_declares_what_its_inner_policy_declares_but_for_node_types():
    inner = _Declares()
    learner = LearningPolicy(inner)
    assert learner.capabilities == replace(inner.capabilities, node_types=False)
    assert learner.objective == "throughput"
    assert learner.summary() == {"n_looked": 1}
    events = log(4, [(1, 0, True)], 10)
    learner.foresee(events)
    assert inner.foreseen is events
    with pytest.raises(InputError, match="decides on nodes of one type"):
        learner.check_types(("v100", "p100"))


def test_jobs_that_its_inner_policy_refuses_are_refused():
    with pytest.raises(InputError, match="1 jobs and 4 nodes are not for me"):
        replay_log(log(4, [(1, 0, True)], 10), [job()], LearningPolicy(_Declares()))


@pytest.mark.parametrize(
    "answer",
    [None, Decision(np.array([9])), Decision(np.array([-1])), Decision(np.array([1, 1])), Decision(np.array([0.5]))],
)
def test_the_replay_says_what_is_wrong_with_an_impossible_decision(answer):
    with pytest.raises(BfreplayError, match="the policy 'equal-share' gave"):
        replay_log(log(4, [(1, 0, True)], 10), [job()], LearningPolicy(_Answers(answer)))


def test_a_job_that_ran_elsewhere_is_asked_about_only_where_it_ran():
    """The true tables hold nonsense but for what was measured."""
    truth = np.full((1, 5), np.nan)
    truth[0, 2] = 18.0
    states = [replace(_at(t, [n]), throughput=truth, objective=truth) for t, n in ((0, 0), (30, 2))]
    believed = _believed(LearningPolicy(EqualSharePolicy()), *((state, [2]) for state in states))
    assert believed.throughput[0].tolist() == [0.0, 9.0, 18.0, 27.0, 36.0]


def test_it_wakes_on_all_that_its_inner_policy_wakes_on():
    assert LearningPolicy(EqualSharePolicy()).wakes_on is ANY_TRIGGER
