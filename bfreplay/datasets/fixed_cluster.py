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
            raise InputError("the cluster has no nodes", value="", expected=_FORM, fix="name a type and a number")
        type_names: set[str] = set()
        for name, count in self.types:
            if not checks.is_name(name) or any(mark in name for mark in ",;=") or any(map(str.isspace, name)):
                raise InputError(
                    "the name of a node type is unusable",
                    column="node type",
                    value=name,
                    expected="printable text without spaces and without , ; =",
                    fix=f"write {_FORM}",
                )
            if name in type_names:
                raise InputError(
                    f"the node type {name!r} is given twice",
                    column="node type",
                    value=self.text,
                    expected=_FORM,
                    fix="add the numbers up",
                )
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
            raise InputError("the cluster has no nodes", value=text, expected=_FORM, fix="name a type and a number")
        types = []
        for part in text.split(","):
            name, equals, count = (piece.strip() for piece in part.partition("="))
            if not equals:
                raise InputError(
                    "a node type has no number of nodes",
                    column="node type",
                    value=part.strip() or text,
                    expected=_FORM,
                    fix="write TYPE=NUMBER, such as v100=36" if name else "delete the comma",
                )
            if not (count.isascii() and count.isdigit() and 1 <= int(count[:20]) <= _MOST_NODES):
                raise InputError(
                    f"the number of {name} nodes is unusable",
                    column=name,
                    value=count,
                    expected=f"a whole number from 1 to {_MOST_NODES:,}, in digits",
                    fix="omit the type" if count.strip("0") == "" and count else "correct the number",
                )
            types.append((name, int(count)))
        return cls(tuple(types))

    @property
    def text(self) -> str:
        """The spec as text that ``parse`` reads: ``"v100=36,p100=36,k80=36"``."""
        return ",".join(f"{name}={count}" for name, count in self.types)

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
            raise InputError(
                f"nodes of {first!r} and {second!r} would be mixed in the order of their names",
                column="node type",
                value=cluster.text,
                expected="type names that are not prefixes of one another",
                fix="rename a type",
            )
    nodes = [node for members in names.values() for node in members]
    empty = np.zeros(0, dtype=np.int64)
    return NodeEvents.from_arrays(
        nodes,
        np.full(len(nodes), NodeState.IDLE),
        empty,
        empty,
        empty,
        0,
        end_us,
        EventsMetadata(source_format=SOURCE_FORMAT, time_origin="relative", notes={"cluster": cluster.text}),
        [SourceFile(cluster.text, hashlib.sha256(cluster.text.encode()).hexdigest())],
        node_types=[node_type for node_type, count in cluster.types for _ in range(count)],
    )
