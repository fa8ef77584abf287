"""Statistics of idle nodes, against numbers worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets import EventsMetadata
from bfreplay.datasets.idleness import Idleness, characterise
from bfreplay.datasets.idleness.idle_intervals import IDLE_INTERVAL_BINS
from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.errors import InputError
from tests.examples import examples

IDLE, BUSY, DOWN = int(NodeState.IDLE), int(NodeState.BUSY), int(NodeState.DOWN)
MINUTE = 60_000_000
HOUR = 60 * MINUTE


def log(initial: list[int], rows: list[tuple[int, int, int]], end_us: int, start_us: int = 0) -> NodeEvents:
    """A log of nodes n0, n1, ...; rows are (time, node, state)."""
    time, node, state = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    return NodeEvents.from_arrays(
        nodes=tuple(f"n{i}" for i in range(len(initial))),
        initial_state=np.array(initial, np.int8),
        time_us=time,
        node=node.astype(np.int32),
        state=state.astype(np.int8),
        window_start_us=start_us,
        window_end_us=end_us,
    )


@pytest.fixture
def three_nodes() -> Idleness:
    """Ten hours of three nodes.

    n0 is idle from the start to 1 h, and from 2 h to 2 h 30 min.
    n1 is idle from 2 h to 4 h.
    n2 is busy, goes down at 5 h, and is idle from 8 h to the end.
    Idle nodes: 1 for 1 h, 0 for 1 h, 2 for 0.5 h, 1 for 1.5 h, 0 for 4 h, 1 for 2 h.
    """
    rows = [
        (1 * HOUR, 0, BUSY),
        (2 * HOUR, 0, IDLE),
        (2 * HOUR, 1, IDLE),
        (2 * HOUR + 30 * MINUTE, 0, BUSY),
        (4 * HOUR, 1, BUSY),
        (5 * HOUR, 2, DOWN),
        (8 * HOUR, 2, IDLE),
    ]
    return characterise(log([IDLE, BUSY, BUSY], rows, 10 * HOUR))


def test_the_integral_of_idle_nodes_over_time_gives_node_hours_and_equivalent_nodes(three_nodes: Idleness) -> None:
    assert three_nodes.idle_node_us == 5 * HOUR + 30 * MINUTE
    assert three_nodes.idle_node_hours == 5.5
    assert three_nodes.mean_idle_nodes == 0.55
    assert three_nodes.duration_s == 36_000
    assert three_nodes.share_without_idle == 0.5


def test_quantiles_of_idle_nodes_are_weighted_by_time(three_nodes: Idleness) -> None:
    # 0 for 5 h of 10, 1 for 4.5 h, 2 for 0.5 h: 95 % of the time at most one node is idle.
    assert three_nodes.idle_nodes == (0, 0, 0, 0, 1, 1, 2)


def test_a_pool_event_is_a_time_stamp_at_which_the_idle_nodes_change(three_nodes: Idleness) -> None:
    assert three_nodes.n_pool_events == 5  # 1 h, 2 h, 2.5 h, 4 h, 8 h; a busy node going down at 5 h is none
    assert (three_nodes.joins, three_nodes.reclaims, three_nodes.transitions) == (3, 3, 6)
    assert three_nodes.mean_events_per_hour == 0.5
    # per whole hour: 0 1 2 0 1 0 0 0 1 0
    assert three_nodes.events_per_hour == (0, 0, 0, 0, 1, 2, 2)
    # gaps: 1 h, 0.5 h, 1.5 h, 4 h
    assert three_nodes.gap_s == (1_800, 1_800, 1_800, 3_600, 5_400, 14_400, 14_400)
    # idle nodes after each event: 0 2 1 0 1
    assert three_nodes.idle_nodes_per_event == (0, 0, 0, 1, 1, 2, 2)


def test_a_idle_interval_cut_by_the_window_is_counted_apart_and_in_no_quantile(three_nodes: Idleness) -> None:
    assert three_nodes.idle_intervals == 2
    assert three_nodes.idle_interval_length_s == (1_800, 1_800, 1_800, 1_800, 7_200, 7_200, 7_200)
    censored = three_nodes.censored
    assert (censored.open_at_start, censored.open_at_end, censored.open_at_both) == (1, 1, 0)
    assert censored.count == 2
    assert censored.node_us == 3 * HOUR
    filled = {b.label: (b.count, b.node_hours) for b in three_nodes.idle_interval_bins if b.count}
    assert filled == {"15-60 min": (1, 0.5), "1-4 h": (1, 2.0)}


def test_bursts_count_the_nodes_that_change_at_one_time_stamp(three_nodes: Idleness) -> None:
    joins, reclaims = three_nodes.join_bursts, three_nodes.reclaim_bursts
    assert (joins.count, joins.mean_nodes, joins.nodes) == (2, 1.5, (1, 1, 1, 1, 2, 2, 2))
    assert (reclaims.count, reclaims.mean_nodes, reclaims.nodes) == (3, 1.0, (1,) * 7)


def test_a_node_idle_from_edge_to_edge_is_one_idle_interval_cut_on_both_sides() -> None:
    idleness = characterise(log([IDLE, BUSY], [], 2 * HOUR))
    assert idleness.censored.open_at_both == idleness.censored.count == 1
    assert idleness.idle_node_us == idleness.censored.node_us == 2 * HOUR
    assert idleness.nodes_ever_idle == 1
    assert idleness.idle_intervals == 0
    assert idleness.idle_interval_length_s == idleness.gap_s == idleness.idle_nodes_per_event == ()
    assert idleness.join_bursts.nodes == ()


def test_a_log_without_idle_nodes_is_all_zeros_and_no_error() -> None:
    idleness = characterise(log([BUSY, DOWN], [(HOUR, 0, DOWN)], 2 * HOUR))
    assert (idleness.idle_node_us, idleness.nodes_ever_idle, idleness.n_pool_events) == (0, 0, 0)
    assert idleness.share_without_idle == 1.0
    assert idleness.idle_nodes == (0,) * 7
    assert idleness.events_per_hour == (0,) * 7


def test_a_reclaim_and_a_join_at_one_time_stamp_are_one_event_of_two_transitions() -> None:
    idleness = characterise(log([IDLE, BUSY], [(HOUR, 0, BUSY), (HOUR, 1, IDLE)], 2 * HOUR))
    assert (idleness.n_pool_events, idleness.transitions) == (1, 2)
    assert idleness.idle_nodes == (1,) * 7


def test_the_edges_of_idle_interval_bins_belong_to_the_bin_below() -> None:
    lengths_s = [60, 61, 300, 301, 900, 3_600, 14_400, 86_400, 86_401]
    rows = []
    for node, length in enumerate(lengths_s):
        rows += [(HOUR, node, IDLE), (HOUR + length * 1_000_000, node, BUSY)]
    idleness = characterise(log([BUSY] * len(lengths_s), sorted(rows), 30 * HOUR))
    assert [b.count for b in idleness.idle_interval_bins] == [1, 2, 2, 1, 1, 1, 1]
    assert [(b.label, b.up_to_s) for b in idleness.idle_interval_bins] == list(IDLE_INTERVAL_BINS)


def test_the_last_part_of_an_hour_is_left_out_of_the_hourly_quantiles() -> None:
    rows = [(30 * MINUTE, 0, IDLE), (70 * MINUTE, 0, BUSY), (80 * MINUTE, 0, IDLE)]
    idleness = characterise(log([BUSY], rows, 90 * MINUTE))
    assert idleness.events_per_hour == (1,) * 7
    assert idleness.mean_events_per_hour == 2.0


def test_everything_is_json_with_units_in_the_names(three_nodes: Idleness) -> None:
    document = json.loads(json.dumps(three_nodes.to_dict(), allow_nan=False))
    assert document["window_start"] == "1970-01-01T00:00:00Z"
    assert document["window_end"] == "1970-01-01T10:00:00Z"
    assert document["idle_node_hours"] == 5.5
    assert document["idle_nodes"] == {"p0": 0, "p5": 0, "p25": 0, "p50": 0, "p75": 1, "p95": 1, "p100": 2}
    assert document["idle_intervals"]["bins"][3] == {
        "label": "15-60 min",
        "up_to_s": 3600,
        "count": 1,
        "node_hours": 0.5,
    }
    assert document["censored_idle_intervals"]["node_hours"] == 3.0
    assert document["reclaim_bursts"]["events"] == 3


def test_a_window_without_length_is_refused_with_its_times() -> None:
    class Empty:
        nodes = ("n0",)
        window_start_us = window_end_us = 0
        metadata = EventsMetadata()

    with pytest.raises(InputError, match="no node-time to characterise"):
        characterise(Empty())  # type: ignore[arg-type]  # NodeEvents itself refuses such a window


def test_more_node_time_than_64_bits_can_count_is_refused_with_what_to_do() -> None:
    class Endless:
        nodes = tuple(f"n{i:06}" for i in range(200_000))
        window_start_us, window_end_us = 0, 2 * 365 * 24 * HOUR
        metadata = EventsMetadata()

    with pytest.raises(InputError, match="64 bits") as refusal:
        characterise(Endless())  # type: ignore[arg-type]  # nobody wants to make 200,000 nodes' rows here
    assert "shorter window" in str(refusal.value)
    Endless.window_end_us = 365 * 24 * HOUR  # 200,000 node-years, and no batches to read
    with pytest.raises(AttributeError, match="batches"):
        characterise(Endless())  # type: ignore[arg-type]


def test_node_time_is_shared_out_over_the_states(three_nodes: Idleness) -> None:
    # n0: busy 1-2 h and 2.5-10 h; n1: busy 0-2 and 4-10; n2: busy 0-5, down 5-8
    hours = {each.state: each.node_hours for each in three_nodes.states}
    assert hours == dict.fromkeys(STATE_WORDS, 0) | {"idle": 5.5, "busy": 8.5 + 8 + 5, "down": 3}
    assert {each.state: each.share for each in three_nodes.states}["down"] == 0.1
    states = three_nodes.to_dict()["states"]
    assert states[2] == {"state": "down", "node_us": 3 * HOUR, "node_hours": 3.0, "share": 0.1}


def test_the_rule_that_chose_the_nodes_goes_with_the_figures() -> None:
    def rule(allocator):
        events = log([IDLE], [], HOUR)
        events.metadata = EventsMetadata(allocator=allocator, cluster="tiny", node_inventory="seen")
        return characterise(events).to_dict()

    assert rule(None)["node_assignment_simulated_by"] is None
    assert rule({"name": "lowest_first", "seed": None})["node_assignment_simulated_by"] == "lowest_first"
    assert rule({"name": "random", "seed": 7})["node_assignment_simulated_by"] == "random, seed 7"
    assert rule({"rule": "x"})["node_assignment_simulated_by"] == '{"rule": "x"}'
    assert (rule(None)["cluster"], rule(None)["node_inventory"], rule(None)["time_origin"]) == ("tiny", "seen", "epoch")


@st.composite
def random_logs(draw: st.DrawFn) -> NodeEvents:
    """Up to six nodes whose states change at random instants of a window of 1 ms."""
    n_nodes = draw(st.integers(1, 6))
    end_us = 1_000
    initial = draw(st.lists(st.sampled_from([IDLE, BUSY, DOWN]), min_size=n_nodes, max_size=n_nodes))
    rows = []
    for node in range(n_nodes):
        state = initial[node]
        for time in sorted(draw(st.sets(st.integers(1, end_us), max_size=8))):
            state = draw(st.sampled_from([s for s in (IDLE, BUSY, DOWN) if s != state]))
            rows.append((time, node, state))
    return log(initial, sorted(rows), end_us)


@settings(max_examples=examples(150), deadline=None)
@given(events=random_logs())
def test_the_lengths_of_all_idle_intervals_add_up_to_the_integral_of_idle_nodes(events: NodeEvents) -> None:
    idleness = characterise(events)
    complete_us = sum(b.node_us for b in idleness.idle_interval_bins)
    assert complete_us + idleness.censored.node_us == idleness.idle_node_us
    assert sum(each.node_us for each in idleness.states) == len(events.nodes) * 1_000
    assert sum(b.count for b in idleness.idle_interval_bins) == idleness.idle_intervals
    assert idleness.joins + idleness.censored.open_at_start + idleness.censored.open_at_both == (
        idleness.idle_intervals + idleness.censored.count
    )


@settings(max_examples=examples(60), deadline=None)
@given(events=random_logs(), rows=st.integers(1, 5))
def test_the_size_of_the_batches_changes_nothing(events: NodeEvents, rows: int) -> None:
    class InSmallBatches:
        nodes, window_start_us, window_end_us = events.nodes, events.window_start_us, events.window_end_us
        metadata, selection = events.metadata, {}

        def batches(self):
            return events.batches(rows=rows)

    assert characterise(InSmallBatches()) == characterise(events)  # type: ignore[arg-type]


def test_the_summit_log_has_its_published_figures(shared: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(shared / "data" / "bftrainer" / "summit-2021-02-node-events.parquet")
    node = table["node"].combine_chunks()
    names = node.dictionary.to_pylist()
    time_us = table["time"].cast("int64").to_numpy() // 1_000
    # The snapshot swallows rows of the first instant, so the window starts one poll (10 s) of the log earlier.
    order = np.argsort(time_us, kind="stable")
    idleness = characterise(
        NodeEvents.from_arrays(
            nodes=names,
            initial_state=np.full(len(names), BUSY, np.int8),
            time_us=time_us[order],
            node=node.indices.to_numpy()[order],
            state=np.where(table["idle"].to_numpy(), IDLE, BUSY)[order],
            window_start_us=int(time_us.min()) - 10_000_000,
            window_end_us=int(time_us.max()),
        )
    )
    assert idleness.duration_s / 86_400 == pytest.approx(14.896, abs=1e-3)
    assert idleness.idle_node_hours == pytest.approx(140_182.2864, abs=1e-4)
    assert idleness.nodes_ever_idle == 4_680
    assert idleness.transitions == 846_856
    assert (idleness.joins, idleness.reclaims) == (423_502, 423_354)
    assert idleness.n_pool_events == 23_882
    assert idleness.gap_s[3] == 30
    assert idleness.idle_nodes_per_event[3] == 129
    assert idleness.idle_intervals == 423_354
    assert idleness.censored.open_at_end == 148
    # Quartiles of the length of an idle interval: 162 s, 475 s, 1,397 s.
    assert idleness.idle_interval_length_s[2:5] == (162, 475, 1_397)


def test_the_worked_example_of_the_page_holds():
    """Four hours of four nodes, as docs/describe.md draws them."""
    rows = [
        (HOUR // 2, 0, IDLE),
        (HOUR, 0, BUSY),
        (HOUR, 1, IDLE),
        (HOUR, 2, IDLE),
        (2 * HOUR, 0, IDLE),
        (3 * HOUR, 1, BUSY),
        (3 * HOUR, 2, BUSY),
        (3 * HOUR, 3, DOWN),
    ]
    it = characterise(log([BUSY] * 4, rows, 4 * HOUR), "Europe/Paris")
    assert (it.idle_node_hours, it.mean_idle_nodes) == (6.5, 1.625)
    longer = {row.label: row for row in it.longer_idle_intervals}["30 min"]
    assert (longer.count, longer.node_hours, longer.mean_nodes, longer.censored) == (3, 6.0, 1.5, 1)
    assert (round(longer.share, 3), round(longer.censored_share, 3)) == (0.923, 0.308)
    assert [(w.nodes, w.share_of_time, w.stretches) for w in it.widths] == [(1, 0.875, 1), (2, 0.5, 1), (4, 0.0, 0)]
    assert [(large.label, large.per_day) for large in it.reclaim_bursts.large][-1] == ("1/2", 12.0)
    assert it.week.by_hour[1:5] == (0.5, 2.0, 3.0, 1.0)  # in Paris it was 1:00 when the window began
