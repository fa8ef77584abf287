"""``sacct`` as text: headers, columns, separators, files."""

import bz2
import os
import subprocess

import pytest

from bfreplay.datasets.ingest.delimited import CUT_END
from bfreplay.datasets.ingest.log_file import JOINED_ROWS, LogFile
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.read_log import ingest
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm import sacct_rows as sentences
from bfreplay.datasets.ingest.slurm.command_tables import TOO_FEW_CELLS, TOO_MANY_CELLS
from bfreplay.datasets.ingest.slurm.reader import SlurmReader
from bfreplay.datasets.ingest.slurm.sacct import COMMAND, SACCT_COLUMNS, XDMOD_COLUMNS
from bfreplay.datasets.ingest.slurm.slurm_times import OWN_FORMAT
from bfreplay.errors import InputError
from tests.datasets.ingest.sacct_rows import GOOD, GOOD_JOB, NOON, utc
from tests.datasets.ingest.slurm_logs import HEADER, files_of, jobs, read, rows_balance, sacct, skipped, warnings

# ---- columns --------------------------------------------------------------------------------------------------------


def test_a_job_holds_its_nodes_from_start_to_end(tmp_path):
    record = utc(tmp_path, GOOD)
    assert jobs(record) == [GOOD_JOB]
    assert warnings(record) == {}
    assert record.source_format == "slurm sacct"
    assert record.report.facts["time zone"] == "given as UTC"


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
    assert warnings(record) == {}


def test_a_line_of_sacct_p_without_its_last_separator_was_cut(tmp_path):
    record = utc(tmp_path, GOOD + "|", GOOD.replace("7|7", "8|8"), header=HEADER + "|")
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {TOO_FEW_CELLS: 1}
    assert UNREADABLE in warnings(record)


def test_a_last_line_without_its_end_has_warning(tmp_path):
    record = read(tmp_path, sacct(GOOD)[:-1], timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert warnings(record) == {CUT_END: 1}


def test_a_log_without_header_needs_the_names_of_its_columns(tmp_path):
    with pytest.raises(InputError, match="--columns"):
        read(tmp_path, GOOD + "\n", timezone="UTC")
    columns = tuple(HEADER.split("|"))
    assert jobs(read(tmp_path, GOOD + "\n", timezone="UTC", columns=columns)) == [GOOD_JOB]
    assert jobs(read(tmp_path, GOOD + "|\n", timezone="UTC", columns=columns)) == [GOOD_JOB]


def test_named_columns_that_are_not_enough_are_refused(tmp_path):
    with pytest.raises(InputError, match="do not give jobs, nodes and times: State, End are missing"):
        read(tmp_path, "7|2024-03-01T12:00:00|n1\n", timezone="UTC", columns=("JobID", "Start", "NodeList"))


OWN = {
    "JobIDRaw": "7",
    "JobID": "7",
    "Cluster": "hill",
    "Partition": "batch",
    "QOS": "normal",
    "State": "COMPLETED",
    "Submit": "2024-03-01T11:00:00",
    "Eligible": "2024-03-01T11:00:00",
    "Start": "2024-03-01T12:00:00",
    "End": "2024-03-01T13:00:00",
    "ElapsedRaw": "3600",
    "Suspended": "00:00:00",
    "TimelimitRaw": "120",
    "NNodes": "2",
    "NodeList": "n[1-2]",
    "Reservation": "",
    "AllocTRES": "cpu=24,gres/gpu=2,node=2",
    "Restarts": "0",
}


@pytest.mark.parametrize("absent", [(), ("Suspended",), ("JobID",), ("JobID", "Suspended"), None, ("Restarts",)])
@pytest.mark.parametrize("ending", ["", "|"])
@pytest.mark.parametrize("earlier", [(), ("AllocTRES", "QOS")])  # not in the command of earlier versions
def test_rows_of_our_own_command_are_known_by_their_shape(tmp_path, absent, ending, earlier):
    assert tuple(OWN) == SACCT_COLUMNS
    names = sorted(OWN) if absent in (None, ("Restarts",)) else OWN  # in the order of sacct -e
    absent = (*(absent or ()), *earlier)
    row = "|".join(OWN[name] for name in names if name not in absent) + ending
    waits = OWN | {"State": "PENDING", "Start": "Unknown", "End": "None"}
    pending = "|".join(waits[name] for name in names if name not in absent) + ending
    text = f"{row}\n{pending}\n"
    assert f"{18 - len(absent)} columns" in SlurmReader().recognise(files_of(tmp_path, text)[0])
    record = read(tmp_path, text, timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {"pending": 1}
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
    with pytest.raises(InputError, match="17 cells, 18 names") as error:
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
    assert "XDMoD" in record.report.facts["time zone"]


def test_a_zone_that_is_given_counts_for_the_layout_of_xdmod_too(tmp_path):
    record = read(tmp_path, XDMOD + "\n", timezone="Europe/Paris")
    assert jobs(record) == [(NOON - 3600, NOON, 2, ("n1", "n2"))]
    assert record.timezone == "Europe/Paris"


def test_the_layout_of_xdmod_is_known_by_most_of_the_first_rows(tmp_path):
    step, junk = XDMOD.replace("7|7", "7.0|7.0"), XDMOD.replace("7|7", "x|x")
    record = read(tmp_path, "\n".join([XDMOD, step, junk]) + "\n")
    assert skipped(record) == {"job step": 1, "unreadable JobID": 1}
    with pytest.raises(InputError, match="no header line"):
        read(tmp_path, "\n".join([XDMOD, junk, junk]) + "\n")


def test_separators_in_the_last_column_of_free_text_belong_to_it(tmp_path):
    record = read(tmp_path, XDMOD + "|x|y\n" + XDMOD.replace("7|7", "8|8") + "\n")
    assert [job[3] for job in jobs(record)] == [("n1", "n2"), ("n1", "n2")]
    assert warnings(record) == {}


def test_separators_in_free_text_before_other_columns_shift_nothing(tmp_path):
    header = "JobID|JobName|State|Start|End|NodeList"
    rows = ("7|a|b|c|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|n[1-2]",)
    assert jobs(utc(tmp_path, *rows, header=header)) == [GOOD_JOB]


def test_a_separator_too_many_that_no_free_text_explains_makes_the_row_unreadable(tmp_path):
    record = utc(tmp_path, GOOD, GOOD.replace("7|7", "8|8|x"))
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {f"{TOO_MANY_CELLS}: a separator inside a cell (do not export it)": 1}


FREE = "JobName|JobIDRaw|NNodes|NodeList|Start|State|SubmitLine|End|WorkDir"


@pytest.mark.parametrize(
    "row",
    [
        "a|b|7|2|n[1-2]|2024-03-01T12:00:00|COMPLETED|x|2024-03-01T13:00:00|/h",
        "a|7|2|n[1-2]|2024-03-01T12:00:00|COMPLETED|env | sort | head|2024-03-01T13:00:00|/h",
        "a|7|2|n[1-2]|2024-03-01T12:00:00|COMPLETED|x|2024-03-01T13:00:00|/h|i||",
        "7|7|2|n1|7|2|n[1-2]|2024-03-01T12:00:00|COMPLETED|skl|icx|2024-03-01T13:00:00|/|h",
    ],
)
def test_surplus_separators_are_in_the_text_that_leaves_ids_times_and_nodes_valid(tmp_path, row):
    record = utc(tmp_path, row, header=FREE)
    assert jobs(record) == [GOOD_JOB]
    assert (warnings(record), skipped(record)) == ({}, {})


def test_a_surplus_separator_that_may_be_in_several_places_names_the_columns(tmp_path):
    header = "JobName|JobIDRaw|Comment|State|Start|End|NodeList"
    good = "a|7|x|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|n[1-2]"
    record = utc(tmp_path, good, "1|2|3|4|COMPLETED|2024-03-01T14:00:00|2024-03-01T15:00:00|n1", header=header)
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {f"{TOO_MANY_CELLS}: a separator inside jobname, comment (do not export it)": 1}


def test_between_two_columns_of_free_text_the_number_of_nodes_tells_which_is_the_list(tmp_path):
    header = "JobID|JobName|NodeList|Comment|State|Start|End|NNodes"
    rows = ("7|a|b|n[1-2]|c|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2",)
    assert jobs(utc(tmp_path, *rows, header=header)) == [GOOD_JOB]
    cut = ("7|a|b|n[1-|c|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2",)
    record = utc(tmp_path, *cut, header=header)
    assert jobs(record) == [(NOON, NOON + 3600, 2, ())]
    assert warnings(record) == {sentences.LIST_UNREADABLE: 1}


def test_a_comment_with_a_line_break_makes_two_unreadable_lines(tmp_path):
    record = utc(tmp_path, GOOD, GOOD[:20], GOOD[20:])
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {TOO_FEW_CELLS: 2}


def test_exports_put_one_after_the_other_may_have_other_columns(tmp_path):
    other = "NodeList|JobIDRaw|State|Start|End\nm1|8|FAILED|2024-03-01T12:00:00|2024-03-01T12:30:00\n"
    record = read(tmp_path, sacct(GOOD) + other, timezone="UTC")
    assert sorted(job[3] for job in jobs(record)) == [("m1",), ("n1", "n2")]
    assert record.report.rows_read == 2


def test_what_stands_before_the_header_is_counted(tmp_path):
    record = read(tmp_path, "sacct: warning: something\n" + sacct(GOOD), timezone="UTC")
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {"a line before the header": 1}


def test_blank_lines_and_windows_line_ends_are_nothing(tmp_path):
    assert jobs(read(tmp_path, sacct(GOOD, "").replace("\n", "\r\n"), timezone="UTC")) == [GOOD_JOB]


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="occurs twice"):
        read(tmp_path, sacct(GOOD + "|x", header=HEADER + "|start"), timezone="UTC")


def test_the_table_for_people_is_refused_with_the_command(tmp_path):
    text = "JobID           State    Start      End NodeList\n------- --------- -------- -------- --------\n"
    (tmp_path / "jobs.txt").write_text(text)
    with pytest.raises(InputError, match="sacct -a -X -D -P"):
        ingest(tmp_path / "jobs.txt", "slurm")


def test_columns_of_another_table_are_named(tmp_path):
    with pytest.raises(InputError, match=r"job_id, start_time[\s\S]*bfreplay ingest table"):
        read(tmp_path, "job_id,start_time,end_time,nodes_req\n1,2019-01-01 08:00:00,2019-01-01 09:00:00,1\n")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("JobIDRaw|State|Start|NNodes|NodeList", "the column End is missing; ElapsedRaw, which could replace End"),
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
    assert skipped(record) == {"pending": 1, "never started": 1, "job of no length": 1}
    assert warnings(record) == {}
    assert record.report.facts["ends"].endswith(": 3")
    assert "jobidraw" in SlurmReader().recognise(files_of(tmp_path, sacct(header=NO_END))[0])


def test_without_end_and_running_time_a_finished_job_is_left_out(tmp_path):
    record = utc(
        tmp_path,
        "1|FAILED|2024-03-01T12:00:00|01:00:00|n1",
        "2|FAILED|2024-03-01T12:00:00|x|n1",
        header="JobID|State|Start|Elapsed|NodeList",
    )
    assert jobs(record) == [(NOON, NOON + 3600, 1, ("n1",))]
    assert warnings(record) == {sentences.NO_END: 1}


def test_a_finished_job_whose_end_is_not_known_ends_after_its_running_time_with_a_warning(tmp_path):
    record = utc(tmp_path, "7|7|COMPLETED|2024-03-01T12:00:00|Unknown|3600|120|2|n[1-2]")
    assert jobs(record) == [GOOD_JOB]
    assert warnings(record) == {sentences.END_IS_COMPUTED: 1}
    assert "ends" not in record.report.facts


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
    assert warnings(record) == ({sentences.ALL_COMPLETED: 1} if found else {})


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
    assert record.report.rows_read == 0


def test_a_table_of_sacct_that_lacks_a_column_is_still_slurm_s(tmp_path):
    path = tmp_path / "jobs.psv"
    path.write_text("JobIDRaw|State|End|ElapsedRaw|Partition|NNodes\n7|COMPLETED|2024-03-01T12:00:00|60|a|1\n")
    reason = SlurmReader().recognise(LogFile(path))
    assert reason is not None
    assert "not all that are needed" in reason
    path.write_text("id|name|colour\n7|a|red\n")
    assert SlurmReader().recognise(LogFile(path)) is None


@pytest.mark.parametrize("columns", [SACCT_COLUMNS, XDMOD_COLUMNS])
@pytest.mark.parametrize("with_header", [True, False])
@pytest.mark.parametrize("is_trailing", [True, False])
def test_rows_of_joined_files_on_one_line_are_read_or_said(is_trailing, with_header, columns, tmp_path):
    cell = {
        "State": "COMPLETED",
        "Submit": "2024-01-01T00:00:00",
        "Eligible": "2024-01-01T00:00:00",
        "ElapsedRaw": "1800",
        "Elapsed": "00:30:00",
        "TimelimitRaw": "60",
        "NNodes": "1",
        "NodeList": "n1",
        "NCPUS": "1",
        "JobName": "mine",
        "Suspended": "00:00:00",
        "Restarts": "0",
        "Cluster": "c",
    }

    def row(k):
        times = {"Start": f"2024-01-01T{k:02}:00:00", "End": f"2024-01-01T{k:02}:30:00"}
        of_job = cell | times | {"JobIDRaw": str(100 + k), "JobID": str(100 + k)}
        return "|".join(of_job.get(name, "") for name in columns) + "|" * is_trailing

    header = ["|".join(columns) + "|" * is_trailing] if with_header else []
    rows = [row(k) for k in range(10)]
    for second in ([], header):
        text = "\n".join([*header, *rows[:8]]) + "\n".join([*second, *rows[8:], ""])
        (tmp_path / "jobs.psv").write_text(text)
        _, report = ingest(tmp_path / "jobs.psv", "slurm", ReadOptions(timezone="UTC"))
        assert JOINED_ROWS in report.warnings
        lost = 0 if is_trailing else 1 if second else 2
        assert report.kept == {"job intervals": 10 - lost}
        assert report.rows_skipped == (0 if is_trailing else 2)
        assert report.rows_read == 10 + (lost == 1)


def test_the_printed_command_asks_sacct_for_its_columns(tmp_path):
    """Run with a sacct that has the columns of version 22.05, four on a line, and says what it was asked."""
    of_version = [name for name in SACCT_COLUMNS if name != "Restarts"]
    listed = [*sorted([*of_version, "ReqTRES", "AllocNodes", "StateX", "JobName"])]
    lines = "\n".join("".join(f"{name:<20}" for name in listed[k : k + 4]) for k in range(0, len(listed), 4))
    (tmp_path / "sacct").write_text(f'#!/bin/sh\nif [ "$1" = -e ]; then cat <<END\n{lines}\nEND\nelse echo "$@"; fi\n')
    (tmp_path / "sacct").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", COMMAND], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    asked = (tmp_path / "jobs.psv").read_text().split()
    assert asked[:-1] == ["-a", "-X", "-D", "-P", "-S", "2024-01-01", "-E", "now", "-o"]
    assert sorted(asked[-1].split(",")) == sorted(of_version)


def test_columns_that_are_not_there_are_named(tmp_path):
    columns = [name for name in SACCT_COLUMNS if name != "Restarts"]
    (tmp_path / "jobs.psv").write_text(
        "|".join(columns)
        + "\n"
        + "|".join(
            {"State": "COMPLETED", "Start": "2024-01-01T00:00:00", "End": "2024-01-01T01:00:00", "NodeList": "n1"}.get(
                name, "1" if name in ("JobIDRaw", "NNodes", "JobID") else ""
            )
            for name in columns
        )
        + "\n"
    )
    _, report = ingest(tmp_path / "jobs.psv", "slurm", ReadOptions(timezone="UTC"))
    assert report.facts["columns of sacct that are not there"] == "Restarts: what they tell is not checked"


ROWS_IN_DOUBT = {  # a row, and its node-hours
    "x|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T15:00:00|10800|120|2|n[1-2]": 2 * 3.0,  # unreadable JobID
    "7|7|COMPLETED|soon|2024-03-01T15:00:00|10800|120|2|n[1-2]": 2 * 3.0,
    "7|7|COMPLETED|Unknown|2024-03-01T15:00:00|10800|120|2|n[1-2]": 2 * 3.0,  # nodes, but no start
    "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T14:00:00|7200|120|2|None assigned": 2 * 2.0,
    "7|7|FAILED|2024-03-01T12:00:00|Unknown|0|90|2|n[1-2]": 2 * 1.5,  # no end: up to its time limit
    "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T10:00:00|3600|120||n[1-3]": 3 * 1.0,  # backwards
    "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T14:00:00|3600|120|2|n[1-2]": 2 * 2.0,  # too short a running time
    "7|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T14:00:00|7200|120|2|n[1-": 2 * 2.0,  # a list that is cut
}


@pytest.mark.parametrize(("row", "node_hours"), ROWS_IN_DOUBT.items())
def test_a_warning_of_a_row_has_its_node_hours(tmp_path, row, node_hours):
    good = GOOD.replace("7|7", "8|8")
    report = utc(tmp_path, good, row, good.replace("8|8", "9|9")).report
    assert report.warnings
    assert [tally.node_hours for tally in report.warnings.values()] == pytest.approx(
        [node_hours] * len(report.warnings)
    )


def test_an_unreadable_row_adds_no_node_to_the_machine(tmp_path):
    record = utc(tmp_path, GOOD, "x|7|COMPLETED|2024-03-01T12:00:00|2024-03-01T15:00:00|10800|120||q[1-50]")
    assert record.nodes == ("n1", "n2")


@pytest.mark.parametrize(
    "time", ["01.03.2024 {}:00:00", "03/01/24 {}:00", "Fri Mar  1 {}:00:00 2024", "ven. 01 mars 2024 {}:00:00"]
)
def test_times_in_a_form_of_their_own_name_the_variable_that_makes_them(tmp_path, time):
    row = f"7|7|COMPLETED|{time.format(12)}|{time.format(13)}|3600|120|2|n[1-2]"
    with pytest.raises(InputError) as error:
        utc(tmp_path, row)
    assert "SLURM_TIME_FORMAT was set" in error.value.problem
    assert "unset SLURM_TIME_FORMAT; TZ=UTC sacct" in error.value.fix
    record = utc(tmp_path, GOOD, row)
    assert skipped(record) == {OWN_FORMAT: 1}


@pytest.mark.parametrize("cell", ["1-00:00:00", "2024-13-01T12:00:00", "9" * 70 + ":00 1 2", "COMPLETED"])
def test_a_cell_of_another_column_and_a_damaged_time_do_not(tmp_path, cell):
    record = utc(tmp_path, GOOD, f"8|8|COMPLETED|{cell}|2024-03-01T13:00:00|3600|120|2|n[1-2]")
    assert skipped(record) == {"unreadable Start": 1}


def test_running_jobs_that_disagree_on_when_the_file_was_written_have_their_node_hours(tmp_path):
    rows = [f"{k}|{k}|RUNNING|2024-03-01T1{k}:00:00|Unknown|{(9 - k) * 3600}|900|2|n[1-2]" for k in range(3)]
    record = utc(tmp_path, *rows, "9|9|RUNNING|2024-03-01T12:00:00|Unknown|60|900|3|n[1-3]")
    found = record.report.warnings[sentences.DUMP_TIMES]
    assert (found.count, found.node_hours) == (1, 3 * 7.0)


def test_cells_that_are_not_read_may_be_anywhere_but_the_others_keep_their_places(tmp_path):
    header = "JobIDRaw|JobName|Account|Comment|State|Start|End|NNodes|NodeList|SubmitLine"
    record = utc(tmp_path, "7|a|b|acc||COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2|n[1-2]|x", header=header)
    assert (jobs(record), warnings(record)) == ([GOOD_JOB], {})


def test_a_line_of_a_thousand_separators_takes_no_time(tmp_path):
    header = "JobIDRaw|JobName|State|Start|End|NNodes|NodeList|SubmitLine"
    lines = ["8|a|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|1|n2|x" + "|1" * n for n in (190, 1_900, 60_000)]
    good = "7|a|COMPLETED|2024-03-01T12:00:00|2024-03-01T13:00:00|2|n[1-2]|x"
    record = utc(tmp_path, good, *lines, header=header)
    assert jobs(record) == [GOOD_JOB]
    assert skipped(record) == {f"{TOO_MANY_CELLS}: a separator inside jobname, submitline (do not export it)": 3}
