"""The rule of each difference between two logs, on logs that a person can check by hand."""

from __future__ import annotations

import pytest

from bfreplay import NodeState, compare_logs
from bfreplay.datasets import EventsMetadata
from bfreplay.datasets.agreement.rules import RULES
from tests.datasets.small_logs import BUSY, DOWN, IDLE, log

PLANNED, RESERVED, MAINTENANCE = NodeState.PLANNED, NodeState.RESERVED, NodeState.MAINTENANCE
COMPLETING, DRAIN, OFF, UNKNOWN = NodeState.COMPLETING, NodeState.DRAIN, NodeState.OFF, NodeState.UNKNOWN
IRREGULAR = (3, 11, 26, 40, 61, 77, 101, 140, 152, 190, 230, 241, 290, 303, 340, 381)


def one_node(first, *changes, end=100, notes=None):
    """A log of node n: its state at 0 s, and (seconds, state) of its changes."""
    rows = [(seconds, "n", state) for seconds, state in changes]
    return log([first], rows, end=end, nodes=("n",), metadata=EventsMetadata(notes=notes or {}))


def differing(a, b, tolerance="2s"):
    """{rule: seconds}."""
    result = compare_logs(a, b, tolerance=tolerance)
    return {rule.rule: rule.node_us / 1e6 for rule in result.rules if rule.node_us}


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (PLANNED, "planned"),
        (RESERVED, "reservation"),
        (MAINTENANCE, "reservation"),
        (COMPLETING, "completing"),
        (DOWN, "outage missing"),
        (DRAIN, "outage missing"),
        (OFF, "outage missing"),
        (UNKNOWN, "not followed"),
        (BUSY, "other"),
    ],
)
def test_a_state_that_only_one_log_has_is_its_rule_whichever_log_that_is(state, rule):
    a, b = one_node(IDLE, (10, state), (40, IDLE)), one_node(IDLE)
    assert differing(a, b) == differing(b, a) == {rule: 30}


def test_states_that_are_not_idle_in_either_log_are_no_difference():
    result = compare_logs(one_node(BUSY, (10, DOWN), (20, PLANNED)), one_node(BUSY))
    assert (result.agreement, result.agreement_on_states) == (1, 0.1)


def test_the_same_change_within_the_tolerance_is_polling_and_beyond_it_is_not():
    a = one_node(BUSY, (10, IDLE), (50, BUSY))
    assert differing(a, one_node(BUSY, (12, IDLE), (48, BUSY))) == {"polling": 4}
    assert differing(a, one_node(BUSY, (12.1, IDLE), (48, BUSY))) == {"other": pytest.approx(2.1), "polling": 2}


def test_a_change_that_is_over_before_the_other_log_makes_it_is_polling_at_both_places():
    assert differing(one_node(IDLE, (10, BUSY), (11, IDLE)), one_node(IDLE, (12, BUSY), (13, IDLE))) == {"polling": 2}


def test_a_short_planned_span_is_planned_unless_both_logs_plan_the_node():
    accounted = one_node(BUSY, (10, IDLE), (10.5, BUSY))
    assert differing(one_node(BUSY, (10, PLANNED), (10.5, BUSY)), accounted) == {"planned": 0.5}
    a, b = one_node(IDLE, (10, PLANNED), (50, BUSY)), one_node(IDLE, (11, PLANNED), (50, BUSY))
    assert differing(a, b) == {"polling": 1}
    assert differing(one_node(IDLE, (99.5, PLANNED)), one_node(IDLE)) == {"planned": 0.5}


def test_the_end_of_a_job_is_one_change_also_where_a_log_then_plans_the_node_or_switches_it_off():
    planned = one_node(BUSY, (11, PLANNED), (50, BUSY))
    assert differing(planned, one_node(BUSY, (10, IDLE), (50, BUSY))) == {"polling": 1, "planned": 39}
    switched_off = one_node(BUSY, (11, OFF))
    assert differing(switched_off, one_node(BUSY, (10, IDLE), (14, OFF))) == {"polling": 1, "outage missing": 3}


def test_an_outage_that_both_logs_know_is_polling():
    assert differing(one_node(IDLE, (10, DOWN), (30, IDLE)), one_node(IDLE, (11, DOWN), (30, IDLE))) == {"polling": 1}


def test_a_short_job_that_one_log_lacks_is_a_flap_and_a_longer_one_is_other():
    assert differing(one_node(IDLE, (10, BUSY), (12, IDLE)), one_node(IDLE)) == {"flap": 2}
    assert differing(one_node(IDLE, (10, BUSY), (12.5, IDLE)), one_node(IDLE)) == {"other": 2.5}
    # before and after a flap both logs agree: here B is down before, or after
    assert differing(one_node(IDLE), one_node(DOWN, (10, BUSY), (11, IDLE))) == {"outage missing": 10, "other": 1}
    assert differing(one_node(IDLE), one_node(IDLE, (10, BUSY), (11, DOWN))) == {"other": 1, "outage missing": 89}


def test_a_change_near_the_edge_may_have_its_counterpart_beyond_it_but_a_whole_window_has_no_change():
    a = one_node(IDLE, (10, BUSY), (99, IDLE))
    assert differing(a, one_node(IDLE, (10, BUSY))) == {"polling": 1}
    assert differing(one_node(IDLE, end=1), one_node(BUSY, end=1)) == {"other": 1}


def test_one_change_is_the_counterpart_of_its_own_kind_only():
    a, b = one_node(IDLE, (10, BUSY), (60, IDLE)), one_node(BUSY, (10, IDLE), (60, BUSY))
    assert differing(a, b) == {"other": 100}


def alternating(shift_s, times=IRREGULAR):
    changes = [(at + shift_s, (BUSY, IDLE)[place % 2]) for place, at in enumerate(times)]
    return one_node(IDLE, *changes, end=500)


@pytest.mark.parametrize("shift_s", [3, 17, 95])
def test_a_shifted_log_differs_by_its_clock_alone(shift_s):
    result = compare_logs(alternating(0), alternating(shift_s))
    assert (result.lag_s, result.lag.changes) == (shift_s, 16)
    assert {rule.rule for rule in result.rules if rule.node_us} == {"clock"}
    assert compare_logs(alternating(shift_s), alternating(0)).lag_s == -shift_s


def test_a_lag_within_the_tolerance_is_told_and_remains_polling():
    result = compare_logs(alternating(0), alternating(1.5))
    assert result.lag_s == 1.5
    assert {rule.rule for rule in result.rules if rule.node_us} == {"polling"}


def test_what_a_lag_does_not_explain_keeps_its_rule():
    late = alternating(17)
    extra = one_node(IDLE, *((at + 17, (BUSY, IDLE)[place % 2]) for place, at in enumerate(IRREGULAR)),
                     (450, DOWN), end=500)  # fmt: skip
    assert "outage missing" not in differing(alternating(0), late)
    assert differing(alternating(0), extra)["outage missing"] == 50


def test_a_lag_of_few_changes_or_of_less_than_half_of_them_is_not_steady():
    assert compare_logs(alternating(0, IRREGULAR[:4]), alternating(17, IRREGULAR[:4])).lag_s is None
    assert compare_logs(alternating(0, IRREGULAR[:6]), alternating(17, IRREGULAR[:6])).lag_s == 17
    partly = [at + (17 if place < 6 else 20 + 3 * place) for place, at in enumerate(IRREGULAR)]
    assert compare_logs(alternating(0), alternating(0, partly)).lag_s is None


def test_of_lags_that_as_many_changes_have_the_shortest_counts():
    starts = (20, 70, 130, 170, 240)
    a = one_node(BUSY, *((at + step, state) for at in starts for step, state in ((0, IDLE), (1, BUSY))), end=300)
    twice = ((-10, IDLE), (-9, BUSY), (3, IDLE), (4, BUSY))
    b = one_node(BUSY, *((at + step, state) for at in starts for step, state in twice), end=300)
    assert compare_logs(a, b).lag_s == 3


def noted(kind, start, end):
    """Notes of a follower: a span of this kind, in seconds."""
    text = "1970-01-01T{:02d}:{:02d}:{:02d}Z"
    times = (text.format(seconds // 3600, seconds // 60 % 60, seconds % 60) for seconds in (start, end))
    return {"followed": {"spans": [{"kind": kind, **dict(zip(("start", "end"), times, strict=True))}]}}


def test_a_noted_gap_names_the_spans_inside_it():
    changes = (10, BUSY), (40, IDLE), (50, BUSY), (70, IDLE)
    a = one_node(IDLE, *changes, notes=noted("gap", 5, 45))
    assert differing(a, one_node(IDLE)) == {"not followed": 30, "other": 20}
    assert differing(one_node(IDLE), a) == {"not followed": 30, "other": 20}
    assert compare_logs(a, one_node(IDLE)).gaps == (1, 0)


def test_a_noted_step_of_a_clock_names_the_spans_inside_it_and_for_as_long_after_it():
    changes = (10, BUSY), (20, IDLE), (30, BUSY), (34, IDLE), (36, BUSY), (40, IDLE)
    a = one_node(IDLE, *changes, notes=noted("clock", 5, 20))
    assert differing(a, one_node(IDLE)) == differing(one_node(IDLE), a) == {"clock": 14, "other": 4}


def test_between_two_settings_of_a_clock_the_lag_is_another_one():
    def shifted(lag):
        return [
            (seconds + lag * (seconds >= 400), (BUSY, IDLE)[place % 2])
            for place, seconds in enumerate((*IRREGULAR, *later))
        ]

    later = [seconds + 400 for seconds in IRREGULAR]
    a = one_node(IDLE, *shifted(7), end=900, notes=noted("clock", 393, 400))
    b = one_node(IDLE, *shifted(0), end=900)
    assert differing(a, b) == {"clock": 7 * len(IRREGULAR)}
    assert compare_logs(a, b).lag_s == 0


@pytest.mark.parametrize(
    "notes", ["no", {"spans": 1}, {"spans": [1, {}, {"kind": "gap", "start": "x", "end": None}]}, {"spans": "ab"}]
)
def test_notes_that_are_no_periods_are_passed_over(notes):
    assert differing(one_node(IDLE, (10, BUSY), (40, IDLE), notes={"followed": notes}), one_node(IDLE)) == {"other": 30}


def test_every_rule_is_explained_and_other_comes_last():
    assert list(RULES)[-1] == "other"
    assert all(RULES.values())
