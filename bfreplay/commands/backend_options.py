"""The options of MILP back ends, the same for every command that solves with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from bfreplay import defaults

OF_BACKENDS = (
    "time_limit_s",
    "relative_gap",
    "threads",
    "solver_seed",
    "warm_start",
    "reformulate_sets",
    "memory_limit_mb",
    "save_failures",
)
"""Parameter names of what ``solver_options`` adds."""

_OPTIONS = (
    click.option(
        "--time-limit",
        "time_limit_s",
        type=click.FloatRange(min=0, min_open=True),
        default=defaults.TIME_LIMIT_S,
        help="Seconds a MILP back end may take for one decision.",
    ),
    click.option(
        "--gap",
        "relative_gap",
        type=click.FloatRange(min=0, max=1, max_open=True),
        default=0.0,
        help="Relative gap that a MILP back end may leave and still call optimal.",
    ),
    click.option(
        "--threads", type=click.IntRange(min=1), default=1, help="Threads of a MILP back end (scip: always 1)."
    ),
    click.option("--solver-seed", type=click.IntRange(min=0), default=0, help="Seed of a MILP back end."),
    click.option(
        "--warm-start/--no-warm-start",
        default=True,
        help="Let a MILP back end that can begin from the current counts.",
    ),
    click.option(
        "--reformulate-sets",
        is_flag=True,
        help="Pose special ordered sets by binaries on back ends that take none, instead of refusing.",
    ),
    click.option(
        "--memory-limit",
        "memory_limit_mb",
        metavar="MB",
        type=click.IntRange(min=1),
        default=None,
        help="Address space of a MILP back end's process.  [default: no limit]",
    ),
    click.option(
        "--save-failures",
        metavar="FOLDER",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        help="Keep the model (MPS) and the decision (JSON) of every answer that was rejected.",
    ),
)

_Command = TypeVar("_Command", bound=Callable[..., Any])


def solver_options(command: _Command) -> _Command:
    """Add the options of MILP back ends to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def backend_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """What the user chose, as ``MilpSolver`` names it."""
    renamed = {"solver_seed": "seed", "memory_limit_mb": "memory_limit_bytes"}
    chosen = {renamed.get(name, name): params[name] for name in OF_BACKENDS}
    if chosen["memory_limit_bytes"] is not None:
        chosen["memory_limit_bytes"] *= 1_000_000
    return chosen
