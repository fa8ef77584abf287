"""Curves of jobs that can use some node counts only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.saved_state import restorable
from bfreplay.scalability.law import Curve, measured_counts


@restorable
@dataclass(frozen=True, slots=True)
class SteppedCurve:
    """Curve that is level from each of some counts to the next, and 0 below the first.

    Parameters
    ----------
    curve
        Curve that is read at the counts.
    counts
        Increasing node counts, at most the last of ``curve``.
    """

    curve: Curve
    counts: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the curve in messages."""
        return str(getattr(self.curve, "name", ""))

    @property
    def last_nodes(self) -> int:
        """Largest node count at which the curve is defined."""
        return self.curve.last_nodes

    @property
    def measured(self) -> tuple[int, int] | None:
        """Smallest and largest node count at which the curve was measured; ``None`` if not known."""
        return measured_counts(self.curve)

    def table(self, max_nodes: int) -> NDArray[np.float64]:
        """Values at 0, 1, ..., ``max_nodes``: shape ``(max_nodes + 1,)``."""
        n_reached = np.searchsorted(self.counts, np.arange(max_nodes + 1), side="right")
        rates: NDArray[np.float64] = self.curve.table(max_nodes)[np.array((0, *self.counts))[n_reached]]
        return rates


def on_counts(curve: Curve, counts: tuple[int, ...]) -> SteppedCurve:
    """Return the curve of a job that can use ``counts`` only, also of one that had other counts before."""
    return SteppedCurve(curve_as_given(curve), counts)


def curve_as_given(curve: Curve) -> Curve:
    """Return the curve that a stepped curve reads; any other curve itself."""
    return curve.curve if isinstance(curve, SteppedCurve) else curve
