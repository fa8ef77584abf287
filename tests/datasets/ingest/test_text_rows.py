"""Delimited text as arrays: the usual spelling of a value is read as by the reader of single rows, no other is."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest.clock import wall_clock_us
from bfreplay.datasets.ingest.text_rows import TextRows


def column_of(*cells):
    block = "".join(f"x|{cell}|y\n" for cell in cells).encode("utf-8", "surrogateescape")
    return TextRows(block, "|", 3)


def read(found):
    values, is_one = found
    return [value if is_read else None for value, is_read in zip(values.tolist(), is_one.tolist(), strict=True)]


def test_lines_have_their_cells_and_their_text():
    rows = TextRows(b"a|b|\r\n\n||\nx|y\nx|y|z|w\n\xff|b|c\r\r\n", "|", 3)
    assert rows.is_whole.tolist() == [True, False, True, False, False, True]
    whole = [[rows.cell(row, column) for column in range(3)] for row in (0, 2, 5)]
    assert whole == [["a", "b", ""], ["", "", ""], ["\udcff", "b", "c"]]
    assert [rows.line(row) for row in range(len(rows))] == ["a|b|", "", "||", "x|y", "x|y|z|w", "\udcff|b|c"]


@pytest.mark.parametrize("text", ["0", "7", "123456789012345"])
def test_whole_numbers_are_read(text):
    assert read(column_of(text, "x").numbers(1)) == [int(text), None]


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1 ", "1e3", "07", "1234567890123456", "١", "1/", "1:"])
def test_other_spellings_of_numbers_are_left(text):
    assert read(column_of(text, "5").numbers(1)) == [None, 5]


@given(st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31, 23, 59, 59)))
def test_times_are_read_as_one_by_one(moment):
    text = f"{moment:%Y-%m-%dT%H:%M:%S}"
    assert read(column_of(text).wall_clock_us(1)) == [wall_clock_us(text)]


def test_every_day_of_four_centuries_around_leap_years_is_read():
    days = [datetime(year, 2, 27) + timedelta(days=i) for year in (1972, 1999, 2000, 2024, 2100) for i in range(4)]
    texts = [f"{day:%Y-%m-%dT%H:%M:%S}" for day in days] + ["2000-12-31T23:59:59"]
    assert read(column_of(*texts).wall_clock_us(1)) == [wall_clock_us(text) for text in texts]


NUMBER = st.integers(0, 99).map("{:02d}".format)


@given(NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, st.sampled_from(["2023", "2024", "1969", "2200", "0001"]))
def test_times_that_no_clock_shows_are_left(month, day, hour, minute, second, year):
    text = f"{year}-{month}-{day}T{hour}:{minute}:{second}"
    (found,) = read(column_of(text).wall_clock_us(1))
    assert found in (None, wall_clock_us(text))
    if 1970 <= int(year) < 2200 and second != "60":
        assert found == wall_clock_us(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-01 00:00:00",
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:0",
        "2024/01/01T00:00:00",
        "2024-01-01T00.00:00",
        "2o24-01-01T00:00:00",
        "1704067200",
        "Unknown",
        "2024-01-01T0-:00:00",
    ],
)
def test_other_spellings_of_times_are_left(text):
    assert read(column_of(text).wall_clock_us(1)) == [None]


def test_texts_are_read_once_each():
    asked = []
    known = {}
    rows = column_of("a", "b", "a", "c|d")
    assert rows.values(1, lambda text: asked.append(text) or text * 2, known, None) == ["aa", "bb", "aa", None]
    assert rows.values(1, lambda text: asked.append(text) or text * 2, known, None) == ["aa", "bb", "aa", None]
    assert asked == ["a", "b"]
