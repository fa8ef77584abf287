"""Messages for wrong files: the sentence names the cause and the fix."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.datasets import load_events, load_jobs, write_events, write_jobs
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet
from tests.datasets.small_logs import BUSY, IDLE, SECOND, log, rows_of

HEAD, TWO = "time,node,state\n", "time,node,idle\n"
JOBS = "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\n"
JOB = "j,1,2,18.5,12,1000,0:0 1:10.5 2:20.25\n"
CURVES = "curve,nodes,value\nc,0,0\nc,2,9\n"


def file_of(folder, content, name="log.csv"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def refused(read, *arguments):
    with pytest.raises(InputError) as caught:
        read(*arguments)
    assert caught.value.fix
    return caught.value


# files that are not there


@pytest.mark.parametrize("read", [load_events, load_jobs])
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("samples", "no such file"),
        (".", "a folder"),
        ("", "a folder"),
        ("x.pkl", "no such file"),
        ("/dev/null", "pipe"),
    ],
)
def test_whether_there_is_a_file_is_asked_before_its_ending(tmp_path, monkeypatch, read, name, problem):
    monkeypatch.chdir(tmp_path)
    assert problem in refused(read, name).problem


def test_a_file_taken_for_a_folder_and_impossible_names_are_refused(tmp_path):
    file = file_of(tmp_path, HEAD)
    assert "no such file" in refused(load_events, file / "log.csv").problem


def test_a_misspelt_file_is_answered_with_the_nearest(tmp_path):
    (tmp_path / "search.toml").write_text("")
    assert refused(load_jobs, tmp_path / "serach.toml").fix == f"did you mean {str(tmp_path / 'search.toml')!r}?"
    assert refused(load_jobs, tmp_path / "other.csv").fix == "check the path"
    assert "cannot be opened" in refused(load_events, "a\0b.csv").problem
    assert "cannot be opened" in refused(load_events, "a" * 5_000).problem


@pytest.mark.parametrize("read", [load_events, load_jobs])
@pytest.mark.parametrize("method", ["stat", "open"])
def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch, read, method):
    file = file_of(tmp_path, HEAD)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, method, denied)
    assert "may not be read" in refused(read, file).problem


# what is wrong with a row comes before what is wrong with the window


@pytest.mark.parametrize(
    ("text", "problem", "row"),
    [
        (TWO + "0,a,yes\n", "neither true nor false", 1),
        (HEAD + "0,a,idle\n0,b,asleep\n", "state is unknown", 2),
        (HEAD + "0,a,idle\n0,b,busy\n0,a,busy\n", "two rows", 3),
        (HEAD + "0,a,idle\n0,b,busy\n", "covers no time", None),
    ],
)
def test_a_fault_in_a_log_of_one_time_wins_over_its_length(tmp_path, text, problem, row):
    error = refused(load_events, file_of(tmp_path, text))
    assert problem in error.problem
    assert error.row == row


# headers


@pytest.mark.parametrize(
    ("header", "fix"),
    [
        ("tiem,node,state", "did you mean 'time' for 'tiem'?"),
        ("Time, node,STATE", "did you mean 'time' for 'Time', 'node' for ' node', 'state' for 'STATE'?"),
        ("time,node,idl", "did you mean 'idle' for 'idl'?"),
        ("time,node,Idle", "did you mean 'idle' for 'Idle'?"),
        ("time,node,state,qualty", "did you mean 'quality' for 'qualty'?"),
        ("time,node,state,colour", "drop columns"),
        ("time,node", "add the missing columns"),
    ],
)
def test_a_misspelt_column_of_a_log_gets_a_suggestion(tmp_path, header, fix):
    error = refused(load_events, file_of(tmp_path, header + "\n0,a,idle\n"))
    assert error.fix == fix
    assert "idl" not in header.lower() or "missing: idle" in error.problem


@pytest.mark.parametrize(("mark", "shown"), [(";", "';'"), ("\t", "tabs"), ("|", "'|'")])
def test_other_separators_are_recognised(tmp_path, mark, shown):
    for read, text in ((load_events, HEAD + "0,a,idle\n"), (load_jobs, JOBS + JOB)):
        error = refused(read, file_of(tmp_path, text.replace(",", mark)))
        assert f"separated by {shown}" in error.problem
        assert "use commas" in error.fix


def test_logs_jobs_and_curves_in_each_others_place_are_recognised(tmp_path):
    events = file_of(tmp_path, HEAD + "0,a,idle\n", "log.csv")
    jobs, curves = file_of(tmp_path, JOBS + JOB, "jobs.csv"), file_of(tmp_path, CURVES, "curves.csv")
    assert "looks like a job set" in refused(load_events, jobs).problem
    assert "looks like a table of curves" in refused(load_events, curves).problem
    assert "looks like a log" in refused(load_jobs, events).problem
    assert "`curves`" in refused(load_jobs, curves).fix
    assert "looks like a job set" in refused(load_jobs, jobs, jobs).fix
    assert "looks like a log" in refused(load_jobs, jobs, events).fix


def test_a_log_without_header_is_recognised(tmp_path):
    assert refused(load_events, file_of(tmp_path, "0,a,idle\n1,a,busy\n")).fix == "add the header line"


def test_a_misspelt_column_of_curves_gets_a_suggestion(tmp_path):
    jobs = file_of(tmp_path, JOBS + JOB, "jobs.csv")
    curves = file_of(tmp_path, CURVES.replace("value", "valeu"), "curves.csv")
    assert refused(load_jobs, jobs, curves).fix == "did you mean 'value' for 'valeu'?"


def test_a_misspelt_state_gets_a_suggestion(tmp_path):
    error = refused(rows_of, load_events(file_of(tmp_path, HEAD + "0,a,idle\n1,a,Bussy\n")))
    assert (error.row, error.value, error.fix) == (2, "Bussy", "did you mean 'busy'?")


def test_a_parquet_file_without_columns_is_refused(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "log.parquet")
    assert refused(load_events, tmp_path / "log.parquet")


# encodings


@pytest.mark.parametrize("n_before", [1, 400_000])
@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_the_first_line_that_is_not_utf8_is_named(tmp_path, n_before, name):
    text = (HEAD + "0,a,idle\n" + "0,b,busy\n" * (n_before - 1) + "1,n\u00e9,busy\n").encode("latin1")
    error = refused(load_events, file_of(tmp_path, gzip.compress(text) if name.endswith("gz") else text, name))
    assert error.row == f"line {n_before + 2}"
    assert error.value == "1,n\u00e9,busy".encode("latin1")
    assert "iconv -f latin1 -t utf-8" in error.fix


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_utf_16_is_recognised(tmp_path, encoding):
    for read, text in ((load_events, HEAD + "0,a,idle\n"), (load_jobs, JOBS + JOB)):
        error = refused(read, file_of(tmp_path, text.encode(encoding)))
        assert error.row == "line 1"
        assert "iconv -f utf-16 -t utf-8" in error.fix


@pytest.mark.parametrize(("name", "line"), [("jobs.csv", 2), ("jobs.toml", 1)])
def test_jobs_that_are_not_utf8_name_the_line(tmp_path, name, line):
    text = {"jobs.csv": JOBS + "j\u00e9" + JOB, "jobs.toml": "# \u00e9\n"}[name]
    error = refused(load_jobs, file_of(tmp_path, text.encode("latin1"), name))
    assert error.row == f"line {line}"
    assert "iconv" in error.fix


# units of time


UNITS = [("milliseconds", 10**3), ("microseconds", 10**6), ("nanoseconds", 10**9)]


@pytest.mark.parametrize(("unit", "factor"), UNITS)
@pytest.mark.parametrize("as_parquet", [True, False])
def test_times_in_another_unit_than_seconds_are_recognised(tmp_path, unit, factor, as_parquet):
    first, second = 5, 1_612_915_200 * factor
    file = tmp_path / "log.parquet"
    if as_parquet:
        pq.write_table(pa.table({"time": [first, second], "node": ["a", "a"], "idle": [True, False]}), file)
    else:
        file = file_of(tmp_path, f"{TWO}{first},a,1\n{second},a,0\n")
    error = refused(load_events, file)
    assert (error.row, error.column, error.value) == (2, "time", second if as_parquet else str(second))
    assert error.fix == f"looks like {unit}: divide by {factor}"


def test_a_timestamp_outside_the_calendar_names_its_row(tmp_path):
    times = pa.array([0, 1_612_915_200_000_000_000], pa.timestamp("us"))
    pq.write_table(pa.table({"time": times, "node": ["a", "a"], "idle": [True, False]}), tmp_path / "log.parquet")
    error = refused(load_events, tmp_path / "log.parquet")
    assert (error.row, error.value) == (2, "1612915200000000000 us")


@pytest.mark.parametrize("as_parquet", [True, False])
def test_submit_times_in_milliseconds_are_recognised(tmp_path, as_parquet):
    file = file_of(tmp_path, "submit_time," + JOBS + "1612915200000," + JOB, "jobs.csv")
    if as_parquet:
        cells = dict(zip(("submit_time," + JOBS).strip().split(","), ("1612915200000," + JOB).split(","), strict=True))
        file = tmp_path / "jobs.parquet"
        pq.write_table(
            pa.table({key: [value] for key, value in (cells | {"submit_time": 1_612_915_200_000}).items()}), file
        )
    error = refused(load_jobs, file)
    assert (error.row, error.column, str(error.value)) == (1, "submit_time", "1612915200000")
    assert error.fix == "looks like milliseconds: divide by 1000"


def test_a_submit_time_that_cannot_be_read_back_is_not_written(tmp_path):
    job = ElasticJob("j", -(10**17), 1, 1, 0, 0, 1, TabulatedCurve((0, 1), (0, 1)))
    assert "cannot be written" in refused(write_jobs, JobSet([job]), tmp_path / "jobs.csv").problem
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("as_parquet", [True, False])
def test_nan_has_a_sentence_of_its_own(tmp_path, as_parquet):
    file = tmp_path / "log.parquet"
    if as_parquet:
        pq.write_table(pa.table({"time": [0.0, float("nan")], "node": ["a", "a"], "idle": [True, False]}), file)
    else:
        file = file_of(tmp_path, TWO + "0,a,1\nnan,a,0\n")
    error = refused(load_events, file)
    assert error.row == 2
    assert "a time is nan" in error.problem


# job sets


def test_published_and_plain_files_do_not_mix(tmp_path):
    jobs, curves = file_of(tmp_path, JOBS + JOB, "jobs.csv"), file_of(tmp_path, b"\x80", "curves.pkl")
    assert "bounds only" in refused(load_jobs, jobs, curves).problem
    assert "published curves only" in refused(load_jobs, curves, jobs).problem
    assert ".pkl" in refused(load_jobs, file_of(tmp_path, "{}", "jobs.json")).expected


@pytest.mark.parametrize(
    ("before", "after", "fix"),
    [
        (",18.5,", ',"18,5",', "write 18.5 if it is a decimal comma"),
        (",18.5,", ",fast,", "write it in digits"),
        (",18.5,", ",-1,", "0 if none"),
        (",1000,", ",0,", "inf"),
        ("j,1,", "j,1.5,", "round it"),
        ("j,1,", "j,0,", "1 or more"),
        (",18.5,", ",,", "fill it in"),
    ],
)
def test_a_faulty_cell_of_a_job_says_what_to_do(tmp_path, before, after, fix):
    assert fix in refused(load_jobs, file_of(tmp_path, JOBS + JOB.replace(before, after))).fix


def test_a_key_that_a_toml_job_lacks_is_called_a_key(tmp_path):
    good = 'min_nodes=1\nmax_nodes=1\nscale_up_cost_s=0\nscale_down_cost_s=0\nwork_samples=1\ncurve="0:0 1:1"\n'
    text = f'[[job]]\nname="a"\n{good}[[job]]\n{good}'
    assert refused(load_jobs, file_of(tmp_path, text, "jobs.toml")).problem == "the key 'name' is missing here"


def test_a_curve_of_several_rows_names_them(tmp_path):
    jobs = file_of(tmp_path, JOBS + JOB, "jobs.csv")
    curves = file_of(tmp_path, "curve,nodes,value\na,0,0\nb,0,0\nb,2,2\nb,1,1\n", "curves.csv")
    assert refused(load_jobs, jobs, curves).row == "2 to 4"


# nodes and windows


@pytest.mark.parametrize(("name", "fix"), [(" b", "remove the spaces"), ("b\x07", "rename the node")])
def test_an_unusable_node_name_names_its_row(tmp_path, name, fix):
    error = refused(load_events, file_of(tmp_path, f"{HEAD}0,a,idle\n1,{name},busy\n"))
    assert (error.row, error.column, error.value, error.fix) == (2, "node", name, fix)


@pytest.mark.parametrize(
    ("start", "end", "problem"), [(-1, 50, "reaches outside"), (50, 101, "reaches outside"), (101, 102, "lies outside")]
)
def test_a_window_partly_and_wholly_outside_are_told_apart(three_nodes, start, end, problem):
    assert problem in refused(three_nodes.between, start * SECOND, end * SECOND).problem


@pytest.mark.parametrize(
    "start",
    [
        10 * SECOND,
        np.int64(10 * SECOND),
        "1970-01-01T00:00:10Z",
        "10",
        datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC),
        pd.Timestamp("1970-01-01T00:00:10"),
        np.datetime64("1970-01-01T00:00:10"),
    ],
)
def test_a_window_takes_times_of_every_form(three_nodes, start):
    part = three_nodes.between(start, "1970-01-01 00:00:20")
    assert (part.window_start_us, part.window_end_us) == (10 * SECOND, 20 * SECOND)
    assert type(part.window_start_us) is int


@pytest.mark.parametrize(
    "start", ["noon", True, None, 0.5, float("nan"), pd.NaT, pd.Timestamp("1970-01-01T00:00:10.000000001")]
)
def test_a_bound_that_is_no_time_is_refused(three_nodes, start):
    assert "the start of the window is not a time" in refused(three_nodes.between, start, 20 * SECOND).problem


# the file beside a CSV log


@pytest.mark.parametrize(
    "content",
    [b"", b"no JSON", b"[]", b"{}", b'{"schema_version": 99}', b'{"schema_version": 1, "nodes": ["a"]}', b"\xff"],
)
def test_a_sidecar_that_cannot_be_used_says_what_it_is_and_how_to_be_rid_of_it(tmp_path, content):
    file = file_of(tmp_path, HEAD + "0,a,idle\n1,a,busy\n")
    sidecar = file_of(tmp_path, content, "log.csv.meta.json")
    error = refused(load_events, file)
    assert error.file == str(sidecar)
    assert "log.csv.meta.json is read as the metadata (nodes and window) of log.csv" in error.problem
    assert "delete it" in error.fix


def test_a_sidecar_that_is_a_folder_is_refused(tmp_path):
    file = file_of(tmp_path, HEAD + "0,a,idle\n1,a,busy\n")
    (tmp_path / "log.csv.meta.json").mkdir()
    assert "cannot be read" in refused(load_events, file).problem


@pytest.mark.parametrize("change", [{"nodes": ["a", "b"]}, {"window_end": "1970-01-01T00:00:20Z"}])
def test_rows_that_a_sidecar_does_not_fit_point_to_it(tmp_path, three_nodes, change):
    file, sidecar = tmp_path / "log.csv", tmp_path / "log.csv.meta.json"
    write_events(three_nodes, file)
    sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | change))
    assert "delete log.csv.meta.json" in refused(rows_of, load_events(file)).fix


def test_the_sidecar_is_one_of_the_sources_with_its_digest(tmp_path):
    write_events(log([BUSY] * 3, [(10, "a", IDLE)]), tmp_path / "log.csv")
    table, sidecar = load_events(tmp_path / "log.csv").sources
    (tmp_path / "log.csv.meta.json").write_bytes((tmp_path / "log.csv.meta.json").read_bytes() + b"\n")
    changed = load_events(tmp_path / "log.csv").sources
    assert (table.name, sidecar.name) == ("log.csv", "log.csv.meta.json")
    assert changed[0] == table
    assert changed[1] != sidecar


@pytest.mark.parametrize("method", ["is_dir", None])
def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path, monkeypatch, three_nodes, method):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    if method:
        monkeypatch.setattr(Path, method, denied)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "is not writable" in refused(write_events, three_nodes, tmp_path / "log.csv").problem
