"""Parts of a machine: the nodes of a partition, of a list, or all but those of a list."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from os import PathLike
from os.path import isfile, join
from pathlib import Path
from types import NoneType

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.node_table import read_inventory
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.node_types import NodeTypes
from bfreplay.errors import InputError

_MOST_NAMED, _LONGEST_LIST = 5, 80


def select_nodes(
    log: NodeEvents, partition: str | None = None, only_nodes: str | None = None, without: str | None = None
) -> NodeEvents:
    """Return a log of a part of the machine.

    Events of other nodes are left out, and with them the batch jobs there: their work is not moved to other nodes.

    Parameters
    ----------
    log
        The log.
    partition
        Name of a partition: all nodes in it, those that it shares with others included.
    only_nodes
        The nodes to keep: a node list (``cn[01-20],gpu1``), or a file with one a line. Of a log of GPUs or cores a node
        stands for all of its units.
    without
        Nodes to leave out, in the same way.

    Raises
    ------
    InputError
        A partition or a node that the log does not have, or no node is left.
    """
    is_kept, selection = np.ones(len(log.nodes), np.bool_), {}
    for option, value in (("partition", partition), ("only_nodes", only_nodes), ("without", without)):
        checks.instance(option, value, (str, NoneType), "a text, such as cn[01-20],gpu1")
    if partition is not None:
        is_kept &= _is_among(log, set(_nodes_of_partition(log, partition)))
        selection["partition"] = partition
    for option, list_text in (("only_nodes", only_nodes), ("without", without)):
        if list_text is not None:
            names = named_nodes(list_text)
            is_named = _is_among(log, _known_nodes(log, option, names))
            is_kept &= is_named if option == "only_nodes" else ~is_named
            selection[option] = names
    return part_of(log, is_kept, selection) if selection else log


def named_nodes(list_text: str, folder: str | PathLike[str] = "") -> str:
    """Return a list of nodes as it is, or the names in the file of this name below ``folder``, with commas between."""
    place = join(folder, list_text)  # noqa: PTH118  # as isfile below
    # a list may be too long for a name, for which Path.is_file raises an error
    return ",".join(read_inventory(Path(place))) if isfile(place) else list_text  # noqa: PTH113


def part_of(log: NodeEvents, is_kept: NDArray[np.bool_], selection: Mapping[str, str]) -> NodeEvents:
    """Return the same log with the nodes marked in ``is_kept (N,)`` only, which ``selection`` chose.

    Raises
    ------
    InputError
        No node is left, or the events of the log are still to come.
    """
    if not is_kept.any() or log.is_to_come:
        problem = "no node is left of the log" if not is_kept.any() else "a log to come cannot be cut to some nodes"
        raise InputError(problem, value=dict(selection), expected="at least one node of a log that is there")
    part, n_at_start = copy.copy(log), log.metadata.n_nodes_at_start
    part.nodes = tuple(compress(log.nodes, is_kept.tolist()))
    # of two selections by one option the list of what is left, so that a run can be repeated
    is_twice = bool(log.selection.keys() & selection.keys())
    part.selection = {"only_nodes": ",".join(part.nodes)} if is_twice else {**log.selection, **selection}
    place = np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(np.int32)
    whole = log.node_place
    part.node_place = place if whole is None else np.where(whole < 0, -1, place[whole]).astype(np.int32)
    kept_names = set(part.nodes)

    def kept(groups: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        of_groups = {name: [node for node in nodes if node in kept_names] for name, nodes in groups.items()}
        return {name: nodes for name, nodes in of_groups.items() if nodes}

    part.metadata = replace(
        log.metadata,
        node_types=kept(log.metadata.node_types),
        hardware_types=kept(log.metadata.hardware_types),
        partitions=kept(log.metadata.partitions),
        n_nodes_at_start=None if n_at_start is None else max(1, int(np.count_nonzero(is_kept[:n_at_start]))),
    )
    part.node_types = NodeTypes.of(part.nodes, part.metadata.node_types)
    return part


def selection_words(selection: Mapping[str, str]) -> str:
    """Return which nodes a selection kept, in brackets behind their number: `` (partition gpu, without cn[01-04])``."""
    words = {"partition": "partition {}", "only_nodes": "only {}", "without": "without {}"}
    short = {
        option: value if len(value) <= _LONGEST_LIST else f"{value[:_LONGEST_LIST]}..."
        for option, value in selection.items()
    }
    chosen = ", ".join(words[option].format(value) for option, value in short.items())
    return f" ({chosen})" if chosen else ""


def _nodes_of_partition(log: NodeEvents, partition: str) -> list[str]:
    partitions = log.metadata.partitions
    if partition in partitions:
        return list(partitions[partition])
    fix = "import the log again with the column Partition of its jobs, or --units FILE" if not partitions else None
    raise InputError(
        "the log has no such partition" if partitions else "the log does not say which partitions its nodes are in",
        file=log.file,
        column="partition",
        value=partition,
        expected=", ".join(partitions) or "a log whose nodes have partitions",
        fix=fix or did_you_mean([partition], list(partitions)) or "choose one of these",
    )


def _known_nodes(log: NodeEvents, option: str, list_text: str) -> set[str]:
    """Return the names in a list or a file of nodes, all of which the log has."""
    flag = f"--{option.replace('_', '-')}"
    known, names = {*log.nodes, *(name.partition("/")[0] for name in log.nodes)}, tuple(list_text.split(","))
    try:
        if not known.issuperset(names):  # names of units are in no list with brackets
            names = expand_nodes(list_text)
    except ValueError as error:
        problem = f"{flag}: this is no list of nodes: {error}"
        raise InputError(problem, value=list_text, expected="such as cn[01-20],gpu1, or a file with names") from error
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"{flag}: the log has no such node",
            file=log.file,
            column=option,
            value=", ".join(unknown[:_MOST_NAMED]),
            expected=f"nodes of the log, such as {', '.join(log.nodes[:_MOST_NAMED])}",
            fix=did_you_mean(unknown[:1], list(log.nodes)) or "correct the names",
        )
    return set(names)


def _is_among(log: NodeEvents, names: set[str]) -> NDArray[np.bool_]:
    """Return which nodes are among ``names``, themselves or as a unit of one."""
    is_named = (name in names or name.partition("/")[0] in names for name in log.nodes)
    return np.fromiter(is_named, np.bool_, len(log.nodes))
