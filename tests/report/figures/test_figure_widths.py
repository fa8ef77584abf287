"""How many nodes were idle and held at once: by numbers worked by hand, and against other tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.report.figures.widths import WIDTHS, widths
from bfreplay.runs import RunResult
from tests.report.figures.drawn import check_page
from tests.run_records import run_of

SECOND = 1_000_000
TIME = pa.timestamp("us", tz="UTC")


def widths_run(n_idle=(0, 4, 1, 4), held=((2, 20, 60), (1, 30, 50)), times_s=(0, 20, 50, 60)) -> RunResult:
    """100 s: idle nodes from 0, 20, 50 and 60 s on; jobs hold (nodes, from, to)."""
    pool = pa.table({"time": pa.array([time_s * SECOND for time_s in times_s], TIME), "n_idle": list(n_idle)})
    allocations = pa.table(
        {
            "job": pa.array(["a"] * len(held)).dictionary_encode(),
            "node_type": pa.array(["any"] * len(held)).dictionary_encode(),
            "count": pa.array([count for count, _, _ in held], pa.int64()),
            "from": pa.array([start * SECOND for _, start, _ in held], TIME),
            "to": pa.array([end * SECOND for _, _, end in held], TIME),
        }
    )
    record = {"config": {"window_start_us": 0, "window_end_us": 100 * SECOND}}
    return run_of(record, {"pool": pool, "allocations": allocations})


def test_shares_of_the_time_are_worked_by_hand():
    found = widths(widths_run())
    assert found.idle.nodes.tolist() == [1, 4]
    assert found.idle.share.tolist() == [0.8, 0.7]
    assert found.held.nodes.tolist() == [2, 3]
    assert found.held.share.tolist() == pytest.approx([0.4, 0.2])
    assert (found.mean_idle, found.mean_held) == (2.9, 1.0)


def test_shares_hold_for_numbers_between_those_that_there_were():
    idle = widths(widths_run()).idle
    assert [idle(n) for n in range(1, 6)] == [0.8, 0.7, 0.7, 0.7, 0.0]
    assert idle.most_for(0.5) == 4
    assert idle.most_for(0.75) == 1
    assert idle.most_for(0.9) == 0


def test_shares_of_a_run_are_those_of_its_books(sample_run):
    found = widths(sample_run)
    ledger, config = sample_run.summary["ledger"], sample_run.record["config"]
    window_us = config["window_end_us"] - config["window_start_us"]
    assert found.mean_idle == pytest.approx(sample_run.summary["equivalent_nodes"])
    assert found.mean_held == pytest.approx(ledger["allocated_node_us"] / window_us)
    assert found.idle.nodes[-1] == sample_run.summary["most_idle_nodes"]
    for curve, mean in ((found.idle, found.mean_idle), (found.held, found.mean_held)):
        # a mean is the sum over all w of the share of the time with at least w
        assert (curve.share * np.diff(curve.nodes, prepend=0)).sum() == pytest.approx(mean)
    assert all(found.held(n) <= found.idle(n) for n in (1, 2, 4, 8, 16, 32))


def test_steps_are_drawn_where_the_shares_change():
    found = {"": widths(widths_run())}
    assert found[""].idle.steps() == ([1, 1, 4, 4], [80.0, 80.0, 70.0, 0.0])
    figure = check_page(WIDTHS.page(found))
    assert [(trace["name"], trace["y"][-2]) for trace in figure.traces] == [("idle", 70.0), ("held by jobs", 20.0)]
    (axes,) = WIDTHS.draw(found).axes
    assert [line.get_ydata().tolist() for line in axes.lines] == [trace["y"] for trace in figure.traces]


def test_what_is_idle_is_shown_once_for_runs_of_one_log():
    one_log = {"A": widths(widths_run()), "B": widths(widths_run(held=()))}
    assert [trace["name"] for trace in check_page(WIDTHS.page(one_log)).traces] == [
        "idle",
        "A: held by jobs",
        "B: held by jobs",
    ]
    two_logs = {"A": widths(widths_run()), "B": widths(widths_run(n_idle=(2, 2, 2, 2)))}
    assert [column.words for column in WIDTHS.table(two_logs).columns] == [
        "Nodes, at least",
        "A: idle",
        "A: held by jobs",
        "B: idle",
        "B: held by jobs",
    ]


def test_the_table_has_powers_of_two_up_to_the_most():
    table = WIDTHS.table({"": widths(widths_run(n_idle=(0, 6, 1, 6)))})
    assert table.rows == [[1, 0.8, 0.4], [2, 0.7, 0.4], [4, 0.7, 0.0], [6, 0.7, 0.0]]


def test_words_are_worked_by_hand():
    assert WIDTHS.words({"": widths(widths_run())}) == (
        "At least one node was idle 80 % of the time, and at least 4 nodes half of the time (mean 2.90). "
        "Jobs held a node 40 % of the time, and none for more than half of the time (mean 1)."
    )


def test_idle_nodes_that_are_there_less_than_half_of_the_time_are_told_as_such():
    words = WIDTHS.words({"": widths(widths_run(n_idle=(0, 4, 0, 0)))})
    assert words.startswith("At least one node was idle 30 % of the time, and none for more than half of the time")


def test_hovering_tells_of_one_node_as_one():
    (idle, _) = WIDTHS.page({"": widths(widths_run())}).traces
    assert idle["customdata"] == ["1 node", "1 node", "4 nodes", "4 nodes"]


def test_runs_that_hold_nothing_are_drawn(no_jobs_run):
    found = {"": widths(no_jobs_run)}
    assert found[""].held.steps() == ([1, 1], [0.0, 0.0])
    check_page(WIDTHS.page(found))
    assert len(WIDTHS.draw(found).axes) == 1


def test_a_log_that_is_never_idle_has_nothing_to_show(never_idle_run):
    with pytest.raises(NothingToShowError, match="no node was idle"):
        widths(never_idle_run)


def test_a_number_that_lasts_no_time_does_not_count():
    found = widths(widths_run(n_idle=(3, 9, 1, 1), times_s=(0, 40, 40, 60))).idle
    assert found.nodes.tolist() == [1, 3]
    assert found.share.tolist() == [1.0, 0.4]
