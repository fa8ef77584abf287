"""What a policy of one's own may bring and see besides counts: restarts, a withdrawn round, the queue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies import NEVER_US, Decision, Placement, Policy, PolicyCapabilities, Round, Trigger
from bfreplay.workload import Restart, Saves
from tests.replay.tiny import SECOND, job, log

_OF_LOOP = {"efficiency": False, "bound": False}


class _Restarts(Policy):
    """Gives all nodes to the first job, and restarts it for 3 s at every decision but the first."""

    name = "restarts"
    capabilities = PolicyCapabilities(restarts_jobs=True)

    def decide(self, state):
        counts = np.zeros(state.n_jobs, np.int64)
        counts[0] = state.n_idle
        return Decision(counts, restart_s=np.where(state.time_us == 0, 0.0, np.full(state.n_jobs, 3.0)))


def _of_job(run, name="job"):
    return next(row for row in run.table("jobs").to_pylist() if row["job"] == name)


_EVENTS = log(2, [(10, 1, False), (15, 1, True)], 30, range(2))


def test_a_restart_is_owed_at_the_new_rate():
    run = replay_log(_EVENTS, [job()], _Restarts(), **_OF_LOOP)
    # 20/s for 10 s; 10/s for 2 s of 5; then 20/s for 12 s of 15
    assert _of_job(run)["done_samples"] == pytest.approx(200 + 20 + 240)
    assert run.table("decisions")["rescale_cost_samples"].to_pylist() == [0, 30, 60]


def test_a_restart_pauses_a_job_with_pauses_and_adds_to_what_it_pays_itself():
    jobs = [replace(job(up_s=1), restart=Restart.PAUSE)]
    run = replay_log(_EVENTS, jobs, _Restarts(), **_OF_LOOP)
    # 3 s after the reclaim, and 1 + 3 s after the scale-up
    assert _of_job(run)["done_samples"] == pytest.approx(200 + 20 + 220)
    assert _of_job(run)["rescaling_node_us"] == 2 * 4 * SECOND


@pytest.mark.parametrize(("saves", "done"), [(Saves.NEVER, 0), (Saves.ON_RESIZE, 80)])
def test_a_restart_takes_the_job_back_to_its_last_checkpoint(saves, done):
    events = log(1, [], 16, [0])
    jobs = [replace(job("a"), work_saved_every_s=100.0, saves=saves), job("b", submit_s=8)]
    run = replay_log(events, jobs, _Restarts(), **_OF_LOOP)
    assert _of_job(run, "a")["done_samples"] == pytest.approx(done + 10 * 5)


def test_an_undeclared_restart_is_refused():
    class Undeclared(_Restarts):
        capabilities = PolicyCapabilities()

    with pytest.raises(InputError, match="does not declare that it does"):
        replay_log(_EVENTS, [job()], Undeclared(), **_OF_LOOP)


@pytest.mark.parametrize("restart_s", [np.array([-1.0]), np.array([np.nan]), np.array([1.0, 1.0])])
def test_restarts_that_make_no_sense_are_refused(restart_s):
    class Wrong(_Restarts):
        def decide(self, state):
            return Decision(state.current, restart_s=restart_s)

    with pytest.raises(BfreplayError, match="restart_s that are not one number >= 0 for each job"):
        replay_log(_EVENTS, [job()], Wrong(), **_OF_LOOP)


def test_restarts_come_with_the_decision_or_with_the_placement_but_not_with_both():
    class Both(_Restarts):
        def decide(self, state):
            nodes = (np.flatnonzero(state.nodes.is_idle),)
            return Decision(np.array([nodes[0].size]), placement=Placement(nodes, **self.of_placement), **self.of_both)

    seconds = {"restart_s": np.array([3.0])}
    done = []
    for Both.of_placement, Both.of_both in ((seconds, {}), ({}, seconds)):
        done.append(_of_job(replay_log(_EVENTS, [job()], Both(), **_OF_LOOP))["done_samples"])
    assert done[0] == done[1] == pytest.approx(200 - 60 + 20 + 240)
    Both.of_placement = Both.of_both = seconds
    with pytest.raises(BfreplayError, match="restart_s twice"):
        replay_log(_EVENTS, [job()], Both(), **_OF_LOOP)


def test_the_published_clock_knows_no_restarts_of_a_policy():
    with pytest.raises(InputError, match="brings its own cost of a change"):
        replay_log(_EVENTS, [job()], _Restarts(), semantics="published", **_OF_LOOP)


class _Names(Policy):
    """Names a time at its first decision, and something else, or nothing, at its second."""

    name = "names"
    wakes_on = Trigger.POOL | Trigger.ROUND

    def __init__(self, second):
        self.until_us = [20 * SECOND, second]
        self.asked_s = []

    def decide(self, state):
        self.asked_s.append(state.time_us / SECOND)
        until_us = self.until_us.pop(0) if self.until_us else None
        return Decision(np.array([state.n_idle]), round=Round(until_us))


@pytest.mark.parametrize(
    ("second", "asked_s"),
    [(None, [0, 10, 15, 20]), (NEVER_US, [0, 10, 15]), (12 * SECOND, [0, 10, 12, 15])],
)
def test_a_named_time_stands_until_another_is_named_or_it_is_withdrawn(second, asked_s):
    policy = _Names(second)
    replay_log(_EVENTS, [job()], policy, **_OF_LOOP)
    assert policy.asked_s == asked_s


class _SeesQueue(_Restarts):
    capabilities = PolicyCapabilities(sees_queue=True)

    def __init__(self):
        self.seen = []

    def decide(self, state):
        self.seen.append((state.time_us // SECOND, state.waiting))
        return Decision(np.minimum(state.n_idle, np.arange(state.n_jobs) == 0))


def test_the_queue_is_shown_to_a_policy_that_declares_it():
    jobs = [job("a", work=170), job("late", submit_s=12), job("first"), job("second"), job("last", submit_s=29)]
    policy = _SeesQueue()
    replay_log(_EVENTS, jobs, policy, max_parallel=1, **_OF_LOOP)
    # numbers in order of submission: a, first, second, late, last
    assert policy.seen == [(0, (1, 2)), (10, (1, 2)), (15, (1, 2, 3)), (17, (2, 3))]


def test_no_queue_is_shown_to_others():
    class Blind(_SeesQueue):
        capabilities = PolicyCapabilities()

    policy = Blind()
    replay_log(_EVENTS, [job("a"), job("b")], policy, max_parallel=1, **_OF_LOOP)
    assert {waiting for _, waiting in policy.seen} == {None}
