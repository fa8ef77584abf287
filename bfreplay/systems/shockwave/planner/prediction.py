"""Prediction of a job's remaining time, and of its finish with a fair share of the GPUs."""

from __future__ import annotations

import numpy as np

from bfreplay.saved_state import restorable
from bfreplay.systems.shockwave.planner.options import PlannerQuirks
from bfreplay.systems.shockwave.profile import Profile

CALIBRATION_THRESHOLD = 0.4
"""Epoch times are calibrated when measured progress differs from the profile's by more than this fraction."""

LEAST_EPOCH_S = 1.0
"""Least rounded epoch time."""

DONE_REMAINING_S = 1.0
"""Remaining time of a job that has done all epochs and has not been removed."""

PAST_TARGETS, LATEST_TARGET = 0.9, 0.1
"""Weights of the average of all finish targets, and of the latest one, in the final target."""


@restorable
class JobPrediction:
    """Prediction for one job: its profile, calibrated by measurements, and the history of its finish targets.

    Calibration multiplies all epoch times of the profile by one factor. The published program calibrates its profile
    and knows the coming batch sizes, but not their times: it assumes Dirichlet distributed numbers of epochs.

    Parameters
    ----------
    profile
        Batch size and seconds of each epoch.
    gang
        GPUs of the job.
    admitted_s
        Clock time of its admission.
    round_s
        Nominal length of a round (T).
    quirks
        Defects of the published program to repeat.

    Attributes
    ----------
    epochs_done
        Whole epochs done, as of the last round in which the job ran.
    factor
        Factor of calibration.
    targets
        ``(round, finish time)``: the finish time predicted in that round if the job had its fair share, on the clock.
    """

    def __init__(
        self, profile: Profile, gang: int, *, admitted_s: float, round_s: float, quirks: PlannerQuirks
    ) -> None:
        self.gang = gang
        self.n_epochs = profile.n_epochs
        self.admitted_s = admitted_s
        self.epochs_done = 0
        self.factor = 1.0
        self.targets: list[tuple[int, float]] = []
        self._quirks = quirks
        self._round_s = round_s
        self._samples_per_epoch = profile.samples_per_epoch
        epoch_s = profile.epoch_s
        if quirks.whole_second_epochs:
            epoch_s = np.maximum(LEAST_EPOCH_S, np.rint(epoch_s))
        self._until_s = np.concatenate(([0.0], np.cumsum(epoch_s)))  # (E + 1,)
        _, self._size = np.unique(profile.batch_size, return_inverse=True)  # (E,)
        self._n_of_size = np.bincount(self._size)  # (K,)
        self._mean_s_of_size = np.bincount(self._size, weights=epoch_s) / self._n_of_size
        self._measured_samples = 0.0
        self._measured_rounds = 0

    @property
    def mean_epoch_s(self) -> float:
        """Mean time of the epochs done and the current one (``d̄``)."""
        n_seen = min(self.epochs_done + 1, self.n_epochs)
        return self.factor * float(self._until_s[n_seen]) / n_seen

    @property
    def remaining_s(self) -> float:
        """Remaining time alone on ``gang`` GPUs (``R``).

        The E epochs are split over the K batch sizes of the profile by the mean of a Dirichlet distribution, whose
        prior is symmetric and whose observations are the epochs done and the current one. Observed epochs are then
        subtracted, and the rest is scaled to the number of remaining epochs.
        """
        left = self.n_epochs - self.epochs_done
        if left <= 0:
            return DONE_REMAINING_S
        observed = np.bincount(self._size[: self.epochs_done + 1], minlength=self._n_of_size.shape[0])
        concentration = self.n_epochs / self._n_of_size.shape[0] + observed
        expected = self.n_epochs * concentration / concentration.sum()
        expected -= np.minimum(observed, np.floor(expected))
        seconds = self.factor * float(expected @ self._mean_s_of_size)
        return seconds * left / max(int(expected.sum() + 1), left)

    def record_round(self, round_index: int, batch_size: int, steps_per_s: float) -> None:
        """Record the progress of the job in round ``round_index``, which has ended.

        With ``calibrates_over_waiting`` rounds since the last measurement (the first: since round 0) count like it.
        """
        n_rounds = round_index + 1 - self._measured_rounds if self._quirks.calibrates_over_waiting else 1
        self._measured_samples += batch_size * steps_per_s * self._round_s * n_rounds
        self._measured_rounds += n_rounds

    def calibrate(self) -> None:
        """Correct epoch times where the number of measured samples differs from the profile."""
        if self._measured_samples <= 0.0:
            return
        profiled = self._profiled_samples(self._measured_rounds * self._round_s)
        if abs(self._measured_samples - profiled) > CALIBRATION_THRESHOLD * profiled:
            self.factor = profiled / self._measured_samples

    def calibrate_for_use(self, n_uses: int = 1) -> None:
        """Calibrate as often as the published program does before so many uses, with its quirk; else do nothing."""
        if self._quirks.calibrates_each_use:
            for _ in range(n_uses):
                self.calibrate()

    def add_target(self, round_index: int, fair_share: float) -> None:
        """Predict the finish of the job if it ran in ``fair_share`` of the time.

        A second prediction in a round replaces the first.
        """
        if self.targets and self.targets[-1][0] == round_index:
            self.targets.pop()
        self.calibrate_for_use()
        done_s = self.factor * float(self._until_s[min(self.epochs_done, self.n_epochs)])
        self.calibrate_for_use()
        total_s = done_s + self.remaining_s
        self.targets.append((round_index, self.admitted_s + total_s / fair_share))

    def target_s(self, round_index: int) -> float:
        """Return the finish target (``Φ``) in round ``round_index``, on the clock.

        A weighted sum of the latest finish time and the average of all, each weighted by the rounds it was in force.
        """
        start, target = zip(*self.targets, strict=True)
        in_force = np.diff([*start, round_index])
        latest = float(target[-1])
        average = latest if in_force.sum() == 0 else float(in_force @ np.array(target)) / float(in_force.sum())
        return PAST_TARGETS * average + LATEST_TARGET * latest

    def _profiled_samples(self, seconds: float) -> float:
        """Return the samples of the profile in the first ``seconds``; after its end the last epoch continues."""
        whole = int(np.searchsorted(self._until_s, seconds, side="right")) - 1
        epoch = min(whole, self.n_epochs - 1)
        epoch_s = self._until_s[epoch + 1] - self._until_s[epoch]
        if self._quirks.calibrates_each_use:
            epoch_s *= self.factor
        return float((whole + (seconds - self._until_s[whole]) / epoch_s) * self._samples_per_epoch)
