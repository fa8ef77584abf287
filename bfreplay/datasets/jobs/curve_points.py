"""Curves in files: points as text, lists of pairs or two lists; and the writer of curve files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from bfreplay.datasets.jobs.law_cells import law_cells, law_text, number_of
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve, measured_counts

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
        return [number_of(node, "nodes") for node in nodes], [number_of(value, "values") for value in values]
    pairs = [pair.split(INLINE_CURVE) for pair in cell.split()] if isinstance(cell, str) else cell
    if not isinstance(pairs, Sequence):
        raise InputError("a curve is unreadable", value=cell, expected=_EXPECTED)
    nodes, values = [], []
    for given in pairs:
        pair = list(given.values()) if isinstance(given, dict) else given
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError("a point of a curve is not a pair of nodes and value", value=given, expected=_EXPECTED)
        nodes.append(number_of(pair[0], "nodes"))
        values.append(number_of(pair[1], "values"))
    return nodes, values


def inline_text(curve: Curve) -> str:
    """Return a curve as the exact text of a cell.

    Points are ``"0:0.0 1:7115.3"``, a law is ``"amdahl(rate_1=2831.0, serial=0.02)"``; a curve that is neither is
    written as points at every node count where it is defined.
    """
    if isinstance(curve, Law | MeasuredLaw):
        return law_text(curve)
    if isinstance(curve, TabulatedCurve):
        nodes, values = list(curve.nodes), list(curve.values)
    else:
        values = [float(value) for value in curve.table(curve.last_nodes)]
        nodes = list(range(len(values)))
    return " ".join(f"{node}:{value!r}" for node, value in zip(nodes, values, strict=True))


class CurveShelf:
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

    def curve(self, nodes: Sequence[float], values: Sequence[float], name: str = "") -> TabulatedCurve:
        """Return the curve through these points; InputError if they are invalid."""
        key = (name, tuple(nodes), tuple(values))
        if key not in self._curves:
            self._curves[key] = TabulatedCurve(nodes, values, name)
        return self._curves[key]

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


def _table(name: str, curve: Curve, remarks: Sequence[str]) -> str:
    lines = [f"# {' '.join(remark.split())}" for remark in remarks]
    lines.append(f"[curves.{name if _BARE.fullmatch(name) else _text(name)}]")
    if isinstance(curve, Law | MeasuredLaw):
        cells = law_cells(curve).items()
        lines += [f"{key} = {_text(value) if isinstance(value, str) else value}" for key, value in cells]
    elif isinstance(curve, TabulatedCurve):
        lines += [f"nodes = {list(curve.nodes)}", f"values = {list(curve.values)}"]
    else:
        raise InputError(
            f"the curve {name!r} cannot be written as TOML", value=type(curve).__name__, expected="a law, or points"
        )
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a basic string of TOML; JSON's escapes are among its own, but it wants DEL escaped as well."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
