"""Curves given as points: piecewise linear between them, exact at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.saved_state import restorable

_FIX_START = "add the point (0 nodes, 0); a job without nodes makes no progress"


@restorable
@dataclass(frozen=True, slots=True)
class TabulatedCurve:
    """Piecewise-linear curve through given points (BFTrainer's ``Ns`` and ``Ps`` or ``Os``).

    Curves need not be concave, nor increasing: measured ones are often neither.

    Parameters
    ----------
    nodes
        Node counts of the points, strictly increasing whole numbers, the first 0.
    values
        Rate at each point (samples/s for throughput), finite and not negative, the first 0.
    name
        Name of the curve in messages.

    Raises
    ------
    InputError
        The points do not start at (0, 0), are not sorted, or are no numbers.
    """

    nodes: tuple[int, ...]
    values: tuple[float, ...]
    name: str = ""

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        points = f"{len(self.nodes)} points up to {self.nodes[-1]:,} nodes"
        return f"<TabulatedCurve{name}: {points}, at most {max(self.values):.6g}>"

    def __init__(self, nodes: Sequence[float], values: Sequence[float], name: str = "") -> None:

        def error(problem: str, expected: str, **details: Any) -> InputError:
            return InputError(f"{f'curve {name!r}' if name else 'curve'} {problem}", expected=expected, **details)

        if len(nodes) != len(values):
            problem, lists = f"has {len(nodes)} node counts but {len(values)} values", (list(nodes), list(values))
            raise error(problem, "one value for each node count", value=lists)
        if len(nodes) == 0:
            raise error("has no points", "at least the point (0, 0)", fix=_FIX_START)
        counts = np.asarray(nodes, dtype=np.float64)
        rates = np.asarray(values, dtype=np.float64)
        for column_name, array in (("nodes", counts), ("values", rates)):
            invalid = np.flatnonzero(~np.isfinite(array) | (array < 0))
            if invalid.size:
                problem = "has a point that is not a finite number of at least 0"
                raise error(problem, "finite numbers >= 0", column=column_name, value=float(array[invalid[0]]))
        fractional = np.flatnonzero(counts != np.floor(counts))
        if fractional.size:
            problem, value = "has a point at a fraction of a node", float(counts[fractional[0]])
            raise error(problem, "whole numbers of nodes", column="nodes", value=value)
        if counts[0] != 0 or rates[0] != 0:
            first_point = (float(counts[0]), float(rates[0]))
            raise error("does not start at zero", "first point (0 nodes, 0)", value=first_point, fix=_FIX_START)
        distinct, repeats = np.unique(counts, return_counts=True)
        if len(distinct) < len(counts):
            double_count = int(distinct[repeats > 1][0])
            raise error(
                f"has two points at {double_count} nodes",
                "one point for each node count",
                column="nodes",
                value=[float(rate) for rate in rates[counts == double_count]],
                fix="keep one of them; repeated measurements are for `bfreplay jobs fit`, which makes a curve of them",
            )
        if np.any(np.diff(counts) <= 0):
            details_of_order = {"column": "nodes", "value": [int(count) for count in counts], "fix": "sort the points"}
            raise error("is not sorted by nodes", "strictly increasing node counts", **details_of_order)
        object.__setattr__(self, "nodes", tuple(int(count) for count in counts))
        object.__setattr__(self, "values", tuple(float(value_there) for value_there in rates))
        object.__setattr__(self, "name", name)

    @property
    def last_nodes(self) -> int:
        """Largest node count at which the curve is defined."""
        return self.nodes[-1]

    @property
    def measured(self) -> tuple[int, int] | None:
        """Smallest and largest count above 0 that has a point; ``None`` without one.

        Below the smallest the curve is a straight line to (0, 0), without a measurement.
        """
        return (self.nodes[1], self.nodes[-1]) if len(self.nodes) > 1 else None

    def table(self, max_nodes: int) -> NDArray[np.float64]:
        """Values at 0, 1, ..., ``max_nodes``: shape ``(max_nodes + 1,)``.

        Raises
        ------
        InputError
            The curve ends below ``max_nodes``: bfreplay does not extrapolate measured points.
        """
        if max_nodes > self.last_nodes:
            raise InputError(
                f"curve {self.name!r} ends at {self.last_nodes} nodes, below max_nodes",
                value=max_nodes,
                expected=f"max_nodes <= {self.last_nodes}",
                fix="measure one more point at max_nodes, or lower max_nodes",
            )
        return np.interp(np.arange(max_nodes + 1), self.nodes, self.values)
