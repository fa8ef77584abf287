"""Amdahl's law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.scalability.law import RATE_1, Floats, Law, Parameter, Scaling
from bfreplay.scalability.linear_start import factors


@dataclass(frozen=True, slots=True)
class Amdahl(Law):
    """P(n) = rate_1 n / (1 + serial (n-1)): strong scaling, part of the work does not spread over nodes.

    G. M. Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities", AFIPS
    1967; the formula is that of J. L. Gustafson, CACM 31 (1988) 532, with the rate of one node as a factor. The rate
    rises to rate_1 / serial and never falls.
    """

    rate_1: float
    serial: float

    law = "amdahl"
    scaling = Scaling.STRONG
    can_fall = False
    formula = "P(n) = rate_1 n / (1 + serial (n-1))"
    parameters = (RATE_1, Parameter("serial", 0.0, 1.0, "part of one node's work that does not spread"))

    @staticmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Speed-up at ``nodes``."""
        (serial,) = parameters
        return nodes / (1.0 + serial * (nodes - 1.0))

    @staticmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """From n/P, which is linear in n-1."""
        return [factors(nodes / rates, [np.ones_like(nodes), nodes - 1.0]).tolist(), [0.1]]
