"""Rows of ``sacct`` read many at a time: the record and the report are those of rows read one by one."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay._compiled import IS_COMPILED
from bfreplay.datasets.ingest.local_times import wall_clock_us
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm import command_tables, sacct, sacct_rows
from bfreplay.datasets.ingest.slurm.ordinary_rows import TextRows
from bfreplay.datasets.ingest.slurm.reader import SlurmReader
from bfreplay.errors import InputError
from tests.datasets.ingest.slurm_logs import files_of
from tests.examples import examples

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="without numba all rows are read one by one")

COLUMNS = ("JobIDRaw", "JobID", "Cluster", "State", "Submit", "Start", "End", "ElapsedRaw", "Suspended")
COLUMNS += ("TimelimitRaw", "NNodes", "NodeList", "Restarts")
HEADER = "|".join(COLUMNS)
GOOD = {
    "JobIDRaw": "7",
    "JobID": "7",
    "Cluster": "hill",
    "State": "COMPLETED",
    "Submit": "2024-03-01T09:00:00",
    "Start": "2024-03-01T10:00:00",
    "End": "2024-03-01T11:00:00",
    "ElapsedRaw": "3600",
    "Suspended": "00:00:00",
    "TimelimitRaw": "90",
    "NNodes": "2",
    "NodeList": "n[1-2]",
    "Restarts": "0",
}
OTHERS = {
    "JobIDRaw": ["8", "8", "9", "007", "7.batch", "x", "", "123456789012345678", "-1"],
    "JobID": ["8", "7_1", "7_[2-3]", "7+1", "7.batch", "_1", "7_", "", "x"],
    "Cluster": ["hill", "", "dale", "(null)"],
    "State": ["FAILED", "TIMEOUT", "CANCELLED by 7", "CANCELLE+", "RUNNING", "PENDING", "completed", "STRANGE", ""],
    "Submit": ["2024-03-01T09:00:01", "2024-03-01T09:00:02", "", "x"],
    "Start": ["2024-03-01T10:00:01", "2024-03-01T09:59:59", "2024-03-31T02:30:00", "2024-10-27T02:30:00", "Unknown",
              "1709287200", "2024-03-01T10:00:00+01:00", "2024-03-01T13:00:00", "x"],
    "End": ["2024-03-01T11:00:01", "2024-03-01T10:00:00", "2024-03-01T12:00:00", "2024-10-27T02:40:00", "Unknown",
            "2023-03-01T11:00:00", "None", "9999-12-31T23:59:59"],
    "ElapsedRaw": ["3601", "3602", "3599", "0", "", "01:00:00", "999999999999999"],
    "Suspended": ["00:00:01", "", "x"],
    "TimelimitRaw": ["0", "UNLIMITED", "", "99999999", "999999999999999"],
    "NNodes": ["1", "3", "0", "", "40", "x"],
    "NodeList": ["n1", "n[1,3]", "n[2-3]", "n[1-40]", "n4", "n1,n1", "m[01-02]", "None assigned", "", "12", "n[1-"],
    "Restarts": ["1", "2", "", "x"],
}  # fmt: skip
OPTIONS = {"timezone": "Europe/Berlin", "dst_fold": "earlier"}


def text_of(columns=COLUMNS, **cells):
    return "|".join((GOOD | cells)[name] for name in columns)


def state_of(folder, content, block_bytes, inventory=(), **options):
    """All that reading leaves, or its error; and how many rows were taken at once. No block: rows one by one."""
    n_taken = []
    record = ScheduleRecord()
    if inventory:
        record.give_inventory(inventory)
    add = sacct_rows.JobRows.add_ordinary
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_tables, "BLOCK_BYTES", block_bytes or 1)
        patch.setattr(sacct, "IS_COMPILED", block_bytes is not None)
        patch.setattr(
            sacct_rows.JobRows, "add_ordinary", lambda rows, jobs: (n_taken.append(len(jobs.row)), add(rows, jobs))
        )
        try:
            SlurmReader().read(files_of(folder, content), record, ReadOptions(**(OPTIONS | options)))
        except InputError as error:
            return str(error), 0
    report, edges = record.report, (record.first_start_us, record.last_end_us, record.last_stamp_us, record.longest_us)
    jobs = [
        [*(column.tolist() for column in part.columns), part.first_node.tolist(), part.nodes.tolist(), following]
        for part, following in record.jobs.slices()
    ]
    counts = record.n_open, record.n_counted, record.cluster, record.timezone, record.jobs.n_rows
    return (json.dumps(report.to_json()), edges, jobs, record.nodes, counts), sum(n_taken)


def check_same(content, block_bytes=300, **options):
    """Check that the content is read as row by row; return how many rows were taken at once."""
    with TemporaryDirectory() as folder:
        one_by_one, _ = state_of(Path(folder), content, None, **options)
        at_once, n_taken = state_of(Path(folder), content, block_bytes, **options)
    assert at_once == one_by_one
    return n_taken


NEEDED = ("JobIDRaw", "State", "Start", "End", "NodeList")
OPTIONAL = [name for name in COLUMNS if name not in NEEDED]
NO_ROWS = ["", " ", HEADER, "|".join(NEEDED), text_of() + "|x", "7|x", text_of()[:40], "\xff|" + HEADER]


@st.composite
def rows(draw, columns):
    cells = {}
    for name in draw(st.lists(st.sampled_from(columns), max_size=2)):
        cells[name] = draw(st.sampled_from(OTHERS[name]))
    if draw(st.booleans()):
        cells.setdefault("JobIDRaw", str(draw(st.integers(10, 20))))
    return text_of(columns, **cells)


@st.composite
def contents(draw):
    absent = draw(st.lists(st.sampled_from(OPTIONAL), max_size=5))
    columns = [name for name in COLUMNS if name not in absent]
    one = rows(columns)
    lines = draw(st.lists(st.one_of(one, one, one, st.sampled_from(NO_ROWS)), min_size=3, max_size=25))
    end = draw(st.sampled_from(["\n", "\r\n", ""]))
    return (end or "\n").join(["|".join(columns), text_of(columns), *lines]) + end


@given(contents(), st.sampled_from([120, 600]))
@settings(max_examples=examples(400))
def test_any_rows_are_read_as_one_by_one(content, block_bytes):
    check_same(content, block_bytes)


def log(n, **cells):
    return "\n".join([HEADER, *(text_of(JobIDRaw=str(i), JobID=str(i), **cells) for i in range(10, 10 + n))]) + "\n"


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"State": "FAILED"},
        {"State": "CANCELLED by 7"},
        {"State": "TIMEOUT"},
        {"TimelimitRaw": "UNLIMITED"},
        {"Suspended": ""},
        {"Cluster": ""},
        {"NodeList": "n1,n2"},
        {"ElapsedRaw": "3601"},
        {"ElapsedRaw": "3599"},
    ],
)
def test_ordinary_rows_are_taken_at_once(cells):
    assert check_same(log(20, **cells)) >= 15


NOT_ORDINARY = [
    {"JobIDRaw": "007"}, {"JobIDRaw": "7.batch"}, {"JobID": "7+1"}, {"JobID": "7.batch"}, {"JobID": "7_[2-3]"},
    {"JobID": "_1"}, {"JobID": "7_"}, {"Cluster": "dale"}, {"State": "RUNNING"}, {"State": "STRANGE"},
    {"End": "2024-03-01T10:00:00", "ElapsedRaw": "0"}, {"Start": "2024-03-31T02:30:00"}, {"End": "Unknown"},
    {"Start": "2024-10-27T02:10:00", "End": "2024-10-27T02:40:00", "ElapsedRaw": "1800"}, {"ElapsedRaw": "3602"},
    {"ElapsedRaw": ""}, {"Suspended": "00:00:01"}, {"NNodes": "3"}, {"NNodes": ""}, {"NNodes": "0"},
    {"NodeList": "n[2,1]"}, {"NodeList": "12"}, {"NodeList": "new1,new2"}, {"Restarts": "1"}, {"Restarts": ""},
]  # fmt: skip


@pytest.mark.parametrize("cells", NOT_ORDINARY, ids=str)
def test_a_row_with_anything_unusual_is_left_and_no_other(cells):
    lines = log(20).splitlines()
    lines[15] = text_of(**{"JobIDRaw": "99"} | cells)
    taken, taken_without = check_same("\n".join(lines) + "\n", 1000), check_same(log(20), 1000)
    assert taken == taken_without - 1


@pytest.mark.parametrize("name", ["Start", "End"])
def test_a_time_that_is_none_is_left_without_a_running_time_too(name):
    columns = ["JobIDRaw", "State", "Start", "End", "NodeList"]
    lines = [text_of(columns, JobIDRaw=str(i)) for i in range(20)]
    lines[15] = text_of(columns, **{name: "2024-03-01T10:30:0x"})
    content = "\n".join(["|".join(columns), *lines]) + "\n"
    assert check_same(content, 500) < check_same(content.replace("30:0x", "30:00"), 500)


def test_columns_may_change_within_a_block():
    fewer = ["JobIDRaw|NodeList|State|Start|End", *["8|n1|FAILED|2024-03-02T10:00:00|2024-03-02T11:00:00"] * 9]
    assert check_same(log(12) + "\n".join(fewer) + "\n" + log(12), 2000) > 20


@pytest.mark.parametrize("delimiter", ["|", ",", "\t", ";"])
@pytest.mark.parametrize("end", ["", "|"])
def test_rows_with_other_separators_are_taken_too(delimiter, end):
    content = log(20).replace("\n", f"{end}\n").replace("|", delimiter)
    assert check_same(content) >= 15


def test_text_behind_the_last_separator_is_left():
    content = log(20).replace("\n", "|\n")
    lines = content.splitlines()
    lines[15] += "x"
    assert check_same("\n".join(lines) + "\n", 1000) < check_same(content, 1000)


def test_quotes_are_left_except_in_a_table_of_sacct_itself():
    lines = log(20).splitlines()
    lines[15] = text_of(Submit='"x')
    content = "\n".join(lines) + "\n"
    assert check_same(content, 1000) == check_same(log(20), 1000) - 1  # a submit time that cannot be read
    assert check_same(content.replace("|", ";"), 1000) < check_same(log(20).replace("|", ";"), 1000)


def test_rows_on_nodes_of_a_given_inventory_are_taken_from_the_first_on():
    with TemporaryDirectory() as folder:
        (at_once, *_), n_taken = state_of(Path(folder), log(20, Cluster=""), 10_000, inventory=["n1", "n2"])
    assert n_taken == 20
    assert "given as Europe/Berlin" in at_once


def test_elapsed_and_limits_are_read_in_their_other_columns():
    content = log(20).replace("ElapsedRaw", "Elapsed").replace("TimelimitRaw", "Timelimit")
    content = content.replace("|3600|", "|01:00:00|").replace("|90|", "|1-00:00:00|")
    assert check_same(content) >= 15
    assert check_same(content.replace("1-00:00:00", "Partition_Limit")) >= 15


def test_a_limit_that_is_no_number_is_looked_for_in_its_other_column():
    one = log(20, Cluster="", TimelimitRaw="Partition_Limit")
    both = one.replace("TimelimitRaw|", "TimelimitRaw|Timelimit|").replace("_Limit|", "_Limit|01:30:00|")
    assert check_same(both) == 0
    assert check_same(one + both, 10_000, inventory=["n1", "n2"]) == 20


def test_many_starts_at_the_first_second_are_counted_with_their_submissions():
    lines = [text_of(JobIDRaw=str(i), JobID=str(i), Submit=f"2024-03-01T09:00:{i}") for i in range(10, 40)]
    content = "\n".join([HEADER, *lines]) + "\n"
    assert check_same(content) >= 20
    with TemporaryDirectory() as folder:
        (report, *_), _ = state_of(Path(folder), content, 300)
    assert sacct_rows.CUT_STARTS in report


def test_a_first_run_that_was_interrupted_is_remembered():
    first = log(20, State="NODE_FAIL")
    # of the last ones, which were all taken at once
    second = [text_of(JobIDRaw=str(i), JobID=str(i), Restarts="1", Start="2024-03-01T10:30:00") for i in range(26, 30)]
    assert check_same(first + "\n".join(second) + "\n") >= 15
    with TemporaryDirectory() as folder:
        (report, *_), _ = state_of(Path(folder), first + "\n".join(second) + "\n", 300)
    assert sacct_rows.RUNS_MISSING not in report


def test_a_block_that_lists_more_nodes_than_fit_is_taken_in_parts(monkeypatch):
    monkeypatch.setattr("bfreplay.datasets.ingest.known_nodes.LEAST_NODES", 5)
    assert check_same(log(20), 1000) >= 10


def test_local_times_without_a_zone_are_refused_as_one_by_one():
    check_same(log(20), timezone=None)


def column_of(*cells):
    block = "".join(f"x|{cell}|y\n" for cell in cells).encode("utf-8", "surrogateescape")
    return TextRows(block, "|", 3)


def read_column(found):
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
    assert read_column(column_of(text, "x").numbers(1)) == [int(text), None]


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1 ", "1e3", "07", "1234567890123456", "١", "1/", "1:"])
def test_other_spellings_of_numbers_are_left(text):
    assert read_column(column_of(text, "5").numbers(1)) == [None, 5]


@given(st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31, 23, 59, 59)))
def test_times_are_read_as_one_by_one(moment):
    text = f"{moment:%Y-%m-%dT%H:%M:%S}"
    assert read_column(column_of(text).wall_clock_us(1)) == [wall_clock_us(text)]


def test_every_day_of_four_centuries_around_leap_years_is_read():
    days = [datetime(year, 2, 27) + timedelta(days=i) for year in (1972, 1999, 2000, 2024, 2100) for i in range(4)]
    texts = [f"{day:%Y-%m-%dT%H:%M:%S}" for day in days] + ["2000-12-31T23:59:59"]
    assert read_column(column_of(*texts).wall_clock_us(1)) == [wall_clock_us(text) for text in texts]


NUMBER = st.integers(0, 99).map("{:02d}".format)


@given(NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, st.sampled_from(["2023", "2024", "1969", "2200", "0001"]))
def test_times_that_no_clock_shows_are_left(month, day, hour, minute, second, year):
    text = f"{year}-{month}-{day}T{hour}:{minute}:{second}"
    (found,) = read_column(column_of(text).wall_clock_us(1))
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
    assert read_column(column_of(text).wall_clock_us(1)) == [None]


def test_texts_are_read_once_each():
    asked = []
    known = {}
    rows = column_of("a", "b", "a", "c|d")
    assert rows.values(1, lambda text: asked.append(text) or text * 2, known, None) == ["aa", "bb", "aa", None]
    assert rows.values(1, lambda text: asked.append(text) or text * 2, known, None) == ["aa", "bb", "aa", None]
    assert asked == ["a", "b"]
