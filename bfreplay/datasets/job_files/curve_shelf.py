"""Curves by their points: equal ones are one object."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.scalability import TabulatedCurve


class CurveShelf:
    """Every curve made so far; job sets have many jobs and few curves."""

    __slots__ = ("_curves",)

    def __init__(self) -> None:
        self._curves: dict[tuple[str, tuple[float, ...], tuple[float, ...]], TabulatedCurve] = {}

    def curve(self, nodes: Sequence[float], values: Sequence[float], name: str = "") -> TabulatedCurve:
        """Return the curve through these points; InputError if they make none."""
        key = (name, tuple(nodes), tuple(values))
        if key not in self._curves:
            self._curves[key] = TabulatedCurve(nodes, values, name)
        return self._curves[key]
