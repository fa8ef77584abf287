"""The traps of ``sacct`` as text."""

import bz2

import pytest

from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.spool import OPEN_END
from bfreplay.datasets.scheduler_logs.log_file import LogFile
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.slurm import clock
from bfreplay.datasets.scheduler_logs.slurm import jobs as sentences
from bfreplay.datasets.scheduler_logs.slurm.clock import FOLD_DOUBT, RELATIVE, ZONE_DOUBT
from bfreplay.datasets.scheduler_logs.slurm.fields import UNREADABLE
from bfreplay.datasets.scheduler_logs.slurm.psv import CUT_END, TOO_FEW_CELLS, TOO_MANY_CELLS
from bfreplay.datasets.scheduler_logs.slurm.reader import SlurmReader
from bfreplay.datasets.scheduler_logs.slurm.sacct import COMMAND
from bfreplay.errors import InputError
from tests.datasets.scheduler_logs.slurm_logs import (
    HEADER,
    at,
    doubts,
    dropped,
    files_of,
    jobs,
    read,
    rows_balance,
    sacct,
)

NOON = at("2024-03-01 12:00:00")
GOOD = "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600|120|2|n[1-2]"
GOOD_JOB = (NOON, NOON + 3600, 2, ("n1", "n2"))


def utc(folder, *rows, header=HEADER, **options):
    record = read(folder, sacct(*rows, header=header), timezone="UTC", **options)
    assert rows_balance(record)
    return record


def test_a_job_holds_its_nodes_from_start_to_end(tmp_path):
    record = utc(tmp_path, GOOD)
    assert jobs(record) == [GOOD_JOB]
    assert doubts(record) == {}
    assert record.source_format == "slurm sacct"
    assert record.lint.facts["time zone"] == "given as UTC"


def test_columns_are_known_by_name_in_any_order_and_case(tmp_path):
    record = utc(
        tmp_path,
        "n[1-2]|2024-03-01T13:00:00|x|completed|2024-03-01T12:00:00|7",
        header="NODELIST|end|User|STATE|Start|jobid",
    )
    assert jobs(record) == [GOOD_JOB]


@pytest.mark.parametrize("delimiter", [";", "\t", "^"])
def test_other_separators_are_found_in_the_header(tmp_path, delimiter):
    assert jobs(utc(tmp_path, GOOD.replace("|", delimiter), header=HEADER.replace("|", delimiter))) == [GOOD_JOB]


def test_a_separator_of_several_characters_can_be_given(tmp_path):
    record = utc(tmp_path, GOOD.replace("|", "::;"), header=HEADER.replace("|", "::;"), delimiter="::;")
    assert jobs(record) == [GOOD_JOB]


def test_commas_inside_a_node_list_do_not_shift_columns(tmp_path):
    header = "JobID,State,Start,End,NNodes,NodeList,ElapsedRaw"
    rows = ("7,COMPLETED,2024-03-01T12:00:00,2024-03-01T13:00:00,3,n[1,3],m5,3600",)
    assert jobs(utc(tmp_path, *rows, header=header)) == [(NOON, NOON + 3600, 3, ("n1", "n3", "m5"))]


def test_quoted_cells_keep_their_commas(tmp_path):
    header = "JobID,State,Start,End,JobName,NNodes,NodeList"
    rows = ('7,COMPLETED,2024-03-01T12:00:00,2024-03-01T13:00:00,"a,b",2,"n[1,3]"',)
    assert jobs(utc(tmp_path, *rows, header=header)) == [(NOON, NOON + 3600, 2, ("n1", "n3"))]


def test_the_separator_at_the_end_of_lines_of_sacct_p_is_no_column(tmp_path):
    record = utc(tmp_path, GOOD + "|", header=HEADER + "|")
    assert jobs(record) == [GOOD_JOB]
    assert doubts(record) == {}


def test_a_line_of_sacct_p_without_its_last_separator_was_cut(tmp_path):
    record = utc(tmp_path, GOOD + "|", GOOD.replace("7|7", "8|8"), header=HEADER + "|")
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {TOO_FEW_CELLS: 1}
    assert UNREADABLE in doubts(record)


def test_a_last_line_without_its_end_is_doubted(tmp_path):
    record = read(tmp_path, sacct(GOOD)[:-1], timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert doubts(record) == {CUT_END: 1}


def test_a_log_without_header_needs_the_names_of_its_columns(tmp_path):
    with pytest.raises(InputError, match="--columns"):
        read(tmp_path, GOOD + "\n", timezone="UTC")
    columns = tuple(HEADER.split("|"))
    assert jobs(read(tmp_path, GOOD + "\n", timezone="UTC", columns=columns)) == [GOOD_JOB]
    assert jobs(read(tmp_path, GOOD + "|\n", timezone="UTC", columns=columns)) == [GOOD_JOB]


def test_named_columns_that_are_not_enough_are_refused(tmp_path):
    with pytest.raises(InputError, match="not enough to tell which job held which nodes when: State, End are missing"):
        read(tmp_path, "7|2024-03-01T12:00:00|n1\n", timezone="UTC", columns=("JobID", "Start", "NodeList"))


OWN = {
    "JobIDRaw": "7", "JobID": "7", "Cluster": "hill", "Partition": "batch", "State": "COMPLETED",
    "Submit": "2024-03-01T11:00:00", "Eligible": "2024-03-01T11:00:00", "Start": "2024-03-01T12:00:00",
    "End": "2024-03-01T13:00:00", "ElapsedRaw": "3600", "Suspended": "00:00:00", "TimelimitRaw": "120", "NNodes": "2",
    "NodeList": "n[1-2]", "Reservation": "", "Restarts": "0",
}  # fmt: skip


@pytest.mark.parametrize("absent", [(), ("Suspended",), ("JobID",), ("JobID", "Suspended")])
@pytest.mark.parametrize("ending", ["", "|"])
def test_rows_of_our_own_command_are_known_by_their_shape(tmp_path, absent, ending):
    assert COMMAND.split(" -o ")[1].split()[0].split(",") == list(OWN)
    row = "|".join(value for name, value in OWN.items() if name not in absent) + ending
    pending = row.replace("|COMPLETED|", "|PENDING|").replace("2024-03-01T12:00:00|2024-03-01T13:00:00", "Unknown|None")
    text = f"{row}\n{pending}\n"
    assert f"{16 - len(absent)} columns" in SlurmReader().recognise(files_of(tmp_path, text)[0])
    record = read(tmp_path, text, timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {"pending": 1}
    assert record.cluster == "hill"
    with pytest.raises(InputError, match="--tz"):
        read(tmp_path, text)


def test_other_rows_of_as_many_cells_are_not_taken_for_ours(tmp_path):
    row = "|".join(OWN.values())
    for wrong in (
        row.replace("COMPLETED", "FINE"),
        row.replace("00:00:00|120", "120|00:00:00"),
        row.replace("7|", "x|"),
    ):
        assert SlurmReader().recognise(files_of(tmp_path, wrong + "\n")[0]) is None


def test_columns_that_are_more_or_fewer_than_the_cells_are_refused_with_both_numbers(tmp_path):
    with pytest.raises(InputError, match="9 cells, 10 names") as error:
        read(tmp_path, GOOD + "\n", timezone="UTC", columns=(*HEADER.split("|"), "Restarts"))
    assert error.value.column == "--columns"
    assert "give 9 names" in error.value.fix
    with pytest.raises(InputError, match="9 cells, 8 names"):
        read(tmp_path, GOOD.replace("|", ";") + "\n", timezone="UTC", columns=tuple(HEADER.split("|")[:-1]))
    ours = "|".join(value for name, value in OWN.items() if name != "JobID")
    with pytest.raises(InputError, match="15 cells, 16 names") as error:
        read(tmp_path, ours + "\n", timezone="UTC", columns=tuple(OWN))
    assert "leave --columns out: by their shape these rows are JobIDRaw,Cluster,Partition" in error.value.fix


XDMOD = (
    "7|7|hill|batch|normal|acc|grp|100|usr|1000|2024-03-01T11:00:00|2024-03-01T11:00:00|2024-03-01T12:00:00|"
    "2024-03-01T13:00:00|01:00:00|0:0|COMPLETED|2|8|8|4Gn|cpu=8|cpu=8|02:00:00|n[1-2]|name"
)


def test_the_layout_of_xdmod_is_known_by_its_shape_and_is_utc(tmp_path):
    record = read(tmp_path, XDMOD + "\n")
    assert jobs(record) == [GOOD_JOB]
    assert record.cluster == "hill"
    assert record.timezone == "UTC"
    assert "XDMoD" in record.lint.facts["time zone"]


def test_a_zone_that_is_given_counts_for_the_layout_of_xdmod_too(tmp_path):
    record = read(tmp_path, XDMOD + "\n", timezone="Europe/Paris")
    assert jobs(record) == [(NOON - 3600, NOON, 2, ("n1", "n2"))]
    assert record.timezone == "Europe/Paris"


def test_the_layout_of_xdmod_is_known_by_most_of_the_first_rows(tmp_path):
    step, junk = XDMOD.replace("7|7", "7.0|7.0"), XDMOD.replace("7|7", "x|x")
    record = read(tmp_path, "\n".join([XDMOD, step, junk]) + "\n")
    assert dropped(record) == {"job step": 1, "unreadable JobID": 1}
    with pytest.raises(InputError, match="no header line"):
        read(tmp_path, "\n".join([XDMOD, junk, junk]) + "\n")


def test_separators_in_the_last_column_of_free_text_belong_to_it(tmp_path):
    record = read(tmp_path, XDMOD + "|x|y\n" + XDMOD.replace("7|7", "8|8") + "\n")
    assert [job[3] for job in jobs(record)] == [("n1", "n2"), ("n1", "n2")]
    assert doubts(record) == {}


def test_separators_in_free_text_before_other_columns_shift_nothing(tmp_path):
    header = "JobID|JobName|State|Start|End|NodeList"
    rows = ("7|a|b|c|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|n[1-2]",)
    assert jobs(utc(tmp_path, *rows, header=header)) == [GOOD_JOB]


def test_a_separator_too_many_that_no_free_text_explains_makes_the_row_unreadable(tmp_path):
    record = utc(tmp_path, GOOD, GOOD.replace("7|7", "8|8|x"))
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {TOO_MANY_CELLS: 1}
    assert "do not export those" in TOO_MANY_CELLS


def test_between_two_columns_of_free_text_nothing_is_guessed(tmp_path):
    header = "JobID|JobName|NodeList|Comment|State|Start|End|NNodes"
    rows = ("7|a|b|n[1-2]|c|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2",)
    record = utc(tmp_path, *rows, header=header)
    assert jobs(record) == [(NOON, NOON + 3600, 2, ())]
    assert doubts(record) == {sentences.LIST_UNREADABLE: 1}


def test_a_comment_with_a_line_break_makes_two_unreadable_lines(tmp_path):
    record = utc(tmp_path, GOOD, GOOD[:20], GOOD[20:])
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {TOO_FEW_CELLS: 2}


def test_exports_put_one_after_the_other_may_have_other_columns(tmp_path):
    other = "NodeList|JobIDRaw|State|Start|End\nm1|8|FAILED|2024-03-01T12:00:00|2024-03-01T12:30:00\n"
    record = read(tmp_path, sacct(GOOD) + other, timezone="UTC")
    assert sorted(job[3] for job in jobs(record)) == [("m1",), ("n1", "n2")]
    assert record.lint.rows_read == 2


def test_what_stands_before_the_header_is_counted(tmp_path):
    record = read(tmp_path, "sacct: warning: something\n" + sacct(GOOD), timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {"a line before the header": 1}


def test_blank_lines_and_windows_line_ends_are_nothing(tmp_path):
    assert jobs(read(tmp_path, sacct(GOOD, "").replace("\n", "\r\n"), timezone="UTC")) == [GOOD_JOB]


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="there twice"):
        read(tmp_path, sacct(GOOD + "|x", header=HEADER + "|start"), timezone="UTC")


def test_the_table_for_people_is_refused_with_the_command(tmp_path):
    text = "JobID           State    Start      End NodeList\n------- --------- -------- -------- --------\n"
    with pytest.raises(InputError, match="sacct -a -X -D -P"):
        read(tmp_path, text)


def test_columns_of_another_table_are_named(tmp_path):
    with pytest.raises(InputError, match=r"job_id, start_time[\s\S]*bfreplay ingest table"):
        read(tmp_path, "job_id,start_time,end_time,nodes_req\n1,2019-01-01 08:00:00,2019-01-01 09:00:00,1\n")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("JobIDRaw|State|Start|NNodes|NodeList", "the column End is missing; End can be told from ElapsedRaw"),
        ("JobIDRaw|State|Start|End|Partition", "the column NodeList (or NNodes) is missing"),
        ("State|Start|End|NodeList", "the column JobIDRaw (or JobID) is missing"),
        ("JobID|Partition|NNodes|Priority", "the columns State, Start, End are missing"),
    ],
)
def test_a_column_that_is_missing_is_named(tmp_path, header, problem):
    with pytest.raises(InputError) as error:
        read(tmp_path, sacct("x", header=header), timezone="UTC")
    assert error.value.problem.startswith(problem)
    assert "slurm --how" in error.value.fix


NO_END = "JobIDRaw|State|Start|ElapsedRaw|Suspended|TimelimitRaw|NNodes|NodeList"


def test_without_the_column_end_a_job_ends_after_its_running_time_and_the_time_suspended(tmp_path):
    record = utc(
        tmp_path,
        "1|TIMEOUT|2024-03-01T12:00:00|3000|00:10:00|120|1|n1",
        "2|RUNNING|2024-03-01T12:00:00|7200|00:00:00|180|1|n2",
        "3|PENDING|2024-03-02T12:00:00|0|00:00:00|180|1|n2",
        "4|CANCELLED|2024-03-01T12:00:00|0|00:00:00|180|1|None assigned",
        "5|FAILED|2024-03-01T12:00:00|0|00:00:00|180|1|n1",
        "6|REQUEUE_HOLD|2024-03-01T13:00:00|60||180|1|n1",
        header=NO_END,
    )
    assert jobs(record) == [
        (NOON, NOON + 3600, 1, ("n1",)),
        (NOON, None, 1, ("n2",)),
        (NOON + 3600, NOON + 3660, 1, ("n1",)),
    ]
    assert dropped(record) == {"pending": 1, "never started": 1, "job of no length": 1}
    assert doubts(record) == {}
    assert record.lint.facts["ends"].endswith(": 3")
    assert "jobidraw" in SlurmReader().recognise(files_of(tmp_path, sacct(header=NO_END))[0])


def test_without_end_and_running_time_a_finished_job_is_left_out(tmp_path):
    record = utc(
        tmp_path,
        "1|FAILED|2024-03-01T12:00:00|01:00:00|n1",
        "2|FAILED|2024-03-01T12:00:00|x|n1",
        header="JobID|State|Start|Elapsed|NodeList",
    )
    assert jobs(record) == [(NOON, NOON + 3600, 1, ("n1",))]
    assert doubts(record) == {sentences.NO_END: 1}


def test_a_finished_job_whose_end_is_not_known_ends_after_its_running_time_with_a_doubt(tmp_path):
    record = utc(tmp_path, "7|7|COMPLETED|2024-03-01T12:00:00|Unknown|3600|120|2|n[1-2]")
    assert jobs(record) == [GOOD_JOB]
    assert doubts(record) == {sentences.END_TOLD: 1}
    assert "ends" not in record.lint.facts


@pytest.mark.parametrize(
    ("n", "more", "found"),
    [
        (200, [], 1),
        (199, [], 0),
        (300, ["999|999|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600|120|1|n1"], 0),
        (300, ["999|999|CANCELLED|Unknown|Unknown|0|120|1|None assigned"], 0),
    ],
)
def test_many_rows_that_are_all_completed_ask_whether_others_were_filtered_out(tmp_path, n, more, found):
    rows = [
        f"{i}|{i}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:{i // 60:02}:{i % 60:02}|{3600 + i}|120|1|n1"
        for i in range(n)
    ]
    submitted = [row + "|2024-03-01T12:00:00" for row in [*rows, *more]]
    record = utc(tmp_path, *submitted, header=HEADER + "|Submit")
    assert doubts(record) == ({sentences.ALL_COMPLETED: 1} if found else {})


# ---- times ----------------------------------------------------------------------------------------------------------


def test_local_times_without_a_zone_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"--tz[\s\S]*TZ=UTC sacct"):
        read(tmp_path, sacct(GOOD))


def test_epoch_seconds_need_no_zone(tmp_path):
    record = read(tmp_path, sacct(f"7|7|COMPLETED|{NOON}|{NOON + 3600}|3600|120|2|n[1-2]"))
    assert jobs(record) == [GOOD_JOB]
    assert record.timezone == "UTC"
    assert record.lint.facts["time zone"] == "epoch seconds: no zone needed"


@pytest.mark.parametrize("start", ["2024-03-01T13:00:00+0100", "2024-03-01T08:30:00-03:30", "2024-03-01 12:00:00Z"])
def test_times_with_their_zone_need_none(tmp_path, start):
    record = read(tmp_path, sacct(f"7|7|COMPLETED|{start}|2024-03-01T13:00:00Z|3600|120|2|n[1-2]"))
    assert jobs(record) == [GOOD_JOB]


@pytest.mark.parametrize("start", ["Mon 12:00", "Ystday 12:00", "12:00:00", "1 Mar 12:00"])
def test_relative_times_are_refused_with_the_reason(tmp_path, start):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|{start}|2024-03-01T13:00:00|3600|1|1|n1")
    assert dropped(record) == {RELATIVE: 1}
    with pytest.raises(InputError, match="SLURM_TIME_FORMAT"):
        utc(tmp_path, f"8|8|COMPLETED|{start}|2024-03-01T13:00:00|3600|1|1|n1")


@pytest.mark.parametrize(
    "start", ["2024-02-30T12:00:00", "2024-03-01T25:00:00", "yesterday", "12_00", "170000000٠", "nan", "1e9", "2024"]
)
def test_a_start_that_is_no_time_makes_the_row_unreadable(tmp_path, start):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|{start}|2024-03-01T13:00:00|3600|1|1|n1")
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {"unreadable Start": 1}
    assert doubts(record) == {UNREADABLE: 1}


def test_the_running_time_tells_which_of_two_local_times_was_meant(tmp_path):
    rows = [
        "1|1|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|3600|1|1|n1",  # 02:30 summer time
        "2|2|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|7200|1|1|n2",  # 02:30 winter time
    ]
    record = read(tmp_path, sacct(*rows), timezone="Europe/Paris")
    start = at("2024-10-26 23:30:00")
    assert jobs(record) == [(start, start + 3600, 1, ("n1",)), (start, start + 7200, 1, ("n2",))]
    assert record.lint.facts["time zone"] == (
        "given as Europe/Paris; 2 rows around the end of summer time settled by their running time"
    )
    assert doubts(record) == {}


BOTH_TWICE = "1|1|COMPLETED|2024-10-27T02:10:00|2024-10-27T02:30:00|1200|1|1|n1"


def test_what_nothing_settles_is_refused_naming_the_line(tmp_path):
    with pytest.raises(InputError, match=r"line 2[\s\S]*--dst-fold earlier[\s\S]*slurm --how") as error:
        read(tmp_path, sacct(BOTH_TWICE), timezone="Europe/Paris")
    assert "--tz Europe/Paris is wrong" in error.value.fix
    assert "before it" not in error.value.problem
    settled = "2|2|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|3600|1|1|n1"
    with pytest.raises(InputError, match=r"; 1 before it were settled by their running time"):
        read(tmp_path, sacct(settled, BOTH_TWICE), timezone="Europe/Paris")


def test_a_row_in_a_message_is_cut_and_the_long_command_is_not_in_it(tmp_path):
    with pytest.raises(InputError) as error:
        read(tmp_path, sacct(BOTH_TWICE + "," * 200), timezone="Europe/Paris")
    assert len(error.value.value) == 100
    assert "TZ=UTC" not in str(error.value)


def test_an_end_before_the_start_is_told_in_the_repeated_hour_too(tmp_path):
    row = "1|1|COMPLETED|2024-10-27T04:10:00|2024-10-27T02:30:00|1200|1|1|n1"
    record = read(tmp_path, sacct(row, GOOD), timezone="Europe/Paris")
    assert dropped(record) == {"job that ends before it starts": 1}
    assert doubts(record) == {sentences.BACKWARDS: 1}


@pytest.mark.parametrize(("fold", "start"), [("earlier", "2024-10-27 00:10:00"), ("later", "2024-10-27 01:10:00")])
def test_a_running_job_has_only_dst_fold_to_tell_its_start(tmp_path, fold, start):
    row = "1|1|RUNNING|2024-10-27T02:10:00|Unknown|1200|1|1|n1"
    with pytest.raises(InputError, match="line 2"):
        read(tmp_path, sacct(row), timezone="Europe/Paris")
    assert jobs(read(tmp_path, sacct(row), timezone="Europe/Paris", dst_fold=fold)) == [(at(start), None, 1, ("n1",))]


@pytest.mark.parametrize(("fold", "start"), [("earlier", "2024-10-27 00:10:00"), ("later", "2024-10-27 01:10:00")])
def test_dst_fold_chooses_and_is_a_doubt(tmp_path, fold, start):
    record = read(tmp_path, sacct(BOTH_TWICE), timezone="Europe/Paris", dst_fold=fold)
    assert jobs(record) == [(at(start), at(start) + 1200, 1, ("n1",))]
    assert doubts(record) == {FOLD_DOUBT: 1}


def test_a_local_time_that_does_not_exist_says_that_the_zone_is_wrong(tmp_path):
    row = "1|1|COMPLETED|2024-03-31T02:10:00|2024-03-31T04:30:00|1200|1|1|n1"
    record = read(tmp_path, sacct(row, GOOD), timezone="Europe/Paris")
    assert len(jobs(record)) == 1
    assert doubts(record) == {ZONE_DOUBT: 1}
    assert rows_balance(record)


def test_running_times_that_are_off_by_whole_hours_doubt_the_zone(tmp_path):
    row = "1|1|COMPLETED|2024-03-31T00:30:00|2024-03-31T04:30:00|10800|1|1|n1"  # clocks went forward: it was Paris
    assert doubts(utc(tmp_path, row)) == {sentences.WHOLE_HOURS: 1}
    assert doubts(read(tmp_path, sacct(row), timezone="Europe/Paris")) == {}


@pytest.mark.parametrize("elapsed", [7199, 7200, 7201, 0, 1])
def test_whole_hours_are_whole_to_the_second(tmp_path, elapsed):
    row = f"1|1|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|{elapsed}|1|1|n1"
    assert doubts(utc(tmp_path, row)) == {sentences.WHOLE_HOURS: 1}


@pytest.mark.parametrize("elapsed", [3599, 3600, 3601])
def test_a_second_is_no_difference(tmp_path, elapsed):
    assert doubts(utc(tmp_path, GOOD.replace("|3600|", f"|{elapsed}|"))) == {}


def test_a_running_time_that_fits_neither_local_time_settles_nothing(tmp_path):
    row = "1|1|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|5000|1|1|n1"
    with pytest.raises(InputError, match="--dst-fold"):
        read(tmp_path, sacct(row), timezone="Europe/Paris")
    record = read(tmp_path, sacct(row), timezone="Europe/Paris", dst_fold="later")
    assert doubts(record) == {FOLD_DOUBT: 1, sentences.TOO_SHORT: 1}


def test_elapsed_is_read_where_there_is_no_elapsed_raw(tmp_path):
    header = "JobID|State|Start|End|Elapsed|NodeList"
    row = "1|COMPLETED|2024-03-01T12:00:00|2024-03-03T13:00:01|{}|n1"
    assert doubts(utc(tmp_path, row.format("2-01:00:01"), header=header)) == {}
    assert doubts(utc(tmp_path, row.format("2-01:10:01"), header=header)) == {sentences.TOO_LONG: 1}
    assert doubts(utc(tmp_path, row.format("2-00:50:01"), header=header)) == {sentences.TOO_SHORT: 1}


def test_the_time_suspended_explains_a_short_running_time(tmp_path):
    header = "JobID|State|Start|End|Elapsed|Suspended|NodeList"
    row = "1|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|00:50:00|00:10:00|n1"
    record = utc(tmp_path, row, header=header)
    assert doubts(record) == {}
    assert record.lint.facts["suspended jobs"] == 1


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
def test_rows_that_hold_no_nodes_by_their_nature_are_dropped_without_doubt(tmp_path, row, reason):
    record = utc(tmp_path, GOOD, row)
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {reason: 1}
    assert doubts(record) == {}


@pytest.mark.parametrize(
    ("row", "reason", "sentence"),
    [
        ("8|8|COMPLETED|2024-03-01T12:00:00|Unknown|x||1|n1", "finished, but no end", sentences.NO_END),
        ("8|8|COMPLETED|2024-03-01T12:00:00|Unknown|0||1|n1", "finished, but no end", sentences.NO_END),
        ("8|8|COMPLETED|Unknown|2024-03-01T13:00:00|3600||1|n1", "nodes, but no start", sentences.NO_START),
        ("8|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||1|None assigned", "ran, but without nodes",
         sentences.NO_NODES),
        ("8|8|FAILED|2024-03-01T12:00:00|2024-03-01T11:00:00|||1|n1", "job that ends before it starts",
         sentences.BACKWARDS),
        ("x|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|||1|n1", "unreadable JobID", UNREADABLE),
        ("8.batch|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|||1|n1", "unreadable JobID", UNREADABLE),
        ("8|8|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|||x|n[1-", "neither a list nor a number of nodes",
         UNREADABLE),
    ],
)  # fmt: skip
def test_rows_that_should_hold_nodes_and_cannot_are_doubted(tmp_path, row, reason, sentence):
    record = utc(tmp_path, GOOD, row)
    assert jobs(record) == [GOOD_JOB]
    assert dropped(record) == {reason: 1}
    assert doubts(record) == {sentence: 1}


def test_junk_in_columns_that_do_not_matter_is_nobodys_business(tmp_path):
    record = utc(tmp_path, "7|?|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|x|?|2|n[1-2]")
    assert jobs(record) == [GOOD_JOB]
    assert doubts(record) == {}


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
    assert doubts(record) == {}


def test_one_wrong_running_time_does_not_move_the_end_of_the_log(tmp_path):
    rows = [f"{i}|{i}|RUNNING|2024-03-01T12:00:00|Unknown|600|120|1|n{i}" for i in range(5)]
    record = utc(tmp_path, *rows, "9|9|RUNNING|2024-03-01T12:00:00|Unknown|9999999|120|1|n9")
    assert record.last_stamp_us == (NOON + 600) * 1_000_000
    assert doubts(record) == {sentences.DUMP_TIMES: 1}


def test_a_suspended_job_does_not_tell_when_the_log_was_written(tmp_path):
    row = "{0}|{0}|{1}|2024-03-01T12:00:00|Unknown|{2}|120|1|n{0}"
    record = utc(
        tmp_path, row.format(1, "SUSPENDED", 60), row.format(2, "RUNNING", 7200), row.format(3, "SUSPENDED", 60)
    )
    assert record.last_stamp_us == (NOON + 7200) * 1_000_000
    assert doubts(record) == {}


def test_exports_of_several_days_may_have_been_written_at_several_times(tmp_path):
    row = "7|7|RUNNING|2024-03-01T12:00:00|Unknown|{}|9000|2|n[1-2]"
    record = read(tmp_path, sacct(row.format(600)), sacct(row.format(90_000)), timezone="UTC")
    assert record.last_stamp_us == (NOON + 90_000) * 1_000_000
    assert doubts(record) == {}
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
    assert dropped(utc(tmp_path, *rows, header=header)) == {"job step": 2, "unreadable JobID": 1}


def test_caches_that_are_full_change_nothing(tmp_path, monkeypatch):
    rows = [GOOD.replace("7|7", f"{i}|{i}").replace("n[1-2]", f"n[{i}-{i + 1}]") for i in range(1, 9)]
    expected = jobs(utc(tmp_path, *rows))
    monkeypatch.setattr(sentences, "_MOST_CACHED_LISTS", 2)
    monkeypatch.setattr(clock, "_MOST_CACHED", 1)
    assert jobs(utc(tmp_path, *rows)) == expected


def test_a_row_that_two_exports_share_counts_once(tmp_path):
    record = read(tmp_path, sacct(GOOD), sacct(GOOD, GOOD.replace("7|7", "8|8")), timezone="UTC")
    assert jobs(record) == [GOOD_JOB, GOOD_JOB]
    assert record.lint.rows_read == 3


RESTARTS = "JobIDRaw|State|Start|End|Restarts|NodeList"


def test_restarts_without_earlier_runs_say_that_they_are_missing(tmp_path):
    rows = [f"{i}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|{i % 2}|n{i}" for i in range(4)]
    record = utc(tmp_path, *rows, header=RESTARTS)
    assert doubts(record) == {sentences.RUNS_MISSING: 2}


def test_restarts_with_their_earlier_runs_are_no_doubt(tmp_path):
    rows = [
        "7|REQUEUED|2024-03-01T12:00:00|2024-03-01T13:00:00|0|n1",
        "7|COMPLETED|2024-03-01T14:00:00|2024-03-01T15:00:00|1|n1",
    ]
    assert doubts(utc(tmp_path, *rows, header=RESTARTS)) == {}
    rows[0] = "7|FAILED|2024-03-01T12:00:00|2024-03-01T13:00:00|2|n1"
    assert doubts(utc(tmp_path, *rows, header=RESTARTS)) == {}


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
    assert doubts(record) == {}


def test_a_state_that_nobody_knows_holds_its_nodes_with_a_doubt(tmp_path):
    record = utc(tmp_path, GOOD.replace("COMPLETED", "TELEPORTED"))
    assert jobs(record) == [GOOD_JOB]
    assert doubts(record) == {sentences.UNKNOWN_STATE: 1}


# ---- nodes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", ["n[083,104", "c5,,c6", "n[1-", "two nodes", "n[9-1]"])
def test_a_cut_node_list_leaves_the_number_of_nodes(tmp_path, nodes):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||2|{nodes}")
    assert (NOON, NOON + 3600, 2, ()) in jobs(record)
    assert doubts(record) == {sentences.LIST_UNREADABLE: 1}
    assert record.nodes == ("n1", "n2")


def test_a_list_of_far_more_nodes_than_the_job_held_adds_no_nodes(tmp_path):
    record = utc(tmp_path, GOOD, "8|8|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|3600||2|n[1-8000]")
    assert record.nodes == ("n1", "n2")
    assert doubts(record) == {sentences.LIST_UNREADABLE: 1}


def test_without_a_column_of_nodes_jobs_hold_numbers_of_them(tmp_path):
    record = utc(
        tmp_path,
        "7|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2",
        header="JobID|State|Start|End|NNodes",
        n_nodes=5,
    )
    assert jobs(record) == [(NOON, NOON + 3600, 2, ())]
    assert record.machine_size == 5
    assert doubts(record) == {sentences.NO_LISTS: 1}


def test_a_number_of_nodes_that_contradicts_the_list_is_doubted(tmp_path):
    record = utc(tmp_path, GOOD.replace("|2|n", "|3|n"))
    assert jobs(record) == [(NOON, NOON + 3600, 3, ("n1", "n2"))]
    assert len(doubts(record)) == 1


def test_none_assigned_is_no_node(tmp_path):
    record = utc(tmp_path, GOOD, "8|8|CANCELLED|2024-03-01T13:00:00|2024-03-01T13:00:00|0|120|1|None assigned")
    assert record.nodes == ("n1", "n2")


def test_jobs_of_several_clusters_are_doubted_and_kept_apart(tmp_path):
    header = "JobID|Cluster|State|Start|End|NodeList"
    rows = [f"7|{name}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|{name}1" for name in ("hill", "vale")]
    record = utc(tmp_path, *rows, header=header)
    assert len(jobs(record)) == 2
    assert record.cluster is None
    assert doubts(record) == {sentences.CLUSTERS: 1}


# ---- windows --------------------------------------------------------------------------------------------------------

WINDOW = "JobID|State|Submit|Start|End|NodeList"


def test_starts_cut_at_the_edge_of_a_window_are_doubted(tmp_path):
    rows = [
        f"{i}|COMPLETED|2024-03-01T0{i % 10}:{i:02}:00|2024-03-01T12:00:00|2024-03-01T13:{i:02}:00|n{i}"
        for i in range(12)
    ]
    assert doubts(utc(tmp_path, *rows, header=WINDOW)) == {sentences.CUT_STARTS: 12}


@pytest.mark.parametrize(("n", "found"), [(9, {}), (10, {sentences.CUT_STARTS: 10})])
def test_ten_starts_at_the_edge_are_many_where_nothing_says_when_jobs_were_submitted(tmp_path, n, found):
    header = WINDOW.replace("Submit|", "")
    rows = [f"{i}|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:{i:02}:00|n{i}" for i in range(n)]
    rows += [f"{100 + i}|COMPLETED|2024-03-01T12:30:00|2024-03-01T13:59:00|n{i}" for i in range(9)]
    assert doubts(utc(tmp_path, *rows, header=header)) == found


def test_an_array_that_is_the_first_to_start_is_no_cut(tmp_path):
    rows = [f"7_{i}|COMPLETED|2024-03-01T09:00:00|2024-03-01T12:00:00|2024-03-01T13:{i:02}:00|n{i}" for i in range(12)]
    assert doubts(utc(tmp_path, *rows, header=WINDOW)) == {}


def test_ends_cut_at_the_edge_of_a_window_are_doubted(tmp_path):
    rows = [f"{i}|COMPLETED|2024-03-01T09:00:00|2024-03-01T12:{i:02}:00|2024-03-02T00:00:00|n{i}" for i in range(12)]
    assert doubts(utc(tmp_path, *rows, header=WINDOW)) == {sentences.CUT_ENDS: 12}


def test_a_running_job_with_an_end_is_cut(tmp_path):
    record = utc(tmp_path, "1|RUNNING|2024-03-01T09:00:00|2024-03-01T12:00:00|2024-03-02T00:00:00|n1", header=WINDOW)
    assert doubts(record) == {sentences.RUNNING_WITH_END: 1}


# ---- files ----------------------------------------------------------------------------------------------------------


def test_a_compressed_log_reads_as_the_plain_one(tmp_path):
    assert jobs(read(tmp_path, bz2.compress(sacct(GOOD).encode()), timezone="UTC")) == [GOOD_JOB]


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_cut_compressed_file_is_refused(tmp_path, cut):
    content = bz2.compress(sacct(*[GOOD.replace("7|7", f"{i}|{i}") for i in range(1000)]).encode())
    with pytest.raises(InputError, match="cut or damaged"):
        read(tmp_path, content[: int(len(content) * cut)], timezone="UTC")


def test_bytes_that_are_no_text_spoil_only_their_row(tmp_path):
    record = read(tmp_path, sacct(GOOD).encode() + b"8|8|\xff\xfe|\xff|2024-03-01T13:00:00|||1|n\xff\n", timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert rows_balance(record)


def test_a_header_of_sacct_is_recognised_and_other_tables_are_not(tmp_path):
    reader = SlurmReader()
    own, xdmod, table, swf, prose = files_of(
        tmp_path,
        sacct(GOOD),
        XDMOD + "\n",
        "job_id,start,end,nodes\n1,2,3,4\n",
        "; SWF\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n",
        "JobID and State, Start, End: a text about sacct\n",
    )
    assert "jobidraw" in reader.recognise(own)
    assert "XDMoD" in reader.recognise(xdmod)
    assert [reader.recognise(file) for file in (table, swf, prose)] == [None, None, None]


def test_no_file_is_no_error(tmp_path):
    record = ScheduleRecord()
    SlurmReader().read([], record, ReadOptions())
    assert record.lint.rows_read == 0


def test_a_table_of_sacct_that_lacks_a_column_is_still_slurm_s(tmp_path):
    path = tmp_path / "jobs.psv"
    path.write_text("JobIDRaw|State|End|ElapsedRaw|Partition|NNodes\n7|COMPLETED|2024-03-01T12:00:00|60|a|1\n")
    reason = SlurmReader().recognise(LogFile(path))
    assert reason is not None
    assert "not all that are needed" in reason
    path.write_text("id|name|colour\n7|a|red\n")
    assert SlurmReader().recognise(LogFile(path)) is None
