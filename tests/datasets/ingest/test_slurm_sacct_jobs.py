"""``sacct`` as text: which rows are intervals, jobs that run, parts of jobs, nodes; rows at the edge of a log."""

import numpy as np
import pytest

from bfreplay.datasets.ingest.occupancy import schedule
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.slurm import sacct_rows as sentences
from bfreplay.datasets.ingest.slurm import slurm_times
from bfreplay.datasets.ingest.slurm.sacct_rows import Edge
from bfreplay.errors import InputError
from tests.datasets.ingest.sacct_rows import GOOD, GOOD_JOB, NOON, utc
from tests.datasets.ingest.slurm_logs import jobs, read, sacct, skipped, warnings

# ---- rows without an interval ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("8.batch|8.batch|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||1|n1", "job step"),
        ("8|8|PENDING|2024-03-01T13:00:00|Unknown|0|120|1|n1", "pending"),
        ("8.0|8_3.0|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||1|n1", "job step"),
        ("8|8_[5-9%2]|PENDING|Unknown|Unknown|0|120|1|None assigned", "pending array"),
        ("8|8_[1,3,5,7,9,11,|PENDING|Unknown|Unknown|0|120|1|None assigned", "pending array"),
        ("8|8|PENDING|Unknown|Unknown|0|120|1|None assigned", "pending"),
        ("8|8|CANCELLED by 1000|None|2024-03-01T13:00:00|0|120|1|None assigned", "never started"),
        ("8|8|CANCELLED by 1000|2024-03-01T13:00:00|2024-03-01T13:00:00|0|120|1|None assigned", "never started"),
        ("8|8|FAILED|2024-03-01T13:00:00|2024-03-01T13:00:00|0|120|1|n1", "job of no length"),
        ("8|8|CONFIGURING|2024-03-01T13:00:00|Unknown|0|120|1|None assigned", "its nodes are not assigned yet"),
    ],
)
def test_rows_that_hold_no_nodes_by_their_nature_are_skipped_without_warning(tmp_path, row, reason):
    record = utc(tmp_path, GOOD, row)
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {reason: 1}
    assert warnings(record) == {}


@pytest.mark.parametrize(
    ("row", "reason", "sentence"),
    [
        ("8|8|COMPLETED|2024-03-01T12:00:00|Unknown|x||1|n1", "finished, but no end", sentences.NO_END),
        ("8|8|COMPLETED|2024-03-01T12:00:00|Unknown|0||1|n1", "finished, but no end", sentences.NO_END),
        ("8|8|COMPLETED|Unknown|2024-03-01T13:00:00|3600||1|n1", "nodes, but no start", sentences.NO_START),
        (
            "8|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||1|None assigned",
            "ran, but without nodes",
            sentences.NO_NODES,
        ),
        (
            "8|8|FAILED|2024-03-01T12:00:00|2024-03-01T11:00:00|||1|n1",
            "job that ends before it starts",
            sentences.BACKWARDS,
        ),
        ("x|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|||1|n1", "unreadable JobID", UNREADABLE),
        ("8.batch|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|||1|n1", "unreadable JobID", UNREADABLE),
        (
            "8|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|||x|n[1-",
            "neither a list nor a number of nodes",
            UNREADABLE,
        ),
    ],
)
def test_rows_that_should_hold_nodes_and_cannot_raise_a_warning(tmp_path, row, reason, sentence):
    record = utc(tmp_path, GOOD, row)
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {reason: 1}
    assert warnings(record) == {sentence: 1}


def test_junk_in_columns_that_do_not_matter_is_nobodys_business(tmp_path):
    record = utc(tmp_path, "7|?|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|x|?|2|n[1-2]")
    assert jobs(record) == [GOOD_JOB]
    assert warnings(record) == {}


def test_a_log_of_which_no_row_can_be_used_is_refused_with_the_largest_reasons(tmp_path):
    rows = ["8|8|PENDING|Unknown|Unknown|0|1|1|None assigned"] * 2 + ["9|9|CANCELLED|None|Unknown|0|1|1|None assigned"]
    with pytest.raises(InputError, match=r"pending: 2; never started: 1[\s\S]*line 2[\s\S]*sacct -a -X"):
        utc(tmp_path, *rows)


def test_a_header_without_rows_is_refused(tmp_path):
    with pytest.raises(InputError, match="no rows"):
        utc(tmp_path)


# ---- jobs that still run, runs, parts -------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "COMPLETING", "RESIZING"])
def test_a_job_that_runs_has_no_end_but_a_limit(tmp_path, state):
    record = utc(tmp_path, f"7|7|{state}|2024-03-01T12:00:00|Unknown|600|120|2|n[1-2]")
    assert jobs(record) == [(NOON, None, 2, ("n1", "n2"))]
    ((part, _),) = record.jobs.slices()
    assert part.limit_end_us[0] / 1e6 == NOON + 7200
    assert record.n_open == 1


@pytest.mark.parametrize(
    ("limit", "hours"), [("02:00:00", 2), ("1-02:00:00", 26), ("UNLIMITED", None), ("Partition_Limit", None)]
)
def test_a_time_limit_in_words_is_read_where_there_are_no_minutes(tmp_path, limit, hours):
    header = "JobID|State|Start|End|Timelimit|NodeList"
    record = utc(tmp_path, f"7|RUNNING|2024-03-01T12:00:00|Unknown|{limit}|n1", header=header)
    ((part, _),) = record.jobs.slices()
    assert part.limit_end_us[0] == (OPEN_END if hours is None else (NOON + 3600 * hours) * 1_000_000)


def test_running_jobs_tell_when_the_log_was_written(tmp_path):
    rows = [f"{i}|{i}|RUNNING|2024-03-01T12:00:00|Unknown|{600 + i}|120|1|n{i}" for i in range(5)]
    record = utc(tmp_path, *rows)
    assert record.last_stamp_us == (NOON + 602) * 1_000_000
    assert warnings(record) == {}


def test_one_wrong_running_time_does_not_move_the_end_of_the_log(tmp_path):
    rows = [f"{i}|{i}|RUNNING|2024-03-01T12:00:00|Unknown|600|120|1|n{i}" for i in range(5)]
    record = utc(tmp_path, *rows, "9|9|RUNNING|2024-03-01T12:00:00|Unknown|9999999|120|1|n9")
    assert record.last_stamp_us == (NOON + 600) * 1_000_000
    assert warnings(record) == {sentences.DUMP_TIMES: 1}


def test_a_suspended_job_does_not_tell_when_the_log_was_written(tmp_path):
    row = "{0}|{0}|{1}|2024-03-01T12:00:00|Unknown|{2}|120|1|n{0}"
    record = utc(
        tmp_path, row.format(1, "SUSPENDED", 60), row.format(2, "RUNNING", 7200), row.format(3, "SUSPENDED", 60)
    )
    assert record.last_stamp_us == (NOON + 7200) * 1_000_000
    assert warnings(record) == {}


def test_exports_of_several_days_may_have_been_written_at_several_times(tmp_path):
    row = "7|7|RUNNING|2024-03-01T12:00:00|Unknown|{}|9000|2|n[1-2]"
    record = read(tmp_path, sacct(row.format(600)), sacct(row.format(90_000)), timezone="UTC")
    assert record.last_stamp_us == (NOON + 90_000) * 1_000_000
    assert warnings(record) == {}
    done = "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-03T12:00:00|172800|9000|2|n[1-2]"
    record = read(tmp_path, sacct(row.format(600)), sacct(done), sacct(row.format(90_000)), timezone="UTC")
    assert jobs(record) == [(NOON, NOON + 172_800, 2, ("n1", "n2"))]


def test_runs_of_a_requeued_job_are_intervals_each(tmp_path):
    rows = [
        "7|7|REQUEUED|2024-03-01T10:00:00|2024-03-01T11:00:00|3600|120|1|n1",
        "7|7|PREEMPTED|2024-03-01T11:00:00|2024-03-01T12:00:00|3600|120|1|n2",
        GOOD,
    ]
    assert [job[3] for job in jobs(utc(tmp_path, *rows))] == [("n1",), ("n2",), ("n1", "n2")]


def test_steps_are_told_by_job_id_alone(tmp_path):
    header = "JobID|State|Start|End|NodeList"
    rows = [f"{job}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|n1" for job in ("7", "7.0", "7_1.batch", "7x")]
    assert skipped(utc(tmp_path, *rows, header=header)) == {"job step": 2, "unreadable JobID": 1}


def test_caches_that_are_full_change_nothing(tmp_path, monkeypatch):
    rows = [GOOD.replace("7|7", f"{i}|{i}").replace("n[1-2]", f"n[{i}-{i + 1}]") for i in range(1, 9)]
    expected = jobs(utc(tmp_path, *rows))
    monkeypatch.setattr(schedule, "MOST_REMEMBERED", 20)
    monkeypatch.setattr(slurm_times, "_MOST_CACHED", 1)
    assert jobs(utc(tmp_path, *rows)) == expected


def test_a_row_that_two_exports_share_counts_once(tmp_path):
    record = read(tmp_path, sacct(GOOD), sacct(GOOD, GOOD.replace("7|7", "8|8")), timezone="UTC")
    assert jobs(record) == [GOOD_JOB, GOOD_JOB]
    assert record.report.rows_read == 3


RESTARTS = "JobIDRaw|State|Start|End|Restarts|NodeList"


def test_restarts_without_earlier_runs_say_that_they_are_missing(tmp_path):
    rows = [f"{i}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|{i % 2}|n{i}" for i in range(4)]
    record = utc(tmp_path, *rows, header=RESTARTS)
    assert warnings(record) == {sentences.RUNS_MISSING: 2}


def test_restarts_with_their_earlier_runs_are_no_warning(tmp_path):
    rows = [
        "7|REQUEUED|2024-03-01T12:00:00|2024-03-01T13:00:00|0|n1",
        "7|COMPLETED|2024-03-01T14:00:00|2024-03-01T15:00:00|1|n1",
    ]
    assert warnings(utc(tmp_path, *rows, header=RESTARTS)) == {}
    rows[0] = "7|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|2|n1"
    assert warnings(utc(tmp_path, *rows, header=RESTARTS)) == {}


def test_parts_of_a_heterogeneous_job_and_tasks_of_an_array_are_all_kept(tmp_path):
    header = "JobID|State|Start|End|NodeList"
    rows = [f"{job}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|n1" for job in ("7+0", "7+1", "7_3", "7_4", "7")]
    assert len(jobs(utc(tmp_path, *rows, header=header))) == 5
    header = "JobIDRaw|" + header
    rows = ["7|7+0" + rows[0][3:], "7|7+1" + rows[1][3:]]
    assert len(jobs(utc(tmp_path, *rows, header=header))) == 2


def test_a_state_is_its_first_word_and_a_cut_one_is_completed(tmp_path):
    rows = [
        "1|1|CANCELLED by 7|2024-03-01T12:00:00|2024-03-01T13:00:00|3600|1|1|n1",
        "2|2|OUT_OF_ME+|2024-03-01T12:00:00|2024-03-01T13:00:00|3600|1|1|n2",
        "3|3|RUNNING+|2024-03-01T12:00:00|Unknown|3600|1|1|n3",
    ]
    record = utc(tmp_path, *rows)
    assert len(jobs(record)) == 3
    assert warnings(record) == {}


def test_a_state_that_nobody_knows_holds_its_nodes_with_a_warning(tmp_path):
    record = utc(tmp_path, GOOD.replace("COMPLETED", "TELEPORTED"))
    assert jobs(record) == [GOOD_JOB]
    assert warnings(record) == {sentences.UNKNOWN_STATE: 1}


# ---- nodes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", ["n[083,104", "c5,,c6", "n[1-", "two nodes", "n[9-1]"])
def test_a_cut_node_list_leaves_the_number_of_nodes(tmp_path, nodes):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||2|{nodes}")
    assert (NOON, NOON + 3600, 2, ()) in jobs(record)
    assert warnings(record) == {sentences.LIST_UNREADABLE: 1}
    assert record.nodes == ("n1", "n2")


def test_a_list_of_far_more_nodes_than_the_job_held_adds_no_nodes(tmp_path):
    record = utc(tmp_path, GOOD, "8|8|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||2|n[1-8000]")
    assert record.nodes == ("n1", "n2")
    assert warnings(record) == {sentences.LIST_UNREADABLE: 1}


def test_without_a_column_of_nodes_jobs_hold_numbers_of_them(tmp_path):
    record = utc(
        tmp_path,
        "7|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2",
        header="JobID|State|Start|End|NNodes",
        n_nodes=5,
    )
    assert jobs(record) == [(NOON, NOON + 3600, 2, ())]
    assert record.machine_size == 5
    assert warnings(record) == {sentences.NO_LISTS: 1}


def test_a_number_of_nodes_that_contradicts_the_list_has_warning(tmp_path):
    record = utc(tmp_path, GOOD.replace("|2|n", "|3|n"))
    assert jobs(record) == [(NOON, NOON + 3600, 3, ("n1", "n2"))]
    assert len(warnings(record)) == 1


def test_none_assigned_is_no_node(tmp_path):
    record = utc(tmp_path, GOOD, "8|8|CANCELLED|2024-03-01T13:00:00|2024-03-01T13:00:00|0|120|1|None assigned")
    assert record.nodes == ("n1", "n2")


def test_jobs_of_several_clusters_are_warned_of_and_kept_apart(tmp_path):
    header = "JobID|Cluster|State|Start|End|NodeList"
    rows = [f"7|{name}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|{name}1" for name in ("hill", "vale")]
    record = utc(tmp_path, *rows, header=header)
    assert len(jobs(record)) == 2
    assert record.cluster is None
    assert warnings(record) == {sentences.CLUSTERS: 1}


TIMES_US = [[5, 3, 3, 9, 9], [9, 3], [4, 4, 8], [2, 10], [3, 9]]


@pytest.mark.parametrize("direction", [-1, 1])
def test_rows_added_at_once_count_as_rows_added_one_by_one(direction):
    one_by_one, at_once = Edge(direction), Edge(direction)
    for part, times_us in enumerate(TIMES_US):
        for position, time_us in enumerate(times_us):
            one_by_one.add(time_us, (part, position))
        at_once.add_all(np.array(times_us), lambda position, part=part: (part, position))
        assert (at_once.time_text, at_once.count) == (one_by_one.time_text, one_by_one.count)
        assert at_once._others == one_by_one._others
