"""The comparison of runs on the page: its answer, its two pictures, and what a reader wants of its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bfreplay.report.comparison_tables import (
    bin_words,
    campaign_table,
    cause_table,
    hour_table,
    job_measure_table,
    model_table,
    option_table,
    status_table,
    total_table,
)
from bfreplay.report.figures_runs import Differences, SavedComparison, Steps, differences_over_time, waterfalls
from bfreplay.report.run_figures.figure import PageFigure
from bfreplay.report.run_figures.marks import in_lines, page_fill, page_line, run_number, run_role
from bfreplay.report.step_series import StepSeries
from bfreplay.report.tables import ShownTable
from bfreplay.wording import count

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "ComparisonSection",
    "SavedComparison",
    "causes_page",
    "causes_words",
    "comparison_answer",
    "comparison_sections",
    "over_time_page",
    "over_time_words",
]

_NEXT_TO_NOTHING = 1e-6
_SUM_HEIGHT, _BARS_HEIGHT, _GAP = 250, 120, 24
_ROW_HEIGHT, _PANEL_FOOT = 40, 70
_BANDS = ("/", "\\", "|", "-", "x", ".")
"""Patterns of the bands, which lie upon each other."""


@dataclass(frozen=True, slots=True)
class ComparisonSection:
    """A heading of the page, with its anchor ``name``; what there is to see in words, perhaps drawn, and as tables."""

    name: str
    title: str
    words: str
    figure: PageFigure | None = None
    tables: Sequence[ShownTable] = field(default_factory=tuple)


def comparison_answer(comparison: SavedComparison) -> list[Markup]:
    """One or two sentences for each run but the baseline, as the record has them."""
    from markupsafe import Markup

    return [Markup("<span data-verbatim>{}</span>").format(pair["answer"]) for pair in comparison.record["pairs"]]


def comparison_sections(comparison: SavedComparison) -> list[ComparisonSection]:
    """In the order of the page: differing options, over time, causes, job by job, and for a source its campaign."""
    record = comparison.record
    pairs = record["pairs"]
    over_time, causes = differences_over_time(comparison), waterfalls(comparison)
    sections = [
        ComparisonSection("options", "What differs between the runs", _options_words(record), None,
                          (option_table(record),)),
        ComparisonSection("differences-over-time", "Differences over time", over_time_words(over_time, record),
                          over_time_page(over_time), tuple(hour_table(record, pair) for pair in pairs)),
        ComparisonSection("causes", "What made the differences", causes_words(causes),
                          causes_page(causes), (cause_table(record), total_table(record))),
        ComparisonSection("job-by-job", "Job by job", _jobs_words(pairs), None, _job_tables(pairs)),
    ]  # fmt: skip
    if any(pair["campaign"] is not None for pair in pairs):
        tables = tuple(campaign_table(pair) for pair in pairs if pair["campaign"] is not None)
        sections.append(
            ComparisonSection(
                "campaign", "The campaign", "When trials were finished, and when scores were reached.", None, tables
            )
        )
    return sections


def over_time_page(found: Sequence[Differences]) -> PageFigure:
    """Differences of samples over time, in percent of the baseline's: the sums up to then, and the single bins.

    Above is a line a run with its 95 % band: at any time the sum of all bins up to and with that one. Below is a panel
    a run with the difference of each bin.
    """
    room = _SUM_HEIGHT + len(found) * (_BARS_HEIGHT + _GAP)
    layout: dict[str, Any] = {
        "xaxis": {"time": True, "anchor": _axis(len(found))},
        "yaxis": {"title": {"text": "summed up, %"}, "domain": [1 - _SUM_HEIGHT / room, 1.0], "zeroline": True},
        "hovermode": "closest",
        "legend": {"traceorder": "normal"},
    }
    traces: list[dict[str, Any]] = []
    series: dict[str, StepSeries] = {}
    for k, mine in enumerate(found):
        role = run_role(run_number(mine.run))
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
                        "shape": _BANDS[k % len(_BANDS)],
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
            "line": {**page_line(role, k), "shape": "hv"},
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
            "yaxis": _axis(k + 1),
            "hovertemplate": f"{mine.run}, this bin: %{{y:+.4f}} % of A's samples<extra></extra>",
        }
        traces += [line, bars]
        top = 1 - (_SUM_HEIGHT + _GAP + k * (_BARS_HEIGHT + _GAP)) / room
        layout[_axis(k + 1).replace("y", "yaxis")] = {
            "title": {"text": f"{mine.run}: each bin, %"},
            "domain": [max(0.0, top - _BARS_HEIGHT / room), top],
            "zeroline": True,
        }
    return PageFigure(traces, layout, series, height=room + 110)


def over_time_words(found: Sequence[Differences], record: Mapping[str, Any]) -> str:
    """Run by run the difference at the end, and in how many bins the run was ahead."""
    told = []
    for mine in found:
        ahead, behind = (int((sign * mine.difference > _NEXT_TO_NOTHING).sum()) for sign in (1, -1))
        text = f"In all {mine.run} - A is {_signed(float(mine.cumulative[-1]))} % of A's samples"
        if np.isfinite(mine.low[-1]):
            text += f" (95 % interval of the sum {_signed(float(mine.low[-1]))} to {_signed(float(mine.high[-1]))} %)"
        length = bin_words((mine.edge_us[1] - mine.edge_us[0]) / 1e6)
        bins = f"{count(mine.difference.size, 'bin')} of {length}"
        told.append(f"{text}; of {bins} {mine.run} was ahead in {ahead:,} and behind in {behind:,}.")
    return f"{' '.join(told)} Intervals are by blocks of neighbouring bins of {bin_words(record['config']['bin_s'])}."


def causes_page(found: Sequence[Steps]) -> PageFigure:
    """A panel a run: from 0 by one bar a part to the whole difference, in percent of the baseline's samples."""
    layout: dict[str, Any] = {"showlegend": False, "hovermode": "closest", "barmode": "overlay"}
    traces: list[dict[str, Any]] = []
    n_rows = [len(steps.sizes) + 1 for steps in found]
    room = sum(n_rows) * _ROW_HEIGHT + len(found) * _PANEL_FOOT
    above = 0
    for k, steps in enumerate(found):
        parts = [*(word.replace("\n", " ") for word in steps.words), "all"]
        bases, sizes = [*steps.starts, 0.0], [*steps.sizes, steps.total]
        for part, base, size in zip(parts, bases, sizes, strict=True):
            fill = page_fill("idle", 0) if part == "all" else page_fill(*(("useful", 0) if size >= 0 else ("lost", 1)))
            text = f"{_signed(size)} %"
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
                    "xaxis": _axis(k).replace("y", "x"),
                    "yaxis": _axis(k),
                    "hovertemplate": f"{steps.run}: {part}<br>{text} of A's samples<extra></extra>",
                }
            )
        top = 1 - above / room
        above += n_rows[k] * _ROW_HEIGHT
        ends = [0.0, *(base + size for base, size in zip(bases, sizes, strict=True))]
        beside = 0.8 * (max(ends) - min(ends)) or 1.0  # for the numbers
        layout[_axis(k).replace("y", "yaxis")] = {
            "type": "category",
            "autorange": "reversed",
            "automargin": True,
            "showgrid": False,
            "domain": [1 - above / room, top],
        }
        layout[_axis(k).replace("y", "xaxis")] = {
            "title": {"text": f"{steps.run} - A, % of A's samples"},
            "anchor": _axis(k),
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
            f"{word.replace(chr(10), ' ')} {_signed(size)} %"
            for word, size in zip(steps.words, steps.sizes, strict=True)
        ]
        text = f"{', '.join(parts)}; all {_signed(steps.total)} %" if parts else "no difference"
        told.append(f"{steps.run} against A, in percent of A's samples: {text}.")
    return "\n".join(told)


def _band(name: str, statistic: str, role: str, words: str) -> dict[str, Any]:
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


def _options_words(record: Mapping[str, Any]) -> str:
    options = [row["option"] for row in record["options"]]
    if not options:
        return "All options of the runs are the same."
    return f"The runs differ in {', '.join(options)}; all other options, the log, the window and the jobs are the same."


def _jobs_words(pairs: Sequence[Mapping[str, Any]]) -> str:
    told = []
    for pair in pairs:
        jobs, b, a = pair["jobs"], pair["run"], pair["baseline"]
        text = f"{b} against {a}: {count(jobs['n_jobs'], 'pair')} of jobs"
        for key, words in (
            ("only_in_baseline", f"only in {a}"),
            ("only_in_other", f"only in {b}"),
            ("n_other_params", "with other parameters in both, not paired"),
        ):
            if jobs[key]:
                text += f", {jobs[key]:,} {words}"
        told.append(f"{text}.")
    told.append("Jobs of a run share its nodes, so they are not independent: intervals tell of the jobs' spread.")
    return "\n".join(told)


def _job_tables(pairs: Sequence[Mapping[str, Any]]) -> tuple[ShownTable, ...]:
    tables = []
    for pair in pairs:
        tables.append(job_measure_table(pair))
        if pair["jobs"]["status_changes"]:
            tables.append(status_table(pair))
        if pair["jobs"]["models"]:
            tables.append(model_table(pair))
    return tuple(tables)


def _signed(value: float) -> str:
    if abs(value) < _NEXT_TO_NOTHING:
        return "0"
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.2g}"


def _axis(k: int) -> str:
    return "y" if k == 0 else f"y{k + 1}"
