"""Points of a curve as they stand in files: text, lists of pairs, or two lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfreplay.errors import InputError
from bfreplay.scalability import Curve, TabulatedCurve

INLINE_CURVE = ":"
_EXPECTED = 'points "0:0 1:7115.3 2:13071.7" (nodes:value), or the name of a curve'


def number_of(value: Any, column: str) -> float:
    """Return the number given as number or text; InputError for anything else."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise InputError(
            "this is no number", column=column, value=value, expected="a number", fix=_number_fix(value)
        ) from None


def _number_fix(value: Any) -> str:
    if isinstance(value, str) and value.count(",") == 1 and value.replace(",", "").strip("+- ").isdigit():
        return f"write a decimal point, not a comma: {value.strip().replace(',', '.')}"
    return "write it in digits with a decimal point, such as 18.5"


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
    """Return a curve as ``"0:0.0 1:7115.3"``, exact; one that is no table is written at every node count."""
    if isinstance(curve, TabulatedCurve):
        nodes, values = list(curve.nodes), list(curve.values)
    else:
        values = [float(value) for value in curve.table(curve.last_nodes)]
        nodes = list(range(len(values)))
    return " ".join(f"{node}:{value!r}" for node, value in zip(nodes, values, strict=True))
