"""When the trials of a campaign come in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bfreplay import checks
from bfreplay.campaigns.seeds import Purpose, stream

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
        Another pattern, or a number that is missing or out of range.
    """

    pattern: str = AT_ONCE
    every_s: float | None = None
    per_hour: float | None = None

    def __post_init__(self) -> None:
        checks.one_of("arrival", self.pattern, PATTERNS)
        checks.belongs("every_s", self.every_s, 'arrival = "every"', wanted=self.pattern == EVERY)
        checks.belongs("per_hour", self.per_hour, 'arrival = "poisson"', wanted=self.pattern == POISSON)
        if self.every_s is not None:
            checks.number("every_s", self.every_s, least=0, most=1e9)
        if self.per_hour is not None:
            checks.number("per_hour", self.per_hour, least=1e-6, most=1e9)

    def after_us(self, trials: int, seed: int) -> list[int]:
        """Arrivals of trials 0, 1, ... in microseconds after the start of the campaign, never decreasing."""
        if self.every_s is not None:
            return [round(number * self.every_s * 1e6) for number in range(trials)]
        if self.per_hour is not None:
            gaps_s = stream(seed, Purpose.ARRIVAL).exponential(3_600 / self.per_hour, trials)
            return [round(after_s * 1e6) for after_s in np.cumsum(gaps_s).tolist()]
        return [0] * trials

    def describe(self) -> dict[str, object]:
        """Its parameters."""
        return {"pattern": self.pattern, "every_s": self.every_s, "per_hour": self.per_hour}
