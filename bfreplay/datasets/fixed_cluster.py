"""Dedicated nodes of several types as a log: idle from its start to its end."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass

import numpy as np

from bfreplay import checks
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import EventsMetadata, SourceFile
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError

HUNDRED_YEARS_US = 36_525 * 86_400 * 1_000_000
"""Default end of the window: later than any replay's last job."""

SOURCE_FORMAT = "fixed cluster"
_MOST_NODES = 1_000_000
_FORM = "TYPE=COUNT,TYPE=COUNT, such as v100=36,p100=36,k80=36"


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Number of nodes of each type.

    Parameters
    ----------
    types
        Name and number of nodes of each type, in the order given.

    Raises
    ------
    InputError
        No types, a name twice or unusable, or a number of nodes below 1.
    """

    types: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if not self.types:
            raise _error("the cluster has no nodes", "", "name a type and a number", column=None)
        type_names: set[str] = set()
        for name, count in self.types:
            if not checks.is_name(name) or any(mark in name for mark in ",;=") or any(map(str.isspace, name)):
                expected = "printable text without spaces and without , ; ="
                raise _error("the name of a node type is unusable", name, f"write {_FORM}", expected)
            if name in type_names:
                raise _error(f"the node type {name!r} is given twice", self.text, "add the numbers up")
            type_names.add(name)
            checks.whole(f"number of {name} nodes", count, 1, _MOST_NODES)
        checks.whole("number of nodes", self.n_nodes, 1, _MOST_NODES)

    @classmethod
    def parse(cls, text: str) -> ClusterSpec:
        """Read ``"v100=36,p100=36,k80=36"``.

        Raises
        ------
        InputError
            Another form, or values that the class refuses.
        """
        if not isinstance(text, str) or not text.strip():
            raise _error("the cluster has no nodes", text, "name a type and a number", column=None)
        types = []
        for part in text.split(","):
            node_type, equals, count = (piece.strip() for piece in part.partition("="))
            if not equals:
                fix = "write TYPE=NUMBER, such as v100=36" if node_type else "delete the comma"
                raise _error("a node type has no number of nodes", part.strip() or text, fix)
            if not (count.isascii() and count.isdigit() and 1 <= int(count[:20]) <= _MOST_NODES):
                expected = f"a whole number from 1 to {_MOST_NODES:,}, in digits"
                fix = "omit the type" if count.strip("0") == "" and count else "correct the number"
                raise _error(f"the number of {node_type} nodes is unusable", count, fix, expected, column=node_type)
            types.append((node_type, int(count)))
        return cls(tuple(types))

    @property
    def text(self) -> str:
        """The spec as text that ``parse`` reads: ``"v100=36,p100=36,k80=36"``."""
        return ",".join(f"{node_type}={count}" for node_type, count in self.types)

    @property
    def n_nodes(self) -> int:
        """Nodes of all types."""
        return sum(count for _, count in self.types)


def fixed_cluster(spec: ClusterSpec | str, end_us: int = HUNDRED_YEARS_US) -> NodeEvents:
    """Return a log of nodes that are idle from 0 to ``end_us`` and never reclaimed.

    Parameters
    ----------
    spec
        The types, or their text.
    end_us
        End of the window, microseconds from its start.

    Returns
    -------
    NodeEvents
        Node 7 of type k80 is called ``k80-007``: in the order of names, nodes are type by type, types alphabetically.
        ``node_types`` keeps the order of ``spec``.

    Raises
    ------
    InputError
        As ``ClusterSpec``; a window without time; or two types with mixed nodes in the order of names.
    """
    cluster = ClusterSpec.parse(spec) if isinstance(spec, str) else spec
    checks.whole("end_us", end_us, 1)
    names: dict[str, list[str]] = {}
    for node_type, count in cluster.types:
        digits = max(3, len(str(count - 1)))
        names[node_type] = [f"{node_type}-{number:0{digits}}" for number in range(count)]
    for first, second in itertools.pairwise(sorted(names)):
        if names[first][-1] >= names[second][0]:
            problem = f"nodes of {first!r} and {second!r} would be mixed in the order of their names"
            raise _error(problem, cluster.text, "rename a type", "type names that are not prefixes of one another")
    nodes = [node for members in names.values() for node in members]
    metadata = EventsMetadata(source_format=SOURCE_FORMAT, time_origin="relative", notes={"cluster": cluster.text})
    source = SourceFile(cluster.text, hashlib.sha256(cluster.text.encode()).hexdigest())
    node_types = [node_type for node_type, count in cluster.types for _ in range(count)]
    idle = np.full(len(nodes), NodeState.IDLE)
    return NodeEvents.from_arrays(nodes, idle, [], [], [], 0, end_us, metadata, [source], node_types=node_types)


def _error(
    problem: str, value: object, fix: str, expected: str = _FORM, *, column: str | None = "node type"
) -> InputError:
    return InputError(problem, column=column, value=value, expected=expected, fix=fix)
