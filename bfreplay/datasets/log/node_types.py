"""Node types of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.errors import InputError

ANY_TYPE = "any"
"""Name of the one node type of logs without types."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeTypes:
    """Types of N nodes.

    Parameters
    ----------
    names
        T names, in the order of the log.
    of_node : (N,) int16
        Position in ``names`` of each node's type.
    """

    names: tuple[str, ...]
    of_node: NDArray[np.int16]

    @classmethod
    def of(cls, nodes: Sequence[str], by_type: Mapping[str, Sequence[str]], file: Path | None = None) -> NodeTypes:
        """Return the types of ``nodes`` (sorted names) from the names of each type; one type if none is given.

        Raises
        ------
        InputError
            A node without a type or with two, or a type of unknown nodes.
        """
        if not by_type:
            return cls((ANY_TYPE,), np.zeros(len(nodes), dtype=np.int16))
        position = {name: index for index, name in enumerate(nodes)}
        of_node = np.full(len(nodes), -1, dtype=np.int16)
        for number, (name, members) in enumerate(by_type.items()):
            checks.name("node type", name, "node_types", file)
            for node in members:
                if node not in position or of_node[position[node]] >= 0:
                    problem = "has two types" if node in position else "is not in the log"
                    raise InputError(
                        f"node {node!r} of type {name!r} {problem}",
                        file=file,
                        column="node_types",
                        value=name,
                        expected="each node of the log once",
                    )
                of_node[position[node]] = number
        if (of_node < 0).any():
            node = nodes[int(np.flatnonzero(of_node < 0)[0])]
            raise InputError(
                f"node {node!r} has no type",
                file=file,
                column="node_types",
                value=list(by_type),
                expected="each node of the log once",
                fix="name its type, or omit all types",
            )
        return cls(tuple(by_type), of_node)

    @property
    def has_type_names(self) -> bool:
        """True if the log names types."""
        return self.names != (ANY_TYPE,)

    @property
    def counts(self) -> dict[str, int]:
        """Number of nodes of each type."""
        return dict(zip(self.names, np.bincount(self.of_node, minlength=len(self.names)).tolist(), strict=True))
