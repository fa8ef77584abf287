"""Bounds hold, and are finite, however far apart rates and works are."""

from __future__ import annotations

import itertools
import math

import pytest

from bfreplay import replay_log
from bfreplay.bounds import Effort, upper_bound
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log

_EVENTS = log(4, [(50, 3, False), (80, 3, True)], 200, idle_first=(0, 1, 2, 3))
_RATES = (1e-280, 1.0, 3e29)
_WORKS = (1e-280, 1e300, math.inf)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("rates", list(itertools.combinations_with_replacement(_RATES, 2)))
def test_no_rates_or_works_make_the_bound_fail(rates):
    for works, max_parallel in itertools.product(itertools.product(_WORKS, repeat=2), (1, 2)):
        jobs = JobSet(
            job(f"j{k}", work=works[k], rates=tuple(n * rates[k] for n in range(4)), up_s=5, down_s=2, submit_s=3 * k)
            for k in range(2)
        )
        run = replay_log(
            _EVENTS, jobs, BFTrainerPolicy(60.0), ReplaySettings(max_parallel), efficiency=False, with_tables=False
        )
        searched = upper_bound(_EVENTS, jobs, max_parallel, effort=Effort.THOROUGH, evaluations=6)
        for samples in (run.summary["bound"]["samples"], searched.samples):
            assert run.summary["ledger"]["samples"] <= samples < math.inf
        earliest_us, done_us = run.summary["bound"]["earliest_finish_us"], run.summary["last_finish_us"]
        assert done_us is None or earliest_us <= done_us


def test_work_that_is_little_beside_the_rates_is_bounded_by_itself():
    """All of it is done at once: the prices of the linear program must not overflow."""
    jobs = JobSet([job("a", work=1e-280, rates=(0.0, 3e29)), job("b", work=1e-200, rates=(0.0, 1.0))])
    assert upper_bound(_EVENTS, jobs, 2).samples == pytest.approx(1e-200, rel=1e-6)
