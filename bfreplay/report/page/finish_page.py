"""The page of ``bfreplay finish``: one self-contained file with the answer, cards, the picture and tables."""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup, escape

from bfreplay.report.figures.finish import FINISH, FinishTimes, finish_times, start_words, starts_page
from bfreplay.report.page.headline import Card, warnings_card
from bfreplay.report.page.sections import Section, page_table, result_page, section_of
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.result_folders.finish import AT_MOST, MORE, Finish, FinishRecord
from bfreplay.result_folders.tuning import InputFile
from bfreplay.runs.shown_values import exact, number
from bfreplay.wording import Column, ShownTable


def write_finish_report(folder: Path | str, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a folder of ``bfreplay finish``; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    record = Finish.load(folder).record
    times = finish_times(record)
    starts, dedicated = _starts(record, times), _dedicated(record, times)
    has_calendar = times.weekday.size > 0
    sections = [section_of(FINISH, record, [dedicated] if has_calendar else [dedicated, starts])]
    if has_calendar:
        title, figure = "Weekday and hour of the start", starts_page(record)
        sections.append(Section("starts", title, start_words(times), figure, [page_table(starts)]))
    text = result_page(
        command="finish",
        title=_title(record),
        answer=record.answer,
        cards=_cards(record, times),
        cautions=[*record.warnings, *record.notes],
        sections=sections,
        files=[*record.inputs.events, *record.inputs.jobs],
        config=json.dumps(record.config.to_json(), indent=2, sort_keys=True),
        versions=record.versions,
    )
    return write_page(text, file, overwrite=overwrite)


def _title(record: FinishRecord) -> str:
    """Title with the names of the jobs and of the log."""
    log, jobs = _names(record.inputs.events), _names(record.inputs.jobs)
    if record.inputs.is_search:
        return f"When the search in {jobs} is over on the idle nodes of {log}"
    return f"When {f'all jobs of {jobs}' if jobs else 'all jobs'} are done on the idle nodes of {log}"


def _names(files: list[InputFile]) -> str:
    return ", ".join(dict.fromkeys(file.name for file in files))


def _cards(record: FinishRecord, times: FinishTimes) -> list[Card]:
    quantiles, worth, asked_nodes = record.quantiles, record.worth, record.config.dedicated
    is_known = quantiles.median_s is not None
    median = _time("median_s", quantiles.median_s if is_known else quantiles.observed_s, times)
    cards = [Card("On idle nodes", median if is_known else escape("> ") + median, escape("median of the starts"))]
    if asked_nodes is not None:
        seconds = _time("dedicated_s", record.dedicated_s(asked_nodes), times)
        cards.append(Card("On your own nodes", seconds, escape(f"{asked_nodes:,} dedicated")))
    sign = {AT_MOST: "≤ ", MORE: "> "}.get(worth.meaning, "")
    nodes = escape(sign) + number("worth.nodes", worth.nodes, "count")
    starts_done = number("starts.done", record.n_done, "count")
    return [
        *cards,
        Card("Worth", nodes, escape("dedicated nodes, to these jobs")),
        Card("Starts that ended", starts_done, escape(f"of {len(record.starts):,}, before the log did")),
        warnings_card(len(record.warnings) + len(record.notes)),
    ]


def _time(key: str, seconds: float | None, times: FinishTimes) -> Markup:
    """Return ``number`` with a time in the unit of all times, or ``never``."""
    text = "never" if seconds is None else times.text(seconds)
    return Markup('<data value="{}" data-key="{}">{}</data>').format(exact(seconds), key, text)


def _starts(record: FinishRecord, times: FinishTimes) -> ShownTable:
    first_us = record.inputs.window_us[0]
    is_relative = record.config.time_zone is None
    start = Column("start", "start, after", "seconds") if is_relative else Column("start", "start (UTC)", "time")
    columns = (
        start,
        Column("duration", f"time, {times.unit}", "amount"),
        Column("is_done", "all done"),
        Column("run", "run in starts/runs/"),
    )
    rows = [
        (
            (start.time_us - first_us) / 1e6 if is_relative else start.time_us,
            start.duration_s / times.unit_s,
            "yes" if start.is_done else "no, the log ends",
            start.run,
        )
        for start in record.starts
    ]
    return ShownTable("Starts in the log, with the time until all is done or the log ends", columns, rows)


def _dedicated(record: FinishRecord, times: FinishTimes) -> ShownTable:
    columns = (Column("nodes", "dedicated nodes", "count"), Column("duration", f"time, {times.unit}", "amount"))
    rows = [
        (entry.nodes, None if entry.duration_s is None else entry.duration_s / times.unit_s)
        for entry in record.dedicated
    ]
    return ShownTable("Time until all is done on dedicated nodes; empty: never", columns, rows)
