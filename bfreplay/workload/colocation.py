"""How fast two jobs are that share the same nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bfreplay.errors import InputError

Pair = tuple[str, str, int, str]
"""Model of one job, model of the other, nodes that they share, type of these."""


class Colocation:
    """Rates of pairs of jobs that run on the same nodes at the same time (space sharing).

    Parameters
    ----------
    rates
        ``(model, other model, n_nodes, node type)`` to the samples/s of the one and of the other. A pair that is not
        there, in neither order, cannot share nodes.

    Raises
    ------
    InputError
        A rate that is negative or no number.
    """

    __slots__ = ("_rates",)

    def __init__(self, rates: Mapping[Pair, tuple[float, float]]) -> None:
        self._rates = {pair: (float(one), float(other)) for pair, (one, other) in rates.items()}
        for pair, both in self._rates.items():
            if not (all(math.isfinite(rate) and rate >= 0 for rate in both)):
                raise InputError(
                    f"the rates of {pair[0]!r} and {pair[1]!r} on {pair[2]} shared nodes ({pair[3]}) make no sense",
                    value=both, expected="two finite numbers >= 0",
                )  # fmt: skip

    def __len__(self) -> int:
        return len(self._rates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colocation) and self._rates == other._rates

    def __hash__(self) -> int:
        return hash(len(self._rates))

    def rates(self, model: str, other: str, n_nodes: int, node_type: str) -> tuple[float, float]:
        """Samples/s of ``model`` and of ``other`` on the same ``n_nodes`` nodes; zeros where they cannot share them."""
        known = self._rates.get((model, other, n_nodes, node_type))
        if known is not None:
            return known
        turned = self._rates.get((other, model, n_nodes, node_type))
        return (0.0, 0.0) if turned is None else (turned[1], turned[0])
