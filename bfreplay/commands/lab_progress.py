"""What a person sees while formulations are compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

_STAGES = {
    "count": "Replaying to count decisions",
    "capture": "Replaying to take the sample",
    "warm-up": "Starting solvers",
    "solve": "Solving",
}


@contextmanager
def lab_progress(*, hidden: bool) -> Iterator[Callable[[str, int, int, str], None] | None]:
    """Bars on a terminal's stderr, one a stage: share done, time left, and which pair is at work."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<28}"), BarColumn(), TaskProgressColumn(),
        TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[what]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}
        shown = 0.0

        def finish() -> None:
            for task in tasks.values():
                bar.update(task, completed=next(t.total for t in bar.tasks if t.id == task), what="")

        def update(stage: str, done: int, total: int, what: str) -> None:
            nonlocal shown
            if stage not in tasks:
                finish()  # a stage begins when the one before has ended
                tasks[stage] = bar.add_task(_STAGES[stage], total=total, what=what)
            now = perf_counter()
            if now - shown >= 0.1 or stage in ("warm-up", "solve"):  # ten a second are enough for a person
                shown = now
                bar.update(tasks[stage], completed=done, what=what)

        yield update
        finish()
