"""Data-parallel training whose gradients are summed by a ring all-reduce: weak and strong scaling.

A step is computing, then an all-reduce that nothing hides. On a ring of n nodes that takes 2 (n-1) messages of 1/n of
the gradients each: a bandwidth term in proportion to 2 (n-1)/n and a latency term in proportion to n-1 (P. Patarasuk
and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009) 117; R. Thakur, R.
Rabenseifner and W. Gropp, IJHPCA 19 (2005) 49). ``bandwidth`` is the time of sending all gradients once, ``latency``
that of the 2 messages that each further node adds, both over the computing time of one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.scalability.law import RATE_1, Floats, Law, Parameter, Scaling
from bfreplay.scalability.linear_start import factors

_BANDWIDTH = Parameter("bandwidth", 0.0, 1e3, "time to send all gradients once, over one node's computing time")
_LATENCY_MEANING = "latency of a step that each further node adds, over one node's computing time"


@dataclass(frozen=True, slots=True)
class CommunicationWeak(Law):
    """P(n) = rate_1 n / (1 + bandwidth 2(n-1)/n + latency (n-1)): the batch of a node stays the same.

    Sources: see the module. Without latency the rate is soon in proportion to nodes, at 1 / (1 + 2 bandwidth) of the
    ideal; with it the rate has the limit rate_1 / latency. It can fall from one node to two, never later: ``latency``
    is at most 1, a further node at most takes as long as it computes.
    """

    rate_1: float
    bandwidth: float
    latency: float

    law = "communication-weak"
    scaling = Scaling.WEAK
    can_fall = False
    formula = "P(n) = rate_1 n / (1 + bandwidth 2(n-1)/n + latency (n-1))"
    parameters = (RATE_1, _BANDWIDTH, Parameter("latency", 0.0, 1.0, _LATENCY_MEANING))

    @staticmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Speed-up at ``nodes``."""
        bandwidth, latency = parameters
        return nodes / (1.0 + (nodes - 1.0) * (2.0 * bandwidth / nodes + latency))

    @staticmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """From n/P, which is linear in the two terms."""
        others = nodes - 1.0
        return [factors(nodes / rates, [np.ones_like(nodes), 2.0 * others / nodes, others]).tolist(), [0.1, 1e-3]]


@dataclass(frozen=True, slots=True)
class CommunicationStrong(Law):
    """P(n) = rate_1 / (1/n + bandwidth 2(n-1)/n + latency (n-1)): the global batch stays the same.

    Sources: see the module. Multiplied by n above and below, this is the universal scalability law with serial =
    2 bandwidth and kappa = latency: no measurement tells the two apart; here the parameters have a mechanism.
    """

    rate_1: float
    bandwidth: float
    latency: float

    law = "communication-strong"
    scaling = Scaling.STRONG
    can_fall = True
    formula = "P(n) = rate_1 / (1/n + bandwidth 2(n-1)/n + latency (n-1))"
    parameters = (RATE_1, _BANDWIDTH, Parameter("latency", 0.0, 1e3, _LATENCY_MEANING))

    @staticmethod
    def shape(nodes: Floats, *parameters: complex) -> NDArray[Any]:
        """Speed-up at ``nodes``."""
        bandwidth, latency = parameters
        return nodes / (1.0 + (nodes - 1.0) * (2.0 * bandwidth + latency * nodes))

    @staticmethod
    def starts(nodes: Floats, rates: Floats) -> Sequence[Sequence[float]]:
        """From n/P, which is linear in the two terms."""
        others = nodes - 1.0
        return [factors(nodes / rates, [np.ones_like(nodes), 2.0 * others, nodes * others]).tolist(), [0.1, 1e-4]]
