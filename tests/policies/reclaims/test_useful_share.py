"""The share of a job's time that is kept between reclaims: by hand, and by letting reclaims happen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bfreplay.policies.reclaims.node_sets import useful_share


def simulated_share(reclaims_per_s: float, every_s: float, restart_s: float, n_reclaims: int, seed: int) -> float:
    """Work kept a second: after each reclaim the job restarts, then works; at each checkpoint all so far is kept."""
    rng = np.random.default_rng(seed)
    kept_s = 0.0
    whole_s = 0.0
    for lasts_s in rng.exponential(1.0 / reclaims_per_s, n_reclaims).tolist():
        whole_s += lasts_s
        checkpoint_s = every_s
        while checkpoint_s <= lasts_s:
            is_first = checkpoint_s == every_s
            kept_s += every_s - restart_s if is_first else every_s
            checkpoint_s += every_s
    return kept_s / whole_s


@pytest.mark.parametrize(
    ("reclaims_per_s", "every_s", "restart_s"),
    [
        (1 / 3600, 600.0, 60.0),
        (1 / 600, 600.0, 60.0),
        (1 / 600, 120.0, 0.0),
        (1 / 100, 30.0, 30.0),
        (1 / 60, 90.0, 5.0),
    ],
)
def test_it_is_what_reclaims_at_random_leave(reclaims_per_s, every_s, restart_s):
    simulated = simulated_share(reclaims_per_s, every_s, restart_s, 60_000, seed=45)
    # the kept time of an interval has a standard deviation below 1.3 / L, so the share has one below 1.3 / sqrt(60,000)
    assert useful_share(reclaims_per_s, every_s, restart_s) == pytest.approx(simulated, abs=4 * 1.3 / 245)


def test_without_reclaims_all_is_kept():
    assert useful_share(0.0, 600.0, 60.0) == useful_share(0.0, 0.0, 60.0) == 1.0
    assert useful_share(1e-300, 1e-300, 0.0) == 1.0
    assert useful_share(1e-9, 600.0, 60.0) == pytest.approx(1.0, abs=1e-6)


def test_where_all_is_saved_at_all_times_only_restarts_are_lost():
    assert useful_share(0.01, 0.0, 60.0) == pytest.approx(math.exp(-0.6))
    assert useful_share(0.01, 0.0, 0.0) == 1.0


def test_by_hand_where_half_of_the_intervals_outlive_a_checkpoint():
    """L c = ln 2: checkpoints between reclaims are 1/2 + 1/4 + ... = 1 on average, half of the restarts are paid."""
    reclaims_per_s = math.log(2) / 600
    assert useful_share(reclaims_per_s, 600.0, 60.0) == pytest.approx(reclaims_per_s * (600 - 60 / 2))


def test_nothing_is_kept_where_reclaims_come_much_faster_than_checkpoints():
    assert useful_share(10.0, 600.0, 60.0) < 1e-15
    assert useful_share(1 / 60, 600.0, 3600.0) == 0.0  # a restart takes longer than there is: never less than nothing
    assert useful_share(1 / 60, 1800.0, 0.0) == pytest.approx(30 / math.expm1(30.0))
    assert 0.0 <= useful_share(1e6, 1e6, 0.0) < 1e-9  # exp(50) stands for more
