"""``bfreplay describe``."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click

from bfreplay.commands.inputs import refuse_without_matplotlib, say
from bfreplay.commands.option_flags import PLACE, run_options, time_zone_option
from bfreplay.commands.progress import announce_compiling
from bfreplay.options import REQUIRED

_FORMATS = {"png": ("png",), "svg": ("svg",), "both": ("png", "svg")}


@click.command()
@run_options("events", "window", "pool", events={"default": REQUIRED})
@time_zone_option
@click.option("--pictures", type=PLACE, metavar="FOLDER", help="Draw pictures into FOLDER.")
@click.option("--picture-format", type=click.Choice(list(_FORMATS)), default="png", help="Format of the pictures.")
@click.option("--force", is_flag=True, help="Replace existing pictures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def describe(
    events: Path,
    window: tuple[str, str] | None,
    pool: str,
    tz: str | None,
    pictures: Path | None,
    picture_format: str,
    force: bool,
    as_json: bool,
) -> None:
    """Describe the idle nodes of EVENTS: amount, times, widths, lengths of idle intervals, joins and reclaims.

    Pictures (all or none): idle-over-time, hour-and-weekday, interval-lengths, widths, bursts.

    \b
    Examples:
      bfreplay describe sample
      bfreplay describe log.parquet --tz Europe/Paris --pictures idle
      bfreplay describe log.parquet --window 2021-02-12 2021-02-14 --json
    """
    from bfreplay.datasets import idleness as figures
    from bfreplay.datasets.idleness.idleness_text import render

    announce_compiling(quiet=False)
    endings = _FORMATS[picture_format]
    if pictures is not None:  # refused before the log is read
        refuse_without_matplotlib("--pictures", pictures)
        from bfreplay.report import check_idleness_pictures, draw_idleness

        check_idleness_pictures(pictures, endings, overwrite=force)
    idleness = figures.describe(events, window=window, tz=tz, pool=pool)
    if pictures is not None:
        for file in draw_idleness(idleness, pictures, endings, overwrite=force):
            say(f"wrote {file}", err=True)
    say(json.dumps(idleness.to_dict(), indent=1) if as_json else render(idleness), nl=as_json)
