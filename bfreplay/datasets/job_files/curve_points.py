"""Points of a curve as they stand in files: text, lists of pairs, or two lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfreplay.datasets.job_files.law_cells import law_text
from bfreplay.datasets.job_files.numbers import number_of
from bfreplay.errors import InputError
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve

INLINE_CURVE = ":"
_EXPECTED = 'points "0:0 1:7115.3 2:13071.7" (nodes:value), a law, or the name of a curve'


def points_of(cell: Any, as_columns: bool = False) -> tuple[list[float], list[float]]:
    """Node counts and values of the points in a cell.

    Parameters
    ----------
    cell
        ``"0:0 1:7115.3"``, ``[[0, 0], [1, 7115.3]]``, or a list of ``{"nodes": …, "value": …}``.
    as_columns
        The cell is ``[nodes, values]`` instead.

    Raises
    ------
    InputError
        It is none of these, or holds something else than numbers.
    """
    if as_columns:
        nodes, values = cell
        if not isinstance(nodes, list) or not isinstance(values, list):
            raise InputError("the points are no lists", value=cell, expected="nodes = [0, 1, …] and values = [0.0, …]")
        return [number_of(node, "nodes") for node in nodes], [number_of(value, "values") for value in values]
    pairs = [pair.split(INLINE_CURVE) for pair in cell.split()] if isinstance(cell, str) else cell
    if not isinstance(pairs, Sequence):
        raise InputError("a curve is unreadable", value=cell, expected=_EXPECTED)
    nodes, values = [], []
    for given in pairs:
        pair = list(given.values()) if isinstance(given, dict) else given
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InputError("a point of a curve is no pair of nodes and value", value=given, expected=_EXPECTED)
        nodes.append(number_of(pair[0], "nodes"))
        values.append(number_of(pair[1], "values"))
    return nodes, values


def inline_text(curve: Curve) -> str:
    """Return a curve as it stands in a cell, exact.

    Points are ``"0:0.0 1:7115.3"``, a law is ``"amdahl(rate_1=2831.0, serial=0.02)"``; a curve that is neither is
    written as points at every node count that it is defined at.
    """
    if isinstance(curve, Law | MeasuredLaw):
        return law_text(curve)
    if isinstance(curve, TabulatedCurve):
        nodes, values = list(curve.nodes), list(curve.values)
    else:
        values = [float(value) for value in curve.table(curve.last_nodes)]
        nodes = list(range(len(values)))
    return " ".join(f"{node}:{value!r}" for node, value in zip(nodes, values, strict=True))
