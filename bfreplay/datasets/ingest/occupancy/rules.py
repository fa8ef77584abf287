"""Rules by which intervals become node states, each an option with a default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from bfreplay.datasets.times import ISO_FIX, US, parse_time_us
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.options import CheckedOptions, Duration, OneOf, Whole, add_options, option, options_of

ASSIGNMENTS = ("lowest-id", "most-recently-used", "least-recently-used", "random")
"""Rules of node assignment for logs of counts; the position in this tuple is the rule's code in the sweep."""

OVERSUBSCRIPTION = ("clip", "drop", "delay")
SHARED_NODES = ("count", "refuse")
EMPTY_MACHINE = ("auto", "down", "idle")
WINDOWS = ("estimate", "full")

DAY_S = 86_400.0

_MINUTE_S = 60.0
_Value = TypeVar("_Value")


def _rule(default: _Value, check: Callable[[str, Any], Any], text: str, **attributes: Any) -> _Value:
    return option(default, check, "Rules", text, **attributes)


def _length_of_time(default_s: float, flag: str, text: str, unit_s: float = 1.0) -> float:
    return _rule(default_s, Duration(below=1e9), text, flag=flag, unit_s=unit_s)


def _window(name: str, value: object) -> Any:
    if isinstance(value, str) and value not in WINDOWS:
        raise InputError("the window is unknown", column=name, value=value, expected=f"one of {WINDOWS}, or two times")
    return value


def _time_us(time_text: str) -> int:
    try:
        return parse_time_us(time_text)
    except ValueError as error:
        raise ValueError(f"{time_text!r}: {error}; {ISO_FIX}.") from error


@dataclass(frozen=True, slots=True)
class OccupancyRules(CheckedOptions):
    """Rules that make node states of job intervals, outages and an inventory.

    Times are UTC microseconds; the window is also ``estimate``, the part of the log unaffected by missing jobs, by the
    load, or ``full``, from the first start to the last stamp.
    """

    assignment: str = _rule(
        "lowest-id",
        OneOf(ASSIGNMENTS),
        "Assignment of nodes if the log has only counts: a job gets the free nodes of lowest id, those that became "
        "free last or first, or random ones.",
    )
    seed: int = _rule(0, Whole(0), "Seed of --assignment random.")
    oversubscription: str = _rule(
        "clip",
        OneOf(OVERSUBSCRIPTION),
        "A job that needs more nodes than are free: gets the free ones, and the others as they become free; is "
        "skipped; or starts later.",
    )
    shared_nodes: str = _rule(
        "count",
        OneOf(SHARED_NODES),
        "Jobs that share a node: it is idle when the last one has left; or they are an error.",
    )
    empty_machine: str = _rule(
        "auto",
        OneOf(EMPTY_MACHINE),
        "State of the nodes while the whole machine has no job; 'auto': down, unless the log records outages or is of "
        "a simulation.",
    )
    empty_after_s: float = _length_of_time(
        3_600.0, "--empty-after", "Shortest time without any job for --empty-machine, in minutes.", _MINUTE_S
    )
    min_gap_s: float = _length_of_time(10.0, "--min-gap", "Shortest idle interval to keep, in seconds.")
    release_delay_s: float = _length_of_time(
        0.0, "--release-delay", "Time from the end of a job to free nodes, in seconds."
    )
    window: str | tuple[int, int] = _rule(
        "estimate",
        _window,
        "Part of the log to keep: two ISO-8601 times (UTC) or epoch seconds.",
        usual="estimated from the load",
        metavar="START END",
        n_values=2,
        parse=_time_us,
    )
    log_end_us: int | None = _rule(
        None,
        Whole(-(2**63)),
        "Time at which the log was written: running jobs end there or later.",
        flag="--log-end",
        metavar="TIME",
        parse=_time_us,
    )
    limit_grace_s: float = _length_of_time(
        3_600.0,
        "--limit-grace",
        "Time from its limit to the assumed end of a job without an end, in minutes.",
        _MINUTE_S,
    )
    absent_after_s: float = _length_of_time(
        7 * DAY_S,
        "--absent-after",
        "Time without use at an edge of the log from which a node counts as absent, in days; not with --inventory.",
        DAY_S,
    )

    def to_json(self) -> dict[str, Json]:
        """Return every rule with its value, for the metadata."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


OccupancyRules.__doc__ = add_options(OccupancyRules.__doc__, options_of(OccupancyRules))


def microseconds(seconds: float) -> int:
    """Return whole microseconds of a rule given in seconds."""
    return round(seconds * US)
