"""The text that people read about a log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bfreplay.datasets import EventsMetadata
from bfreplay.datasets.idleness import Idleness, characterise
from bfreplay.datasets.idleness.idleness_text import (
    burst_table,
    hour_table,
    interval_table,
    longer_table,
    longest_table,
    quantile_tables,
    render,
    sentences,
    width_table,
)
from bfreplay.datasets.log.events import NodeEvents

HOUR = 3_600_000_000


def figures(rows: list[tuple[int, int, int]], n_nodes: int = 2, hours: int = 48, **metadata: Any) -> Idleness:
    time, node, state = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    return characterise(
        NodeEvents.from_arrays(
            nodes=tuple(f"n{i}" for i in range(n_nodes)),
            initial_state=np.ones(n_nodes, np.int8),
            time_us=time,
            node=node.astype(np.int32),
            state=state.astype(np.int8),
            window_start_us=0,
            window_end_us=hours * HOUR,
            metadata=EventsMetadata(**metadata),
        )
    )


def figures_between(first: int, last: int) -> Idleness:
    """Return figures of TWO_INTERVALS from one hour to another."""
    time, node, state = (np.array([row[k] for row in TWO_INTERVALS], np.int64) for k in range(3))
    events = NodeEvents.from_arrays(["n0", "n1"], [1, 1], time, node, state, 0, 48 * HOUR)
    return characterise(events.between(first * HOUR, last * HOUR))


def text_of(rows: list[tuple[int, int, int]], n_nodes: int = 2, hours: int = 48, **metadata: Any) -> str:
    return render(figures(rows, n_nodes, hours, **metadata))


def block(text: str, start: str) -> list[str]:
    """The lines of the block whose first line starts so."""
    return next(lines for lines in (each.splitlines() for each in text.split("\n\n")) if lines[0].startswith(start))


TWO_INTERVALS = [(HOUR, 0, 0), (HOUR, 1, 0), (2 * HOUR, 0, 1), (4 * HOUR, 1, 1)]


def test_every_figure_has_its_unit() -> None:
    assert block(text_of(TWO_INTERVALS), "window") == [
        "window              1970-01-01T00:00:00Z to 1970-01-03T00:00:00Z (2 days)",
        "nodes               2; 2 of them idle at some time",
        "idle all the time   no node",
        "idle node-hours     4 (4.17 % of all node-time)",
        "mean idle nodes     0.0833 (equivalent nodes)",
        "no node idle        93.8 % of the time",
        "pool events         3 (0.0625 an hour)",
        "transitions         4 (2 joins, 2 reclaims)",
        "complete intervals  2",
        "censored intervals  0 by the window (0 start, 0 end, 0 both), 0 node-hours",
        "node-time           idle 4.17 %, busy 95.8 %",
    ]


def test_thousands_are_separated() -> None:
    text = text_of([(HOUR, 0, 0), (1_201 * HOUR, 0, 1)], n_nodes=1_500, hours=1_300)
    assert "1,500; 1 of them idle" in text
    assert "1,200 (0.0615 % of all node-time)" in text


WIDE = [(HOUR, k, 0) for k in range(1_500)] + [(2 * HOUR, k, 1) for k in range(1_400)]


@pytest.mark.parametrize(
    "text",
    [
        text_of(TWO_INTERVALS),
        text_of([], allocator={"name": "lowest_first", "seed": 1}),
        text_of(WIDE, 1_500, 400, source_timezone="America/Argentina/Buenos_Aires", node_inventory="seen"),
        text_of(WIDE, 1_500, 40, time_origin="relative", cluster="a machine"),
        text_of([(0, k, 0) for k in range(120_000)] + [(119 * HOUR // 60, k, 1) for k in range(119_000)], 120_000, 30),
    ],
    ids=["two idle intervals", "never idle", "wide", "relative", "very large"],
)
def test_no_line_is_wider_than_100_columns_and_none_ends_in_spaces(text: str) -> None:
    for line in text.splitlines():
        assert len(line) <= 100
        assert line == line.rstrip()


def test_the_first_paragraph_answers_in_plain_sentences() -> None:
    # idle nodes: 2 from 1 to 2 h, 1 from 2 to 4 h; an idle interval of 1 h and one of 3 h
    assert sentences(figures(TWO_INTERVALS, hours=8)) == [
        "On average 0.500 of 2 nodes are idle, 25 % of all node-time: 4 idle node-hours in 8 h.",
        "Of these 4 idle node-hours, 100 % are in idle intervals longer than 10 min, as if 0.500 nodes were "
        "dedicated; "
        "75 % are in idle intervals longer than 1 h, as if 0.375 nodes were.",
        "At least 1 node is idle 37.5 % of the time, for 3 h at a stretch on average (median 3 h, longest 3 h).",
        "Nodes are reclaimed 6 times a day, 1 at once at the median and 1 at the most; at least half of the idle "
        "nodes go at once 6 times a day.",
    ]
    assert sentences(figures(TWO_INTERVALS, hours=480))[3] == (
        "Nodes are reclaimed twice in 20 days, 1 at once at the median and 1 at the most; at least half of the "
        "idle nodes go at once twice in 20 days."
    )


def test_what_happens_once_or_never_is_said_so() -> None:
    rows = [(HOUR, 0, 0), (HOUR, 1, 0), (HOUR, 2, 0), (2 * HOUR, 0, 1)]  # one of three
    a_day = sentences(figures(rows, n_nodes=3, hours=24))
    assert a_day[0].endswith("in 24 h.")
    assert a_day[3] == (
        "Nodes are reclaimed once a day, 1 at once at the median and 1 at the most; at least half of the idle nodes "
        "never go at once."
    )
    assert "reclaimed twice a day" in sentences(figures(rows, n_nodes=3, hours=12))[3]
    assert "reclaimed once in 2 days" in sentences(figures(rows, n_nodes=3, hours=48))[3]


def test_one_of_a_thing_is_singular() -> None:
    hour = figures([(HOUR, 0, 0), (2 * HOUR, 0, 1)])
    assert sentences(hour)[0].endswith("of all node-time: 1 idle node-hour in 2 days.")
    assert sentences(hour)[1].startswith("Of this 1 idle node-hour, 100 % are in idle intervals")
    assert "transitions         2 (1 join, 1 reclaim)" in render(hour).splitlines()
    whole = figures([(1, 0, 0)], hours=24)  # all but a microsecond
    assert sentences(whole)[0].startswith("On average 1 of 2 nodes is idle")
    assert "longer than 10 min, as if 1 node was dedicated" in sentences(whole)[1]
    assert sentences(figures([(HOUR, 0, 0)], n_nodes=1, hours=2))[0].startswith("On average 0.500 of 1 node is idle")
    assert sentences(figures([], n_nodes=1)) == ["The only node is never idle in 2 days."]


def test_the_paragraph_speaks_of_the_most_nodes_that_are_idle_half_of_the_time() -> None:
    rows = [(0, k, 0) for k in range(5)] + [(5 * HOUR, 0, 1), (5 * HOUR, 1, 1)]  # 5 idle for 5 h, then 3 for 3 h
    said = sentences(figures(rows, n_nodes=9, hours=8))
    assert said[2].startswith("At least 4 nodes are idle 62.5 % of the time, for 5 h at a stretch")


def test_the_paragraph_says_what_share_rests_on_cut_idle_intervals() -> None:
    (_, length, *_) = sentences(figures([(HOUR, 0, 0), (2 * HOUR, 0, 1), (5 * HOUR, 1, 0)], hours=8))
    assert length.endswith(
        "(75 % are in idle intervals cut by an edge of the window and count with the length seen, a lower bound.)"
    )


def test_the_paragraph_names_the_busiest_and_the_idlest_hour_and_day_where_all_are_covered() -> None:
    # 1970-01-01 is a Thursday; on Friday one node is idle from 11:00 to 12:00 in Paris (UTC+1), two until 13:00
    rows = [(34 * HOUR, 0, 0), (35 * HOUR, 1, 0), (36 * HOUR, 0, 1), (36 * HOUR, 1, 1)]
    text = sentences(figures(rows, hours=7 * 24, source_timezone="Europe/Paris"))[-1]
    assert text == (
        "Over the day (Europe/Paris), most are idle from 12:00 to 13:00 (0.286), fewest from 00:00 to 01:00 (0); "
        "over the week, most on Friday (0.125), fewest on Monday (0)."
    )
    assert "over the week" not in sentences(figures(rows, hours=6 * 24))[-1]
    assert "Over the day" not in sentences(figures(rows, hours=6 * 24))[2]
    assert not any("Over the day" in each for each in sentences(figures(TWO_INTERVALS, hours=23)))


def test_a_log_that_is_never_idle_is_one_sentence() -> None:
    assert sentences(figures([])) == ["None of 2 nodes is idle at any time in 2 days."]


def test_a_log_with_relative_times_says_that_it_has_no_hours() -> None:
    text = text_of(TWO_INTERVALS, time_origin="relative")
    assert "The times of the log are relative, so it has no hour of the day." in " ".join(text.split())
    assert "Idle nodes by hour and weekday: unknown, for the times of the log are relative" in text
    assert "Mon" not in text


def test_a_simulated_assignment_of_nodes_is_said_with_the_name_of_the_rule() -> None:
    text = text_of(TWO_INTERVALS, allocator={"name": "lowest_first", "seed": 3})
    note = " ".join(block(text, "Warning"))
    assert note.startswith("Warning: Which node a job had is simulated (lowest_first, seed 3): ")
    assert note.endswith("how long each node stays idle depends on the rule.")
    assert "simulated" not in text_of(TWO_INTERVALS)


def test_the_machine_is_named_and_nodes_that_were_only_seen_are_called_so() -> None:
    lines = block(text_of(TWO_INTERVALS, cluster="tiny", node_inventory="seen"), "cluster")
    assert lines[0] == "cluster             tiny"
    assert lines[2] == "nodes               2 with rows in the log; 2 of them idle at some time"


def test_the_table_of_hours_has_no_rows_for_hours_before_and_between() -> None:
    events = figures_between(2, 4)
    assert "not in the window: Mon, Tue, Wed, Fri, Sat, Sun, 00-02 h, 04-24 h" in render(events).splitlines()


def test_nodes_that_are_idle_all_the_time_are_named_as_far_as_there_is_room() -> None:
    def line(n_idle: int) -> str:
        rows = [(0, k, 0) for k in range(n_idle)]
        return next(each for each in text_of(rows, n_nodes=60).splitlines() if each.startswith("idle all the time"))

    assert line(1) == "idle all the time   1 node: n0"
    assert line(3) == "idle all the time   3 nodes: n0, n1, n2"
    assert line(50).startswith("idle all the time   50 nodes: n0, n1, n10, n11, ")
    assert line(50).endswith(", ...")
    assert len(line(50)) <= 100


def test_the_zone_that_is_not_known_is_named() -> None:
    unknown = text_of(TWO_INTERVALS, source_timezone="site time")
    assert "(UTC, for no zone is known as 'site time')" in unknown


def test_the_same_log_gives_the_same_text() -> None:
    assert text_of(TWO_INTERVALS) == text_of(TWO_INTERVALS)


def test_bars_show_the_share_of_node_hours_of_each_bin() -> None:
    rows = {label: cells for label, *cells in interval_table(figures(TWO_INTERVALS)).rows}
    assert rows["15-60 min"] == [1, 0.5, 1.0, 0.25, "#" * 6]
    assert rows["1-4 h"] == [1, 0.5, 3.0, 0.75, "#" * 18]
    assert rows["> 1 day"] == [0, 0.0, 0.0, 0.0, ""]


def test_the_table_of_longer_idle_intervals_gives_shares_and_equivalent_nodes() -> None:
    rows = {label: cells for label, *cells in longer_table(figures(TWO_INTERVALS, hours=8)).rows}
    assert rows["30 min"] == [2, 4.0, 1.0, 0.5, 0.0]
    assert rows["1 h"] == [1, 3.0, 0.75, 0.375, 0.0]
    assert rows["4 h"] == [0, 0.0, 0.0, 0.0, 0.0]


def test_the_table_of_widths_gives_stretches() -> None:
    table = width_table(figures([*TWO_INTERVALS, (5 * HOUR, 0, 0), (6 * HOUR, 0, 1)], hours=8))
    assert table.rows == [[1, 0.5, 2, 0, 7_200.0, 3_600.0, 10_800.0], [2, 0.125, 1, 0, 3_600.0, 3_600.0, 3_600.0]]


def hour_rows(found: Idleness) -> tuple[list[str], dict[str, list[Any]], str]:
    """Weekdays, cells by hour, and the last line of the text."""
    assert found.week is not None
    table = hour_table(found.week, found.mean_idle_nodes)
    block_lines = block(render(found), table.caption)
    return [column.words for column in table.columns[1:]], {hour: cells for hour, *cells in table.rows}, block_lines[-1]


def test_the_table_of_hours_has_a_column_a_weekday_and_none_where_nothing_is_covered() -> None:
    head, rows, last = hour_rows(figures(TWO_INTERVALS, hours=6 * 24 + 8))  # from a Thursday to 08:00 on a Wednesday
    assert head == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "all days"]
    assert rows["01-02 h"] == [0, 0, 0, 2, 0, 0, 0, pytest.approx(2 / 7)]
    assert rows["09-10 h"] == [0, 0, None, 0, 0, 0, 0, 0]
    assert len(rows) == 25
    assert last.startswith("all hours")


def test_the_table_of_hours_leaves_out_what_the_window_has_not_and_says_what() -> None:
    head, rows, last = hour_rows(figures(TWO_INTERVALS, hours=8))
    assert head == ["Thu", "all days"]
    assert list(rows)[:9] == [*(f"0{hour}-0{hour + 1} h" for hour in range(8)), "all hours"]
    assert (rows["01-02 h"], rows["all hours"]) == ([2, 2], [0.5, 0.5])
    assert last == "not in the window: Mon, Tue, Wed, Fri, Sat, Sun, 08-24 h"
    head, rows, last = hour_rows(figures(TWO_INTERVALS, hours=36))
    assert (head, rows["13-14 h"]) == (["Thu", "Fri", "all days"], [0, None, 0])
    assert last == "not in the window: Mon, Tue, Wed, Sat, Sun"


def test_the_longest_idle_intervals_are_a_table_of_nodes() -> None:
    rows = [(0, 0, 0), (0, 1, 0), (5 * HOUR, 1, 1), (30 * HOUR, 1, 0), (40 * HOUR, 2, 0), (41 * HOUR, 2, 1)]
    assert [*map(list, longest_table(figures(rows, n_nodes=4)).rows)] == [
        ["n1", 30 * HOUR, 48 * HOUR, 18 * 3_600.0, "end"],
        ["n2", 40 * HOUR, 41 * HOUR, 3_600.0, None],
    ]
    assert "Longest idle intervals" not in text_of([])
    assert "Longest idle intervals" not in text_of([(0, 0, 0)])


def test_the_table_of_bursts_counts_bursts_a_day() -> None:
    rows = burst_table(figures(TWO_INTERVALS, hours=8)).rows
    assert rows[0] == ["of reclaims", 6, 6, 6, 6]  # one of two, one of one, in 8 h
    assert rows[2] == ["of joins", 3, 3, 3, 3]  # two of two
    assert rows[3] == ["  mean nodes of joins", 2, 2, 2, 2]


def test_a_log_without_idle_intervals_shows_dashes_instead_of_quantiles() -> None:
    (*_, lengths) = quantile_tables(figures([]))[1].rows
    assert lengths == ["length of an idle interval", *[None] * 7]
    assert text_of([]).count("  -") >= 7
    assert text_of([]).endswith("\n")
