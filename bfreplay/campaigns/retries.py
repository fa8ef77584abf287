"""Trials that crash, and what happens to them then."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay import checks
from bfreplay.campaigns.seeds import Purpose, stream

CHECKPOINT, START = "checkpoint", "start"


@dataclass(frozen=True, slots=True)
class Retries:
    """How often attempts crash, and from where the next one goes on.

    The rate is one per epoch of training, not per node-hour: a trial then crashes at the same progress under every
    policy and on every log, so what differs between two replays is their doing. (That nodes are taken away, which
    does depend on node-hours, is in the log already.) Time to a crash is exponential in epochs: no memory.

    Parameters
    ----------
    failures_per_epoch
        Mean number of crashes in an epoch, >= 0.
    most
        Most retries of a trial, >= 0; when an attempt more crashes, the trial has failed.
    origin
        ``"checkpoint"``: a retry goes on from the last epoch that was complete. ``"start"``: from nothing.

    Raises
    ------
    InputError
        A rate or number out of range, or another origin.
    """

    failures_per_epoch: float = 0.0
    most: int = 2
    origin: str = CHECKPOINT

    def __post_init__(self) -> None:
        checks.number("failures_per_epoch", self.failures_per_epoch, least=0, most=1e6)
        checks.whole("most", self.most, 0)
        checks.one_of("from", self.origin, (CHECKPOINT, START))

    def crash_epoch(self, seed: int, number: int, attempt: int, first_epoch: int) -> float | None:
        """Progress in epochs at which attempt ``attempt`` (0, 1, ...) of a trial crashes; ``None``: never.

        Parameters
        ----------
        seed, number, attempt
            What it depends on, and on nothing else.
        first_epoch
            Epochs that the attempt begins with.
        """
        if not self.failures_per_epoch:
            return None
        gap = float(stream(seed, Purpose.FAILURE, number, attempt).exponential(1 / self.failures_per_epoch))
        return first_epoch + gap

    def first_epoch(self, crash_epoch: float) -> int:
        """Epochs that a retry begins with after a crash at ``crash_epoch`` epochs."""
        return int(crash_epoch) if self.origin == CHECKPOINT else 0

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"failures_per_epoch": self.failures_per_epoch, "most": self.most, "from": self.origin}
