"""Data of a sweep's picture: metrics against a varied option, with rows of different seeds grouped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.checks import nearest
from bfreplay.errors import InputError
from bfreplay.policies.spec import parse_one
from bfreplay.runs.metrics import BY_COLUMN

if TYPE_CHECKING:
    import pandas as pd

SATURATED_ABOVE = 0.99
"""Utilisation of nodes above which a cluster cannot do more."""

_FIRST_RESULT = "id"
"""Columns before it are what varies."""

Place = float | str
"""Where a point stands: a number, or a category."""


@dataclass(frozen=True, slots=True, eq=False)
class SweptLine:
    """Values of a metric for one value of ``by``.

    Parameters
    ----------
    label
        That value as text; empty for a single line.
    x
        P places: numbers, ascending; or categories.
    values
        P arrays (S,): one value a row of the table at this place.
    is_saturated : (P,) bool
        One of these runs used more than ``SATURATED_ABOVE`` of the nodes, or did not complete its jobs.
    """

    label: str
    x: tuple[Place, ...]
    values: tuple[NDArray[np.float64], ...]
    is_saturated: NDArray[np.bool_]

    @property
    def mean(self) -> NDArray[np.float64]:
        """(P,)."""
        return np.array([value.mean() for value in self.values])

    @property
    def span(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(P,) least and (P,) largest value."""
        return np.array([column.min() for column in self.values]), np.array([value.max() for value in self.values])


@dataclass(frozen=True, slots=True, eq=False)
class SweptPanel:
    """One metric: its column, its words with the unit, and its lines; values are divided by ``scale``."""

    column: str
    words: str
    scale: float
    lines: tuple[SweptLine, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SweptLines:
    """Data of the picture of a sweep.

    Parameters
    ----------
    x
        Column of the horizontal axis, or a parameter in the text of one.
    is_number
        True if its values are numbers; else categories.
    panels
        One a metric.
    averaged_over
        Other columns that vary between rows of one point, with the number of their values.
    n_skipped
        Rows without a value on the axis or of a metric, for example of failed runs.
    """

    x: str
    is_number: bool
    panels: tuple[SweptPanel, ...]
    averaged_over: dict[str, int]
    n_skipped: int


def swept_lines(
    table: pd.DataFrame,
    x: str,
    y: Sequence[str],
    by: Sequence[str] = (),
    *,
    saturated_above: float | None = SATURATED_ABOVE,
) -> SweptLines:
    """Collect the points of a picture.

    Parameters
    ----------
    table
        Results of a sweep: ``SweepResult.table``, or rows of it.
    x, by
        Columns of the axis and of the lines, or ``COLUMN.PARAMETER`` for a parameter in brackets in
        the text of one, such as ``jobs.jobs_per_hour`` of ``gavel(n=9, jobs_per_hour=2)``.
    y
        Columns of numbers: one panel each.
    saturated_above
        Utilisation above which a point counts as saturated; ``None``: none does.

    Raises
    ------
    InputError
        There is no such column or parameter, a metric is no number, or nothing is left to show.
    """
    if not y:
        raise InputError("the picture has no metric", column="y", expected="one column of the table at least")
    axis, group_values = _cells(table, x), [_cells(table, option) for option in by]
    line_rows = zip(*group_values, strict=True) if by else [()] * len(table)
    labels = [", ".join(map(_text, by, line_values)) for line_values in line_rows]
    is_number = all(isinstance(cell, int | float) for cell in axis if cell is not None)
    has_saturation = _is_saturated(table, saturated_above)
    has_place = np.array([cell is not None for cell in axis], np.bool_)
    has_line = np.zeros(len(table), np.bool_)
    panels = []
    for column in y:
        values = _numbers(table, column)
        is_shown = has_place & ~np.isnan(values)
        if not is_shown.any():
            raise InputError(
                f"no row of the sweep has a value of {column!r} to show",
                column=column,
                value=x,
                expected="runs that finished, and that have this metric",
                fix="choose another column; 'bfreplay sweep ... --json' prints them all",
            )
        has_line |= is_shown
        metric_words, scale = _words(column, float(values[is_shown].max()))
        lines = _lines(axis, labels, values / scale, has_saturation, np.flatnonzero(is_shown), is_number=is_number)
        panels.append(SweptPanel(column, metric_words, scale, tuple(lines)))
    return SweptLines(x, is_number, tuple(panels), _hidden_columns(table, (x, *by), has_line), int((~has_line).sum()))


def _lines(
    axis: Sequence[Any],
    labels: Sequence[str],
    values: NDArray[np.float64],
    has_saturation: NDArray[np.bool_],
    rows: NDArray[np.int64],
    *,
    is_number: bool,
) -> list[SweptLine]:
    lines = []
    places = list(dict.fromkeys(axis[row] for row in rows))  # categories as they come in the table
    if is_number:
        places.sort()
    for label in dict.fromkeys(labels[row] for row in rows):
        members = {place: [row for row in rows if labels[row] == label and axis[row] == place] for place in places}
        members = {place: those for place, those in members.items() if those}
        is_saturated = np.array([bool(has_saturation[those].any()) for those in members.values()], np.bool_)
        lines.append(SweptLine(label, tuple(members), tuple(values[those] for those in members.values()), is_saturated))
    return lines


def _cells(table: pd.DataFrame, column_name: str) -> list[Any]:
    """Values of a column, or of a parameter in its texts; ``None`` where there is none."""
    if column_name in table:
        return list(table[column_name].astype(object).where(table[column_name].notna(), None))
    column, separator, parameter = column_name.partition(".")
    if not separator or column not in table:
        raise _no_column(table, column_name)
    parameters = [_parameter(cell, parameter) for cell in table[column].tolist()]
    if all(parameter_value is None for parameter_value in parameters):
        raise InputError(
            f"no text of {column!r} has the parameter {parameter!r}",
            column=column_name,
            value=next(iter(table[column]), None),
            expected="NAME(parameter=value, ...) in the texts of the column",
            fix="name a parameter that is in them, or the column",
        )
    return parameters


def _parameter(cell_text: object, name: str) -> Any:
    try:
        return dict(parse_one(str(cell_text), "value", "NAME(key=value)").parameters).get(name)
    except InputError:
        return None


def _numbers(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    if column not in table:
        raise _no_column(table, column)
    if table[column].dtype.kind not in "iufb" and not table[column].isna().all():
        raise InputError(
            f"the column {column!r} is no number",
            column=column,
            value=next(iter(table[column].dropna())),
            expected="a metric that is a number, such as average_jct_s",
            fix="choose another column",
        )
    return np.asarray(table[column].astype("float64"))


def _no_column(table: pd.DataFrame, column_name: str) -> InputError:
    columns = [str(column) for column in table.columns]
    return InputError(
        f"the sweep has no column {column_name!r}",
        column=column_name,
        value=column_name,
        expected=f"one of {', '.join(columns)}",
        fix=nearest(column_name, columns, "name a column, or COLUMN.PARAMETER"),
    )


def _is_saturated(table: pd.DataFrame, highest_utilisation: float | None) -> NDArray[np.bool_]:
    """(R,) bool: runs that could not keep up with their jobs."""
    is_over = np.zeros(len(table), np.bool_)
    if highest_utilisation is None:
        return is_over
    if "utilisation" in table:
        is_over |= np.asarray(table["utilisation"].astype("float64") > highest_utilisation)
    if {"n_measured_jobs", "n_measured_completed"} <= set(table):
        n_jobs, n_complete = (table[name].astype("float64") for name in ("n_measured_jobs", "n_measured_completed"))
        n_declines = table["jobs_declined"].astype("float64") if "jobs_declined" in table else 0.0
        is_over |= np.asarray(n_complete + n_declines < n_jobs)
    return is_over


def _hidden_columns(table: pd.DataFrame, shown_options: Sequence[str], has_line: NDArray[np.bool_]) -> dict[str, int]:
    """Columns that vary among the shown rows, but are neither on the axis nor a line."""
    columns = [str(column) for column in table.columns]
    option_columns = columns[: columns.index(_FIRST_RESULT)] if _FIRST_RESULT in columns else []
    number = {name: len(set(map(str, table[name][has_line]))) for name in option_columns if name not in shown_options}
    return {name: n_values for name, n_values in number.items() if n_values > 1}


def _words(column: str, largest: float) -> tuple[str, float]:
    """Words of a metric with its unit, and the divisor of its values."""
    metric = BY_COLUMN.get(column)
    if metric is None:
        return column, 1.0
    metric_words = metric.words_for()
    if metric.kind == "seconds":
        unit_name, unit_s = ("h", 3600.0) if largest >= 7200 else ("min", 60.0) if largest >= 120 else ("s", 1.0)
        return f"{metric_words}, {unit_name}", unit_s
    return (f"{metric_words}, %", 0.01) if metric.kind in ("percent", "at-least") else (metric_words, 1.0)


def _text(column_name: str, cell: object) -> str:
    """Text of a value of ``by``; a value that is not text follows its name."""
    if isinstance(cell, str):
        return cell
    cell_text = "-" if cell is None else str(cell).lower() if isinstance(cell, bool) else f"{cell:g}"
    return f"{column_name} {cell_text}"
