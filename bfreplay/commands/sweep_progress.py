"""What a person sees while a sweep works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bfreplay.experiments.sweep import SweepProgress


@contextmanager
def sweep_progress(*, hidden: bool) -> Iterator[Callable[[SweepProgress], None] | None]:
    """A bar on a terminal's stderr: runs done, failed and there before, workers, time left."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    from bfreplay.wording import duration

    columns = (
        TextColumn("Sweeping"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task: TaskID | None = None

        def update(now: SweepProgress) -> None:
            nonlocal task
            said = [f"{now.n_workers} at work"]
            if now.n_failed:
                said.append(f"{now.n_failed} failed")
            if now.n_reused:
                said.append(f"{now.n_reused} there before")
            if now.left_s is not None:
                said.append(f"{duration(now.left_s)} left")
            if task is None:
                task = bar.add_task("sweep", total=now.n_runs, said="")
            bar.update(task, completed=now.n_reused + now.n_finished + now.n_failed, said=", ".join(said))

        yield update
