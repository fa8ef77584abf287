"""Gustafson's law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.scalability.law import RATE_1, Floats, Law, Parameter, Scaling
from bfreplay.scalability.linear_start import factors


@dataclass(frozen=True, slots=True)
class Gustafson(Law):
    """P(n) = rate_1 (n - serial (n-1)): weak scaling, every further node adds the same.

    J. L. Gustafson, "Reevaluating Amdahl's law", CACM 31 (1988) 532: the scaled speed-up, with the rate of one node as
    a factor. The rate rises in a straight line.
    """

    rate_1: float
    serial: float

    law = "gustafson"
    scaling = Scaling.WEAK
    can_fall = False
    formula = "P(n) = rate_1 (n - serial (n-1))"
    parameters = (RATE_1, Parameter("serial", 0.0, 1.0, "part of a node's time that does not add to the rate"))

    @staticmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Scaled speed-up at ``nodes``."""
        (serial,) = parameters
        return nodes - serial * (nodes - 1.0)

    @staticmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """From P, which is linear in n."""
        slope = float(factors(rates, [np.ones_like(nodes), nodes - 1.0])[0])
        return [[1.0 - slope], [0.1]]
