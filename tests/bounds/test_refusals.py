"""A bound is given only where no policy can exceed it; otherwise the run says why there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.bounds import Kind, reason_without_bound, upper_bound
from bfreplay.datasets.log.events import with_node_types
from bfreplay.errors import InputError
from bfreplay.experiments.regret import regret
from bfreplay.policies import ANY_TRIGGER, BFTrainerPolicy, Decision, Policy, Round, Trigger
from bfreplay.replay import ReplaySettings
from bfreplay.runs.summary_text import render
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import Colocation, JobSet
from tests.replay.placed import Scripted, Step, typed_job, typed_log
from tests.replay.tiny import SECOND, job, log

_BOTH_ON_ONE_NODE = Step({0: [0], 1: [0]}, pairs=((0, 1),))
_PAIR = [typed_job(name, {"v100": (0.0, 10.0)}) for name in "ab"]
_NINE_EACH = Colocation({("a", "b", 1, "v100"): (9.0, 9.0)})
_SHARED = "jobs may share nodes: two on one node can process more than either alone"


def _run(events, jobs, policy, max_parallel=4, **options):
    return replay_log(events, JobSet(jobs), policy, ReplaySettings(max_parallel), efficiency=False, **options)


def test_jobs_that_may_share_nodes_have_neither_a_bound_nor_dedicated_nodes():
    """Two jobs make 18 samples/s on a node on which either makes 10 alone: 1.8 times what looked like the bound."""
    run = replay_log(typed_log("v100", 10), JobSet(_PAIR, colocation=_NINE_EACH), Scripted(_BOTH_ON_ONE_NODE))
    assert run.summary["ledger"]["samples"] == pytest.approx(180.0)
    assert run.summary["bound"] is None
    assert run.summary["efficiency"] is None
    assert run.summary["reason_without_baselines"] == _SHARED
    assert f"Baselines   none: {_SHARED}" in render(run)
    with pytest.raises(InputError, match="no upper bound: jobs may share nodes"):
        upper_bound(typed_log("v100", 10), JobSet(_PAIR, colocation=_NINE_EACH), 2)


def test_jobs_that_cannot_share_nodes_keep_their_bound():
    for none in (None, Colocation({})):
        run = replay_log(typed_log("v100", 10), JobSet(_PAIR, colocation=none), BFTrainerPolicy(60.0))
        assert run.summary["bound"]["samples"] == pytest.approx(100.0)
        assert run.summary["reason_without_baselines"] is None


def test_nodes_of_several_types_have_no_bound():
    with pytest.raises(InputError, match="no upper bound: nodes are of several types"):
        upper_bound(typed_log("v100 p100", 10), JobSet([typed_job()]), 2)


def test_regret_refuses_a_run_in_which_jobs_may_share_nodes():
    events, jobs = typed_log("v100", 10), JobSet(_PAIR, colocation=_NINE_EACH)
    run = replay_log(events, jobs, Scripted(_BOTH_ON_ONE_NODE))
    with pytest.raises(InputError, match="no upper bound: jobs may share nodes"):
        regret([run], events=events, jobs=jobs)


class InTwoSteps(Policy):
    """Ends its job's run when the pool grows and starts it again a microsecond later: together free of charge."""

    name = "in two steps"
    wakes_on = ANY_TRIGGER | Trigger.ROUND

    def decide(self, state):
        stops = state.time_us == 100 * SECOND
        until_us = 100 * SECOND + 1 if stops else 100 * SECOND if state.time_us < 100 * SECOND else 500 * SECOND
        return Decision(np.array([0 if stops else state.n_idle]), round=Round(until_us))


def _grows_once():
    return log(2, [(100, 1, True)], 200, idle_first=(0,))


_SLOW_TO_GROW = [job("a", work=np.inf, rates=(0.0, 1.0, 2.0), up_s=60)]


def test_a_policy_that_decides_in_rounds_does_not_exceed_the_bound():
    """100 s on one node and 100 s on two, no rescale paid; whoever decides at pool events alone pays 60 samples."""
    run = _run(_grows_once(), _SLOW_TO_GROW, InTwoSteps())
    assert run.summary["ledger"]["samples"] == pytest.approx(300.0, abs=1e-3)
    assert run.summary["bound"]["samples"] == pytest.approx(300.0)
    assert run.summary["bound"]["kind"] != Kind.PRICED
    at_events = _run(_grows_once(), _SLOW_TO_GROW, BFTrainerPolicy(1000.0))
    assert at_events.summary["bound"]["samples"] == pytest.approx(240.0)


def test_regret_gives_a_run_in_rounds_the_bound_that_holds_for_it():
    runs = [_run(_grows_once(), _SLOW_TO_GROW, policy) for policy in (InTwoSteps(), BFTrainerPolicy(1000.0))]
    in_rounds, at_events = regret(runs, effort="quick", events=_grows_once(), jobs=JobSet(_SLOW_TO_GROW))
    assert in_rounds.bound.samples == pytest.approx(300.0)
    assert at_events.bound.samples == pytest.approx(240.0)


class GivesUp(Policy):
    """Gives up the slow jobs at once, so that the one behind them is admitted."""

    name = "gives up"

    def decide(self, state):
        slow = state.throughput[:, 1] < 10
        return Decision(np.where(slow, 0, 1), round=Round(failed=slow) if slow.any() else None)


def test_a_policy_that_gives_jobs_up_does_not_exceed_the_bound():
    """Each slow job would take 500 s; given up, they make place for the fast one, 50 samples/s for 100 s."""
    idle = log(1, [], 100, idle_first=(0,))
    slow = [job(f"slow{k}", work=500.0, rates=(0.0, 1.0)) for k in range(2)]
    jobs = [*slow, job("fast", work=1e6, rates=(0.0, 50.0))]
    run = _run(idle, jobs, GivesUp(), max_parallel=1)
    assert run.summary["jobs"]["failed"] == 2
    assert run.summary["ledger"]["samples"] == pytest.approx(5000.0)
    assert run.summary["bound"]["samples"] == pytest.approx(5000.0)
    assert upper_bound(idle, JobSet(jobs), 1).samples == pytest.approx(100.0)  # in turn, without giving one up
    assert regret([run], events=idle, jobs=JobSet(jobs))[0].bound.samples == pytest.approx(5000.0)


def test_a_run_that_gave_jobs_up_has_no_earliest_end_of_all_work():
    """It is over after 1 s, with the work of the job that it gave up left undone."""
    idle = log(1, [], 100, idle_first=(0,))
    run = _run(idle, [job("slow", work=50.0, rates=(0.0, 1.0)), job("b", work=10.0)], GivesUp(), max_parallel=1)
    assert run.summary["last_finish_us"] == SECOND
    assert run.summary["bound"]["earliest_finish_us"] is None


@pytest.mark.parametrize("rate", [1e-300, 5e-324])
def test_rates_too_small_to_calculate_with_have_no_bound_and_the_run_says_so(rate):
    idle = log(2, [(50, 1, True)], 100, idle_first=(0,))
    run = _run(idle, [job("tiny", rates=(0.0, rate)), job("b")], BFTrainerPolicy(60.0))
    assert run.summary["bound"] is None
    assert run.summary["reason_without_baselines"] == (
        "the job 'tiny' has a rate or work below 1e-290, too small to calculate with"
    )


def test_the_rates_that_are_looked_at_are_those_on_the_nodes_that_there_are():
    idle = log(2, [(50, 1, True)], 100, idle_first=(0,))
    on_v100 = with_node_types(idle, {"v100": idle.nodes})
    tiny, fine = (TabulatedCurve((0, 1), (0.0, rate)) for rate in (1e-300, 1.0))
    there = replace(job("there", rates=(0.0, 1.0)), throughput_by_type={"v100": tiny})
    elsewhere = replace(job("elsewhere", rates=(0.0, 1e-300)), throughput_by_type={"v100": fine})
    assert "'there' has a rate" in reason_without_bound(on_v100, JobSet([there]))
    assert reason_without_bound(on_v100, JobSet([elsewhere])) is None
