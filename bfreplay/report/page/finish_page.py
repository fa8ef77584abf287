"""The page of ``bfreplay finish``: one self-contained file with the answer, cards, the picture and tables."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path

from markupsafe import escape

from bfreplay import __version__
from bfreplay.report.figures.finish import FINISH
from bfreplay.report.page.headline import Card, warnings_card
from bfreplay.report.page.sections import page_table
from bfreplay.report.page.templates import check_report, page_parts, script, template, write_page
from bfreplay.result_folders.finish import AT_MOST, MORE, Finish, FinishRecord
from bfreplay.runs.shown_values import number
from bfreplay.wording import Column, ShownTable


def write_finish_report(folder: Path | str, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a folder of ``bfreplay finish``; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    record = Finish.load(folder).record
    text = template("finish.html.j2").render(
        title="When the search is over" if record.inputs.is_search else "When all jobs are done",
        record=record,
        figure=FINISH,
        picture=_picture(record),
        cards=_cards(record),
        cautions=[*record.warnings, *record.notes],
        starts=page_table(_starts(record)),
        dedicated=page_table(_dedicated(record)),
        files=[*record.inputs.events, *record.inputs.jobs],
        config=json.dumps(record.config.to_json(), indent=2, sort_keys=True),
        version=__version__,
        scripts=[script("unpack"), script("tables"), script("theme")],
        **page_parts(),
    )
    return write_page(text, file, overwrite=overwrite)


def _picture(record: FinishRecord) -> str:
    from bfreplay.report.figures.picture_files import write_figure

    buffer = BytesIO()
    write_figure(FINISH.draw_from(record), buffer, "svg")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _cards(record: FinishRecord) -> list[Card]:
    quantiles, worth, asked_nodes = record.quantiles, record.worth, record.config.dedicated
    is_known = quantiles.median_s is not None
    median_s = quantiles.median_s if is_known else quantiles.observed_s
    median = number("median_s", median_s, "seconds")
    cards = [Card("On idle nodes", median if is_known else escape("> ") + median, escape("median of the starts"))]
    if asked_nodes is not None:
        seconds = number("dedicated_s", record.dedicated_s(asked_nodes), "seconds")
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


def _starts(record: FinishRecord) -> ShownTable:
    first_us = record.inputs.window_us[0]
    is_relative = record.config.time_zone is None
    start = Column("start", "start, after", "seconds") if is_relative else Column("start", "start (UTC)", "time")
    columns = (
        start,
        Column("duration_s", "time", "seconds"),
        Column("is_done", "all done"),
        Column("run", "run in starts/runs/"),
    )
    rows = [
        (
            (start.time_us - first_us) / 1e6 if is_relative else start.time_us,
            start.duration_s,
            "yes" if start.is_done else "no, the log ends",
            start.run,
        )
        for start in record.starts
    ]
    return ShownTable("Starts in the log, with the time until all is done or the log ends", columns, rows)


def _dedicated(record: FinishRecord) -> ShownTable:
    columns = (Column("nodes", "dedicated nodes", "count"), Column("duration_s", "time", "seconds"))
    rows = [(dedicated_time.nodes, dedicated_time.duration_s) for dedicated_time in record.dedicated]
    return ShownTable("Time until all is done on dedicated nodes; empty: never", columns, rows)
