"""Where many runs are made, in the same words for every command that makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

from bfreplay.errors import InputError

_Command = TypeVar("_Command", bound=Callable[..., Any])


def worker_options(command: _Command) -> _Command:
    """Add --processes and --scheduler."""
    command = click.option(
        "--scheduler",
        metavar="ADDRESS",
        default=None,
        help="Use the workers of a Dask scheduler, tcp://host:8786, instead.",
    )(command)
    return click.option(
        "--processes",
        type=click.IntRange(min=1),
        default=None,
        help="Runs at a time on this machine.  [default: as many as processors]",
    )(command)


def check_workers(processes: int | None, scheduler: str | None) -> None:
    """Refuse --processes beside --scheduler."""
    if processes is not None and scheduler is not None:
        raise InputError(
            "--processes has no meaning with --scheduler, which has workers of its own", value=processes,
            fix="leave one of the two out",
        )  # fmt: skip
