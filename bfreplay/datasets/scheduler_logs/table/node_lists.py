"""Indices of nodes in the lists that stand in cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.scheduler_logs.table.cells import nodes_in

_MOST_IDS = 4_000_000


class NodeLists:
    """Indices of nodes in lists, which repeat; what is remembered is bounded."""

    def __init__(self, record: ScheduleRecord) -> None:
        self._record = record
        self._known: dict[str, NDArray[np.int32]] = {}
        self._n_ids = 0

    def ids(self, value: Any) -> tuple[NDArray[np.int32], str]:
        """Indices, and the list as text. ``ValueError`` if it is no list of nodes."""
        text = value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else str(value)
        known = self._known.get(text)
        if known is None:
            known = self._record.node_ids(nodes_in(value))
            if self._n_ids > _MOST_IDS:
                self._known.clear()
                self._n_ids = 0
            self._known[text] = known
            self._n_ids += len(known) + 64
        return known, text if len(known) else ""
