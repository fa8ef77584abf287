"""The profile of a job: its batch size and its time for each epoch, as measured before it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Batch size and duration of each of the E epochs of a job that runs alone on its own number of GPUs.

    Parameters
    ----------
    samples_per_epoch
        Size of the data set (``D``).
    batch_size : (E,) int64
        Of each epoch.
    epoch_s : (E,) float64
        Seconds of each epoch: ``D / b`` steps at the measured rate.
    """

    samples_per_epoch: int
    batch_size: NDArray[np.int64]
    epoch_s: NDArray[np.float64]

    @property
    def n_epochs(self) -> int:
        """E."""
        return int(self.batch_size.shape[0])

    @property
    def exclusive_s(self) -> float:
        """Seconds that the job takes alone (``X``): the denominator of finish-time fairness."""
        return float(sum(self.epoch_s.tolist()))
