"""One forward-looking time for all decisions, BFTrainer's own rule."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.policies.policy import PolicyState


class FixedForwardTime:
    """The same for every decision.

    Parameters
    ----------
    t_fwd_s
        Seconds, > 0. Small values make rescaling dear.

    Raises
    ------
    InputError
        It is no positive number.
    """

    def __init__(self, t_fwd_s: float) -> None:
        is_number = isinstance(t_fwd_s, int | float | np.integer | np.floating) and not isinstance(t_fwd_s, bool)
        if not (is_number and math.isfinite(t_fwd_s) and t_fwd_s > 0):
            raise InputError(
                "the forward-looking time is not a positive number",
                column="t_fwd_s",
                value=t_fwd_s,
                expected="seconds > 0, or 'auto'",
                fix="120 s is a good start; the best value depends on how often nodes are reclaimed, and 'auto' learns "
                "it from the events as they come",
            )
        self.t_fwd_s = float(t_fwd_s)

    def seconds(self, state: PolicyState) -> float:
        """The one it is."""
        return self.t_fwd_s

    def decided(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Nothing to learn."""

    def describe(self) -> dict[str, object]:
        """Its name and the seconds."""
        return {"name": "fixed", "t_fwd_s": self.t_fwd_s}

    def close(self) -> None:
        """Nothing to forget."""
