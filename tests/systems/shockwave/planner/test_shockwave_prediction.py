"""Prediction of epoch times, remaining time and finish targets, by hand."""

from dataclasses import fields

import numpy as np
import pytest

from bfreplay.systems.shockwave.planner.options import PlannerQuirks
from bfreplay.systems.shockwave.planner.planned_rounds import JobPrediction
from bfreplay.systems.shockwave.profile import Profile

PUBLISHED = PlannerQuirks.published()


def _job(sizes: list[int], seconds: list[float], quirks: PlannerQuirks = PUBLISHED, at_s: float = 0.0) -> JobPrediction:
    profile = Profile(100, np.array(sizes), np.array(seconds))
    return JobPrediction(profile, 1, admission_s=at_s, round_s=120.0, quirks=quirks)


def test_mean_epoch_time_is_that_of_epochs_done_and_the_current_one() -> None:
    job = _job([1, 1, 2, 2], [40.0, 40.0, 10.0, 10.0])
    assert job.mean_epoch_s == 40.0
    job.epochs_done = 2
    assert job.mean_epoch_s == pytest.approx(30.0)
    job.epochs_done = 4
    assert job.mean_epoch_s == pytest.approx(25.0)


def test_remaining_time_splits_epochs_by_the_dirichlet_mean() -> None:
    """E = 4, K = 2: concentrations (2 + 2, 2), so 4 epochs split as 8/3 and 4/3; 2 observed ones of the first go.

    That leaves 2/3 * 40 + 4/3 * 10 = 40 s for int(2 + 1) = 3 epochs, of which 3 remain after the first.
    """
    job = _job([1, 1, 2, 2], [40.0, 40.0, 10.0, 10.0])
    job.epochs_done = 1
    assert job.remaining_s == pytest.approx(40.0)
    job.epochs_done = 4
    assert job.remaining_s == 1.0


def test_observed_epochs_are_taken_off_only_while_a_whole_one_is_expected() -> None:
    """E = 4, K = 2, three of the second size seen: (2 + 1, 2 + 3) of 8 give 1.5 and 2.5; 1 and 2 can be taken off.

    0.5 * 40 + 0.5 * 10 = 25 s for int(1 + 1) = 2 epochs, of which 1 remains.
    """
    job = _job([1, 2, 2, 2], [40.0, 10.0, 10.0, 10.0])
    job.epochs_done = 3
    assert job.remaining_s == pytest.approx(12.5)


def test_whole_second_epochs_are_at_least_one_second() -> None:
    assert _job([1], [1.29]).mean_epoch_s == 1.0
    assert _job([1], [0.2]).mean_epoch_s == 1.0
    assert _job([1, 1], [2.5, 0.2]).mean_epoch_s == 2.0  # halves to even, as published
    assert _job([1, 1], [1.29, 0.2], PlannerQuirks()).mean_epoch_s == 1.29


@pytest.mark.parametrize(("rate", "factor"), [(1.4, 1.0), (0.61, 1.0), (1.41, 1 / 1.41), (0.59, 1 / 0.59)])
def test_epoch_times_are_calibrated_beyond_a_difference_of_two_fifths(rate: float, factor: float) -> None:
    """100 samples in 40 s and size 1: the profile does 2.5 steps/s."""
    job = _job([1] * 10, [40.0] * 10)
    job.record_round(0, 1, 2.5 * rate)
    job.calibrate()
    assert job.factor == pytest.approx(factor)
    assert job.mean_epoch_s == pytest.approx(40.0 * factor)
    assert job.remaining_s == pytest.approx(9 * 40.0 * factor)  # one of ten is observed


def test_calibration_starts_from_the_profile_and_a_small_error_leaves_it_as_it_is() -> None:
    job = _job([1] * 100, [40.0] * 100)
    job.record_round(0, 1, 5.0)
    job.calibrate()
    assert job.factor == pytest.approx(0.5)
    job.record_round(1, 1, 4.0)  # 9 of 5 promised
    job.calibrate()
    assert job.factor == pytest.approx(5 / 9)
    job.record_round(2, 1, 0.5)  # 9.5 of 7.5
    job.calibrate()
    assert job.factor == pytest.approx(5 / 9)


def test_waiting_counts_like_the_next_measurement_as_published_and_not_otherwise() -> None:
    """Epochs of the second half are four times faster; the job ran in rounds 9 and 19 only, in its slow first half."""
    sizes, seconds = [1] * 30 + [4] * 30, [40.0] * 30 + [10.0] * 30
    published, ours = _job(sizes, seconds), _job(sizes, seconds, PlannerQuirks())
    for job in (published, ours):
        job.record_round(9, 1, 2.5)
        job.record_round(19, 1, 2.5)
        job.calibrate()
    # 2400 s of the profile: 30 slow epochs, and 120 fast ones (on past the end); measured: 60 slow epochs
    assert published.factor == pytest.approx(150 / 60)
    assert ours.factor == 1.0


def test_a_failed_round_is_no_measurement_of_nothing() -> None:
    job = _job([1] * 10, [40.0] * 10)
    job.record_round(0, 1, 0.0)
    job.calibrate()
    assert job.factor == 1.0


def test_finish_target_mixes_the_average_in_force_with_the_latest() -> None:
    """As recorded for job 0 of the first run: 1018.64 for one round, then 1550, which in round 2 was replaced."""
    job = _job([1], [40.0])
    job.targets = [(0, 1018.6388888888888)]
    assert job.target_s(0) == pytest.approx(1018.6388888888888)
    job.targets += [(1, 1550.0)]
    assert job.target_s(1) == pytest.approx(0.9 * 1018.6388888888888 + 155.0)
    assert job.target_s(4) == pytest.approx(0.9 * (1018.6388888888888 + 3 * 1550.0) / 4 + 155.0)


def test_finish_target_counts_from_admission_at_the_fair_share() -> None:
    job = _job([1] * 4, [40.0] * 4, at_s=500.0)
    job.epochs_done = 2
    job.add_target(7, 0.5)
    ((round_index, finish_s),) = job.targets
    assert round_index == 7
    assert finish_s == pytest.approx(500.0 + (80.0 + job.remaining_s) / 0.5)
    alone_s = finish_s - 500.0
    job.record_round(0, 1, 5.0)  # twice as fast
    job.calibrate()
    job.add_target(8, 0.5)
    assert job.targets[1:] == [(8, pytest.approx(500.0 + alone_s / 2))]
    job.add_target(8, 1.0)
    assert job.targets[1:] == [(8, pytest.approx(500.0 + alone_s / 4))]


def test_the_published_program_calibrates_at_each_use_against_its_own_calibration() -> None:
    """100 samples in 80 s, and 30 samples of a profile of 150 in 120 s: an epoch and a half of it at factor 5.

    At factor 5 an epoch takes 400 s, so 40 s of the second are a tenth: the profile has 110, and the factor is 11 / 3.
    Then the same 40 s are 40 / 293 of an epoch.
    """
    for quirks, factors in ((PUBLISHED, (5.0, 11 / 3, (100 + 100 * 3 / 22) / 30)), (PlannerQuirks(), (5.0, 5.0, 5.0))):
        job = _job([1] * 10, [80.0] * 10, quirks)
        job.record_round(0, 1, 30 / 120)
        job.calibrate()
        found = [job.factor]
        for _ in range(2):
            job.calibrate_for_use()
            found.append(job.factor)
        assert found == pytest.approx(factors)


def test_past_the_end_of_the_profile_the_last_epoch_goes_on_at_its_calibrated_time() -> None:
    """120 s hold both epochs of 10 s, and 100 s more of the last: 10 epochs, then 2 + 100 / (10 * factor)."""
    job = _job([1, 1], [10.0, 10.0])
    job.record_round(0, 1, 600 / 120)
    job.calibrate_for_use()
    assert job.factor == pytest.approx(2.0)
    job.calibrate_for_use()
    assert job.factor == 2.0  # 7 epochs of the profile against 6: near enough
    assert PlannerQuirks.published() == PlannerQuirks(*(True for _ in fields(PlannerQuirks)))
