"""Idle time under every rule for oversubscription, from an import under one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.idleness.idleness_text import render
from bfreplay.datasets.ingest.occupancy import spool
from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.rules import OVERSUBSCRIPTION
from bfreplay.datasets.log.log_warnings import IDLE_BY_RULE
from bfreplay.datasets.log.states import NodeState
from tests.datasets.ingest.occupancy.small_records import HOUR, MIN, S, counted, listed, plain

jobs = st.lists(
    st.tuples(st.integers(0, 200), st.one_of(st.none(), st.integers(1, 60)), st.integers(1, 6)), min_size=1, max_size=20
)


@given(
    jobs, st.booleans(), st.integers(0, 100), st.integers(1, 200), st.sampled_from(OVERSUBSCRIPTION), st.integers(0, 9)
)
def test_the_idle_time_of_every_rule_is_that_of_an_import_under_it(job_list, is_down, first, length, chosen, delay):
    spans = [(start * MIN, None if n is None else (start + n) * MIN, count) for start, n, count in job_list]
    log_start = min(start for start, *_ in spans)
    changes = {
        "empty_machine": "down" if is_down else "idle",
        "empty_after_s": 1_200,
        "release_delay_s": delay,
        "window": (log_start + first * MIN, log_start + (first + length) * MIN),
        "log_end_us": log_start + 400 * MIN,
    }

    def built(rule):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(spool, "BLOCK_ROWS", 2)
            return build_events(counted(spans, run_rows=5), plain(oversubscription=rule, **changes)).report

    by_rule = built(chosen).facts.get(IDLE_BY_RULE)
    if by_rule is not None:
        for rule in OVERSUBSCRIPTION:
            hours = built(rule).facts["node_hours"].get("idle", 0.0)
            assert by_rule[rule] == pytest.approx(hours, abs=1e-6)


def test_describe_tells_the_range_and_only_of_the_window_it_is_about():
    record = counted([(0, 4 * HOUR, 3), (HOUR, 3 * HOUR, 2), (9 * HOUR, 10 * HOUR, 4)])
    events = build_events(record, plain()).events
    idleness = characterise(events)
    # 40 node-hours; the job of 1 h holds 1 node (clip), none (drop), or 2 nodes from 4 h on (delay)
    assert idleness.to_dict()["idle_node_hours_by_oversubscription"] == {"clip": 22.0, "delay": 20.0, "drop": 24.0}
    text = " ".join(render(idleness).split())
    assert "than are free are treated (--oversubscription), 2 to 2.40 nodes are idle." in text
    part = characterise(events.between(0, 5 * HOUR)).to_dict()
    assert part["idle_node_hours_by_oversubscription"] == {}


@pytest.mark.parametrize("min_gap_s", [0, 60])
def test_short_idle_intervals_lower_the_figures_of_all_rules_alike(min_gap_s):
    spans = [(0, 1_000 * S, 4), (1_030 * S, 2_000 * S, 4), (1_500 * S, 1_600 * S, 1)]
    facts = build_events(counted(spans), plain(min_gap_s=min_gap_s)).report.facts
    idle = facts["node_hours"].get("idle", 0.0)
    assert facts[IDLE_BY_RULE]["clip"] == pytest.approx(idle)
    assert facts[IDLE_BY_RULE]["drop"] == pytest.approx(idle)


def test_no_figure_is_made_up_for_a_log_that_knows_more_than_counts():
    record = counted([(0, 10 * HOUR, 4), (HOUR, 2 * HOUR, 1)])
    record.add_outage(NodeState.DOWN, 0, HOUR, None)
    assert IDLE_BY_RULE not in build_events(record, plain()).report.facts
    record = listed([(0, 10 * HOUR, "a")])
    record.add_job(9, 0, 10 * HOUR, None, 2)
    report = build_events(record, plain()).report
    assert report.warnings
    assert IDLE_BY_RULE not in report.facts


def test_a_log_within_its_machine_has_no_such_figures():
    events = build_events(counted([(0, HOUR, 4)]), plain()).events
    assert characterise(events).to_dict()["idle_node_hours_by_oversubscription"] == {}
