from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.small_logs import BUSY, DOWN, IDLE, SECOND, log, logs, rows_of
from tests.examples import examples


def test_the_first_batch_is_one_row_for_each_node_at_the_start(three_nodes):
    first = next(three_nodes.batches())
    assert first.time_us.tolist() == [0, 0, 0]
    assert first.node.tolist() == [0, 1, 2]
    assert first.state.tolist() == [BUSY, BUSY, BUSY]


def test_rows_of_one_time_come_sorted_by_node(three_nodes):
    assert rows_of(three_nodes)[3:] == [
        (10 * SECOND, "a", IDLE),
        (10 * SECOND, "b", DOWN),
        (20 * SECOND, "c", BUSY),
        (30 * SECOND, "a", BUSY),
    ]


def test_events_of_the_first_instant_are_in_the_snapshot():
    events = log([BUSY, IDLE, BUSY], [(0, "a", IDLE), (5, "a", BUSY)])
    assert rows_of(events) == [(0, "a", IDLE), (0, "b", IDLE), (0, "c", BUSY), (5 * SECOND, "a", BUSY)]


def test_a_log_without_events_is_its_snapshot():
    assert rows_of(log([IDLE, BUSY, DOWN], [])) == [(0, "a", IDLE), (0, "b", BUSY), (0, "c", DOWN)]


def test_a_log_can_be_read_again(three_nodes):
    assert rows_of(three_nodes) == rows_of(three_nodes)


def test_node_names_given_unsorted_are_sorted_with_their_states():
    events = log([IDLE, BUSY, DOWN], [(1, "z", BUSY)], nodes=("z", "a", "m"))
    assert events.nodes == ("a", "m", "z")
    assert rows_of(events) == [(0, "a", BUSY), (0, "m", DOWN), (0, "z", IDLE), (SECOND, "z", BUSY)]


def test_a_window_starts_with_the_state_of_its_first_instant(three_nodes):
    part = three_nodes.between(10 * SECOND, 20 * SECOND)
    assert rows_of(part) == [
        (10 * SECOND, "a", IDLE),
        (10 * SECOND, "b", DOWN),
        (10 * SECOND, "c", BUSY),
        (20 * SECOND, "c", BUSY),
    ]
    assert rows_of(part.between(11 * SECOND, 12 * SECOND))[0] == (11 * SECOND, "a", IDLE)


@pytest.mark.parametrize(("start", "end"), [(-1, 50), (0, 101), (20, 20), (30, 20)])
def test_a_window_outside_the_log_is_refused_with_the_window_of_the_log(three_nodes, start, end):
    with pytest.raises(InputError) as caught:
        three_nodes.between(start * SECOND, end * SECOND)
    assert "1970-01-01T00:00:00Z to 1970-01-01T00:01:40Z" in str(caught.value.expected)
    assert caught.value.value.endswith("Z")


def test_a_part_of_a_part_cannot_be_larger(three_nodes):
    with pytest.raises(InputError, match="outside the log"):
        three_nodes.between(10 * SECOND, 20 * SECOND).between(0, 20 * SECOND)


@pytest.mark.parametrize(
    ("rows", "row", "problem"),
    [
        ([(10, "a", IDLE), (5, "b", IDLE)], 2, "backwards"),
        ([(10, "a", IDLE), (20, "a", IDLE)], 2, "idle already"),
        ([(10, "b", IDLE), (10, "a", IDLE), (10, "b", BUSY)], 3, "two rows"),
        ([(10, "a", IDLE), (101, "a", BUSY)], 2, "outside the window"),
        ([(-1, "a", IDLE)], 1, "outside the window"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_number(rows, row, problem):
    for batch_rows in (1, 2, 100):
        with pytest.raises(InputError, match=problem) as caught:
            rows_of(log([BUSY] * 3, rows), batch_rows)
        assert caught.value.row == row
        assert caught.value.column in ("time", "node", "state")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"nodes": []}, "no nodes"),
        ({"nodes": ["a", "a"]}, "two nodes"),
        ({"nodes": ["a", " b"]}, "unusable"),
        ({"initial_state": [0]}, "one value for each node"),
        ({"initial_state": [0, len(NodeState)]}, "out of range"),
        ({"node": [2]}, "out of range"),
        ({"state": []}, "one value for each row"),
        ({"state": [True]}, "whole numbers"),  # a column of true for idle would be the state busy
        ({"state": ["idle"]}, "whole numbers"),
        ({"time_us": [5.5]}, "whole numbers"),
        ({"time_us": [float("nan")]}, "whole numbers"),
        ({"time_us": np.array(["1970-01-01"], "datetime64[ns]")}, "datetime64"),
        ({"window_end_us": 0}, "no time"),
        ({"window_end_us": 10**18}, "before the year 10000"),
        ({"window_end_us": "soon"}, "the end of the window is not a time"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, problem):
    given_ = {
        "nodes": ["a", "b"],
        "initial_state": [1, 1],
        "time_us": [5],
        "node": [0],
        "state": [0],
        "window_start_us": 0,
        "window_end_us": 10,
    } | change
    if not given_["nodes"]:
        given_ |= {"initial_state": [], "time_us": [], "node": [], "state": []}
    with pytest.raises(InputError, match=problem):
        NodeEvents.from_arrays(**given_)


def test_a_batch_of_no_rows_makes_no_sense(three_nodes):
    with pytest.raises(InputError, match="at least one row"):
        rows_of(three_nodes, 0)


@settings(max_examples=examples(60), deadline=None)
@given(logs(), st.integers(1, 7))
def test_batches_of_any_size_give_the_same_rows_and_split_no_time(events, rows):
    batches = list(events.batches(rows))
    assert len(batches[0]) == len(events.nodes)
    for before, after in pairwise(batches):
        assert before.time_us[-1] < after.time_us[0]
    assert rows_of(events, rows) == rows_of(events)


@settings(max_examples=examples(60), deadline=None)
@given(logs(), st.data())
def test_a_window_has_the_rows_of_the_whole_log_after_its_start(events, data):
    span = st.integers(events.window_start_us, events.window_end_us)
    start, end = sorted(data.draw(st.lists(span, min_size=2, max_size=2, unique=True)))
    state = {}
    for time_us, name, after in rows_of(events):
        if time_us <= start:
            state[name] = after
    expected = [(start, name, state[name]) for name in events.nodes]
    expected += [row for row in rows_of(events) if start < row[0] <= end]
    assert rows_of(events.between(start, end), 3) == expected
