"""``bfreplay follow``: a cluster as it runs, in shadow mode."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from bfreplay import checks
from bfreplay.commands.inputs import note, say
from bfreplay.commands.option_flags import PLACE, RARE, adding, run_options
from bfreplay.commands.progress import announce_compiling, follow_progress
from bfreplay.datasets.times import US
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import LOG, OPTIONS

if TYPE_CHECKING:
    from bfreplay.datasets.snapshots.state_table import StateTable
    from bfreplay.live.feed import Feed
    from bfreplay.live.follower import Follower
    from bfreplay.result_folders.live import LiveStatus

_LATEST_S = 2.0
"""By how much longer than a poll decisions lag by default: Slurm's times are whole seconds, and known a poll later."""

_NOT_FOLLOWED = ("measure", "batch_jobs", "until_done")
_OF_RUN = tuple(
    name
    for name, declaration in OPTIONS.items()
    if name == "pool" or (declaration.group != LOG and name not in _NOT_FOLLOWED)
)
"""Options of a run that a follower has: it has a log of its own, without end, whose batch jobs are not known."""


def _option(*names: str, panel: str = "Following", **arguments: Any) -> Callable[[Any], Any]:
    return click.option(*names, panel=panel, **arguments)


_common = adding(
    _option(
        "--out",
        "folder",
        type=PLACE,
        required=True,
        help="Folder of the log, the run so far and the status of now; the folder of an earlier follower is resumed.",
    ),
    _option("--poll", default="10s", show_default=True, metavar="TIME", help="Time from one poll to the next."),
    _option(
        "--hold-back",
        metavar="TIME",
        help="By how much decisions lag behind polls, so that exact times which are known a poll later still fit.  "
        "[default: a poll and 2 s]",
    ),
    _option("--for", "duration", metavar="TIME", help="Stop after so long.  [default: on Ctrl-C or SIGTERM]"),
    _option(
        "--page",
        type=PLACE,
        help="HTML page of the status of now to write after every poll, for any web server. It reloads itself.",
    ),
    _option(
        "--metrics",
        type=PLACE,
        help="File of OpenMetrics text to write after every poll, for the folder of the node exporter (NAME.prom).",
    ),
    _option(
        "--checkpoint-every",
        default="10min",
        metavar="TIME",
        help="Time from one checkpoint, with its run folder, to the next.",
    ),
    _option("--quiet", is_flag=True, help="Print no messages."),
    run_options(*_OF_RUN, is_grouped=True),
)

_table_option = _option(
    "--states",
    type=PLACE,
    metavar="FILE",
    help="Table of the words of node states, as --print-states prints it.  [default: the built-in table]",
)
_timeout_option = _option(
    "--timeout",
    panel=RARE,
    default="5s",
    metavar="TIME",
    help="Longest time that a command may take; then the states are unknown.",
)


@click.group()
def follow() -> None:
    """Follow a cluster as it runs: what is idle now and why, and what would training get? Nothing is done to it.

    Decisions are made as in a replay, on the nodes where a preemptible worker could start (--pool idle: planned and
    reserved nodes too). The folder has the log, which is a log like any other, and the run of it.

    \b
    Examples:
      bfreplay follow slurm --jobs jobs.toml --out live --page /var/www/html/idle.html
      bfreplay follow slurm --jobs jobs.toml --out live --lends partition=preempt \\
        --metrics /var/lib/node_exporter/bfreplay.prom
      bfreplay follow command --jobs jobs.toml --out live -- pbsnodes -a
      bfreplay follow file growing.csv --jobs jobs.toml --out live
      bfreplay compare logs live/log.csv accounted.parquet
    """


def _print_states(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        from bfreplay.datasets.snapshots.state_table import StateTable

        say(StateTable.default().to_text(), nl=False)
        context.exit()


@follow.command()
@adding(
    _option(
        "--lends",
        multiple=True,
        metavar="partition=NAME",
        help="Partition of preemptible jobs: nodes that only such jobs use count as idle; repeatable.",
    ),
    _table_option,
    _option(
        "--print-states",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_states,
        help="Print the table of the words of node states, with explanations, and stop.",
    ),
    _timeout_option,
    _common,
)
@click.pass_context
def slurm(context: click.Context, /, lends: tuple[str, ...], states: Path | None, timeout: str, **options: Any) -> None:
    """Follow Slurm by 'scontrol show node' and 'squeue', one call of each a poll, as any user.

    After a time that nobody polled, the log is filled from sacct and sacctmgr. Without the right to see the jobs of
    others (PrivateData) the states of nodes alone are followed.

    \b
    Examples:
      bfreplay follow slurm --jobs jobs.toml --out live --page idle.html
      bfreplay follow slurm --jobs jobs.toml --out live --poll 1s --for 5min
      bfreplay follow slurm --print-states > states.toml
    """
    from bfreplay.datasets.snapshots.changes import lent_partitions
    from bfreplay.live.feed import PolledStates
    from bfreplay.live.sources import SlurmSource

    partitions = lent_partitions(lends)
    source = SlurmSource(_table(states), checks.length_of_time("timeout", timeout, 0.0), _now_us, partitions)
    _follow(context, lambda poll_s: PolledStates(source, _now_us, poll_s, partitions), options)


@follow.command()
@click.argument("words", nargs=-1, required=True, metavar="-- CMD...")
@adding(_table_option, _timeout_option, _common)
@click.pass_context
def command(
    context: click.Context, /, words: tuple[str, ...], states: Path | None, timeout: str, **options: Any
) -> None:
    """Follow any site by a command CMD that prints a line 'node state [since]' for every node.

    What 'scontrol show node', 'sinfo --json' and 'pbsnodes' print is read too. There is no accounting: a time that
    nobody polled is unknown.

    \b
    Examples:
      bfreplay follow command --jobs jobs.toml --out live -- pbsnodes -a
      bfreplay follow command --jobs jobs.toml --out live --poll 30s -- ssh login1 ./node-states.sh
    """
    from bfreplay.live.feed import PolledStates
    from bfreplay.live.sources import CommandSource

    source = CommandSource(words, _table(states), checks.length_of_time("timeout", timeout, 0.0), _now_us)
    _follow(context, lambda poll_s: PolledStates(source, _now_us, poll_s), options)


@follow.command()
@click.argument("log", type=PLACE)
@adding(_common)
@click.pass_context
def file(context: click.Context, /, log: Path, **options: Any) -> None:
    """Follow a log that another program extends: a CSV of time, node and state, with the states of all nodes first.

    \b
    Examples:
      bfreplay follow file growing.csv --jobs jobs.toml --out live
    """
    from bfreplay.live.growing_file import GrowingFile

    _follow(context, lambda _: GrowingFile(log), options)


def _now_us() -> int:
    return time_ns() // 1000


def _table(file: Path | None) -> StateTable:
    from bfreplay.datasets.snapshots.state_table import StateTable

    return StateTable.default() if file is None else StateTable.load(file)


def _follow(context: click.Context, feed_of: Callable[[float], Feed], options: dict[str, Any]) -> None:
    """Follow until a signal, or as long as --for says."""
    from bfreplay.live.follower import Follower, FollowSettings

    if options["jobs"] is None:
        raise click.UsageError("Missing option '--jobs'.", context)
    poll_s = checks.length_of_time("poll", options.pop("poll"), 0.0)
    hold_back, duration, quiet = (options.pop(name) for name in ("hold_back", "duration", "quiet"))
    hold_back_s = poll_s + _LATEST_S if hold_back is None else checks.length_of_time("hold-back", hold_back, 0.0)
    for name, seconds in (("--poll", poll_s), ("--hold-back", hold_back_s)):
        if not seconds >= 1 / US:
            raise InputError(f"{name} is no time", column=name, value=seconds, expected="more than 0 s")
    for_s = None if duration is None else checks.length_of_time("for", duration, 0.0)
    every_s = checks.length_of_time("checkpoint-every", options.pop("checkpoint_every"), 0.0)
    folder, publish = options.pop("folder"), _publishers(options.pop("page"), options.pop("metrics"))
    given = {
        name: value
        for name, value in options.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name != "jobs"
    }
    announce_compiling(quiet=quiet)
    tell = (lambda text: None) if quiet else note
    settings = FollowSettings(poll_s, hold_back_s, every_s)
    with _stopping() as stop:
        feed = feed_of(poll_s)
        with Follower(feed, folder, options["jobs"], given, settings, tell=tell, publish=publish) as follower:
            tell(f"Following by {feed.name} into {folder}; Ctrl-C stops.")
            _poll_until(stop, follower, feed, (poll_s, for_s), tell, quiet=quiet)
            follower.stop()
    places = f"The log: {folder / 'log.csv'}; its run: {folder / 'run'}"
    tell(f"Stopped. {places if follower.has_log else 'Nothing was final yet: there is no log.'}")


def _poll_until(
    stop: Event,
    follower: Follower,
    feed: Feed,
    times_s: tuple[float, float | None],
    tell: Callable[[str], None],
    *,
    quiet: bool,
) -> None:
    """Poll, at least once, until ``stop``, or as long as the second of the times says."""
    poll_s, for_s = times_s
    n_spans, n_notes, problem = len(feed.spans), 0, ""
    next_s = monotonic()
    end_s = None if for_s is None else next_s + for_s
    with follow_progress(hidden=quiet) as show:
        while not stop.is_set():
            status = follower.poll()
            for span in feed.spans[n_spans:]:
                tell(f"{span.kind} from {span.start} to {span.end}: {span.words}.")
            for words in feed.notes[n_notes:]:
                tell(f"{words}.")
            n_spans, n_notes = len(feed.spans), len(feed.notes)
            if feed.problem != problem:
                problem = feed.problem
                tell(f"The states are not known: {problem}." if problem else "The states are known again.")
            if show is not None:
                show(status)
            next_s = max(next_s + poll_s, monotonic())
            stop.wait(min(next_s, end_s or next_s) - monotonic())
            if end_s is not None and monotonic() >= end_s:
                return


def _publishers(page: Path | None, metrics: Path | None) -> list[Callable[[LiveStatus], object]]:
    from bfreplay.outputs import remove_leftovers, write_whole

    publish: list[Callable[[LiveStatus], object]] = []
    for file in filter(None, (page, metrics)):
        if not file.parent.is_dir():
            fix = "make the folder first"
            raise InputError("the folder of the output does not exist", file=file, value=str(file.parent), fix=fix)
        remove_leftovers(file)  # of a killed follower, once: writes after every poll do not look for them
    if page is not None:
        from bfreplay.report.page.live_page import write_live_page
        from bfreplay.report.page.templates import check_report

        check_report(page, overwrite=True)
        publish.append(lambda status: write_live_page(status, page))
    if metrics is not None:
        from bfreplay.live.status import metrics_text

        if metrics.suffix != ".prom":
            raise InputError("metrics are in a .prom file", file=metrics, value=metrics.name, expected="NAME.prom")
        publish.append(lambda status: write_whole(metrics, metrics_text(status)))
    return publish


@contextmanager
def _stopping() -> Iterator[Event]:
    """Let a first Ctrl-C or SIGTERM stop after the poll that is under way; a second one ends it at once."""
    stop = Event()

    def handle(number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    handlers = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
