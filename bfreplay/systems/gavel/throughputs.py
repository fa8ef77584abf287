"""The published throughput file of Gavel: steps/s of each job type on each node type, alone and sharing nodes."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.documents import Json, not_utf8, parse_json
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import Colocation

REFERENCE_TYPE = "v100"
"""Node type to which the durations of Gavel's jobs refer."""

_MOST_BYTES = 1 << 26
_LEAST_RATE, _LARGEST_RATE = 1e-9, 1e9  # steps/s: the linear programs have ratios of rates
_ALONE = "null"
_APART = "_unconsolidated"
_KEY = re.compile(r"""\((['"])(?P<job_type>.+)\1, ?(?P<gang>[1-9]\d{0,5})\)""")
_FORM = '{node type: {"(\'job type\', nodes)": {"null": steps/s, "(\'other job type\', nodes)": [steps/s, steps/s]}}}'

Measured = tuple[str, int]
"""Job type, and number of nodes that it uses at once."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThroughputTable:
    """Measured throughputs, steps/s of the whole gang.

    Parameters
    ----------
    alone
        Node type -> (job type, nodes at once) -> steps/s; 0 where it cannot run.
    shared
        Node type -> (job type, other job type, nodes that both use) -> steps/s of the one and of the other; zeros
        where they cannot share nodes.
    file, source
        Path and digest of its file; ``None`` for a table made in memory.
    """

    alone: Mapping[str, Mapping[Measured, float]]
    shared: Mapping[str, Mapping[tuple[str, str, int], tuple[float, float]]]
    file: Path | None = None
    source: SourceFile | None = None

    def __repr__(self) -> str:
        return f"<ThroughputTable: {len(self.job_types)} job types on {', '.join(self.node_types)}>"

    @property
    def tables(self) -> tuple[str, ...]:
        """Every node type of the file, including those measured with the gang spread over servers."""
        return tuple(self.alone)

    @property
    def node_types(self) -> tuple[str, ...]:
        """Node types in alphabetical order.

        Without tables called ``…_unconsolidated``: gangs spread over servers, which Gavel's simulator never reads.
        """
        return tuple(sorted(type_name for type_name in self.alone if not type_name.endswith(_APART)))

    @property
    def job_types(self) -> tuple[str, ...]:
        """Job types in the order of the file."""
        ordered_types = {job_type: None for node_type in self.node_types for job_type, _ in self.alone[node_type]}
        return tuple(ordered_types)

    def gangs(self, job_type: str) -> tuple[int, ...]:
        """Return the numbers of nodes at which a job type was measured, increasing; empty for an unknown one."""
        every = {
            gang for node_type in self.node_types for type_name, gang in self.alone[node_type] if type_name == job_type
        }
        return tuple(sorted(every))

    def rate(self, job_type: str, gang: int, node_type: str) -> float:
        """Return the steps/s of a job on ``gang`` nodes of a type; 0 where it cannot run or was not measured."""
        return self.alone.get(node_type, {}).get((job_type, gang), 0.0)

    def runs_on(self, job_type: str, gang: int) -> tuple[str, ...]:
        """Return the node types on which a job of this type can run, in alphabetical order."""
        return tuple(type_name for type_name in self.node_types if self.rate(job_type, gang, type_name) > 0)

    def reference(self, job_type: str, gang: int) -> str:
        """Return the node type that durations and deadlines refer to: v100, or the first one that the job runs on.

        Raises
        ------
        InputError
            It was measured on no type, or runs on none.
        """
        usable_types = self.runs_on(job_type, gang)
        if not usable_types:
            gangs = self.gangs(job_type)
            expected = f"{job_type!r} on {', '.join(map(str, gangs))} nodes" if gangs else "one of its job types"
            raise InputError(
                f"the throughput file has no rate of {job_type!r} on {gang} node{'s' if gang > 1 else ''}",
                file=self.file,
                value=f"('{job_type}', {gang})",
                expected=expected,
                fix="measure it and add it to the throughput file, or remove such jobs",
            )
        return REFERENCE_TYPE if REFERENCE_TYPE in usable_types else usable_types[0]

    def rigid_curve(self, job_type: str, gang: int, node_type: str) -> TabulatedCurve:
        """Return the curve of a job that runs on ``gang`` nodes of a type or on none; zero where it cannot run."""
        nodes = tuple(dict.fromkeys((0, gang - 1, gang)))
        rates = [0.0] * (len(nodes) - 1) + [self.rate(job_type, gang, node_type)]
        return TabulatedCurve(nodes, rates, f"{job_type} on {gang} {node_type}")

    def elastic_curve(self, job_type: str, node_type: str) -> TabulatedCurve:
        """Return the curve through every measured number of nodes, up to the largest on any type.

        Between two measurements it is linear. A number of nodes beside one where the job cannot run, or was not
        measured on this type, has no rate: nothing is interpolated towards it.

        Raises
        ------
        InputError
            The job type was not measured at all.
        """
        gangs = self.gangs(job_type)
        if not gangs:
            raise InputError(
                f"the throughputs do not have the job type {job_type!r}",
                file=self.file,
                value=job_type,
                expected="one of its job types: " + ", ".join(self.job_types[:4]) + ", ...",
            )
        points = {0: 0.0}
        previous_gang, previous_rate = 0, 0.0
        for gang in gangs:
            rate = self.rate(job_type, gang, node_type)
            if (rate > 0) != (previous_rate > 0):
                points[previous_gang + 1 if previous_rate > 0 else gang - 1] = 0.0
            points[gang] = rate
            previous_gang, previous_rate = gang, rate
        return TabulatedCurve(tuple(points), tuple(points.values()), f"{job_type} on {node_type}")

    def colocation(self) -> Colocation:
        """Return the rates of pairs that share nodes, and the rates alone, on ``node_types``."""
        return Colocation(
            {
                (first_type, second_type, gang, node_type): pair_rates
                for node_type in self.node_types
                for (first_type, second_type, gang), pair_rates in self.shared[node_type].items()
            },
            {
                (job_type, gang, node_type): rate
                for node_type in self.node_types
                for (job_type, gang), rate in self.alone[node_type].items()
            },
        )


def read_throughputs(path: str | PathLike[str]) -> ThroughputTable:
    """Read a throughput file.

    Parameters
    ----------
    path
        JSON, plain or gzipped: node type -> ``"('job type', nodes)"`` -> partner -> steps/s. The partner ``null``
        stands for none, with one rate; any other has two, of the job and of the partner, on as many nodes.

    Raises
    ------
    InputError
        Invalid file; the message names node type (row), key (column) and value.
    """
    file = Path(path)
    check_is_file(file)
    document = _document(file)
    if not document:
        raise InputError("the throughput file has no node types", file=file, expected=_FORM)
    single_rates: dict[str, dict[Measured, float]] = {}
    pair_rates: dict[str, dict[tuple[str, str, int], tuple[float, float]]] = {}
    for node_type, table_of_type in document.items():
        of_type = _Place(file, node_type)
        entries = of_type.table(table_of_type)
        if not node_type.strip():
            raise _Place(file).error("a node type has no name", node_type, "a name such as 'v100'")
        single_rates[node_type], pair_rates[node_type] = {}, {}
        for job_key, entry in entries.items():
            place = of_type._replace(column=job_key)
            job_and_gang = place.parse_key(job_key)
            if job_and_gang in single_rates[node_type]:
                expected = "each job type and number of nodes once"
                raise place.error("a job type is listed twice", job_key, expected, "remove one of the two")
            partners = place.table(entry)
            if _ALONE not in partners:
                its_own = '"null" with its steps/s when it has the nodes for itself'
                raise place.error("a job type has no rate of its own", list(partners)[:3], its_own, 'add "null"')
            single_rates[node_type][job_and_gang] = place.rate(partners[_ALONE])
            pair_rates[node_type].update(_pairs(place, job_and_gang, partners))
    table = ThroughputTable(single_rates, pair_rates, file, SourceFile.of(file))
    if not table.node_types:
        problem = f"every table is of gangs spread over servers ({_APART})"
        raise _Place(file).error(problem, list(table.tables), "a table named after a node type, such as 'v100'")
    return table


class _Place(NamedTuple):
    """Place in a throughput file: node type and key; its methods read a value there, or raise ``InputError``."""

    file: Path
    row: str | None = None
    column: str | None = None

    def error(self, problem: str, value: object, expected: str, fix: str | None = None) -> InputError:
        """Return the error for a value here."""
        return InputError(
            problem, file=self.file, row=self.row, column=self.column, value=value, expected=expected, fix=fix
        )

    def table(self, value: Json) -> Mapping[str, Json]:
        """Return a table."""
        if isinstance(value, dict):
            return value
        problem = "this entry is not a table" if self.column else "this node type has no table of job types"
        raise self.error(problem, value, _FORM)

    def parse_key(self, job_key: str) -> Measured:
        """Return job type and number of nodes of a key."""
        match = _KEY.fullmatch(job_key)
        if match is None:
            raise self.error(
                "a job type is not written in the form of the file",
                job_key,
                "('NAME', NODES), such as ('ResNet-18 (batch size 16)', 2)",
                "write the name in quotes and the number of nodes, in brackets",
            )
        return match["job_type"], int(match["gang"])

    def rate(self, value: Json) -> float:
        """Return steps/s."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not (value == 0 or _LEAST_RATE <= value <= _LARGEST_RATE)
        ):
            expected = f"steps/s: 0, or a number from {_LEAST_RATE:g} to {_LARGEST_RATE:g}"
            raise self.error("a throughput is not a rate", value, expected, "0 where the job cannot run")
        return float(value)


def _pairs(
    place: _Place, job_and_gang: Measured, partners: Mapping[str, Json]
) -> Iterator[tuple[tuple[str, str, int], tuple[float, float]]]:
    """Return both rates of one job type with each of its partners."""
    job_type, gang = job_and_gang
    for partner, value in partners.items():
        if partner == _ALONE:
            continue
        other_type, other_gang = place.parse_key(partner)
        if other_gang != gang:
            problem = "two job types that share nodes use different numbers of them"
            raise place.error(problem, partner, f"a partner on {gang} too", "remove the pair")
        pair_place = place._replace(column=f"{place.column} with {partner}")
        if not isinstance(value, list) or len(value) != 2:
            expected = "[steps/s of the job, steps/s of the partner]"
            raise pair_place.error("a pair of job types does not have two rates", value, expected)
        yield (job_type, other_type, gang), (pair_place.rate(value[0]), pair_place.rate(value[1]))


def _document(file: Path) -> dict[str, Json]:
    fix = "give Gavel's throughput file here, such as simulation_throughputs.json"
    try:
        with file.open("rb") as byte_stream:
            stream = gzip.GzipFile(fileobj=byte_stream) if byte_stream.peek(2).startswith(b"\x1f\x8b") else byte_stream
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            expected = f"at most {_MOST_BYTES:,} bytes, unpacked"
            raise InputError("the throughput file is too large", file=file, expected=expected, fix=fix)
        document = parse_json(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise not_utf8(file) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"the throughput file cannot be unpacked: {error}",
            file=file,
            expected="JSON, or JSON packed by gzip",
            fix="fetch or make the file again",
        ) from error
    except ValueError as error:
        message, row = str(error), None
        if isinstance(error, json.JSONDecodeError):
            message, row = error.msg, f"line {error.lineno}"
        problem = f"the throughput file is not JSON: {message}"
        raise InputError(problem, file=file, row=row, expected=_FORM, fix=fix) from error
    if not isinstance(document, dict):
        problem, value = "the throughput file is not a JSON object", type(document).__name__
        raise InputError(problem, file=file, value=value, expected=_FORM, fix=fix)
    return document


def write_throughputs(table: ThroughputTable, path: str | PathLike[str], overwrite: bool = False) -> None:
    """Write a table as JSON that ``read_throughputs`` reads back exactly.

    Parameters
    ----------
    table
        The table. Every pair needs the rate that its first job type has alone.
    path
        A name ending in ``.json``.
    overwrite
        Replace an existing file.

    Raises
    ------
    OutputExistsError
        The file exists and ``overwrite`` is false.
    InputError
        Another ending, or a pair of a job type that has no rate alone.
    """
    file = Path(path)
    if file.suffix.lower() != ".json":
        raise InputError(
            "throughputs are written as JSON", file=file, value=file.name, expected="a name ending in .json"
        )
    text = throughputs_text(table)
    with written_whole([file], overwrite) as (temporary,):
        temporary.write_text(text, encoding="utf-8", newline="\n")


def throughputs_text(table: ThroughputTable) -> str:
    """Return the text of the file: node types, job types and partners in the order of the table.

    Raises
    ------
    InputError
        A pair of a job type that has no rate alone.
    """
    document: dict[str, dict[str, dict[str, float | list[float]]]] = {}
    for node_type, rates in table.alone.items():
        entries = document[node_type] = {_key(*job_and_gang): {"null": rate} for job_and_gang, rate in rates.items()}
        for (first_type, second_type, gang), pair_rates in table.shared.get(node_type, {}).items():
            if _key(first_type, gang) not in entries:
                raise InputError(
                    "a job type shares nodes and has no rate alone",
                    row=node_type,
                    value=_key(first_type, gang),
                    expected="a rate of its own for the first of each pair",
                    fix="add it, 0 where it cannot run",
                )
            entries[_key(first_type, gang)][_key(second_type, gang)] = list(pair_rates)
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _key(job_type: str, gang: int) -> str:
    quote = '"' if "'" in job_type else "'"
    return f"({quote}{job_type}{quote}, {gang})"
