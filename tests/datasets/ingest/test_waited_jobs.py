"""Since when batch jobs waited, and for what: kept beside the log, those that never started included."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.datasets.batch_jobs import load_batch_jobs, load_waiting_jobs
from bfreplay.datasets.idleness.parts import idle_parts
from bfreplay.datasets.ingest.occupancy import submissions
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm import sacct
from bfreplay.datasets.log.load import load_events, write_events
from bfreplay.errors import InputError
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS

S = 1_000_000
DAY_S = 1_714_521_600  # 2024-05-01
FULL = OccupancyRules(window="full", min_gap_s=0, empty_machine="idle")
HEADER = "JobIDRaw|Partition|QOS|State|Submit|Eligible|Start|End|NNodes|NodeList"


def day(hour, minute=0):
    return f"2024-05-01T{hour:02}:{minute:02}:00"


def row(job, start, end, nodes, submit, eligible=None, count=None, state="COMPLETED", partition="batch", qos="normal"):
    return "|".join([job, partition, qos, state, submit, eligible or submit, start, end, str(count or 1), nodes])


ROWS = (
    row("0", day(0), day(1), "cn4", day(0), partition="other"),
    row("1", day(1), day(2), "cn1", day(0), day(0, 30)),
    row("2", day(2), day(4), "cn[1-2]", day(1), count=2, partition="gpu"),
    row("3", day(3), day(5), "cn3", day(3), qos="high"),
    row("4", "None", day(4), "None assigned", day(2), count=5, state="CANCELLED by 7"),
    row("5", "Unknown", "Unknown", "None assigned", day(3, 30), count=7, state="PENDING", partition="gpu,batch"),
    row("6", day(4), "Unknown", "cn1", "Unknown", "Unknown", state="RUNNING"),
)


def written(folder, text, reader="slurm", rules=FULL, **options):
    (folder / "log").write_text(text)
    built = read_log(folder / "log", reader, ReadOptions(**options), job_names=True).build(rules)
    write_events(built.events, folder / "events.parquet", overwrite=True)
    built.write_batch_jobs(folder / "jobs.parquet", overwrite=True)
    return load_events(folder / "events.parquet"), folder / "jobs.parquet"


def waits_of(jobs):
    """(from, until, wanted, partition) of every job, times in hours of the day."""
    columns = (jobs.eligible_us, jobs.until_us, jobs.wanted, jobs.partition)
    return [
        ((start / S - DAY_S) / 3600, (end / S - DAY_S) / 3600, wanted, jobs.partitions[code])
        for start, end, wanted, code in zip(*(column.tolist() for column in columns), strict=True)
    ]


def test_jobs_wait_from_their_eligible_time_until_they_start_or_give_up(tmp_path):
    log, file = written(tmp_path, "\n".join([HEADER, *ROWS]), timezone="UTC")
    assert waits_of(load_waiting_jobs(file, log)) == [
        (0.5, 1, 1, "batch"), (1, 2, 2, "gpu"), (3, 3, 1, "batch"), (2, 4, 5, "batch"), (3.5, 5, 7, "gpu,batch"),
    ]  # fmt: skip
    assert load_waiting_jobs(file, log).n_unknown == 1  # job 6
    table = pq.read_table(file).to_pylist()
    assert [(job["job"], job["qos"], job["wanted"], job["nodes"]) for job in table] == [
        ("0", "normal", 1, [3]), ("1", "normal", 1, [0]), ("2", "normal", 2, [0, 1]), ("3", "high", 1, [2]),
        ("6", "normal", 1, [0]), ("4", "normal", 5, []), ("5", "normal", 7, []),
    ]  # fmt: skip
    assert table[4]["eligible"] is None
    # those that never started have no nodes to be late on
    assert list(map(str, load_batch_jobs(file, log).job)) == ["0", "1", "2", "3", "6"]


def test_a_part_of_the_window_has_the_jobs_that_wait_in_it(tmp_path):
    log, file = written(tmp_path, "\n".join([HEADER, *ROWS]), timezone="UTC")
    at = [(DAY_S + hours * 3600) * S for hours in (1, 2)]
    assert [wait[:2] for wait in waits_of(load_waiting_jobs(file, log.between(*at)))] == [(1, 2)]
    # in a log whose window ends before a job starts it waits to the end of that window
    early = OccupancyRules(window=((DAY_S + 3600) * S, (DAY_S + 5400) * S), min_gap_s=0)
    log, file = written(tmp_path, "\n".join([HEADER, *ROWS]), rules=early, timezone="UTC")
    assert waits_of(load_waiting_jobs(file, log)) == [(1, 1.5, 2, "gpu")]


def test_the_nodes_of_a_partition_are_those_of_its_jobs(tmp_path):
    log, _ = written(tmp_path, "\n".join([HEADER, *ROWS]), timezone="UTC")
    assert log.metadata.partitions == {"batch": ["cn1", "cn3"], "gpu": ["cn1", "cn2"], "other": ["cn4"]}


def test_one_row_at_a_time_and_many_at_once_give_the_same(tmp_path, monkeypatch):
    rows = [
        row(str(100 + n), day(6, n), day(7, n), f"cn{n % 5 + 1}", day(5, n % 30), partition=f"p{n % 3}")
        for n in range(50)
    ]
    by_path = []
    for is_compiled in (True, False):
        monkeypatch.setattr(sacct, "IS_COMPILED", is_compiled)
        log, file = written(tmp_path, "\n".join([HEADER, *ROWS, *rows]), timezone="UTC")
        by_path.append((waits_of(load_waiting_jobs(file, log)), log.metadata.partitions))
    assert by_path[0] == by_path[1]
    assert len(by_path[0][0]) == 55


JSON_JOBS = {
    "jobs": [
        {
            "job_id": 1,
            "state": {"current": ["COMPLETED"]},
            "nodes": "cn1",
            "allocation_nodes": 1,
            "partition": "gpu",
            "qos": "high",
            "time": {"submission": 1000, "eligible": 1500, "start": 4600, "end": 8200, "elapsed": 3600},
        }
    ]
}
PBS = (
    "05/01/2024 02:00:00;E;7.srv;queue=work ctime=1714521600 qtime=1714521600 etime=1714525200 start=1714528800 "
    "exec_host=n1/0 exec_vnode=(n1:ncpus=1) Resource_List.walltime=02:00:00 end=1714532400\n"
)
LSF = (
    '"JOB_FINISH" "10.108" 1700007200 52 1209 33554435 4 1700000000 0 0 1700000400 "ub" "normal" "" "" "" "login1" '
    '"/home/ub" "" "" "" "1700000000.52" 0 2 "ha1" "ha2" 64 1.0 "name" "sleep 10"'
)
FLUX = {
    "jobs": [
        {
            "id": 5, "t_submit": 1000.0, "t_depend": 1200.0, "t_run": 2000.0, "t_cleanup": 3000.0, "t_inactive": 3001.0,
            "nnodes": 1, "ranks": "0", "nodelist": "f1", "state": "INACTIVE", "queue": "debug",
        }
    ]
}  # fmt: skip
SWF = "; MaxNodes: 4\n; MaxProcs: 4\n; UnixStartTime: 1700000000\n1 100 50 600 3 -1 -1 3 -1 -1 1 1 1 -1 1 1 -1 -1\n"
TABLE = "job,submitted_at,start,end,nodes,queue\na,1700000000,1700000600,1700004200,cn1,long\n"


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        ("slurm", json.dumps(JSON_JOBS), (1500, 4600, 1, "gpu", "high")),
        ("pbs", PBS, (1714525200, 1714528800, 1, "work", None)),
        ("lsf", SMALL_LOGS["lsf"].text, None),
        ("flux", json.dumps(FLUX), (1200, 2000, 1, "debug", None)),
        ("swf", SWF, (1700000100, 1700000150, 3, None, None)),
        ("table", TABLE, (1700000000, 1700000600, 1, "long", None)),
    ],
)
def test_every_scheduler_says_since_when_its_jobs_waited(reader, text, expected, tmp_path):
    log, file = written(tmp_path, text, reader)
    job = pq.read_table(file).to_pylist()[0]
    if expected is None:  # submitted five minutes before it started
        expected = int(job["start"].timestamp()) - 300, int(job["start"].timestamp()), len(job["nodes"]), "normal", None
    times = (int(job[name].timestamp()) for name in ("eligible", "start"))
    assert (*times, job["wanted"], job["partition"], job["qos"]) == expected
    assert log.metadata.partitions == ({expected[3]: list(log.nodes)} if expected[3] else {})


def test_local_times_of_a_table_wait_as_long_as_its_clock_says(tmp_path):
    text = "job,submit_time,start,end,nodes\na,2024-05-01 01:00:00,2024-05-01 03:00:00,2024-05-01 04:00:00,cn1\n"
    _, file = written(tmp_path, text, "table", timezone="Europe/Paris")
    eligible = pq.read_table(file).to_pylist()[0]["eligible"]
    assert eligible.isoformat() == "2024-04-30T23:00:00+00:00"


def test_missing_nodes_that_come_later_are_no_job_that_waits(tmp_path):
    text = SWF + "2 200 0 600 3 -1 -1 3 -1 -1 1 1 1 -1 1 1 -1 -1\n"  # three nodes of which one is free
    log, file = written(tmp_path, text, "swf")
    assert [wait[2] for wait in waits_of(load_waiting_jobs(file, log))] == [1]  # the first one starts with the window
    assert load_waiting_jobs(file, log).n_unknown == 0
    assert [row["wanted"] for row in pq.read_table(file).to_pylist()] == [3, 1, 0]


def test_a_file_of_an_older_version_is_read_and_says_what_it_lacks(tmp_path):
    log, file = written(tmp_path, "\n".join([HEADER, *ROWS]), timezone="UTC")
    table = pq.read_table(file)
    older = table.select(["job", "start", "end", "nodes"]).slice(0, 5).replace_schema_metadata(table.schema.metadata)
    pq.write_table(older, file, use_dictionary=False)
    assert list(map(str, load_batch_jobs(file, log).job)) == ["0", "1", "2", "3", "6"]
    with pytest.raises(InputError, match=r"does not say since when the batch jobs waited(?s:.*)eligible"):
        load_waiting_jobs(file, log)


def test_pairs_of_partition_and_qos_without_end_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MOST_KINDS", 3)
    rows = [row(str(n), day(1, n), day(2, n), "cn1", day(1), partition=f"p{n}") for n in range(5)]
    (tmp_path / "log").write_text("\n".join([HEADER, *rows]))
    read = read_log(tmp_path / "log", "slurm", ReadOptions(timezone="UTC"))
    assert read.record.report.facts[submissions.MANY_KINDS] == "2 are not kept"
    assert read.build(FULL).events.metadata.partitions == {"p0": ["cn1"], "p1": ["cn1"]}


def test_a_table_of_nodes_says_types_and_partitions_also_of_gpus(tmp_path):
    (tmp_path / "nodes.csv").write_text(
        "node,gpus,cores,type,partitions\ncn1,2,8,a100,gpu;all\ncn2,2,8,,all\ncn[3-4],0,8,cpu,batch\n"
    )
    (tmp_path / "log").write_text("\n".join([HEADER, *ROWS]))
    read = read_log(tmp_path / "log", "slurm", ReadOptions(timezone="UTC"), units=tmp_path / "nodes.csv")
    metadata = read.build(FULL).events.metadata
    assert metadata.partitions == {"all": ["cn1", "cn2"], "batch": ["cn3", "cn4"], "gpu": ["cn1"]}
    assert metadata.hardware_types == {"a100": ["cn1"], "no type": ["cn2"], "cpu": ["cn3", "cn4"]}
    assert (metadata.node_types, idle_parts(read.build(FULL).events, "type").parts[0].n_nodes) == ({}, 2)
    rows = [f"{line}|{'cpu=2,gres/gpu=1' if 'cn' in line or line.startswith('5') else ''}" for line in ROWS]
    (tmp_path / "log").write_text("\n".join([f"{HEADER}|AllocTRES", *rows]))
    options = ReadOptions(timezone="UTC", unit="gpu")
    read = read_log(tmp_path / "log", "slurm", options, units=tmp_path / "nodes.csv", job_names=True)
    built = read.build(FULL)
    gpus = ["cn1/gpu0", "cn1/gpu1", "cn2/gpu0", "cn2/gpu1"]
    assert built.events.nodes == tuple(gpus)
    assert built.events.metadata.partitions == {"all": gpus, "gpu": gpus[:2]}
    built.write_batch_jobs(tmp_path / "jobs.parquet")
    # of those that never started only job 5 says how many GPUs it wants; jobs on nodes without GPUs hold none
    assert [(wait[2], wait[3]) for wait in waits_of(load_waiting_jobs(tmp_path / "jobs.parquet", built.events))] == [
        (1, "batch"), (1, "gpu"), (1, "gpu,batch"),
    ]  # fmt: skip


def test_partitions_of_gpus_are_those_of_their_nodes(tmp_path):
    (tmp_path / "nodes.csv").write_text("node,gpus,cores\ncn1,2,8\ncn2,2,8\ncn[3-4],0,8\n")
    rows = [f"{line}|cpu=2,gres/gpu={2 if 'cn[1-2]' in line else 1}" for line in ROWS]
    (tmp_path / "log").write_text("\n".join([f"{HEADER}|AllocTRES", *rows]))
    read = read_log(tmp_path / "log", "slurm", ReadOptions(timezone="UTC", unit="gpu"), units=tmp_path / "nodes.csv")
    # the jobs hold one GPU of each node, and the partition has both
    partitions = read.build(FULL).events.metadata.partitions
    assert partitions == {
        "batch": ["cn1/gpu0", "cn1/gpu1"], "gpu": ["cn1/gpu0", "cn1/gpu1", "cn2/gpu0", "cn2/gpu1"],
    }  # fmt: skip


def test_a_job_that_never_could_start_does_not_wait(tmp_path, monkeypatch):
    held = row("7", "None", day(9), "None assigned", day(1), "Unknown", count=2, state="CANCELLED by 7")
    ran = row("8", day(6), day(7), "cn3", day(5), "Unknown")
    for is_compiled in (True, False):
        monkeypatch.setattr(sacct, "IS_COMPILED", is_compiled)
        log, file = written(tmp_path, "\n".join([HEADER, *ROWS, held, ran]), timezone="UTC")
        assert len(waits_of(load_waiting_jobs(file, log))) == 5
        assert load_waiting_jobs(file, log).n_unknown == 2  # of job 6 no time is known, and none of job 8
    without = [line.replace("|Eligible|", "|").replace(f"|{day(5)}|Unknown|", f"|{day(5)}|") for line in (HEADER, ran)]
    log, file = written(tmp_path, "\n".join([without[0], _without_eligible(ROWS[0]), without[1]]), timezone="UTC")
    assert waits_of(load_waiting_jobs(file, log)) == [(5, 6, 1, "batch")]


def _without_eligible(line):
    cells = line.split("|")
    return "|".join(cells[:5] + cells[6:])


def test_eligible_times_in_the_hour_that_comes_twice_are_read_one_by_one(tmp_path, monkeypatch):
    night = [
        row("1", "2024-10-27T01:00:00", "2024-10-27T06:00:00", "cn1", "2024-10-26T20:00:00"),
        row("2", "2024-10-27T04:00:00", "2024-10-27T06:00:00", "cn2", "2024-10-27T02:30:00"),
    ]
    found = []
    for is_compiled in (True, False):
        monkeypatch.setattr(sacct, "IS_COMPILED", is_compiled)
        _, file = written(tmp_path, "\n".join([HEADER, *night]), timezone="Europe/Paris")
        found.append([job["eligible"].isoformat() for job in pq.read_table(file).to_pylist()])
    assert found[0] == found[1] == ["2024-10-26T18:00:00+00:00", "2024-10-27T00:30:00+00:00"]


def test_what_is_not_known_of_a_job_that_never_started_is_said(tmp_path):
    width, end = row("7", "None", day(4), "None assigned", day(2)), row("8", "None", "Unknown", "None assigned", day(2))
    gone = [line.replace("COMPLETED", "CANCELLED by 7") for line in (width.replace("|1|None", "||None"), end)]
    log, file = written(tmp_path, "\n".join([HEADER, *ROWS, *gone]), timezone="UTC")
    # of 7 the number of nodes, of 8 the time at which it gave up is not known
    assert (len(waits_of(load_waiting_jobs(file, log))), load_waiting_jobs(file, log).n_unknown) == (5, 2)
    assert [job["wanted"] for job in pq.read_table(file).to_pylist() if job["job"] in ("7", "8")] == [None]


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("wanted", pa.array([-5] * 7, pa.int32()), r"the job wanted less than no node\n.*\n.*row 1|row:      1"),
        ("eligible", pa.array([2**52] * 7, pa.timestamp("us", tz="UTC")), "the job started before it was eligible"),
        ("eligible", pa.array(["x"] * 7), "does not say since when the batch jobs waited"),
        ("partition", pa.array([1] * 7), "does not say since when the batch jobs waited"),
    ],
)
def test_damaged_columns_are_refused(tmp_path, column, values, problem):
    log, file = written(tmp_path, "\n".join([HEADER, *ROWS]), timezone="UTC")
    table = pq.read_table(file)
    damaged = table.set_column(table.schema.names.index(column), column, values)
    pq.write_table(damaged.replace_schema_metadata(table.schema.metadata), file, use_dictionary=False)
    with pytest.raises(InputError, match=problem):
        load_waiting_jobs(file, log)


def test_submit_times_of_another_unit_are_not_known(tmp_path):
    text = "job,submit,start,end,nodes\na,1.5,1700000600,1700004200,cn1\nb,1700000700000,1700000900,1700004200,cn2\n"
    text += "c,1700000700,1700000900,1700004200,cn3\nd,1700000950,1700000900,1700004200,cn4\n"
    _, file = written(tmp_path, text, "table")
    jobs = pq.read_table(file).to_pylist()
    eligible = {job["job"]: job["eligible"] and int(job["eligible"].timestamp()) for job in jobs}
    assert eligible == {"a": None, "b": None, "c": 1700000700, "d": 1700000900}


def test_a_job_of_json_that_never_started_waits_for_the_nodes_that_it_asked_for(tmp_path):
    never = {
        "job_id": 2,
        "state": {"current": ["CANCELLED"]},
        "nodes": "None assigned",
        "allocation_nodes": 0,
        "tres": {"allocated": [], "requested": [{"type": "cpu", "count": 8}, {"type": "node", "count": 100}]},
        "time": {"submission": 1000, "eligible": 5000, "start": 0, "end": 6000, "elapsed": 0},
    }
    log, file = written(tmp_path, json.dumps({"jobs": [*JSON_JOBS["jobs"], never]}), "slurm")
    assert [job["wanted"] for job in pq.read_table(file).to_pylist()] == [1, 100]
    assert load_waiting_jobs(file, log).wanted.tolist() == [100]


@pytest.mark.parametrize("name", [" batch ", "b" * 300, "ba\x1btch", "ba\x00tch", "\t"])
def test_a_strange_cell_of_a_partition_costs_no_row(tmp_path, monkeypatch, name):
    for is_compiled in (True, False):
        monkeypatch.setattr(sacct, "IS_COMPILED", is_compiled)
        rows = [line.replace("|gpu|", f"|{name}|") for line in ROWS[:4]]
        log, _ = written(tmp_path, "\n".join([HEADER, *rows]), timezone="UTC")
        expected = {"batch": ["cn1", "cn3"], "other": ["cn4"]}
        if name.strip() == "batch":
            expected["batch"] = ["cn1", "cn2", "cn3"]
        assert log.metadata.partitions == expected
        assert len(log.nodes) == 4
        is_said = submissions.NO_KINDS in log.metadata.notes["ingest"]["facts"]
        assert is_said is (name not in (" batch ", "\t"))
