"""The batch jobs beside a log: the intervals by which it was built, and refusals of what is not of it."""

import errno
import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.batch_jobs import BATCH_ROWS, PARQUET_KEY, VERSION_KEY, load_batch_jobs, write_batch_jobs
from bfreplay.datasets.ingest.occupancy import build, machine
from bfreplay.datasets.ingest.occupancy.jobs_of_log import batch_jobs
from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS, OVERSUBSCRIPTION, OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobSpool
from bfreplay.datasets.ingest.occupancy.submissions import JobNames, job_key
from bfreplay.datasets.ingest.read_log import ingest, read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.event_tables import LogHeader
from bfreplay.datasets.log.load import load_events, write_events
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError, OutputExistsError
from tests.datasets.ingest.occupancy.by_the_second import events_by_the_second
from tests.datasets.ingest.occupancy.small_records import S, plain
from tests.datasets.ingest.slurm_logs import sacct
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS
from tests.examples import examples

FULL = OccupancyRules(window="full", min_gap_s=0, empty_machine="idle")
UTC = ReadOptions(timezone="UTC")
SLURM = sacct(
    "1|1|COMPLETED|2024-05-01T00:00:00|2024-05-01T01:00:00|3600||2|cn[1-2]",
    "2|7_1|COMPLETED|2024-05-01T00:30:00|2024-05-01T02:00:00|5400||1|cn3",
    "3|3|CANCELLED by 7|Unknown|Unknown|0||4|None assigned",
    "4|4|COMPLETED|2024-05-01T01:30:00|2024-05-01T03:00:00|5400||2|cn[1-2]",
    "5|5|RUNNING|2024-05-01T02:30:00|Unknown|1800||1|cn3",
)
SWF = """; MaxNodes: 4
; MaxProcs: 4
; UnixStartTime: 1700000000
1 0 0 600 3 -1 -1 3 -1 -1 1 1 1 -1 1 1 -1 -1
2 300 0 600 2 -1 -1 2 -1 -1 1 1 1 -1 1 1 -1 -1
-1 2000 0 600 2 -1 -1 2 -1 -1 1 1 1 -1 1 1 -1 -1
"""


def minutes(text):
    """Microseconds of hours and minutes on 2024-05-01."""
    hour, minute = map(int, text.split(":"))
    return 1_714_521_600 * S + (hour * 60 + minute) * 60 * S


def rows_of(jobs, nodes):
    """(job, start, end, names of nodes) of every row."""
    return [
        (
            str(jobs.job[j]),
            int(jobs.start_us[j]),
            int(jobs.end_us[j]),
            [nodes[i] for i in jobs.node[jobs.first[j] : jobs.first[j + 1]]],
        )
        for j in range(len(jobs))
    ]


def written(folder, text, reader="slurm", rules=FULL, options=UTC):
    """Paths of the events and the batch jobs of a log."""
    log, events, jobs = folder / "log", folder / "events.parquet", folder / "jobs.parquet"
    log.write_text(text)
    built = read_log(log, reader, options, job_names=True).build(rules)
    write_events(built.events, events, overwrite=True)
    built.write_batch_jobs(jobs, overwrite=True)
    return events, jobs


def test_a_log_of_names_gives_its_jobs_with_their_nodes(tmp_path):
    events, jobs = written(tmp_path, SLURM)
    log = load_events(events)
    assert rows_of(load_batch_jobs(jobs, log), log.nodes) == [
        ("1", minutes("0:00"), minutes("1:00"), ["cn1", "cn2"]),
        ("2", minutes("0:30"), minutes("2:00"), ["cn3"]),
        ("4", minutes("1:30"), minutes("3:00"), ["cn1", "cn2"]),
        ("5", minutes("2:30"), minutes("3:00"), ["cn3"]),  # still running: to the end of the log
    ]


def test_a_job_that_gets_its_last_nodes_later_has_a_row_for_them(tmp_path):
    """Job 2 needs two nodes, and one is free; the other is free when job 1 ends."""
    events, jobs = written(tmp_path, SWF, "swf", options=ReadOptions())
    log, t0 = load_events(events), 1_700_000_000 * S
    assert rows_of(load_batch_jobs(jobs, log), log.nodes) == [
        ("1", t0, t0 + 600 * S, ["n0001", "n0002", "n0003"]),
        ("2", t0 + 300 * S, t0 + 900 * S, ["n0004"]),
        ("2", t0 + 600 * S, t0 + 900 * S, ["n0001"]),
        ("log line 6", t0 + 2_000 * S, t0 + 2_600 * S, ["n0001", "n0002"]),
    ]
    delayed = replace(FULL, oversubscription="delay", release_delay_s=60)
    events, jobs = written(tmp_path, SWF, "swf", delayed, ReadOptions())
    assert rows_of(load_batch_jobs(jobs, load_events(events)), log.nodes)[1:2] == [
        ("2", t0 + 660 * S, t0 + 1_320 * S, ["n0001", "n0002"])  # free a minute after the end
    ]


def test_jobs_that_overlap_the_window_are_whole_and_others_are_left_out(tmp_path):
    window = minutes("1:00"), minutes("1:30")
    events, jobs = written(tmp_path, SLURM, rules=replace(FULL, window=window))
    log = load_events(events)
    assert rows_of(load_batch_jobs(jobs, log), log.nodes) == [
        ("2", minutes("0:30"), minutes("2:00"), ["cn3"]),
        ("4", minutes("1:30"), minutes("3:00"), ["cn1", "cn2"]),  # its nodes are reclaimed at the end of the window
    ]
    assert pq.read_table(jobs).column("job").to_pylist() == ["2", "4"]


def test_a_part_of_a_log_gets_the_jobs_that_start_in_it_or_run_at_its_start(tmp_path):
    events, jobs = written(tmp_path, SLURM)
    part = load_events(events).between(minutes("1:00"), minutes("2:00"))
    assert [row[0] for row in rows_of(load_batch_jobs(jobs, part), part.nodes)] == ["2", "4"]
    late = load_events(events).between(minutes("2:00"), minutes("3:00"))
    assert [row[0] for row in rows_of(load_batch_jobs(jobs, late), late.nodes)] == ["4", "5"]


some_jobs = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(1, 30), st.integers(1, 5), st.none() | st.sets(st.integers(0, 3), min_size=1)
    ),
    min_size=1,
    max_size=14,
)


def record_of(jobs, n_nodes=4):
    record = ScheduleRecord(spool=JobSpool(3))
    record.job_names = JobNames()
    record.give_inventory([f"n{i}" for i in range(n_nodes)])
    for i, (start, length, count, nodes) in enumerate(jobs):
        listed = None if nodes is None else record.node_ids(f"n{k}" for k in sorted(nodes, reverse=True))
        end = None if length > 28 else (start + length) * S
        record.add_job(f"j{i}", start * S, end, listed, max(count, len(nodes or ())))
    return record


@given(
    some_jobs,
    st.sampled_from(ASSIGNMENTS),
    st.sampled_from(OVERSUBSCRIPTION),
    st.sampled_from([0, 2]),
    st.sampled_from([None, (10, 30)]),
    st.booleans(),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_node_is_busy_just_while_a_batch_job_has_it(jobs, assignment, oversubscription, release, window, is_down):
    assume(window is None or min(start for start, *_ in jobs) < window[1])
    record = record_of(jobs)
    if is_down:
        record.add_outage(NodeState.DOWN, 15 * S, 20 * S, record.node_ids(["n1"]))
    rules = plain(
        assignment=assignment,
        oversubscription=oversubscription,
        release_delay_s=release,
        log_end_us=75 * S,
        window="full" if window is None else (window[0] * S, window[1] * S),
    )
    built = build.build_events(record, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "FIRST_SLOTS", 2)  # as little room as can be
        pieces = list(batch_jobs(record, built.source.plan, record.job_names))
    rows = [row for piece in pieces for row in rows_of(piece, built.events.nodes)]
    assert {name for name, *_ in rows} <= {f"j{i}" for i in range(len(jobs))}
    assert [start for _, start, _, _ in rows] == sorted(start for _, start, _, _ in rows)
    assert all(nodes == sorted(set(nodes)) and nodes for *_, nodes in rows)
    begin, stop = built.events.window_start_us // S, built.events.window_end_us // S
    has = defaultdict(set)
    for _, start, end, nodes in rows:
        assert start <= built.events.window_end_us
        assert end > built.events.window_start_us
        for second in range(max(start // S, begin), min(end // S, stop)):
            has[second].update(nodes)
    states = events_by_the_second(built.events)
    for node, line in states.items():
        for second, state in enumerate(line, begin):
            assert state in (NodeState.BUSY, NodeState.DOWN) if node in has[second] else state != NodeState.BUSY
    listed = {f"j{i}": {f"n{k}" for k in nodes} for i, (_, _, _, nodes) in enumerate(jobs) if nodes}
    for i, (start, length, count, nodes) in enumerate(jobs):
        mine = [row for row in rows if row[0] == f"j{i}"]
        if nodes and mine:
            assert mine[0][1] == start * S
            assert listed[f"j{i}"] <= set(mine[0][3])
            assert length > 28 or {end for _, _, end, _ in mine} == {(start + length + release) * S}
        assert sum(len(row[3]) for row in mine) <= max(count, len(nodes or ()))


def test_nodes_outside_a_given_inventory_are_left_out(tmp_path):
    (tmp_path / "nodes").write_text("cn1\ncn3\n")
    (tmp_path / "log").write_text(SLURM)
    events, _ = ingest(
        tmp_path / "log",
        "slurm",
        UTC,
        FULL,
        inventory=tmp_path / "nodes",
        inventory_only=True,
        batch_jobs=tmp_path / "jobs.parquet",
    )
    jobs = load_batch_jobs(tmp_path / "jobs.parquet", events)
    assert [row[3] for row in rows_of(jobs, events.nodes)] == [["cn1"], ["cn3"], ["cn1"], ["cn3"]]


def test_names_are_those_of_the_log():
    names = JobNames()
    texts = ["12", "0013", "14.server", "15_[7]", "16.server", "\udcff"]
    for text in texts:
        names.add(job_key(text), text)
    keys = np.array([job_key(text) for text in [*texts, "99"]])
    assert names.of(keys[::-1]) == ["99", "�", *texts[-2::-1]]
    names.add(job_key("x"), "x")
    assert names.of(np.array([job_key("x"), 12])) == ["x", "12"]


def test_the_first_of_two_swf_files_and_the_second_have_the_numbers_of_their_jobs(tmp_path):
    paths = [tmp_path / "a.swf", tmp_path / "b.swf"]
    for path in paths:
        path.write_text(SWF)
    built = read_log(paths, "swf", job_names=True).build(FULL)
    built.write_batch_jobs(tmp_path / "jobs.parquet")
    found = load_batch_jobs(tmp_path / "jobs.parquet", built.events)
    assert {str(name) for name in found.job} == {"1", "2", "a.swf line 6", "b.swf line 6"}


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_the_batch_jobs_of_every_format_have_names_and_are_on_busy_nodes(tmp_path, name):
    small = SMALL_LOGS[name]
    paths = small.write(tmp_path)
    built = read_log(paths, small.reader, small.options, job_names=True).build(small.rules)
    built.write_batch_jobs(tmp_path / "jobs.parquet")
    write_events(built.events, tmp_path / "events.csv")
    log = load_events(tmp_path / "events.csv")
    found = rows_of(load_batch_jobs(tmp_path / "jobs.parquet", log), log.nodes)
    assert found or name in ("sinfo", "snapshots")  # states without jobs
    assert not any(text in job for job, *_ in found for text in ("/", "-"))
    states, begin = events_by_the_second(log), log.window_start_us // S
    for _, start, end, nodes in found:
        for node in nodes:
            seconds = states[node][max(start // S - begin, 0) : end // S - begin]
            assert NodeState.IDLE not in seconds
            assert seconds


def test_a_job_without_an_id_is_named_by_its_line(tmp_path):
    table = "start,end,nodes\n0,60,a\n30,90,b\n"
    events, jobs = written(tmp_path, table, "table", options=ReadOptions())
    assert [str(name) for name in load_batch_jobs(jobs, load_events(events)).job] == ["log line 2", "log line 3"]


def test_the_same_log_gives_the_same_bytes_and_a_file_that_is_there_is_kept(tmp_path):
    _, jobs = written(tmp_path, SLURM)
    before = jobs.read_bytes()
    _, jobs = written(tmp_path, SLURM)
    assert jobs.read_bytes() == before
    built = read_log(tmp_path / "log", "slurm", UTC, job_names=True).build(FULL)
    with pytest.raises(OutputExistsError):
        built.write_batch_jobs(jobs)
    with pytest.raises(InputError, match="job_names=True"):
        read_log(tmp_path / "log", "slurm", UTC).build(FULL).write_batch_jobs(tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"ending in \.parquet"):
        built.write_batch_jobs(tmp_path / "jobs.csv")


def test_a_file_that_cannot_be_finished_does_not_appear(tmp_path):
    def pieces():
        yield from batch_jobs(record, built.source.plan, record.job_names)
        raise OSError(errno.ENOSPC, "the disk is full")

    record = record_of([(0, 5, 1, {0}), (7, 9, 2, None)])
    built = build.build_events(record, FULL)
    with pytest.raises(OSError, match="disk"):
        write_batch_jobs(pieces(), LogHeader.of(built.events), tmp_path / "jobs.parquet")
    assert not list(tmp_path.iterdir())


def test_many_batches_are_read_as_one(tmp_path):
    record = ScheduleRecord()
    record.job_names = JobNames()
    nodes = record.node_ids(["a", "b"])
    for i in range(BATCH_ROWS + 7):
        record.add_job(i, i * S, (i + 2) * S, nodes[i % 2 : i % 2 + 1])
    built = build.build_events(record, FULL)
    built.write_batch_jobs(tmp_path / "jobs.parquet")
    found = load_batch_jobs(tmp_path / "jobs.parquet", built.events)
    assert [str(name) for name in found.job] == [str(i) for i in range(BATCH_ROWS + 7)]
    assert found.first.tolist() == list(range(BATCH_ROWS + 8))
    assert found.node.tolist() == [i % 2 for i in range(BATCH_ROWS + 7)]
    late = built.events.between(BATCH_ROWS * S, (BATCH_ROWS + 3) * S)
    assert [str(name) for name in load_batch_jobs(tmp_path / "jobs.parquet", late).job] == [
        str(i) for i in range(BATCH_ROWS - 1, BATCH_ROWS + 4)
    ]


# ---- refusals --------------------------------------------------------------------------------------------------


def spoilt(path, column, change):
    """Change the values of a column of a file of batch jobs."""
    table = pq.read_table(path)
    values = table.column(column).to_pylist()
    change(values)
    i = table.schema.get_field_index(column)
    changed = table.set_column(i, table.schema.field(i), pa.array(values, table.schema.types[i]))
    pq.write_table(changed, path, use_dictionary=False)


@pytest.mark.parametrize(
    ("column", "row", "at", "value", "words"),
    [
        ("job", 2, 1, None, "is empty here"),
        ("start", 3, 2, None, "is empty here"),
        ("start", 3, 2, 0, "not sorted by start"),
        ("end", 2, 1, 0, "ends before it starts"),
        ("end", 2, 1, None, "is empty here"),
        ("nodes", 2, 1, [3], "no such node"),
        ("nodes", 2, 1, [-1], "no such node"),
        ("nodes", 3, 2, [1, 0, 1], "twice in a job"),
        ("nodes", 3, 2, [0, None], "a node is missing"),
        ("nodes", 3, 2, None, "is empty here"),
    ],
)
def test_a_spoilt_row_is_named(tmp_path, column, row, at, value, words):
    events, jobs = written(tmp_path, SLURM)
    spoilt(jobs, column, lambda values: values.__setitem__(at, value))
    with pytest.raises(InputError, match=words) as caught:
        load_batch_jobs(jobs, load_events(events))
    assert (caught.value.row, caught.value.column, caught.value.file) == (row, column, str(jobs))


def test_a_start_before_that_of_an_earlier_batch_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("bfreplay.datasets.batch_jobs.BATCH_ROWS", 2)
    events, jobs = written(tmp_path, SLURM)
    spoilt(jobs, "start", lambda values: values.__setitem__(2, values[0]))
    with pytest.raises(InputError, match="not sorted") as caught:
        load_batch_jobs(jobs, load_events(events))
    assert caught.value.row == 3


@pytest.mark.parametrize(
    ("rules", "column"),
    [
        ({"release_delay_s": 60.0}, "release_delay_s"),
        ({"oversubscription": "drop"}, "oversubscription"),
        ({"assignment": "most-recently-used"}, "assignment"),
        ({"window": (minutes("1:00"), minutes("2:00"))}, "window"),
    ],
)
def test_batch_jobs_of_other_rules_are_refused(tmp_path, rules, column):
    (tmp_path / "other").mkdir()
    events, _ = written(tmp_path, SLURM)
    _, jobs = written(tmp_path / "other", SLURM, rules=replace(FULL, **rules))
    with pytest.raises(InputError) as caught:
        load_batch_jobs(jobs, load_events(events))
    assert caught.value.column == column


def test_rules_that_do_not_matter_may_differ(tmp_path):
    (tmp_path / "other").mkdir()
    events, _ = written(tmp_path, SLURM)
    _, jobs = written(tmp_path / "other", SLURM, rules=replace(FULL, min_gap_s=600, empty_machine="down"))
    assert len(load_batch_jobs(jobs, load_events(events))) == 4


def test_batch_jobs_of_another_log_are_refused(tmp_path):
    (tmp_path / "other").mkdir()
    events, jobs = written(tmp_path, SLURM)
    _, other = written(tmp_path / "other", SLURM.replace("cn3", "cn4"))
    log = load_events(events)
    with pytest.raises(InputError, match="not of this log") as caught:
        load_batch_jobs(other, log)
    assert caught.value.column == "source_files"
    for path in (events, tmp_path / "log"):
        with pytest.raises(InputError, match=r"not a file of batch jobs|not Parquet"):
            load_batch_jobs(path, log)
    with pytest.raises(InputError, match="no such file"):
        load_batch_jobs(tmp_path / "absent.parquet", log)
    with pytest.raises(InputError, match="not the columns of a log"):
        load_events(jobs)
    jobs.write_bytes(jobs.read_bytes()[:-20])
    with pytest.raises(InputError, match="cut or damaged"):
        load_batch_jobs(jobs, log)


def test_other_nodes_another_version_and_other_columns_are_refused(tmp_path):
    events, jobs = written(tmp_path, SLURM)
    log, table = load_events(events), pq.read_table(jobs)
    metadata = table.schema.metadata
    header = json.loads(metadata[PARQUET_KEY])
    header["nodes"][2] = "cn7"
    for changed, column in (
        (table.replace_schema_metadata({**metadata, PARQUET_KEY: json.dumps(header)}), "nodes"),
        (table.replace_schema_metadata({**metadata, VERSION_KEY: "2"}), "schema_version"),
        (table.drop_columns(["end"]), "end"),
        (table.set_column(1, "start", table.column("start").cast(pa.int64())), "start"),
    ):
        pq.write_table(changed, jobs, use_dictionary=False)
        with pytest.raises(InputError) as caught:
            load_batch_jobs(jobs, log)
        assert caught.value.column == column
    pq.write_table(table, jobs)
    with pytest.raises(InputError, match="in a dictionary"):  # a small file could hold gigabytes
        load_batch_jobs(jobs, log)


def test_a_log_without_jobs_in_its_window_has_no_batch_jobs(tmp_path):
    window = minutes("3:10"), minutes("3:20")
    rules = replace(FULL, window=window, log_end_us=minutes("4:00"))
    text = "\n".join(line for line in SLURM.splitlines() if "RUNNING" not in line) + "\n"
    events, jobs = written(tmp_path, text, rules=rules)
    found = load_batch_jobs(jobs, load_events(events))
    assert (len(found), found.first.tolist(), found.node.tolist()) == (0, [0], [])
