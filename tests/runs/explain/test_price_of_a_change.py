"""The parts of the price of a change and of a reclaim, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import explain, replay_log
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy
from bfreplay.policies.reclaims.policy import ReclaimAwarePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs.explain.decision_answer import ChangePrice, ReclaimPrice, render_decision
from bfreplay.runs.explain.why_these_nodes import explain_decision
from bfreplay.runs.saved_decisions import recorded_decisions
from bfreplay.workload import JobSet
from tests.replay.tiny import SECOND, job, log

PAUSES = {"start_cost_s": 5.0, "restart": "pause", "work_saved_every_s": 20.0}
CHARGES = {"start_cost_s": "0:5 2:6", "scale_up_cost_s": "0:2 3:4", "work_saved_every_s": 20.0}


def replay(events, costs, policy=None, **settings):
    jobs = JobSet([replace(job("a", up_s=3.0, down_s=2.0), **costs)])
    policy = BFTrainerPolicy(60.0) if policy is None else policy
    return replay_log(events, jobs, policy, ReplaySettings(**settings), efficiency=False, bound=False), jobs


def explained(run, jobs, events, at_s):
    return explain_decision(run, "a", round(at_s * SECOND), events=events, jobs=jobs)


def parts_add_up(price, loss):
    assert price.restart_loss + price.at_risk_loss - price.pause_left_loss == pytest.approx(loss)


def test_a_pause_that_replaces_another_and_loses_work():
    # it starts at 0 on 2 nodes of 20/s, pauses 5 s, saves at 20 s and 40 s, and has made 200 since when at 50 s two
    # more nodes come: on 4 it would make 40/s x (60 + 5) s, and loses 40/s x 3 s of pause and the 200
    events = log(4, [(50, 2, True), (50, 3, True)], 100, idle_first=[0, 1])
    run, jobs = replay(events, PAUSES)
    start = explained(run, jobs, events, 0)
    assert (start.horizon_s, start.reclaim_price, start.reclaims_per_hour) == (65.0, None, None)
    assert start.change_price == ChangePrice("start", 5.0, True, 100.0, 0.0, 0.0, 0.0, None, 100.0, 0.0, 0.0)
    assert (start.value_after, start.rescale_loss, start.rescale_cost_samples) == (20 * 65, 100.0, 100.0)
    grown = explained(run, jobs, events, 50)
    assert grown.change_price == ChangePrice(
        "scale-up", 3.0, True, 120.0, 0.0, 0.0, 200.0, "1970-01-01T00:00:40Z", 120.0, 200.0, 0.0
    )
    assert (grown.rescale_loss, grown.rescale_cost_samples, grown.value_gained) == (320.0, 120.0, 20 * 65)
    text = render_decision(grown)
    for words in (
        "Value to the job over the 65 s ahead, T_fwd after the longest restart",
        "  restart                          120   scale-up: 3 s paused\n",
        "  work at risk                     200   200 samples made since 1970-01-01T00:00:40Z\n",
        "  lost by rescaling                320   120 samples charged\n",
    ):
        assert words in text, text


def test_staying_would_have_cost_the_rest_of_a_pause():
    # the second node comes 2 s after the start on one: of its pause of 5 s, 3 s x 10/s were left
    events = log(2, [(2, 1, True)], 100, idle_first=[0])
    run, jobs = replay(events, PAUSES)
    grown = explained(run, jobs, events, 2)
    price = grown.change_price
    assert (price.change, price.seconds, price.samples) == ("scale-up", 3.0, 60.0)
    assert (price.pause_left_s, price.pause_left_samples, price.pause_left_loss) == (3.0, 30.0, 30.0)
    assert (price.restart_loss, grown.rescale_loss) == (60.0, 30.0)
    assert "rest of a pause                  -30   3 s, which staying would cost\n" in render_decision(grown)
    parts_add_up(price, grown.rescale_loss)


def test_a_charge_is_by_the_new_count_at_the_rate_before():
    # 2 s x 10/s for 2 nodes, but 4 s x 20/s for 4; a start on 1 node is 5 s x 10/s
    events = log(4, [(10, 1, True), (30, 2, True), (30, 3, True)], 100, idle_first=[0])
    run, jobs = replay(events, CHARGES)
    first, second, third = (explained(run, jobs, events, at_s) for at_s in (0, 10, 30))
    assert (first.change_price.change, first.change_price.is_pause, first.change_price.samples) == ("start", False, 50)
    assert (second.change_price.seconds, second.change_price.samples) == (2.0, 20.0)
    # all that was made since its start: the first 5 s went into the charge
    assert (second.change_price.at_risk_samples, second.change_price.at_risk_since) == (50.0, "1970-01-01T00:00:00Z")
    assert (third.change_price.seconds, third.change_price.samples) == (4.0, 80.0)
    for answer in (first, second, third):
        parts_add_up(answer.change_price, answer.rescale_loss)
    assert "scale-up: 4 s charged" in render_decision(third)


@pytest.mark.parametrize(
    ("notice", "saves", "seconds", "notice_s", "cost", "lost"),
    [(False, "never", 2.0, 0.0, 20.0, 200.0), (True, "on-notice", 0.5, 1.5, 5.0, 0.0)],
)
def test_a_reclaim_pauses_and_loses_work(notice, saves, seconds, notice_s, cost, lost):
    events = log(2, [(50, 1, False)], 100, idle_first=[0, 1])
    run, jobs = replay(events, {**PAUSES, "saves": saves}, notice=notice, clear_s=1.5)
    hit = explained(run, jobs, events, 50)
    assert hit.reclaim_price == ReclaimPrice(seconds, True, notice_s, pytest.approx(lost))
    assert (hit.preemption_cost_samples, hit.change_price.change) == (pytest.approx(cost), "none")
    assert hit.change_price.pause_left_s == seconds
    words = f"costs {cost:g} samples, a pause of {seconds:g} s"
    assert words in render_decision(hit)
    assert ("after 1.5 s of notice" in render_decision(hit)) == notice
    assert ("and 200 samples of work" in render_decision(hit)) == bool(lost)


@pytest.mark.parametrize(
    ("changes", "at_s", "lost", "at_risk"),
    [
        # decided on at 52 s: what was made since 30 s, by 30/s
        ([(50, 1, False)], 52, 600.0, 0.0),
        # a node that comes meanwhile is taken at 53 s: what was made since the pause of 2 s is lost by that change
        ([(50, 1, False), (51, 3, True)], 53, 600.0, 20.0),
        # the longest wait is over at the instant of the second reclaim, which takes what was made in 18 s by 20/s
        ([(50, 1, False), *((51.5 + 1.5 * k, 3, k % 2 == 0) for k in range(12)), (70, 2, False)], 70, 960.0, 0.0),
    ],
)
def test_work_lost_to_settled_reclaims_is_told_with_their_decision(changes, at_s, lost, at_risk):
    events = log(4, changes, 100, idle_first=[0, 1, 2])
    run, jobs = replay(events, {**PAUSES, "work_saved_every_s": 30.0}, settle_s=2.0)
    hit = explained(run, jobs, events, at_s)
    assert hit.reclaim_price.lost_samples == pytest.approx(lost)
    assert (hit.change_price.at_risk_samples, hit.after > hit.before) == (pytest.approx(at_risk), at_risk > 0)


def test_a_reclaim_with_notice_of_a_job_with_published_costs_costs_the_rest():
    events = log(2, [(50, 1, False)], 100, idle_first=[0, 1])
    run, jobs = replay(events, {}, notice=True, clear_s=1.5)
    hit = explained(run, jobs, events, 50)
    assert hit.preemption_cost_samples == 0.5 * 20
    assert (hit.change_price, hit.reclaim_price, hit.horizon_s) == (None, None, None)
    assert not {"change_price", "reclaim_price", "horizon_s", "reclaims_per_hour"} & hit.to_dict().keys()


def test_a_price_that_the_policy_was_told_is_that_of_the_decision():
    # it pays 7 s x 10/s in the decision, and pauses 3 s at 20/s
    events = log(2, [(30, 1, True)], 100, idle_first=[0])
    run, jobs = replay(events, PAUSES, BFTrainerPolicy(60.0, price_s=7.0))
    grown = explained(run, jobs, events, 30)
    assert (grown.rescale_loss, grown.rescale_cost_samples, grown.horizon_s) == (70.0, 60.0, None)
    assert (grown.change_price.restart_loss, grown.change_price.at_risk_samples) == (70.0, 100.0)
    assert "the change loses 100 samples made since 1970-01-01T00:00:20Z" in render_decision(grown)
    assert "the policy does not know what changes of these jobs cost, but was told 7 s for every change" in grown.notes


def test_decisions_from_learned_reclaims_are_repeated_and_say_what_was_expected():
    # one reclaim seen and half a one added, in an hour at least
    changes = [(100, 0, False), (200, 0, True), (300, 0, False), (400, 4, True)]
    events = log(6, changes, 500, idle_first=[0, 1, 2, 3])
    run, jobs = replay(events, PAUSES, ReclaimAwarePolicy(60.0))
    n_decisions = run.n_rows("decisions")
    decisions = recorded_decisions(run, range(n_decisions), events=events, jobs=jobs)
    assert len(decisions) == n_decisions
    last = explained(run, jobs, events, 450)
    assert last.reclaims_per_hour == pytest.approx(decisions[-1].reasons.reclaims_per_hour(0))
    assert last.reclaims_per_hour > explained(run, jobs, events, 0).reclaims_per_hour > 0
    assert any("it had learned to expect" in note for note in last.notes)
    parts_add_up(last.change_price, last.rescale_loss)
    with pytest.raises(InputError, match="learned reclaims"):
        explain_decision(run, "a", 450 * SECOND, events=events, jobs=jobs, t_fwd_s=10.0)


def test_nodes_that_were_chosen_are_chosen_again():
    # the run of four is better than node 0, the lowest, whose reclaim does not hit the job; it is taken for one of the
    # lowest now. Half a reclaim is added to it,
    # in the hour that is counted at least
    events = log(60, [(100, 0, False), (150, 55, True)], 200, idle_first=[0, 50, 51, 52, 53])
    run, jobs = replay(events, PAUSES, ReclaimAwarePolicy(60.0))
    last = explained(run, jobs, events, 160)
    assert (last.reclaimed, last.before, last.after) == (0, 4, 4)
    assert explained(run, jobs, events, 100).reclaimed == 0
    assert last.reclaims_per_hour == pytest.approx(1.5 / (1 + 120 / 3600))


def test_a_move_to_as_many_other_nodes_is_paid_and_told():
    """The lowest node comes and goes sixty times, then the job's two are the lowest; it moves at its checkpoint."""
    changes = [(100 + 50 * k + 25 * is_back, 0, is_back) for k in range(60) for is_back in (False, True)]
    changes += [(3110, node, False) for node in range(4)] + [(3140, node, True) for node in (7, 8)]
    events = log(9, changes, 3400, idle_first=range(6))
    costs = PAUSES | {"work_saved_every_s": 100.0}
    jobs = JobSet([replace(job("a", rates=(0.0, 10.0, 20.0), up_s=3.0, down_s=2.0), **costs)])
    settings = ReplaySettings(record_nodes=True)
    run = replay_log(events, jobs, ReclaimAwarePolicy(60.0), settings, efficiency=False, bound=False)
    held = [(row["node"], row["from"].timestamp()) for row in run.table("nodes").to_pylist()]
    assert sorted(held, key=lambda span: span[1])[-4:] == [("n4", 100), ("n5", 100), ("n7", 3200), ("n8", 3200)]
    assert run.summary.ledger.rescaling_node_us == 2 * (5 + 3) * SECOND  # the start, and the move
    assert run.summary.ledger.repeated_node_us == 0
    moved, before = explained(run, jobs, events, 3200), explained(run, jobs, events, 3140)
    assert "it moves to other nodes, for a restart of 3 s" in moved.notes
    assert len(before.notes) == 1


def test_all_decisions_of_a_saved_run_are_explained_alike(tmp_path):
    events = log(4, [(50, 2, True), (60, 0, False)], 100, idle_first=[0, 1])
    run, jobs = replay(events, PAUSES)
    answer = explain(run, "a", "+50", events=events, jobs=jobs)
    assert answer.to_dict()["change_price"]["change"] == "scale-up"
