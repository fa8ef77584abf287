"""Jobs that change their batch size while they train: when, what it means for their speed, and who decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies import BFTrainerPolicy, Decision, Policy, PolicyState, Round
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import Adaptation, ElasticJob, JobSet
from tests.replay.placed import of_job
from tests.replay.tiny import job, log

SLOW, FAST = TabulatedCurve((0, 1, 2), (0, 10, 20)), TabulatedCurve((0, 1, 2), (0, 20, 28))


def changing_job(name: str = "job", *, work: float = 400, changes=((0.0, 16), (200.0, 32)), submit_s=0.0) -> ElasticJob:
    """10 samples/s a node up to 200 samples; then 20 on one node and 28 on two."""
    adaptation = Adaptation("accordion", 100, {16: SLOW, 32: FAST}, changes)
    return ElasticJob(name, round(submit_s * 1e6), 1, 2, 0.0, 0.0, work, SLOW, adaptation=adaptation)


def finish_s(result, name: str = "job") -> float:
    return of_job(result, name)["finished"]


class Recorder(Policy):
    """Gives each job one node, and keeps what it was shown."""

    name = "recorder"

    def __init__(self, rounds: dict[int, Round] | None = None) -> None:
        self.seen: list[tuple[float, list[int], list[float]]] = []
        self.rounds = rounds or {}

    def decide(self, state: PolicyState) -> Decision:
        self.seen.append((state.time_us / 1e6, state.batch_size.tolist(), state.throughput[:, 1].tolist()))
        counts = state.min_nodes.copy()
        return Decision(counts, round=self.rounds.get(len(self.seen) - 1))


@pytest.mark.parametrize("semantics", ["continuous", "published"])
def test_a_job_goes_on_along_the_curve_of_its_new_batch_size(semantics):
    # one node: 200 samples at 10/s, 200 at 20/s. The published clock looks only at pool events: here every second
    events = log(2, [(t, 1, t % 2 == 1) for t in range(1, 40)], 40, [0])
    settings = ReplaySettings(semantics=semantics)
    result = replay_log(events, JobSet([changing_job()]), Recorder(), settings, efficiency=False)
    assert finish_s(result) == pytest.approx(30.0, abs=1e-5)
    assert result.summary["ledger"]["samples"] == pytest.approx(400)


def test_the_policy_is_asked_when_a_batch_size_changes_and_sees_the_new_curve():
    policy = Recorder()
    result = replay_log(log(1, [], 60, [0]), JobSet([changing_job()]), policy, efficiency=False)
    assert policy.seen == [(0.0, [16], [10.0]), (20.0, [32], [20.0])]
    assert result.table("decisions")["trigger"].to_pylist() == ["pool+arrival", "batch_size", "completion"]


def test_the_exact_allocator_moves_nodes_to_the_job_that_became_faster():
    """Three nodes. Both jobs make 10 a node, so that the third node goes to the first of them; from 200 samples on, b
    makes 20 on one node and only 8 more on the second, where a makes 10 more: b has one, and a two."""
    jobs = JobSet([changing_job("b"), job("a", rates=(0.0, 10.0, 20.0), work=1e6)])
    result = replay_log(log(3, [], 60, [0, 1, 2]), jobs, BFTrainerPolicy(600), efficiency=False)
    rate = dict(
        zip(*(result.table("decisions")[k].to_pylist() for k in ("trigger", "rate_samples_per_s")), strict=True)
    )
    assert rate["pool+arrival"] == 30.0
    assert rate["batch_size"] == 40.0


def test_a_job_that_was_paused_with_its_new_batch_size_keeps_it():
    # the node is away from 25 to 30 s: 200 samples by 20 s, 100 more by 25 s, the last 100 from 30 s on
    events = log(1, [(25, 0, False), (30, 0, True)], 60, [0])
    assert finish_s(replay_log(events, JobSet([changing_job()]), Recorder(), efficiency=False)) == 35.0


def test_a_job_keeps_its_new_batch_size_where_a_loss_takes_back_the_progress_of_the_change():
    # 150 samples are saved at 15 s, 90 are lost at 22 s, and from 30 s on the last 250 are made at 20/s
    losing_job, policy = replace(changing_job(), work_saved_every_s=15), Recorder()
    events = log(1, [(22, 0, False), (30, 0, True)], 60, [0])
    result = replay_log(events, JobSet([losing_job]), policy, efficiency=False)
    assert (finish_s(result), of_job(result)["repeated_samples"]) == (42.5, 90)
    assert policy.seen == [(0.0, [16], [10.0]), (20.0, [32], [20.0]), (30.0, [32], [20.0])]


def test_a_policy_may_set_batch_sizes_itself_and_credit_samples():
    policy = Recorder({0: Round(until_us=10_000_000), 1: Round(batch_size=np.array([32]), credit=np.array([50.0]))})
    policy.sets_batch_sizes = True
    policy.wakes_on = policy.wakes_on | 8
    result = replay_log(log(1, [], 60, [0]), JobSet([changing_job()]), policy, efficiency=False)
    # 100 samples by 10 s, 50 for nothing, 250 at 20/s; no change at 200 samples, which would ask again
    assert finish_s(result) == 22.5
    assert len(policy.seen) == 2
    ledger = result.summary["ledger"]
    assert ledger["credited_samples"] == 50.0
    assert ledger["samples"] == pytest.approx(400.0)
    assert ledger["gross_samples"] == pytest.approx(350.0)


@pytest.mark.parametrize(
    "wrong", [Round(credit=np.array([1.0, 1.0])), Round(credit=np.array([np.nan])), Round(batch_size=np.array([-1]))]
)
def test_impossible_batch_sizes_and_credits_are_refused(wrong):
    with pytest.raises(BfreplayError, match=r"batch sizes|credit"):
        replay_log(log(1, [], 60, [0]), JobSet([changing_job()]), Recorder({0: wrong}), efficiency=False)


@pytest.mark.parametrize(("sets", "size"), [(True, 64), (False, 32)])
def test_a_batch_size_without_a_curve_or_from_a_policy_that_sets_none_is_refused(sets, size):
    policy = Recorder({0: Round(batch_size=np.array([size]))})
    policy.sets_batch_sizes = sets
    with pytest.raises(BfreplayError, match=f"the batch size {size}, which it may not have"):
        replay_log(log(1, [], 60, [0]), JobSet([changing_job()]), policy, efficiency=False)


def test_curves_that_change_cannot_be_learnt():
    with pytest.raises(InputError, match="cannot be learnt"):
        replay_log(log(1, [], 60, [0]), JobSet([changing_job()]), LearningPolicy(Recorder()), efficiency=False)


def test_the_upper_bound_holds_for_jobs_that_become_faster():
    jobs = JobSet([changing_job("a", work=1e6), changing_job("b", work=1e6, submit_s=7)])
    result = replay_log(log(3, [(9, 2, False)], 60, [0, 1, 2]), jobs, BFTrainerPolicy())
    assert result.summary["bound"]["samples"] >= result.summary["ledger"]["samples"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (((5.0, 16),), "begin at 0"),
        (((0.0, 16), (5.0, 16)), "out of order"),
        (((0.0, 16), (5.0, 32), (5.0, 16)), "out of order"),
        (((0.0, 16), (5.0, 64)), "no throughput curve"),
        ((), "begin at 0"),
    ],
)
def test_changes_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        changing_job(changes=changes)


def test_time_alone_goes_through_all_batch_sizes():
    assert changing_job().seconds_alone(1) == 30.0
    assert changing_job(work=100).seconds_alone(1) == 10.0
    assert changing_job().seconds_alone(2) == 10.0 + 200 / 28
    assert changing_job().adaptation.average(2, 400).table(2).tolist() == [0, 400 / 30, 400 / (10.0 + 200 / 28)]
