"""Units of nodes: the GPUs or cores of shared nodes, each idle or busy by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.occupancy.import_report import WHICH_NODES
from bfreplay.datasets.ingest.occupancy.spool import first_of_each

OVER = "jobs hold more units of a node than --units gives it: it counts as full"
UNEVEN = "a job's units do not divide by its nodes: they count as evenly as can be, one more on the first nodes"
UNKNOWN = "the log does not say how many units jobs hold: they count with all units of their nodes"
NONE_THERE = "jobs hold GPUs on nodes that have none in the file of --units"
CORES_HELD = (
    "jobs without GPUs hold cores of nodes with GPUs, which count as idle: the amount is as large a share of these "
    "GPUs as of the cores"
)
CORES_UNKNOWN = "the file of --units does not give the cores of the nodes"


class Held(NamedTuple):
    """Units that a job holds: of all its nodes together, or of each one ``(K,) int64``; ``None``: not in the log."""

    gpus: int | NDArray[np.int64] | None = None
    cores: int | NDArray[np.int64] | None = None
    is_whole: bool = False

    def total(self, kind: str) -> int | None:
        """Return the units of all its nodes together, ``"gpu"`` or ``"core"``; ``None`` if not known."""
        n_units = self.gpus if kind == "gpu" else self.cores
        return None if n_units is None else int(np.sum(n_units))


NOT_TOLD = Held()


class Finding(NamedTuple):
    """Doubt about the units of a job, with their number (``None``: those of the job) and why they have none."""

    sentence: str
    n_units: float | None = None
    why_no_amount: str = ""
    aside: str = ""


class Units:
    """Units of N nodes, those of one node after another.

    Parameters
    ----------
    kind
        ``"gpu"`` or ``"core"``.
    nodes, counts
        Names of the nodes, and the units of each.
    cores
        Cores of each node; 0 where not known.

    Attributes
    ----------
    first
        First unit of each node, and after the last, ``(N + 1,) int64``.
    names
        Names of the units in the order of their indices, ``cn01/gpu0``; in order by name, too.
    """

    def __init__(self, kind: str, nodes: Sequence[str], counts: Sequence[int], cores: Sequence[int]) -> None:
        self.kind = kind
        self.counts, self._cores = np.array(counts, np.int64), np.array(cores, np.int64)
        self.first = first_of_each(self.counts)
        digits = len(str(int(self.counts.max(initial=1)) - 1))
        pairs = zip(nodes, counts, strict=True)
        self.names = tuple(f"{node}/{kind}{number:0{digits}d}" for node, n in pairs for number in range(n))

    def of_nodes(self, nodes: NDArray[np.int32], n_held: NDArray[np.int64] | None = None) -> NDArray[np.int32]:
        """Return the first ``n_held (K,)`` units of each node, all by default; a node beyond the table has none."""
        if n_held is None:
            nodes = nodes[nodes < len(self.counts)]
            n_held = self.counts[nodes]
        units = np.repeat(self.first[nodes] - first_of_each(n_held)[:-1], n_held) + np.arange(n_held.sum())
        return units.astype(np.int32)

    def of_job(self, nodes: NDArray[np.int32], held: Held) -> tuple[NDArray[np.int32], Finding | None]:
        """Return units of the nodes, as many of each as a job holds there; which ones is decided as time goes on."""
        counts, cores = self.counts[nodes], self._cores[nodes]
        n_held = held.gpus if self.kind == "gpu" else held.cores
        n_cores = 0 if held.cores is None else int(np.sum(held.cores))
        is_full = self.kind == "gpu" and bool(cores.all()) and n_cores >= cores.sum()
        if held.is_whole or is_full or n_held is None:
            is_known = held.is_whole or is_full or not counts.any()
            return self.of_nodes(nodes), None if is_known else Finding(UNKNOWN)
        n_total = int(np.sum(n_held))
        finding = None
        if not n_total and counts.any():
            n_blocked = n_cores / max(int(cores.sum()), 1) * int(counts.sum())
            finding = Finding(CORES_HELD, n_blocked, "" if cores.all() else CORES_UNKNOWN) if n_cores else None
        elif n_total and not counts.any():
            finding = Finding(NONE_THERE, n_total)
        shares = _evenly(n_total, counts) if isinstance(n_held, int) else np.minimum(n_held, counts)
        n_over = n_total - int(shares.sum())
        if n_over and counts.any():
            finding = Finding(OVER, n_over)
        elif len(set(shares[counts > 0].tolist())) > 1 and isinstance(n_held, int) and n_total < counts.sum():
            finding = Finding(UNEVEN, aside=WHICH_NODES)
        return self.of_nodes(nodes, shares), finding


def _evenly(n_units: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return so many units on nodes with ``counts (K,)``, as evenly as these allow; one more on the first nodes."""
    level = n_units // max(len(counts), 1)
    while level < counts.max(initial=0) and np.minimum(counts, level + 1).sum() <= n_units:
        level += 1
    shares = np.minimum(counts, level)
    shares[np.flatnonzero(counts > level)[: n_units - int(shares.sum())]] += 1
    return shares
