"""The text that people read about a log."""

from __future__ import annotations

import numpy as np

from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.idleness.text import render
from bfreplay.datasets.log.events import NodeEvents

HOUR = 3_600_000_000


def text_of(rows: list[tuple[int, int, int]], n_nodes: int = 2, hours: int = 48) -> str:
    time, node, state = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    return render(
        characterise(
            NodeEvents.from_arrays(
                nodes=tuple(f"n{i}" for i in range(n_nodes)),
                initial_state=np.ones(n_nodes, np.int8),
                time_us=time,
                node=node.astype(np.int32),
                state=state.astype(np.int8),
                window_start_us=0,
                window_end_us=hours * HOUR,
            )
        )
    )


TWO_HOLES = [(HOUR, 0, 0), (HOUR, 1, 0), (2 * HOUR, 0, 1), (4 * HOUR, 1, 1)]


def test_every_figure_has_its_unit() -> None:
    lines = text_of(TWO_HOLES).splitlines()
    assert lines[:8] == [
        "window           1970-01-01T00:00:00Z to 1970-01-03T00:00:00Z (2.000 days)",
        "nodes            2; 2 of them idle at some time",
        "idle node-hours  4 (4.2% of all node-time)",
        "mean idle nodes  0.1 (equivalent nodes)",
        "no node idle     93.8% of the time",
        "pool events      3 (0.1 an hour)",
        "transitions      4 (2 joins, 2 reclaims)",
        "complete holes   2",
    ]


def test_bars_show_the_share_of_node_hours_of_each_bin() -> None:
    table = {line.split("  ")[0]: line for line in text_of(TWO_HOLES).splitlines()[-7:]}
    assert table["15-60 min"].endswith("1  50.0%         1.0  25.0%  " + "#" * 6)
    assert table["1-4 h"].endswith("1  50.0%         3.0  75.0%  " + "#" * 18)
    assert table["> 1 day"].endswith("0.0%")


def test_columns_of_a_table_are_aligned() -> None:
    lines = text_of(TWO_HOLES).splitlines()
    first = lines.index(next(line for line in lines if line.startswith("quantiles")))
    assert len({len(line) for line in lines[first : first + 8]}) == 1


def test_thousands_are_separated() -> None:
    text = text_of([(HOUR, 0, 0), (1_201 * HOUR, 0, 1)], n_nodes=1_500, hours=1_300)
    assert "1,500; 1 of them idle" in text
    assert "1,200 (0.1% of all node-time)" in text


def test_no_line_is_wider_than_100_columns_and_none_ends_in_spaces() -> None:
    for line in text_of(TWO_HOLES).splitlines():
        assert len(line) <= 100
        assert line == line.rstrip()


def test_a_log_without_holes_shows_dashes_instead_of_quantiles() -> None:
    text = text_of([])
    assert "length of a hole" in text
    assert text.count("  -") >= 7
    assert text.endswith("\n")


def test_the_same_log_gives_the_same_text() -> None:
    assert text_of(TWO_HOLES) == text_of(TWO_HOLES)
