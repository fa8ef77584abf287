"""Costs of changes, each alone and together, on replays that a person can work out: 10 samples/s on each node.

Node-seconds are those of one label; without another number every job makes what it makes on the nodes that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.policies import Decision, EqualSharePolicy, Policy, PolicyState, Round
from bfreplay.replay import ReplaySettings
from bfreplay.replay.ledger import HELD
from bfreplay.runs import RunResult
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet, Orders, Verdict
from tests.replay.test_job_sources import Scripted as ScriptedSource
from tests.replay.test_job_sources import by_name, reports
from tests.replay.tiny import SECOND, job, log

RATES = tuple(10.0 * n for n in range(9))
RECLAIMED, BACK = False, True
BOTH = pytest.mark.parametrize("restart", ["charge", "pause"])


class Counts(Policy):
    """Gives the jobs the counts of a table by time in seconds; at other times each keeps what it has."""

    name = "counts"

    def __init__(self, by_time: Mapping[float, Sequence[int]], limits: Mapping[float, float] | None = None) -> None:
        self.by_time, self.limits = dict(by_time), dict(limits or {})

    def decide(self, state: PolicyState) -> Decision:
        now_s = state.time_us / SECOND
        counts = np.array(self.by_time.get(now_s, state.current), dtype=np.int64)
        if now_s in self.limits:
            return Decision(counts, round=Round(samples=np.full(counts.size, self.limits[now_s])))
        return Decision(counts)


def costly(name: str = "job", **costs: Any) -> ElasticJob:
    """A job of up to 8 nodes that never ends; a change costs nothing unless told otherwise."""
    return replace(job(name, rates=RATES), **costs)


def replayed(
    jobs: ElasticJob | Sequence[ElasticJob],
    counts: Mapping[float, Sequence[int]],
    changes: Sequence[tuple[float, int, bool]] = (),
    *,
    n_idle: int = 8,
    end_s: float = 40,
    limits: Mapping[float, float] | None = None,
    **settings: Any,
) -> RunResult:
    """Replay on nodes n0, n1, ... that are idle at first; another node comes or goes whenever a decision is due."""
    due = [time_s for time_s in sorted(counts) if time_s > 0]
    clock = [(time_s, n_idle, position % 2 == 0) for position, time_s in enumerate(due)]
    events = log(n_idle + 1, [*changes, *clock], end_s, range(n_idle))
    jobs = [jobs] if isinstance(jobs, ElasticJob) else jobs
    quick = {"efficiency": False, "bound": False}
    return replay_log(events, JobSet(jobs), Counts(counts, limits), ReplaySettings(**settings), **quick)


def reclaim(time_s: float, *nodes: int) -> list[tuple[float, int, bool]]:
    return [(time_s, node, RECLAIMED) for node in nodes]


def made(run: RunResult) -> float:
    return float(run.jobs["done_samples"].sum())


def node_s(run: RunResult) -> dict[str, float]:
    """Node-seconds by label, without zeros."""
    seconds = {label: run.summary["ledger"][f"{label}_node_us"] / SECOND for label in HELD}
    return {label: value for label, value in seconds.items() if value}


def losses(run: RunResult) -> list[tuple[float, str, float, float]]:
    rows = run.frame("losses").to_dict("records")
    return [(row["time"].timestamp(), row["job"], row["samples"], row["node_us"] / SECOND) for row in rows]


def approx(expected: dict[str, float]) -> Any:
    return pytest.approx(expected, abs=2e-5)


# -- starts ---------------------------------------------------------------------------------------------------


@BOTH
def test_a_start_takes_its_seconds_on_the_new_nodes(restart):
    run = replayed(costly(start_cost_s=6, restart=restart), {0: [2]})
    assert made(run) == pytest.approx(34 * 20)
    assert node_s(run) == approx({"rescaling": 12, "useful": 68})
    assert run.jobs.loc[0, "rescale_cost_samples"] == pytest.approx(6 * 20)
    assert run.decisions.loc[0, "rescale_cost_samples"] == pytest.approx(6 * 20)


@BOTH
@pytest.mark.parametrize(("n_nodes", "seconds"), [(1, 6), (2, 9), (3, 9), (4, 1)])
def test_a_start_costs_the_seconds_of_its_count(restart, n_nodes, seconds):
    run = replayed(costly(start_cost_s="0:6 2:9 4:1", restart=restart), {0: [n_nodes]})
    assert made(run) == pytest.approx((40 - seconds) * 10 * n_nodes)


@BOTH
def test_each_start_is_paid_and_neither_scale_up_nor_scale_down(restart):
    run = replayed(costly(start_cost_s=6, scale_up_cost_s=50, restart=restart), {0: [2], 10: [0], 20: [1]})
    assert made(run) == pytest.approx(4 * 20 + 14 * 10)
    assert node_s(run) == approx({"rescaling": 12 + 6, "useful": 8 + 14})


@BOTH
def test_from_below_min_nodes_only_the_start_is_paid(restart):
    # on 3 nodes; 2 are reclaimed at 10 s, so it waits on one of the 2 that it needs at least, and starts again at 20 s
    costs = {"start_cost_s": 4, "scale_up_cost_s": 100, "scale_down_cost_s": 2}
    run = replayed(costly(min_nodes=2, restart=restart, **costs), {0: [3], 20: [3]}, reclaim(10, 0, 1))
    owed = 30 * 2 if restart == "charge" else 0  # a job that cannot run does not pause
    assert run.decisions["preemption_cost_samples"].sum() == pytest.approx(owed)
    assert made(run) == pytest.approx(6 * 30 + 16 * 30 - owed)
    hit = {"preempted": 3 * 2} if restart == "charge" else {}
    assert node_s(run) == approx({"rescaling": 24, "useful": 18 + 48 - sum(hit.values()), "stalled": 10} | hit)


# -- costs by count -------------------------------------------------------------------------------------------


def test_a_scale_up_is_charged_by_the_new_count_at_the_rate_before():
    run = replayed(costly(scale_up_cost_s="0:1 3:4"), {0: [1], 10: [2], 20: [3]})
    assert made(run) == pytest.approx(100 + (200 - 1 * 10) + (600 - 4 * 20))


def test_a_scale_up_pauses_by_the_new_count():
    run = replayed(costly(scale_up_cost_s="0:1 3:4", restart="pause"), {0: [1], 10: [2], 20: [3]})
    assert made(run) == pytest.approx(100 + 9 * 20 + 16 * 30)
    assert node_s(run) == approx({"rescaling": 2 + 12, "useful": 10 + 18 + 48})


def test_a_scale_down_is_charged_by_the_new_count_at_the_rate_before():
    run = replayed(costly(scale_down_cost_s={0: 8, 2: 3}), {0: [4], 10: [2], 20: [1]})
    assert made(run) == pytest.approx(400 + (200 - 3 * 40) + (200 - 8 * 20))


def test_a_scale_down_pauses_by_the_new_count():
    run = replayed(costly(scale_down_cost_s={0: 8, 2: 3}, restart="pause"), {0: [4], 10: [2], 20: [1]})
    assert made(run) == pytest.approx(400 + 7 * 20 + 12 * 10)
    assert node_s(run) == approx({"rescaling": 6 + 8, "useful": 40 + 14 + 12})


def test_giving_up_all_nodes_is_charged_and_does_not_pause():
    charged = replayed(costly(scale_down_cost_s="0:8 1:3"), {0: [4], 10: [0], 20: [1]})
    assert made(charged) == pytest.approx(400)  # it owes 320 samples, and has 200 to pay with
    paused = replayed(costly(scale_down_cost_s="0:8 1:3", restart="pause"), {0: [4], 10: [0], 20: [1]})
    assert made(paused) == pytest.approx(400 + 200)
    assert node_s(paused) == approx({"useful": 60})


@pytest.mark.parametrize(("notice_s", "seconds"), [(0, 3), (2, 1), (5, 0)])
@BOTH
def test_a_reclaim_costs_the_seconds_of_what_is_left_less_the_notice(restart, notice_s, seconds):
    given = {"notice": True, "clear_s": notice_s} if notice_s else {}
    run = replayed(costly(scale_down_cost_s="0:8 2:3 3:20", restart=restart), {0: [4]}, reclaim(10, 0, 1), **given)
    rate_of_cost = 40 if restart == "charge" else 20
    assert made(run) == pytest.approx(400 + 30 * 20 - seconds * rate_of_cost)
    preempted = seconds * rate_of_cost / 10
    labels = {"preempted": preempted, "useful": 40 + 60 - preempted}
    assert node_s(run) == approx({label: value for label, value in labels.items() if value})
    assert run.jobs.loc[0, "preemption_cost_samples"] == pytest.approx(seconds * rate_of_cost)
    assert run.decisions["preemption_cost_samples"].sum() == pytest.approx(seconds * rate_of_cost)


# -- pauses ---------------------------------------------------------------------------------------------------


def test_a_change_during_a_pause_begins_a_whole_one_and_debts_add_up():
    counts = {0: [1], 10: [2], 14: [3]}
    paused = replayed(costly(scale_up_cost_s=10, restart="pause"), counts)
    assert made(paused) == pytest.approx(100 + 16 * 30)  # nothing from 10 to 24 s
    assert node_s(paused) == approx({"useful": 10 + 48, "rescaling": 4 * 2 + 10 * 3})
    charged = replayed(costly(scale_up_cost_s=10), counts)
    assert made(charged) == pytest.approx(100 + 80 + 26 * 30 - 10 * 10 - 10 * 20)


def test_a_short_pause_replaces_a_long_one():
    run = replayed(costly(scale_up_cost_s=20, scale_down_cost_s=1, restart="pause"), {0: [1], 10: [4], 12: [3]})
    assert made(run) == pytest.approx(100 + 27 * 30)  # from 13 s on
    assert node_s(run) == approx({"useful": 10 + 81, "rescaling": 2 * 4 + 3})


def test_a_change_that_costs_nothing_ends_a_pause():
    run = replayed(costly(scale_up_cost_s=20, restart="pause"), {0: [1], 10: [4], 12: [3]})
    assert made(run) == pytest.approx(100 + 28 * 30)
    run = replayed(costly(scale_up_cost_s=20, restart="pause"), {0: [1], 10: [4]}, reclaim(12, 0))
    assert made(run) == pytest.approx(100 + 28 * 30)


def test_a_reclaim_during_a_pause_begins_one_of_its_own_label():
    run = replayed(costly(scale_up_cost_s=10, scale_down_cost_s=5, restart="pause"), {0: [2], 10: [4]}, reclaim(14, 0))
    assert made(run) == pytest.approx(200 + 21 * 30)
    assert node_s(run) == approx({"useful": 20 + 63, "rescaling": 16, "preempted": 15})


def test_a_change_at_the_instant_of_a_reclaim_pauses_once_as_preempted_and_a_later_one_as_rescaling():
    # 4 of 8 nodes are reclaimed at 10 s; the decision of this instant gives the job 4 of those that are left
    costs = {"scale_up_cost_s": 5, "scale_down_cost_s": 3, "start_cost_s": 2, "restart": "pause"}
    run = replayed(costly(**costs), {0: [4], 10: [4], 20: [3]}, reclaim(10, 0, 1))
    assert node_s(run) == approx({"rescaling": 2 * 4 + 3 * 3, "preempted": 5 * 4, "useful": 8 * 4 + 5 * 4 + 17 * 3})
    run = replayed(costly(**costs), {0: [4], 10: [4]}, reclaim(10, 0, 1, 2, 3))  # from none: a start
    assert node_s(run) == approx({"rescaling": 2 * 4, "preempted": 2 * 4, "useful": 8 * 4 + 28 * 4})


def test_a_job_finishes_after_its_pause():
    run = replayed(costly(start_cost_s=6, work_samples=100.0, restart="pause"), {0: [2]})
    assert run.jobs.loc[0, "finished"].timestamp() == 11
    assert run.summary["ledger"]["trimmed_samples"] == 0


# -- work at risk ---------------------------------------------------------------------------------------------


CHANGES = {
    "reclaim": ({0: [2]}, reclaim(21, 0)),
    "scale-down": ({0: [2], 21: [1]}, []),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_made_since_the_last_checkpoint_is_lost_at_a_reclaim_and_at_a_rescale(kind):
    # checkpoints at 8 and 16 s, and from the change on at 29 and 37 s
    run = replayed(costly(work_saved_every_s=8), *CHANGES[kind])
    assert made(run) == pytest.approx(16 * 20 + 19 * 10)
    assert node_s(run) == approx({"useful": 32 + 19, "repeated": 10})
    assert losses(run) == [(21, "job", 100, 10)]
    row = run.jobs.iloc[0]
    assert (row["repeated_samples"], row["repeated_node_us"]) == (100, 10 * SECOND)
    assert (row["rescale_cost_samples"], row["preemption_cost_samples"]) == (0, 0)


def test_a_scale_up_loses_work_too():
    run = replayed(costly(work_saved_every_s=8), {0: [2], 21: [3]})
    assert losses(run) == [(21, "job", 100, 10)]


def test_a_decision_that_changes_nothing_loses_nothing():
    run = replayed(costly(work_saved_every_s=8), {0: [2], 21: [2]})
    assert (made(run), losses(run)) == (pytest.approx(800), [])


@pytest.mark.parametrize(
    ("saves", "notice", "lost_at"),
    [
        ("never", False, {"reclaim", "scale-down"}),
        ("never", True, {"reclaim", "scale-down"}),
        ("on-notice", False, {"reclaim", "scale-down"}),
        ("on-notice", True, {"scale-down"}),
        ("on-resize", False, {"reclaim"}),
        ("on-resize", True, set()),
    ],
)
@pytest.mark.parametrize("kind", CHANGES)
def test_work_is_saved_on_the_occasions_that_the_job_names(kind, saves, notice, lost_at):
    for clear_s in (0, 30):  # whatever the length of the notice
        run = replayed(costly(work_saved_every_s=8, saves=saves), *CHANGES[kind], notice=notice, clear_s=clear_s)
        assert losses(run) == ([(21, "job", 100, 10)] if kind in lost_at else [])
        assert made(run) == pytest.approx(21 * 20 + 19 * 10 - 100 * (kind in lost_at))


def test_a_checkpoint_at_the_instant_of_the_loss_saves_all():
    run = replayed(costly(work_saved_every_s=8), {0: [2]}, reclaim(24, 0))
    assert (made(run), losses(run)) == (pytest.approx(24 * 20 + 16 * 10), [])
    run = replayed(costly(work_saved_every_s=8), {0: [2]}, reclaim(24 - 1e-6, 0))
    ((time_s, _, samples, seconds),) = losses(run)
    assert (time_s, samples, seconds) == (24 - 1e-6, pytest.approx((8 - 1e-6) * 20), 2 * (8 - 1e-6))


def test_checkpoints_are_counted_from_the_start_pauses_included():
    # starts at 3 s and pauses until 8 s; the checkpoint of 11 s saves 3 s of work
    costs = {"start_cost_s": 5, "restart": "pause", "work_saved_every_s": 8}
    run = replayed(costly(**costs), {0: [0], 3: [2]}, reclaim(13, 0))
    assert losses(run) == [(13, "job", 40, 4)]
    assert node_s(run) == approx({"rescaling": 10, "useful": 6 + 27, "repeated": 4})


def test_a_debt_is_no_work_at_risk():
    # the start owes 5 s: worked off until 5 s, checkpoints at 8 s
    run = replayed(costly(start_cost_s=5, work_saved_every_s=8), {0: [2]}, reclaim(7, 0))
    assert losses(run) == [(7, "job", 40, 4)]
    assert node_s(run) == approx({"rescaling": 10, "repeated": 4, "useful": 33})


@BOTH
def test_a_checkpoint_before_anything_was_made_saves_nothing(restart):
    # nothing is made until 10 s; the checkpoint of 8 s has nothing to save
    run = replayed(costly(start_cost_s=10, work_saved_every_s=8, restart=restart), {0: [2]}, reclaim(15, 0))
    assert losses(run) == [(15, "job", 100, 10)]
    assert made(run) == pytest.approx(25 * 10)
    assert node_s(run) == approx({"rescaling": 20, "repeated": 10, "useful": 25})


def test_a_loss_begins_the_count_anew():
    run = replayed(costly(work_saved_every_s=8), {0: [3]}, [*reclaim(21, 0), *reclaim(27, 1)])
    assert losses(run) == [(21, "job", 150, 15), (27, "job", 120, 12)]  # of a count from 0 s, 24 s had saved half
    assert made(run) == pytest.approx(16 * 30 + 13 * 10)


def test_saved_work_that_a_change_did_not_lose_begins_the_count_anew():
    run = replayed(costly(work_saved_every_s=8, saves="on-resize"), {0: [3], 21: [2]}, reclaim(27, 0))
    assert losses(run) == [(27, "job", 120, 12)]


def test_a_reclaim_and_a_decision_at_one_instant_lose_the_work_once():
    run = replayed(costly(work_saved_every_s=8), {0: [2], 21: [4]}, reclaim(21, 0))
    assert losses(run) == [(21, "job", 100, 10)]
    assert made(run) == pytest.approx(16 * 20 + 19 * 40)


def test_a_job_without_nodes_loses_nothing_more():
    run = replayed(costly(work_saved_every_s=8), {0: [2], 21: [0], 30: [1]})
    assert losses(run) == [(21, "job", 100, 10)]
    assert made(run) == pytest.approx(16 * 20 + 10 * 10)


@pytest.mark.parametrize(("every_s", "lost"), [(8, []), (16, [(10, "job", 50, 5)])])
def test_a_job_that_waits_with_its_nodes_saves_its_work(every_s, lost):
    # it may make 50 samples: done after 5 s
    run = replayed(costly(work_saved_every_s=every_s), {0: [1]}, reclaim(10, 0), limits={0: 50.0})
    assert losses(run) == lost
    assert made(run) == pytest.approx(50 - sum(row[2] for row in lost))


def test_a_job_that_already_waits_when_a_checkpoint_is_due_saves_its_work():
    run = replayed(costly(work_saved_every_s=8), {0: [1], 7: [1]}, reclaim(10, 0), limits={0: 50.0, 7: 0.0})
    assert (losses(run), made(run)) == ([], pytest.approx(50))


def test_a_job_that_has_waited_since_a_part_of_a_microsecond_loses_what_it_made_and_no_more():
    # 3 samples/us: checkpoint at 1 s, 4 million samples at 1.33 s, between two microseconds
    fast = costly(work_saved_every_s=1.0, throughput=TabulatedCurve((0, 1, 8), (0, 3e6, 3e6)))
    run = replayed(fast, {0: [1]}, reclaim(1.5, 0), limits={0: 4e6})
    ((_, _, samples, seconds),) = losses(run)
    assert samples == pytest.approx(1e6, rel=1e-9)
    assert seconds == pytest.approx(1 / 3, abs=1e-6)


@BOTH
def test_a_job_that_waits_at_its_limit_still_waits_after_a_reclaim_that_settles(restart):
    # 50 samples in 2.5 s; one node goes at 10 s, and the decision that lifts the limit comes at 14 s
    job_of_one = costly(scale_down_cost_s=3, restart=restart)
    run = replayed(job_of_one, {0: [2]}, reclaim(10, 0), limits={0: 50.0}, settle_s=4)
    assert made(run) == pytest.approx(50 + 26 * 10)
    assert node_s(run) == approx({"useful": 5 + 26, "stalled": 15 + 4})


def test_progress_at_the_end_counts_work_at_risk():
    run = replayed(costly(work_saved_every_s=100), {0: [2]})
    assert made(run) == pytest.approx(800)
    assert node_s(run) == approx({"useful": 80})
    assert losses(run) == []


def test_work_is_done_again_before_a_job_finishes():
    run = replayed(costly(work_saved_every_s=100, work_samples=300.0), {0: [2]}, reclaim(10, 0))
    assert run.jobs.loc[0, "finished"].timestamp() == 40
    assert losses(run) == [(10, "job", 200, 20)]


def test_a_job_that_is_done_at_the_instant_of_a_reclaim_loses_nothing():
    run = replayed(costly(work_saved_every_s=100, work_samples=200.0), {0: [2]}, reclaim(10, 0))
    assert run.jobs.loc[0, "finished"].timestamp() == 10
    assert losses(run) == []


def test_rows_of_losses_add_up_to_the_jobs_and_to_the_ledger():
    jobs = [costly("a", work_saved_every_s=8), costly("b", work_saved_every_s=3), costly("c")]
    run = replayed(jobs, {0: [2, 3, 1], 17: [3, 1, 2]}, [*reclaim(7, 2), *reclaim(29, 0, 1)])
    table, by_job = run.frame("losses"), by_name(run)
    for name, row in by_job.items():
        own = table[table["job"] == name]
        assert own["samples"].sum() == pytest.approx(row["repeated_samples"])
        assert own["node_us"].sum() == row["repeated_node_us"]
    assert by_job["a"]["repeated_samples"] > 0 < by_job["b"]["repeated_samples"]
    assert by_job["c"]["repeated_samples"] == 0
    ledger = run.summary["ledger"]
    assert table["node_us"].sum() == ledger["repeated_node_us"]
    assert table["samples"].sum() == pytest.approx(ledger["repeated_samples"])
    assert run.decisions["samples_since_last"].sum() <= ledger["samples"]


def test_where_no_work_is_at_risk_there_is_no_table_of_losses():
    assert "losses" not in replayed(costly(start_cost_s=5, restart="pause"), {0: [2]}).tables


# -- together -------------------------------------------------------------------------------------------------


def test_all_costs_together():
    # start on 2: 5 s, until 5 s. Work from 5 to 12 s, saved at 8 s (60 samples). At 12 s a third node is added: 80
    # samples are lost, 6 s of pause on 3. A node is reclaimed at 15 s, in the pause: nothing to lose, 4 - 1 s of pause
    # on 2, until 18 s. Work from 18 to 40 s: 440 samples
    costs = {"start_cost_s": "0:9 2:5", "scale_up_cost_s": "0:2 3:6", "scale_down_cost_s": "0:7 2:4"}
    costly_job = costly(restart="pause", work_saved_every_s=8, saves="never", **costs)
    run = replayed(costly_job, {0: [2], 12: [3]}, reclaim(15, 0), notice=True, clear_s=1)
    assert made(run) == pytest.approx(60 + 440)
    assert losses(run) == [(12, "job", 80, 8)]
    assert node_s(run) == approx({"rescaling": 10 + 9, "preempted": 6, "repeated": 8, "useful": 6 + 44})
    ledger = run.summary["ledger"]
    assert ledger["rescale_samples"] == pytest.approx(5 * 20 + 3 * 30)
    assert ledger["preemption_samples"] == pytest.approx(3 * 20)
    assert ledger["gross_samples"] == pytest.approx(500 + 80 + 190 + 60)


# -- job sources ----------------------------------------------------------------------------------------------


def searched(source: ScriptedSource, changes: Sequence[tuple[float, int, bool]], end_s: float = 40) -> RunResult:
    events = log(1, changes, end_s, [0])
    return replay_log(events, source, EqualSharePolicy(), ReplaySettings(), efficiency=False, bound=False)


def test_a_report_that_was_made_before_a_loss_is_not_made_again():
    # 50 samples at 5 s; all 80 are lost at 8 s; from 10 s on it makes them again, and 100 at 20 s
    trial = costly("trial", work_saved_every_s=100, report_at_samples=(50.0, 100.0), work_samples=150.0)
    run = searched(ScriptedSource([Orders((trial,))]), [(8, 0, RECLAIMED), (10, 0, BACK)])
    assert reports(run) == [
        (5, "trial", 50, "continue"),
        (20, "trial", 100, "continue"),
        (25, "trial", 150, "finished"),
    ]
    assert losses(run) == [(8, "trial", 80, 8)]


@pytest.mark.parametrize("every_s", [0.0, 100.0])
def test_a_source_whose_jobs_cannot_lose_work_has_no_table_of_losses(tmp_path, every_s):
    source = ScriptedSource([Orders((costly("trial", work_saved_every_s=every_s, work_samples=50.0),))])
    events, quick = log(1, [], 40, [0]), {"efficiency": False, "bound": False}
    for out, checkpoint_every in ((None, None), (tmp_path / "plain", None), (tmp_path / "checked", "1h")):
        run = replay_log(events, source, EqualSharePolicy(), out=out, checkpoint_every=checkpoint_every, **quick)
        assert run.has_table("losses") == (every_s > 0)
        assert out is None or (out / "losses.parquet").exists() == (every_s > 0)


def test_a_job_that_its_source_pauses_saves_its_work():
    trial = costly("trial", work_saved_every_s=100, report_at_samples=(50.0,), work_samples=150.0)
    orders = [Orders((trial,)), Orders(ask_again_us=20 * SECOND), Orders(resume=("trial",))]
    run = searched(ScriptedSource(orders, {("trial", 50.0): Verdict(pause=True)}), [])
    assert reports(run) == [(5, "trial", 50, "paused"), (30, "trial", 150, "finished")]
    assert losses(run) == []


# -- allowed counts -------------------------------------------------------------------------------------------


def test_a_job_left_on_a_count_that_it_cannot_use_runs_at_the_rate_of_the_next_lower_one():
    run = replayed(costly(counts=(1, 2, 4, 8), scale_down_cost_s=3), {0: [8]}, reclaim(10, 0))
    assert made(run) == pytest.approx(800 + 30 * 40 - 3 * 80)
    assert run.jobs.loc[0, "useful_node_us"] + run.jobs.loc[0, "preempted_node_us"] == (80 + 30 * 7) * SECOND
    assert run.decisions["n_nodes_used"].tolist()[-1] == 7


@pytest.mark.parametrize("other", [{}, {"start_cost_s": 1.0}])
def test_a_decision_is_told_the_counts_of_jobs_that_have_no_other_costs_too(other):
    told = []

    class Asks(EqualSharePolicy):
        def decide(self, state: PolicyState) -> Decision:
            told.append(np.flatnonzero(state.costs.allowed[0]).tolist())
            return super().decide(state)

    replay_log(log(8, [], 40, range(8)), JobSet([costly(counts=(1, 2, 4, 8), **other)]), Asks())
    assert told == [[0, 1, 2, 4, 8]]
