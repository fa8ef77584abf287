"""Profile of a job: batch size and time of each epoch, measured before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.saved_state import restorable
from bfreplay.systems.shockwave.adaptation_rules import PUBLISHED_PROFILE, Mode, batch_sizes, model_and_batch_size
from bfreplay.workload import ElasticJob

_EPOCHS_OF_PLAIN_JOB = 100
"""A job without epochs is profiled in hundredths of its work."""


@restorable
@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Batch size and duration of each of the E epochs of a job that runs alone on its own number of GPUs.

    Parameters
    ----------
    samples_per_epoch
        Size of the data set (``D``).
    batch_size : (E,) int64
        Batch size of each epoch.
    epoch_s : (E,) float64
        Seconds of each epoch: ``D / b`` steps at the measured rate.
    """

    samples_per_epoch: int
    batch_size: NDArray[np.int64]
    epoch_s: NDArray[np.float64]

    @property
    def n_epochs(self) -> int:
        """Number of epochs (E)."""
        return int(self.batch_size.shape[0])

    @property
    def exclusive_s(self) -> float:
        """Seconds that the job takes alone (``X``): the denominator of finish-time fairness."""
        return float(sum(self.epoch_s.tolist()))


def profile_of(job: ElasticJob, n_nodes: int, *, published: bool = False) -> Profile:
    """Return the profile of a job on ``n_nodes`` nodes.

    Parameters
    ----------
    job
        A job without an adaptation is profiled in hundredths of its work, at one batch size.
    n_nodes
        Nodes of the job.
    published
        Follow the published profiles where they differ (``Rules.last_epoch_keeps_first_size``); for jobs of a trace.

    Raises
    ------
    InputError
        ``published`` for a job whose model is not among the published ones.
    """
    adaptation = job.adaptation
    if adaptation is None:
        return even_profile(job.work_samples, job.work_samples / job.seconds_alone(n_nodes))
    samples = adaptation.samples_per_epoch
    first_size = adaptation.changes[0][1]
    steps = -(-samples // first_size)
    n_epochs = math.ceil(round(job.work_samples / first_size) / steps)
    if published:
        model, _ = model_and_batch_size(job.model or "")
        sizes: Sequence[int] = batch_sizes(
            model, first_size, n_nodes, Mode(adaptation.rule), n_epochs, PUBLISHED_PROFILE
        )
    else:
        sizes = [adaptation.batch_size_at(float(epoch * samples)) for epoch in range(n_epochs)]
    rate = {size: float(adaptation.throughput[size].table(n_nodes)[n_nodes]) / size for size in set(sizes)}
    epoch_s = np.array([(samples / size) / rate[size] for size in sizes], np.float64)
    return Profile(samples, np.array(sizes, np.int64), epoch_s)


def even_profile(work_samples: float, samples_per_s: float) -> Profile:
    """Return the profile of a job without epochs: hundredths of its work, all at one rate."""
    epoch_s = work_samples / samples_per_s / _EPOCHS_OF_PLAIN_JOB if samples_per_s > 0 else math.inf
    samples = math.ceil(work_samples / _EPOCHS_OF_PLAIN_JOB)
    return Profile(samples, np.ones(_EPOCHS_OF_PLAIN_JOB, np.int64), np.full(_EPOCHS_OF_PLAIN_JOB, epoch_s))
