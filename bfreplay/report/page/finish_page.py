"""The page of ``bfreplay finish``: one self-contained file with the answer, cards, the picture and tables."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path

from markupsafe import escape

from bfreplay.report.figures.finish import FINISH
from bfreplay.report.page.headline import Card, warnings_card
from bfreplay.report.page.sections import result_page, section_of
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.result_folders.finish import AT_MOST, MORE, Finish, FinishInputs, FinishRecord
from bfreplay.runs.metric import number
from bfreplay.wording import Column, ShownTable, time_unit


def write_finish_report(folder: Path | str, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a folder of ``bfreplay finish``; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    record = Finish.load(folder).record
    unit = time_unit(record.quantiles.median_or_bound_s)
    other_files = () if record.against is None else record.against.jobs
    text = result_page(
        command="finish",
        title=title_of(record.inputs),
        answer=record.answer,
        cards=_cards(record, *unit),
        cautions=[*record.warnings, *record.notes],
        sections=[section_of(FINISH, record, [_starts(record, *unit), _dedicated(record, *unit)])],
        files=list(dict.fromkeys([*record.inputs.events, *record.inputs.jobs, *other_files])),
        config=json.dumps(record.config.to_json(), indent=2, sort_keys=True),
        versions=record.versions,
    )
    return write_page(text, file, overwrite=overwrite)


def title_of(inputs: FinishInputs) -> str:
    """Return the title with the name of the jobs' first file, and of the logs; inputs made in memory have none."""
    names = (dict.fromkeys(file.name for file in files) for files in (inputs.jobs[:1], inputs.events))
    jobs, log = map(", ".join, names)
    what, verb = ("the search", "is over") if inputs.is_search else ("all jobs", "are done")
    return f"When {what}{jobs and f' in {jobs}'} {verb} on the idle nodes{log and f' of {log}'}"


def _cards(record: FinishRecord, unit: str, unit_s: float) -> list[Card]:
    quantiles, worth, asked_nodes = record.quantiles, record.worth, record.config.dedicated
    median = number("median_s", quantiles.median_or_bound_s, "seconds")
    prefix = escape("> ") if quantiles.median_s is None else escape("")
    cards = [Card("On idle nodes", prefix + median, escape("median of the starts"))]
    if record.against is not None:
        other = record.against.quantiles
        time = number("other.median_s", other.median_or_bound_s, "seconds")
        cards.append(Card("Against", escape("> " if other.median_s is None else "") + time, escape(record.names[1])))
    if asked_nodes is not None:
        seconds = record.dedicated_s(asked_nodes)
        time = number("dedicated", seconds / unit_s, "amount") + f" {unit}" if seconds is not None else escape("never")
        cards.append(Card("On your own nodes", time, escape(f"{asked_nodes:,} dedicated")))
    sign = {AT_MOST: "≤ ", MORE: "> "}.get(worth.meaning, "")
    nodes = escape(sign) + number("worth.nodes", worth.nodes, "count")
    starts_done = number("starts.done", record.n_done, "count")
    return [
        *cards,
        Card("Worth", nodes, escape("dedicated nodes, to these jobs")),
        Card("Starts that ended", starts_done, escape(f"of {len(record.starts):,}, before the log did")),
        warnings_card(len(record.warnings) + len(record.notes)),
    ]


def _starts(record: FinishRecord, unit: str, unit_s: float) -> ShownTable:
    first_us, others = record.inputs.window_us[0], () if record.against is None else record.against.starts
    is_relative = record.config.time_zone is None
    start = Column("start", "start, after", "seconds") if is_relative else Column("start", "start (UTC)", "time")
    columns = (
        start,
        Column("duration", f"time, {unit}", "amount"),
        Column("is_done", "all done"),
        Column("run", "run in starts/runs/"),
        *([Column("other_duration", f"time of {record.names[1]}, {unit}", "amount")] if others else []),
    )
    rows = [
        (
            (start.time_us - first_us) / 1e6 if is_relative else start.time_us,
            start.duration_s / unit_s,
            "yes" if start.is_done else "no, the log ends",
            start.run,
            *([other.duration_s / unit_s] if other is not None else []),
        )
        for start, other in zip_longest(record.starts, others)
    ]
    return ShownTable("Starts in the log, with the time until all is done or the log ends", columns, rows)


def _dedicated(record: FinishRecord, unit: str, unit_s: float) -> ShownTable:
    columns = (Column("nodes", "dedicated nodes", "count"), Column("duration", f"time, {unit}", "amount"))
    rows = [
        (entry.nodes, None if entry.duration_s is None else entry.duration_s / unit_s) for entry in record.dedicated
    ]
    return ShownTable("Time until all is done on dedicated nodes; empty: never", columns, rows)
