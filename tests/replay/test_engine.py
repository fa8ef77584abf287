"""The replay on logs that a person can follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies import ANY_TRIGGER, BFTrainerPolicy, Decision, EqualSharePolicy, Placement, PolicyState, Trigger
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs.summary_text import render
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log
from tests.run_records import changed, setting

PUBLISHED = ReplaySettings(semantics=Semantics.PUBLISHED)


def _hours(result, name):
    return result.summary["ledger"]["node_hours"][name] * 3600


def test_a_job_completes_at_its_exact_instant_and_frees_its_nodes():
    # 2 nodes idle all the time, 20 samples/s: 100 samples take 5 s, of a window of 20 s
    result = replay_log(log(2, [], 20, idle_first=[0, 1]), JobSet([job(work=100)]))
    row = result.jobs.iloc[0]
    assert row["status"] == "finished"
    assert row["finished"].timestamp() == 5.0
    assert row["done_samples"] == 100
    assert _hours(result, "useful") == 10  # node-seconds
    assert _hours(result, "unallocated") == 30
    assert result.summary["last_finish_us"] == 5 * SECOND


def test_jobs_that_finish_at_one_instant_are_followed_by_one_decision():
    # both are done after 3 s; the samples of the second are the sum of two spans, because of the event at 0.872717 s
    rate = 669433.2377397493
    jobs = JobSet([job("one", work=300, rates=(0, 100)), job("two", work=rate * 3, rates=(0, rate))])
    events = log(3, [(0.872717, 2, True)], 10, idle_first=[0, 1])
    result = replay_log(events, jobs)
    assert result.jobs["finished"].astype("int64").tolist() == [3 * SECOND, 3 * SECOND]
    assert result.table("decisions")["time"].cast("int64").to_pylist() == [0, 872_717, 3 * SECOND]


def test_a_job_that_finishes_with_a_reclaim_is_gone_before_it():
    # done after 3 s, predicted for a microsecond later at the event after 1 s; a node is reclaimed at 3 s
    rate = 0.5639420648086199
    events = log(3, [(1, 1, False), (3, 2, False)], 10, idle_first=[0, 1, 2])
    decisions = replay_log(events, JobSet([job(work=rate * 3, rates=(0, rate))])).table("decisions")
    assert decisions["time"].cast("int64").to_pylist() == [0, SECOND, 3 * SECOND]
    assert decisions["trigger"].to_pylist()[-1] == "pool+completion"


def test_under_the_published_clock_a_job_that_is_done_is_noticed_at_the_next_event():
    # done after 5 s on 2 nodes, noticed when node 2 becomes idle at 8 s; the random first map is all for the one job
    result = replay_log(log(3, [(8, 2, True)], 20, idle_first=[0, 1]), JobSet([job(work=100)]), settings=PUBLISHED)
    row = result.jobs.iloc[0]
    assert row["finished"].timestamp() == 8.0
    assert row["done_samples"] == 100
    assert _hours(result, "useful") == 10
    assert result.summary["ledger"]["node_hours"]["stalled"] * 3600 == 6
    assert result.summary["ledger"]["trimmed_samples"] == 60


def test_a_rescale_costs_the_rate_before_times_the_seconds_and_is_worked_off_before_progress_goes_on():
    # 1 node for 10 s: 100 samples. At 10 s a second node joins; growing costs 10 samples/s x 4 s = 40 samples,
    # worked off at 20 samples/s in 2 s; then 8 s x 20 = 160 until the window ends at 20 s
    events = log(2, [(10, 1, True)], 20, idle_first=[0])
    result = replay_log(events, JobSet([job(up_s=4)]), BFTrainerPolicy(t_fwd_s=100))
    row = result.jobs.iloc[0]
    assert row["done_samples"] == pytest.approx(260)
    assert row["rescale_cost_samples"] == pytest.approx(40)
    assert _hours(result, "rescaling") == pytest.approx(4)  # 2 nodes x 2 s
    assert _hours(result, "useful") == pytest.approx(26)


def test_a_start_from_zero_nodes_is_free():
    result = replay_log(log(1, [], 10, idle_first=[0]), JobSet([job(up_s=30)]))
    assert result.jobs.iloc[0]["done_samples"] == pytest.approx(100)
    assert result.summary["ledger"]["rescale_samples"] == 0


def test_a_reclaimed_node_is_paid_for_once_however_many_are_taken():
    # 3 nodes, 30 samples/s; two are reclaimed at 10 s: once 30 x 2 s = 60 samples, worked off at 10 samples/s in 6 s
    events = log(3, [(10, 0, False), (10, 1, False)], 20, idle_first=[0, 1, 2])
    result = replay_log(events, JobSet([job(down_s=2)]))
    row = result.jobs.iloc[0]
    assert row["n_preemptions"] == 1
    assert row["preemption_cost_samples"] == pytest.approx(60)
    assert _hours(result, "preempted") == pytest.approx(6)
    assert row["done_samples"] == pytest.approx(300 + 40)
    assert result.summary["n_preemptions"] == 1


def test_growing_does_not_pay_when_the_decision_is_expected_to_last_too_short():
    # growing gains 10 samples/s x t_fwd and costs 10 samples/s x 30 s
    events = log(2, [(10, 1, True)], 20, idle_first=[0])
    jobs = JobSet([job(up_s=30)])
    stays = replay_log(events, jobs, BFTrainerPolicy(t_fwd_s=29))
    grows = replay_log(events, jobs, BFTrainerPolicy(t_fwd_s=31))
    assert stays.decisions["n_nodes_used"].tolist() == [1, 1]
    assert grows.decisions["n_nodes_used"].tolist() == [1, 2]


def test_jobs_are_admitted_first_come_first_served_up_to_max_parallel():
    jobs = JobSet([job("late", submit_s=1, work=40), job("early", work=40), job("last", submit_s=2, work=40)])
    result = replay_log(log(4, [], 20, idle_first=range(4)), jobs, settings=ReplaySettings(max_parallel=1))
    admitted = result.jobs.set_index("job")["admitted"].map(lambda t: t.timestamp())
    assert admitted.to_dict() == {"early": 0.0, "late": 1.0, "last": 2.0}
    decisions = result.decisions
    assert decisions["trigger"].tolist() == ["pool+arrival", "arrival+completion", "arrival+completion", "completion"]


def test_a_job_that_arrives_between_events_starts_then_and_under_the_published_clock_at_the_next_event():
    events = log(2, [(10, 1, True)], 20, idle_first=[0])
    jobs = JobSet([job(submit_s=4)])
    starts = [
        replay_log(events, jobs, settings=settings).jobs.iloc[0]["first_start"].timestamp()
        for settings in (ReplaySettings(), PUBLISHED)
    ]
    assert starts == [4.0, 10.0]


def test_jobs_that_the_window_ends_on_are_reported_as_what_they_are():
    jobs = JobSet([job("runs"), job("waits", min_nodes=3), job("queues"), job("later", submit_s=99)])
    result = replay_log(log(2, [], 10, idle_first=[0, 1]), jobs, settings=ReplaySettings(max_parallel=2))
    assert result.jobs.set_index("job")["status"].to_dict() == {
        "runs": "running",
        "waits": "waiting",
        "queues": "queued",
        "later": "not_submitted",
    }


def test_free_nodes_are_taken_lowest_first_and_given_back_last_gained_first():
    class Scripted(EqualSharePolicy):
        script = iter([[1], [3], [2]])

        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array(next(self.script)))

    # n2 alone idle at first; then n0, n1, n3 join; the job grows to 3 (takes n0, n1) and shrinks to 2 (gives n1 back)
    events = log(4, [(10, 0, True), (10, 1, True), (10, 3, True), (20, 3, False)], 30, idle_first=[2])
    result = replay_log(events, JobSet([job()]), Scripted(), ReplaySettings(record_nodes=True))
    counted = result.jobs.iloc[0]
    assert (counted["n_starts"], counted["n_scale_ups"], counted["n_scale_downs"], counted["n_preemptions"]) == (
        1,
        2,
        1,
        0,
    )
    assert (result.summary["n_scale_ups"], result.summary["n_scale_downs"], result.summary["n_preemptions"]) == (
        2,
        1,
        0,
    )
    assert result.decisions["n_jobs_scaled_up"].tolist() == [1, 1, 0]
    assert result.decisions["n_jobs_scaled_down"].tolist() == [0, 0, 1]
    held = result.table("nodes").to_pandas()
    spans = {
        (node, since.timestamp(), until.timestamp())
        for node, since, until in zip(held["node"], held["from"], held["to"], strict=True)
    }
    assert spans == {("n2", 0, 30), ("n0", 10, 30), ("n1", 10, 20)}


def test_a_policy_is_asked_only_after_the_events_that_it_wants():
    class Sleepy(BFTrainerPolicy):
        wakes_on = Trigger.COMPLETION | Trigger.ARRIVAL

    events = log(2, [(10, 1, True)], 20, idle_first=[0])
    result = replay_log(events, JobSet([job()]), Sleepy())
    assert result.decisions["n_nodes_used"].tolist() == [1, 1]
    assert result.summary["decisions"] == {"proven": 1, "not_asked": 1}


def test_a_job_left_with_fewer_nodes_than_it_needs_and_no_decision_makes_nothing():
    class OnceOnly(BFTrainerPolicy):
        wakes_on = Trigger.ARRIVAL

    events = log(2, [(10, 1, False)], 20, idle_first=[0, 1])
    result = replay_log(events, JobSet([job(min_nodes=2)]), OnceOnly())
    assert result.jobs.iloc[0]["done_samples"] == pytest.approx(200)
    assert result.summary["ledger"]["node_hours"]["stalled"] * 3600 == pytest.approx(10)


def test_state_changes_of_busy_nodes_are_no_decision_points():
    from bfreplay.datasets import NodeState

    events = NodeEvents.from_arrays(
        ["a", "b"],
        [NodeState.IDLE, NodeState.BUSY],
        [5 * SECOND, 8 * SECOND],
        [1, 1],
        [NodeState.DOWN, NodeState.BUSY],
        0,
        10 * SECOND,
    )
    result = replay_log(events, JobSet([job()]))
    assert result.summary["n_decisions"] == 1
    assert result.summary["n_pool_events"] == 0


def test_the_most_idle_nodes_are_told_although_fewer_join_later():
    events = log(3, [(2, 0, False), (3, 1, False), (5, 0, True)], 10, idle_first=[0, 1, 2])
    assert replay_log(events, JobSet([job()])).summary["most_idle_nodes"] == 3


def test_a_node_that_comes_at_the_very_end_was_never_idle():
    events = log(3, [(5, 0, True), (10, 1, True)], 10)
    assert replay_log(events, JobSet([job()])).summary["most_idle_nodes"] == 1
    until_done = ReplaySettings(1, until_done=True)
    events = log(3, [(10, 1, True), (10, 2, True)], 100, idle_first=[0])
    run = replay_log(events, JobSet([job(work=100.0)]), settings=until_done)
    assert run.record.config.window_end_us == events.window_start_us + 10 * SECOND
    assert run.summary["most_idle_nodes"] == 1


def test_a_policy_is_not_asked_while_no_node_is_idle():
    class Counts(EqualSharePolicy):
        seen = ()

        def decide(self, state: PolicyState) -> Decision:
            self.seen = (*self.seen, (state.time_us / SECOND, state.n_idle))
            return super().decide(state)

    policy = Counts()
    replay_log(log(1, [(5, 0, False), (7, 0, True)], 10, idle_first=[0]), JobSet([job()]), policy)
    assert policy.seen[:2] == ((0.0, 1), (7.0, 1))


def test_events_before_the_first_job_are_counted():
    events = log(2, [(5, 1, True), (7, 0, False), (12, 1, False)], 20, idle_first=[0])
    assert replay_log(events, JobSet([job(submit_s=10)])).summary["n_pool_events"] == 3


def test_after_the_last_job_the_books_go_on_and_the_decisions_stop():
    events = log(1, [(t, 0, t % 2 == 0) for t in range(5, 15)], 20, idle_first=[0])
    result = replay_log(events, JobSet([job(work=20)]))  # done at 2 s
    assert result.summary["n_decisions"] == 2
    assert result.summary["n_pool_events"] == 10
    assert _hours(result, "idle") == 5 + 5 + 5  # until 5 s, 5 idle intervals of 1 s, from 14 s; first stretch included
    assert _hours(result, "useful") == 2


def test_a_log_on_which_nothing_is_ever_idle_closes_with_zeros():
    result = replay_log(log(3, [], 10), JobSet([job()]))
    assert _hours(result, "idle") == 0
    assert result.jobs.iloc[0]["status"] == "waiting"
    assert result.u is None


@pytest.mark.parametrize(
    "counts",
    [[5], [-1], [1, 1], [3], [1.9], [float("nan")]],
    ids=["above max", "negative", "too many jobs", "more than idle", "a fraction", "no number"],
)
def test_a_policy_that_gives_impossible_counts_is_stopped(counts):
    class Wrong(EqualSharePolicy):
        name = "wrong"
        wakes_on = ANY_TRIGGER

        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array(counts))

    with pytest.raises(BfreplayError, match="the policy"):
        replay_log(log(2, [], 10, idle_first=[0, 1]), JobSet([job()]), Wrong())


@pytest.mark.parametrize(
    ("counts", "assigned", "says"),
    [
        ([1], [[1]], "node 1, which is not idle"),
        ([1], [[7]], "node 7 of 3"),
        ([1], [[-1]], "node -1 of 3"),
        ([2], [[0, 0]], "node 0 twice"),
        ([1], [[0, 2]], "not its counts"),
        ([1], [], "nodes for 0 of 1 jobs"),
    ],
)
def test_a_policy_that_places_jobs_on_impossible_nodes_is_stopped(counts, assigned, says):
    class Wrong(EqualSharePolicy):
        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array(counts), placement=Placement(tuple(np.array(nodes) for nodes in assigned)))

    with pytest.raises(BfreplayError, match=says):
        replay_log(log(3, [], 10, idle_first=[0, 2]), JobSet([job()]), Wrong())


@pytest.mark.parametrize(("answer", "hint"), [(None, "is a return missing"), (np.array([1]), "Decision.counts.")])
def test_a_policy_that_gives_no_decision_is_stopped(answer, hint):
    class Forgetful(EqualSharePolicy):
        def decide(self, state: PolicyState) -> Decision:
            return answer

    with pytest.raises(InputError, match=hint):
        replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]), Forgetful())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"placement": (np.array([0]),)}, "'equal-share' gave tuple, not a Placement, as a part of its decision"),
        ({"round": 9_000_000}, "'equal-share' gave int, not a Round, as a part of its decision"),
    ],
)
def test_a_policy_whose_decision_has_other_parts_is_stopped_and_told_how_to_write_it(parts, message):
    class Mistaken(EqualSharePolicy):
        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array([1]), **parts)

    with pytest.raises(InputError, match=message) as caught:
        replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]), Mistaken())
    assert "Placement(assigned)" in str(caught.value)


class _Duck:
    """Has all that a policy needs, and does not inherit from it."""

    name, wakes_on = "duck", ANY_TRIGGER
    decide, describe, close = EqualSharePolicy.decide, EqualSharePolicy.describe, EqualSharePolicy.close


@pytest.mark.parametrize(
    ("policy", "fix"),
    [
        (_Duck(), r"class Mine\(bfreplay.Policy\):"),
        (EqualSharePolicy, r"give an object: EqualSharePolicy\(\)"),
        (5, r"class Mine\(bfreplay.Policy\):"),
    ],
)
def test_what_does_not_inherit_from_policy_is_refused_and_told_which_line_to_write(policy, fix):
    with pytest.raises(InputError, match=rf"this is not a policy\n(.*\n)*.*{fix}"):
        replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]), policy)


def test_a_policy_may_not_give_a_job_fewer_nodes_than_it_needs():
    class Stingy(EqualSharePolicy):
        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array([1]))

    with pytest.raises(BfreplayError, match="between 0 and min_nodes"):
        replay_log(log(3, [], 10, idle_first=[0, 1, 2]), JobSet([job(min_nodes=2)]), Stingy())


def test_a_summary_says_which_jobs_never_had_a_chance():
    jobs = JobSet([job("wide", min_nodes=4), job("tomorrow", submit_s=99)])
    text = render(replay_log(log(3, [], 10, idle_first=[0, 1, 2]), jobs))
    assert "1 waiting, 1 not submitted" in text
    assert text.startswith("Warning: 1 of 2 jobs could never run: wide needs 4 nodes, and at most 3 of 3 were ever")


def test_a_summary_tells_times_and_deadlines():
    from dataclasses import replace

    base = job(work=100)  # alone on one node: 10 s
    jobs = JobSet([replace(base, name="a", deadline_us=10 * SECOND), replace(base, name="b", deadline_us=19 * SECOND)])
    result = replay_log(log(1, [], 25, idle_first=[0]), jobs, settings=ReplaySettings(max_parallel=1))
    assert result.summary["deadlines"] == {"met": 1, "missed": 1, "declined": 0, "open": 0, "void": 0}
    assert result.summary["job_times"]["submit_to_start"].to_json() == {"n_jobs": 2, "median_s": 5.0, "p95_s": 9.5}
    assert result.summary["job_times"]["submit_to_finish"]["median_s"] == 15.0
    text = render(result)
    assert "Deadlines   1 met, 1 missed" in text
    assert "Finish      median 15 s after submission" in text


def test_files_and_plain_lists_are_taken_too(tmp_path):
    from bfreplay.datasets import write_events, write_jobs

    events, jobs = log(1, [], 10, idle_first=[0]), JobSet([job(work=50)])
    write_events(events, tmp_path / "log.parquet")
    write_jobs(jobs, tmp_path / "jobs.csv")
    for one, other in ((tmp_path / "log.parquet", tmp_path / "jobs.csv"), (events, [job(work=50)])):
        assert replay_log(one, other).summary["jobs"]["finished"] == 1


@pytest.mark.parametrize("policy", [EqualSharePolicy, 5])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(InputError, match="this is not a policy"):
        replay_log(log(1, [], 10), JobSet([job()]), policy)


@pytest.mark.parametrize("semantics", Semantics)
def test_a_summary_holds_plain_numbers_also_where_nothing_is_compiled(monkeypatch, semantics):
    from bfreplay.replay import engine, job_flow

    for module, names in (
        (engine, ("advance", "apply_decision")),
        (job_flow, ("charge_preemption", "predict_finish")),
    ):
        for name in names:
            compiled = getattr(module, name)
            monkeypatch.setattr(module, name, getattr(compiled, "py_func", compiled))
    events = log(2, [(5, 1, False), (8, 1, True)], 20, idle_first=[0, 1])
    summary = replay_log(events, JobSet([job(up_s=1, down_s=1)]), settings=ReplaySettings(semantics=semantics)).summary
    assert summary["n_preemptions"] == 1

    def numbers(value):
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [value] if isinstance(value, np.generic) else [number for each in values for number in numbers(each)]

    assert numbers(summary) == []


def test_a_policy_cannot_write_into_the_books():
    class Forger(EqualSharePolicy):
        def decide(self, state: PolicyState) -> Decision:
            state.progress[:] = 1e9
            return super().decide(state)

    with pytest.raises(InputError, match=r"failed in decide\(\) at .*read-only"):
        replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]), Forger())


def test_a_job_completes_only_after_it_has_made_up_for_a_preemption():
    # 2 nodes, 20 samples/s; one is reclaimed at 5 s: 100 done, 20 x 4 s = 80 owed, 50 to do, at 10 samples/s: 13 s more
    events = log(2, [(5, 1, False)], 30, idle_first=[0, 1])
    row = replay_log(events, JobSet([job(work=150, down_s=4)])).jobs.iloc[0]
    assert row["finished"].timestamp() == pytest.approx(18.0)
    assert row["preemption_cost_samples"] == pytest.approx(80)


def test_a_job_that_is_left_too_small_to_run_pays_nothing_for_growing_again():
    # 2 nodes, both needed; one is away from 10 to 12 s. Preempted: 20 x 2 = 40 samples; growing again: nothing
    events = log(2, [(10, 1, False), (12, 1, True)], 20, idle_first=[0, 1])

    class KeepsOne(BFTrainerPolicy):
        def decide(self, state: PolicyState) -> Decision:
            return Decision(np.array([min(2, state.n_idle)]) if state.n_idle == 2 else state.current.copy())

    jobs = JobSet([job(min_nodes=2, up_s=5, down_s=2)])
    row = replay_log(events, jobs, KeepsOne()).jobs.iloc[0]
    assert row["rescale_cost_samples"] == 0
    assert row["done_samples"] == pytest.approx(20 * 18 - 40)


def test_a_job_that_arrives_when_the_window_ends_is_queued():
    result = replay_log(log(1, [], 10, idle_first=[0]), JobSet([job(submit_s=10)]))
    assert result.jobs["status"].tolist() == ["queued"]


def test_a_place_that_becomes_free_when_the_window_ends_admits_nobody():
    # one at a time, 10 samples/s: the first is done at 10 s, when the window ends
    jobs = JobSet([job("first", work=100), job("second"), job("third", submit_s=10)])
    result = replay_log(log(1, [], 10, idle_first=[0]), jobs, settings=ReplaySettings(max_parallel=1))
    assert result.jobs["status"].tolist() == ["finished", "queued", "queued"]
    assert result.table("jobs")["admitted"].null_count == 2


def test_max_nodes_beyond_the_machine_is_the_machine():
    huge = job(rates=tuple(10.0 * n for n in range(50_001)))
    result = replay_log(log(2, [], 10, idle_first=[0, 1]), JobSet([huge]))
    assert result.jobs.iloc[0]["done_samples"] == pytest.approx(200)


def test_a_deadline_is_met_missed_or_open():
    from dataclasses import replace

    base = job(work=100)  # alone on one node: 10 s
    jobs = JobSet(
        [
            replace(base, name="met", deadline_us=10 * SECOND),
            replace(base, name="missed", deadline_us=19 * SECOND),
            replace(base, name="late", deadline_us=22 * SECOND),
            replace(base, name="open", deadline_us=99 * SECOND),
            replace(base, name="none"),
        ]
    )
    result = replay_log(log(1, [], 25, idle_first=[0]), jobs, settings=ReplaySettings(max_parallel=1))
    assert result.table("jobs")["deadline_met"].to_pylist() == [True, False, False, None, None]


@pytest.mark.parametrize(
    ("deadline_us", "met", "counted"), [(10 * SECOND, False, "missed"), (10 * SECOND + 1, None, "open")]
)
def test_a_deadline_at_the_end_of_the_window_is_missed_by_what_is_not_done_then(deadline_us, met, counted):
    from dataclasses import replace

    jobs = JobSet([replace(job(name), deadline_us=deadline_us) for name in ("running", "queued")])
    result = replay_log(log(1, [], 10, idle_first=[0]), jobs, settings=ReplaySettings(max_parallel=1))
    assert result.table("jobs")["deadline_met"].to_pylist() == [met, met]
    assert result.summary["deadlines"] == {"met": 0, "missed": 0, "declined": 0, "open": 0, "void": 0} | {counted: 2}


@pytest.mark.parametrize(("share", "told"), [(0.98765, "98.7 %"), (0.99999, "99.9 %"), (1.0, "100 %")])
def test_a_share_of_a_bound_is_rounded_down(share, told):
    result = replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]))
    result = changed(result, setting("summary.bound.share", share))
    result = changed(result, setting("summary.bound.earliest_finish_us", 5 * SECOND))  # the job is not done in this run
    assert f"Bound       at least {told} of the upper bound" in render(result)


def test_jobs_that_need_a_node_type_are_refused_because_logs_do_not_tell_types_apart():
    from dataclasses import replace

    with pytest.raises(InputError, match="node types"):
        replay_log(log(1, [], 10), JobSet([replace(job(), node_types=("gpu",))]))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_parallel": 0}, "max_parallel is below 1"),
        ({"max_parallel": 2.5}, "max_parallel is no whole number"),
        ({"seed": -1}, "seed is below 0"),
        ({"semantics": "magic"}, "semantics is unknown"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        ReplaySettings(**options)


def test_semantics_may_be_given_as_a_word():
    assert ReplaySettings(semantics="published").semantics is Semantics.PUBLISHED


def test_what_cannot_be_recorded_is_known_before_the_replay():
    class Unrecordable(EqualSharePolicy):
        def describe(self) -> dict[str, object]:
            return {"name": "x", "weight": float("nan")}

        def decide(self, state: PolicyState) -> Decision:
            raise AssertionError("the replay has begun")

    with pytest.raises(BfreplayError, match="cannot be recorded"):
        replay_log(log(1, [], 10, idle_first=[0]), JobSet([job()]), Unrecordable())


def test_decades_of_many_idle_nodes_still_close():
    n_nodes, years = 30_000, 12
    result = replay_log(
        log(n_nodes, [], years * 365 * 86_400, idle_first=range(n_nodes)),
        JobSet([job()]),
        efficiency=False,
        bound=False,
    )
    assert result.summary["ledger"]["idle_node_us"] == n_nodes * years * 365 * 86_400 * SECOND


def test_weights_shift_nodes_between_jobs():
    from dataclasses import replace

    jobs = JobSet([job("light"), replace(job("heavy"), weight=2.0)])
    result = replay_log(log(4, [], 10, idle_first=range(4)), jobs)
    assert result.jobs.set_index("job")["done_samples"].to_dict() == {"light": 0.0, "heavy": 400.0}


def test_progress_is_reported_within_the_window():
    seen = []
    events = log(1, [(t, 0, t % 2 == 0) for t in range(1, 200)], 300, idle_first=[0])
    replay_log(events, JobSet([job()]), progress=lambda now_us, n: seen.append((now_us, n)))
    assert seen
    assert all(0 <= now_us <= 300 * SECOND for now_us, _ in seen)
    assert [n for _, n in seen] == sorted(n for _, n in seen)


def test_work_that_is_next_to_nothing_takes_a_microsecond():
    # 1e-300 samples at 1e28 samples/s: the time underflows to nothing
    result = replay_log(log(1, [], 20, idle_first=[0]), JobSet([job(work=1e-300, rates=(0.0, 1e28))]))
    assert result.summary["jobs"]["finished"] == 1
    assert result.summary["last_finish_us"] == 1
    assert result.jobs.iloc[0]["done_samples"] == 1e-300
