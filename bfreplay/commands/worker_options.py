"""Where many runs are made, in the same words for every command that makes them."""

from __future__ import annotations

import rich_click as click

from bfreplay.commands.run_options import adding
from bfreplay.errors import InputError

worker_options = adding((
    click.option(
        "--processes", type=click.IntRange(min=1),
        help="Runs at a time on this machine.  [default: as many as processors]",
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Use the workers of a Dask scheduler, tcp://host:8786, instead."
    ),
))  # fmt: skip
"""Adds --processes and --scheduler."""


def check_workers(processes: int | None, scheduler: str | None) -> None:
    """Refuse --processes beside --scheduler."""
    if processes is not None and scheduler is not None:
        raise InputError(
            "--processes has no meaning with --scheduler, which has workers of its own", value=processes,
            fix="leave one of the two out",
        )  # fmt: skip
