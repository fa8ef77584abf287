"""Idle intervals by length, and how much of them jobs held: by numbers worked by hand, and against other tables."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.report.figures.idle_intervals import IDLE_INTERVALS, idle_intervals
from bfreplay.runs import RunResult
from tests.report.figures.drawn import check_page
from tests.run_records import run_of

HOUR_US = 3_600_000_000


def idle_intervals_run(held=(0, 6, 32), up_to=(256.0, 4096.0, 8192.0)) -> RunResult:
    """2 node-hours in 50 short idle intervals, 12 in 20 middling ones, and 40 in 30 long ones, 5 of these cut."""
    table = pa.table(
        {
            "over_s": [128.0, 256.0, 4096.0],
            "up_to_s": pa.array(up_to, pa.float64()),
            "n_intervals": [50, 20, 30],
            "n_censored": [0, 0, 5],
            "n_allocated": [0, 15, 30],
            "idle_node_us": [2 * HOUR_US, 12 * HOUR_US, 40 * HOUR_US],
            "allocated_node_us": [hours * HOUR_US for hours in held],
        }
    )
    return run_of(tables={"idle_intervals": table})


def test_shares_held_and_longer_are_worked_by_hand():
    found = idle_intervals(idle_intervals_run())
    assert found.held_share.tolist() == [0.0, 0.5, 0.8]
    assert found.longer(found.n_intervals).tolist() == [1.0, 0.5, 0.3]
    assert found.longer(found.idle_node_us).tolist() == pytest.approx([1.0, 52 / 54, 40 / 54])
    assert found.edge_s.tolist() == [128.0, 256.0, 4096.0, 8192.0]


def test_words_are_worked_by_hand():
    assert IDLE_INTERVALS.words({"": idle_intervals(idle_intervals_run())}) == (
        "100 idle intervals: those longer than 68.3 min make up 30 % of the number and 74.1 % of the idle node-hours "
        "(5 are "
        "cut by an edge of the window, and may have been longer than it shows). Jobs held 70.4 % of the idle "
        "node-hours, 0 % of those in idle intervals of up to 4.27 min and "
        "80 % of those in idle intervals of over 68.3 min."
    )


def test_rows_of_one_bin_are_one_bar():
    """A bin with more node time than 64 bits hold has several."""
    run = idle_intervals_run()
    table = run.tables["idle_intervals"]
    run.tables["idle_intervals"] = pa.concat_tables([table.slice(0, 1), table])
    found = idle_intervals(run)
    assert found.over_s.tolist() == [128.0, 256.0, 4096.0]
    assert found.n_intervals.tolist() == [100, 20, 30]
    assert found.idle_node_us.tolist() == [4 * HOUR_US, 12 * HOUR_US, 40 * HOUR_US]


def test_runs_of_one_log_tell_of_its_idle_intervals_once():
    found = {"A": idle_intervals(idle_intervals_run()), "B": idle_intervals(idle_intervals_run(held=(2, 12, 40)))}
    assert IDLE_INTERVALS.words(found).count("100 idle intervals") == 1
    columns = [column.key for column in IDLE_INTERVALS.table(found).columns]
    assert columns[2:5] == ["n_intervals", "n_censored", "idle_node_hours"]
    assert [key for key in columns if key.startswith("held_share")] == ["held_share.A", "held_share.B"]
    rows = IDLE_INTERVALS.table(found).rows
    assert [row[:2] for row in rows] == [[128.0, 256.0], [256.0, 4096.0], [4096.0, 8192.0]]
    assert rows[2][5:] == [30, 32.0, 0.8, 30, 40.0, 1.0]


def test_bins_of_other_logs_are_put_side_by_side():
    open_ended = idle_intervals_run(up_to=(256.0, 4096.0, None))
    found = {"A": idle_intervals(idle_intervals_run()), "B": idle_intervals(open_ended)}
    rows = IDLE_INTERVALS.table(found).rows
    assert [row[:2] for row in rows] == [[128.0, 256.0], [256.0, 4096.0], [4096.0, 8192.0], [4096.0, None]]
    assert rows[3][2:8] == [None] * 6
    assert rows[3][8] == 30


def test_the_table_of_a_run_adds_up_to_its_books(sample_run):
    found = idle_intervals(sample_run)
    ledger = sample_run.summary["ledger"]
    assert int(found.idle_node_us.sum()) == ledger["idle_node_us"]
    assert int(found.allocated_node_us.sum()) == ledger["allocated_node_us"]
    rows = IDLE_INTERVALS.table({"": found}).rows
    assert sum(row[4] for row in rows) == pytest.approx(ledger["node_hours"]["idle"])


def test_bars_are_as_wide_as_the_bins_and_stacked():
    found = idle_intervals(idle_intervals_run())
    above, below = IDLE_INTERVALS.draw({"": found}).axes
    held, rest = (list(bars.patches) for bars in above.containers)
    assert [bar.get_x() for bar in held] == [128.0, 256.0, 4096.0]
    assert [bar.get_width() for bar in held] == [128.0, 3840.0, 4096.0]
    assert [bar.get_height() for bar in held] == [0, 6, 32]
    assert [bar.get_y() for bar in rest] == [0, 6, 32]
    assert [bar.get_height() for bar in rest] == [2, 6, 8]
    assert [line.get_ydata()[-1] for line in below.lines] == [0.0, 0.0]
    assert [text.get_text() for text in below.get_xticklabels()] == ["5 min", "15 min", "30 min", "1 h", "2 h"]


def test_the_page_has_the_same_bars_and_curves():
    figure = check_page(IDLE_INTERVALS.page({"": idle_intervals(idle_intervals_run())}))
    bars = [trace for trace in figure.traces if trace["type"] == "bar"]
    assert [trace["y"] for trace in bars] == [[0, 6, 32], [2, 6, 8]]
    assert [x - width / 2 for x, width in zip(bars[0]["x"], bars[0]["width"], strict=True)] == [128.0, 256.0, 4096.0]
    curves = [trace for trace in figure.traces if trace["type"] == "scatter"]
    assert curves[1]["y"] == [100.0, 50.0, 30.0, 0.0]


def test_several_runs_are_a_line_each_of_the_share_held():
    found = {"A": idle_intervals(idle_intervals_run()), "B": idle_intervals(idle_intervals_run(held=(2, 12, 40)))}
    figure = check_page(IDLE_INTERVALS.page(found))
    assert [trace["y"] for trace in figure.traces[:2]] == [[0.0, 50.0, 80.0, 80.0], [100.0] * 4]
    dashes = [trace["line"]["dash"] for trace in figure.traces[:2]]
    assert len(set(dashes)) == 2
    above, _ = IDLE_INTERVALS.draw(found).axes
    assert [line.get_ydata().tolist() for line in above.lines] == [[0.0, 50.0, 80.0, 80.0], [100.0] * 4]


def test_an_open_last_bin_and_one_from_zero_are_drawn_as_wide_as_the_others():
    run = idle_intervals_run(up_to=(256.0, 4096.0, None))
    table = run.tables["idle_intervals"]
    run.tables["idle_intervals"] = table.set_column(0, "over_s", pa.array([0.0, 256.0, 4096.0]))
    found = idle_intervals(run)
    assert found.up_to_s[-1] == math.inf
    assert found.edge_s.tolist() == pytest.approx([256 / math.sqrt(2), 256.0, 4096.0, 4096 * math.sqrt(2)])
    check_page(IDLE_INTERVALS.page({"": found}))
    assert np.isfinite([bar.get_width() for bar in IDLE_INTERVALS.draw({"": found}).axes[0].patches]).all()


def test_a_log_without_idle_intervals_has_nothing_to_show(never_idle_run):
    with pytest.raises(NothingToShowError, match="there are no idle intervals"):
        idle_intervals(never_idle_run)
