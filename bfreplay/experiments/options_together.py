"""Options of a run that do not go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.options import Option, option_name

if TYPE_CHECKING:
    from bfreplay.experiments.run_options import RunOptions

_CLUSTER = "v100=36,p100=36,k80=36"


def check_together(run: RunOptions, options: Mapping[str, Option]) -> None:
    """Refuse what no run can be, whatever is in its files.

    Parameters
    ----------
    run
        The values.
    options
        Their declarations.

    Raises
    ------
    InputError
        Neither a log nor a cluster, or both; or what has no meaning on a cluster, or where work does not end.
    """
    if run.cluster is None:
        if run.events is None:
            raise InputError(
                "the option 'events' is missing: there is neither a log nor a cluster", column="events",
                expected=f'events = "FILE", or cluster = "{_CLUSTER}" (replay EVENTS, or --cluster {_CLUSTER})',
                fix=f"name one of the two; {BUNDLED!r} stands for the bundled log",
            )  # fmt: skip
    else:
        _check_cluster(run, options)
    if run.measure is not None and run.unlimited_work:
        raise InputError(
            "the run ends when the measured jobs are done, and with unlimited work none ever is", column="measure",
            value=f"{run.measure[0]}:{run.measure[1]}", expected="--measure, or --unlimited-work",
            fix="leave one of the two out",
        )  # fmt: skip


def _check_cluster(run: RunOptions, options: Mapping[str, Option]) -> None:
    if run.events is not None:
        raise InputError(
            "a log and a cluster were given", column="cluster", value=run.cluster,
            expected=f"one of the two; the log is {run.events}", fix="leave EVENTS (events) or --cluster out",
        )  # fmt: skip
    for field, declared in options.items():
        value = getattr(run, field)
        if declared.not_on_cluster is not None and value != declared.default:
            name, (why, fix) = option_name(field), declared.not_on_cluster
            raise InputError(
                f"--{name} does not go with --cluster: {why}", column=name, value=value,
                expected=f"a log of events with --{name}", fix=fix,
            )  # fmt: skip
