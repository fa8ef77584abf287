"""Options of a run that do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from bfreplay.datasets.named_inputs import BUNDLED
from bfreplay.errors import InputError

if TYPE_CHECKING:
    from bfreplay.experiments.run_options import RunOptions

_CLUSTER = "v100=36,p100=36,k80=36"


def check_together(options: RunOptions) -> None:
    """Refuse what no run can be, whatever is in its files.

    Raises
    ------
    InputError
        Neither a log nor a cluster, or both; or what has no meaning on a cluster, or where work does not end.
    """
    if options.cluster is None:
        if options.events is None:
            raise InputError(
                "the option 'events' is missing: there is neither a log nor a cluster", column="events",
                expected=f'events = "FILE", or cluster = "{_CLUSTER}" (replay EVENTS, or --cluster {_CLUSTER})',
                fix=f"name one of the two; {BUNDLED!r} stands for the bundled log",
            )  # fmt: skip
    else:
        _check_cluster(options)
    if options.measure is not None and options.unlimited_work:
        raise InputError(
            "the run ends when the measured jobs are done, and with unlimited work none ever is", column="measure",
            value=f"{options.measure[0]}:{options.measure[1]}", expected="--measure, or --unlimited-work",
            fix="leave one of the two out",
        )  # fmt: skip


def _check_cluster(options: RunOptions) -> None:
    if options.events is not None:
        raise InputError(
            "a log and a cluster were given", column="cluster", value=options.cluster,
            expected=f"one of the two; the log is {options.events}", fix="leave EVENTS (events) or --cluster out",
        )  # fmt: skip
    for is_given, option, why, fix in (
        (options.window is not None, "window", "a cluster has no calendar, and the run ends with its jobs",
         "leave --window out; --measure says which jobs the run is about"),
        (options.node_type is not None, "node-type", "the cluster says itself of which types its nodes are",
         "leave --node-type out"),
        (options.unlimited_work, "unlimited-work", "a run on a cluster ends when its jobs are done",
         "leave --unlimited-work out, or replay a log"),
        (options.semantics == "published", "semantics", "BFTrainer's published clock moves when nodes come and go, "
         "which they never do on a cluster", "leave --semantics out"),
    ):  # fmt: skip
        if is_given:
            _refuse(options, option, why, fix)


def _refuse(options: RunOptions, option: str, why: str, fix: str) -> NoReturn:
    value = getattr(options, option.replace("-", "_"))
    raise InputError(
        f"--{option} does not go with --cluster: {why}", column=option, value=value,
        expected=f"a log of events with --{option}", fix=fix,
    )  # fmt: skip
