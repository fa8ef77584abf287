"""What every scalability curve can do."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Curve(Protocol):
    """A rate (samples/s, speed-up, any metric) as a function of the number of nodes.

    A curve may have an attribute ``measured``: see `measured_counts`.
    """

    @property
    def last_nodes(self) -> int:
        """Largest node count at which the curve is defined."""
        ...

    def table(self, max_nodes: int) -> NDArray[np.float64]:
        """Values at 0, 1, ..., ``max_nodes``: shape ``(max_nodes + 1,)``; the first is 0."""
        ...


def measured_counts(curve: Curve) -> tuple[int, int] | None:
    """Smallest and largest node count that ``curve`` was measured at; ``None`` where that is not known."""
    counts: tuple[int, int] | None = getattr(curve, "measured", None)
    return counts
