"""``bfreplay describe``."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click

from bfreplay.commands.inputs import or_bundled, restricted
from bfreplay.commands.log_options import events_argument, window_option


@click.command()
@events_argument
@window_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def describe(events: Path, window: tuple[str, str] | None, as_json: bool) -> None:
    """How much is idle in EVENTS, in holes of what length, and how often nodes come and go.

    \b
    Examples:
      bfreplay describe sample
      bfreplay describe log.parquet
      bfreplay describe log.parquet --window 2021-02-12 2021-02-14 --json
    """
    from bfreplay import load_events
    from bfreplay.datasets.idleness import characterise
    from bfreplay.datasets.idleness.text import render

    idleness = characterise(restricted(load_events(or_bundled(events, "events")), window))
    click.echo(json.dumps(idleness.to_dict(), indent=1) if as_json else render(idleness))
