"""``bfreplay describe``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import rich_click as click

from bfreplay.commands.inputs import refuse_without_matplotlib, say
from bfreplay.commands.option_flags import PLACE, log_parts
from bfreplay.commands.progress import announce_compiling
from bfreplay.errors import InputError

_FORMATS = {"png": ("png",), "svg": ("svg",), "both": ("png", "svg")}


@click.command()
@click.argument("events", metavar="EVENTS...", nargs=-1, required=True)
@log_parts()
@click.option("--pictures", type=PLACE, metavar="FOLDER", help="Draw pictures into FOLDER.")
@click.option("--picture-format", type=click.Choice(list(_FORMATS)), default="png", help="Format of the pictures.")
@click.option("--force", is_flag=True, help="Replace existing pictures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def describe(
    events: tuple[str, ...],
    pictures: Path | None,
    picture_format: str,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Describe the idle nodes of EVENTS: amount, times, widths, lengths of idle intervals, joins and reclaims.

    --by also says where or when they are idle, --batch-jobs why. Several logs, such as those of two months, are shown
    side by side, with what changed. 'bfreplay report EVENTS...' writes the same as a page.

    Pictures (all or none): idle-over-time, hour-and-weekday, interval-lengths, widths, bursts.

    \b
    Examples:
      bfreplay describe sample
      bfreplay describe log.parquet --tz Europe/Paris --pictures idle
      bfreplay describe log.parquet --window 2021-02-12 2021-02-14 --json
      bfreplay describe log.parquet --by partition --batch-jobs batch_jobs.parquet
      bfreplay describe june.parquet july.parquet --partition gpu
    """
    from bfreplay.datasets.idleness.side_by_side import SideBySide

    announce_compiling(quiet=False)
    endings = _FORMATS[picture_format]
    if pictures is not None:  # refused before the log is read
        if len(events) > 1:
            fix = "give one log, or write a page: bfreplay report EVENTS..."
            raise InputError("--pictures are of one log", value=len(events), fix=fix)
        refuse_without_matplotlib("--pictures", pictures)
        from bfreplay.report import check_idleness_pictures, draw_idleness

        check_idleness_pictures(pictures, endings, overwrite=force)
    described = SideBySide.describe(events, **options)
    if pictures is not None:
        for file in draw_idleness(described.logs[0], pictures, endings, overwrite=force):
            say(f"wrote {file}", err=True)
    say(json.dumps(described.to_dict(), indent=1) if as_json else described.to_text(), nl=as_json)
