"""The bounds beside a second implementation: brute force, and one linear program over all intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from bfreplay import replay_log
from bfreplay.bounds import upper_bound
from bfreplay.bounds.fluid import admission_limit, earliest_end_us, most_samples
from bfreplay.bounds.job_classes import Horizon, job_classes
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings
from bfreplay.workload import JobSet
from tests.bounds.one_job import most_of_one
from tests.examples import examples
from tests.replay.tiny import job, log


def _most_by_program(jobs, max_parallel, horizon):
    """Most samples with free rescaling: node-seconds of each job at each count in each interval, work included."""
    columns = [
        (i, j, n)
        for i in range(horizon.n_intervals)
        for j, each in enumerate(jobs)
        if each.submit_us <= horizon.start_us[i]
        for n in range(each.min_nodes, min(each.max_nodes, horizon.most_idle) + 1)
    ]
    if not columns:
        return 0.0
    rate = [jobs[j].throughput.table(n)[n] for _, j, n in columns]
    rows, right = [], []
    for i in range(horizon.n_intervals):
        rows += [[float(n * (k == i)) for k, _, n in columns], [float(k == i) for k, _, _ in columns]]
        right += [horizon.idle[i] * horizon.seconds[i], max_parallel * horizon.seconds[i]]
        for each in range(len(jobs)):
            rows.append([float((k, j) == (i, each)) for k, j, _ in columns])
            right.append(horizon.seconds[i])
    for each, the_job in enumerate(jobs):
        if math.isfinite(the_job.work_samples):
            rows.append([r * (j == each) for r, (_, j, _) in zip(rate, columns, strict=True)])
            right.append(the_job.work_samples)
    solved = linprog(-np.array(rate), A_ub=np.array(rows), b_ub=np.array(right))
    assert solved.status == 0
    return -float(solved.fun)


_WORK = st.sampled_from([20.0, 150.0, 1_000.0, math.inf])
_JOBS = st.lists(st.tuples(_WORK, st.integers(0, 3), st.integers(1, 2), st.integers(1, 9)), min_size=1, max_size=4)


def _made(drawn):
    """Jobs submitted at pool events, so that the program's intervals are exact."""
    return JobSet(
        job(
            str(k),
            work=work,
            submit_s=(0, 30, 45, 70)[begins],
            min_nodes=least,
            rates=(0.0, float(rate), 1.5 * rate, 2.5 * rate),
        )
        for k, (work, begins, least, rate) in enumerate(drawn)
    )


_HORIZON = Horizon.of(log(4, [(30, 1, True), (30, 2, True), (45, 0, False), (70, 3, True)], 100, idle_first=(0,)))


@settings(deadline=None, max_examples=examples(30))
@given(drawn=_JOBS, max_parallel=st.integers(1, 3))
def test_the_bound_of_jobs_that_end_is_never_below_the_best_fluid_schedule(drawn, max_parallel):
    jobs = _made(drawn)
    best = _most_by_program(jobs, max_parallel, _HORIZON)
    bound = most_samples(job_classes(jobs, _HORIZON.most_idle), max_parallel, _HORIZON)
    assert best <= bound * (1 + 1e-9)


def test_the_bound_of_jobs_that_end_is_the_best_fluid_schedule_where_nothing_is_coarse():
    """One cell an interval and a job class each: the prices are the program's own, so there is no gap."""
    jobs = _made([(150.0, 0, 1, 5), (1_000.0, 0, 2, 3)])
    bound = most_samples(job_classes(jobs, _HORIZON.most_idle), 2, _HORIZON)
    assert bound == pytest.approx(_most_by_program(jobs, 2, _HORIZON), rel=1e-6)


@settings(deadline=None, max_examples=examples(20))
@given(drawn=_JOBS, max_parallel=st.integers(1, 3))
def test_as_many_jobs_can_be_admitted_as_the_program_says_or_more(drawn, max_parallel):
    """Jobs are admitted in turn: of the first A all but ``max_parallel`` are done, those with least work at best."""
    jobs = list(_made(drawn))
    possible = min(max_parallel, len(jobs))
    for admitted in range(possible + 1, len(jobs) + 1):
        first = jobs[:admitted]
        finite = sorted(each.work_samples for each in first if math.isfinite(each.work_samples))
        may_be_open = max_parallel - (admitted - len(finite))
        if may_be_open < 0:
            break
        done = sum(finite[: max(len(finite) - may_be_open, 0)])
        if _most_by_program(first, max_parallel, _HORIZON) >= done:
            possible = admitted
    assert admission_limit(jobs, max_parallel, _HORIZON) >= possible


def test_jobs_without_end_may_fill_all_places_and_one_that_ends_comes_in_when_one_is_left():
    """Two places: one endless job and any number of short ones in the other. Three endless ones: the third never."""
    horizon = Horizon.of(log(2, [], 100, idle_first=(0, 1)))
    endless = [job(f"endless{k}", work=math.inf, rates=(0.0, 1.0)) for k in range(3)]
    short = [job(f"short{k}", work=5.0, rates=(0.0, 1.0)) for k in range(3)]
    assert admission_limit([endless[0], *short], 2, horizon) == 4
    assert admission_limit(endless, 2, horizon) == 2
    # exactly as many endless jobs as places, behind one that is done: all of them are admitted
    assert admission_limit([short[0], *endless[:2]], 2, horizon) == 3
    assert admission_limit([short[0], *endless], 2, horizon) == 3


def test_a_last_endless_job_that_is_admitted_counts_in_the_bound():
    """The short job makes place for the fast endless one: 50 samples/s, not the 5 that the two before make."""
    idle = log(2, [], 100, idle_first=(0, 1))
    jobs = [
        job("short", work=5.0, rates=(0.0, 1.0)),
        job("slow", work=math.inf, rates=(0.0, 1.0)),
        job("fast", work=math.inf, rates=(0.0, 50.0)),
    ]
    run = replay_log(idle, JobSet(jobs), BFTrainerPolicy(60.0), ReplaySettings(2), efficiency=False)
    assert run.summary["ledger"]["samples"] == pytest.approx(5 + 100 + 95 * 50)
    assert run.summary["bound"]["share"] <= 1
    assert upper_bound(idle, JobSet(jobs), 2).samples == pytest.approx(5 + 99 + 99 * 50, rel=0.05)


@settings(deadline=None, max_examples=examples(20))
@given(drawn=_JOBS, max_parallel=st.integers(1, 3))
def test_all_work_can_be_done_by_the_earliest_end_in_no_less_time(drawn, max_parallel):
    """By the program all work cannot be done a thousandth of the horizon before the time that is told."""
    jobs = _made(drawn)
    classes = job_classes(jobs, _HORIZON.most_idle)
    work = sum(each.work_samples for each in jobs)
    most = most_samples(classes, max_parallel, _HORIZON)
    earliest_us = earliest_end_us(classes, max_parallel, _HORIZON, most)
    if not math.isfinite(work):
        assert earliest_us is None
    elif _most_by_program(jobs, max_parallel, _HORIZON) >= work * (1 - 1e-9):
        assert earliest_us is not None
        before = _HORIZON.until(earliest_us - 1000) if earliest_us > 1000 else None
        assert before is None or _most_by_program(jobs, max_parallel, before) < work * (1 + 1e-9)


def _all_ways_with_reclaims(rate, min_nodes, up_s, down_s, price, seconds, idle, reclaimed):
    """Most of all count sequences; a job that loses k of its nodes may grow from what is left, paying for both."""
    counts = [0, *range(min_nodes, rate.size)]
    best = 0.0
    for way in itertools.product(counts, repeat=len(seconds)):
        if any(n > c for n, c in zip(way, idle, strict=True)):
            continue
        worth, held = 0.0, 0
        for n, p, s, taken in zip(way, price, seconds, reclaimed, strict=True):
            changes = {0.0} if n == held else {down_s * rate[held]} if n < held else {up_s * rate[held]}
            for lost in range(1, min(int(taken), held) + 1):
                if n > held:
                    changes.add(down_s * rate[held] + up_s * rate[held - lost])
            best = max(best, worth)  # it may stop for good before it pays
            worth += s * (rate[n] - p * n) - min(changes)
            held = n
        best = max(best, worth)
    return best


def test_growing_after_a_hit_is_as_cheap_as_the_hit_and_a_start_from_nothing():
    """Twice 10 s on a node, 100 samples less 50 for it; hit for 10 samples; then from nothing on three for 100 s."""
    rate, seconds, price = np.array([0.0, 10.0, 20.0, 30.0]), np.array([10.0, 10.0, 100.0]), np.array([5.0, 5.0, 0.0])
    idle = np.array([1, 1, 3])
    hit, calm = (most_of_one(rate, 1, 50.0, 1.0, price, seconds, idle, np.array([0, 0, n])) for n in (1, 0))
    assert hit == pytest.approx(50 + 50 - 10 + 3000)
    assert calm == pytest.approx(50 - 10 + 3000)  # it stops after the first 10 s to start from nothing


@settings(deadline=None, max_examples=examples(80))
@given(
    rates=st.lists(st.floats(0.5, 30), min_size=3, max_size=3),
    prices=st.lists(st.floats(0, 12), min_size=3, max_size=3),
    lengths=st.lists(st.floats(1, 50), min_size=3, max_size=3),
    reclaimed=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    idle=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    up_s=st.floats(10, 60),
    down_s=st.floats(0, 5),
)
@example([10.0, 20.0, 30.0], [5.0, 5.0, 0.0], [10.0, 10.0, 100.0], [0, 1, 1], [2, 1, 3], 50.0, 1.0)
def test_a_job_that_is_hit_may_grow_for_less(rates, prices, lengths, reclaimed, idle, up_s, down_s):
    """Below ``_all_ways_with_reclaims`` the bound would be too low: some job could make that much."""
    rate = np.array([0.0, *rates])
    arguments = rate, 1, up_s, down_s, np.array(prices), np.array(lengths), np.array(idle), np.array(reclaimed)
    most = _all_ways_with_reclaims(*arguments)
    found = most_of_one(*arguments)
    assert found >= most - 1e-9 * abs(most) - 1e-9
    if (np.diff(rate) >= 0).all():  # where rates fall the bound takes the least rate from there on
        assert found == pytest.approx(most, rel=1e-9, abs=1e-6)
