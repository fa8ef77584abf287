"""Stratified start times."""

import numpy as np
import pytest

from bfreplay.experiments.finish_times import stratified_starts

SECOND = 1_000_000


def starts(first_s, last_s, n, seed=0):
    return stratified_starts(round(first_s * SECOND), round(last_s * SECOND), n, np.random.default_rng(seed))


def test_each_stratum_has_one_start_of_whole_seconds():
    found = starts(1000, 4999, 8)
    assert (found % SECOND == 0).all()
    assert ((found / SECOND - 1000) // 500).tolist() == list(range(8))


def test_the_seed_decides_and_nothing_else():
    assert starts(0, 9999, 5).tolist() == starts(0, 9999, 5).tolist() != starts(0, 9999, 5, seed=1).tolist()


def test_starts_are_uniform_within_their_stratum():
    offsets = np.concatenate([starts(0, 7999, 8, seed) / SECOND % 1000 for seed in range(200)])
    assert np.abs(np.quantile(offsets, [0.25, 0.5, 0.75]) - [250, 500, 750]).max() < 40
    assert (offsets.min(), offsets.max()) == pytest.approx((0, 999), abs=5)


def test_the_last_start_is_not_rounded_beyond_the_end():
    class Largest:
        def random(self, n):
            return np.full(n, np.nextafter(1, 0))

    last_us = 1_700_000_000 * SECOND
    assert stratified_starts(last_us - 10 * SECOND, last_us, 1, Largest()).tolist() == [last_us]


def test_no_start_lies_outside_and_none_is_there_twice():
    assert starts(0.5, 3.5, 48).tolist() == [1 * SECOND, 2 * SECOND, 3 * SECOND]
    assert starts(0.2, 0.7, 48).tolist() == [200_000]
    assert starts(5, 5, 3).tolist() == [5 * SECOND]
