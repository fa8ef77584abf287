"""What commands ask about a log and its jobs, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from bfreplay import defaults
from bfreplay.commands.inputs import allow_code_option

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _ForwardTime(click.ParamType[float | str]):
    """A number of seconds, or the word 'auto'."""

    name = "seconds|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Whether the number makes sense is checked where it is used."""
        if value == "auto":
            return "auto"
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number of seconds nor 'auto'.", param, ctx)


def events_argument(command: _Command) -> _Command:
    """Add EVENTS, the log."""
    return click.argument("events", type=click.Path(path_type=Path))(command)


def nodes_options(command: _Command) -> _Command:
    """Add EVENTS, which may be left out, --cluster instead of it, and --node-type."""
    command = click.option(
        "--node-type",
        metavar="TYPE",
        default=None,
        help="What all nodes of EVENTS are, such as v100, for jobs whose rate depends on it.",
    )(command)
    command = click.option(
        "--cluster",
        metavar="TYPE=COUNT,...",
        default=None,
        help="Instead of EVENTS: nodes that are all one's own, such as v100=36,p100=36,k80=36. The run ends when the "
        "jobs are done.",
    )(command)
    return click.argument("events", type=click.Path(path_type=Path), required=False)(command)


def measure_options(command: _Command) -> _Command:
    """Add --measure, --prices and --fairness: what a scheduler's figures are of."""
    command = click.option(
        "--fairness",
        is_flag=True,
        help="Also replay the jobs under gavel.isolated, where each has its part of the nodes for itself, and report "
        "rho: the time a job takes here over the time it takes there.",
    )(command)
    command = click.option(
        "--prices",
        metavar="TYPE=DOLLARS,...",
        default=None,
        help="Price of a node for an hour, by type: for costs, and for policies that look at them.  [default: "
        f"{','.join(f'{name}={price:g}' for name, price in defaults.NODE_PRICES.items())}; none for other types]",
    )(command)
    return click.option(
        "--measure",
        metavar="FIRST:END",
        default=None,
        help="The jobs that the run is about, by number in order of submission: 4000:5000 are a thousand after the "
        "first four thousand. The run ends when they are done; the others only keep the nodes busy.  [default: all]",
    )(command)


def window_option(command: _Command) -> _Command:
    """Add --window: two times as the user typed them, or None."""
    return click.option(
        "--window",
        nargs=2,
        metavar="START END",
        default=None,
        help="Part of the log: two ISO-8601 times (UTC) or epoch seconds.  [default: the whole log]",
    )(command)


def jobs_options(command: _Command) -> _Command:
    """Add --jobs, --curves and --allow-code."""
    command = click.option(
        "--curves",
        "curves_file",
        type=click.Path(path_type=Path),
        help="Scalability curves that the jobs refer to: CSV, Parquet, TOML, or the published table (.pkl); for a "
        "trace or workload of Gavel its measured throughputs (.json, .json.gz).",
    )(allow_code_option(command))
    return click.option(
        "--jobs",
        "jobs_file",
        type=click.Path(path_type=Path),
        required=True,
        help="Job set: CSV, Parquet, TOML, a published table of bounds (.pkl), or a trace of Gavel (.trace); a "
        "campaign (TOML); a generated workload, 'gavel(n=1000, jobs_per_hour=1)'; or package.module:Class of a job "
        "source.",
    )(command)


def allocation_options(command: _Command) -> _Command:
    """Add --t-fwd, --max-parallel and --unlimited-work: what BFTrainer's decisions depend on besides log and jobs."""
    help_text = "Most jobs at once; the others queue."
    return _allocation_options(command, defaults.MAX_PARALLEL, help_text)


def allocation_options_with_cluster(command: _Command) -> _Command:
    """The same where there may be a cluster: --max-parallel is None unless it was given."""
    help_text = f"Most jobs at once; the others queue.  [default: {defaults.MAX_PARALLEL}; all jobs with --cluster]"
    return _allocation_options(command, None, help_text)


def _allocation_options(command: _Command, max_parallel: int | None, help_text: str) -> _Command:
    command = click.option(
        "--unlimited-work",
        is_flag=True,
        help="The first MAX-PARALLEL jobs, all there from the start, never done: how BFTrainer measures U.",
    )(command)
    command = click.option(
        "--max-parallel", type=click.IntRange(min=1), default=max_parallel, help=help_text
    )(command)  # fmt: skip
    return click.option(
        "--t-fwd",
        "t_fwd_s",
        type=_ForwardTime(),
        default=defaults.T_FWD_S,
        help="Forward-looking time in seconds: how long a decision is expected to last; or 'auto', which learns it "
        "from the events as they come.",
    )(command)
