"""Grid Engine: accounting of SGE and its successors, Univa's in milliseconds, and Gridware's JSON lines."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest import grid_engine
from bfreplay.datasets.ingest.grid_engine import GridEngineReader
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import CUT, ScheduleRecord
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from tests.datasets.ingest.what_was_read import balances, check_damaged, intervals, skipped
from tests.examples import examples

T = 1_700_000_000
US = 1_000_000
UNREADABLE = "rows that cannot be read were skipped: their nodes look idle"
VERSION = "# Version: 8.1.9\n#\n# DO NOT MODIFY THIS FILE MANUALLY!\n#"


def line(start, end, host="na01", number=7, **given):
    """A record of Son of Grid Engine: 45 fields, times in seconds."""
    names = {"name": "relax", "account": "sge", "project": "NONE", "pe": "NONE", "slots": 1, "array": 0}
    names |= {"category": "-l h_rt=86400", "task": "NONE", "submit": T - 100, "failed": 0, "exit": 0, "queue": "all.q"}
    names |= {"ran": end - start, "after": ("0", "0")} | given
    usage = ("1.030000", "0.100000", "104188.000000", 0, 0, 0, 0, 28_001, 0, 0, "0.000000", 24, 0, 0, 0, 41, 549)
    fields = (names["queue"], host, "phys", "ua", names["name"], number, names["account"], 0, names["submit"])
    fields += (start, end, names["failed"], names["exit"], names["ran"], *usage, names["project"], "defaultdepartment")
    fields += (names["pe"], names["slots"], names["array"], "1.130000", "7.300000", "0.000044", names["category"])
    return ":".join(map(str, (*fields, "0.000000", names["task"], "189153280.000000", *names["after"])))


def read(tmp_path, *files, **options):
    logs = []
    for i, records in enumerate(files):
        path = tmp_path / str(i)
        path.write_text("\n".join(records) + "\n", encoding="utf-8", errors="surrogateescape")
        logs.append(LogFile(path, str(i)))
    record = ScheduleRecord()
    GridEngineReader().read(logs, record, ReadOptions(**options))
    assert balances(record)
    return record


def runs(record):
    """(start, end, names) in seconds after T, by start."""
    return sorted((start - T, end - T, names) for start, end, _, names in intervals(record, US))


def hours(record, sentence):
    return record.report.warnings[sentence].node_hours


def test_a_job_runs_from_its_start_to_its_end_on_its_host(tmp_path):
    record = read(tmp_path, [VERSION, line(T, T + 60), "", line(T + 60, T + 90, "na02.example.org", 8)])
    assert runs(record) == [(0, 60, ("na01",)), (60, 90, ("na02.example.org",))]
    assert record.report.rows_read == 2  # no comments, and no blank lines
    assert not record.report.warnings
    assert record.source_format == "grid engine accounting"


@pytest.mark.parametrize(
    "names",
    [
        {"name": "post:run"},
        {"name": "vgl0:aeroturb:00005882:fluent-post"},  # a number with zeros before it is no job number
        {"name": ":"},
        {"account": "a:b"},
        {"category": "-l h_rt=1:00:00,mem=2G -q all.q@@a"},
        {"category": "-l h_rt=1:00:00", "task": "", "name": "a:b", "account": "c:d"},
        {"account": "2017"},
        {"project": "4711"},
        {"name": "1:0:0", "project": "12", "account": "3"},
        {"after": ()},  # SGE 6.1 has 43 fields
        {"after": ("0", "0", "NONE", "NONE", "66", "63", "dev1", "/home/a:b", "qsub a:b 1:2", "60.1", "9", "1:0", "x")},
    ],
)
def test_colons_and_numbers_in_names_move_no_other_field(tmp_path, names):
    record = read(tmp_path, [line(T, T + 60, number=503, **names), line(T + 60, T + 90, number=503, **names)])
    assert runs(record) == [(0, 60, ("na01",)), (60, 90, ("na01",))]
    assert not record.report.warnings


@pytest.mark.parametrize(
    ("names", "job"),
    [
        ({"name": "a:0012:b"}, "503"),
        ({"name": "4711", "account": "2017"}, "503"),
        ({"name": "post:12:b"}, "post:12:b:503:sge"),  # either number may be the job's
        ({"account": "c:12:d"}, "relax:503:c:12:d"),
    ],
)
def test_a_job_whose_number_is_not_certain_is_known_by_all_that_holds_it(names, job):
    text = line(T, T + 60, number=503, **names)
    assert grid_engine.line_of(text, ("a", 1)).job == job


@pytest.mark.parametrize(
    "text",
    [
        line(T, T + 60, account="2017", pe="4").replace("1.130000:7.300000:0.000044:-l h_rt=86400", "0:0:0:0"),
        line(T, T + 60) + line(T, T + 60, "na02"),  # a line end was lost
        line(T, T + 60, category="a:0.0:NONE:1:0:0", task="1.na02"),
        line(T, T + 60)[:200],
        line(T, T + 60).rsplit(":", 4)[0],
        line(T, T + 60).replace(f":{T}:", ":soon:"),
        line(T, T + 60).replace(f":{T}:", ":-5:"),
        line(T + 60, T),
        line(T * 1_000, (T + 60) * US),  # milliseconds and microseconds
        line(T, T + 60, "na[01-02]"),
        line(T, T + 60, "UNKNOWN"),
        line(T, T + 60, number="x"),
        "nonsense",
        ":" * 50,
        "{{",
        '{"job_number": 1}',
    ],
)
def test_a_line_with_several_readings_or_none_is_skipped_with_a_warning(tmp_path, text):
    record = read(tmp_path, [line(T, T + 60), line(T, T + 60, number=8), text])
    assert len(runs(record)) == 2
    assert skipped(record) == {"fields that cannot be read": 1}
    assert record.report.warnings[UNREADABLE].count == 1


def test_times_are_seconds_milliseconds_or_microseconds_by_their_size(tmp_path):
    in_ms = line(T * 1_000 + 250, (T + 60) * 1_000 + 750, submit=T * 1_000, ran=60.5)
    in_us = line(T * US + 3, (T + 9) * US, number=8, submit=0, ran=9)
    record = read(tmp_path, [in_ms, in_us])
    assert sorted(intervals(record)) == [
        (T * US + 3, (T + 9) * US, 1, ("na01",)),
        (T * US + 250_000, (T + 60) * US + 750_000, 1, ("na01",)),
    ]
    assert not record.report.warnings


def test_tasks_of_an_array_are_jobs_of_their_own(tmp_path):
    record = read(tmp_path, [line(T, T + 60, array=k, host=f"na0{k}") for k in (1, 2, 3)])
    assert runs(record) == [(0, 60, ("na01",)), (0, 60, ("na02",)), (0, 60, ("na03",))]
    jobs = {grid_engine.line_of(line(T, T + 60, array=k), ("a", 1)).job for k in (0, 1, 2)}
    assert jobs == {"7", "7.1", "7.2"}


PARALLEL = [
    line(T + 10, T + 50, "na02", pe="mpi", slots=32, task="1.na02", submit=0),
    line(T + 11, T + 40, "na02", pe="mpi", slots=32, task="2.na02", submit=0),
    line(T - 2, T + 70, "na03", pe="mpi", slots=32, task="1.na03", submit=0),
    line(T, T + 60, "na01", pe="mpi", slots=32),
]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_a_parallel_job_holds_the_hosts_of_all_its_lines_for_its_own_time(tmp_path, order):
    lines = [PARALLEL[k] for k in order]
    lines.insert(2, line(T + 1, T + 2, "na09", number=9))  # lines of a job need not follow each other
    record = read(tmp_path, lines[:2], lines[2:])
    assert [(start, end, set(names)) for start, end, names in runs(record)] == [
        (0, 60, {"na01", "na02", "na03"}),
        (1, 2, {"na09"}),
    ]
    assert skipped(record) == {"further line of a parallel job, whose host is held with it": 3}
    assert not record.report.warnings


def test_a_task_may_give_its_own_slots_only(tmp_path):
    record = read(tmp_path, [line(T + 1, T + 50, "na02", pe="mpi", slots=1, task="1.na02"), PARALLEL[3]])
    assert [(start, end, set(names)) for start, end, names in runs(record)] == [(0, 60, {"na01", "na02"})]


def test_each_run_of_a_rescheduled_job_has_its_own_hosts(tmp_path):
    again = line(T + 200, T + 300, "na01", pe="mpi", slots=32)
    record = read(
        tmp_path,
        [
            PARALLEL[0],
            line(T, T + 60, "na01", pe="mpi", slots=32, failed=25, exit=99),
            line(T + 199, T + 290, "na05", pe="mpi", slots=32, task="1.na05"),  # its host's clock is late
            again,
            line(T + 400, T + 410, number=8, failed=25),
            line(T + 420, T + 430, "na02", number=8),
        ],
    )
    assert runs(record) == [
        (0, 60, ("na01", "na02")),
        (200, 300, ("na01", "na05")),
        (400, 410, ("na01",)),
        (420, 430, ("na02",)),
    ]


def test_a_file_that_is_given_twice_changes_nothing(tmp_path):
    lines = [*PARALLEL, line(T, T + 5, "na07", 9)]
    once, twice = (read_log([*paths], "grid-engine").build() for paths in _written_twice(tmp_path, lines))
    assert once.events.nodes == twice.events.nodes
    assert once.report.facts["node_hours"] == twice.report.facts["node_hours"]


def _written_twice(tmp_path, lines):
    paths = [tmp_path / "accounting", tmp_path / "accounting.0"]
    for path in paths:
        path.write_text("\n".join(lines) + "\n")
    return paths[:1], paths


def test_tasks_without_their_job_hold_their_hosts_together_while_they_overlap(tmp_path):
    record = read(tmp_path, [*PARALLEL[:2], line(T + 900, T + 960, pe="mpi", slots=32, failed=25)])
    assert runs(record) == [(10, 50, ("na02",)), (900, 960, ("na01",))]
    assert record.report.warnings[grid_engine._ALONE_WARNING].count == 1
    assert hours(record, grid_engine._ALONE_WARNING) == pytest.approx(40 / 3_600)
    path = tmp_path / "accounting"
    path.write_text("\n".join(PARALLEL[:2]).replace(f":{T + 11}:", f":{T + 10}:").replace("na02:phys", "na03:phys", 1))
    report = read_log(path).build(OccupancyRules(window="full", min_gap_s=0)).report
    assert report.facts["node_hours"]["busy"] == pytest.approx(2 * 40 / 3_600)


def test_what_waits_for_other_lines_is_bounded_and_what_comes_later_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(grid_engine, "MOST_HELD", 2)
    others = [line(T, T + 30, f"nb{k}", 100 + k, pe="smp", slots=2) for k in range(3)]
    record = read(tmp_path, [PARALLEL[3], *others, PARALLEL[0]], procs_per_node=16)
    assert (10, 50, ("na02",)) in runs(record)
    assert record.report.warnings[grid_engine._ALONE_WARNING].count == 1
    assert record.jobs.n_rows == 5


def test_further_hosts_of_a_job_on_one_line_are_unknown_and_bounded(tmp_path):
    lines = [line(T, T + 3_600, "na01", 1, pe="mpi", slots=3), line(T, T + 3_600, "na02", 2, pe="mpi", slots=99)]
    lines += [line(T, T + 1, f"nb{k}", 10 + k) for k in range(4)]
    record = read(tmp_path, lines)
    assert [len(names) for *_, names in runs(record)] == [1] * 6
    assert record.report.warnings[grid_engine._ONE_HOST_WARNING].count == 2
    assert hours(record, grid_engine._ONE_HOST_WARNING) == 2 + 5  # there are six nodes


def test_slots_of_a_node_say_how_many_nodes_a_job_on_one_line_had(tmp_path):
    lines = [
        line(T, T + 60, "na01", 1, pe="mpi", slots=33),
        line(T, T + 60, "na02", 2, pe="smp", slots=16),
        *[text.replace(":7:sge", ":3:sge") for text in PARALLEL[2:]],
    ]
    record = read(tmp_path, lines, procs_per_node=16)
    counts = [(count, names) for _, _, count, names in intervals(record, US)]
    assert sorted(counts) == [(1, ("na02",)), (2, ("na01", "na03")), (3, ("na01",))]
    assert {sentence: tally.count for sentence, tally in record.report.warnings.items()} == {CUT: 1}
    assert not read(tmp_path, PARALLEL, procs_per_node=16).report.warnings  # on more nodes than its slots need
    record = read(tmp_path, [line(T, T + 60)], procs_per_node=16)
    assert record.report.facts["--procs-per-node"] == "has no effect: no job has several slots"


def test_jobs_that_never_started_and_jobs_without_an_end_are_skipped(tmp_path):
    never = line(0, 0, "UNKNOWN", 8, failed=1, ran=0)
    record = read(tmp_path, [line(T, T + 60), never, line(T, 0, number=9, ran=0), line(T, T, number=10)])
    assert runs(record) == [(0, 60, ("na01",))]
    assert skipped(record) == {"never started": 1, "no end": 1, "job of no length": 1}
    assert list(record.report.warnings) == [grid_engine._NO_END_WARNING]


def test_contradictions_inside_a_record_are_warned_of(tmp_path):
    record = read(tmp_path, [line(T, T + 3_600, ran=60), line(T, T + 7_200, number=8, submit=T + 400)])
    assert hours(record, grid_engine._ELAPSED_WARNING) == 1
    assert hours(record, grid_engine._EARLY_WARNING) == 2
    record = read(tmp_path, [line(T, T + 60, ran="58.4"), line(T, T + 60, number=8, submit=T + 200, ran=0)])
    assert not record.report.warnings


def test_jobs_keep_their_queue_and_when_they_were_submitted(tmp_path):
    lines = [*PARALLEL[:3], line(T, T + 60, pe="mpi", slots=32, queue="long.q"), line(T, T + 5, "na02", 8, submit=0)]
    (rows, _), *_ = read(tmp_path, lines).jobs.slices()
    assert sorted(rows.eligible_us.tolist()) == [-1, (T - 100) * US]
    kinds = read(tmp_path, lines).kinds
    assert {queue for queue, _ in kinds.pairs} == {"", "all.q", "long.q"}


def json_line(start, end, **given):
    fields = {"job_number": 10, "task_number": 0, "start_time": start * US + 7, "end_time": end * US, "owner": "ua"}
    fields |= {"qname": "all.q", "hostname": "na01", "slots": 1, "job_name": 'a:"b', "submission_time": (T - 9) * US}
    return json.dumps(fields | {"usage": {"rusage": {"ru_wallclock": 0}}} | given)


def test_json_lines_have_the_same_fields_in_microseconds(tmp_path):
    record = read(
        tmp_path,
        [
            json_line(T, T + 60, granted_pe="mpi", slots=8),
            json_line(T, T + 50, pe_taskid="1.na02", hostname="na02", slots=8),
            json_line(T, T + 50, pe_task_id="1.na03", hostname="na03", slots=8),
            json_line(T, T + 30, job_number=11, task_number=4, pe_taskid="NONE"),
            json_line(0, 0, job_number=12, start_time=0),
            json_line(T, T + 9, type="acct", time=(T + 9) * US),
        ],
        [line(T + 100, T + 160)],
    )
    assert intervals(record, US)[0][0] == pytest.approx(T + 7e-6)
    assert sorted((end - T, names) for _, end, _, names in intervals(record, US)) == [
        (30, ("na01",)),
        (60, ("na01", "na02", "na03")),
        (160, ("na01",)),
    ]
    reasons = {"never started": 1, "record of the reporting file": 1}
    assert skipped(record) == {**reasons, "further line of a parallel job, whose host is held with it": 2}
    assert not record.report.warnings


@pytest.mark.parametrize(
    "text",
    [
        json_line(T, T + 60, start_time="soon"),
        json_line(T, T + 60, job_number=-1),
        json_line(T, T + 60, slots=-3),
        json_line(T, T + 60, end_time=10**25),
        json_line(T, T + 60)[:-9],
        json_line(T, T + 60).replace('"ua"', "[" * 100_000 + "]" * 100_000),
    ],
)
def test_json_lines_that_cannot_be_read_are_skipped_with_a_warning(tmp_path, text):
    record = read(tmp_path, [json_line(T, T + 60), text])
    assert skipped(record) == {"fields that cannot be read": 1}
    assert len(runs(record)) == 1


def test_records_of_the_reporting_file_are_counted_and_not_read(tmp_path):
    reporting = [f"{T}:acct:{line(T, T + 60, number=9)}", f"{T}:ar_acct:{T}:1:1:all.q:na01:4", f"{T}:queue:all.q:na01"]
    record = read(tmp_path, [line(T, T + 60), line(T, T + 60, number=8), *reporting, line(T, T + 60, number=10)])
    assert skipped(record) == {"record of the reporting file": 3}
    path = tmp_path / "reporting"
    path.write_text("\n".join(reporting) + "\n")
    for reader in ("auto", "grid-engine"):
        with pytest.raises(InputError, match="the output of Grid Engine's reporting") as caught:
            read_log(path, reader)
        assert grid_engine.EXPORT in caught.value.fix


@pytest.mark.parametrize("text", [f"{VERSION}\n{line(T, T + 60)}", json_line(T, T + 60)])
def test_auto_recognises_accounting_by_its_records(tmp_path, text):
    path = tmp_path / "some file"
    path.write_text(text + "\n")
    log = read_log(path)
    assert log.reader == "grid-engine"
    assert log.why[0].startswith("some file: grid-engine, because 1 of the first 1 lines are accounting records")


def test_a_file_in_which_few_lines_are_records_is_not_taken_for_accounting(tmp_path):
    path = tmp_path / "notes"
    path.write_text("\n".join([line(T, T + 60), "see above", "and below", ""]))
    assert GridEngineReader().recognise(LogFile(path)) is None
    assert read_log(path, "grid-engine").record.jobs.n_rows == 1


def test_a_file_of_something_else_or_without_a_run_is_refused(tmp_path):
    path = tmp_path / "other"
    path.write_text("root:x:0:0:root:/root:/bin/bash\n")
    with pytest.raises(InputError, match="this is not Grid Engine's accounting") as caught:
        read_log(path, "grid-engine")
    assert (caught.value.file, caught.value.value) == (str(path), "root:x:0:0:root:/root:/bin/bash")
    path.write_text(line(0, 0, ran=0) + "\n")
    with pytest.raises(InputError, match="no usable run") as caught:
        read_log(path, "grid-engine")
    assert caught.value.value == "never started: 1"


def test_a_hostile_line_takes_no_longer_than_it_is_long():
    for text in (":1" * 400_000, "x:" * 400_000, ":0:NONE" * 200_000):
        with pytest.raises(ValueError, match=r"lacks|several"):
            grid_engine.line_of(text, ("a", 1))
    odd = line(T, T + 60, category=":1:NONE:1" * 100_000, task="1.na01")
    assert grid_engine.line_of(odd, ("a", 1)).task == "1.na01"


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=300), st.integers(0, 300))
def test_damaged_bytes_are_accounted_for(tmp_path, junk, at):
    content = "\n".join([*PARALLEL, json_line(T, T + 60)]).encode()
    check_damaged(GridEngineReader(), content[:at] + junk + content[at + len(junk) :], tmp_path / "accounting")
