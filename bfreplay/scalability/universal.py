"""The universal scalability law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.scalability.law import RATE_1, Floats, Law, Parameter, Scaling
from bfreplay.scalability.linear_start import factors


@dataclass(frozen=True, slots=True)
class UniversalScalability(Law):
    """P(n) = rate_1 n / (1 + serial (n-1) + kappa n (n-1)): Amdahl's law with a cost for every pair of nodes.

    N. J. Gunther, "A simple capacity model of massively parallel transaction systems", CMG 1993; in this form "A
    general theory of computational scalability based on rational functions", arXiv:0808.1431 (there alpha and beta).
    The rate has its peak at n = sqrt((1 - serial) / kappa) and falls beyond.
    """

    rate_1: float
    serial: float
    kappa: float

    law = "usl"
    scaling = Scaling.EITHER
    can_fall = True
    formula = "P(n) = rate_1 n / (1 + serial (n-1) + kappa n (n-1))"
    parameters = (
        RATE_1,
        Parameter("serial", 0.0, 1.0, "contention: part of one node's work that does not spread"),
        Parameter("kappa", 0.0, 1.0, "coherency: cost of each pair of nodes, over one node's work"),
    )

    @staticmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Relative capacity at ``nodes``."""
        serial, kappa = parameters
        return nodes / (1.0 + (nodes - 1.0) * (serial + kappa * nodes))

    @staticmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """From n/P, which is linear in n-1 and n (n-1)."""
        others = nodes - 1.0
        return [factors(nodes / rates, [np.ones_like(nodes), others, nodes * others]).tolist(), [0.1, 1e-4]]
