"""A log that another program extends, cuts, replaces, removes or writes in disorder."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import S, T

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.live.growing_file import DISORDER, REPLACED, GrowingFile

IDLE, BUSY = NodeState.IDLE, NodeState.BUSY


def lines(*rows: tuple[int, str, str]) -> str:
    return "".join(f"{iso_utc(T + second * S)},{node},{word}\n" for second, node, word in rows)


HEAD = "time,node,state\n" + lines((0, "a", "idle"), (0, "b", "busy"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "growing.csv"
    file.write_text(HEAD + lines((5, "a", "busy")))
    return file


@pytest.fixture
def feed(file: Path) -> GrowingFile:
    feed = GrowingFile(file)
    feed.begin()
    assert feed.poll().rows == [(T + 5 * S, "a", BUSY)]
    return feed


def extend(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


def test_a_file_that_was_cut_is_read_from_its_beginning_without_the_rows_up_to_the_last(feed, file):
    file.write_text("time,node,state\n" + lines((5, "a", "busy"), (7, "b", "idle")))
    assert feed.poll().rows == [(T + 7 * S, "b", IDLE)]
    assert feed.notes == [REPLACED]


def test_a_file_that_was_replaced_by_a_longer_one_with_other_columns_is_read_too(feed, file):
    other = file.with_name("other.csv")
    other.write_text(f"node,state,time\na,idle,{iso_utc(T)}\n" + f"b,idle,{iso_utc(T + 7 * S)}\n" * 9)
    other.replace(file)
    assert feed.poll().until_us == T + 7 * S
    assert feed.notes == [REPLACED]


def test_a_file_that_is_away_is_waited_for(feed, file):
    text = file.read_text()
    file.unlink()
    assert feed.poll() is None
    assert feed.problem == f"{file}: No such file or directory"
    file.write_text(text + lines((9, "b", "idle")))
    assert feed.poll().rows == [(T + 9 * S, "b", IDLE)]
    assert not feed.problem


def test_rows_in_disorder_are_sorted_and_said(feed, file):
    extend(file, lines((9, "a", "busy"), (8, "a", "idle")))
    portion = feed.poll()
    assert portion.rows == [(T + 8 * S, "a", IDLE), (T + 9 * S, "a", BUSY)]
    assert feed.states["a"] == BUSY
    extend(file, lines((7, "b", "idle")))
    assert feed.poll().until_us == T + 9 * S
    assert feed.notes == [DISORDER]


def test_rows_in_order_and_blank_lines_are_nothing_to_say(feed, file):
    extend(file, "\n \n" + lines((7, "b", "idle"), (7, "a", "idle"), (9, "b", "busy")))
    assert len(feed.poll().rows) == 3
    assert feed.notes == []


@pytest.mark.parametrize("row", ["9999-01-01T00:00:00Z,a,idle", f"{iso_utc(T)},n\x1b[31m,idle"])
def test_a_time_after_tomorrow_and_an_impossible_name_are_refused(feed, file, row):
    extend(file, f"{row}\n")
    with pytest.raises(InputError, match="a row is no event") as caught:
        feed.poll()
    assert (caught.value.row, caught.value.value) == (4, row)
