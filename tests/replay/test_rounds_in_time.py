"""Rounds: when a policy is asked, limits of work, restarts, jobs that wait with their nodes or are given up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import BfreplayError
from bfreplay.policies import Decision, EqualSharePolicy, PolicyState, Round, Trigger
from bfreplay.workload import JobSet
from tests.replay.placed import (
    EVERY_TRIGGER,
    Scripted,
    Step,
    intervals,
    node_seconds,
    of_job,
    run,
    typed_job,
    typed_log,
)
from tests.replay.tiny import job, log

ROUNDS = Trigger.ROUND
ONE_NODE = Step({0: [0]})


def _every(seconds: float, n: int, **step) -> list[Step]:
    """The same nodes for job 0, in ``n`` rounds."""
    return [Step({0: [0]}, until_s=seconds * (k + 1), **step) for k in range(n)]


# -- when a policy is asked ------------------------------------------------------------------------------------


def test_the_end_of_a_round_asks_the_policy_and_nothing_else_does():
    # nodes come and go, a job arrives, another is done: all in mid-round
    jobs = [typed_job("a"), typed_job("b", work=35), typed_job("late", submit_s=4)]
    both = {0: [0], 1: [1]}
    policy = Scripted(Step(both, until_s=10), Step(both, until_s=20), Step(both, until_s=99), wakes_on=ROUNDS)
    events = typed_log("v100 v100 v100", 30, [(2, 2, False), (3, 2, True)])
    result = run(events, jobs, policy)
    assert policy.asked == [0, 10, 20]
    triggers = list(zip(*(result.table("decisions").to_pydict()[name] for name in ("time", "trigger")), strict=True))
    assert [(t.timestamp(), trigger) for t, trigger in triggers] == [
        (0, "pool+arrival"),
        (2, "pool"),
        (3, "pool"),
        (3.5, "completion"),
        (4, "arrival"),
        (10, "round"),
        (20, "round"),
    ]
    assert result.summary["decisions"]["not_asked"] == 4


def test_what_comes_in_mid_round_waits_for_the_next_one():
    policy = Scripted(Step(until_s=10), Step({0: [0]}, until_s=99), wakes_on=ROUNDS)
    jobs = [typed_job("first", submit_s=0), typed_job("late", submit_s=4)]
    policy.steps = (Step({0: [0]}, until_s=10), Step({0: [0], 1: [1]}, until_s=99))
    result = run(typed_log("v100 v100", 20), jobs, policy)
    assert of_job(result, "late")["admitted"] == 4.0
    assert of_job(result, "late")["first_start"] == 10.0
    assert policy.seen[1]["job"] == [0, 1]


def test_a_job_that_arrives_at_the_end_of_a_round_is_in_the_next_one():
    policy = Scripted(Step({0: [0]}, until_s=10), Step({0: [0], 1: [1]}, until_s=99), wakes_on=ROUNDS)
    jobs = [typed_job("first"), typed_job("late", submit_s=10)]
    assert of_job(run(typed_log("v100 v100", 20), jobs, policy), "late")["first_start"] == 10.0
    assert policy.asked == [0, 10]


def test_a_policy_in_rounds_that_names_no_time_is_asked_at_every_event():
    jobs = [typed_job("a"), typed_job("late", submit_s=4)]
    policy = Scripted(ONE_NODE, wakes_on=ROUNDS)
    run(typed_log("v100 v100", 20, [(2, 1, False)]), jobs, policy)
    assert policy.asked == [0, 2, 4]


def test_a_policy_that_wakes_on_other_events_too_keeps_its_time_unless_it_names_another():
    jobs = [typed_job("a"), typed_job("late", submit_s=4)]
    policy = Scripted(Step({0: [0]}, until_s=10), ONE_NODE, Step({0: [0]}, until_s=12), ONE_NODE)
    run(typed_log("v100 v100", 20), jobs, policy)
    assert policy.asked == [0, 4, 10, 12]


def test_a_round_that_ends_when_no_node_is_idle_is_made_up_for_at_the_next_event():
    policy = Scripted(Step({0: [0]}, until_s=10), ONE_NODE, wakes_on=ROUNDS)
    result = run(typed_log("v100", 30, [(5, 0, False), (15, 0, True)]), [typed_job()], policy)
    assert policy.asked == [0, 15]
    assert of_job(result)["done_samples"] == pytest.approx(50 + 150)


def test_a_round_longer_than_the_window_ends_with_it():
    result = run(typed_log("v100", 10), [typed_job()], Scripted(Step({0: [0]}, until_s=1e6), wakes_on=ROUNDS))
    assert of_job(result)["done_samples"] == pytest.approx(100)


# -- limits of work --------------------------------------------------------------------------------------------


def test_a_job_that_has_done_what_it_may_holds_its_nodes_and_waits():
    # 30 samples a round of 10 s: 3 s of work, 7 s of waiting, twice
    policy = Scripted(*_every(10, 3, samples={0: 30}), wakes_on=ROUNDS)
    result = run(typed_log("v100", 20), [typed_job()], policy)
    row = of_job(result)
    assert row["done_samples"] == pytest.approx(60)
    assert (row["useful"], row["stalled"]) == pytest.approx((6, 14), abs=1e-5)
    assert intervals(result) == [("job", "v100", 1, 0.0, 20.0)]
    assert policy.seen[1]["progress"] == pytest.approx([30])
    assert policy.seen[1]["held"] == [[0]]


def test_events_of_others_do_not_wake_a_job_that_waits():
    jobs = [typed_job("a"), typed_job("b", work=50), typed_job("late", submit_s=6)]
    policy = Scripted(Step({0: [0], 1: [1]}, samples={0: 20}, until_s=10), Step(), wakes_on=ROUNDS)
    result = run(typed_log("v100 v100 v100", 10, [(4, 2, False), (7, 2, True)]), jobs, policy)
    assert of_job(result, "a")["done_samples"] == pytest.approx(20)
    assert of_job(result, "a")["stalled"] == pytest.approx(8, abs=1e-5)
    assert of_job(result, "b")["finished"] == 5.0


def test_a_limit_counts_from_the_decision_and_the_next_decision_lifts_it():
    policy = Scripted(Step({0: [0]}, samples={0: 30}, until_s=5), Step({0: [0]}, until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100", 10), [typed_job()], policy))
    assert row["done_samples"] == pytest.approx(30 + 50)
    assert row["stalled"] == pytest.approx(2, abs=1e-5)


def test_a_limit_of_nothing_holds_the_nodes_for_nothing():
    row = of_job(run(typed_log("v100", 10), [typed_job()], Scripted(Step({0: [0]}, samples={0: 0.0}))))
    assert (row["done_samples"], row["stalled"]) == (0, 10)


def test_what_is_made_up_for_does_not_count_towards_the_limit():
    # 4 s lost to the restart, then 30 samples in 3 s, then 3 s of waiting
    policy = Scripted(Step({0: [0]}, samples={0: 30}, restart_s={0: 4}, until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100", 10), [typed_job()], policy))
    assert (row["rescaling"], row["useful"], row["stalled"]) == pytest.approx((4, 3, 3), abs=1e-5)
    assert row["done_samples"] == pytest.approx(30)


def test_work_that_is_lost_may_be_done_again_within_the_limit():
    # 100 samples by 5 s, all lost; 140 on the node that is left take 14 s, then 11 s of waiting
    policy = Scripted(Step({0: [0, 1]}, samples={0: 140}, until_s=99), wakes_on=ROUNDS)
    losing_job = replace(typed_job(), work_saved_every_s=100)
    row = of_job(run(typed_log("v100 v100", 30, [(5, 1, False)]), [losing_job], policy))
    assert (row["done_samples"], row["repeated_samples"]) == pytest.approx((140, 100))
    assert (row["useful"], row["stalled"]) == pytest.approx((14, 11), abs=1e-5)


@pytest.mark.parametrize(("work", "first"), [(193.71, 60.2), (333.939, 23.78), (318.7, 46.28), (10.1, 3.3)])
def test_a_limit_of_all_that_is_left_lets_a_job_finish(work, first):
    # first + (work - first) is rounded to less than work in three of these: no job waits with its last bit undone
    class AllThatIsLeft(Scripted):
        def decide(self, state):
            left = state.work - state.progress
            step = Step({0: [0]}, until_s=900, change={"samples": left})
            self.steps = (Step({0: [0]}, samples={0: first}, until_s=100), step)
            return super().decide(state)

    result = run(typed_log("v100", 800), [typed_job(work=work)], AllThatIsLeft(ONE_NODE, wakes_on=ROUNDS))
    row = of_job(result)
    assert row["finished"] == pytest.approx(100 + (work - first) / 10, abs=1e-5)
    assert row["done_samples"] == work


def test_a_limit_beyond_the_work_is_none():
    policy = Scripted(Step({0: [0]}, samples={0: 80}, until_s=10), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100", 20), [typed_job(work=50)], policy))
    assert (row["finished"], row["done_samples"]) == (5.0, 50)


def test_a_job_that_waits_pays_nothing_for_a_node_that_is_reclaimed():
    policy = Scripted(Step({0: [0, 1]}, samples={0: 40}, until_s=20), Step({0: [0]}, until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100 v100", 30, [(10, 1, False)]), [typed_job(down_s=3)], policy))
    assert row["preemption_cost_samples"] == 0
    assert row["n_preemptions"] == 1
    assert row["stalled"] == pytest.approx(2 * 8 + 10, abs=1e-5)
    assert row["done_samples"] == pytest.approx(40 + 100)


# -- restarts --------------------------------------------------------------------------------------------------


def test_a_restart_costs_seconds_at_the_rate_that_the_job_will_have():
    # from v100 to p100 at 10 s, 5 s lost: 5 x 4 = 20 samples, worked off in 5 s
    policy = Scripted(Step({0: [0]}, until_s=10), Step({0: [1]}, restart_s={0: 5}, until_s=99), wakes_on=ROUNDS)
    result = run(typed_log("v100 p100", 20), [typed_job()], policy)
    row = of_job(result)
    assert row["rescale_cost_samples"] == pytest.approx(20)
    assert row["rescaling"] == pytest.approx(5)
    assert row["done_samples"] == pytest.approx(100 + 20)
    assert result.table("decisions").to_pydict()["rescale_cost_samples"][-1] == pytest.approx(20)


def test_a_restart_is_paid_once_and_what_is_left_of_it_goes_into_the_next_round():
    policy = Scripted(Step({0: [0]}, restart_s={0: 15}, until_s=10), *_every(10, 4)[1:], wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100", 30), [typed_job()], policy))
    assert row["rescaling"] == pytest.approx(15)
    assert row["done_samples"] == pytest.approx(150)


def test_a_job_without_nodes_pays_no_restart():
    policy = Scripted(Step({}, restart_s={0: 15}, until_s=10), Step({0: [0]}, until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100", 30), [typed_job()], policy))
    assert row["rescaling"] == 0
    assert row["done_samples"] == pytest.approx(200)


# -- jobs that hold their nodes until a certain time ---------------------------------------------------------------


def test_a_job_that_is_done_early_holds_its_nodes_until_it_may_go():
    policy = Scripted(Step({0: [0]}, not_before_s={0: 10}))
    result = run(typed_log("v100", 20), [typed_job(work=50)], policy)
    row = of_job(result)
    assert row["finished"] == 10.0
    assert (row["useful"], row["stalled"], row["done_samples"]) == (5, 5, 50)
    assert node_seconds(result, "unallocated") == 10


def test_a_job_that_is_done_later_does_not_wait():
    row = of_job(run(typed_log("v100", 20), [typed_job(work=50)], Scripted(Step({0: [0]}, not_before_s={0: 3}))))
    assert (row["finished"], row["useful"], row["stalled"]) == (5.0, 5, 0)


def test_a_job_that_ends_between_two_microseconds_has_not_waited():
    # 100 samples at 30/s are done after 3 333 333.3 microseconds and noticed at the next whole one, which is its own
    row = of_job(run(typed_log("v100", 20), [typed_job(rates={"v100": (0.0, 30.0)}, work=100)], Scripted(ONE_NODE)))
    assert (row["useful_node_us"], row["stalled_node_us"]) == (3_333_334, 0)


def test_a_policy_never_sees_more_done_than_there_was_to_do():
    jobs = [typed_job("a", work=50), typed_job("late", submit_s=8)]
    policy = Scripted(Step({0: [0]}, not_before_s={0: 10}))
    result = run(typed_log("v100 v100", 20), jobs, policy)
    assert policy.seen[1]["progress"] == [50, 0]
    assert of_job(result, "a")["stalled"] == pytest.approx(5)


def test_a_job_that_waits_with_its_work_done_pays_nothing_for_a_reclaimed_node():
    # done at 2.5 s on two nodes; one of them leaves at 9 s; it holds 2 x 6.5 + 1 node-seconds for nothing
    policy = Scripted(Step({0: [0, 1]}, not_before_s={0: 10}, until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100 v100", 20, [(9, 1, False)]), [typed_job(work=50, down_s=30)], policy))
    assert row["finished"] == 10.0
    assert row["preemption_cost_samples"] == 0
    assert (row["useful"], row["stalled"]) == pytest.approx((5, 14), abs=1e-5)


def test_a_job_whose_work_is_done_leaves_when_a_decision_takes_its_nodes():
    policy = Scripted(Step({0: [0]}, not_before_s={0: 10}, until_s=7), Step(until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100", 20), [typed_job(work=50)], policy))
    assert (row["status"], row["finished"]) == ("finished", 7.0)


def test_a_job_whose_nodes_are_all_reclaimed_while_it_waits_is_done_at_its_time():
    policy = Scripted(Step({0: [0]}, not_before_s={0: 10}, until_s=99), wakes_on=ROUNDS)
    row = of_job(run(typed_log("v100 v100", 20, [(7, 0, False)]), [typed_job(work=50)], policy))
    assert (row["status"], row["finished"], row["stalled"]) == ("finished", 10.0, pytest.approx(2))


def test_a_decision_without_rules_lifts_those_of_the_one_before():
    class LimitsOnce(EqualSharePolicy):
        n_asked = 0

        def decide(self, state: PolicyState) -> Decision:
            self.n_asked += 1
            first = Round(samples=np.array([50.0]), not_before_us=np.array([99_000_000]))
            return Decision(np.array([1]), round=first if self.n_asked == 1 else None)

    # 10 samples/s: it waits from 5 s on for the second decision, at 20 s, and may leave then as soon as it is done
    result = replay_log(log(2, [(20, 1, True)], 60, idle_first=[0]), JobSet([job(work=250)]), LimitsOnce())
    assert of_job(result)["finished"] == 40.0


# -- jobs that are given up --------------------------------------------------------------------------------------


def test_a_job_that_is_given_up_leaves_with_its_status():
    policy = Scripted(Step({0: [0], 1: [1]}, until_s=10), Step({1: [1]}, failed=(0,), until_s=99), wakes_on=ROUNDS)
    result = run(typed_log("v100 v100", 20), [typed_job("a"), typed_job("b")], policy)
    row = of_job(result, "a")
    assert (row["status"], row["finished"], row["ended"]) == ("failed", None, 10.0)
    assert row["done_samples"] == pytest.approx(100)
    assert result.summary["jobs"]["failed"] == 1
    assert of_job(result, "b")["done_samples"] == pytest.approx(200)
    assert node_seconds(result, "unallocated") == 10


def test_the_place_of_a_job_that_is_given_up_is_taken_at_once():
    class GivesUpTheFirst(Scripted):
        def decide(self, state):
            step = Step(failed=(0,)) if 0 in state.job else Step({1: [0]})
            self.steps = (step,)
            return super().decide(state)

    policy = GivesUpTheFirst(ONE_NODE)
    result = run(typed_log("v100", 10), [typed_job("a"), typed_job("b")], policy, max_parallel=1)
    assert of_job(result, "b")["admitted"] == 0.0
    assert of_job(result, "b")["done_samples"] == pytest.approx(100)


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": np.array([1.0, 2.0])}, "samples that are not one number >= 0 for each job"),
        ({"samples": np.array([-1.0])}, "samples that are not one number >= 0"),
        ({"samples": np.array([np.nan])}, "samples that are not one number >= 0"),
        ({"restart_s": np.array([[1.0]])}, "restart_s that are not one"),
        ({"restart_s": np.array([-0.1])}, "restart_s that are not one"),
        ({"restart_s": np.array([np.inf])}, "restart_s that are not one"),
        ({"not_before_us": np.array([1, 2])}, "not_before_us that are not one"),
        ({"not_before_us": np.array([1.5])}, "not_before_us that are not one"),
        ({"failed": np.array([True])}, "jobs up that hold nodes"),
        ({"failed": np.array([True, False])}, "not one truth for each job"),
        ({"failed": np.array([0])}, "not one truth for each job"),
        ({"until_us": 5_000_000}, "a time to be asked again that is not later: 1970-01-01T00:00:05"),
        ({"until_us": 4_000_000}, "not later"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words_that_say_what(change, message):
    policy = Scripted(Step({0: [0]}, change=change), wakes_on=EVERY_TRIGGER)
    with pytest.raises(BfreplayError, match=message):
        run(typed_log("v100", 10), [typed_job(submit_s=5)], policy)
