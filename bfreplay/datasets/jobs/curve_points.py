"""Curves in files: points as text, lists of pairs or two lists, or a law, ``amdahl(rate_1=2831.0, serial=0.02)``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from bfreplay.checks import decimal, nearest
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve, find_law, measured_counts, name_of
from bfreplay.scalability.stepped import curve_as_given

LAW_KEY = "law"
MEASURED_KEY = "measured"
"""Smallest and largest node count that the law was fitted to: ``[64, 1024]``, or ``64:1024`` in a cell of text."""
_CALL = re.compile(r"\s*([^\s()=,]+)\s*\((.*)\)\s*", re.DOTALL)
_EXAMPLE = "a law such as amdahl(rate_1=2831, serial=0.02)"


def is_law(cell: Any) -> bool:
    """Return whether a cell holds a law, as text or as a table, valid or not."""
    if isinstance(cell, Mapping):
        return LAW_KEY in cell
    return isinstance(cell, str) and "(" in cell


def law_of(cell: Any, *, allow_code: bool = False) -> Law | MeasuredLaw:
    """Return the law in a cell for which ``is_law`` is true.

    Parameters
    ----------
    cell
        ``"amdahl(rate_1=2831, serial=0.02)"`` (commas, spaces or both between the parameters), or
        ``{"law": "amdahl", "rate_1": 2831, "serial": 0.02}``. Either may have ``measured`` as well.
    allow_code
        True if the law may be code to import, ``package.module:Class``.

    Raises
    ------
    InputError
        An unknown law, or one that may not be imported; a parameter that is unknown, missing, repeated, not a number or
        out of range.
    """
    if isinstance(cell, Mapping):
        name, arguments = cell[LAW_KEY], {str(keyword): value for keyword, value in cell.items() if keyword != LAW_KEY}
        if not isinstance(name, str):
            raise InputError("the name of the law is not text", column=LAW_KEY, value=name, expected='law = "amdahl"')
    else:
        name, arguments = _parts(cell)
    law_type = find_law(name, allow_code=allow_code)
    measured = arguments.pop(MEASURED_KEY, None)
    meaning_of = {parameter.name: parameter.meaning for parameter in law_type.parameters}
    parameters = list(meaning_of)
    expected = ", ".join(parameters)
    for keyword, value in arguments.items():
        if keyword not in parameters:
            problem = f"the law {name} has no parameter {keyword!r}"
            fix = nearest(keyword, parameters, "drop it, or choose another law")
            raise InputError(problem, column=keyword, value=value, expected=expected, fix=fix)
    for keyword, meaning in meaning_of.items():
        if keyword not in arguments:
            problem, fix = f"the law {name} lacks its parameter {keyword!r}", f"add {keyword}: {meaning}"
            value = cell if isinstance(cell, str) else dict(cell)
            raise InputError(problem, column=keyword, value=value, expected=expected, fix=fix)
    law = law_type(**{keyword: number_of(arguments[keyword], keyword) for keyword in parameters})
    return law if measured is None else MeasuredLaw(law, _counts(measured))


def law_cells(curve: Law | MeasuredLaw) -> dict[str, str | float | list[int]]:
    """Return a law as a table, from which ``law_of`` makes the same one."""
    law = curve.law if isinstance(curve, MeasuredLaw) else curve
    cells: dict[str, str | float | list[int]] = {LAW_KEY: name_of(type(law))}
    cells |= {parameter.name: value for parameter, value in zip(law.parameters, law.values, strict=True)}
    return cells | ({MEASURED_KEY: list(curve.measured)} if isinstance(curve, MeasuredLaw) else {})


def law_text(curve: Law | MeasuredLaw) -> str:
    """Return a law as ``"amdahl(rate_1=2831.0, serial=0.02)"``, from which ``law_of`` makes the same one."""
    cells = law_cells(curve)
    law_name = cells.pop(LAW_KEY)
    if isinstance(curve, MeasuredLaw):
        cells[MEASURED_KEY] = ":".join(map(str, curve.measured))
    inside = ", ".join(f"{cell_key}={cell_value}" for cell_key, cell_value in cells.items())
    return f"{law_name}({inside})"


def _counts(cell: Any) -> tuple[int, int]:
    counts = cell.split(":") if isinstance(cell, str) else cell
    if isinstance(counts, list) and len(counts) == 2:
        first, last = (number_of(count, MEASURED_KEY) for count in counts)
        if first.is_integer() and last.is_integer():
            return int(first), int(last)
    raise InputError(
        "the measured node counts are not two whole numbers",
        column=MEASURED_KEY,
        value=cell,
        expected="the smallest and the largest one: 64:1024 in text, [64, 1024] in TOML",
    )


def _parts(text: str) -> tuple[str, dict[str, str]]:
    match = _CALL.fullmatch(text)
    if match is None:
        raise InputError("a law is unreadable", value=text, expected=_EXAMPLE, fix="close the parenthesis after it")
    law_name, inside = match.groups()
    arguments: dict[str, str] = {}
    for part in re.sub(r"\s*=\s*", "=", inside).replace(",", " ").split():
        parameter_key, equals, parameter_value = part.partition("=")
        if not (parameter_key and equals and parameter_value):
            raise InputError(
                f"a parameter of the law {law_name} has no name or no value",
                value=part,
                expected=_EXAMPLE,
                fix="write NAME=VALUE for each parameter, with a decimal point in the value",
            )
        if parameter_key in arguments:
            problem = f"the parameter {parameter_key!r} of the law {law_name} is given twice"
            raise InputError(problem, column=parameter_key, value=text, fix="drop one")
        arguments[parameter_key] = parameter_value
    return law_name, arguments


def number_of(value: Any, column: str, column_cells: Iterable[Any] = ()) -> float:
    """Return a number given as number or text; InputError for anything else, with its likely readings first."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return decimal(value) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        readings = _readings(value.strip(), column_cells) if isinstance(value, str) else []
        fix = f"write {' or '.join(readings) or 'it in digits with a decimal point, such as 18.5'}"
        raise InputError("this is not a number", column=column, value=value, expected="a number", fix=fix) from None


_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:[,' \u2009\u202f\xa0]\d{3})+(?:\.\d*)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d*|\d{1,3}(?:\.\d{3})+),\d+", re.ASCII)


def _readings(text: str, column_cells: Iterable[Any]) -> list[str]:
    """Return the possible readings of a number with separators, the likelier one first; empty for other text."""
    readings = []
    if _THOUSANDS.fullmatch(text):
        readings.append(f"{re.sub(r'[^0-9.+-]', '', text)} if it separates thousands")
    if _DECIMAL_COMMA.fullmatch(text):
        readings.append(f"{text.replace('.', '').replace(',', '.')} if it is a decimal comma")
    if not all(_THOUSANDS.fullmatch(cell.strip()) for cell in map(str, column_cells) if "," in cell):
        readings.reverse()
    return readings


INLINE_CURVE = ":"
_EXPECTED = 'points "0:0 1:7115.3 2:13071.7" (nodes:value), a law, or the name of a curve'

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def points_of(cell: Any, as_columns: bool = False) -> tuple[list[float], list[float]]:
    """Return node counts and values of the points in a cell.

    Parameters
    ----------
    cell
        ``"0:0 1:7115.3"``, ``[[0, 0], [1, 7115.3]]``, or a list of ``{"nodes": …, "value": …}``.
    as_columns
        The cell is ``[nodes, values]`` instead.

    Raises
    ------
    InputError
        Another form, or values that are not numbers.
    """
    if as_columns:
        nodes, values = cell
        if not isinstance(nodes, list) or not isinstance(values, list):
            raise InputError("the points are not lists", value=cell, expected="nodes = [0, 1, …] and values = [0.0, …]")
        return [number_of(node, "nodes") for node in nodes], [number_of(rate_value, "values") for rate_value in values]
    pairs = [pair.split(INLINE_CURVE) for pair in cell.split()] if isinstance(cell, str) else cell
    if not isinstance(pairs, Sequence):
        raise InputError("a curve is unreadable", value=cell, expected=_EXPECTED)
    nodes, values = [], []
    for point in pairs:
        pair = list(point.values()) if isinstance(point, dict) else point
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError("a point of a curve is not a pair of nodes and value", value=point, expected=_EXPECTED)
        nodes.append(number_of(pair[0], "nodes"))
        values.append(number_of(pair[1], "values"))
    return nodes, values


def inline_text(curve: Curve) -> str:
    """Return a curve as the exact text of a cell; of a job with ``counts``, the curve that it was given.

    Points are ``"0:0.0 1:7115.3"``, a law is ``"amdahl(rate_1=2831.0, serial=0.02)"``; a curve that is neither is
    written as points at every node count where it is defined.
    """
    curve = curve_as_given(curve)
    if isinstance(curve, Law | MeasuredLaw):
        return law_text(curve)
    points: Iterable[tuple[int, float]] = (
        zip(curve.nodes, curve.values, strict=True)
        if isinstance(curve, TabulatedCurve)
        else enumerate(curve.table(curve.last_nodes).tolist())
    )
    return " ".join(f"{node}:{rate!r}" for node, rate in points)


class CurveCache:
    """Cache of curves: job sets have many jobs and few curves.

    Parameters
    ----------
    allow_code
        True if laws in the files may be code to import, ``package.module:Class``.
    """

    def __init__(self, *, allow_code: bool = False) -> None:
        self.allow_code = allow_code
        self._laws: dict[tuple[type[Law], tuple[float, ...], tuple[int, int] | None], Law | MeasuredLaw] = {}
        self._curves: dict[tuple[str, tuple[float, ...], tuple[float, ...]], TabulatedCurve] = {}

    def curve(self, nodes: Sequence[float], values: Sequence[float], curve_name: str = "") -> TabulatedCurve:
        """Return the curve through these points; InputError if they are invalid."""
        cache_key = (curve_name, tuple(nodes), tuple(values))
        if cache_key not in self._curves:
            self._curves[cache_key] = TabulatedCurve(nodes, values, curve_name)
        return self._curves[cache_key]

    def law(self, curve: Law | MeasuredLaw) -> Law | MeasuredLaw:
        """Return the first law like this one."""
        law = curve.law if isinstance(curve, MeasuredLaw) else curve
        return self._laws.setdefault((type(law), law.values, measured_counts(curve)), curve)


def write_curves(
    curves: Mapping[str, Curve],
    path: str | PathLike[str],
    remarks: Mapping[str, Sequence[str]] | None = None,
    overwrite: bool = False,
) -> None:
    """Write curves by name as TOML that ``load_jobs`` takes as ``curves``, exactly.

    Parameters
    ----------
    curves
        Laws or points; a curve that is neither cannot be written.
    path
        A name ending in ``.toml``.
    remarks
        Lines of comment before a curve, by its name.
    overwrite
        Replace an existing file.

    Raises
    ------
    OutputExistsError
        The file exists and ``overwrite`` is false.
    InputError
        Another ending, or a curve that is neither a law nor points.
    """
    file = Path(path)
    if file.suffix.lower() != ".toml":
        raise InputError("curves are written as TOML", file=file, value=file.name, expected="a name ending in .toml")
    text = "\n".join(_table(name, curve, (remarks or {}).get(name, ())) for name, curve in curves.items())
    with written_whole([file], overwrite) as (temporary,):
        temporary.write_text(text, encoding="utf-8")


def _table(curve_name: str, curve: Curve, remarks: Sequence[str]) -> str:
    if isinstance(curve, Law | MeasuredLaw):
        cells: Mapping[str, object] = law_cells(curve)
    elif isinstance(curve, TabulatedCurve):
        cells = {"nodes": curve.nodes, "values": curve.values}
    else:
        problem = f"the curve {curve_name!r} cannot be written as TOML"
        raise InputError(problem, value=type(curve).__name__, expected="a law, or points")
    lines = [f"# {' '.join(remark.split())}" for remark in remarks]
    lines += [f"[curves.{toml_key(curve_name)}]", *(f"{key} = {toml_value(value)}" for key, value in cells.items())]
    return "\n".join(lines) + "\n"


def toml_key(key_text: str) -> str:
    """Return a key of TOML, in quotes where it needs them."""
    return key_text if _BARE.fullmatch(key_text) else toml_value(key_text)


def toml_value(plain_value: object) -> str:
    """Return a value as TOML writes it: text, truth value, number, or a list of these."""
    if isinstance(plain_value, bool):
        return "true" if plain_value else "false"
    if isinstance(plain_value, str):  # JSON's escapes are among those of TOML, which wants DEL escaped as well
        return json.dumps(plain_value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(plain_value, list | tuple):
        return "[" + ", ".join(map(toml_value, plain_value)) + "]"
    return repr(plain_value)
