"""The two pictures of a comparison of runs, for the page: differences over time, and what made them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bfreplay.report.figures.figure import PageFigure
from bfreplay.report.figures.look import Trace
from bfreplay.report.figures.marks import (
    ROWS,
    axis,
    in_lines,
    layout_axis,
    page_fill,
    page_line,
    run_number,
    run_role,
)
from bfreplay.report.figures.run_comparison import NEXT_TO_NOTHING, Differences, Steps, signed_number
from bfreplay.report.figures.step_series import StepSeries
from bfreplay.result_folders.comparison import ComparisonRecord
from bfreplay.wording import count, duration

_SUM_HEIGHT, _BARS_HEIGHT, _GAP = 250, 120, 24
_ROW_HEIGHT, _PANEL_FOOT = 40, 70
_BANDS = ("/", "\\", "|", "-", "x", ".")
"""Patterns of the bands, which lie upon each other."""
_OF_TIME = {"zeroline": True, "fixedrange": True}
"""Of axes beside one of time, which alone is zoomed."""


def over_time_page(found: Sequence[Differences]) -> PageFigure:
    """Differences of samples over time, in percent of the baseline's: the sums up to then, and the single bins.

    Above is a line a run with its 95 % band: at any time the sum of all bins up to and with that one. Below is a panel
    a run with the difference of each bin.
    """
    room = _SUM_HEIGHT + len(found) * (_BARS_HEIGHT + _GAP)
    layout: Trace = {
        "xaxis": {"time": True, "anchor": axis(len(found))},
        "yaxis": {"title": {"text": "summed up, %"}, "domain": [1 - _SUM_HEIGHT / room, 1.0], **_OF_TIME},
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    traces: list[Trace] = []
    series: dict[str, StepSeries] = {}
    for k, mine in enumerate(found):
        number = run_number(mine.run)
        role = run_role(number)
        edge = np.append(mine.edge_us[:1], mine.time_us)
        names = {name: f"{name}-{mine.run}" for name in ("sum", "low", "high", "bin")}
        if np.isfinite(mine.low).all():
            series |= {names["low"]: StepSeries.exact(edge, mine.low), names["high"]: StepSeries.exact(edge, mine.high)}
            traces += [
                _band(names["low"], "least", role, f"{mine.run}: lower end"),
                {
                    **_band(names["high"], "most", role, f"{mine.run}: 95 % interval of the sum"),
                    "showlegend": True,
                    "fill": "tonexty",  # down to the trace before
                    "fillpattern": {
                        "shape": _BANDS[number % len(_BANDS)],
                        "fgcolor": f"@{role}",
                        "bgcolor": "rgba(0,0,0,0)",
                        "size": 6,
                        "solidity": 0.2,
                    },
                },
            ]
        series[names["sum"]] = StepSeries.exact(edge, mine.cumulative)
        series[names["bin"]] = StepSeries.exact(mine.edge_us, mine.difference)
        line = {
            "type": "scatter",
            "mode": "lines",
            "name": f"{mine.run}: sum up to then",
            "steps": {"series": names["sum"], "statistic": "mean"},
            "line": {**page_line(role, number), "shape": "hv"},
            "hovertemplate": f"{mine.run}, up to then: %{{y:+.3f}} % of A's samples<extra></extra>",
        }
        bars = {
            "type": "scatter",
            "mode": "lines",
            "name": f"{mine.run}: each bin",
            "showlegend": False,
            "steps": {"series": names["bin"], "statistic": "mean"},
            "line": {"color": f"@{role}", "width": 1, "shape": "hv"},
            "fill": "tozeroy",
            "yaxis": axis(k + 1),
            "hovertemplate": f"{mine.run}, this bin: %{{y:+.4f}} % of A's samples<extra></extra>",
        }
        traces += [line, bars]
        top = 1 - (_SUM_HEIGHT + _GAP + k * (_BARS_HEIGHT + _GAP)) / room
        layout[layout_axis(k + 1)] = {
            "title": {"text": f"{mine.run}: each bin, %"},
            "domain": [max(0.0, top - _BARS_HEIGHT / room), top],
            **_OF_TIME,
        }
    return PageFigure(traces, layout, series, height=room + 110)


def over_time_words(found: Sequence[Differences], record: ComparisonRecord) -> str:
    """Run by run the difference at the end, and in how many bins the run was ahead."""
    told = []
    for mine in found:
        ahead, behind = (int((sign * mine.difference > NEXT_TO_NOTHING).sum()) for sign in (1, -1))
        text = f"In all {mine.run} - A is {signed_number(float(mine.cumulative[-1]))} % of A's samples"
        if np.isfinite(mine.low[-1]):
            low, high = (signed_number(float(end[-1])) for end in (mine.low, mine.high))
            text += f" (95 % interval of the sum {low} to {high} %)"
        length = bin_words((mine.edge_us[1] - mine.edge_us[0]) / 1e6)
        bins = f"{count(mine.difference.size, 'bin')} of {length}"
        told.append(f"{text}; of {bins} {mine.run} was ahead in {ahead:,} and behind in {behind:,}.")
    return f"{' '.join(told)} Intervals are by blocks of neighbouring bins of {bin_words(record.config.bin_s)}."


def causes_page(found: Sequence[Steps]) -> PageFigure:
    """A panel a run: from 0 by one bar a part to the whole difference, in percent of the baseline's samples."""
    layout: Trace = {"showlegend": False, "hovermode": "closest", "barmode": "overlay"}
    traces: list[Trace] = []
    n_rows = [len(steps.sizes) + 1 for steps in found]
    room = sum(n_rows) * _ROW_HEIGHT + len(found) * _PANEL_FOOT
    above = 0
    for k, steps in enumerate(found):
        parts = [*(word.replace("\n", " ") for word in steps.words), "all"]
        bases, sizes = [*steps.starts, 0.0], [*steps.sizes, steps.total]
        for part, base, size in zip(parts, bases, sizes, strict=True):
            fill = page_fill("idle", 0) if part == "all" else page_fill(*(("useful", 0) if size >= 0 else ("lost", 1)))
            text = f"{signed_number(size)} %"
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": [in_lines(part, 16)],
                    "x": [size],
                    "base": [base],
                    "width": 0.6,
                    "marker": fill,
                    "text": [text],
                    "textposition": "outside",
                    "textangle": 0,
                    "cliponaxis": False,
                    "constraintext": "none",
                    "xaxis": axis(k, "x"),
                    "yaxis": axis(k),
                    "hovertemplate": f"{steps.run}: {part}<br>{text} of A's samples<extra></extra>",
                }
            )
        top = 1 - above / room
        above += n_rows[k] * _ROW_HEIGHT
        ends = [0.0, *(base + size for base, size in zip(bases, sizes, strict=True))]
        beside = 0.8 * (max(ends) - min(ends)) or 1.0  # for the numbers
        layout[layout_axis(k)] = {**ROWS, "domain": [1 - above / room, top]}
        layout[layout_axis(k, "x")] = {
            "title": {"text": f"{steps.run} - A, % of A's samples"},
            "anchor": axis(k),
            "range": [min(ends) - beside, max(ends) + beside],
            "zeroline": True,
        }
        above += _PANEL_FOOT
    return PageFigure(traces, layout, height=room + 40)


def causes_words(found: Sequence[Steps]) -> str:
    """The parts of each difference, and the whole."""
    told = []
    for steps in found:
        parts = [
            f"{word.replace(chr(10), ' ')} {signed_number(size)} %"
            for word, size in zip(steps.words, steps.sizes, strict=True)
        ]
        text = f"{', '.join(parts)}; all {signed_number(steps.total)} %" if parts else "no difference"
        told.append(f"{steps.run} against A, in percent of A's samples: {text}.")
    return "\n".join(told)


def _band(name: str, statistic: str, role: str, words: str) -> Trace:
    """An edge of a band."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": words,
        "showlegend": False,
        "steps": {"series": name, "statistic": statistic},
        "line": {"color": f"@{role}", "width": 0.5, "shape": "hv"},
        "hoverinfo": "skip",
    }


def bin_words(seconds: float) -> str:
    """Length of a bin: ``1 h``, not ``60.0 min``."""
    hours = seconds / 3_600
    return f"{hours:,.0f} h" if hours >= 1 and hours == round(hours) else duration(seconds)
