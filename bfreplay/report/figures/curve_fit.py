"""Picture of a fit: measured rates, laws with a band, and residuals below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bfreplay.report.figures.axes import log_tick, new_figure, powers_of_two, style_axes
from bfreplay.report.figures.figure import Figure
from bfreplay.report.figures.marks import BLUE, LINES, OKABE_ITO, Trace, point_look
from bfreplay.scalability import name_of
from bfreplay.scalability.choice import Choice
from bfreplay.scalability.measurements import Measurements

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_BAND_COUNTS = 33
_LINE_COUNTS = 200
_ONE_LINE = 1e-3
_OTHERS = OKABE_ITO[1:]
_PALE_BLUE = "#CFE5F4"
_GREY = "#8A8A8A"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LawLine:
    """One law in the picture.

    Parameters
    ----------
    label
        Name, with the names of laws with the same line, to 0.1 %.
    is_best
        True for the recommended law.
    rates
        At the ``nodes`` of the picture, shape ``(K,)``.
    off
        Over the curve that is used, minus 1, shape ``(K,)``.
    """

    label: str
    is_best: bool
    rates: Floats
    off: Floats


@dataclass(frozen=True, slots=True)
class FitCurves:
    """Data of the picture of a fit.

    Parameters
    ----------
    name
        Of the curve.
    counts, rates, residuals
        Of each measurement: node count, samples/s, and that over the rate of the curve that is used, minus 1: ``(N,)``.
    nodes
        Where the lines are drawn, from the least measured count to ``max_nodes``: shape ``(K,)``.
    used
        The curve that is used, at ``nodes``.
    laws
        The best one first.
    band_nodes, band_used, band_low, band_high
        Best law and its 95 % band, which holds at all counts together; empty where no law fits.
    last_measured
        Largest measured count: beyond it the law is extrapolated.
    """

    name: str
    counts: Floats
    rates: Floats
    residuals: Floats
    nodes: Floats
    used: Floats
    laws: tuple[LawLine, ...]
    band_nodes: Floats
    band_used: Floats
    band_low: Floats
    band_high: Floats
    last_measured: int


def fit_curves(name: str, choice: Choice) -> FitCurves:
    """Return the data of the picture from the fit of the named curve."""
    measurements, best = choice.measurements, choice.best
    counts = np.asarray(measurements.nodes, dtype=np.float64)
    first_count, last_measured = float(counts[0]), float(counts[-1])
    last_count = max(last_measured, float(choice.max_nodes)) if best is not None else last_measured
    nodes = np.geomspace(first_count, last_count, _LINE_COUNTS)
    nodes[[0, -1]] = first_count, last_count
    rates_at: Callable[[Floats], Floats]
    band_nodes = band_rates = lower_rates = upper_rates = np.empty(0)
    if best is None:
        rates_at = partial(_rates_between, measurements)
    else:
        rates_at, band_nodes = best.curve.rates, np.geomspace(first_count, last_count, _BAND_COUNTS)
        band_rates, (lower_rates, upper_rates) = rates_at(band_nodes), best.band(band_nodes)
    rates_of_curve, rates = rates_at(nodes), np.asarray(measurements.rates)
    laws: list[LawLine] = []
    for law_fit in sorted(choice.fits, key=lambda law_fit: law_fit is not best):
        law_name, law_rates = name_of(type(law_fit.curve)), law_fit.curve.rates(nodes)
        for law_index, other_law in enumerate(laws):
            if np.abs(law_rates / other_law.rates - 1.0).max() <= _ONE_LINE:
                laws[law_index] = replace(other_law, label=f"{other_law.label} = {law_name}")
                break
        else:
            laws.append(LawLine(law_name, law_fit is best, law_rates, law_rates / rates_of_curve - 1.0))
    measured = counts, rates, rates / rates_at(counts) - 1.0
    band = band_nodes, band_rates, lower_rates, upper_rates
    return FitCurves(name, *measured, nodes, rates_of_curve, tuple(laws), *band, int(last_measured))


def _rates_between(measurements: Measurements, nodes: Floats) -> Floats:
    """Return mean measured rates, by straight lines between the measured node counts."""
    return np.interp(nodes, measurements.counts, measurements.means)


def draw_fit(curves: FitCurves) -> Drawing:
    """Above, rates over nodes, both logarithmic; below, residuals in %, and deviations of the other laws."""
    curve_label = next((law_line.label for law_line in curves.laws if law_line.is_best), "no law fits")
    figure = new_figure(9.0, 6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(5, 3))
    if len(curves.band_nodes):
        band_look: Trace = {"color": _PALE_BLUE, "linewidth": 0, "zorder": 1}
        band_ends = [curves.band_low, curves.band_high]
        above.fill_between(curves.band_nodes, *band_ends, label="95 % band", **band_look)
        below.fill_between(curves.band_nodes, *(100 * (end / curves.band_used - 1) for end in band_ends), **band_look)
    else:
        above.plot(curves.nodes, curves.used, color="black", linewidth=1.8, label="means, as points", zorder=3)
    for law_index, law_line in enumerate(curves.laws):
        if law_line.is_best:
            line_look = {"color": BLUE, "linestyle": "-", "linewidth": 2.0, "zorder": 3.0}
        else:
            colour, dashes = _OTHERS[law_index % len(_OTHERS)], LINES[1 + law_index % (len(LINES) - 1)]
            line_look = {"color": colour, "linestyle": dashes, "linewidth": 1.3, "zorder": 2.0}
        above.plot(curves.nodes, law_line.rates, label=law_line.label, **line_look)
        below.plot(curves.nodes, 100 * law_line.off, **line_look)
    points = point_look("black") | {"markerfacecolor": "none"}
    above.plot(curves.counts, curves.rates, label="measured", zorder=4, **points)
    below.plot(curves.counts, 100 * curves.residuals, zorder=4, **points)
    below.axhline(0.0, color=_GREY, linewidth=0.8, zorder=1.5)
    for axes in (above, below):
        axes.set_xscale("log")
        if curves.nodes[-1] > curves.last_measured:
            axes.axvline(curves.last_measured, color=_GREY, linestyle=(0, (1, 1)), linewidth=1.2)
    above.set_yscale("log")
    above.set_ylim(0.8 * curves.rates.min(), 1.3 * max(curves.rates.max(), float(curves.used.max())))
    style_axes(above, y="samples/s", title=f"{curves.name}: {curve_label}", y_ticks=log_tick)
    powers_of_two(below, int(curves.nodes[-1]), room_for=13)
    below.set_xlim(curves.nodes[0] / 1.08, curves.nodes[-1] * 1.08)
    # scaled to the measurements: a law that is far off leaves the picture, unless all are
    reach = max(1.0, 130 * float(np.abs(curves.residuals).max()))
    if not len(curves.band_nodes) and curves.laws:
        reach = max(reach, min(100.0, 110 * max(float(np.abs(law_line.off).max()) for law_line in curves.laws)))
    below.set_ylim(-reach, reach)
    extrapolation_words = "" if curves.nodes[-1] == curves.last_measured else "; dotted: the last measured count"
    first = int(curves.counts[0])
    remark = "" if first == 1 else f"; nothing was measured below {first:,} nodes"
    style_axes(below, f"nodes{extrapolation_words}{remark}", "off the curve used, %")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False, handlelength=3.2)
    return figure


FIT: Figure[FitCurves] = Figure("fit", "Measured rates and fitted laws", fit_curves, draw_fit)
