"""What a forward-looking time is to a policy."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import PolicyState


class ForwardTime(Protocol):
    """Says at each decision how long it is expected to last; it may learn from what it has seen so far.

    The same states and decisions give the same times. When the clock goes back another replay has begun: what was
    learnt is forgotten.
    """

    def seconds(self, state: PolicyState) -> float:
        """Forward-looking time of the decision on ``state``: seconds, finite and > 0."""
        ...

    def decided(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """The jobs of ``state``, which ``seconds`` was asked about, hold ``counts`` (J,) from now on."""
        ...

    def describe(self) -> dict[str, object]:
        """``name``, and every parameter with its value, JSON-ready, for the run's record."""
        ...

    def close(self) -> None:
        """Forget what was learnt; harmless when called twice."""
        ...
