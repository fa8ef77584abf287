"""What a decision and a reclaim write into the record of one job: starts, paces and charges."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import LedgerError
from bfreplay.replay.active import ALONE, FIRST, SECOND, ActiveJobs
from bfreplay.replay.progress import advance, apply_decision, charge_preemption, predict_finish, trim_to_work
from tests.replay.tiny import SECOND as ONE_S
from tests.replay.tiny import job


def holding(count: int, **of_job: float) -> ActiveJobs:
    """One active job that holds ``count`` of four nodes, 10 samples/s each, since 0 s."""
    active = ActiveJobs(1, 4)
    active.admit(0, job(**of_job), -1, 0)
    if count:
        decided(active, count)
    return active


def decided(active: ActiveJobs, count: int, at_s: float = 0.0, *, is_published: bool = False) -> float:
    """A decision gives the job ``count`` nodes; returns the samples charged."""
    before = active.records["count"][:1].copy()
    active.records[0]["count"] = count
    return _applied(active, before, round(at_s * ONE_S), is_published=is_published)[1]


def _applied(active: ActiveJobs, before: np.ndarray, now_us: int = 0, *, is_published: bool = False) -> tuple:
    effects, _ = apply_decision(active.records, before, active.throughput, active.costs_s, now_us, is_published)
    return effects


def reclaimed(active: ActiveJobs, n_nodes: int, *, is_published: bool = False) -> float:
    """``n_nodes`` of the job's nodes are taken back; returns the samples charged."""
    active.records[0]["count"] -= n_nodes
    active.records[0]["lost"] = n_nodes
    samples = _charged(active, is_published=is_published)[1]
    active.records[0]["lost"] = 0
    return samples


def _charged(active: ActiveJobs, *, is_published: bool = False) -> tuple[int, float]:
    return charge_preemption(active.records, 1, active.throughput, active.costs_s, 0, 0, is_published)


def test_a_job_that_starts_again_keeps_its_first_start():
    active = holding(0)
    for count, at_s in ((2, 5.0), (0, 7.0), (1, 9.0)):
        decided(active, count, at_s)
    record = active.records[0]
    assert (record["first_start_us"], record["n_starts"]) == (5 * ONE_S, 2)
    assert (record["n_scale_ups"], record["n_scale_downs"]) == (2, 1)


@pytest.mark.parametrize("is_published", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "charged"), [(2, 3, 20 * 5), (3, 2, 30 * 2), (3, 0, 30 * 2), (2, 2, 0), (0, 4, 0)]
)
def test_growing_and_shrinking_are_charged_at_the_rate_before_each_by_its_own_cost(
    before, after, charged, is_published
):
    active = holding(before, up_s=5, down_s=2)
    assert decided(active, after, is_published=is_published) == charged
    assert active.records[0]["rescale_debt"] == charged
    assert active.records[0]["rescale_cost"] == charged
    assert active.records[0]["rate"] == 10 * after


@pytest.mark.parametrize("is_published", [False, True])
def test_after_a_reclaim_a_job_grows_again_at_the_cost_of_its_rate_on_what_was_left(is_published):
    active = holding(3, up_s=5, down_s=2)
    assert reclaimed(active, 2, is_published=is_published) == 30 * 2
    record = active.records[0]
    assert (record["rate"], record["pace"], record["preempt_debt"], record["n_preemptions"]) == (10, 10, 60, 1)
    assert decided(active, 3, is_published=is_published) == 10 * 5


def test_a_job_that_a_reclaim_leaves_too_small_runs_at_no_rate_and_two_reclaims_add_up():
    active = holding(4, min_nodes=2, down_s=2)
    assert [reclaimed(active, n_nodes) for n_nodes in (1, 2)] == [40 * 2, 30 * 2]
    record = active.records[0]
    assert (record["rate"], record["pace"], record["preempt_debt"], record["n_preemptions"]) == (0, 0, 140, 2)


def test_a_job_that_loses_nothing_is_charged_nothing():
    active = holding(3, down_s=2)
    assert _charged(active) == (0, 0.0)
    assert active.records[0]["n_preemptions"] == 0


def test_debts_are_worked_off_before_progress_the_preemption_first():
    active = holding(2, up_s=1, down_s=2)
    reclaimed(active, 1)  # owes 40 samples
    decided(active, 4)  # and 10 more; it makes 40 samples/s
    record = active.records[0]
    assert advance(active.records, 1, ONE_S, ONE_S, False) == (0, 40, 4)
    assert (record["preempt_debt"], record["rescale_debt"], record["progress"]) == (0, 10, 0)
    assert advance(active.records, 1, 2 * ONE_S, ONE_S, False) == (30, 40, 4)
    assert (record["preempt_paid"], record["rescale_paid"], record["rescale_debt"]) == (40, 10, 0)
    node_s = [record[label] / ONE_S for label in ("preempted", "rescaling", "useful", "stalled")]
    assert node_s == [4, 1, 3, 0]


@pytest.mark.parametrize(("sharing", "n_nodes"), [(ALONE, 3), (FIRST, 3), (SECOND, 0)])
def test_shared_nodes_are_held_once_while_time_passes(sharing, n_nodes):
    active = holding(3)
    active.records[0]["sharing"] = sharing
    assert advance(active.records, 1, ONE_S, ONE_S, False)[2] == n_nodes


def test_the_time_that_a_debt_takes_is_rounded_to_the_nearest_microsecond():
    active = holding(3)
    active.records[0]["preempt_debt"] = 20  # two thirds of a second
    advance(active.records, 1, ONE_S, ONE_S, False)
    assert active.records[0]["preempted"] == 3 * 666_667
    assert active.records[0]["useful"] == 3 * 333_333


@pytest.mark.parametrize(("limit", "waited_s"), [(30, 0), (30 + 1e-10, 0), (15, 0.5)])
def test_a_job_that_has_just_done_what_it_may_waits_from_then_on(limit, waited_s):
    active = holding(3)  # 30 samples/s
    active.records[0]["halt"] = limit
    gained, gross, _ = advance(active.records, 1, ONE_S, ONE_S, False)
    record = active.records[0]
    assert (gained, gross, record["progress"], record["rate"]) == (limit, limit, limit, 0)
    assert record["stalled"] == 3 * waited_s * ONE_S
    assert record["useful"] + record["stalled"] == 3 * ONE_S


def test_a_job_that_may_process_nothing_until_it_is_asked_again_runs_at_no_rate():
    active = holding(3)
    active.records[0]["halt"] = 0
    assert _applied(active, np.array([3]))[0] == 0
    assert (active.records[0]["rate"], active.records[0]["pace"]) == (0, 30)


@pytest.mark.parametrize(("owed", "rate"), [(0, 0), (5, 30)])
def test_a_job_whose_work_is_done_runs_only_to_make_up_for_what_it_owes(owed, rate):
    active = holding(3, work=100)
    active.records[0]["progress"] = 100
    active.records[0]["preempt_debt"] = owed
    assert _applied(active, np.array([3]))[0] == rate


def test_restarting_costs_seconds_of_the_new_rate_besides_the_rescale_and_once():
    active = holding(2, up_s=5)
    active.records[0]["restart_s"] = 2
    assert decided(active, 3) == 20 * 5 + 30 * 2
    assert active.records[0]["rescale_debt"] == 160
    assert decided(active, 3) == 0


@pytest.mark.parametrize(("sharing", "n_nodes"), [(ALONE, 3), (FIRST, 3), (SECOND, 0)])
def test_nodes_that_two_jobs_share_count_once(sharing, n_nodes):
    active = holding(3)
    active.records[0]["sharing"] = sharing
    assert _applied(active, np.array([3]))[5] == n_nodes


def test_under_the_published_clock_a_job_that_makes_nothing_pays_for_its_rescale_all_the_same():
    active = holding(3, down_s=2)
    active.records[0]["progress"] = 100
    decided(active, 0, is_published=True)
    assert advance(active.records, 1, ONE_S, ONE_S, True) == (-60, 0, 0)
    record = active.records[0]
    assert (record["progress"], record["rescale_paid"], record["rescale_cost"]) == (40, 60, 0)


def test_the_time_between_the_end_of_a_job_and_the_event_that_shows_it_is_stalled_on_the_nodes_held_then():
    active = holding(2, work=100)
    advance(active.records, 1, 8 * ONE_S, 8 * ONE_S, True)  # done after 5 s at 20 samples/s
    reclaimed(active, 1, is_published=True)  # at this instant: it does not matter any more
    record = active.records[0]
    assert trim_to_work(record, True) == 60
    assert (record["progress"], record["useful"], record["stalled"]) == (100, 10 * ONE_S, 6 * ONE_S)


def test_a_job_may_complete_a_microsecond_s_samples_early_and_no_more():
    active = holding(2, work=100)  # 20 samples/s
    advance(active.records, 1, ONE_S, ONE_S, False)
    active.records[0]["progress"] = 100 - 1.5e-5
    assert trim_to_work(active.records[0], False) == pytest.approx(-1.5e-5)
    for name, amount in (("progress", 100 - 3e-5), ("rescale_debt", 3e-5), ("preempt_debt", 3e-5)):
        record = active.records[0].copy()
        record[name] = amount
        with pytest.raises(LedgerError, match="job 0 completes with"):
            trim_to_work(record, False)


def test_a_job_is_expected_to_finish_when_debts_and_work_are_done():
    active = holding(2, work=100, up_s=1)
    decided(active, 4)  # 20 samples for growing: 120 at 40 samples/s
    assert predict_finish(active.records, 1, 5 * ONE_S) == 8 * ONE_S
    decided(active, 0)
    assert predict_finish(active.records, 1, 5 * ONE_S) == np.iinfo(np.int64).max
