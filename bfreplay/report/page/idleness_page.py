"""The page of a log, or of several side by side: how much is idle, where, when and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from bfreplay.report.figures.marks import ROWS, Mark, Trace, in_lines
from bfreplay.report.page.headline import Card, warnings_card
from bfreplay.report.page.sections import Section, page_table, result_page
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.runs.metric import number
from bfreplay.versions import versions
from bfreplay.wording import ShownTable

_MOST_BARS, _LONGEST = 40, 40


def write_idleness_report(
    described: SideBySide, options: dict[str, Any], out: Path | str, *, overwrite: bool = False
) -> Path:
    """Write the page of described logs; ``options`` are shown on it. Errors as ``write_report``."""
    file, logs = check_report(out, overwrite=overwrite), described.logs
    is_one, last = len(logs) == 1, logs[-1]
    answer = comparison_sentences(described.labels, logs)
    if is_one:
        answer = [*answer_sentences(last), *sentences(last)[: _n_first(last)]]
    cautions = [
        sentence if is_one else f"{label}: {sentence}"
        for label, log in zip(described.labels, logs, strict=True)
        for sentence in log.origin.log_warnings.sentences()
    ]
    text = result_page(
        command="describe",
        title=f"Idle nodes of {' and '.join(described.labels)}",
        answer=" ".join(answer),
        cards=[*_cards(last, "" if is_one else f", {described.labels[-1]}"), warnings_card(len(cautions))],
        cautions=cautions,
        sections=[*_sections(described)],
        files=list(dict.fromkeys(source for sources in described.sources for source in sources)),
        config=json.dumps(options, indent=2, sort_keys=True, default=str),
        versions=versions(),
    )
    return write_page(text, file, overwrite=overwrite)


def _n_first(idleness: Idleness) -> int:
    """Return how many sentences stand on top: of units the first one says what they are."""
    return 1 if idleness.origin.unit == "node" else 2


def _cards(idleness: Idleness, which: str) -> list[Card]:
    nodes, share = idleness.n_nodes, number("idle_share", idleness.idle_share, "percent")
    mean, hours = idleness.mean_idle_nodes, idleness.idle_node_hours
    return [
        Card("Idle", share, escape(f"of all node-time{which}")),
        Card("Mean idle nodes", number("mean", mean, "amount"), escape(f"of {nodes:,}{which}")),
        Card("Idle node-hours", number("hours", hours, "amount"), escape(f"in the window{which}")),
    ]


def _sections(described: SideBySide) -> Iterator[Section]:
    labels, logs = described.labels, described.logs
    if len(logs) > 1:
        yield _tables("side-by-side", "Side by side", "", [comparison_table(labels, logs)])
    reasons = {label: log.reasons for label, log in zip(labels, logs, strict=True) if log.reasons}
    if reasons:
        words = {label: reason_sentences(of_log) for label, of_log in reasons.items()}
        tables = {label: reason_tables(of_log) for label, of_log in reasons.items()}
        bars = {label: of_log.node_us for label, of_log in reasons.items()}
        yield _section("reasons", "Why no job ran", words, _bars(bars), tables)
    parts = {label: log.parts for label, log in zip(labels, logs, strict=True) if log.parts}
    if parts:
        words = {label: part_sentences(of_log) for label, of_log in parts.items()}
        tables = {label: [part_table(of_log, most=None)] for label, of_log in parts.items()}
        bars = {
            label: {part.name: part.idle_node_us for part in of_log.parts[:_MOST_BARS]}
            for label, of_log in parts.items()
        }
        yield _section("parts", f"Idle time by {next(iter(parts.values())).by}", words, _bars(bars), tables)
    if len(logs) == 1:
        tables_of_log = [longer_table(logs[0]), longest_table(logs[0]), width_table(logs[0])]
        if logs[0].week is not None:
            tables_of_log.append(hour_table(logs[0].week, logs[0].mean_idle_nodes))
        words_of_log = " ".join(sentences(logs[0])[_n_first(logs[0]) :])
        shown = [table for table in tables_of_log if table.rows]
        yield _tables("tables", "How long, how many, when", words_of_log, shown)


def _section(
    name: str,
    title: str,
    words: Mapping[str, list[str]],
    figure: PageFigure,
    tables: Mapping[str, list[ShownTable]],
) -> Section:
    """Return a section with the words and tables of each log, which have its label if there are several."""
    labelled = {label: f"{label}: " if len(tables) > 1 else "" for label in tables}
    texts = [labelled[label] + " ".join(of_log) for label, of_log in words.items() if of_log]
    shown = [
        page_table(replace(table, caption=labelled[label] + table.caption))
        for label, of_log in tables.items()
        for table in of_log
    ]
    return Section(name, title, " ".join(texts), figure, shown, folded=False)


def _tables(name: str, title: str, words: str, tables: list[ShownTable]) -> Section:
    return Section(name, title, words, tables=[page_table(table) for table in tables], folded=False)


def _bars(node_us_of_logs: dict[str, dict[str, int]]) -> PageFigure:
    """Return one bar a name and log, in node-hours."""
    names = list(dict.fromkeys(name for of_log in node_us_of_logs.values() for name in of_log))
    traces: list[Trace] = [
        Mark.of_run(number_of_log).bars(
            label,
            [of_log.get(name, 0) / HOUR_US for name in names],
            [in_lines(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...", 24) for name in names],
            f"{label}: %{{y}}: %{{x:,.4~r}} node-hours",
            orientation="h",
        )
        for number_of_log, (label, of_log) in enumerate(node_us_of_logs.items())
    ]
    layout = {"barmode": "group", "xaxis": {"title": {"text": "node-hours"}}, "yaxis": dict(ROWS)}
    return PageFigure(traces, layout, height=140 + 24 * len(names) * len(node_us_of_logs))
