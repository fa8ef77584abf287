"""A log whose nodes are told apart by whoever reads it, not by its file."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.node_types import NodeTypes
from bfreplay.errors import InputError


def with_node_types(log: NodeEvents, by_type: Mapping[str, Sequence[str]]) -> NodeEvents:
    """Return the same log with types of its nodes.

    Parameters
    ----------
    log
        One that tells no types apart.
    by_type
        Names of the nodes of each type, each node once.

    Raises
    ------
    InputError
        The log has types already, or a node has none or two.
    """
    if log.node_types.is_told_apart:
        raise InputError(
            "the log says itself of which types its nodes are", column="node_types", value=", ".join(by_type),
            expected=", ".join(log.node_types.names), fix="leave --node-type out",
        )  # fmt: skip
    typed = copy.copy(log)
    typed.metadata = replace(log.metadata, node_types={name: list(nodes) for name, nodes in by_type.items()})
    typed.node_types = NodeTypes.of(log.nodes, typed.metadata.node_types)
    return typed
