"""The power law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.scalability.law import RATE_1, Floats, Law, Parameter, Scaling


@dataclass(frozen=True, slots=True)
class PowerLaw(Law):
    """P(n) = rate_1 n^exponent: every doubling of the nodes gives the same factor.

    An empirical form, a straight line over logarithms, with no mechanism and no paper behind it. The rate has no upper
    limit.
    """

    rate_1: float
    exponent: float

    law = "power"
    scaling = Scaling.EITHER
    can_fall = False
    formula = "P(n) = rate_1 n^exponent"
    parameters = (RATE_1, Parameter("exponent", 0.0, 2.0, "1: in proportion to nodes; above 1: superlinear"))

    @staticmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Speed-up at ``nodes``."""
        (exponent,) = parameters
        return nodes**exponent

    @staticmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """The slope over logarithms: the fit itself."""
        return [[float(np.polyfit(np.log(nodes), np.log(rates), 1)[0])]]
