"""Curves by their points or parameters: equal ones are one object."""

from __future__ import annotations

from collections.abc import Sequence

from bfreplay.scalability import Law, MeasuredLaw, TabulatedCurve, measured_counts


class CurveShelf:
    """Every curve made so far; job sets have many jobs and few curves.

    Parameters
    ----------
    allow_code
        Whether laws in the files may be code to import, ``package.module:Class``.
    """

    __slots__ = ("_curves", "_laws", "allow_code")

    def __init__(self, *, allow_code: bool = False) -> None:
        self.allow_code = allow_code
        self._laws: dict[tuple[type[Law], tuple[float, ...], tuple[int, int] | None], Law | MeasuredLaw] = {}
        self._curves: dict[tuple[str, tuple[float, ...], tuple[float, ...]], TabulatedCurve] = {}

    def curve(self, nodes: Sequence[float], values: Sequence[float], name: str = "") -> TabulatedCurve:
        """Return the curve through these points; InputError if they make none."""
        key = (name, tuple(nodes), tuple(values))
        if key not in self._curves:
            self._curves[key] = TabulatedCurve(nodes, values, name)
        return self._curves[key]

    def law(self, curve: Law | MeasuredLaw) -> Law | MeasuredLaw:
        """Return the first law like this one."""
        law = curve.law if isinstance(curve, MeasuredLaw) else curve
        return self._laws.setdefault((type(law), law.values, measured_counts(curve)), curve)
