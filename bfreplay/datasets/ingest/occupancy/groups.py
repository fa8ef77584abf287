"""Groups of the nodes of a record: types and partitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bfreplay.datasets.ingest.occupancy.inventory import NodeUse
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord

NO_TYPE = "no type"
"""Type of nodes of which a table does not say any, where it does of others."""


def types_of(record: ScheduleRecord, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Return the nodes of each type, as a table of nodes has them; nothing if it names no type."""
    by_type: dict[str, list[str]] = {}
    for node in nodes:
        node_type, _ = record.node_table.get(_whole_node(record, node), ("", ()))
        by_type.setdefault(node_type or NO_TYPE, []).append(node)
    return by_type if by_type.keys() - {NO_TYPE} else {}


def has_partitions(record: ScheduleRecord) -> bool:
    """Return whether a table of nodes says which partitions they are in."""
    return any(partitions for _, partitions in record.node_table.values())


def partitions_of(record: ScheduleRecord, node_uses: NodeUse, nodes: Sequence[str]) -> dict[str, list[str]]:
    """Return the nodes of each partition: as a table of nodes has them, else those on which its jobs ran."""
    members: dict[str, set[str]] = {}
    names = [_whole_node(record, node) for node in record.nodes]
    for partition, is_used in node_uses.partitions.items():
        members[partition] = {names[node] for node in np.flatnonzero(is_used).tolist()}
    if has_partitions(record):
        members = {}
        for node, (_, partitions) in record.node_table.items():
            for partition in partitions:
                members.setdefault(partition, set()).add(node)
    of_nodes = {
        partition: [node for node in nodes if _whole_node(record, node) in named]
        for partition, named in sorted(members.items())
    }
    return {partition: of_partition for partition, of_partition in of_nodes.items() if of_partition}


def _whole_node(record: ScheduleRecord, name: str) -> str:
    """Return the node of a unit; a node is its own."""
    return name if record.units is None else name.rpartition("/")[0]
