"""A file with the names of all nodes of a machine."""

from __future__ import annotations

from pathlib import Path

from bfreplay.datasets.registry import check_is_file
from bfreplay.datasets.scheduler_logs.hostlists import expand_nodes
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.errors import InputError

_HEADERS = frozenset({"nodelist", "node", "nodes", "nodename", "hostname", "hostnames", "host", "hosts", "name"})


def read_inventory(path: Path) -> tuple[str, ...]:
    """Names of all nodes: a name or a node list (``cn[001-128]``) a line; ``#`` begins a comment.

    What ``sinfo -N -h -o %N``, ``scontrol show hostnames`` or a node list by hand gives. Repeated names count once.

    Raises
    ------
    InputError
        A line is no list of nodes, or there is none.
    """
    check_is_file(path)
    names: dict[str, None] = {}
    for number, line in LogFile(path).lines():
        text = line.split("#", 1)[0].strip()
        try:
            if text.lower() in _HEADERS:
                raise ValueError("it is the head of a column")
            names.update(dict.fromkeys(expand_nodes(text)))
        except ValueError as error:
            raise InputError(
                f"this is no node or list of nodes: {error}",
                file=path,
                row=f"line {number}",
                value=text,
                expected="one name or node list a line, such as cn001 or cn[001-128], and nothing else",
                fix="on the cluster: sinfo -N -h -o %N | sort -u > nodes.txt (Slurm); "
                "pbsnodes -a -F dsv | cut -d'|' -f1 | sed 's/Name=//' > nodes.txt (PBS Pro)",
            ) from None
    if not names:
        raise InputError("the file names no node", file=path, expected="names of nodes", fix="check the file")
    return tuple(names)
