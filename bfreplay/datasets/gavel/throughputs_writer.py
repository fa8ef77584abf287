"""write_throughputs: a throughput table in the published form."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from bfreplay.datasets.gavel.throughputs import ThroughputTable
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole


def write_throughputs(table: ThroughputTable, path: str | PathLike[str], overwrite: bool = False) -> None:
    """Write a table as JSON that ``read_throughputs`` reads back exactly.

    Parameters
    ----------
    table
        The table. Every pair needs the rate that its first job type has alone.
    path
        A name ending in ``.json``.
    overwrite
        Replace a file that is there.

    Raises
    ------
    OutputExistsError
        The file is there and ``overwrite`` is false.
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
    """The text of the file: node types, job types and partners in the order of the table.

    Raises
    ------
    InputError
        A pair of a job type that has no rate alone.
    """
    document: dict[str, dict[str, dict[str, float | list[float]]]] = {}
    for node_type, rates in table.alone.items():
        entries = document[node_type] = {_key(*measured): {"null": rate} for measured, rate in rates.items()}
        for (one, other, gang), both in table.shared.get(node_type, {}).items():
            if _key(one, gang) not in entries:
                raise InputError(
                    "a job type shares nodes and has no rate alone", row=node_type, value=_key(one, gang),
                    expected="a rate of its own for the first of each pair", fix="add it, 0 where it cannot run",
                )  # fmt: skip
            entries[_key(one, gang)][_key(other, gang)] = list(both)
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _key(job_type: str, gang: int) -> str:
    quote = '"' if "'" in job_type else "'"
    return f"({quote}{job_type}{quote}, {gang})"
