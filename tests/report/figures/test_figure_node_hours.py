"""Where the idle node-hours went, by numbers, and that bars show them."""

from __future__ import annotations

import pytest

from bfreplay.report.figures.figure import NothingToShowError
from bfreplay.report.figures.node_hours import NODE_HOURS, PARTS, node_hours
from bfreplay.runs import RunResult
from tests.report.figures.drawn import check_page
from tests.run_records import run_of

HOUR_US = 3_600_000_000


def ledger_run(useful=60, rescaling=10, lost=5, repeated=0, stalled=5, free=20) -> RunResult:
    """A run of which only the ledger is known, in node-hours."""
    hours = {
        "useful_node_us": useful,
        "rescaling_node_us": rescaling,
        "preempted_node_us": lost,
        "repeated_node_us": repeated,
        "stalled_node_us": stalled,
        "unallocated_node_us": free,
    }
    ledger = {name: value * HOUR_US for name, value in hours.items()}
    ledger["idle_node_us"] = sum(ledger.values())
    return run_of({"summary": {"ledger": ledger}})


def test_shares_are_those_of_the_books():
    found = node_hours(ledger_run(useful=52, repeated=8))
    assert [found.hours(part.key) for part in PARTS] == [52, 10, 5, 8, 5, 20]
    assert [found.share(part.key) for part in PARTS] == [0.52, 0.1, 0.05, 0.08, 0.05, 0.2]


def test_node_hours_of_a_run_are_those_of_its_summary(sample_run):
    found, hours = node_hours(sample_run), sample_run.summary["ledger"]["node_hours"]
    names = ("useful", "rescaling", "preempted", "repeated", "stalled", "unallocated")
    assert [found.hours(part.key) for part in PARTS] == [hours[name] for name in names]
    assert sum(found.part.values()) == found.idle


def test_bars_lie_end_to_end_up_to_a_hundred_percent(sample_run, other_run):
    found = {"A": node_hours(sample_run), "B": node_hours(other_run), "C": node_hours(ledger_run())}
    (axes,) = NODE_HOURS.draw(found).axes
    for row in range(3):
        bars = [bars.patches[row] for bars in axes.containers]
        end = 0.0
        for bar in bars:
            assert bar.get_x() == pytest.approx(end)
            end += bar.get_width()
        assert end == pytest.approx(100)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A", "B", "C"]
    assert len({bars.patches[0].get_hatch() for bars in axes.containers}) >= 4  # told apart without colour


def test_the_page_has_the_same_bars():
    found = {"": node_hours(ledger_run()), "B": node_hours(ledger_run(useful=0, stalled=0, free=30))}
    figure = check_page(NODE_HOURS.page(found))
    bars = {trace["name"]: trace["x"] for trace in figure.traces}
    assert bars["useful"] == [60, 0]
    assert bars["unallocated: held by no job"][0] == pytest.approx(20)
    assert sum(values[1] for values in bars.values()) == pytest.approx(100)


def test_parts_that_no_run_has_are_not_drawn_but_are_in_the_table():
    found = {"": node_hours(ledger_run(useful=52, repeated=8, stalled=0))}
    assert len(NODE_HOURS.page(found).traces) == len(PARTS) - 1
    table = NODE_HOURS.table(found)
    assert [row[0] for row in table.rows] == [*(part.words for part in PARTS), "all"]
    assert [row[1] for row in table.rows] == [52, 10, 5, 8, 0, 20, 95]
    assert sum(row[2] for row in table.rows[:-1]) == pytest.approx(1)


def test_lost_work_is_shown_only_where_some_run_has_lost_some():
    without, lossy = node_hours(ledger_run()), node_hours(ledger_run(useful=52, repeated=8))
    words = "repeated: the work was lost"
    assert words not in [row[0] for row in NODE_HOURS.table({"": without}).rows]
    assert len(NODE_HOURS.page({"": without}).traces) == len(PARTS) - 1
    (row,) = [row for row in NODE_HOURS.table({"A": without, "B": lossy}).rows if row[0] == words]
    assert row[1:] == [0, 0, 8, 0.08]
    assert "8 % repeated (work lost), " in NODE_HOURS.words({"": lossy})


def test_words_tell_the_shares():
    assert NODE_HOURS.words({"": node_hours(ledger_run())}) == (
        "Of 100 idle node-hours 60 % were useful, 10 % went into rescaling, 5 % were preempted, "
        "20 % stayed unallocated, 5 % stalled (held, nothing made)."
    )


def test_a_log_that_is_never_idle_has_nothing_to_show(never_idle_run):
    with pytest.raises(NothingToShowError, match="no node was idle"):
        node_hours(never_idle_run)
