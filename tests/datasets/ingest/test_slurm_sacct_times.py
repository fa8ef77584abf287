"""``sacct`` as text: times, zones, the hour that is shown twice."""

import pytest

from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.slurm import sacct_rows as sentences
from bfreplay.datasets.ingest.slurm.slurm_times import FOLD_WARNING, RELATIVE, ZONE_WARNING
from bfreplay.errors import InputError
from tests.datasets.ingest.sacct_rows import GOOD, GOOD_JOB, NOON, utc
from tests.datasets.ingest.slurm_logs import at, jobs, read, rows_balance, sacct, skipped, warnings

# ---- times ----------------------------------------------------------------------------------------------------------


def test_local_times_without_a_zone_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"--tz[\s\S]*TZ=UTC sacct"):
        read(tmp_path, sacct(GOOD))


def test_epoch_seconds_need_no_zone(tmp_path):
    record = read(tmp_path, sacct(f"7|7|COMPLETED|{NOON}|{NOON + 3600}|3600|120|2|n[1-2]"))
    assert jobs(record) == [GOOD_JOB]
    assert record.timezone == "UTC"
    assert record.report.facts["time zone"] == "epoch seconds: no zone needed"


@pytest.mark.parametrize("start", ["2024-03-01T13:00:00+0100", "2024-03-01T08:30:00-03:30", "2024-03-01 12:00:00Z"])
def test_times_with_their_zone_need_none(tmp_path, start):
    record = read(tmp_path, sacct(f"7|7|COMPLETED|{start}|2024-03-01T13:00:00Z|3600|120|2|n[1-2]"))
    assert jobs(record) == [GOOD_JOB]


@pytest.mark.parametrize("start", ["Mon 12:00", "Ystday 12:00", "12:00:00", "1 Mar 12:00"])
def test_relative_times_are_refused_with_the_reason(tmp_path, start):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|{start}|2024-03-01T13:00:00|3600|1|1|n1")
    assert skipped(record) == {RELATIVE: 1}
    with pytest.raises(InputError, match="SLURM_TIME_FORMAT"):
        utc(tmp_path, f"8|8|COMPLETED|{start}|2024-03-01T13:00:00|3600|1|1|n1")


@pytest.mark.parametrize(
    "start", ["2024-02-30T12:00:00", "2024-03-01T25:00:00", "yesterday", "12_00", "170000000٠", "nan", "1e9", "2024"]
)
def test_a_start_that_is_no_time_makes_the_row_unreadable(tmp_path, start):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|{start}|2024-03-01T13:00:00|3600|1|1|n1")
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {"unreadable Start": 1}
    assert warnings(record) == {UNREADABLE: 1}


def test_the_running_time_tells_which_of_two_local_times_was_meant(tmp_path):
    rows = [
        "1|1|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|3600|1|1|n1",  # 02:30 summer time
        "2|2|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|7200|1|1|n2",  # 02:30 winter time
    ]
    record = read(tmp_path, sacct(*rows), timezone="Europe/Paris")
    start = at("2024-10-26 23:30:00")
    assert jobs(record) == [(start, start + 3600, 1, ("n1",)), (start, start + 7200, 1, ("n2",))]
    assert record.report.facts["time zone"] == (
        "given as Europe/Paris; 2 rows around the end of summer time resolved by their running time"
    )
    assert warnings(record) == {}


BOTH_TWICE = "1|1|COMPLETED|2024-10-27T02:10:00|2024-10-27T02:30:00|1200|1|1|n1"


def test_what_nothing_settles_is_refused_naming_the_line(tmp_path):
    with pytest.raises(InputError, match=r"line 2[\s\S]*--dst-fold earlier[\s\S]*slurm --how") as error:
        read(tmp_path, sacct(BOTH_TWICE), timezone="Europe/Paris")
    assert "--tz Europe/Paris is wrong" in error.value.fix
    assert "before it" not in error.value.problem
    settled = "2|2|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|3600|1|1|n1"
    with pytest.raises(InputError, match=r"; 1 before it were resolved by their running time"):
        read(tmp_path, sacct(settled, BOTH_TWICE), timezone="Europe/Paris")


def test_a_row_in_a_message_is_cut_and_the_long_command_is_not_in_it(tmp_path):
    with pytest.raises(InputError) as error:
        read(tmp_path, sacct(BOTH_TWICE + "," * 200), timezone="Europe/Paris")
    assert len(error.value.value) == 100
    assert "TZ=UTC" not in str(error.value)


def test_an_end_before_the_start_is_told_in_the_repeated_hour_too(tmp_path):
    row = "1|1|COMPLETED|2024-10-27T04:10:00|2024-10-27T02:30:00|1200|1|1|n1"
    record = read(tmp_path, sacct(row, GOOD), timezone="Europe/Paris")
    assert skipped(record) == {"job that ends before it starts": 1}
    assert warnings(record) == {sentences.BACKWARDS: 1}


@pytest.mark.parametrize(("fold", "start"), [("earlier", "2024-10-27 00:10:00"), ("later", "2024-10-27 01:10:00")])
def test_a_running_job_has_only_dst_fold_to_tell_its_start(tmp_path, fold, start):
    row = "1|1|RUNNING|2024-10-27T02:10:00|Unknown|1200|1|1|n1"
    with pytest.raises(InputError, match="line 2"):
        read(tmp_path, sacct(row), timezone="Europe/Paris")
    assert jobs(read(tmp_path, sacct(row), timezone="Europe/Paris", dst_fold=fold)) == [(at(start), None, 1, ("n1",))]


@pytest.mark.parametrize(("fold", "start"), [("earlier", "2024-10-27 00:10:00"), ("later", "2024-10-27 01:10:00")])
def test_dst_fold_chooses_and_is_a_warning(tmp_path, fold, start):
    record = read(tmp_path, sacct(BOTH_TWICE), timezone="Europe/Paris", dst_fold=fold)
    assert jobs(record) == [(at(start), at(start) + 1200, 1, ("n1",))]
    assert warnings(record) == {FOLD_WARNING: 1}


def test_a_local_time_that_does_not_exist_says_that_the_zone_is_wrong(tmp_path):
    row = "1|1|COMPLETED|2024-03-31T02:10:00|2024-03-31T04:30:00|1200|1|1|n1"
    record = read(tmp_path, sacct(row, GOOD), timezone="Europe/Paris")
    assert len(jobs(record)) == 1
    assert warnings(record) == {ZONE_WARNING: 1}
    assert rows_balance(record)


def test_running_times_that_are_off_by_whole_hours_warn_of_the_zone(tmp_path):
    row = "1|1|COMPLETED|2024-03-31T00:30:00|2024-03-31T04:30:00|10800|1|1|n1"  # clocks went forward: it was Paris
    assert warnings(utc(tmp_path, row)) == {sentences.WHOLE_HOURS: 1}
    assert warnings(read(tmp_path, sacct(row), timezone="Europe/Paris")) == {}


@pytest.mark.parametrize("elapsed", [7199, 7200, 7201, 0, 1])
def test_whole_hours_are_whole_to_the_second(tmp_path, elapsed):
    row = f"1|1|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|{elapsed}|1|1|n1"
    assert warnings(utc(tmp_path, row)) == {sentences.WHOLE_HOURS: 1}


@pytest.mark.parametrize("elapsed", [3599, 3600, 3601])
def test_a_second_is_no_difference(tmp_path, elapsed):
    assert warnings(utc(tmp_path, GOOD.replace("|3600|", f"|{elapsed}|"))) == {}


def test_a_running_time_that_fits_neither_local_time_settles_nothing(tmp_path):
    row = "1|1|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|5000|1|1|n1"
    with pytest.raises(InputError, match="--dst-fold"):
        read(tmp_path, sacct(row), timezone="Europe/Paris")
    record = read(tmp_path, sacct(row), timezone="Europe/Paris", dst_fold="later")
    assert warnings(record) == {FOLD_WARNING: 1, sentences.TOO_SHORT: 1}


def test_elapsed_is_read_where_there_is_no_elapsed_raw(tmp_path):
    header = "JobID|State|Start|End|Elapsed|NodeList"
    row = "1|COMPLETED|2024-03-01T12:00:00|2024-03-03T13:00:01|{}|n1"
    assert warnings(utc(tmp_path, row.format("2-01:00:01"), header=header)) == {}
    assert warnings(utc(tmp_path, row.format("2-01:10:01"), header=header)) == {sentences.TOO_LONG: 1}
    assert warnings(utc(tmp_path, row.format("2-00:50:01"), header=header)) == {sentences.TOO_SHORT: 1}


def test_the_time_suspended_explains_a_short_running_time(tmp_path):
    header = "JobID|State|Start|End|Elapsed|Suspended|NodeList"
    row = "1|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|00:50:00|00:10:00|n1"
    record = utc(tmp_path, row, header=header)
    assert warnings(record) == {}
    assert record.report.facts["suspended jobs"] == 1


# ---- windows --------------------------------------------------------------------------------------------------------


WINDOW = "JobID|State|Submit|Start|End|NodeList"


def test_starts_cut_at_the_edge_of_a_window_raise_a_warning(tmp_path):
    rows = [
        f"{i}|COMPLETED|2024-03-01T0{i % 10}:{i:02}:00|2024-03-01T12:00:00|2024-03-01T13:{i:02}:00|n{i}"
        for i in range(12)
    ]
    assert warnings(utc(tmp_path, *rows, header=WINDOW)) == {sentences.CUT_STARTS: 12}


@pytest.mark.parametrize(("n", "found"), [(9, {}), (10, {sentences.CUT_STARTS: 10})])
def test_ten_starts_at_the_edge_are_many_where_nothing_says_when_jobs_were_submitted(tmp_path, n, found):
    header = WINDOW.replace("Submit|", "")
    rows = [f"{i}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:{i:02}:00|n{i}" for i in range(n)]
    rows += [f"{100 + i}|COMPLETED|2024-03-01T12:30:00|2024-03-01T13:59:00|n{i}" for i in range(9)]
    assert warnings(utc(tmp_path, *rows, header=header)) == found


def test_an_array_that_is_the_first_to_start_is_no_cut(tmp_path):
    rows = [f"7_{i}|COMPLETED|2024-03-01T09:00:00|2024-03-01T12:00:00|2024-03-01T13:{i:02}:00|n{i}" for i in range(12)]
    assert warnings(utc(tmp_path, *rows, header=WINDOW)) == {}


def test_ends_cut_at_the_edge_of_a_window_raise_a_warning(tmp_path):
    rows = [f"{i}|COMPLETED|2024-03-01T09:00:00|2024-03-01T12:{i:02}:00|2024-03-02T00:00:00|n{i}" for i in range(12)]
    assert warnings(utc(tmp_path, *rows, header=WINDOW)) == {sentences.CUT_ENDS: 12}


def test_a_running_job_with_an_end_is_cut(tmp_path):
    record = utc(tmp_path, "1|RUNNING|2024-03-01T09:00:00|2024-03-01T12:00:00|2024-03-02T00:00:00|n1", header=WINDOW)
    assert warnings(record) == {sentences.RUNNING_WITH_END: 1}
