"""Checks of options of a run: values that are more than a number, a word or a switch, and options beside others."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from bfreplay import checks
from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.options import NoEffect, options_of

if TYPE_CHECKING:
    from bfreplay.datasets import NodeEvents
    from bfreplay.workload import JobSet, JobSource

AUTO = "auto"
"""Value for a forward-looking time estimated from past events."""

_PRICES_FORM = "TYPE=DOLLARS,TYPE=DOLLARS, such as v100=0.74,p100=0.43"


def path(name: str, value: object) -> str:
    """Check a path, or the URL of an SQLite file as Optuna has it, and return the path as text."""
    return checks.local_path(name, fspath(value) if isinstance(value, PathLike) else value)


def log(name: str, value: object) -> NodeEvents | str:
    """Check a log: the path of a file, which is returned as text, or ``NodeEvents``."""
    from bfreplay.datasets import NodeEvents

    checks.instance(name, value, (NodeEvents, str, PathLike), "NodeEvents (see its from_arrays), a file, or 'sample'")
    return value if isinstance(value, NodeEvents) else path(name, value)


def jobs(name: str, value: Any) -> JobSet | JobSource | str:
    """Check jobs: the path of a file or a name, which are returned as text, or a job set, a job source, or jobs."""
    from bfreplay.campaigns.workloads import workload_of

    return path(name, value) if value is None or isinstance(value, str | PathLike) else workload_of(value)


def node_list(name: str, value: object, folder: str | PathLike[str] = "") -> str:
    """Check a list of nodes, and return it; of a file with names, below ``folder``, these, which a run keeps."""
    from bfreplay.datasets.node_selection import named_nodes

    return named_nodes(checks.text(name, value), folder)


def window(name: str, value: object) -> tuple[str, str]:
    """Check two times, and return them as text; TOML also has dates, and numbers for epoch seconds."""
    pair = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    times = [edge.isoformat() if isinstance(edge, datetime.date) else edge for edge in pair]
    times = [str(time) if isinstance(time, int | float) and not isinstance(time, bool) else time for time in times]
    if len(times) != 2 or not all(isinstance(time, str) for time in times):
        raise InputError(
            f"{name} is no pair of times",
            column=name,
            value=value,
            expected='["START", "END"], such as ["2021-02-12", "2021-02-14T06:00"]',
            fix="give the start and the end of the part of the log",
        )
    return str(times[0]), str(times[1])


def amount(text: str, unit_s: float = 1.0) -> float:
    """Parse a number of a unit of time, or a length of time with its own, such as ``"2min"``; ``ValueError`` else."""
    if re.fullmatch(r"[\d.]+\s*(s|m|min|h|d)", text.strip(), re.ASCII):
        return parse_seconds(text) / unit_s
    return checks.decimal(text)


def seconds_or_auto(text: str) -> float | str:
    """Parse a forward-looking time; ``ValueError`` for anything else."""
    try:
        return AUTO if text == AUTO else amount(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number of seconds nor {AUTO!r}.") from None


def t_fwd(name: str, value: object) -> float | str:
    """Check a forward-looking time: seconds above 0, or ``"auto"``."""
    if value == AUTO:
        return AUTO
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            f"{name} is neither a number nor {AUTO!r}",
            column=name,
            value=value,
            expected=f"seconds > 0, or {AUTO!r}",
            fix="write it without quotes, in digits with a decimal point" if isinstance(value, str) else None,
        )
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            "the forward-looking time is not a positive number",
            column=name,
            value=value,
            expected=f"seconds > 0, or {AUTO!r}",
            fix="120 s is a good start; the best value depends on how often nodes are reclaimed",
        )
    return float(value)


def seconds(name: str, value: object) -> float:
    """Check a length of time, 0 or more, and return it in seconds: a number, ``"30s"``, ``"5min"``."""
    return checks.length_of_time(name, value, 0.0)


def cost(name: str, value: object) -> float | str:
    """Check the cost of a change, and return its seconds, or its text where it is by count."""
    from bfreplay.workload.change_costs import cost_of

    try:
        of_change = cost_of(value)
    except InputError as error:
        raise error.with_changes(column=name) from error
    return of_change if isinstance(of_change, float) else str(of_change)


def parse_seconds(text: str) -> float:
    """Parse a length of time; ``ValueError`` for anything else."""
    try:
        return seconds("it", text)
    except InputError as error:
        raise ValueError(f"{text!r} is no length of time such as 30s, 5min or 1h.") from error


def cluster(name: str, value: object) -> str:
    """Check a cluster, and return it in normal form."""
    from bfreplay.datasets.fixed_cluster import ClusterSpec

    return ClusterSpec.parse(checks.text(name, value)).text


def node_type(name: str, value: object) -> str:
    """Check the name of one node type."""
    from bfreplay.datasets.fixed_cluster import ClusterSpec

    return ClusterSpec(((checks.text(name, value), 1),)).types[0][0]


def measure(name: str, value: object) -> tuple[int, int]:
    """Check a range of jobs: two whole numbers, or ``"4000:5000"``."""
    range_parts: object = value.split(":") if isinstance(value, str) else value
    pair = list(range_parts) if isinstance(range_parts, Sequence) else []
    numbers = [int(part.strip()[:18]) if isinstance(part, str) and part.strip().isdecimal() else part for part in pair]
    is_pair = len(numbers) == 2 and all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    if not is_pair or not 0 <= numbers[0] < numbers[1]:
        raise InputError(
            f"{name} is no range of jobs" if not is_pair else f"{name} is an empty range of jobs",
            column=name,
            value=value,
            expected='"FIRST:END", numbers of jobs in order of submission from 0, FIRST below END',
            fix="for example 4000:5000, the thousand jobs after the first 4,000",
        )
    return numbers[0], numbers[1]


def prices(name: str, value: object) -> str:
    """Check prices, and return them as text with the types in alphabetical order."""
    price_of_type = parse_prices(value, name)
    return ",".join(
        f"{node_type}={repr(price).removesuffix('.0')}" for node_type, price in sorted(price_of_type.items())
    )


def parse_prices(value: object, name: str = "prices") -> dict[str, float]:
    """Return dollars per node-hour by node type, from ``"v100=0.74,p100=0.43"`` or a mapping.

    Raises
    ------
    InputError
        It is neither, a type appears twice, or a price is not above 0.
    """
    if isinstance(value, Mapping):
        pairs = [(checks.text(name, node_type), price) for node_type, price in value.items()]
    else:
        parts = [part.partition("=") for part in checks.text(name, value).split(",")]
        pairs = [(node_type.strip(), _price_of(price)) for node_type, _, price in parts]
    price_of_type: dict[str, float] = {}
    for node_type, price in pairs:
        if not node_type or price is None or node_type in price_of_type:
            problem = f"{node_type} has two" if node_type in price_of_type else f"{node_type or name} has no"
            raise InputError(f"{problem} price", column=name, value=value, expected=_PRICES_FORM)
        price_of_type[node_type] = checks.number(f"price of {node_type}", price, above=0)
    if not price_of_type:
        raise InputError(f"{name} has no price", column=name, value=value, expected=_PRICES_FORM)
    return price_of_type


def _price_of(text: str) -> float | None:
    try:
        return checks.decimal(text)
    except ValueError:
        return None


_CLUSTER = "v100=36,p100=36,k80=36"


def _has_solver(options: Any) -> bool:
    from bfreplay.policies.catalogue import capabilities_of

    return capabilities_of(options.policy).asks_solver


def _looks_ahead(options: Any) -> bool:
    """Return whether decisions have a forward-looking time: those of the run, or those on dedicated nodes for U."""
    from bfreplay.policies.catalogue import capabilities_of

    return not capabilities_of(options.policy).in_rounds or (options.efficiency and not options.ends_with_its_jobs)


def _learns(options: Any) -> bool:
    """Return whether the policy has to learn rates that a baseline knows."""
    from bfreplay.policies.catalogue import learns

    return options.learn_curves is not None or learns(options.policy)


def _unless_learning(reason: NoEffect) -> NoEffect:
    return NoEffect(lambda run: reason.holds(run) and not _learns(run), reason.when)


def _draws(options: Any) -> bool:
    return options.semantics == "published" or (options.learn_curves is not None and options.measurement_noise > 0)


NO_SOLVER = NoEffect(lambda run: not _has_solver(run), "with --policy {0.policy}")
NO_BACKEND = (NO_SOLVER, NoEffect(lambda run: run.solver == "exact", "with --solver exact"))
NO_FORWARD_TIME = NoEffect(lambda run: not _looks_ahead(run), "with --policy {0.policy}")
NO_LEARNING = NoEffect(lambda run: run.learn_curves is None, "without --learn-curves")
NO_RANDOMNESS = NoEffect(lambda run: not _draws(run), "with --semantics continuous and without --measurement-noise")
ENDS_ON_CLUSTER = NoEffect(lambda run: run.cluster is not None, "with --cluster: such a run ends with its jobs")
NO_BOUND = (
    NoEffect(lambda run: run.cluster is not None, "with --cluster: U and the upper bound are not computed"),
    NoEffect(lambda run: run.measure is not None, "with --measure: U and the upper bound are not computed"),
    NoEffect(lambda run: run.until_done, "with --until-done: U and the upper bound are not computed"),
)
NO_BASELINES = tuple(map(_unless_learning, NO_BOUND))


def check_together(options: Any) -> None:
    """Raise ``InputError`` for ``DeclaredOptions`` that are missing, or exclude one another."""
    if options.jobs is None:
        raise InputError(
            "the option 'jobs' is missing: the training jobs to replay",
            column="jobs",
            expected='jobs = "FILE" (--jobs FILE)',
            fix=f"{BUNDLED!r} stands for the bundled jobs",
        )
    if options.cluster is not None:
        _check_cluster(options)
    elif options.events is None:
        raise InputError(
            "the option 'events' is missing: neither a log nor a cluster is given",
            column="events",
            expected=f'events = "FILE", or cluster = "{_CLUSTER}" (replay EVENTS, or --cluster {_CLUSTER})',
            fix=f"name one of the two; {BUNDLED!r} stands for the bundled log",
        )
    if options.unlimited_work and options.until_done:
        raise InputError(
            "the run is to end with its jobs, but unlimited work never ends",
            column=options.named("until_done"),
            value=True,
            expected="--until-done, or --unlimited-work",
            fix="remove one of the two",
        )
    if options.unlimited_work and options.measure is not None:
        raise InputError(
            "a run with measured jobs ends when they are done, but unlimited work never ends",
            column="measure",
            value=f"{options.measure[0]}:{options.measure[1]}",
            expected="--measure, or --unlimited-work",
            fix="remove one of the two",
        )


def _check_cluster(options: Any) -> None:
    if options.events is not None:
        raise InputError(
            "both a log and a cluster are given",
            column="cluster",
            value=options.cluster,
            expected=f"one of the two; the log is {options.events}",
            fix="remove EVENTS (events) or --cluster",
        )
    for own_name, declaration in options_of(type(options)).items():
        option_value = getattr(options, own_name)
        if declaration.not_on_cluster is not None and option_value != declaration.default:
            name, (reason, fix) = options.named(own_name), declaration.not_on_cluster
            raise InputError(
                f"--{name} cannot be combined with --cluster: {reason}",
                column=name,
                value=option_value,
                expected=f"a log of events with --{name}",
                fix=fix,
            )
