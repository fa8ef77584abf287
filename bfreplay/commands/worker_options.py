"""Where many runs are made, in the same words for every command that makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

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
