"""What commands ask about a log and its jobs, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from bfreplay import defaults

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
    """Add --jobs and --curves."""
    command = click.option(
        "--curves",
        "curves_file",
        type=click.Path(path_type=Path),
        help="Scalability curves that the jobs refer to: CSV, Parquet, TOML, or the published table (.pkl).",
    )(command)
    return click.option(
        "--jobs",
        "jobs_file",
        type=click.Path(path_type=Path),
        required=True,
        help="Job set: CSV, Parquet, TOML, or a published table of bounds (.pkl); a campaign (TOML); or "
        "package.module:Class of a job source.",
    )(command)


def allocation_options(command: _Command) -> _Command:
    """Add --t-fwd, --max-parallel and --unlimited-work: what BFTrainer's decisions depend on besides log and jobs."""
    command = click.option(
        "--unlimited-work",
        is_flag=True,
        help="The first MAX-PARALLEL jobs, all there from the start, never done: how BFTrainer measures U.",
    )(command)
    command = click.option(
        "--max-parallel",
        type=click.IntRange(min=1),
        default=defaults.MAX_PARALLEL,
        help="Most jobs at once; the others queue.",
    )(command)
    return click.option(
        "--t-fwd",
        "t_fwd_s",
        type=_ForwardTime(),
        default=defaults.T_FWD_S,
        help="Forward-looking time in seconds: how long a decision is expected to last; or 'auto', which learns it "
        "from the events as they come.",
    )(command)
