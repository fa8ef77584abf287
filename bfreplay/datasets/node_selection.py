"""Parts of a machine: the nodes of a partition, of a list, or all but those of a list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.hints import did_you_mean
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.read_log import read_inventory
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.errors import InputError

_MOST_NAMED = 5


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
    if partition is not None:
        is_kept &= _is_among(log, set(_nodes_of_partition(log, partition)))
        selection["partition"] = partition
    for option, list_text in (("only_nodes", only_nodes), ("without", without)):
        if list_text is not None:
            # a run keeps the names, not the file
            names = ",".join(read_inventory(Path(list_text))) if Path(list_text).is_file() else list_text
            is_named = _is_among(log, _known_nodes(log, option, names))
            is_kept &= is_named if option == "only_nodes" else ~is_named
            selection[option] = names
    return log.with_nodes(is_kept, selection) if selection else log


def selection_words(selection: Mapping[str, str]) -> str:
    """Return which nodes a selection kept, as an attribute of nodes: ``of partition gpu, without cn[01-04]``."""
    words = {"partition": "of partition {}", "only_nodes": "of {} only", "without": "without {}"}
    return ", ".join(words[option].format(value) for option, value in selection.items())


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
