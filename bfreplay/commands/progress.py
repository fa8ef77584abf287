"""Progress of a running command on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bfreplay.commands.inputs import say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from bfreplay.experiments.prepared_run import PreparedRun
    from bfreplay.experiments.sweep import SweepProgress
    from bfreplay.result_folders.live import LiveStatus

BAR, SHARE, TIME_LEFT = "BarColumn", "TaskProgressColumn", "TimeRemainingColumn"
DOWNLOAD, SPEED = "DownloadColumn", "TransferSpeedColumn"
_Update = TypeVar("_Update")
_Shown = Callable[..., AbstractContextManager[_Update | None]]
_PAUSE_S = 0.1
"""Time between two updates of a bar."""


def warm_up_loops(*, quiet: bool, is_waiting: bool = False, **of_policy: Any) -> None:
    """Load or compile the hot loops before clocks start; with ``is_waiting`` compile them even if the work is small."""
    from bfreplay.runs.run_replay import compile_loops, warm_up

    announce_compiling(quiet=quiet)
    (compile_loops if is_waiting else warm_up)(**of_policy)


def announce_compiling(*, quiet: bool) -> None:
    """Print a notice if a loop of the running command has no machine code on this machine."""
    from bfreplay._compiling import notice_of_compiling

    if not quiet:
        click.get_current_context().with_resource(notice_of_compiling(_tell_of_compiling))


def _tell_of_compiling(is_interpreted: bool) -> None:
    first_use = "First use of these loops on this machine:"
    if is_interpreted:
        text = "they are interpreted now, and compiled in the background for the next run, which is faster"
    else:
        text = "compiling them, once, takes up to a minute ..."
    say(f"{first_use} {text}", err=True)


_LINE_S = 30.0
"""Time between two lines of progress in a file or pipe."""


class _Lines:
    """Progress as occasional lines on stderr, with the methods of rich's bar for ``terminal_bar(is_piped=True)``."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._task = SimpleNamespace(total=None, completed=0, fields={})
        self._begun = self._shown = perf_counter()

    def add_task(self, description: str, total: float | None, **fields: Any) -> TaskID:
        self._task.total, self._task.fields = total, fields
        return 0  # type: ignore[return-value]  # a number with a name of its own

    def update(self, task: TaskID, *, completed: float, total: float | None = None, **fields: Any) -> None:
        self._task.total, self._task.completed = total or self._task.total, completed
        self._task.fields |= fields
        now_s = perf_counter()
        if now_s - self._shown >= _LINE_S and self._task.total:
            self._shown = now_s
            say(self._line(completed / self._task.total, now_s - self._begun), err=True)

    def _line(self, share: float, elapsed_s: float) -> str:
        from bfreplay.wording import duration

        title, *words = (column.format(task=self._task) for column in self._columns if not column.endswith("Column"))
        if TIME_LEFT in self._columns and share:
            words.append(f"about {duration(elapsed_s * (1 / share - 1))} left")
        return f"{title}: {', '.join([f'{100 * share:.0f} % done', *words])}"


def terminal_bar(
    *columns: str, is_piped: bool = False, is_redrawn: bool = True
) -> Callable[[Callable[..., Iterator[_Update]]], _Shown[_Update]]:
    """Decorator for a generator that shows progress on a bar and yields a function to report it.

    The result is a context manager with one more argument, ``hidden``: if true, or if stderr is no terminal, it yields
    ``None``; with ``is_piped``, stderr that is no terminal gets lines. ``columns`` are texts, and names of rich's
    columns. Without ``is_redrawn`` the bar changes at its updates alone, for one that stays for days.
    """

    def decorate(show: Callable[..., Iterator[_Update]]) -> _Shown[_Update]:
        @contextmanager
        @wraps(show)
        def with_bar(*arguments: Any, hidden: bool) -> Iterator[_Update | None]:
            is_terminal = sys.stderr is not None and sys.stderr.isatty()  # None: closed by whoever started this
            if hidden or not (is_piped or is_terminal):
                yield None
                return
            if not is_terminal:
                yield from show(_Lines(columns), *arguments)
                return
            from rich import progress
            from rich.console import Console

            bar_columns = [
                getattr(progress, column)() if column.endswith("Column") else progress.TextColumn(column)
                for column in columns
            ]
            console = Console(stderr=True)
            with progress.Progress(*bar_columns, console=console, auto_refresh=is_redrawn) as bar:
                yield from show(bar, *arguments)

        return with_bar

    return decorate


def progress_of(run: PreparedRun, *, hidden: bool) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """Return the bar for a run: share of the window, or of the jobs if the run ends with them."""
    settings, log = run.settings, run.log
    if not settings.until_done and settings.measured is None:
        return replay_progress(log.window_start_us, log.window_end_us, hidden=hidden)
    from bfreplay.workload import JobSet

    all_jobs = (0, len(run.jobs)) if isinstance(run.jobs, JobSet) else None
    return jobs_progress(log.window_start_us, settings.measured or all_jobs, hidden=hidden)


@terminal_bar(
    "Replaying",
    BAR,
    "{task.fields[jobs]}",
    "day {task.fields[day]:,.1f}, {task.fields[events]:,} decisions, {task.fields[speed]:,.0f}/s",
)
def jobs_progress(bar: Progress, start_us: int, numbers: tuple[int, int] | None) -> Iterator[JobsProgress]:
    """Show a bar for a run that ends with its jobs: jobs done, time reached, decisions per second.

    ``numbers`` is the range of the measured jobs; ``None`` if their number is unknown.
    """
    jobs = JobsProgress(bar, start_us, numbers)
    yield jobs
    jobs.show()


class JobsProgress:
    """Progress of a replay, shown in jobs.

    Parameters
    ----------
    bar
        Bar to update.
    start_us
        Start of the window.
    numbers
        Range of the measured jobs; ``None`` for all.
    """

    def __init__(self, bar: Progress, start_us: int, numbers: tuple[int, int] | None) -> None:
        self._bar = bar
        self._numbers = None if numbers is None else range(*numbers)
        self._task = bar.add_task("replay", total=None, jobs="", day=0.0, events=0, speed=0.0)
        self._start_us = self._now_us = start_us
        self._n_left = self._n_events = 0
        self._begun = perf_counter()
        self._shown = 0.0

    def __call__(self, now_us: int, events: int) -> None:
        """Report the time that the replay has reached."""
        self._now_us, self._n_events = now_us, events
        if perf_counter() - self._shown >= _PAUSE_S:
            self.show()

    def job_left(self, number: int) -> None:
        """Report that a job has ended."""
        self._n_left += self._numbers is None or number in self._numbers

    def show(self) -> None:
        """Update the bar; it has no length before the end of the first job."""
        self._shown = perf_counter()
        total = len(self._numbers) if self._numbers is not None and self._n_left else None
        of_all = "" if total is None else f" of {total:,}"
        jobs = f"{self._n_left:,}{of_all} jobs" if self._n_left else ""
        self._bar.update(
            self._task,
            total=total,
            completed=self._n_left,
            jobs=jobs,
            day=(self._now_us - self._start_us) / 86_400e6,
            events=self._n_events,
            speed=self._n_events / max(self._shown - self._begun, 1e-9),
        )


@terminal_bar(
    "Replaying", BAR, SHARE, "{task.fields[events]:,} events, {task.fields[speed]:,.0f} events/s", "left", TIME_LEFT
)
def replay_progress(bar: Progress, start_us: int, end_us: int) -> Iterator[Callable[[int, int], None]]:
    """Show a bar: share of the window, decisions per second, time left."""
    task = bar.add_task("replay", total=end_us - start_us, events=0, speed=0.0)
    start_s = perf_counter()
    shown_s, latest = 0.0, 0
    first: int | None = None  # decisions of a run that is resumed

    def update(now_us: int, events: int) -> None:
        nonlocal shown_s, latest, first
        now_s, latest = perf_counter(), events
        first = events if first is None else first
        if now_s - shown_s >= _PAUSE_S:
            shown_s = now_s
            bar.update(task, completed=now_us - start_us, events=events, speed=(events - first) / (now_s - start_s))

    yield update
    duration_s = max(perf_counter() - start_s, 1e-9)
    bar.update(task, completed=end_us - start_us, events=latest, speed=(latest - (first or 0)) / duration_s)


@terminal_bar("{task.fields[now]}", is_redrawn=False)
def follow_progress(bar: Progress) -> Iterator[Callable[[LiveStatus], None]]:
    """Show one line for a cluster that is followed: nodes that are idle, startable and held at the last answer."""
    task = bar.add_task("follow", total=None, now="")

    def update(status: LiveStatus) -> None:
        held = sum(job.n_nodes for job in status.jobs)
        idle = f"{status.idle:,} of {status.n_nodes:,} nodes idle, {status.startable:,} startable"
        states = "no answer" if status.problem else idle
        at = status.time[:19].replace("T", " ")
        bar.update(task, now=f"{at} UTC: {states}; training would hold {held:,}", refresh=True)

    yield update


_STAGES = {
    "count": "Replaying to count decisions",
    "capture": "Replaying to take the sample",
    "warm-up": "Starting solvers",
    "solve": "Solving",
}


@terminal_bar("{task.description:<28}", BAR, SHARE, "left", TIME_LEFT, "{task.fields[detail]}")
def lab_progress(bar: Progress) -> Iterator[Callable[[str, int, int, str], None]]:
    """Bars on a terminal's stderr, one a stage: share done, time left, and the current pair."""
    tasks: dict[str, TaskID] = {}
    shown_s = 0.0

    def finish() -> None:
        for task in tasks.values():
            bar.update(task, completed=bar.tasks[bar.task_ids.index(task)].total, detail="")

    def update(stage: str, n_done: int, total: int, detail: str) -> None:
        nonlocal shown_s
        if stage not in tasks:
            finish()
            tasks[stage] = bar.add_task(_STAGES[stage], total=total, detail=detail)
        now_s = perf_counter()
        if now_s - shown_s >= _PAUSE_S or stage in ("warm-up", "solve"):
            shown_s = now_s
            bar.update(tasks[stage], completed=n_done, detail=detail)

    yield update
    finish()


@terminal_bar("Sweeping", BAR, "MofNCompleteColumn", "{task.fields[state]}", "TimeElapsedColumn", is_piped=True)
def sweep_progress(bar: Progress) -> Iterator[Callable[[SweepProgress], None]]:
    """A bar on a terminal's stderr: runs done, failed and reused, workers, time left."""
    from bfreplay.wording import count, duration

    task: TaskID | None = None

    def update(state: SweepProgress) -> None:
        nonlocal task
        parts = [f"{state.n_workers} at work"]
        if state.n_failed:
            parts.append(f"{state.n_failed} failed")
        if state.n_reused:
            parts.append(f"{state.n_reused} reused")
        if state.left_s is not None:
            parts.append(f"{duration(state.left_s)} left")
        if task is None:
            task = bar.add_task("sweep", total=state.n_runs, state="")
            if state.left_s is not None:
                runs = count(state.n_runs - state.n_reused, "run")
                say(f"{runs}, {state.n_workers} at a time: about {duration(state.left_s)}", err=True)
        bar.update(
            task,
            total=state.n_runs,
            completed=state.n_reused + state.n_finished + state.n_failed,
            state=", ".join(parts),
        )

    yield update
