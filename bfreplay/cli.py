"""The command line: parse, call, print."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any, Literal

import rich_click as click
from click.core import ParameterSource

from bfreplay import __version__, defaults
from bfreplay.errors import BfreplayError, InputError, OutputExistsError, SolverUnavailableError

_BAD_INPUT = (InputError, OutputExistsError, SolverUnavailableError)
_CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}


class _Group(click.RichGroup):
    """Turns errors into messages: exit code 2 for input, 3 for anything else, 130 and 143 for Ctrl-C and SIGTERM."""

    def invoke(self, ctx: click.Context) -> Any:
        # batch systems end a job by SIGTERM: leave as on Ctrl-C, with nothing half-written and no worker behind
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))  # so that package.module:Class may lie where the user stands
        try:
            return super().invoke(ctx)
        except BfreplayError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2 if isinstance(error, _BAD_INPUT) else 3)
        except (KeyboardInterrupt, SystemError) as error:
            # numba wraps a Ctrl-C that meets compiled code in a SystemError
            if not any(isinstance(e, KeyboardInterrupt) for e in (error, error.__cause__, error.__context__)):
                raise
            click.echo("Aborted.", err=True)
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            raise  # click leaves quietly
        except OSError as error:
            where = f"\n  file:     {error.filename}" if error.filename else ""
            click.echo(f"Error: {error.strerror or error}{where}", err=True)
            sys.exit(3)


@click.group(cls=_Group, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="bfreplay")
def main() -> None:
    """Replay a batch-scheduler log into an exact allocator of elastic training jobs.

    \b
    What would idle nodes give?   bfreplay describe EVENTS
    What would training get?      bfreplay replay EVENTS --jobs JOBS --out RUN
    Which solvers work here?      bfreplay solvers
    """


@main.command()
@click.argument("events", type=click.Path(path_type=Path))
@click.option(
    "--jobs",
    "jobs_file",
    type=click.Path(path_type=Path),
    required=True,
    help="Job set: CSV, Parquet, TOML, or a published table of bounds (.pkl).",
)
@click.option(
    "--curves",
    "curves_file",
    type=click.Path(path_type=Path),
    help="Scalability curves that the jobs refer to: CSV, Parquet, TOML, or the published table (.pkl).",
)
@click.option(
    "--policy",
    default="bftrainer",
    help="Who decides the node counts: 'bftrainer', 'equal-share', or package.module:Class.",
)
@click.option(
    "--t-fwd",
    "t_fwd_s",
    type=float,
    default=defaults.T_FWD_S,
    help="Forward-looking time in seconds: how long a decision is expected to last.",
)
@click.option(
    "--max-parallel",
    type=click.IntRange(min=1),
    default=defaults.MAX_PARALLEL,
    help="Most jobs at once; the others queue.",
)
@click.option(
    "--solver",
    default="exact",
    help="'exact', a MILP back end such as 'cbc', or package.module:Class. See 'bfreplay solvers'.",
)
@click.option(
    "--formulation",
    default=None,
    help="MILP formulation for a back end (default: choices); 'published' also for the exact solver.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=defaults.TIME_LIMIT_S,
    help="Seconds a MILP back end may take for one decision.",
)
@click.option(
    "--fallback",
    type=click.Choice(["exact", "keep"]),
    default="exact",
    help="When a back end fails: ask the exact solver, or keep all counts as the published program does.",
)
@click.option(
    "--semantics",
    type=click.Choice(["continuous", "published"]),
    default="continuous",
    help="Continuous time, or the published program's clock and accounting.",
)
@click.option(
    "--window",
    nargs=2,
    metavar="START END",
    default=None,
    help="Part of the log to replay: two ISO-8601 times (UTC) or epoch seconds.  [default: the whole log]",
)
@click.option(
    "--unlimited-work",
    is_flag=True,
    help="The first MAX-PARALLEL jobs, all there from the start, never done: how BFTrainer measures U.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="Of the random first map under --semantics published."
)
@click.option(
    "--efficiency/--no-efficiency",
    "with_efficiency",
    default=True,
    help="Also replay the jobs on dedicated nodes and report U.",
)
@click.option("--record-nodes", is_flag=True, help="Also write who held which node when (nodes.parquet).")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Run folder to write.  [default: write nothing]"
)
@click.option("--force", is_flag=True, help="Replace the run folder if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the run's record as JSON instead of the summary.")
@click.option("--quiet", is_flag=True, help="No progress bar, no notes.")
@click.pass_context
def replay(
    context: click.Context,
    events: Path, jobs_file: Path, curves_file: Path | None, policy: str, t_fwd_s: float, max_parallel: int,
    solver: str, formulation: str | None, time_limit_s: float, fallback: Literal["exact", "keep"], semantics: str,
    window: tuple[str, str] | None, unlimited_work: bool, seed: int, with_efficiency: bool, record_nodes: bool,
    out: Path | None, force: bool, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Replay JOBS on the idle nodes of EVENTS and report what they got.

    EVENTS is a log of nodes becoming idle and being reclaimed: Parquet, CSV, or the published node-state matrix
    (.pkl, .tar.gz). The word 'sample' stands for the bundled log, and for its jobs after --jobs.

    \b
    Examples:
      bfreplay replay sample --jobs sample
      bfreplay replay log.parquet --jobs jobs.toml --out run
      bfreplay replay log.parquet --jobs jobs.csv --t-fwd 300 --max-parallel 70 --json
      bfreplay replay matrix.tar.gz --jobs bounds.pkl --curves curves.pkl --unlimited-work
      bfreplay replay log.csv --jobs jobs.toml --window 2021-02-12 2021-02-14T12:00 --solver cbc
    """
    started = perf_counter()
    from bfreplay import load_events, load_jobs
    from bfreplay.milp.catalogue import solver_of
    from bfreplay.policies.catalogue import policy_of
    from bfreplay.replay import ReplaySettings, Semantics, replay_log
    from bfreplay.replay.summary_text import render

    if not quiet:
        _note_options_without_effect(context)
    _refuse_existing_early(out, force)
    log = _restricted(load_events(_or_bundled(events, "events")), window)
    jobs = load_jobs(_or_bundled(jobs_file, "jobs"), curves_file)
    chosen = policy_of(
        policy, t_fwd_s=t_fwd_s, solver=solver_of(solver, formulation, time_limit_s=time_limit_s, fallback=fallback)
    )
    loaded_s = perf_counter() - started
    _warm_up(quiet=quiet)
    with _progress_bar(log.window_start_us, log.window_end_us, hidden=quiet) as progress:
        result = replay_log(
            log, jobs, chosen,
            ReplaySettings(max_parallel, Semantics(semantics), seed, record_nodes),
            unlimited_work=unlimited_work, with_efficiency=with_efficiency, dedicated_t_fwd_s=t_fwd_s,
            with_tables=False, out=out, overwrite=force, progress=progress,
            session={"command": shlex.join(["bfreplay", *sys.argv[1:]]), "load_s": loaded_s},
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps({**result.record, "session": result.session}, indent=1, sort_keys=True, allow_nan=False))
    else:
        click.echo(render(result))


@main.command()
@click.argument("events", type=click.Path(path_type=Path))
@click.option(
    "--window",
    nargs=2,
    metavar="START END",
    default=None,
    help="Part of the log: two ISO-8601 times (UTC) or epoch seconds.  [default: the whole log]",
)
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

    idleness = characterise(_restricted(load_events(_or_bundled(events, "events")), window))
    click.echo(json.dumps(idleness.to_dict(), indent=1) if as_json else render(idleness))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def solvers(as_json: bool) -> None:
    """Which solvers work on this machine, with which formulations, and why the others do not.

    \b
    Example:
      bfreplay solvers
    """
    from dataclasses import asdict

    from bfreplay.milp.catalogue import solver_entries

    entries = solver_entries()
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries], indent=1))
        return
    for entry in entries:
        click.echo(f"{entry.name:<10} {'works' if not entry.problem else 'does not work here: ' + entry.problem}")
        click.echo(f"{'':<10} formulations: {', '.join(entry.formulations)}; licence: {entry.licence}")


def _or_bundled(path: Path, what: str) -> Path:
    """The word ``sample`` stands for the bundled file, unless a file of that name is there."""
    if path != Path("sample") or path.exists():
        return path
    from bfreplay.datasets import bundled

    return bundled.sample_events_path() if what == "events" else bundled.sample_jobs_path()


def _restricted(log: Any, window: tuple[str, str] | None) -> Any:
    """The part of ``log`` between two times as the user typed them."""
    if window is None:
        return log
    from bfreplay.datasets.times import EXPECTED_TIME, parse_time_us

    bounds = []
    for text in window:
        try:
            bounds.append(parse_time_us(text))
        except ValueError as error:
            raise InputError(f"--window: {error}", value=text, expected=EXPECTED_TIME) from error
    return log.between(*bounds)


def _refuse_existing_early(out: Path | None, force: bool) -> None:
    """Say so before the replay, not after it."""
    if out is not None:
        from bfreplay.replay.folder import check_target

        check_target(out, overwrite=force)


def _note_options_without_effect(context: click.Context) -> None:
    """Say which of the options that the user gave change nothing."""
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    params = context.params
    without_effect = [
        (
            params["policy"] == "equal-share",
            "with --policy equal-share",
            ("solver", "formulation", "time_limit_s", "fallback"),
        ),
        (params["solver"] == "exact", "with --solver exact", ("time_limit_s", "fallback")),
        (params["semantics"] == "continuous", "with --semantics continuous", ("seed",)),
        (params["out"] is None, "without --out", ("force", "record_nodes")),
    ]
    for holds, when, names in without_effect:
        for name in names:
            if holds and name in given:
                given.discard(name)
                option = "--" + name.removesuffix("_s").replace("_", "-")
                click.echo(f"Note: {option} has no effect {when}.", err=True)


def _warm_up(*, quiet: bool) -> None:
    """Compile the hot loops; on the first run, which takes seconds, say what is going on."""
    from bfreplay.replay.warmup import warm_up

    if quiet:
        warm_up()
        return
    notice = Timer(1.5, lambda: click.echo("Compiling the inner loops for this machine (first run only) ...", err=True))
    notice.daemon = True
    notice.start()
    try:
        warm_up()
    finally:
        notice.cancel()


@contextmanager
def _progress_bar(start_us: int, end_us: int, *, hidden: bool) -> Iterator[Callable[[int, int], None] | None]:
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


if __name__ == "__main__":
    main()
