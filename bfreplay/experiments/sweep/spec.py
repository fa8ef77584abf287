"""What a sweep is asked to do: a file or a mapping with ``run``, ``vary`` and ``runs``, or a list of options."""

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
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FILE_OPTIONS, OPTION_NAMES
from bfreplay.experiments.run_options import RunOptions, as_options
from bfreplay.experiments.sweep.columns import RESULT_COLUMNS, Cell, cell_of
from bfreplay.experiments.sweep.placeholders import check_value, filled, has_placeholder, parameters_of
from bfreplay.options import option_name

MOST_POINTS = 100_000
"""More are taken for a slip: at a second each that is a day."""

_TABLES = ("run", "vary", "runs", "picture")
_LABEL = re.compile(r"[A-Za-z][\w-]*")
_ANY_FILE = "sample"
_EVEN = {"from", "to", "values"}
"""Keys of values with even gaps."""
_Found = TypeVar("_Found")


class PictureSpec(NamedTuple):
    """What a picture shows: a column on the axis, a panel for each metric, a line for each value of other columns."""

    x: str
    y: tuple[str, ...]
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the table: what tells it from the others, and the run that it stands for."""

    cells: Mapping[str, Cell]
    options: RunOptions


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Points in the order in which they were asked for.

    Parameters
    ----------
    columns
        Names of what varies; every point has a cell for each.
    points
        One or more. Two may stand for the same run.
    document
        What was asked for as it was written, JSON-ready.
    picture
        What the picture of the sweep shows, where one was asked for.
    """

    columns: tuple[str, ...]
    points: tuple[Point, ...]
    document: Mapping[str, Any]
    picture: PictureSpec | None = None


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values of one option, or labels of several options that go together."""

    name: str
    settings: Sequence[Mapping[str, Any]]
    labels: Sequence[str] | None = None

    @property
    def options(self) -> set[str]:
        return set(itertools.chain.from_iterable(self.settings))


_Chosen = Sequence[tuple[_Axis, int]]
"""Axes, and the place of the value that was chosen on each."""


def read_spec(file: str | Path, *, allow_code: bool = False) -> SweepSpec:
    """Read a TOML file; relative paths in it count from its folder. ``allow_code`` as for ``spec_of``.

    Raises
    ------
    InputError
        It cannot be read, or asks for what there is not; see ``spec_of``.
    """
    path = Path(file)
    return spec_of(read_toml(path), folder=path.parent, file=path, allow_code=allow_code)


def spec_of(
    document: Mapping[str, Any], *, folder: Path | None = None, file: Path | None = None, allow_code: bool = False
) -> SweepSpec:
    """Points of tables as TOML is parsed.

    Parameters
    ----------
    document
        ``run``: options of every run. ``vary``: option to list of values, every combination of them, the last one
        changing first; or to ``{from, to, values}``, so many numbers with even gaps; or a name to a table of labels,
        each a table of options that go together. ``runs``: more runs, each a table of options and of labels. A name in
        braces in the text of an option, ``"gavel(n=9, seed={draw})"``, is a parameter, which is given where options
        are.
    folder
        Where relative paths start; the working directory by default.
    file
        Where the tables were read, for messages.
    allow_code
        Whether the tables, and the files that they name, may name code to import.

    Raises
    ------
    InputError
        A table, an option, a label or a value that cannot be used, a parameter without a value, or nothing to do.
    """
    return _Reader(document, folder, file, allow_code).spec()


def spec_of_options(runs: Iterable[RunOptions]) -> SweepSpec:
    """Points of options as they are, told apart by those in which they differ.

    Raises
    ------
    InputError
        There are none, or one is something else.
    """
    options = tuple(runs)
    for each in options:
        if not isinstance(each, RunOptions):
            raise InputError("this is no run of a sweep", value=each, expected="RunOptions")
    if not options:
        raise InputError("the sweep has no runs", expected="one RunOptions at least", fix="give some")
    differing = [name for name in map(_column, OPTION_NAMES) if len({_value(each, name) for each in options}) > 1]
    points = tuple(Point({name: cell_of(_value(each, name)) for name in differing}, each) for each in options)
    return SweepSpec(tuple(differing), points, {"runs": [each.to_json() for each in options]})


@dataclass(slots=True)
class _Reader:
    """Reads the tables of one spec."""

    _document: Mapping[str, Any]
    _folder: Path | None
    _file: Path | None
    _allow_code: bool
    _parameters: tuple[str, ...] = ()

    def spec(self) -> SweepSpec:
        self._checked(partial(checks.known_keys, self._document, _TABLES, "a sweep"), "the file")
        self._check_size()
        self._document = self._checked(lambda: _as_options(self._document), "the file")
        self._parameters = self._checked(
            lambda: parameters_of({name: self._document.get(name) for name in _TABLES}), "the file"
        )
        common = self._table(self._document.get("run", {}), "[run]")
        self._check_options(common, "[run]")
        axes = [
            self._axis(name, given) for name, given in self._table(self._document.get("vary", {}), "[vary]").items()
        ]
        self._check_apart(axes)
        extra = self._extra(axes)
        only_extra = extra and "vary" not in self._document
        combinations = [] if only_extra else itertools.product(*(range(len(axis.settings)) for axis in axes))
        varied = dict.fromkeys([*(axis.name for axis in axes), *itertools.chain.from_iterable(extra)])
        columns = tuple(map(_column, varied))
        points = []
        for places in combinations:
            chosen = list(zip(axes, places, strict=True))
            points.append(self._point(_merged(common, chosen, {}), chosen, columns, _row(chosen)))
        for number, given in enumerate(extra, start=1):
            labelled = {axis.name: axis for axis in axes if axis.labels is not None and axis.name in given}
            chosen = [(axis, list(axis.labels or ()).index(given[name])) for name, axis in labelled.items()]
            own = {name: value for name, value in given.items() if name not in labelled}
            points.append(self._point(_merged(common, chosen, own), chosen, columns, f"[[runs]] {number}"))
        return SweepSpec(columns, tuple(points), _plain(self._document), self._picture())

    def _picture(self) -> PictureSpec | None:
        given = self._document.get("picture")
        if given is None:
            return None
        row = "[picture]"
        self._checked(partial(checks.known_keys, self._table(given, row), ("x", "y", "by"), "a picture"), row)
        x = self._checked(lambda: checks.text("x", given.get("x")), row)
        y, by = (self._names_in(given.get(key, []), key) for key in ("y", "by"))
        if not y:
            raise self._error("a picture shows no metric", row, "y", y, "metrics of the table", 'write y = ["samples"]')
        for name in y:
            if name not in RESULT_COLUMNS:
                near = checks.near_name(name, RESULT_COLUMNS)
                raise self._error(
                    "a picture shows a metric that there is not", row, "y", name, ", ".join(sorted(RESULT_COLUMNS)),
                    f"did you mean {near!r}?" if near else "take one of these",
                )  # fmt: skip
        return PictureSpec(_column(x), y, tuple(map(_column, by)))

    def _names_in(self, given: object, key: str) -> tuple[str, ...]:
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise self._error(
                f"{key} of the picture is no list", "[picture]", key, given, "a list of columns", "write [...]"
            )
        return tuple(names)

    @property
    def _names(self) -> tuple[str, ...]:
        """What can be given a value."""
        return (*OPTION_NAMES, *self._parameters)

    def _point(self, given: Mapping[str, Any], chosen: _Chosen, columns: Sequence[str], row: str) -> Point:
        labels = {axis.name: axis.labels[at] for axis, at in chosen if axis.labels is not None}
        values = {name: given[name] for name in self._parameters if name in given}
        options = {name: value for name, value in given.items() if name not in values}
        options = self._checked(lambda: filled(options, values), row)
        made = RunOptions.from_mapping(
            options, folder=self._folder, file=self._file, row=row, allow_code=self._allow_code
        )
        cells = {_column(name): value for name, value in {**labels, **values}.items()}
        for column in columns:
            if option_name(column) in OPTION_NAMES:
                name = option_name(column)
                # a path as it was written: where it lies on this machine is not what the row is about
                as_written = name in FILE_OPTIONS and name in options
                cells[column] = cell_of(str(options[name]) if as_written else _value(made, column))
        return Point({column: cells.get(column) for column in columns}, made)

    def _axis(self, name: str, given: object) -> _Axis:
        row = f"[vary] {name}"
        if isinstance(given, Mapping) and set(given) != _EVEN:
            return self._labelled(name, given)
        self._check_name(name)
        if isinstance(given, Mapping):
            given = self._checked(partial(_evenly, name, given), row)
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise self._error(
                f"{name} in [vary] is no list", row, name, given, "a list of values", f"write {name} = [...], or move "
                "it to [run]",
            )  # fmt: skip
        if not given:
            raise self._error(f"{name} in [vary] has no values", row, name, given, "one value at least", "add some")
        settings = [{name: value} for value in given]
        for each in settings:
            self._check_options(each, row)
        return _Axis(name, settings)

    def _check_name(self, name: str) -> None:
        if name not in self._names:
            near = checks.near_name(name, self._names)
            raise self._error(
                f"{name!r} in [vary] is no option, and no text has the placeholder {{{name}}}", "[vary]", name, name,
                ", ".join(self._names), f"did you mean {near!r}?" if near else f"write {{{name}}} into the text of an "
                'option, such as jobs = "gavel(n=100, seed={' + name + '})"',
            )  # fmt: skip

    def _labelled(self, name: str, given: Mapping[str, Any]) -> _Axis:
        row = f"[vary.{name}]"
        taken = "an option of its own" if name in OPTION_NAMES else "a column of the results"
        if name in self._parameters:
            taken = "a placeholder"
        if name in self._names or _column(name) in RESULT_COLUMNS or not _LABEL.fullmatch(name):
            is_name = _LABEL.fullmatch(name) is not None
            raise self._error(
                f"{name!r} cannot be the name of a group of options" + (f": it is {taken}" if is_name else ""), row,
                name, name, "letters, digits, - and _; no option, and no column of the results",
                "take another name, such as workload",
            )  # fmt: skip
        if not given:
            raise self._error(f"{row} has no labels", row, name, {}, "LABEL = { OPTION = VALUE, ... }", "add some")
        for label, options in given.items():
            self._checked(partial(checks.name, "label", label, name), row)
            self._check_options(self._table(options, f"{row} {label}"), f"{row} {label}")
        return _Axis(name, list(given.values()), list(given))

    def _check_apart(self, axes: Sequence[_Axis]) -> None:
        """Two axes that set one option would leave it to their order which of them counts."""
        for one, other in itertools.combinations(axes, 2):
            both = sorted(one.options & other.options)
            if both:
                raise self._error(
                    f"{both[0]} is set by {one.name} and by {other.name}", "[vary]", both[0], both[0],
                    "each option in one place of [vary]", "drop one of them",
                )  # fmt: skip

    def _check_size(self) -> None:
        """Refuse too many runs before any of them is looked at."""
        vary, runs = (self._document.get(name) for name in ("vary", "runs"))
        given = vary.values() if isinstance(vary, Mapping) else ()
        lengths = [_length(values) for values in given if isinstance(values, Sized)]
        size = (math.prod(lengths) if lengths else 0) + (len(runs) if isinstance(runs, Sized) else 0)
        if size > MOST_POINTS:
            raise self._error(
                f"the sweep is {size:,} runs", "[vary]" if lengths else "[[runs]]", None,
                " x ".join(map(str, lengths)) or size, f"{MOST_POINTS:,} at most", "vary less at a time",
            )  # fmt: skip

    def _extra(self, axes: Sequence[_Axis]) -> Sequence[Mapping[str, Any]]:
        given = self._document.get("runs", [])
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise self._error(
                "runs is no list of tables", "[[runs]]", "runs", given, "[[runs]] in a line of its own, options below",
                "write [[runs]] with two brackets",
            )  # fmt: skip
        labelled = {axis.name: axis.labels for axis in axes if axis.labels is not None}
        for number, each in enumerate(given, start=1):
            row = f"[[runs]] {number}"
            self._table(each, row)
            for name, labels in labelled.items():
                if name in each:
                    self._checked(partial(checks.one_of, name, each[name], labels), row)
            self._check_options({name: value for name, value in each.items() if name not in labelled}, row)
        return given

    def _check_options(self, given: Mapping[str, Any], row: str) -> None:
        """Check what can be known of some options before the others: not those that parameters are part of."""
        for name in given:
            if name in self._parameters:
                self._checked(partial(check_value, name, given[name]), row)
        options = {
            name: value for name, value in given.items() if name not in self._parameters and not has_placeholder(value)
        }  # fmt: skip
        nodes = {} if "cluster" in options else {"events": _ANY_FILE}
        given = {**nodes, "jobs": _ANY_FILE, **options}
        self._checked(lambda: RunOptions.from_mapping(given, allow_code=self._allow_code), row)

    def _table(self, given: object, label: str) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise self._error(
                f"{label} is no table", label, None, given, f"{label} with options", "write OPTION = VALUE below it"
            )
        return given

    def _checked(self, check: Callable[[], _Found], row: str) -> _Found:
        try:
            return check()
        except InputError as error:
            raise error if self._file is None else with_location(error, self._file, row) from error

    def _error(self, problem: str, row: str, column: str | None, value: object, expected: str, fix: str) -> InputError:
        return InputError(problem, file=self._file, row=row, column=column, value=value, expected=expected, fix=fix)


def _as_options(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the options of its tables by the names that files use."""

    def named(table: Any) -> Any:
        return as_options(table) if isinstance(table, Mapping) else table

    found = {name: named(table) if name in ("run", "vary") else table for name, table in document.items()}
    if isinstance(vary := found.get("vary"), Mapping):
        found["vary"] = {
            name: {label: named(each) for label, each in axis.items()} if isinstance(axis, Mapping) else axis
            for name, axis in vary.items()
        }
    if isinstance(runs := found.get("runs"), list | tuple):
        found["runs"] = [named(each) for each in runs]
    return found


def _evenly(name: str, given: Mapping[str, Any]) -> list[float]:
    """Values from the first to the last with even gaps, each rounded to twelve digits."""
    first, last = (checks.number(f"{each} of {name}", given[each]) for each in ("from", "to"))
    number = checks.whole(f"values of {name}", given["values"], 2, MOST_POINTS)
    each = [float(f"{first + (last - first) * k / (number - 1):.12g}") for k in range(number)]
    are_whole = all(isinstance(given[key], int) for key in ("from", "to")) and all(map(float.is_integer, each))
    return [int(value) for value in each] if are_whole else each


def _length(values: Sized) -> int:
    """How many values an entry of [vary] has."""
    number = values.get("values") if isinstance(values, Mapping) and set(values) == _EVEN else None
    return number if isinstance(number, int) else len(values)


def _merged(common: Mapping[str, Any], chosen: _Chosen, own: Mapping[str, Any]) -> dict[str, Any]:
    settings = [common, *(axis.settings[at] for axis, at in chosen), own]
    return {name: value for each in settings for name, value in each.items()}


def _row(chosen: _Chosen) -> str:
    """How messages call one combination."""
    said = (
        f"{axis.name} = {axis.labels[at] if axis.labels is not None else axis.settings[at][axis.name]!r}"
        for axis, at in chosen
    )
    return ", ".join(said) or "[run]"


def _column(name: str) -> str:
    return name.replace("-", "_")


def _value(options: RunOptions, field: str) -> Any:
    """What stands in the table: a default that hangs on other options as what it is, where it is known."""
    value = getattr(options, field)
    is_usual = field == "max_parallel" and value is None and options.cluster is None
    return defaults.MAX_PARALLEL if is_usual else value


def _plain(value: Any) -> Any:
    """TOML's own dates and times as text, so that the whole can be written as JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value
