"""Rules that a campaign file may set: when trials arrive, what a campaign may spend, and trials that fail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bfreplay import checks
from bfreplay.campaigns.parts import Purpose, stream

AT_ONCE, EVERY, POISSON = "at-once", "every", "poisson"
PATTERNS = (AT_ONCE, EVERY, POISSON)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Trial k may not be submitted before its arrival; a limit of trials in flight may hold it up for longer.

    Parameters
    ----------
    pattern
        ``"at-once"``: all when the campaign starts. ``"every"``: trial k after ``k * every_s``. ``"poisson"``: a
        Poisson process of ``per_hour`` trials an hour, the first trial after the first gap.
    every_s
        Seconds between two trials; for ``"every"`` only, >= 0.
    per_hour
        Trials an hour on average; for ``"poisson"`` only, > 0.

    Raises
    ------
    InputError
        The pattern is unknown, or a number is missing or out of range.
    """

    pattern: str = AT_ONCE
    every_s: float | None = None
    per_hour: float | None = None

    def __post_init__(self) -> None:
        checks.one_of("arrival", self.pattern, PATTERNS)
        checks.belongs("every_s", self.every_s, 'arrival = "every"', is_needed=self.pattern == EVERY)
        checks.belongs("per_hour", self.per_hour, 'arrival = "poisson"', is_needed=self.pattern == POISSON)
        if self.every_s is not None:
            checks.number("every_s", self.every_s, least=0, most=1e9)
        if self.per_hour is not None:
            checks.number("per_hour", self.per_hour, least=1e-6, most=1e9)

    def after_us(self, trials: int, seed: int) -> list[int]:
        """Return the arrivals of trials 0, 1, ... in microseconds after the start of the campaign, never decreasing."""
        if self.every_s is not None:
            return [round(number * self.every_s * 1e6) for number in range(trials)]
        if self.per_hour is not None:
            gaps_s = stream(seed, Purpose.ARRIVAL).exponential(3_600 / self.per_hour, trials)
            return [round(after_s * 1e6) for after_s in np.cumsum(gaps_s).tolist()]
        return [0] * trials


_HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a campaign; ``None`` for no limit. When one is reached, all trials end and no more are submitted.

    Node time and samples are known when trials report, so a campaign with such a limit has its trials report after
    each epoch: it overshoots by less than one epoch of each running trial.

    Parameters
    ----------
    node_hours
        Node-hours that its jobs have held, rescaling and lost work included, > 0.
    samples
        Samples that its jobs have processed, those of crashed attempts included, > 0.
    hours
        Wall time since the campaign started, > 0: "finish by".
    failed_trials
        Trials that failed for good, >= 1.

    Raises
    ------
    InputError
        A limit is not positive.
    """

    node_hours: float | None = None
    samples: float | None = None
    hours: float | None = None
    failed_trials: int | None = None

    def __post_init__(self) -> None:
        for key in ("node_hours", "samples", "hours"):
            value = getattr(self, key)
            if value is not None:
                checks.number(key, value, above=0)
        if self.failed_trials is not None:
            checks.whole("failed_trials", self.failed_trials, 1)

    @property
    def needs_every_epoch(self) -> bool:
        """True if a limit needs a report after each epoch."""
        return self.node_hours is not None or self.samples is not None

    def end_us(self, start_us: int) -> int | None:
        """Return when a campaign that starts at ``start_us`` ends; ``None`` for no such time."""
        return None if self.hours is None else start_us + round(self.hours * _HOUR_US)

    def used_up(self, node_us: int, samples: float, wall_us: int, failed_trials: int) -> str | None:
        """Return the name of the first limit that is reached; ``None`` if none is.

        Parameters
        ----------
        node_us
            Node time in node-microseconds.
        samples
            Samples processed.
        wall_us
            Microseconds since the campaign started.
        failed_trials
            Trials that failed for good.
        """
        if self.node_hours is not None and node_us >= self.node_hours * _HOUR_US:
            return "node_hours"
        if self.samples is not None and samples >= self.samples:
            return "samples"
        if self.hours is not None and wall_us >= round(self.hours * _HOUR_US):
            return "hours"
        if self.failed_trials is not None and failed_trials >= self.failed_trials:
            return "failed_trials"
        return None


CHECKPOINT, START = "checkpoint", "start"


@dataclass(frozen=True, slots=True)
class Retries:
    """Crashes of attempts, and the point from which the next one continues.

    The rate is one per epoch of training, not per node-hour: a trial then crashes at the same progress under every
    policy and on every log. (Reclaimed nodes, which do depend on node-hours, are in the log already.) The time to a
    crash is exponential in epochs.

    Parameters
    ----------
    failures_per_epoch
        Mean number of crashes in an epoch, >= 0.
    most
        Maximum number of retries of a trial, >= 0; the trial fails when one more attempt crashes.
    origin
        ``"checkpoint"``: a retry continues from the last complete epoch; ``"start"``: from nothing.

    Raises
    ------
    InputError
        A number is out of range, or the origin is unknown.
    """

    failures_per_epoch: float = 0.0
    most: int = 2
    origin: str = CHECKPOINT

    def __post_init__(self) -> None:
        checks.number("failures_per_epoch", self.failures_per_epoch, least=0, most=1e6)
        checks.whole("most", self.most, 0)
        checks.one_of("from", self.origin, (CHECKPOINT, START))

    def crash_epoch(self, seed: int, number: int, attempt: int, first_epoch: int) -> float | None:
        """Return the progress in epochs at which attempt ``attempt`` (0, 1, ...) of a trial crashes; ``None``: never.

        Parameters
        ----------
        seed, number, attempt
            The result depends on these and ``first_epoch`` only.
        first_epoch
            Epochs that the attempt begins with.
        """
        if not self.failures_per_epoch:
            return None
        gap = float(stream(seed, Purpose.FAILURE, number, attempt).exponential(1 / self.failures_per_epoch))
        return first_epoch + gap

    def first_epoch(self, crash_epoch: float) -> int:
        """Return the number of epochs that a retry begins with after a crash at ``crash_epoch`` epochs."""
        return int(crash_epoch) if self.origin == CHECKPOINT else 0

    def describe(self) -> dict[str, object]:
        """Return its parameters."""
        return {"failures_per_epoch": self.failures_per_epoch, "most": self.most, "from": self.origin}
