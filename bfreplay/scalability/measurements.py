"""Measured rates of one job at several node counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import InputError
from bfreplay.scalability.law import LAST_NODES, RATE_1

LEAST_COUNTS = 2
RATE_COLUMN = "samples_per_s"
COLUMNS = ("nodes", RATE_COLUMN)
UNIT_DOUBT = (
    "are these seconds per step (seconds_per_step), rates of one GPU (samples_per_s_per_gpu), or is the batch that of "
    "one GPU (batch_per_gpu)?"
)
"""Question where rates fall, or hardly rise."""
_FALL_LEVEL = 0.01
_FALL_WITHOUT_REPEATS = 0.10
_EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Measurements:
    """Rates at node counts, one or several at each.

    Parameters
    ----------
    nodes
        Node count of each measurement, whole numbers of at least 1; in any order, a count several times for repeats.
    rates
        Measured rates, samples/s, above 0.
    name
        Name of the curve, for messages.
    rows
        Row of each measurement in its file, for messages; counted from 1 by default.

    Raises
    ------
    InputError
        A count or rate out of range (``row`` counts from 1), or fewer than two distinct counts.
    """

    nodes: tuple[int, ...]
    rates: tuple[float, ...]
    name: str = ""
    rows: tuple[int | str, ...] = field(default=(), compare=False)

    def __init__(
        self,
        nodes: Sequence[float] | NDArray[Any],
        rates: Sequence[float] | NDArray[Any],
        name: str = "",
        rows: Sequence[int | str] | None = None,
    ) -> None:
        if len(nodes) != len(rates):
            raise InputError(
                f"there are {len(nodes)} node counts but {len(rates)} rates",
                value=(len(nodes), len(rates)),
                expected="one rate for each node count",
            )
        for index, (count, rate) in enumerate(zip(nodes, rates, strict=True)):
            check_measurement(float(count), float(rate), index + 1)
        counts = {int(count) for count in nodes}
        if len(counts) < LEAST_COUNTS:
            raise InputError(
                f"{'curve ' + repr(name) + ': ' if name else ''}too few node counts were measured to fit anything",
                column="nodes",
                value=sorted(counts),
                expected=f"at least {LEAST_COUNTS} distinct node counts",
                fix="measure at more node counts, such as 1, 2, 4, 8",
            )
        order = np.argsort(np.asarray(nodes, dtype=np.float64), kind="stable")
        object.__setattr__(self, "nodes", tuple(int(nodes[index]) for index in order))
        object.__setattr__(self, "rates", tuple(float(rates[index]) for index in order))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "rows", tuple(index + 1 if rows is None else rows[index] for index in order.tolist()))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Distinct node counts, increasing: shape ``(M,)``."""
        return np.unique(np.asarray(self.nodes, dtype=np.int64))

    @property
    def repeats(self) -> NDArray[np.int64]:
        """Measurements at each of the ``counts``: shape ``(M,)``."""
        return np.unique(np.asarray(self.nodes, dtype=np.int64), return_counts=True)[1].astype(np.int64)

    @property
    def mean_logs(self) -> NDArray[np.float64]:
        """Mean logarithm of the rates at each of the ``counts``: shape ``(M,)``."""
        positions = np.searchsorted(self.counts, self.nodes)
        return np.asarray(np.bincount(positions, np.log(self.rates)) / self.repeats, dtype=np.float64)

    @property
    def means(self) -> NDArray[np.float64]:
        """Geometric mean rate at each of the ``counts``: shape ``(M,)``; scatter in proportion to the rate is even."""
        first_rates = np.asarray(self.rates)[np.searchsorted(self.nodes, self.counts)]
        return np.where(self.repeats == 1, first_rates, np.exp(self.mean_logs))

    @property
    def pure_error(self) -> tuple[float, int]:
        """Sum of squares of the log rates around the means of their counts, and its degrees of freedom."""
        positions = np.searchsorted(self.counts, self.nodes)
        deviations = np.log(self.rates) - self.mean_logs[positions]
        return float(deviations @ deviations), len(self.nodes) - len(self.repeats)

    def falls_from(self) -> int | None:
        """Count from which on the rate falls to the last count, significantly; ``None`` if it does not.

        With repeats: the mean at the last count is below the largest mean by a one-sided t test at 1 %, shared out
        over the counts that might have been the largest. Without repeats: by more than 10 %.

        Raises
        ------
        InputError
            The rate falls over the whole range, and nowhere rises.
        """
        counts, mean_logs, margin = self.counts, self.mean_logs, self._margins()
        peak = int(np.argmax(mean_logs))
        if mean_logs[peak] - mean_logs[-1] <= margin[peak, -1]:
            return None
        positions = np.arange(len(counts))
        is_rise = (mean_logs[None, :] - mean_logs[:, None] > margin) & (positions[None, :] > positions[:, None])
        if peak == 0 and not is_rise.any():
            raise InputError(
                f"{'curve ' + repr(self.name) + ': ' if self.name else ''}the rates fall over the whole range, "
                f"from {counts[0]} to {counts[-1]} nodes",
                column=RATE_COLUMN,
                value=[float(f"{mean:.6g}") for mean in self.means],
                expected="samples per second, of all nodes together",
                fix=f"{UNIT_DOUBT} If the job really gets slower with every node, more nodes are of no use to it",
            )
        return int(counts[peak])

    def _margins(self) -> NDArray[np.float64]:
        """Return the least significant difference of two means of logs: shape ``(M, M)``."""
        squares, freedom = self.pure_error
        n_counts = len(self.counts)
        if freedom == 0:
            return np.full((n_counts, n_counts), -math.log1p(-_FALL_WITHOUT_REPEATS))
        from scipy.special import stdtrit

        deviation = max(math.sqrt(squares / freedom), _EXACT)
        variances = 1.0 / self.repeats
        return np.asarray(
            stdtrit(freedom, 1 - _FALL_LEVEL / (n_counts - 1))
            * deviation
            * np.sqrt(variances[:, None] + variances[None, :]),
            dtype=np.float64,
        )


def check_measurement(nodes: float, rate: float, row: int | None = None, columns: Sequence[str] = COLUMNS) -> None:
    """Raise InputError for an invalid node count or rate, in these ``columns``."""
    if not (1 <= nodes <= LAST_NODES and float(nodes).is_integer()):
        expected = f"a whole number from 1 to {LAST_NODES:,}"
        fix = "give the nodes that the job ran on; drop a row of a run that failed"
        raise InputError("this is no node count", row=row, column=columns[0], value=nodes, expected=expected, fix=fix)
    if not 0 < rate <= RATE_1.high:
        expected = f"samples per second: a finite number > 0, at most {RATE_1.high:g}"
        fix = "drop the row of a run that failed"
        raise InputError("this is no rate", row=row, column=columns[1], value=rate, expected=expected, fix=fix)
