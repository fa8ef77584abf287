"""Measured rates from a table: node counts and rates in any unit of `UNITS`, with repeats and several curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType

from bfreplay.checks import near_name, nearest
from bfreplay.datasets.hints import did_you_mean, empty_cell, kind_of_table
from bfreplay.datasets.jobs.curve_points import INLINE_CURVE
from bfreplay.datasets.jobs.rate_units import NEEDS, UNITS, RateColumns, count_and_rate_columns, rate_columns
from bfreplay.datasets.jobs.tables import JobTable
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.readers_by_ending import JOB_TABLE_READERS, read_by_ending
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.scalability.measurements import RATE_COLUMN, Measurements, check_measurement
from bfreplay.wording import count as amount_of

REQUIRED = ("nodes", RATE_COLUMN)
OPTIONAL = ("repeat", "curve")
_KNOWN = (*OPTIONAL, *NEEDS)
_OTHER_WORDS = {
    "nodes": ("n", "node", "nnodes", "count", "workers", "hosts", "ranks"),
    RATE_COLUMN: ("rate", "rates", "throughput", "samples", "speed", "images", "ips", "sps"),
}


_NONE: Mapping[str, float] = MappingProxyType({})


def load_measurements(path: str | PathLike[str], numbers: Mapping[str, float] = _NONE) -> dict[str, Measurements]:
    """Read measured rates.

    Parameters
    ----------
    path
        ``.csv`` or ``.parquet`` with a column of node counts, ``nodes`` or ``gpus``, and one of rates in a unit of
        `UNITS`, such as ``samples_per_s`` or ``seconds_per_step``; one row a measurement. Optional: ``repeat``, a
        label, different for each measurement of one count; ``curve``, the name of the curve, for several in one file;
        and the numbers that the units need, by their names in `NEEDS`.
    numbers
        Those of these numbers that are the same in all rows and have no column.

    Returns
    -------
    dict
        Measurements by name of the curve, in the order of the file; without the column ``curve``, the name of the file.

    Raises
    ------
    InputError
        Other columns, or a missing number; cells that are empty, not numbers or out of range; a duplicate repeat; or a
        curve of fewer than two node counts.
    """
    table_file = Path(path)
    readers = {ending: reader for ending, reader in JOB_TABLE_READERS.items() if ending != ".toml"}
    return measurements_of(read_by_ending(table_file, readers), numbers)


def measurements_of(job_table: JobTable, numbers: Mapping[str, float] = _NONE) -> dict[str, Measurements]:
    """Return the measured rates of a table, as `load_measurements` does."""
    table_file = job_table.file
    read = _check_columns(job_table, (*job_table.columns, *numbers))
    if not job_table.rows:
        raise InputError("the file has no measurements", file=table_file, expected="a row for each measurement")
    by_curve: dict[str, list[tuple[float, float, int | str]]] = {}
    first_row: dict[tuple[str, float, str], int | str] = {}
    for row_number, cells in job_table.rows:
        with locate_errors(table_file, row_number):
            curve = _curve_name(job_table, cells)
            count, rate = read.measurement(partial(job_table.number, {**cells, **numbers}))
            check_measurement(count, rate, columns=(read.counts, read.rates))
        if "repeat" in job_table.columns:
            label = (curve, count, str(cells.get("repeat", "")).strip())
            if label in first_row:
                raise InputError(
                    f"two measurements at {amount_of(int(count), 'node')} are the same repeat "
                    f"(the other one: row {first_row[label]})",
                    file=table_file,
                    row=row_number,
                    column="repeat",
                    value=cells.get("repeat"),
                    expected="a label of its own for each measurement of a count",
                    fix="delete the duplicate row, or number the repeats",
                )
            first_row[label] = row_number
        by_curve.setdefault(curve, []).append((count, rate, row_number))
    columns = {}
    for curve, of_curve in by_curve.items():
        counts, rates, rows = map(list, zip(*of_curve, strict=True))
        with locate_errors(table_file, rows[0] if len(rows) == 1 else f"{rows[0]} to {rows[-1]}"):
            columns[curve] = Measurements(counts, rates, curve, rows)
    return columns


def _check_columns(job_table: JobTable, columns: Sequence[str]) -> RateColumns:
    counts, rates = count_and_rate_columns(columns)
    unknown = [name for name in columns if name not in (*_KNOWN, *counts, *rates)]
    missing = [name for name, found in zip(REQUIRED, (counts, rates), strict=True) if not found]
    for found, content in ((counts, "node counts"), (rates, "rates")):
        if len(found) > 1:
            problem = f"several columns hold {content}: {', '.join(found)}"
            raise job_table.error(problem, column=found[1], expected=f"one column of {content}", fix="drop the others")
    if not unknown and not missing:
        with locate_errors(job_table.file, None):
            return rate_columns(counts[0], rates[0], columns)
    kind = kind_of_table(job_table.columns)
    hint = did_you_mean(unknown, missing)
    if hint is None and unknown:
        hint = nearest(unknown[0], (*REQUIRED, *_KNOWN), "")
    problem = f"the column {(unknown or missing)[0]!r} is {'unknown' if unknown else 'missing'}"
    if unknown and missing:
        noun, verb = ("columns", "are") if len(missing) > 1 else ("column", "is")
        problem = f"the {noun} {' and '.join(map(repr, missing))} {verb} missing, "
        problem += f"and {' and '.join(map(repr, unknown))} {'are' if len(unknown) > 1 else 'is'} unknown"
        if not hint or len(missing) > 1:
            hint = _renaming(unknown, missing) or hint
    raise job_table.error(
        problem,
        column=(missing or unknown)[0],
        expected=f"nodes or gpus; {', '.join(unit.examples for unit in UNITS.values())}; optional {', '.join(_KNOWN)}",
        fix=f"this looks like {kind}: give the measurements here"
        if kind is not None
        else hint or ("add the column" if missing else "drop the column, or rename it to one of these"),
    )


def _renaming(unknown: Sequence[str], missing: Sequence[str]) -> str | None:
    """Guess from usual words which unknown columns are the missing ones; ``None`` without a guess."""
    column_of_name = {name: column for name in unknown for column in missing if _means(name, column)}
    if len(set(column_of_name.values())) < len(column_of_name):
        return None
    if len(missing) == len(unknown) == len(column_of_name) + 1:  # with two columns, the one left is the other one
        (remainder,) = (name for name in unknown if name not in column_of_name)
        column_of_name[remainder] = next(column for column in missing if column not in column_of_name.values())
    pairs = ", ".join(f"{name!r} to {column!r}" for name, column in column_of_name.items())
    return f"rename {pairs}, if that is what they hold" if pairs else None


def _means(column_name: str, column: str) -> bool:
    words = "".join(letter if letter.isalnum() else " " for letter in column_name.lower()).split()
    return near_name(column_name, [column]) is not None or any(word in _OTHER_WORDS[column] for word in words)


def _curve_name(job_table: JobTable, cells: Mapping[str, Cell]) -> str:
    if "curve" not in job_table.columns:
        return job_table.file.stem
    if "curve" not in cells:
        raise empty_cell("curve")
    column_name = str(cells["curve"]).strip()
    if INLINE_CURVE in column_name or "(" in column_name:
        raise InputError(
            "the name of a curve has a colon or a parenthesis",
            column="curve",
            value=column_name,
            expected="a name without them: they mark points and laws",
            fix="rename the curve",
        )
    return column_name
