"""Prices of nodes: the free optimum, the priced job, its smooth form, and the search."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bfreplay.bounds import reason_without_bound, upper_bound
from bfreplay.bounds.fluid import best_rates
from bfreplay.bounds.job_classes import Horizon, job_classes, merge_classes
from bfreplay.bounds.prices import better_prices, bound_at, soft_most_while_paying
from bfreplay.datasets.idleness.observe import observe
from bfreplay.milp.exact.relaxation import node_prices, optima_of_hulls
from tests.bounds.one_job import intervals, most_of_one, one_job
from tests.examples import examples
from tests.replay.tiny import job, job_sets, log, logs


def _rates(jobs, nodes):
    return [each.throughput.table(each.max_nodes) for each in jobs], [each.min_nodes for each in jobs], nodes


@settings(deadline=None, max_examples=examples(60))
@given(jobs=job_sets(), nodes=st.integers(1, 6))
def test_the_best_rates_are_those_of_all_combinations(jobs, nodes):
    few = list(jobs)[:3]
    best = best_rates(job_classes(few, nodes), nodes)
    for capacity in range(nodes + 1):
        choices = [[0, *range(each.min_nodes, each.max_nodes + 1)] for each in few]
        most = max(
            sum(float(each.throughput.table(each.max_nodes)[n]) for each, n in zip(few, counts, strict=True))
            for counts in itertools.product(*choices)
            if sum(counts) <= capacity
        )
        assert best[capacity] == pytest.approx(most)


@settings(deadline=None, max_examples=examples(60))
@given(jobs=job_sets(), nodes=st.integers(1, 12))
def test_relaxed_optima_lie_above_and_are_concave(jobs, nodes):
    classes = job_classes(list(jobs)[:4], nodes)
    if not classes:
        return
    exact = best_rates(classes, nodes)
    value = np.full((len(classes), max(each.rate.size for each in classes)), -np.inf)
    for row, each in zip(value, classes, strict=True):
        row[: each.rate.size] = each.rate
        row[1 : each.min_nodes] = -np.inf
    relaxed = optima_of_hulls(value, np.array([each.n_jobs for each in classes]), nodes)
    assert (relaxed >= exact - 1e-9).all()
    assert (np.diff(relaxed, 2) <= 1e-9).all()
    prices = node_prices(relaxed)
    assert (np.diff(prices) <= 1e-9).all()
    assert prices[:-1] == pytest.approx(np.diff(relaxed), abs=1e-6)


def _all_ways(rate, min_nodes, up_s, down_s, price, seconds):
    """The most over all count sequences, by brute force, without a reclaim."""
    counts = [0, *range(min_nodes, rate.size)]
    best = 0.0
    for way in itertools.product(counts, repeat=len(seconds)):
        worth, held = 0.0, 0
        for n, p, s in zip(way, price, seconds, strict=True):
            worth -= (up_s if n > held else down_s if n < held else 0.0) * rate[held]
            best = max(best, worth)  # it may stop here for good
            worth += s * (rate[n] - p * n)
            held = n
        best = max(best, worth)
    return best


_CURVE = np.array([0.0, 0.0, 18.0, 20.0, 31.0])


@settings(deadline=None, max_examples=examples(80))
@given(
    prices=st.lists(st.floats(0, 20), min_size=4, max_size=4),
    lengths=st.lists(st.floats(1, 50), min_size=4, max_size=4),
    up_s=st.floats(0, 30),
    down_s=st.floats(0, 30),
)
def test_a_job_that_pays_does_the_best_of_all_ways(prices, lengths, up_s, down_s):
    price, seconds = np.array(prices), np.array(lengths)
    arguments = _CURVE, 2, up_s, down_s, price, seconds, np.full(4, 9), np.zeros(4, np.int64)
    found = most_of_one(*arguments)
    assert all(most_of_one(*arguments, parts=parts) == found for parts in (2, 4))
    # stopping for good is free, so brute force that pays for the last step down may be a little lower
    assert found == pytest.approx(_all_ways(_CURVE, 2, up_s, down_s, prices, lengths), rel=1e-9, abs=1e-6)


def test_losing_nodes_and_growing_at_once_may_be_cheaper_than_growing():
    # one node is idle for 10 s and makes 10 samples/s at a price of 5; then two are for 100 s, for nothing
    rate, seconds, price = np.array([0.0, 10.0, 20.0]), np.array([10.0, 100.0]), np.array([5.0, 0.0])
    calm, hit = (
        most_of_one(rate, 1, 50.0, 1.0, price, seconds, np.array([1, 9]), np.array([0, reclaimed]))
        for reclaimed in (0, 1)
    )
    assert calm == pytest.approx(2000)  # it starts on two: growing from one to two costs 500 samples, more than 50
    assert hit == pytest.approx(50 - 10 + 2000)  # the loss of its node costs 10; after it, the start on two is free


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10_000), temperature=st.floats(5.0, 200.0))
def test_the_soft_maximum_lies_above_and_its_gradient_is_the_mean_count(seed, temperature):
    rng = np.random.default_rng(seed)
    n = 6
    price, seconds = rng.uniform(0, 12, n), rng.uniform(1, 40, n)
    idle, reclaimed = rng.integers(0, 6, n), rng.integers(0, 3, n)
    job_of_curve, horizon = one_job(_CURVE, 2, 12.0, 5.0), intervals(seconds, idle, reclaimed)
    weight, total, nodes = np.empty((n, 5)), np.empty((n, 5)), np.empty(n)

    def soft(at):
        return soft_most_while_paying(job_of_curve, at, horizon, temperature, weight, total, nodes)

    here = soft(price)
    mean = nodes.copy()
    hard = most_of_one(_CURVE, 2, 12.0, 5.0, price, seconds, idle, reclaimed)
    assert here >= hard - 1e-9 * hard
    for i in range(n):
        step = np.zeros(n)
        step[i] = 1e-5
        slope = (soft(price + step) - soft(price - step)) / 2e-5
        assert slope == pytest.approx(-seconds[i] * mean[i], rel=1e-4, abs=1e-4)


@settings(deadline=None, max_examples=examples(30))
@given(events=logs(), jobs=job_sets())
def test_searched_prices_bound_no_worse(events, jobs):
    horizon = Horizon.of(events)
    classes = job_classes(list(jobs.endless(3, events.window_start_us)), horizon.most_idle)
    if not classes:
        return
    prices = node_prices(best_rates(classes, horizon.most_idle))[horizon.idle]
    found = better_prices(prices, classes, horizon, 30)
    assert (found >= 0).all()
    assert bound_at(found, classes, horizon) <= bound_at(prices, classes, horizon)


def test_the_search_finds_that_a_short_idle_interval_is_not_worth_growing_for():
    changes = [(t + d, node, d == 0) for t in range(100, 900, 100) for d in (0, 4) for node in (1, 2)]
    events = log(3, changes, 1000, idle_first=(0,))
    horizon = Horizon.of(events)
    classes = job_classes([job(rates=(0.0, 10.0, 20.0, 30.0), up_s=20, down_s=20)], 3)
    prices = node_prices(best_rates(classes, 3))[horizon.idle]
    free = float((best_rates(classes, 3)[horizon.idle] * horizon.seconds).sum())
    searched = bound_at(better_prices(prices, classes, horizon, 200), classes, horizon)
    assert free == pytest.approx(10_000 + 8 * 4 * 20)
    assert searched == pytest.approx(10_000, rel=1e-3)


def test_the_horizon_has_every_interval():
    horizon = Horizon.of(log(3, [(10, 0, True), (10, 1, True), (25, 0, False), (100, 1, False)], 100))
    assert horizon.start_us.tolist() == [0, 10_000_000, 25_000_000]
    assert horizon.seconds.tolist() == [10.0, 15.0, 75.0]
    assert horizon.idle.tolist() == [0, 2, 1]
    assert horizon.reclaimed.tolist() == [0, 0, 1]
    part = horizon.until(20_000_000)
    assert (part.seconds.tolist(), part.end_us) == ([10.0, 10.0], 20_000_000)


@settings(deadline=None, max_examples=examples(60))
@given(events=logs(), jobs=job_sets(), unlimited=st.booleans(), max_parallel=st.integers(1, 3))
def test_neither_horizon_nor_bound_depends_on_the_parts_in_which_the_log_is_read(events, jobs, unlimited, max_parallel):
    assume(reason_without_bound(events, jobs) is None)
    whole, start_us = Horizon.of(events), events.window_start_us
    jobs = jobs.endless(3, start_us) if unlimited else jobs.anchored_at(start_us)
    bound = upper_bound(events, jobs, max_parallel)
    batches = events.batches
    events.batches = lambda: batches(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("bfreplay.bounds.job_classes.observe", partial(observe, part_events=2))
        in_parts = Horizon.of(events)
        assert upper_bound(events, jobs, max_parallel, most_idle=whole.most_idle) == bound
    assert all(np.array_equal(one, other) for one, other in zip(whole, in_parts, strict=True))


def test_jobs_that_are_alike_are_one_class_with_the_least_costs():
    jobs = [job("a", up_s=5, down_s=9, submit_s=3), job("b", up_s=7, down_s=2, submit_s=4), job("c", min_nodes=2)]
    first, second = job_classes(jobs, 3)
    assert (first.n_jobs, first.scale_up_s, first.scale_down_s) == (2, 5, 2)
    assert first.submit_us.tolist() == [3_000_000, 4_000_000]
    assert first.rate.tolist() == [0, 10, 20, 30]  # no more nodes than there are
    assert second.rate.tolist() == [0, 0, 20, 30]


def test_merged_classes_are_as_good_as_each_of_those_they_replace():
    jobs = [job(str(k), rates=(0.0, float(k), float(30 - k))) for k in range(1, 10)]
    classes = job_classes(jobs, 4)
    few = merge_classes(classes, 3)
    assert len(few) == 3
    assert sum(each.n_jobs for each in few) == 9
    assert (best_rates(few, 8) >= best_rates(classes, 8)).all()
