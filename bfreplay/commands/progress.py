"""What a person sees while a command works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from bfreplay.policies import Policy


def warm_up_loops(*, quiet: bool, policy: Policy | None = None) -> None:
    """Compile the hot loops; on the first run, which takes seconds, say what is going on.

    ``policy`` is one that has loops of its own; it is closed.
    """
    from bfreplay.replay.warmup import warm_up

    if quiet:
        warm_up(policy)
        return
    notice = Timer(1.5, lambda: click.echo("Compiling the inner loops for this machine (first run only) ...", err=True))
    notice.daemon = True
    notice.start()
    try:
        warm_up(policy)
    finally:
        notice.cancel()


@contextmanager
def replay_progress(start_us: int, end_us: int, *, hidden: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal's stderr: share of the window, decisions per second, time left."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("Replaying"), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[events]:,} events, {task.fields[speed]:,.0f} events/s"),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("replay", total=end_us - start_us, events=0, speed=0.0)
        started = perf_counter()
        shown, latest = 0.0, 0

        def update(now_us: int, events: int) -> None:
            nonlocal shown, latest
            now, latest = perf_counter(), events
            if now - shown >= 0.1:  # ten a second are enough for a person
                shown = now
                bar.update(task, completed=now_us - start_us, events=events, speed=events / (now - started))

        yield update
        elapsed = max(perf_counter() - started, 1e-9)
        bar.update(task, completed=end_us - start_us, events=latest, speed=latest / elapsed)
