"""Rules by which two logs differ on idle nodes: each differing span belongs to the first that explains it.

The order is by how much a rule explains. A log that did not follow a node says nothing about the other one; a clock
that is wrong moves all changes, so it comes before single ones; a change that both logs make at nearly the same time is
no difference in meaning; what is left is due to the states themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.agreement.joint_spans import JointSpans
from bfreplay.datasets.agreement.timing import BY_CLASS, LEVELS, Lag, Segments
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import parse_time_us

_MEANINGS: Mapping[str, tuple[str, tuple[NodeState, ...]]] = {
    "not followed": ("unknown in one log, or a noted gap", (NodeState.UNKNOWN,)),
    "clock": ("at a steady lag, or a clock step", ()),
    "polling": ("same change, within the tolerance", ()),
    "flap": ("short change that one log lacks", ()),
    "planned": ("planned in one log", (NodeState.PLANNED,)),
    "reservation": ("reserved or maintenance in one log", (NodeState.RESERVED, NodeState.MAINTENANCE)),
    "completing": ("completing in one log", (NodeState.COMPLETING,)),
    "outage missing": ("down, drain or off in one log", (NodeState.DOWN, NodeState.DRAIN, NodeState.OFF)),
    "other": ("busy in one log, for longer", (NodeState.BUSY,)),
}
RULES = {rule: meaning for rule, (meaning, _) in _MEANINGS.items()}
"""Rules in their order, with their meaning: one log says idle, the other what is named."""

NOT_FOLLOWED, CLOCK, POLLING, FLAP = range(4)
_RULE_OF_STATE = np.zeros(len(NodeState), np.int8)
for _place, (_, _states) in enumerate(_MEANINGS.values()):
    _RULE_OF_STATE[list(_states)] = _place

GAP, CLOCK_STEP = "gap", "clock"
"""Kinds of the spans in ``metadata.notes["followed"]["spans"]`` of a followed log (``result_folders.live.Span``)."""


def noted_periods(log: NodeEvents, kind: str) -> list[tuple[int, int]]:
    """Return the periods of a kind that the notes of a followed log name; those that are none are left out."""
    followed = log.metadata.notes.get("followed")
    spans = followed.get("spans") if isinstance(followed, Mapping) else None
    periods = []
    for span in spans if isinstance(spans, Sequence) else ():
        try:
            if span["kind"] == kind:
                periods.append((parse_time_us(span["start"]), parse_time_us(span["end"])))
        except (KeyError, TypeError, ValueError):
            continue
    return periods


def _between_steps(logs: tuple[NodeEvents, NodeEvents], window_us: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the periods between the noted steps of clocks; the window where there are none."""
    steps = sorted(step for log in logs for step in noted_periods(log, CLOCK_STEP))
    starts = [window_us[0], *(end_us for _, end_us in steps)]
    ends = [*(start_us for start_us, _ in steps), window_us[1]]
    return [(start_us, end_us) for start_us, end_us in zip(starts, ends, strict=True) if start_us < end_us]


def rule_of_each(
    spans: JointSpans, logs: tuple[NodeEvents, NodeEvents], tolerance_us: int
) -> tuple[NDArray[np.int8], Lag | None]:
    """Return the index in ``RULES`` of each span, ``(S,)``, -1 where both logs are idle or neither; and B's steady lag.

    Parameters
    ----------
    spans, logs
        The spans, and the two logs they are of.
    tolerance_us
        Longest difference between the times of the same change; a lag within it is part of polling.
    """
    window_us = logs[0].window_start_us, logs[0].window_end_us
    a_is_idle, b_is_idle = spans.a == NodeState.IDLE, spans.b == NodeState.IDLE
    rule = _RULE_OF_STATE[np.where(a_is_idle, spans.b, spans.a)]
    by_class = Segments(spans, BY_CLASS, window_us)
    lag = by_class.lag(tolerance_us)

    def are_late(lag_us: int) -> Any:
        # a job's end is one change even where a log then plans the node; but planned against idle, however short,
        # differs at the last level only, at which both logs must know planned nodes
        marks = (Segments(spans, level, window_us).are_late(lag_us, tolerance_us) for level in LEVELS)
        return reduce(np.logical_or, marks)

    def are_in(kind: str, n_more: int = 0) -> Any:
        """Mark spans inside noted periods, each made longer by ``n_more`` times its length at its end."""
        periods = [period for log in logs for period in noted_periods(log, kind)]
        periods = [(start_us, end_us + n_more * (end_us - start_us)) for start_us, end_us in periods]
        inside = ((spans.start_us >= start_us) & (spans.end_us <= end_us) for start_us, end_us in periods)
        return reduce(np.logical_or, inside, np.zeros(len(rule), np.bool_))

    is_not_followed = (rule == NOT_FOLLOWED) | are_in(GAP)
    rule[by_class.are_flaps(tolerance_us)] = FLAP
    rule[are_late(0)] = POLLING
    for start_us, end_us in _between_steps(logs, window_us):  # between two settings of a clock the lag is another one
        steady = by_class.lag(tolerance_us, (start_us, end_us))
        if steady is not None and abs(steady.lag_us) > tolerance_us:
            is_inside = (spans.start_us < end_us) & (spans.end_us > start_us)
            rule[is_inside & are_late(steady.lag_us)] = CLOCK
    # a log waits while its clock, set back, is behind: for as long it is late in the clock of the other one
    rule[are_in(CLOCK_STEP, 1)] = CLOCK
    rule[is_not_followed] = NOT_FOLLOWED  # the first rule is set last, and wins
    rule[a_is_idle == b_is_idle] = -1
    return rule, lag
