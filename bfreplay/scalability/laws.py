"""Laws of scalability, and the starting points of their fits.

The communication laws are data-parallel training whose gradients are summed by a ring all-reduce: weak and strong
scaling. A step is computing, then an all-reduce that nothing hides. On a ring of n nodes that takes 2 (n-1) messages of
1/n of the gradients each: a bandwidth term in proportion to 2 (n-1)/n and a latency term in proportion to n-1 (P.
Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009) 117; R.
Thakur, R. Rabenseifner and W. Gropp, IJHPCA 19 (2005) 49). ``bandwidth`` is the time of sending all gradients once,
``latency`` that of the 2 messages that each further node adds, both over the computing time of one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.saved_state import restorable
from bfreplay.scalability.law import RATE_1, Floats, Law, Parameter, Scaling


def factors(target: Floats, columns: Sequence[Floats]) -> Floats:
    """Factors of the first column 1 that make ``target`` of ``columns``, none negative: shape ``(len(columns) - 1,)``.

    Relative errors are squared and added: rates scatter in proportion to their size. Where the first column is not
    needed at all, it gets a hundredth of what all columns together get.
    """
    from scipy.optimize import nnls

    relative_columns = np.stack(columns, axis=1) / target[:, None]
    column_norms = np.linalg.norm(relative_columns, axis=0)
    column_norms[column_norms == 0] = 1.0
    coefficients = nnls(relative_columns / column_norms, np.ones(len(target)))[0] / column_norms
    first_factor = max(float(coefficients[0]), 0.01 * float(coefficients.sum()))
    return np.asarray(coefficients[1:] / first_factor, dtype=np.float64)


@restorable
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


@restorable
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


@restorable
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


@restorable
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


_BANDWIDTH = Parameter("bandwidth", 0.0, 1e3, "time to send all gradients once, over one node's computing time")
_LATENCY_MEANING = "latency of a step that each further node adds, over one node's computing time"


@restorable
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


@restorable
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
