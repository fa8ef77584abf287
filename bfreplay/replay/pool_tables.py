"""Figures of the pool: batch starts that meet nodes of jobs, idle nodes over time, idle intervals by their length."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.idleness.idle_intervals import SPECTRUM_OVER_US
from bfreplay.replay.tables import TIME, Column, RowTable, schema_from

_FIRST_ROWS = 1_024
MET = np.dtype([("time_us", np.int64), ("node", np.int32)], align=True)
"""A node that a job held when it became busy."""


class BatchStarts:
    """Counts of batch starts; a batch start is an instant at which idle nodes become busy.

    A log of node states does not say which nodes belong to one batch job, so that all that become busy at one instant
    count as one start: it waits for the slowest of its nodes.

    Attributes
    ----------
    n_starts, n_starts_met
        Batch starts, and those of which some node was held by a job.
    n_nodes_started, n_nodes_met, n_nodes_delayed
        Nodes of all starts; those held by jobs; and all nodes of the starts that met one.
    busy_node_us
        Node time in which nodes were busy so far, up to the last instant.
    keeps_met
        Also keep every node that was met, 16 bytes each.
    """

    def __init__(self) -> None:
        self.n_starts = self.n_starts_met = 0
        self.n_nodes_started = self.n_nodes_met = self.n_nodes_delayed = 0
        self.busy_node_us = 0
        self.keeps_met = False
        self._n_busy = self._since_us = 0
        self._met: NDArray[np.void] = np.zeros(0, MET)
        self._used = 0

    def note(self, now_us: int, n_started: int, nodes_met: NDArray[np.int32], n_busier: int) -> None:
        """Note an instant: nodes that became busy, those of them that jobs held, and the increase of busy nodes."""
        self.busy_node_us += self._n_busy * (now_us - self._since_us)
        self._n_busy += n_busier
        self._since_us = now_us
        if not n_started:
            return
        self.n_starts += 1
        self.n_nodes_started += n_started
        if not nodes_met.size:
            return
        self.n_starts_met += 1
        self.n_nodes_met += int(nodes_met.size)
        self.n_nodes_delayed += n_started
        if self.keeps_met:
            until = self._used + nodes_met.size
            if until > self._met.size:
                self._met = np.concatenate([self._met, np.zeros(max(_FIRST_ROWS, until), MET)])
            rows = self._met[self._used : until]
            rows["time_us"], rows["node"] = now_us, nodes_met
            self._used = until

    def busy_node_us_until(self, now_us: int) -> int:
        """Node time in which nodes were busy, up to ``now_us``."""
        return self.busy_node_us + self._n_busy * (now_us - self._since_us)

    @property
    def met(self) -> NDArray[np.void]:
        """(H,) ``MET``: every node that was met, by time, if they are kept."""
        return self._met[: self._used]


IDLE_INTERVAL_BIN = np.dtype(
    [
        ("over_us", np.int64),  # lengths over this, and up to that of the next bin
        ("n_intervals", np.int64),
        ("n_censored", np.int64),  # of them: by an edge of the window
        ("n_allocated", np.int64),  # of them: some job held the node for a time
        # node-microseconds: so many, and so many times CARRIED_US
        ("idle_us", np.int64),
        ("idle_carried", np.int64),
        ("held_us", np.int64),
        ("held_carried", np.int64),
    ],
    align=True,
)

CARRIED_US = 2**62
"""Node time of one bin is carried at this: decades of many thousand nodes leave 64 bits."""


def empty_bins() -> NDArray[np.void]:
    """Return the empty bins of the idleness report's spectrum: ``(B,)`` of ``IDLE_INTERVAL_BIN``."""
    bins: NDArray[np.void] = np.zeros(SPECTRUM_OVER_US.size, dtype=IDLE_INTERVAL_BIN)
    bins["over_us"] = SPECTRUM_OVER_US
    return bins


@compiled
def count_interval(bins: NDArray[np.void], length_us: int, allocated_us: int, is_cut: bool) -> None:
    """Add one idle interval; one of no length, which begins with the window's end, is none."""
    if length_us <= 0:
        return
    bin_index = 0  # np.searchsorted in compiled code loads scipy: 0.15 s
    while bin_index + 1 < bins.size and bins[bin_index + 1]["over_us"] < length_us:
        bin_index += 1
    bins[bin_index]["n_intervals"] += 1
    if is_cut:
        bins[bin_index]["n_censored"] += 1
    bins[bin_index]["idle_us"] += length_us
    if bins[bin_index]["idle_us"] >= CARRIED_US:
        bins[bin_index]["idle_us"] -= CARRIED_US
        bins[bin_index]["idle_carried"] += 1
    if allocated_us > 0:
        bins[bin_index]["n_allocated"] += 1
        bins[bin_index]["held_us"] += allocated_us
        if bins[bin_index]["held_us"] >= CARRIED_US:
            bins[bin_index]["held_us"] -= CARRIED_US
            bins[bin_index]["held_carried"] += 1


def node_time_of_bins(bins: NDArray[np.void]) -> tuple[list[int], list[int]]:
    """Idle and held node time of each bin, in whole numbers of Python."""
    idle, allocated = (
        [
            low_part + CARRIED_US * n_carried
            for low_part, n_carried in zip(bins[f"{label}_us"].tolist(), bins[f"{label}_carried"].tolist(), strict=True)
        ]
        for label in ("idle", "held")
    )
    return idle, allocated


POOL_COLUMNS = (
    Column(
        "time", TIME,
        "the window's start, and each instant after which there are more or fewer idle nodes than before, to the "
        "window's end, whether or not jobs are there",
    ),
    Column("n_idle", pa.int32(), "idle nodes from then on, held ones included"),
)  # fmt: skip
IDLE_INTERVAL_COLUMNS = (
    Column("over_s", pa.float64(), "seconds; the bin has lengths over this"),
    Column("up_to_s", pa.float64(), "seconds; and up to this, empty for the last bin there is, over 69 days"),
    Column(
        "n_intervals", pa.int64(), "idle intervals; one cut by an edge of the window counts with the length seen",
    ),
    Column("n_censored", pa.int64(), "of them: idle at the window's start already, or still at its end"),
    Column("n_allocated", pa.int64(), "of them: some job held the node for a time"),
    Column("idle_node_us", pa.int64(), "node time in them; over all rows the ledger's idle node time"),
    Column(
        "allocated_node_us", pa.int64(),
        "of it: jobs held the node, several one after the other perhaps; over all rows that of `allocations.parquet`",
    ),
)  # fmt: skip
POOL = schema_from(POOL_COLUMNS)
IDLE_INTERVALS = schema_from(IDLE_INTERVAL_COLUMNS)
_MOST = 2**63 - 1


def write_idle_intervals(bins: NDArray[np.void], table: RowTable) -> None:
    """Append the bins, ``(B,)`` of ``IDLE_INTERVAL_BIN``, from the first that holds an idle interval to the last.

    A bin with more node time than 64 bits can count (292,000 node-years) is shared out among as many rows as it takes.
    """
    nonempty = np.flatnonzero(bins["n_intervals"])
    if not nonempty.size:
        return
    idle, allocated = node_time_of_bins(bins)
    edges_s = [*(bins["over_us"] / 1e6).tolist(), None]
    counts = [bins[name].tolist() for name in ("n_intervals", "n_censored", "n_allocated")]
    for b in range(int(nonempty[0]), int(nonempty[-1]) + 1):
        totals = [*(count[b] for count in counts), idle[b], allocated[b]]
        n_rows = max(1, -(-idle[b] // _MOST))
        for row in range(n_rows):
            table.append((edges_s[b], edges_s[b + 1], *(total // n_rows + (row < total % n_rows) for total in totals)))
