"""``bfreplay replay``: its flags for output; the options of a run are in ``declared_options``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from bfreplay import checks
from bfreplay.commands.inputs import check_failures_folder, command_line, json_text, note, say
from bfreplay.commands.option_flags import (
    PLACE,
    RARE,
    adding,
    note_options_without_effect,
    run_options,
    save_failures_option,
)
from bfreplay.commands.progress import progress_of, warm_up_loops
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FILE_OPTIONS, GROUPS, OUTPUT
from bfreplay.experiments.run_options import RunOptions
from bfreplay.options import option_name

if TYPE_CHECKING:
    from types import FrameType

    from bfreplay.runs.run_settings import Saving


@click.command()
@adding(*map(click.option_panel, (*GROUPS, RARE)), run_options(is_grouped=True))
@save_failures_option(RARE)
@click.option("--out", type=PLACE, panel=OUTPUT, help="Run folder to write.  [default: none]")
@click.option("--force", is_flag=True, panel=OUTPUT, help="Replace the run folder if it exists.")
@click.option(
    "--checkpoint-every",
    metavar="TIME",
    panel=OUTPUT,
    help="Save the state of the run every so often, 1h or 10min of wall time, in the folder RUN.checkpoint, so that "
    "a run that is killed can be resumed.  [default: never]",
)
@click.option(
    "--resume",
    metavar="RUN",
    type=PLACE,
    panel=OUTPUT,
    help="Resume the run that was begun with --out RUN --checkpoint-every, from its last checkpoint; other options are "
    "those of the run. EVENTS, --jobs, --curves and --batch-jobs say where these files are now.",
)
@click.option("--json", "as_json", is_flag=True, panel=OUTPUT, help="Print the run's record as JSON, not the summary.")
@click.option("--quiet", is_flag=True, panel=OUTPUT, help="No progress bar, no notes.")
@click.pass_context
def replay(
    context: click.Context,
    /,
    save_failures: Path | None,
    out: Path | None,
    force: bool,
    checkpoint_every: str | None,
    resume: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Replay JOBS on the idle nodes of EVENTS, or on a dedicated CLUSTER, and print a summary.

    EVENTS is a log of nodes that become idle and are reclaimed: Parquet, CSV, or the published node-state matrix
    (.pkl, .tar.gz). 'sample' is the bundled log; '--jobs sample' is its jobs.

    JOBS is a job set, a campaign of trials (TOML, see 'bfreplay jobs make'), a trace or generated workload of
    Gavel, Shockwave or ElasticFlow, or package.module:Class of a job source.

    With --cluster all nodes are available throughout, and the run ends when its jobs are done. U and the upper bound
    are not computed for a cluster.

    \b
    Examples:
      bfreplay replay sample --jobs sample
      bfreplay replay log.parquet --jobs jobs.toml --out run
      bfreplay replay log.parquet --jobs jobs.csv --t-fwd 300 --max-parallel 70
      bfreplay replay matrix.tar.gz --jobs bounds.pkl --curves curves.pkl
      bfreplay replay log.csv --jobs jobs.toml --window 2021-02-12 2021-02-14
      bfreplay replay sample --jobs sample --solver highs --save-failures failed
      bfreplay replay sample --jobs sample --objective max-min
      bfreplay replay sample --jobs sample --learn-curves model
      bfreplay replay sample --jobs sample --t-fwd auto
      bfreplay replay sample --jobs sample --policy "look-ahead(events=3)"
      bfreplay replay log.parquet --jobs campaign.toml --max-parallel 50
      bfreplay replay --cluster v100=36,p100=36,k80=36 --jobs jobs.trace \\
        --curves throughputs.json --policy gavel.fifo
      bfreplay replay --cluster v100=8,k80=8 --curves throughputs.json \\
        --jobs "gavel(n=100, jobs_per_hour=2)" --out run --fairness \\
        --policy gavel.max_min_fairness_perf --round 360
      bfreplay replay log.parquet --node-type v100 --jobs jobs.trace \\
        --curves throughputs.json --policy gavel.fifo_perf
      bfreplay replay year.parquet --jobs jobs.toml --out run --checkpoint-every 1h
      bfreplay replay --resume run
    """
    from bfreplay.replay.checkpoint import StoppedError
    from bfreplay.result_folders.records import RUN
    from bfreplay.result_folders.writing import check_target
    from bfreplay.runs.run_settings import Output, Saving
    from bfreplay.runs.summary_text import render

    every_s = None if checkpoint_every is None else checks.length_of_time("checkpoint-every", checkpoint_every, 0.0)
    if resume is None:
        options_of_run = RunOptions(**options)
    else:
        options_of_run, out = _options_to_resume(context, resume), resume
    if not quiet and resume is None:
        note_options_without_effect(context, options_of_run)
    if out is not None:
        check_target(out, RUN, overwrite=force)  # refuse before the replay, not after
    check_failures_folder(save_failures, out)
    prepared_run = options_of_run.prepare(save_failures=save_failures)
    types = prepared_run.log.node_types.names
    others = [node_type for node_type in prepared_run.settings.prices if node_type not in types]
    if others and not quiet:
        note(f"--prices has types without nodes: {', '.join(others)}. Node types: {', '.join(types)}.")
    warm_up_loops(quiet=quiet, policy=options_of_run.policy, t_fwd=options_of_run.t_fwd)
    saving = Saving(every_s=every_s, resume=resume is not None, options=options_of_run.to_json(absolute=True))
    try:
        with progress_of(prepared_run, hidden=quiet) as progress, stop_on_signals(saving):
            output = Output(folder=out, overwrite=force, progress=progress, session=command_line(), saving=saving)
            result = prepared_run.replay(output)
    except StoppedError:
        say(f"Stopped, and saved. Go on with: bfreplay replay --resume {out}", err=True)
        raise SystemExit(128 + saving.signal) from None
    document = result.record.to_json() | {"session": result.session.to_json()}
    say(json_text(document) if as_json else render(result))


_RESUME_OPTIONS = {*FILE_OPTIONS, "allow_code", "resume", "checkpoint_every", "force", "as_json", "quiet"}
"""Options that can be given for a run that is resumed."""


def _options_to_resume(context: click.Context, folder: Path) -> RunOptions:
    """Return the options of an unfinished run, with the places of its inputs that are given now."""
    from bfreplay.replay.checkpoint import folder_of, read_about

    explicit = [
        option
        for option in context.command.params
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    for option in explicit:
        if option.name not in _RESUME_OPTIONS:
            raise InputError(
                f"{option.opts[0]} is not for a run that is resumed",
                column=option.name,
                value=context.params[option.name or ""],
                expected="the options with which the run was begun",
                fix=f"remove it, or replay from the start without --resume; an unfinished run is in "
                f"{folder_of(folder)}",
            )
    options = read_about(folder)["options"]
    if options is None:
        raise InputError(
            "this run was begun in Python, with objects",
            file=folder_of(folder),
            expected="one that 'bfreplay replay' began",
            fix="resume it there: replay_log(..., out=RUN, resume=True)",
        )
    places = {option_name(name): str(context.params[name]) for name in FILE_OPTIONS if context.params[name] is not None}
    return RunOptions.from_mapping(
        options | places,
        file=folder_of(folder),
        allow_code=context.params["allow_code"],
    )


@contextmanager
def stop_on_signals(saving: Saving) -> Iterator[None]:
    """Let a first Ctrl-C or SIGTERM stop a run with checkpoints after saving its state; a second ends it at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        if saving.listens and not saving.stops:
            saving.stops, saving.signal = True, number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            sys.exit(128 + number)

    handlers = {signal_number: signal.signal(signal_number, stop) for signal_number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
