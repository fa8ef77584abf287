"""Spec of a sweep: a file or a mapping with ``run``, ``vary`` and ``runs``, or a list of options."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, field

from bfreplay import checks, defaults
from bfreplay.datasets.jobs.tables import read_toml
from bfreplay.documents import refuse_other_toml
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FIELDS, FILE_OPTIONS, OPTION_NAMES
from bfreplay.experiments.given_objects import input_text
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
from bfreplay.options import field_name
from bfreplay.typed_tables import TypedTable, typed_table

MOST_POINTS = 100_000
"""Largest number of points; at a second each, a day."""

_LABEL = re.compile(r"[A-Za-z][\w-]*")
_EVEN = {"from", "to", "values"}
"""Keys of evenly spaced values."""


class PictureTable(TypedTable, frozen=True):
    """``[picture]``."""

    x: str
    y: str | Annotated[list[str], Meta(min_length=1)]
    by: str | list[str] = field(default_factory=list)


class SpecTables(TypedTable, frozen=True):
    """All tables of a spec."""

    run: dict[str, Any] = field(default_factory=dict)
    vary: dict[str, Any] | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    picture: PictureTable | None = None


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
class _Choice:
    """One value of an entry of [vary]: an option or parameter with its value, or a label with the options it sets."""

    entry: str
    options: Mapping[str, Any]
    label: str | None = None

    def __str__(self) -> str:
        return f"{self.entry} = {repr(self.options[self.entry]) if self.label is None else self.label}"


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
    place = file or "the mapping"
    refuse_other_toml(document, place, "a sweep")
    tables = typed_table(document, SpecTables, place)
    try:
        return _spec_of(document, tables, folder, allow_code)
    except InputError as error:
        raise error if file is None or error.file else error.with_changes(file=file) from error


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
    differing = [name for name in FIELDS.values() if len({_value(option, name) for option in options}) > 1]
    points = tuple(Point({name: cell_of(_value(option, name)) for name in differing}, option) for option in options)
    return SweepSpec(tuple(differing), points, {"runs": [option.to_json() for option in options]})


def _spec_of(document: Mapping[str, Any], tables: SpecTables, folder: Path | None, allow_code: bool) -> SweepSpec:
    """Return the spec; errors name the table, not the file."""
    _check_size(tables)
    with _within("the file"):
        common, runs = as_options(tables.run), [as_options(run) for run in tables.runs]
        vary = _with_option_names(tables.vary or {})
        renamed_tables = {"run": common, "vary": vary, "runs": runs}
        document = {name: renamed_tables.get(name, table) for name, table in document.items()}
        reader = _Reader(common, parameters_of(document), folder, allow_code)
    reader.check_options(common, "[run]")
    axes = {name: reader.axis(name, values) for name, values in vary.items()}
    _check_apart(axes)
    single_runs = [reader.single_run(run, axes, f"[[runs]] {number}") for number, run in enumerate(runs, start=1)]
    combinations = [] if single_runs and tables.vary is None else itertools.product(*axes.values())
    names = tuple(dict.fromkeys([*axes, *itertools.chain.from_iterable(runs)]))
    points = [
        *(reader.point(choices, {}, names, ", ".join(map(str, choices)) or "[run]") for choices in combinations),
        *(
            reader.point(choices, options, names, f"[[runs]] {number}")
            for number, (choices, options) in enumerate(single_runs, start=1)
        ),
    ]
    picture = None if tables.picture is None else picture_of(tables.picture)
    return SweepSpec(tuple(map(field_name, names)), tuple(points), _plain(document), picture)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the options of the tables: those ``common`` to all runs, and names in braces that are ``parameters``."""

    common: Mapping[str, Any]
    parameters: tuple[str, ...]
    folder: Path | None
    allow_code: bool

    def axis(self, name: str, values: object) -> list[_Choice]:
        """Return the choices of an entry of [vary]."""
        row = f"[vary] {name}"
        if isinstance(values, Mapping) and set(values) != _EVEN:
            return self._labelled_axis(name, values)
        known_names = (*OPTION_NAMES, *self.parameters)
        if name not in known_names:
            fix = f'write {{{name}}} into the text of an option, such as jobs = "gavel(n=100, seed={{{name}}})"'
            raise InputError(
                f"{name!r} in [vary] is neither an option nor a placeholder {{{name}}} in a text",
                row="[vary]",
                column=name,
                value=name,
                expected=", ".join(known_names),
                fix=checks.nearest(name, known_names, fix),
            )
        if isinstance(values, Mapping):
            with _within(row):
                values = _evenly(name, values)
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise InputError(
                f"{name} in [vary] is not a list",
                row=row,
                column=name,
                value=values,
                expected="a list of values",
                fix=f"write {name} = [...], or move it to [run]",
            )
        if not values:
            problem = f"{name} in [vary] has no values"
            raise InputError(problem, row=row, column=name, value=values, expected="at least one value", fix="add some")
        choices = [_Choice(name, {name: value}) for value in values]
        for choice in choices:
            self.check_options(choice.options, row)
        return choices

    def _labelled_axis(self, name: str, table: Mapping[str, Any]) -> list[_Choice]:
        row, is_name = f"[vary.{name}]", _LABEL.fullmatch(name) is not None
        other_meaning = (
            "an option"
            if name in OPTION_NAMES
            else "a placeholder"
            if name in self.parameters
            else "a column of the results"
            if field_name(name) in RESULT_COLUMNS
            else None
        )
        if other_meaning or not is_name:
            raise InputError(
                f"{name!r} cannot be the name of a group of options" + (f": it is {other_meaning}" if is_name else ""),
                row=row,
                column=name,
                value=name,
                expected="letters, digits, - and _; not an option, and not a column of the results",
                fix="choose another name, for example workload",
            )
        if not table:
            expected = "LABEL = { OPTION = VALUE, ... }"
            raise InputError(f"{row} has no labels", row=row, column=name, value={}, expected=expected, fix="add some")
        for label, options in table.items():
            with _within(row):
                checks.name("label", label, name)
            if not isinstance(options, Mapping):
                raise InputError(
                    f"{row} {label} is not a table",
                    row=f"{row} {label}",
                    value=options,
                    expected=f"{row} {label} with options",
                    fix="write OPTION = VALUE below it",
                )
            self.check_options(options, f"{row} {label}")
        return [_Choice(name, options, label) for label, options in table.items()]

    def single_run(
        self, table: Mapping[str, Any], axes: Mapping[str, Sequence[_Choice]], row: str
    ) -> tuple[list[_Choice], dict[str, Any]]:
        """Return the labels that an entry of [[runs]] names, and its own options."""
        options, choices = dict(table), []
        for name, axis in axes.items():
            labels = [choice.label for choice in axis if choice.label is not None]
            if labels and name in options:
                with _within(row):
                    choices.append(axis[labels.index(checks.one_of(name, options.pop(name), labels))])
        self.check_options(options, row)
        return choices, options

    def check_options(self, values: Mapping[str, Any], row: str) -> None:
        """Check some options before the others are known, except those with placeholders."""
        options = {
            option: value
            for option, value in values.items()
            if option not in self.parameters and not has_placeholder(value)
        }
        nodes = {} if "cluster" in options else {"events": defaults.BUNDLED}
        with _within(row):
            for parameter in self.parameters:
                if parameter in values:
                    check_value(parameter, values[parameter])
            RunOptions.from_mapping({**nodes, "jobs": defaults.BUNDLED, **options}, allow_code=self.allow_code)

    def point(
        self, choices: Sequence[_Choice], own_options: Mapping[str, Any], names: Sequence[str], row: str
    ) -> Point:
        """Return the point of some choices and options; its cells are those of ``names``."""
        options = dict(self.common)
        for settings in (*(choice.options for choice in choices), own_options):
            options |= settings
        values = {option: options.pop(option) for option in self.parameters if option in options}
        with _within(row):
            options = fill(options, values)
            run_options = RunOptions.from_mapping(options, folder=self.folder, allow_code=self.allow_code)
        cells = {choice.entry: choice.label for choice in choices if choice.label is not None} | values
        for option in filter(FIELDS.__contains__, names):
            # a path as written: its place on this machine does not matter
            is_path = FIELDS[option] in FILE_OPTIONS and isinstance(options.get(option), str | Path)
            cells[option] = cell_of(str(options[option]) if is_path else _value(run_options, FIELDS[option]))
        return Point({field_name(option): cells.get(option) for option in names}, run_options)


@contextmanager
def _within(row: str) -> Iterator[None]:
    """Name the table in errors that are raised inside."""
    try:
        yield
    except InputError as error:
        raise error if error.file else error.with_changes(row=row) from error


def _check_size(tables: SpecTables) -> None:
    """Refuse too many runs before reading them."""
    lengths = [_length(values) for values in (tables.vary or {}).values() if isinstance(values, Sized)]
    size = (math.prod(lengths) if lengths else 0) + len(tables.runs)
    if size > MOST_POINTS:
        raise InputError(
            f"the sweep is {size:,} runs",
            row="[vary]" if lengths else "[[runs]]",
            value=" x ".join(map(str, lengths)) or size,
            expected=f"at most {MOST_POINTS:,}",
            fix="vary fewer values",
        )


def _check_apart(axes: Mapping[str, Sequence[_Choice]]) -> None:
    """Refuse two entries of [vary] that set the same option."""
    entry_of_option: dict[str, str] = {}
    for choice in itertools.chain.from_iterable(axes.values()):
        for option in choice.options:
            entry = entry_of_option.setdefault(option, choice.entry)
            if entry != choice.entry:
                raise InputError(
                    f"{option} is set by {entry} and by {choice.entry}",
                    row="[vary]",
                    column=option,
                    value=option,
                    expected="each option in one place of [vary]",
                    fix="remove one of them",
                )


def picture_of(table: PictureTable) -> PictureSpec:
    """Return the picture with the names of columns; InputError for a metric that the table of results does not have."""
    y_columns, by_columns = ([names] if isinstance(names, str) else names for names in (table.y, table.by))
    with _within("[picture]"):
        for metric_name in y_columns:
            checks.one_of("y", metric_name, sorted(RESULT_COLUMNS))
    return PictureSpec(field_name(table.x), tuple(y_columns), tuple(map(field_name, by_columns)))


def _with_option_names(vary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of [vary], and the options of their labels, by the names that files use."""
    return {
        name: {
            label: as_options(options) if isinstance(options, Mapping) else options for label, options in values.items()
        }
        if isinstance(values, Mapping)
        else values
        for name, values in as_options(vary).items()
    }


def _evenly(entry_name: str, table: Mapping[str, Any]) -> list[float]:
    """Return evenly spaced values from the first to the last, rounded to twelve digits."""
    first, last = (checks.number(f"{edge} of {entry_name}", table[edge]) for edge in ("from", "to"))
    n_values = checks.whole(f"values of {entry_name}", table["values"], 2, MOST_POINTS)
    values = [float(f"{first + (last - first) * k / (n_values - 1):.12g}") for k in range(n_values)]
    are_whole = all(isinstance(table[edge], int) for edge in ("from", "to")) and all(map(float.is_integer, values))
    return [int(value) for value in values] if are_whole else values


def _length(values: Sized) -> int:
    """Return the number of values of an entry of [vary]."""
    number = values.get("values") if isinstance(values, Mapping) and set(values) == _EVEN else None
    return number if isinstance(number, int) else len(values)


def _value(options: RunOptions, attribute: str) -> Any:
    """Return the value of an option for the table, with the known default of ``max_parallel``."""
    value = input_text(getattr(options, attribute))
    is_usual = attribute == "max_parallel" and value is None and options.cluster is None
    return defaults.MAX_PARALLEL if is_usual else value


def _plain(value: Any) -> Any:
    """Return a value with TOML's dates and times, paths and objects as text, JSON-ready."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return cell_of(input_text(value))
