"""Rules by which two logs differ on idle nodes: each differing span belongs to the first that explains it.

The order is by how much a rule knows. A node that a log did not follow says nothing about the other log; a clock that
is wrong moves everything, so it comes before what remains of single changes; a change that both logs make is no
difference in meaning; and only what is left is due to the states themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.agreement.joint_spans import JointSpans
from bfreplay.datasets.agreement.timing import BY_CLASS, LEVELS, Lag, Segments
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import parse_time_us

RULES: Mapping[str, str] = {
    "not followed": "unknown in one log, or a noted gap",
    "clock": "at a steady lag, or a clock step",
    "polling": "same change, within the tolerance",
    "flap": "short change that one log lacks",
    "planned": "planned in one log",
    "reservation": "reserved or maintenance in one log",
    "completing": "completing in one log",
    "outage missing": "down, drain or off in one log",
    "other": "busy in one log, for longer",
}
"""Rules in their order, with their meaning."""

_NAMES = tuple(RULES)
_RULE_OF_STATE = np.full(len(NodeState), _NAMES.index("other"), np.int8)
for _rule, _states in {
    "not followed": [NodeState.UNKNOWN],
    "planned": [NodeState.PLANNED],
    "reservation": [NodeState.RESERVED, NodeState.MAINTENANCE],
    "completing": [NodeState.COMPLETING],
    "outage missing": [NodeState.DOWN, NodeState.DRAIN, NodeState.OFF],
}.items():
    _RULE_OF_STATE[_states] = _NAMES.index(_rule)

GAPS, CLOCK_STEPS = "gaps", "clock_steps"
"""Keys of ``metadata.notes["follow"]``: lists of ``{"start": ..., "end": ...}`` in ISO-8601, UTC where no zone is."""


def noted_periods(log: NodeEvents, key: str) -> list[tuple[int, int]]:
    """Return the periods that the notes of a followed log name, such as ``GAPS``; those that are none are left out."""
    followed = log.metadata.notes.get("follow")
    entries = followed.get(key) if isinstance(followed, Mapping) else None
    periods = []
    for entry in entries if isinstance(entries, Sequence) else ():
        try:
            periods.append((parse_time_us(entry["start"]), parse_time_us(entry["end"])))
        except (KeyError, TypeError, ValueError):
            continue
    return periods


def steady_lag(spans: JointSpans, window_us: tuple[int, int], tolerance_us: int) -> Lag | None:
    """Return the lag of log B, if one is steady."""
    return Segments(spans, BY_CLASS, window_us).lag(tolerance_us)


def rule_of_each(
    spans: JointSpans,
    logs: tuple[NodeEvents, NodeEvents],
    tolerance_us: int,
    lag_us: int,
) -> NDArray[np.int8]:
    """Return the index in ``RULES`` of each span, ``(S,)``; -1 where the logs agree on idle or not.

    Parameters
    ----------
    spans, logs
        The spans, and the two logs they are of.
    tolerance_us
        Longest difference in time of the same change.
    lag_us
        Steady lag of log B; up to the tolerance it is part of polling.
    """
    window_us = logs[0].window_start_us, logs[0].window_end_us
    idle = int(NodeState.IDLE)
    differs = (spans.a == idle) != (spans.b == idle)
    rule = _RULE_OF_STATE[np.where(spans.a == idle, spans.b, spans.a)]

    def are_late(lag_us: int) -> NDArray[np.bool_]:
        # at every level, so that a job's end is one change even where a log then plans the node; but planned against
        # idle, however short, differs at the last level only, at which both logs must know planned nodes
        marks = np.zeros(len(differs), np.bool_)
        for level in LEVELS:
            marks |= Segments(spans, level, window_us).are_late(lag_us, tolerance_us)
        return marks

    def are_in(key: str) -> NDArray[np.bool_]:
        marks = np.zeros(len(differs), np.bool_)
        for start_us, end_us in (period for log in logs for period in noted_periods(log, key)):
            marks |= (spans.start_us >= start_us) & (spans.end_us <= end_us)
        return marks

    is_clock = are_in(CLOCK_STEPS)
    if abs(lag_us) > tolerance_us:
        is_clock |= are_late(lag_us)
    marks_of_rules = {
        "flap": Segments(spans, BY_CLASS, window_us).are_flaps(tolerance_us),
        "polling": are_late(0),
        "clock": is_clock,
        "not followed": (rule == _NAMES.index("not followed")) | are_in(GAPS),
    }
    for name, marks in marks_of_rules.items():  # the first of RULES comes last, and wins
        rule[marks] = _NAMES.index(name)
    return np.where(differs, rule, -1).astype(np.int8)
