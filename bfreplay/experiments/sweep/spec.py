"""Spec of a sweep: a file or a mapping with ``run``, ``vary`` and ``runs``, or a list of options."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bfreplay import checks, defaults
from bfreplay.datasets.jobs.tables import read_toml
from bfreplay.datasets.located import with_location
from bfreplay.documents import refuse_other_toml
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FIELDS, FILE_OPTIONS, OPTION_NAMES
from bfreplay.experiments.run_options import RunOptions, as_options
from bfreplay.experiments.sweep.placeholders import (
    RESULT_COLUMNS,
    Cell,
    cell_of,
    check_value,
    fill,
    has_placeholder,
    parameters_of,
)
from bfreplay.options import option_name

MOST_POINTS = 100_000
"""Largest number of points; at a second each, a day."""

_TABLES = ("run", "vary", "runs", "picture")
_LABEL = re.compile(r"[A-Za-z][\w-]*")
_ANY_FILE = "sample"
_EVEN = {"from", "to", "values"}
"""Keys of evenly spaced values."""
_Found = TypeVar("_Found")


class PictureSpec(NamedTuple):
    """Picture of a sweep: column of the x axis, a panel per metric, a line per value of the other columns."""

    x: str
    y: tuple[str, ...]
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the table: the values that vary, and the options of its run."""

    cells: Mapping[str, Cell]
    options: RunOptions


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Points of a sweep, in order.

    Parameters
    ----------
    columns
        Names of the options and labels that vary; every point has a cell for each.
    points
        One or more points. Two may have the same run.
    document
        The spec as written, JSON-ready.
    picture
        Picture of the sweep; ``None`` for none.
    """

    columns: tuple[str, ...]
    points: tuple[Point, ...]
    document: Mapping[str, Any]
    picture: PictureSpec | None = None


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values of one option, or labels of groups of options."""

    name: str
    settings: Sequence[Mapping[str, Any]]
    labels: Sequence[str] | None = None

    @property
    def options(self) -> set[str]:
        return set(itertools.chain.from_iterable(self.settings))


_Chosen = Sequence[tuple[_Axis, int]]
"""Axes, each with the position of one value."""


def read_spec(file: str | Path, *, allow_code: bool = False) -> SweepSpec:
    """Read a TOML file; its folder is that of relative paths. ``allow_code`` as for ``spec_of``.

    Raises
    ------
    InputError
        The file cannot be read, or its content cannot be used; see ``spec_of``.
    """
    path = Path(file)
    return spec_of(read_toml(path), folder=path.parent, file=path, allow_code=allow_code)


def spec_of(
    document: Mapping[str, Any], *, folder: Path | None = None, file: Path | None = None, allow_code: bool = False
) -> SweepSpec:
    """Make a spec from parsed TOML tables.

    Parameters
    ----------
    document
        ``run``: options of every run. ``vary``: by option a list of values, or ``{from, to, values}`` for a number of
        evenly spaced values; or by a name of your own a table of labels, each a table of options. All combinations are
        run, the last one changing first. ``runs``: more runs, each a table of options and labels. A name in braces in
        the text of an option, ``"gavel(n=9, seed={draw})"``, is a parameter, with values like an option.
    folder
        Folder of relative paths; by default the working directory.
    file
        File of the tables, for messages.
    allow_code
        Import code that the tables, or the files that they name, name.

    Raises
    ------
    InputError
        A table, option, label or value cannot be used, a parameter has no value, or the sweep has no runs.
    """
    return _Reader(document, folder, file, allow_code).spec()


def spec_of_options(runs: Iterable[RunOptions]) -> SweepSpec:
    """Make a spec from options; its columns are the options that differ.

    Raises
    ------
    InputError
        ``runs`` is empty, or has something else than ``RunOptions``.
    """
    options = tuple(runs)
    for option in options:
        if not isinstance(option, RunOptions):
            raise InputError("this is not a run of a sweep", value=option, expected="RunOptions")
    if not options:
        raise InputError("the sweep has no runs", expected="at least one RunOptions", fix="give some")
    differing = [name for name in map(_column, OPTION_NAMES) if len({_value(option, name) for option in options}) > 1]
    points = tuple(Point({name: cell_of(_value(option, name)) for name in differing}, option) for option in options)
    return SweepSpec(tuple(differing), points, {"runs": [option.to_json() for option in options]})


@dataclass(slots=True)
class _Reader:
    """Reads the tables of one spec."""

    _document: Mapping[str, Any]
    _folder: Path | None
    _file: Path | None
    _allow_code: bool
    _parameters: tuple[str, ...] = ()

    def spec(self) -> SweepSpec:
        refuse_other_toml(self._document, self._file or "the mapping", "a sweep")
        self._locate(partial(checks.known_keys, self._document, _TABLES, "a sweep"), "the file")
        self._check_size()
        self._document = self._locate(lambda: _as_options(self._document), "the file")
        self._parameters = self._locate(
            lambda: parameters_of({name: self._document.get(name) for name in _TABLES}), "the file"
        )
        common = self._table(self._document.get("run", {}), "[run]")
        self._check_options(common, "[run]")
        axes = [
            self._axis(name, table) for name, table in self._table(self._document.get("vary", {}), "[vary]").items()
        ]
        self._check_apart(axes)
        extra = self._extra(axes)
        only_extra = extra and "vary" not in self._document
        combinations = [] if only_extra else itertools.product(*(range(len(axis.settings)) for axis in axes))
        varied_names = dict.fromkeys([*(axis.name for axis in axes), *itertools.chain.from_iterable(extra)])
        columns = tuple(map(_column, varied_names))
        points = []
        for places in combinations:
            selection = list(zip(axes, places, strict=True))
            points.append(self._point(_merge(common, selection, {}), selection, columns, _row(selection)))
        for number, table in enumerate(extra, start=1):
            labelled_axes = {axis.name: axis for axis in axes if axis.labels is not None and axis.name in table}
            selection = [(axis, list(axis.labels or ()).index(table[name])) for name, axis in labelled_axes.items()]
            own_options = {name: value for name, value in table.items() if name not in labelled_axes}
            points.append(self._point(_merge(common, selection, own_options), selection, columns, f"[[runs]] {number}"))
        return SweepSpec(columns, tuple(points), _plain(self._document), self._picture())

    def _picture(self) -> PictureSpec | None:
        table = self._document.get("picture")
        if table is None:
            return None
        row = "[picture]"
        self._locate(partial(checks.known_keys, self._table(table, row), ("x", "y", "by"), "a picture"), row)
        x_column = self._locate(lambda: checks.text("x", table.get("x")), row)
        y_columns, by_columns = (self._names_in(table.get(key, []), key) for key in ("y", "by"))
        if not y_columns:
            raise self._error(
                "the picture has no metric", row, "y", y_columns, "metrics of the table", 'write y = ["samples"]'
            )
        for name in y_columns:
            if name not in RESULT_COLUMNS:
                raise self._error(
                    "the picture has an unknown metric",
                    row,
                    "y",
                    name,
                    ", ".join(sorted(RESULT_COLUMNS)),
                    checks.nearest(name, RESULT_COLUMNS, "choose one of these"),
                )
        return PictureSpec(_column(x_column), y_columns, tuple(map(_column, by_columns)))

    def _names_in(self, value: object, key: str) -> tuple[str, ...]:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise self._error(
                f"{key} of the picture is not a list", "[picture]", key, value, "a list of columns", "write [...]"
            )
        return tuple(names)

    @property
    def _names(self) -> tuple[str, ...]:
        """Names that can have values."""
        return (*OPTION_NAMES, *self._parameters)

    def _point(self, options: Mapping[str, Any], selection: _Chosen, columns: Sequence[str], row: str) -> Point:
        labels = {axis.name: axis.labels[place] for axis, place in selection if axis.labels is not None}
        values = {name: options[name] for name in self._parameters if name in options}
        options = {name: value for name, value in options.items() if name not in values}
        options = self._locate(lambda: fill(options, values), row)
        run_options = RunOptions.from_mapping(
            options, folder=self._folder, file=self._file, row=row, allow_code=self._allow_code
        )
        cells = {_column(name): value for name, value in {**labels, **values}.items()}
        for column in columns:
            if option_name(column) in OPTION_NAMES:
                name = option_name(column)
                # a path as written: its place on this machine does not matter
                original_paths = FIELDS[name] in FILE_OPTIONS and name in options
                cells[column] = cell_of(str(options[name]) if original_paths else _value(run_options, column))
        return Point({column: cells.get(column) for column in columns}, run_options)

    def _axis(self, name: str, axis_value: object) -> _Axis:
        row = f"[vary] {name}"
        if isinstance(axis_value, Mapping) and set(axis_value) != _EVEN:
            return self._label_axis(name, axis_value)
        self._check_name(name)
        if isinstance(axis_value, Mapping):
            axis_value = self._locate(partial(_evenly, name, axis_value), row)
        if not isinstance(axis_value, Sequence) or isinstance(axis_value, str):
            raise self._error(
                f"{name} in [vary] is not a list",
                row,
                name,
                axis_value,
                "a list of values",
                f"write {name} = [...], or move it to [run]",
            )
        if not axis_value:
            raise self._error(
                f"{name} in [vary] has no values", row, name, axis_value, "at least one value", "add some"
            )
        settings = [{name: value} for value in axis_value]
        for setting in settings:
            self._check_options(setting, row)
        return _Axis(name, settings)

    def _check_name(self, name: str) -> None:
        if name not in self._names:
            raise self._error(
                f"{name!r} in [vary] is neither an option nor a placeholder {{{name}}} in a text",
                "[vary]",
                name,
                name,
                ", ".join(self._names),
                checks.nearest(
                    name,
                    self._names,
                    f'write {{{name}}} into the text of an option, such as jobs = "gavel(n=100, seed={{' + name + '})"',
                ),
            )

    def _label_axis(self, name: str, table: Mapping[str, Any]) -> _Axis:
        row = f"[vary.{name}]"
        other_meaning = "an option" if name in OPTION_NAMES else "a column of the results"
        if name in self._parameters:
            other_meaning = "a placeholder"
        if name in self._names or _column(name) in RESULT_COLUMNS or not _LABEL.fullmatch(name):
            is_name = _LABEL.fullmatch(name) is not None
            raise self._error(
                f"{name!r} cannot be the name of a group of options" + (f": it is {other_meaning}" if is_name else ""),
                row,
                name,
                name,
                "letters, digits, - and _; not an option, and not a column of the results",
                "choose another name, for example workload",
            )
        if not table:
            raise self._error(f"{row} has no labels", row, name, {}, "LABEL = { OPTION = VALUE, ... }", "add some")
        for label, options in table.items():
            self._locate(partial(checks.name, "label", label, name), row)
            self._check_options(self._table(options, f"{row} {label}"), f"{row} {label}")
        return _Axis(name, list(table.values()), list(table))

    def _check_apart(self, axes: Sequence[_Axis]) -> None:
        """Refuse two axes that set the same option."""
        for first, second in itertools.combinations(axes, 2):
            common_options = sorted(first.options & second.options)
            if common_options:
                raise self._error(
                    f"{common_options[0]} is set by {first.name} and by {second.name}",
                    "[vary]",
                    common_options[0],
                    common_options[0],
                    "each option in one place of [vary]",
                    "remove one of them",
                )

    def _check_size(self) -> None:
        """Refuse too many runs before reading them."""
        vary, runs = (self._document.get(name) for name in ("vary", "runs"))
        axis_values = vary.values() if isinstance(vary, Mapping) else ()
        lengths = [_length(values) for values in axis_values if isinstance(values, Sized)]
        size = (math.prod(lengths) if lengths else 0) + (len(runs) if isinstance(runs, Sized) else 0)
        if size > MOST_POINTS:
            raise self._error(
                f"the sweep is {size:,} runs",
                "[vary]" if lengths else "[[runs]]",
                None,
                " x ".join(map(str, lengths)) or size,
                f"at most {MOST_POINTS:,}",
                "vary fewer values",
            )

    def _extra(self, axes: Sequence[_Axis]) -> Sequence[Mapping[str, Any]]:
        tables = self._document.get("runs", [])
        if not isinstance(tables, Sequence) or isinstance(tables, str):
            raise self._error(
                "runs is not a list of tables",
                "[[runs]]",
                "runs",
                tables,
                "[[runs]] in a line of its own, options below",
                "write [[runs]] with two brackets",
            )
        labels_of_axis = {axis.name: axis.labels for axis in axes if axis.labels is not None}
        for number, table in enumerate(tables, start=1):
            row = f"[[runs]] {number}"
            self._table(table, row)
            for name, labels in labels_of_axis.items():
                if name in table:
                    self._locate(partial(checks.one_of, name, table[name], labels), row)
            self._check_options({name: value for name, value in table.items() if name not in labels_of_axis}, row)
        return tables

    def _check_options(self, values: Mapping[str, Any], row: str) -> None:
        """Check some options before the others are known, except those with placeholders."""
        for name in values:
            if name in self._parameters:
                self._locate(partial(check_value, name, values[name]), row)
        options = {
            name: value for name, value in values.items() if name not in self._parameters and not has_placeholder(value)
        }
        nodes = {} if "cluster" in options else {"events": _ANY_FILE}
        values = {**nodes, "jobs": _ANY_FILE, **options}
        self._locate(lambda: RunOptions.from_mapping(values, allow_code=self._allow_code), row)

    def _table(self, value: object, label: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self._error(
                f"{label} is not a table", label, None, value, f"{label} with options", "write OPTION = VALUE below it"
            )
        return value

    def _locate(self, check: Callable[[], _Found], row: str) -> _Found:
        try:
            return check()
        except InputError as error:
            raise error if self._file is None else with_location(error, self._file, row) from error

    def _error(self, problem: str, row: str, column: str | None, value: object, expected: str, fix: str) -> InputError:
        return InputError(problem, file=self._file, row=row, column=column, value=value, expected=expected, fix=fix)


def _as_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the options of its tables by the names that files use."""

    def rename(table: Any) -> Any:
        return as_options(table) if isinstance(table, Mapping) else table

    converted = {name: rename(table) if name in ("run", "vary") else table for name, table in document.items()}
    if isinstance(vary := converted.get("vary"), Mapping):
        converted["vary"] = {
            name: {label: rename(setting) for label, setting in axis.items()} if isinstance(axis, Mapping) else axis
            for name, axis in vary.items()
        }
    if isinstance(runs := converted.get("runs"), list | tuple):
        converted["runs"] = [rename(run) for run in runs]
    return converted


def _evenly(name: str, table: Mapping[str, Any]) -> list[float]:
    """Return evenly spaced values from the first to the last, rounded to twelve digits."""
    first, last = (checks.number(f"{each} of {name}", table[each]) for each in ("from", "to"))
    n_values = checks.whole(f"values of {name}", table["values"], 2, MOST_POINTS)
    each = [float(f"{first + (last - first) * k / (n_values - 1):.12g}") for k in range(n_values)]
    are_whole = all(isinstance(table[key], int) for key in ("from", "to")) and all(map(float.is_integer, each))
    return [int(value) for value in each] if are_whole else each


def _length(values: Sized) -> int:
    """Return the number of values of an entry of [vary]."""
    number = values.get("values") if isinstance(values, Mapping) and set(values) == _EVEN else None
    return number if isinstance(number, int) else len(values)


def _merge(common: Mapping[str, Any], selection: _Chosen, own_options: Mapping[str, Any]) -> dict[str, Any]:
    settings = [common, *(axis.settings[place] for axis, place in selection), own_options]
    return {name: value for setting in settings for name, value in setting.items()}


def _row(selection: _Chosen) -> str:
    """Return the name of one combination in messages."""
    values = (
        f"{axis.name} = {axis.labels[place] if axis.labels is not None else axis.settings[place][axis.name]!r}"
        for axis, place in selection
    )
    return ", ".join(values) or "[run]"


def _column(name: str) -> str:
    return name.replace("-", "_")


def _value(options: RunOptions, field: str) -> Any:
    """Return the value of an option for the table, with the known default of ``max_parallel``."""
    value = getattr(options, field)
    is_usual = field == "max_parallel" and value is None and options.cluster is None
    return defaults.MAX_PARALLEL if is_usual else value


def _plain(value: Any) -> Any:
    """Return a value with TOML's dates and times as text, JSON-ready."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value
