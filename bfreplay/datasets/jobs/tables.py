"""Job and curve tables as rows of cells, from any file format."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any

from bfreplay import checks
from bfreplay.datasets.hints import did_you_mean, empty_cell, refuse_other_separators
from bfreplay.datasets.jobs.curve_points import LAW_KEY, CurveCache, is_law, law_of, number_of, points_of
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.documents import Cell, check_toml_size, not_utf8, parse_toml, refuse_other_toml, text_lines
from bfreplay.errors import InputError
from bfreplay.scalability import Curve

_CURVE_KEYS = ("nodes", "values", "law")


@dataclass(frozen=True, slots=True)
class JobTable:
    """Content of a file of jobs or curves.

    Parameters
    ----------
    file
        The file.
    rows
        (label for messages, cells by column) of each job, without empty cells.
    columns
        Every column or key of the table, in order.
    curves
        Its own named curves, the cells of each by key: TOML only.
    """

    file: Path
    rows: tuple[tuple[int | str, Mapping[str, Cell]], ...]
    columns: tuple[str, ...]
    curves: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)

    def error(self, problem: str, **parts: Any) -> InputError:
        """Return the error for unusable columns, which are its value unless ``parts`` have another."""
        return InputError(problem, file=self.file, **{"value": list(self.columns), **parts})

    def cell(self, cells: Mapping[str, Cell], column: str) -> Cell:
        """Return the cell of a column; InputError for an empty one."""
        if column not in cells:
            raise empty_cell(column)
        return cells[column]

    def number(self, cells: Mapping[str, Cell], column: str) -> float:
        """Return the number in a column; InputError for an empty cell, and for text that is no number."""
        return number_of(self.cell(cells, column), column, (row.get(column) for _, row in self.rows))


def read_csv_table(file: Path) -> JobTable:
    """Read the rows of a CSV file, all cells as text; lines above the header that begin with # are comments.

    Raises
    ------
    InputError
        Not UTF-8, no header, a duplicate column, or a row with more or fewer cells than the header.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows_of_text = (line for line in csv.reader(text_lines(stream, file), strict=True) if line)
            lines = [*dropwhile(lambda line: line[0].lstrip().startswith("#"), rows_of_text)]
    except UnicodeDecodeError as error:
        raise not_utf8(file) from error
    except (OSError, csv.Error) as error:
        raise _unreadable(file, "CSV", error) from error
    if not lines:
        raise InputError(
            "the file is empty",
            file=file,
            expected="a header and at least one row",
            fix="check the command that wrote the file",
        )
    columns = [name.strip() for name in lines[0]]
    if any("\0" in name for name in columns):
        raise not_utf8(file)
    refuse_other_separators(columns, file)
    for column_index, name in enumerate(columns):
        if name in columns[:column_index]:
            raise InputError("a column occurs twice", file=file, column=name, value=lines[0], fix="drop one of the two")
    rows = []
    for row_number, cells in enumerate(lines[1:], start=1):
        if len(cells) != len(columns):
            raise InputError(
                "a row has another number of cells than the header",
                file=file,
                row=row_number,
                value=cells,
                expected=f"{len(columns)} cells: {', '.join(columns)}",
                fix="correct the row; put cells with commas in double quotes",
            )
        rows.append((row_number, {name: cell for name, cell in zip(columns, cells, strict=True) if cell.strip()}))
    return JobTable(file, tuple(rows), tuple(columns))


def read_parquet_table(table_file: Path) -> JobTable:
    """Read the rows of a Parquet file; times come as ``datetime``, lists as lists.

    Raises
    ------
    InputError
        The file is not Parquet or damaged, or has times finer than a microsecond.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bfreplay.datasets.arrow_columns import refuse_swollen_texts, text_columns

    try:
        table = pq.read_table(table_file, read_dictionary=text_columns(pq.read_schema(table_file)))
        refuse_swollen_texts(table, table_file)
        for column_index, table_column in enumerate(table.schema):
            if pa.types.is_timestamp(table_column.type) and table_column.type.unit == "ns":
                micro = pa.timestamp("us", tz=table_column.type.tz)
                table = table.set_column(column_index, table_column.name, table.column(column_index).cast(micro))
        cells = table.to_pylist()
    except (pa.ArrowException, OSError, OverflowError, ValueError) as error:  # the last two: times that Python lacks
        raise _unreadable(table_file, "Parquet", error) from error
    columns = [column_name for column_name in table.column_names if not column_name.startswith("__index_level_")]
    rows = tuple(
        (row_number, {line_column: line[line_column] for line_column in columns if line[line_column] not in (None, "")})
        for row_number, line in enumerate(cells, start=1)
    )
    return JobTable(table_file, rows, tuple(columns))


def read_toml(toml_file: Path) -> dict[str, Cell]:
    """Read a TOML file.

    Raises
    ------
    InputError
        The file is missing, not UTF-8, not TOML, too large or nested too deeply.
    """
    check_is_file(toml_file)
    check_toml_size(toml_file)
    try:
        return parse_toml(toml_file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise not_utf8(toml_file) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"the file cannot be read as TOML: {error}",
            file=toml_file,
            expected="tables such as [campaign] or [[job]], and lines such as trials = 20",
            fix="correct the line; text is in double quotes, numbers are not",
        ) from error


def read_toml_table(file: Path) -> JobTable:
    """Read the ``[[job]]`` and ``[curves.NAME]`` tables of a TOML file.

    Raises
    ------
    InputError
        Not TOML, or another key at the top level.
    """
    document = read_toml(file)
    refuse_other_toml(document, file, "a job set")
    jobs, curves = document.pop("job", []), document.pop("curves", {})
    if document:
        raise InputError(
            "the file has an unknown key at its top level",
            file=file,
            column=next(iter(document)),
            value=list(document),
            expected="[[job]] tables and [curves.NAME] tables",
            fix="write [[job]], singular and in double brackets, before each job",
        )
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError("job is not an array of tables", file=file, column="job", expected="[[job]] before each job")
    if not isinstance(curves, dict) or not all(isinstance(curve, dict) for curve in curves.values()):
        problem, expected = "curves is not a table of tables", "[curves.NAME] with nodes and values, or with a law"
        raise InputError(problem, file=file, column="curves", expected=expected)
    columns = dict.fromkeys(key for job in jobs for key in job)
    rows = tuple((f"[[job]] {job_number}", job) for job_number, job in enumerate(jobs, start=1))
    return JobTable(file, rows, tuple(columns), curves)


def named_curves(job_table: JobTable, curve_cache: CurveCache) -> dict[str, Curve]:
    """Return the ``[curves.NAME]`` tables of a TOML file as curves.

    Raises
    ------
    InputError
        Keys other than ``nodes`` and ``values``, or ``law`` and its parameters; points or
        parameters that form no valid curve.
    """
    curves: dict[str, Curve] = {}
    for name, cells in job_table.curves.items():
        label = f"[curves.{name}]"
        with locate_errors(job_table.file, label, LAW_KEY if is_law(cells) else None):
            checks.name("curve", name, "curves")
            if is_law(cells):
                curves[name] = curve_cache.law(law_of(cells, allow_code=curve_cache.allow_code))
                continue
            if set(cells) != {"nodes", "values"}:
                unknown = [cell_key for cell_key in cells if cell_key not in _CURVE_KEYS]
                raise InputError(
                    f"curve {name!r} has neither exactly the keys nodes and values nor a law",
                    value=sorted(cells),
                    expected='nodes = [0, 1, …] and values = [0.0, …], or law = "amdahl" with its parameters',
                    fix=did_you_mean(unknown, [cell_key for cell_key in _CURVE_KEYS if cell_key not in cells]),
                )
            curves[name] = curve_cache.curve(*points_of([cells["nodes"], cells["values"]], as_columns=True), name)
    return curves


def with_own_curves(
    curves: Mapping[str, Curve], job_table: JobTable, curve_cache: CurveCache, place: str
) -> dict[str, Curve]:
    """Return curves of a file of curves, and those of the table itself, ``place`` for messages.

    Raises
    ------
    InputError
        As `named_curves`; or both have a curve of one name, and these differ.
    """
    own_curves = named_curves(job_table, curve_cache)
    for curve_name, curve in own_curves.items():
        if curves.get(curve_name, curve) != curve:
            raise InputError(
                f"curve {curve_name!r} {place} and in the curves file, with other values",
                file=job_table.file,
                row=f"[curves.{curve_name}]",
                value=curve_name,
                fix="keep one of them",
            )
    return {**curves, **own_curves}


def _unreadable(table_file: Path, kind: str, error: Exception) -> InputError:
    return InputError(
        f"the file cannot be read as {kind}: {' '.join(str(error).split())}",
        file=table_file,
        fix="check the name of the file (its ending decides how it is read), and that it is complete",
    )
