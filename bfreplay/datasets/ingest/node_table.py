"""Nodes of a machine: their names, or a table with GPUs, cores, type and partitions (CSV, ``scontrol show node``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bfreplay.checks import MOST_NODES, is_name
from bfreplay.datasets.ingest.delimited import CsvTable
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.log.metadata import UNITS
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.datasets.snapshots.texts import SCONTROL, kind_of, slurm_node_fields
from bfreplay.errors import InputError

MOST_UNITS = 65_536
"""Most units of a node."""

CPU_TYPE = "cpu"
_COLUMNS = ("node", "gpus", "cores", "type", "partitions")
_EXPECTED = "a table node,gpus,cores (and type,partitions, if known), or the output of scontrol show node"
_FIX = "on the cluster: scontrol show node > nodes.txt; or write the table by hand: cn[01-40],4,64"
_GRES = re.compile(r"gpu(?::([^:]+))??(?::no_consume)?(?::(\d{1,6}))?", re.ASCII)
_SOCKETS = re.compile(r"\([^)]*\)")  # may have commas
_SHARED_GPU = re.compile(r"(?:^|,)gres/(?:shard|mps)(?::[^,=]*)?=[1-9]", re.ASCII)
_TRES = re.compile(r"(?:^|,)(cpu|gres/gpu(?::[^,=]*)?)=(\d{1,12})(?=,|$)", re.ASCII)


_HEADERS = frozenset({"nodelist", "node", "nodes", "nodename", "hostname", "hostnames", "host", "hosts", "name"})


class NodeRow(NamedTuple):
    """Node of the table; ``None`` and empty: the table does not have it."""

    gpus: int | None
    cores: int | None
    type: str = ""
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Nodes of a machine, by name, as a file has them."""

    file: Path
    rows: Mapping[str, NodeRow]

    @classmethod
    def load(cls, file: Path) -> NodeTable:
        """Read a table.

        Raises
        ------
        InputError
            Another kind of file, a number that cannot be read, or a node with two rows.
        """
        check_is_file(file)
        log_file = LogFile(file)
        is_slurm = kind_of(log_file.head().decode("utf-8", "replace")) == SCONTROL
        rows: dict[str, NodeRow] = {}
        for place, node, row in _slurm_rows(log_file) if is_slurm else _csv_rows(log_file):
            if not is_name(node) or node in rows:
                problem = "a node has two rows" if node in rows else "this is not the name of a node"
                raise log_file.error(problem, row=place, column="node", value=node, expected="each node once")
            if strange := next((text for text in (row.type, *row.partitions) if text and not is_name(text)), None):
                column = "type" if strange == row.type else "partition"
                problem, expected = f"this is not the name of a {column}", "printable characters"
                raise log_file.error(problem, row=place, column=column, value=strange, expected=expected)
            rows[node] = row
        if not rows:
            raise log_file.error("the file names no node", expected=_EXPECTED, fix=_FIX)
        return cls(file, rows)

    def units(self, unit: str) -> list[int]:
        """Return the GPUs or cores of each node.

        Raises
        ------
        InputError
            The table does not have them for every node, or no node has any.
        """
        column, word = f"{unit}s", UNITS[unit]
        numbers = [row.gpus if unit == "gpu" else row.cores for row in self.rows.values()]
        missing = [node for node, number in zip(self.rows, numbers, strict=True) if number is None]
        if missing or not any(numbers):
            problem = f"nodes have no number of {word}s" if missing else f"no node of the table has any {word}"
            value = f"{', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}" if missing else None
            raise InputError(problem, file=self.file, column=column, value=value, expected=_EXPECTED, fix=_FIX)
        counts = [number or 0 for number in numbers]
        if sum(counts) > MOST_NODES:
            problem, expected = f"the nodes have too many {word}s together", f"at most {MOST_NODES:,}"
            raise InputError(problem, file=self.file, column=column, value=sum(counts), expected=expected)
        return counts


def tres_counts(tres_text: str) -> tuple[int | None, int | None]:
    """Return the GPUs and cores in a list such as ``cpu=24,gres/gpu:a100=2,gres/gpu=2,node=1``.

    ``None``: not in it. With parts of GPUs (``gres/shard``, ``gres/mps``) it does not say on how many these are;
    without GPUs and cores it is no list.
    """
    counts = {name: int(number) for name, number in _TRES.findall(tres_text)}
    of_types = sum(number for name, number in counts.items() if name.startswith("gres/gpu:"))
    n_gpus = counts.get("gres/gpu", of_types)
    return n_gpus if counts and (n_gpus or not _SHARED_GPU.search(tres_text)) else None, counts.get("cpu")


def _csv_rows(log_file: LogFile) -> Iterator[tuple[str, str, NodeRow]]:
    table = CsvTable(log_file, None, None)
    names = [name.lower() for name in table.names]
    if "node" not in names or not {"gpus", "cores", "type", "partitions"}.intersection(names):
        value = ",".join(table.names[:20])
        raise log_file.wrong_start("this is no table of nodes", value=value, expected=_EXPECTED, fix=_FIX)
    for row in table.rows():
        place = f"line {row.line}"
        if row.cells is None:
            expected = f"{len(names)} cells; a list with commas in quotes"
            raise log_file.error("a row has another number of cells", row=place, value=row.text, expected=expected)
        cells = dict(zip(names, map(str.strip, row.cells), strict=True))
        gpus, cores = (_number(cells.get(column, ""), column, place, log_file) for column in ("gpus", "cores"))
        partitions = tuple(filter(None, map(str.strip, re.split("[;,]", cells.get("partitions", "")))))
        try:
            nodes = expand_nodes(cells["node"])
        except ValueError as error:
            problem = f"this is not a node or list of nodes: {error}"
            raise log_file.error(problem, row=place, column="node", value=cells["node"], fix=_FIX) from None
        for node in nodes:
            yield place, node, NodeRow(gpus, cores, cells.get("type", ""), partitions)


def _number(cell_text: str, column: str, place: str, log_file: LogFile) -> int | None:
    is_number = cell_text.isascii() and cell_text.isdigit() and len(cell_text) < 10
    if cell_text and not (is_number and int(cell_text) <= MOST_UNITS):
        expected = f"a whole number of at most {MOST_UNITS:,}, 0 for none"
        raise log_file.error("this is no number of units", row=place, column=column, value=cell_text, expected=expected)
    return int(cell_text) if cell_text else None


def _slurm_rows(log_file: LogFile) -> Iterator[tuple[str, str, NodeRow]]:
    text = "".join(f"{line}\n" if is_whole else line for _, line, is_whole in log_file.lines_with_ends())
    for number, (node, fields) in enumerate(slurm_node_fields(text, log_file.name), start=1):
        place, of_config = f"node {number}", tres_counts(fields.get("CfgTRES", ""))
        gres = []
        for part in _SOCKETS.sub("", fields.get("Gres", "")).split(","):
            match = _GRES.fullmatch(part)
            if match is None and part.partition(":")[0] == "gpu":
                expected = "such as gpu:4 or gpu:a100:4"
                raise log_file.error(
                    "these GPUs cannot be read", row=place, column="Gres", value=part, expected=expected
                )
            gres += [] if match is None else [match]
        n_gpus = sum(int(match[2] or 1) for match in gres) or of_config[0] or 0
        gpus = _number(str(n_gpus), "Gres", place, log_file)
        # cores that are kept for the system are in CPUTot only
        cores_text = fields.get("CPUEfctv", fields.get("CPUTot", ""))
        cores = _number(cores_text, "CPUTot", place, log_file)
        partitions = tuple(filter(None, fields.get("Partitions", "").split(",")))
        node_type = (gres[0][1] or "gpu") if gres else "gpu" if gpus else CPU_TYPE
        yield place, node, NodeRow(gpus, of_config[1] if cores is None else cores, node_type, partitions)


def read_inventory(path: Path) -> tuple[str, ...]:
    """Read the names of all nodes: a name or a node list (``cn[001-128]``) per line; ``#`` begins a comment.

    Output of ``sinfo -a -N -h -o %N`` or ``scontrol show hostnames``, or written by hand. Repeated names count once.

    Raises
    ------
    InputError
        A line is not a list of nodes, or the file has no node.
    """
    check_is_file(path)
    node_names: dict[str, None] = {}
    for line_number, line_text in LogFile(path).lines():
        names_text = line_text.split("#", 1)[0].strip()
        try:
            if names_text.lower() in _HEADERS:
                raise ValueError("it is a column header")
            node_names.update(dict.fromkeys(expand_nodes(names_text)))
        except ValueError as error:
            raise InputError(
                f"this is not a node or list of nodes: {error}",
                file=path,
                row=f"line {line_number}",
                value=names_text,
                expected="one name or node list a line, such as cn001 or cn[001-128], and nothing else",
                fix="on the cluster: sinfo -a -N -h -o %N | sort -u > nodes.txt (Slurm); "
                "pbsnodes -a -F dsv | cut -d'|' -f1 | sed 's/Name=//' > nodes.txt (PBS Pro)",
            ) from None
    if not node_names:
        raise InputError("the file names no node", file=path, expected="names of nodes", fix="check the file")
    return tuple(node_names)
