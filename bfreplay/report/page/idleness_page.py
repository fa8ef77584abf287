"""The page of a log, or of several side by side: how much is idle, where, when and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import escape

from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.idleness_text import hour_table, longer_table, longest_table, sentences, width_table
from bfreplay.datasets.idleness.parts_text import (
    answer_sentences,
    comparison_sentences,
    comparison_table,
    part_sentences,
    part_table,
    reason_sentences,
    reason_tables,
)
from bfreplay.datasets.idleness.side_by_side import SideBySide
from bfreplay.datasets.times import HOUR_US
from bfreplay.report.figures.figure import PageFigure
from bfreplay.report.figures.marks import ROWS, Mark, Trace
from bfreplay.report.page.headline import Card, warnings_card
from bfreplay.report.page.sections import Section, page_table, result_page
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.runs.metric import number
from bfreplay.versions import versions
from bfreplay.wording import ShownTable

_MOST_BARS = 40


def write_idleness_report(
    described: SideBySide, options: dict[str, Any], out: Path | str, *, overwrite: bool = False
) -> Path:
    """Write the page of described logs; ``options`` are shown on it. Errors as ``write_report``."""
    file, logs = check_report(out, overwrite=overwrite), described.logs
    is_one, last = len(logs) == 1, logs[-1]
    answer = [*answer_sentences(last), sentences(last)[0]] if is_one else comparison_sentences(described.labels, logs)
    cautions = [
        sentence if is_one else f"{label}: {sentence}"
        for label, log in zip(described.labels, logs, strict=True)
        for sentence in log.origin.log_warnings.sentences()
    ]
    text = result_page(
        command="describe",
        title=f"Idle nodes of {' and '.join(described.labels)}",
        answer=" ".join(answer),
        cards=[*_cards(last), warnings_card(len(cautions))],
        cautions=cautions,
        sections=[*_sections(described)],
        files=list(dict.fromkeys(source for sources in described.sources for source in sources)),
        config=json.dumps(options, indent=2, sort_keys=True, default=str),
        versions=versions(),
    )
    return write_page(text, file, overwrite=overwrite)


def _cards(idleness: Idleness) -> list[Card]:
    return [
        Card("Idle", number("idle_share", idleness.idle_share, "percent"), escape("of all node-time")),
        Card("Mean idle nodes", number("mean", idleness.mean_idle_nodes, "amount"), escape(f"of {idleness.n_nodes:,}")),
        Card("Idle node-hours", number("hours", idleness.idle_node_hours, "amount"), escape("in the window")),
    ]


def _sections(described: SideBySide) -> Iterator[Section]:
    labels, logs = described.labels, described.logs
    if len(logs) > 1:
        yield _tables("side-by-side", "Side by side", "", [comparison_table(labels, logs)])
    if all(log.reasons is not None for log in logs):
        of_logs = {label: log.reasons.node_us for label, log in zip(labels, logs, strict=True) if log.reasons}
        words = " ".join(sentence for log in logs if log.reasons for sentence in reason_sentences(log.reasons))
        tables = [page_table(table) for log in logs if log.reasons for table in reason_tables(log.reasons)]
        yield Section("reasons", "Why no job ran", words, _bars(of_logs), tables, folded=False)
    if all(log.parts is not None for log in logs):
        shown = [log.parts for log in logs if log.parts]
        of_parts = {
            label: {part.name: part.idle_node_us for part in parts.parts[:_MOST_BARS]}
            for label, parts in zip(labels, shown, strict=True)
        }
        words = " ".join(sentence for parts in shown for sentence in part_sentences(parts))
        tables = [page_table(part_table(parts, most=None)) for parts in shown]
        yield Section("parts", f"Idle time by {shown[0].by}", words, _bars(of_parts), tables, folded=False)
    if len(logs) == 1:
        tables_of_log = [longer_table(logs[0]), longest_table(logs[0]), width_table(logs[0])]
        if logs[0].week is not None:
            tables_of_log.append(hour_table(logs[0].week, logs[0].mean_idle_nodes))
        words = " ".join(sentences(logs[0])[1:])
        yield _tables("tables", "How long, how many, when", words, [table for table in tables_of_log if table.rows])


def _tables(name: str, title: str, words: str, tables: list[ShownTable]) -> Section:
    return Section(name, title, words, tables=[page_table(table) for table in tables], folded=False)


def _bars(node_us_of_logs: dict[str, dict[str, int]]) -> PageFigure:
    """Return one bar a name and log, in node-hours."""
    names = list(dict.fromkeys(name for of_log in node_us_of_logs.values() for name in of_log))
    traces: list[Trace] = [
        Mark.of_run(number_of_log).bars(
            label,
            [of_log.get(name, 0) / HOUR_US for name in names],
            names,
            f"{label}: %{{y}}: %{{x:,.4~r}} node-hours",
            orientation="h",
        )
        for number_of_log, (label, of_log) in enumerate(node_us_of_logs.items())
    ]
    layout = {"barmode": "group", "xaxis": {"title": {"text": "node-hours"}}, "yaxis": dict(ROWS)}
    return PageFigure(traces, layout, height=140 + 24 * len(names) * len(node_us_of_logs))
