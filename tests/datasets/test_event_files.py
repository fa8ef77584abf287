import gzip
import json
import subprocess
import sys
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets import NodeEvents, NodeState, load_events, write_events
from bfreplay.errors import InputError, OutputExistsError
from tests.datasets.small_logs import BUSY, DOWN, IDLE, SECOND, log, logs, rows_of
from tests.examples import examples
from tests.refusals import refusal_of

ENDINGS = [".parquet", ".csv", ".csv.gz"]


def csv_file(folder, text, name="log.csv"):
    file = folder / name
    file.write_text(text)
    return file


def refused(file, rows=131_072):
    with pytest.raises(InputError) as caught:
        rows_of(load_events(file), rows)
    assert str(caught.value.file) == str(file)
    return caught.value


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_written_log_reads_back_with_window_nodes_and_metadata(tmp_path, three_nodes, ending):
    file = tmp_path / f"log{ending}"
    write_events(three_nodes, file)
    again = load_events(file)
    assert rows_of(again) == rows_of(three_nodes)
    assert (again.nodes, again.window_start_us, again.window_end_us) == (("a", "b", "c"), 0, 100 * SECOND)
    assert again.metadata == three_nodes.metadata
    beside = [] if ending == ".parquet" else [f"{file.name}.meta.json"]
    assert [source.name for source in again.sources] == [file.name, *beside]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=logs(), ending=st.sampled_from(ENDINGS), rows=st.integers(1, 7))
def test_any_log_reads_back_exactly_in_batches_of_any_size(tmp_path, events, ending, rows):
    file = tmp_path / f"log{ending}"
    write_events(events, file, overwrite=True)
    again = load_events(file)
    assert (again.window_start_us, again.window_end_us) == (events.window_start_us, events.window_end_us)
    assert rows_of(again, rows) == rows_of(events)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_log_gives_the_same_bytes(tmp_path, three_nodes, ending):
    for name in ("first", "second"):
        write_events(three_nodes, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"first{ending}").read_bytes() == (tmp_path / f"second{ending}").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_output_that_exists_is_kept_unless_asked(tmp_path, three_nodes, ending):
    file = tmp_path / f"log{ending}"
    file.write_text("precious")
    with pytest.raises(OutputExistsError, match="log"):
        write_events(three_nodes, file)
    assert file.read_text() == "precious"
    write_events(three_nodes, file, overwrite=True)
    assert len(rows_of(load_events(file))) == 7


def test_a_log_with_a_fault_leaves_no_half_written_file(tmp_path):
    bad = log([BUSY] * 3, [(10, "a", IDLE), (20, "a", IDLE)])
    for ending in ENDINGS:
        with pytest.raises(InputError, match="idle already"):
            write_events(bad, tmp_path / f"log{ending}")
    assert list(tmp_path.iterdir()) == []


def test_the_parquet_file_has_the_neutral_schema(tmp_path, three_nodes):
    write_events(three_nodes, tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    assert table.schema.field("time").type == pa.timestamp("us", tz="UTC")
    assert pa.types.is_dictionary(table.schema.field("node").type)
    assert table.column("cause").to_pylist() == ["window_begin"] * 3 + [None] * 4
    assert json.loads(table.schema.metadata[b"bfreplay"])["nodes"] == ["a", "b", "c"]


def test_the_csv_file_is_plain_to_read(tmp_path):
    events = log([BUSY, IDLE, DOWN], [(1, "a", IDLE), (2.000001, "b", BUSY)])
    write_events(events, tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text().splitlines() == [
        "time,node,state,cause",
        "1970-01-01T00:00:00Z,a,busy,window_begin",
        "1970-01-01T00:00:00Z,b,idle,window_begin",
        "1970-01-01T00:00:00Z,c,down,window_begin",
        "1970-01-01T00:00:01Z,a,idle,",
        "1970-01-01T00:00:02.000001Z,b,busy,",
    ]
    assert json.loads((tmp_path / "log.csv.meta.json").read_text())["window_end"] == "1970-01-01T00:01:40Z"


def test_node_names_with_commas_and_quotes_survive(tmp_path):
    events = log([BUSY, IDLE], [(1, 'r"1', IDLE)], nodes=('r"1', "r,2"))
    write_events(events, tmp_path / "log.csv")
    assert rows_of(load_events(tmp_path / "log.csv")) == rows_of(events)


def test_a_window_can_be_written_and_stands_alone(tmp_path, three_nodes):
    part = three_nodes.between(15 * SECOND, 40 * SECOND)
    write_events(part, tmp_path / "part.parquet")
    again = load_events(tmp_path / "part.parquet")
    assert rows_of(again) == rows_of(part)
    assert (again.window_start_us, again.window_end_us) == (15 * SECOND, 40 * SECOND)


def test_nodes_of_a_foreign_two_state_log_are_busy_before_their_first_row(tmp_path):
    file = csv_file(tmp_path, "time,node,idle\n2021-02-10 00:00:10,b,True\n2021-02-10 00:00:20,a,1\n1612915230.5,b,0\n")
    events = load_events(file)
    start = 1_612_915_210 * SECOND
    assert rows_of(events) == [
        (start, "a", BUSY),
        (start, "b", IDLE),
        (start + 10 * SECOND, "a", IDLE),
        (start + 20_500_000, "b", BUSY),
    ]
    assert events.window_end_us == start + 20_500_000
    assert events.metadata.node_inventory == "seen"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2021-02-10T00:48:48Z", "2021-02-10T00:48:48.000001Z"),
        ("2021-02-10 00:48:48", "2021-02-10 00:48:48.000001"),
        ("2021-02-10T01:48:48+01:00", "2021-02-10T01:48:48.000001000+01:00"),
        ("1612918128", "1612918128.000001"),
        ("1612918128.000", "1612918128.0000010"),
        ("2021-02-10 00:48:48", "1612918128.000001"),
    ],
)
def test_csv_times_are_iso_or_epoch_seconds_exact_to_the_microsecond(tmp_path, first, second):
    events = load_events(csv_file(tmp_path, f"time,node,state\n{first},a,idle\n{second},a,off\n"))
    assert (events.window_start_us, events.window_end_us) == (1_612_918_128_000_000, 1_612_918_128_000_001)
    assert rows_of(events)[1] == (1_612_918_128_000_001, "a", NodeState.OFF)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_parquet_times_of_every_unit_and_zone_are_read(tmp_path, unit, zone):
    times = pa.array([0, 5_000_000], pa.timestamp("us", tz=zone)).cast(pa.timestamp(unit, tz=zone))
    pq.write_table(pa.table({"time": times, "node": ["a", "a"], "idle": [True, False]}), tmp_path / "log.parquet")
    assert rows_of(load_events(tmp_path / "log.parquet")) == [(0, "a", IDLE), (5 * SECOND, "a", BUSY)]


def test_nanoseconds_that_are_no_whole_microseconds_are_refused(tmp_path):
    times = pa.array([0, 1_500], pa.timestamp("ns"))
    pq.write_table(pa.table({"time": times, "node": ["a", "a"], "idle": [True, False]}), tmp_path / "log.parquet")
    error = refused(tmp_path / "log.parquet")
    assert (error.row, error.column, error.value) == (2, "time", "1500 ns")


def test_non_idle_changes_and_repeats_are_kept_in_the_neutral_form(tmp_path):
    text = (
        "time,node,state,cause,job_id,quality\n0,a,busy,job_start,7,observed\n1,a,busy,,8,\n2,a,drain,,,\n3,a,down,,,\n"
    )
    assert [row[2].name for row in rows_of(load_events(csv_file(tmp_path, text)))] == ["BUSY", "BUSY", "DRAIN", "DOWN"]


HEAD, TWO = "time,node,state\n", "time,node,idle\n"


@pytest.mark.parametrize(
    ("text", "problem", "row", "column", "value"),
    [
        (HEAD + "0,a,idle\n1,a,asleep\n", "state is unknown", 2, "state", "asleep"),
        (HEAD + "0,a,idle\n1,a,\n", "column 'state' is empty here", 2, "state", None),
        (HEAD + "0,a,idle\n1,,busy\n", "column 'node' is empty here", 2, "node", None),
        (HEAD + "0,a,idle\n,a,busy\n", "column 'time' is empty here", 2, "time", None),
        (HEAD + "0,a,idle\nnoon,a,busy\n", "cannot be read", 2, "time", "noon"),
        (HEAD + "0,a,idle\n0.0000001,a,busy\n", "finer", 2, "time", "0.0000001"),
        (HEAD + "2021-13-01,a,idle\n", "cannot be read", 1, "time", "2021-13-01"),
        (HEAD + "5,a,idle\n1,a,busy\n", "backwards", 2, "time", "1970-01-01T00:00:01Z"),
        (HEAD + "0,a,idle\n1,a,idle\n", "idle already", 2, "state", "idle"),
        (HEAD + "0,a,idle\n1,b,idle\n1,a,busy\n1,b,busy\n", "two rows", 4, "node", "b"),
        (TWO + "0,a,1\n1,b,0\n", "never idle", 2, "state", False),
        (TWO + "0,a,1\n1,a,0\n2,a,0\n", "never idle", 3, "state", False),
        (TWO + "0,a,1\n1,a,true\n", "idle already", 2, "state", True),
        (TWO + "0,a,1\n1,a,maybe\n", "neither true nor false", 2, "idle", "maybe"),
        (HEAD + "0,a,idle\n1,a\n", "number of columns", 2, None, "1,a"),
        (HEAD, "empty", None, None, None),
        ("", "empty", None, None, None),
        (HEAD + "0,a,idle\n", "no time", None, "time", "1970-01-01T00:00:00Z to 1970-01-01T00:00:00Z"),
        ("when,node,state\n0,a,idle\n", "missing: time; unknown: 'when'", None, "time", ["when", "node", "state"]),
        ("time,node,idle,state\n0,a,1,idle\n", "unknown: 'idle'", None, "idle", ["time", "node", "idle", "state"]),
    ],
)
def test_a_faulty_csv_names_file_row_column_and_value(tmp_path, text, problem, row, column, value):
    for rows in (1, 131_072):
        error = refused(csv_file(tmp_path, text), rows)
        assert problem in error.problem
        assert (error.row, error.column, error.value) == (
            row,
            "idle" if column == "state" and TWO in text else column,
            value,
        )
        assert error.expected


@pytest.mark.parametrize(("column", "values"), [("time", [0, None]), ("node", ["a", None]), ("idle", [True, None])])
def test_a_null_in_parquet_names_its_row(tmp_path, column, values):
    cells = {"time": [0, SECOND], "node": ["a", "a"], "idle": [True, False]} | {column: values}
    cells["time"] = pa.array(cells["time"], pa.timestamp("us"))
    pq.write_table(pa.table(cells), tmp_path / "log.parquet")
    error = refused(tmp_path / "log.parquet")
    assert (error.row, error.column, "is empty here" in error.problem) == (2, column, True)


def test_a_column_of_a_wrong_type_is_refused(tmp_path):
    table = pa.table({"time": [True, False], "node": ["a", "a"], "idle": [True, False]})
    pq.write_table(table, tmp_path / "log.parquet")
    assert refused(tmp_path / "log.parquet").value == "bool"


@pytest.mark.parametrize("cut", [3, 100, -4])
def test_a_cut_parquet_file_is_refused(tmp_path, three_nodes, cut):
    file = tmp_path / "log.parquet"
    write_events(three_nodes, file)
    file.write_bytes(file.read_bytes()[:cut])
    assert "Parquet" in refused(file).problem


def test_a_parquet_file_with_damaged_pages_is_refused(tmp_path):
    file = tmp_path / "log.parquet"
    write_events(log([BUSY] * 3, [(i, "a", i % 2) for i in range(0, 90)]), file)
    content = bytearray(file.read_bytes())
    content[4:300] = bytes(296)
    file.write_bytes(content)
    error = refused(file)
    assert "cut or damaged" in error.problem
    assert error.row == "after row 0"


def test_a_text_called_parquet_is_refused(tmp_path):
    assert "not Parquet" in refused(csv_file(tmp_path, HEAD, "log.parquet")).problem


def test_a_cut_gzip_file_is_refused(tmp_path):
    content = gzip.compress((HEAD + "".join(f"{i},a,{'idle' if i % 2 else 'off'}\n" for i in range(5_000))).encode())
    (tmp_path / "log.csv.gz").write_bytes(content[: len(content) // 2])
    assert "cannot be read" in refused(tmp_path / "log.csv.gz").problem


def test_an_empty_parquet_log_is_refused(tmp_path):
    schema = pa.schema([("time", pa.timestamp("us")), ("node", pa.string()), ("state", pa.string())])
    pq.write_table(schema.empty_table(), tmp_path / "log.parquet")
    assert "empty" in refused(tmp_path / "log.parquet").problem


@pytest.mark.parametrize("name", ["none.csv", "none.csv.gz", "none.parquet", "none.pkl", "none.tar.gz"])
def test_a_missing_file_is_refused(tmp_path, name):
    assert "no such file" in refused(tmp_path / name).problem


def test_an_unknown_ending_says_which_are_known_and_what_the_content_looks_like(tmp_path, three_nodes):
    write_events(three_nodes, tmp_path / "log.parquet")
    (tmp_path / "log.parquet").rename(tmp_path / "log.dat")
    error = refused(tmp_path / "log.dat")
    assert ".csv.gz" in error.expected
    assert "Parquet" in error.fix
    with pytest.raises(InputError, match="cannot be written"):
        write_events(three_nodes, tmp_path / "log.txt")


def test_an_own_file_with_rows_cut_off_its_snapshot_is_refused(tmp_path, three_nodes):
    file = tmp_path / "log.csv"
    write_events(three_nodes, file)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:1] + lines[2:]))
    assert (refused(file).value, refused(file).column) == ("a", "node")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema_version": 99}, "another schema version"),
        ({"nodes": None}, "do not list"),
        ({"nodes": ["a", "b"]}, "node is unknown"),
        ({"window_end": "soon"}, "window_end"),
        ({"window_end": "1970-01-01T00:00:20Z"}, "outside the window"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(tmp_path, three_nodes, change, problem):
    file = tmp_path / "log.csv"
    write_events(three_nodes, file)
    sidecar = tmp_path / "log.csv.meta.json"
    sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | change))
    with pytest.raises(InputError, match=problem):
        rows_of(load_events(file))


def test_reading_a_log_and_jobs_does_not_import_pandas(tmp_path, three_nodes):
    for ending in ENDINGS:
        write_events(three_nodes, tmp_path / f"log{ending}")
    (tmp_path / "jobs.csv").write_text(
        "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\nj,1,1,0,0,inf,0:0 1:1\n"
    )
    code = f"""
import sys, bfreplay.datasets as d
assert not {{"numba", "pyarrow", "pandas"}} & set(sys.modules)
for ending in {ENDINGS}:
    list(d.load_events("{tmp_path}/log" + ending).batches())
d.load_jobs("{tmp_path}/jobs.csv")
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_summit_log_has_all_its_transitions(shared):
    events = load_events(shared / "data/bftrainer/summit-2021-02-node-events.parquet")
    batches = list(events.batches())
    assert len(events.nodes) == 4_680
    assert sum(map(len, batches[1:])) + int((batches[0].state == IDLE).sum()) == 846_856
    assert events.window_end_us == int(datetime.fromisoformat("2021-02-24T22:19:29+00:00").timestamp()) * SECOND


def test_the_golden_event_files_are_read(shared):
    for run in range(1, 8):
        events = load_events(shared / f"golden/bftrainer/replay-G{run}-events.csv.gz")
        assert len(rows_of(events, 100)) > 700


@pytest.mark.parametrize("column", ["node", *(pytest.param(c, marks=pytest.mark.thorough) for c in ("time", "state"))])
def test_a_long_text_in_many_rows_of_a_small_file_takes_no_memory(tmp_path, column):
    path = tmp_path / "log.parquet"
    index = pa.array(np.zeros(100_000, np.int32))
    words = {"time": "2024-05-01T00:00:00Z", "node": "n1", "state": "idle"}
    words[column] = words[column] * 1_000_000
    texts = {name: pa.DictionaryArray.from_arrays(index, pa.array([word])) for name, word in words.items()}
    pq.write_table(pa.table(texts), path, compression="zstd", store_schema=False)
    found = refusal_of("bfreplay.datasets:load_events", path)
    assert found.problem == f"the texts in '{column}' are far too long"


@pytest.mark.often(".csv")
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_name_of_megabytes_is_no_name_of_a_node(tmp_path, ending):
    path, name = tmp_path / f"log{ending}", "n" * 20_000_000
    rows = {"time": ["2024-05-01T00:00:00Z", "2024-05-01T00:01:00Z"], "node": [name] * 2, "idle": [True, False]}
    if ending == ".csv":
        lines = zip(*rows.values(), strict=True)
        path.write_text("time,node,idle\n" + "".join(f"{time},{node},{idle}\n" for time, node, idle in lines))
    else:
        pq.write_table(pa.table(rows), path)
    found = refusal_of("bfreplay.datasets:load_events", path)
    assert (
        found.problem
        == {".parquet": "a node name is unusable: it has 20,000,000 characters", ".csv": "a line does not end"}[ending]
    )


def test_times_may_be_text_in_parquet_too(tmp_path):
    path = tmp_path / "log.parquet"
    times = ["2024-05-01T00:00:00Z", "2024-05-01T00:01:00Z", "2024-05-01T00:02:00Z"]
    rows = {"time": times, "node": ["n1"] * 3, "idle": ["true", "false", "true"]}
    pq.write_table(pa.table(rows), path)
    assert [(us - 1714521600 * SECOND, *row) for us, *row in rows_of(load_events(path))[-2:]] == [
        (60 * SECOND, "n1", BUSY),
        (120 * SECOND, "n1", IDLE),
    ]


def test_what_metadata_say_is_shown_escaped(tmp_path):
    red = "\x1b[31mred\udcff"
    path = csv_file(tmp_path, "time,node,idle\n2024-05-01T00:00:00Z,n1,true\n2024-05-01T00:01:00Z,n1,false\n")
    document = {
        "schema_version": 1,
        "cluster": red,
        "source_format": red,
        "nodes": ["n1"],
        "notes": {red: [{"a": red}]},
        "allocator": {"name": red},
        "source_files": [{"name": red, "sha256": "0"}],
        "window_start": "2024-05-01T00:00:00Z",
        "window_end": "2024-05-01T00:02:00Z",
    }
    path.with_name(path.name + ".meta.json").write_text(json.dumps(document))
    found, shown = load_events(path).metadata, r"\x1b[31mred\udcff"
    assert (found.cluster, found.source_format, found.assignment) == (shown, shown, shown)
    assert found.notes == {shown: [{"a": shown}]}
    assert found.source_files[0].name == shown
    document |= {"node_types": {red: ["n1"]}}
    path.with_name(path.name + ".meta.json").write_text(json.dumps(document))
    assert load_events(path).node_types.names == (shown,)


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x","y")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)"])
def test_a_name_that_a_spreadsheet_would_run_is_not_written_as_csv(name, tmp_path):
    events = NodeEvents.from_arrays([name, "n"], [1, 1], [], [], [], 0, 1_000_000)
    with pytest.raises(InputError, match="a spreadsheet would run it as a formula") as caught:
        write_events(events, tmp_path / "log.csv")
    assert (caught.value.file, caught.value.value) == (str(tmp_path / "log.csv"), name)
    assert list(tmp_path.iterdir()) == []
    write_events(events, tmp_path / "log.parquet")
    assert load_events(tmp_path / "log.parquet").nodes == tuple(sorted([name, "n"]))
