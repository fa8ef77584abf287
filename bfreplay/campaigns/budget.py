"""What a campaign may use up before it is stopped."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bfreplay import checks

_HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a campaign; ``None`` is none. When one is reached no trial is submitted any more, and all others end.

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
        A limit that is not positive.
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
        """Whether it has to hear of a trial after each epoch."""
        return self.node_hours is not None or self.samples is not None

    def end_us(self, start_us: int) -> int | None:
        """When a campaign that starts at ``start_us`` is over; ``None`` for no such time."""
        return None if self.hours is None else start_us + round(self.hours * _HOUR_US)

    def used_up(self, node_us: int, samples: float, wall_us: int, failed_trials: int) -> str | None:
        """Name of the first limit that is reached by so much use; ``None`` if none is.

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

    def describe(self) -> dict[str, object]:
        """Its limits."""
        return asdict(self)
