"""Output of the Batsim simulator."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.batsim import OTHER_NODE_TIME, SWITCHED_OFF, BatsimReader, resources
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE, ImportReport
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from tests.examples import examples

JOBS = "job_id,workload_name,requested_time,starting_time,finish_time,allocated_resources,metadata"
STATES = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing"
SCHEDULE = "makespan,nb_jobs,time_computing"
WORKLOAD = '{"jobs": [{"id": 1, "subtime": 0, "res": 2, "nb_res": 9, "profile": "p"}], "profiles": {}, "nb_res": 8}'


class AllDrops(ImportReport):
    """Remembers each line that is left out."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def skip(self, reason, file="", line=None, value="", count=1):
        super().skip(reason, file, line, value, count)
        self.lines.append(line)


def files_of(folder, jobs=None, states=None, schedule=None, workload=None):
    files = []
    for name, header, content in (
        ("jobs.csv", JOBS, jobs),
        ("states.csv", STATES, states),
        ("schedule.csv", SCHEDULE, schedule),
    ):
        if content is not None:
            (folder / name).write_text("\n".join([header, *content]) + "\n")
            files.append(LogFile(folder / name))
    if workload is not None:
        (folder / "workload.json").write_text(workload)
        files.append(LogFile(folder / "workload.json"))
    return files


def read(folder, jobs, *others, n_nodes=None, **content):
    record = ScheduleRecord(AllDrops())
    BatsimReader().read([*files_of(folder, jobs, **content), *others], record, ReadOptions(n_nodes=n_nodes))
    assert record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped
    return record


def jobs_of(record):
    """Start and end in microseconds and names of nodes."""
    found = []
    for part, _ in record.jobs.slices():
        for i in range(len(part)):
            nodes = part.nodes[part.first_node[i] : part.first_node[i + 1]]
            found.append((int(part.start_us[i]), int(part.end_us[i]), [record.nodes[n] for n in nodes]))
    return found


def skipped(record):
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


def test_a_job_holds_its_set_of_intervals_for_its_decimal_seconds(tmp_path):
    record = read(tmp_path, ["1,w,60,1.5,2.250001,0-1 5,"])
    assert jobs_of(record) == [(1_500_000, 2_250_001, ["0000", "0001", "0005"])]
    assert (record.time_origin, record.source_format, record.machine_size) == ("relative", "batsim", None)
    assert not record.report.warnings


def test_the_workload_says_how_many_machines_there_are_and_all_are_known(tmp_path):
    record = read(tmp_path, ["1,w,60,0,2,7,"], workload=WORKLOAD, states=["0,0,0,0,30,1"])
    assert (record.machine_size, record.nodes) == (8, tuple(f"{i:04d}" for i in range(8)))
    assert record.inventory_known


def test_without_a_workload_the_counts_of_states_say_it(tmp_path):
    record = read(tmp_path, ["1,w,60,0,2,1,"], states=["0,0,0,0,2,1", "2,0,0,0,3,0"])
    assert record.machine_size == 3
    assert skipped(record) == {"machine states: counts without names": 2}


def test_the_option_decides_over_both(tmp_path):
    assert read(tmp_path, ["1,w,60,0,2,1,"], workload=WORKLOAD, n_nodes=5).machine_size == 5


def test_machines_that_slept_are_a_warning(tmp_path):
    record = read(tmp_path, ["1,w,60,0,2,1,"], states=["0,0,0,0,2,1", "2,1,0,0,2,0"])
    assert record.report.warnings[SWITCHED_OFF].count == 1


def test_a_number_of_machines_that_changes_is_a_warning(tmp_path):
    record = read(tmp_path, ["1,w,60,0,2,1,"], states=["0,0,0,0,2,1", "2,0,0,0,2,0"])
    assert list(record.report.warnings) == ["the number of machines in out_machine_states.csv changes"]


@pytest.mark.parametrize(("computing", "is_warning"), [("6.000000", False), ("7.000000", True)])
def test_the_node_time_is_compared_with_the_summary(tmp_path, computing, is_warning):
    record = read(tmp_path, ["1,w,60,0,2,0-2,"], schedule=[f"2,1,{computing}"])
    assert (OTHER_NODE_TIME in record.report.warnings) == is_warning
    assert skipped(record) == {"summary of the schedule": 1}


@pytest.mark.parametrize(
    ("row", "reason", "is_warning"),
    [
        ("2,w,60,-1,-1,,", "never started", False),
        ("2,w,60,-1.000000,-1.000000,,", "never started", False),
        ("2,w,60,,,,", "never started", False),
        ("2,w,60,3,3,,", "no resources", False),
        ("2,w,60,3,4,,", "no resources for a job that ran", True),
        ("2,w,60,3,3,1,", "job of no length", False),
        ("2,w,60,3,2,1,", "job that ends before it starts", False),
        (",w,60,3,4,1,", "no job_id", True),
        ("2,w,60,three,4,1,", "a time is not a number", True),
        ("2,w,60,3,nan,1,", "a time is not a number", True),
        ("2,w,60,3,1e13,1,", "a time is not a number", True),
        ("2,w,60,3,4,1-,", "the allocated resources cannot be read", True),
        ("2,w,60,3,4,3-1,", "the allocated resources cannot be read", True),
        ("2,w,60,3,4,0-2000000,", "the allocated resources cannot be read", True),
        ("2,w,60,3,4,8,", "a resource that the machine does not have", True),
        ("2,w,60,3,4", "not as many fields as columns", True),
        ('2,w,60,3,4,1,"{', "not as many fields as columns", True),
    ],
)
def test_what_is_no_interval_is_skipped_by_reason_with_its_line(tmp_path, row, reason, is_warning):
    record = read(tmp_path, ["1,w,60,0,2,1,", row, "3,w,60,0,2,2,"], workload=WORKLOAD)
    assert skipped(record) == {reason: 1}
    assert record.report.skipped[reason].examples[0].line == 3
    assert list(record.report.warnings) == ([UNREADABLE] if is_warning else [])
    assert len(jobs_of(record)) == 2


def test_a_job_without_a_finish_still_ran_when_the_simulation_ended(tmp_path):
    record = read(tmp_path, ["1,w,60,5,-1,1,"])
    ((part, _),) = record.jobs.slices()
    assert (record.n_open, part.limit_end_us.tolist()) == (1, [65_000_000])


def test_quoted_values_may_hold_commas(tmp_path):
    assert len(jobs_of(read(tmp_path, ['1,w,60,0,1,1,"{""a"": 1, ""b"": 2}"']))) == 1


def test_jobs_of_two_workloads_may_have_the_same_number(tmp_path):
    assert len(jobs_of(read(tmp_path, ["1,a,60,0,1,1,", "1,b,60,0,1,2,"]))) == 2


def test_one_simulation_at_a_time(tmp_path):
    (tmp_path / "b").mkdir()
    (other,) = files_of(tmp_path / "b", ["1,w,60,0,1,1,"])
    with pytest.raises(InputError, match=r"more than one out_jobs\.csv"):
        read(tmp_path, ["1,w,60,0,1,1,"], other)


def test_without_the_jobs_there_is_nothing_to_read(tmp_path):
    with pytest.raises(InputError, match=r"there is no out_jobs\.csv") as caught:
        read(tmp_path, None, workload=WORKLOAD)
    assert "batsim -p" in str(caught.value)


def test_a_file_of_another_kind_is_refused_with_its_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a file of Batsim") as caught:
        read(tmp_path, ["1,w,60,0,1,1,"], LogFile(path))
    assert caught.value.value == "a,b"


def test_a_simulation_in_which_nobody_ran_is_refused(tmp_path):
    with pytest.raises(InputError, match="no job of this simulation") as caught:
        read(tmp_path, ["1,w,60,-1,-1,,"])
    assert "1 x never started" in str(caught.value)


@pytest.mark.parametrize("nb_res", ["0", "-3", "2000000"])
def test_a_workload_with_an_impossible_machine_is_refused(tmp_path, nb_res):
    with pytest.raises(InputError, match="nb_res is out of range"):
        read(tmp_path, ["1,w,60,0,1,1,"], workload=WORKLOAD.replace('"nb_res": 8', f'"nb_res": {nb_res}'))


@pytest.mark.parametrize("workload", [WORKLOAD.split('"nb_res": 8')[0], WORKLOAD.replace(": {}", ": " + "[" * 5000)])
def test_a_workload_that_is_cut_or_nested_without_end_is_refused(tmp_path, workload):
    with pytest.raises(InputError, match="broken or cut"):
        read(tmp_path, ["1,w,60,0,1,1,"], workload=workload)


@pytest.mark.parametrize(("text", "numbers"), [("", ()), ("3", (3,)), ("0-2 7", (0, 1, 2, 7)), ("2 1-3", (2, 1, 3))])
def test_sets_of_resources(text, numbers):
    assert resources(text) == numbers


@settings(max_examples=examples(300))
@given(data=st.data())
def test_a_damaged_table_is_refused_or_read_without_the_lines_that_were_reported(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("batsim")
    lines = [JOBS, *(f"{i},w,60,{i}.5,{i + 4}.25,{i}-{i + 2} 9,{{}}" for i in range(8))]
    junk = [",", " ", "-", "e", '"', "\n", "\r", "\x00", "9" * 14, "nan", "\udcff", "１"]
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0 if data.draw(st.booleans()) else 1, len(lines) - 1))
        at = data.draw(st.integers(0, len(lines[i])))
        cut = data.draw(st.integers(0, 3))
        lines[i] = lines[i][:at] + data.draw(st.sampled_from(["", *junk])) + lines[i][at + cut :]
    text = "\n".join(lines)

    def of(content):
        path = folder / "jobs.csv"
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
        record = ScheduleRecord(AllDrops())
        try:
            BatsimReader().read([LogFile(path)], record, ReadOptions())
        except InputError as error:
            if error.file != str(path):
                raise
            return None
        return record

    record = of(text)
    if record is None:
        return
    assert record.report.rows_read == record.report.kept["job intervals"] + record.report.rows_skipped
    left = [line for number, line in enumerate(re.split("\r*\n|\r", text), 1) if number not in record.report.lines]
    again = of("\n".join(left))
    assert jobs_of(again) == jobs_of(record)
    assert again.report.rows_skipped == 0


def real_files(shared):
    folder = shared / "data" / "logs"
    return [LogFile(path) for path in sorted(folder.glob("batsim-*"))]


def test_the_real_simulation_has_its_jobs_machines_and_node_time(shared):
    record = ScheduleRecord()
    BatsimReader().read(real_files(shared), record, ReadOptions())
    assert record.report.kept == {"job intervals": 801}
    assert skipped(record) == {"machine states: counts without names": 1_602, "summary of the schedule": 1}
    assert (record.report.warnings, record.machine_size, len(record.nodes)) == ({}, 32, 32)
    assert record.last_end_us == 16_088_510_000
    assert record.report.facts["node time of jobs (s)"]["out_jobs.csv"] == 256_450.464


def test_the_busy_nodes_of_the_real_simulation_are_those_it_counted(shared):
    """At most times that the table of states gives (in six digits) all machines are as the jobs have them."""
    jobs, states, *_ = real_files(shared)
    record = ScheduleRecord()
    BatsimReader().read([jobs], record, ReadOptions())
    found = jobs_of(record)
    assert all(
        sum(len(nodes) for start, end, nodes in found if start <= t < end) <= 32 for t in (start for start, *_ in found)
    )
    rows = [line.split(",") for _, line in states.lines()][1:]
    times = [float(row[0]) * 1e6 for row in rows]
    checked = 0
    for row, time, following in zip(rows, times, times[1:], strict=False):
        middle = (time + following) / 2
        if following - time > 1e6:  # the digits that were cut off do not matter then
            checked += 1
            assert sum(len(nodes) for start, end, nodes in found if start <= middle < end) == int(row[5])
    assert checked > 1_000


def test_only_batsim_files_are_recognised_among_the_real_ones(shared):
    found = [p.name for p in sorted((shared / "data" / "logs").iterdir()) if BatsimReader().recognise(LogFile(p))]
    assert found == [file.path.name for file in real_files(shared)]


def test_machines_that_slept_have_their_node_hours(tmp_path):
    states = ["0,0,0,0,2,1", "3600,1,0,0,2,0", "10800,0,2,1,0,0", "14400,0,0,0,2,1"]
    found = read(tmp_path, ["1,w,60,0,2,1,"], states=states).report.warnings[SWITCHED_OFF]
    assert (found.count, found.node_hours) == (2, 1 * 2 + 3 * 1)
    to_the_end = read(tmp_path, ["1,w,60,0,2,1,"], states=["0,0,0,0,2,1", "3600,2,0,0,1,0"]).report
    to_the_end.complete(4 * 3_600_000_000, None)
    assert to_the_end.warnings[SWITCHED_OFF].node_hours == 2 * 3
