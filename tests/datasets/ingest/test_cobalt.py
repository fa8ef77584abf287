"""Tables of ALCF: jobs of every shape, locations, machine status, maintenance, reservations, the zone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bfreplay.datasets.ingest.cobalt.cobalt_jobs import (
    BLOCK_DIFFERS,
    LOCATION_UNREADABLE,
    OTHER_MACHINE,
    TOO_LARGE,
    WHERE_MISSING,
    ZONE_UNLIKELY,
    location_of,
)
from bfreplay.datasets.ingest.cobalt.reader import END_UNKNOWN, PART_DOWN, PART_UNKNOWN, RAW_JOB_COLUMNS, CobaltReader
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE, WHICH_NODES
from bfreplay.datasets.ingest.occupancy.schedule import CUT, MISMATCH
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.table.table_jobs import ELAPSED_DIFFERS, SEVERAL_TASKS
from bfreplay.datasets.ingest.table.table_outages import OUTAGES_UNREADABLE
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import HOUR_US
from bfreplay.errors import InputError
from tests.datasets.ingest.what_was_read import balances, intervals, record_of, skipped

SECOND = 1_000_000
HEADER = (
    "JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,WALLTIME_SECONDS,"
    "RUNTIME_SECONDS,NODES_USED,LOCATION\n"
)
X = [f"x3005c0s{slot}b1n0" for slot in range(1, 9)]


def job(number=1, start="10:00:00", end="11:00:00", nodes="2", where="", machine="polaris", runtime="", name=""):
    day = "2024-02-03 "
    stamps = ",".join(day + time if time else "" for time in ("09:00:00", start, end))
    return f'{name},{number},{machine},{stamps},7200.0,{runtime},{nodes},"{where}"\n'


def us(text):
    return (
        int((datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        * SECOND
    )


def read_files(*paths, **options):
    return record_of(CobaltReader(), *paths, **options)


@pytest.fixture
def read(tmp_path):
    """Write texts as files and read them as one log."""

    def read_texts(*texts, **options):
        paths = [tmp_path / f"{i}.csv" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return read_files(*paths, **options)

    return read_texts


def raw_row(number, start, end, nodes, block, machine="mira"):
    cells = dict.fromkeys(RAW_JOB_COLUMNS, "1")
    cells |= {
        "QUEUED_TIMESTAMP": start,
        "START_TIMESTAMP": start,
        "END_TIMESTAMP": end,
        "QUEUED_DATE_ID": "20150101",
        "START_DATE_ID": "20150101",
        "END_DATE_ID": "20150101",
        "USED_NODES": nodes,
        "MACHINE_PARTITION": block,
        "MACHINE_NAME": machine,
        "JOBID": str(number),
        "RUNTIME_SECONDS": "",
        "WALLTIME_SECONDS": "3600.0000",
    }
    return ",".join(f'"{cells[name]}"' for name in RAW_JOB_COLUMNS) + "\n"


RAW = raw_row(7, "2015-01-01 10:00:00.000000", "2015-01-01 11:00:00.000000", "512.0000", "MIR-08000-3B331-512")


# ---- jobs --------------------------------------------------------------------------------------------------------


def test_a_job_with_a_complete_location_is_on_those_nodes(read):
    record = read(HEADER + job(where=",".join(X[:2])))
    assert intervals(record) == [(us("2024-02-03 10:00:00"), us("2024-02-03 11:00:00"), 2, tuple(X[:2]))]
    assert (record.cluster, record.machine_size, record.timezone) == ("polaris", 560, "UTC")
    assert not record.report.warnings
    assert balances(record)


def test_a_location_that_was_cut_gives_the_whole_names_and_the_number(read):
    record = read(HEADER + job(nodes="8", where=",".join(X[:3]) + ",x3005c0s"))
    assert intervals(record)[0][2:] == (8, tuple(X[:3]))
    cut = record.report.warnings[CUT]  # the only one: that the list is shorter than the number is the same thing
    start, end = intervals(record)[0][:2]
    assert (cut.count, cut.node_hours, cut.aside) == (1, pytest.approx(8 * (end - start) / HOUR_US), WHICH_NODES)
    assert MISMATCH not in record.report.warnings


@pytest.mark.parametrize("tail", ["", ",", ",x", ",x3005", ",x3005c0s9b1", ",x3005c0s9b1n"])
def test_wherever_a_list_is_cut_no_part_of_a_name_becomes_a_node(tail):
    location = location_of(",".join(X[:3]) + tail, 8)
    assert location.nodes == tuple(X[:3])
    assert location.is_cut


def test_a_name_at_the_cut_counts_if_it_is_surely_whole():
    assert location_of("x3005c0s1b1n0,x3005c0s2b1n0", 8).nodes == ("x3005c0s1b1n0", "x3005c0s2b1n0")
    assert location_of("cc001,cc002", 8).nodes == ("cc001", "cc002")
    assert location_of("cc001,cc00", 8).nodes == ("cc001",)
    assert location_of("1-4,12", 8).nodes == ("nid00001", "nid00002", "nid00003", "nid00004")


def test_numbers_and_ranges_are_nodes_of_theta():
    location = location_of("0-2,4391", 4)
    assert location.nodes == ("nid00000", "nid00001", "nid00002", "nid04391")
    assert not location.is_cut


@pytest.mark.parametrize(
    "text", ["x3005c0s1b1n0,???,x3005c0s2b1n0", "9-3", "MIR-00C00-33F71-512,cc001", "a b", "0-999999,1-999999x"]
)
def test_junk_is_no_location(text):
    with pytest.raises(ValueError, match=r"is not a node|not a block"):
        location_of(text, 3)


def test_a_location_that_cannot_be_read_leaves_the_number(read):
    record = read(HEADER + job(nodes="3", where="x3005c0s1b1n0,???,x3005c0s2b1n0"))
    assert intervals(record)[0][2:] == (3, ())
    assert LOCATION_UNREADABLE in record.report.warnings
    assert record.nodes == ()


def test_the_name_of_a_block_ends_in_its_nodes():
    assert location_of("MIR-00C00-33F71-1-1024", None).block_size == 1024
    assert location_of("MIR-00000-7BFF1-0100-32768", None).block_size == 32_768
    assert location_of("MIR-40000-73331-512,MIR-40800-73B31-512", None).block_size == 1024


def test_raw_rows_are_read_with_and_without_their_header(read):
    for text in (RAW, ",".join(f'"{name}"' for name in RAW_JOB_COLUMNS) + "\n" + RAW):
        record = read(text)
        assert intervals(record) == [(us("2015-01-01 10:00:00"), us("2015-01-01 11:00:00"), 512, ())]
        assert record.machine_size == 49_152
        rows, _ = next(record.jobs.slices())
        assert (int(rows.limit_end_us[0]), int(rows.job_key[0])) == (us("2015-01-01 11:00:00"), 7)


def test_columns_of_rows_without_a_header_can_be_given(read):
    record = read(
        "5,2024-02-03 10:00:00,2024-02-03 11:00:00,4,cooley\n",
        columns=("COBALT_JOBID", "START_TIMESTAMP", "END_TIMESTAMP", "NODES_USED", "MACHINE_NAME"),
    )
    assert intervals(record)[0][2] == 4
    assert record.machine_size == 126


def test_a_block_larger_than_the_number_of_nodes_is_held_whole_with_a_warning(read):
    text = raw_row(7, "2015-01-01 10:00:00", "2015-01-01 11:00:00", "256.0000", "MIR-08000-3B331-512")
    record = read(text)
    assert intervals(record)[0][2] == 512
    assert BLOCK_DIFFERS in record.report.warnings


def test_the_number_of_nodes_of_the_machine_can_be_given(read):
    assert read(HEADER + job(), n_nodes=496).machine_size == 496
    assert read(HEADER + job(machine="newone")).machine_size is None


def test_jobs_without_a_start_or_an_end(read):
    record = read(HEADER + job(1) + job(2, start="") + job(3, end=""))
    assert skipped(record) == {"never started": 1}
    assert record.n_open == 1


def test_rows_that_cannot_be_read_are_warned_of_and_take_no_other_with_them(read):
    record = read(HEADER + job(1) + job(2, start="25:00:00") + job(3, nodes="two") + 'x,"y\n' + job(4))
    assert skipped(record) == {
        "a time that cannot be read": 1,
        "a number of nodes that cannot be read": 1,
        "a row with another number of columns": 1,
    }
    assert record.report.warnings[UNREADABLE].count == 3
    assert balances(record)


def test_jobs_of_another_machine_and_jobs_too_large_are_left_out_with_a_warning(read):
    record = read(HEADER + job(1) + job(2) + job(3, machine="theta") + job(4, nodes="561"))
    assert skipped(record) == {"a job of another machine": 1, "more nodes than the machine has": 1}
    assert set(record.report.warnings) == {OTHER_MACHINE, TOO_LARGE}


def test_a_running_time_that_is_not_end_minus_start_is_a_warning(read):
    record = read(HEADER + job(1, runtime="3600.0000") + job(2, runtime="1800.0000"))
    assert record.report.warnings[ELAPSED_DIFFERS].count == 1


def test_tasks_of_an_array_have_one_number_and_different_names(read):
    record = read(
        HEADER + job(5, name="5[1].polaris-pbs") + job(5, name="5[2].polaris-pbs") + job(6, name="6.polaris-pbs")
    )
    assert len(intervals(record)) == 3
    assert not record.report.warnings


def test_rows_with_one_number_and_start_are_all_kept_and_warned_of(read):
    record = read(HEADER + job(5) + job(5, end="12:00:00"))
    assert len(intervals(record)) == 2
    assert SEVERAL_TASKS in record.report.warnings


def test_files_of_two_years_that_overlap_are_one_log(read):
    assert len(intervals(read(HEADER + job(5) + job(6), HEADER + job(6) + job(7)))) == 3


def test_another_zone_can_be_given_and_the_running_time_settles_the_hour_that_occurs_twice(read):
    text = HEADER + (
        ",1,polaris,,2024-11-03 00:30:00,2024-11-03 01:30:00,,7200.0,1,\n"
        ",2,polaris,,2024-02-03 10:00:00,2024-02-03 11:00:00,,,1,\n"
    )
    record = read(text, timezone="America/Chicago")
    spans = [end - start for start, end, _, _ in intervals(record)]
    assert sorted(spans) == [3600 * SECOND, 7200 * SECOND]
    assert record.timezone == "America/Chicago"
    with pytest.raises(InputError, match="occurs twice"):
        read(text.replace("7200.0", ""), timezone="America/Chicago")


# ---- outages -----------------------------------------------------------------------------------------------------


def test_maintenance_periods_take_the_whole_machine_down(read):
    record = read(RAW, "2015-01-05 15:00:03,2015-01-05 23:00:00\n")
    (outage,) = record.outages
    assert (outage.state, outage.nodes) == (NodeState.DOWN, None)
    assert (outage.start_us, outage.end_us) == (us("2015-01-05 15:00:03"), us("2015-01-05 23:00:00"))
    assert record.source_format == "maintenance periods + alcf jobs"


def test_outages_alone_say_what_else_is_needed(read):
    with pytest.raises(InputError, match="the files have no jobs: maintenance periods") as caught:
        read("2015-01-05 15:00:03,2015-01-05 23:00:00\n")
    assert "ANL-ALCF-DJC" in caught.value.fix


def status(*rows):
    return "START_TIMESTAMP,END_TIMESTAMP,IS_ALL_MACHINE_DOWN\n" + "".join(row + "\n" for row in rows)


def test_machine_status_is_down_where_all_of_it_is_down(read):
    record = read(
        HEADER + job(),
        status(
            "2024-02-05 14:00:00,2024-02-05 22:00:00,1",
            "2024-02-06 14:00:00,2024-02-06 22:00:00,0",
            "x,y,1",
            "2024-02-06 14:00:00,,perhaps",
        ),
    )
    assert [(outage.start_us, outage.end_us) for outage in record.outages] == [
        (us("2024-02-05 14:00:00"), us("2024-02-05 22:00:00"))
    ]
    assert skipped(record) == {"an outage of a part of the machine": 1, "an outage that cannot be read": 2}
    assert set(record.report.warnings) == {PART_DOWN, OUTAGES_UNREADABLE}
    assert balances(record)


def test_an_outage_without_an_end_lasts_until_the_next_job_starts(read):
    jobs = (
        HEADER
        + job(1)
        + job(2, "08:00:00", "09:30:00")
        + job(3, "12:00:00", "13:00:00")
        + job(4, "10:30:00", "13:00:00")
    )
    record = read(jobs, status("2024-02-03 10:00:00,,1", "2024-02-03 11:00:00,,1", "2024-02-03 20:00:00,,1"))
    assert [(outage.start_us, outage.end_us) for outage in record.outages] == [
        (us("2024-02-03 10:00:00"), us("2024-02-03 10:30:00")),
        (us("2024-02-03 11:00:00"), us("2024-02-03 12:00:00")),
        (us("2024-02-03 20:00:00"), OPEN_END),
    ]
    assert record.report.warnings[END_UNKNOWN].count == 3
    assert balances(record)


def reservation(name, nodes, blocks, state="complete"):
    stamps = ["2015-01-06 10:00:00.000000", "2015-01-06 12:00:00.000000"]
    numbers = ["0", "", "9", "7200", "7200", nodes, "1.0", "1.0"]
    cells = [*stamps, f"R.{name}", "mira", name, *numbers, blocks, "0", state]
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


def test_a_reservation_for_repairs_takes_the_machine_down_if_it_is_all_of_it(read):
    text = (
        reservation("hw.all", "49152.0000", "MIR-00000-7BFF1-49152")
        + reservation("hw.R00", "512.0000", "MIR-08000-3B331-512")
        + reservation("hw.two", "1024.0000", "MIR-40000-73331-512,MIR-40800-73B31-512")
        + reservation("science", "49152.0000", "MIR-00000-7BFF1-49152")
        + reservation("hw.never", "49152.0000", "MIR-00000-7BFF1-49152", "cancelled")
        + reservation("hw.junk", "many", "MIR-00000-7BFF1-49152")
    )
    record = read(RAW, text)
    assert [(outage.state, outage.nodes) for outage in record.outages] == [(NodeState.DOWN, None)]
    assert skipped(record) == {
        "a reservation on unknown nodes": 2,
        "a reservation that is not for repairs": 1,
        "a reservation that was not used": 1,
        "an outage that cannot be read": 1,
    }
    assert record.report.warnings[PART_UNKNOWN].count == 2
    assert record.report.facts["reservations skipped"] == "3,072 node-hours on unknown nodes"
    assert balances(record)
    both = read(RAW, text, reservations="reserved")
    assert [outage.state for outage in both.outages] == [NodeState.DOWN, NodeState.RESERVED]


# ---- the zone ----------------------------------------------------------------------------------------------------


def mondays(zone):
    """Maintenance at 09:00 in Chicago on 40 Mondays, written on the clock of ``zone``."""
    begin = [datetime(2015, 1, 5, 9, tzinfo=ZoneInfo("America/Chicago")) + timedelta(weeks=i) for i in range(40)]
    clocks = [(time.astimezone(UTC), (time + timedelta(hours=6)).astimezone(UTC)) for time in begin]
    stamps = [
        [moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat(" ") for moment in pair] for pair in clocks
    ]
    return "".join(f"{start},{end}\n" for start, end in stamps)


def test_maintenance_at_one_hour_in_chicago_is_evidence_for_utc(read):
    record = read(RAW, mondays("UTC"))
    assert "as UTC, 40 of 40 maintenance periods begin at 09:00" in record.report.facts["time zone"]
    assert not record.report.warnings


def test_maintenance_that_speaks_for_local_time_is_a_warning(read):
    record = read(RAW, mondays("America/Chicago"))
    assert ZONE_UNLIKELY in record.report.warnings
    right = read(RAW, mondays("America/Chicago"), timezone="America/Chicago")
    assert not right.report.warnings


def test_without_maintenance_the_zone_is_said_to_be_assumed(read):
    assert "read as UTC, the zone of" in read(RAW).report.facts["time zone"]


# ---- what is refused, recognised ---------------------------------------------------------------------------------


def test_what_is_no_table_of_alcf_is_refused_with_what_was_expected(read):
    with pytest.raises(InputError, match="not one of ALCF's tables") as caught:
        read("a,b,c\n1,2,3\n")
    assert caught.value.value == "a,b,c"
    assert "reports.alcf.anl.gov" in caught.value.fix


def test_a_table_without_a_usable_job_is_refused(read):
    with pytest.raises(InputError, match="no job in these files can be used: never started"):
        read(HEADER + job(start=""))
    with pytest.raises(InputError, match="there are no rows"):
        read(HEADER)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEADER + job(), "alcf jobs: line 1 has START_TIMESTAMP"),
        (RAW, "alcf jobs: rows have the 27 cells"),
        (status("2024-02-05 14:00:00,2024-02-05 22:00:00,1"), "alcf machine status: line 1 has"),
        (reservation("hw.a", "512.0", "MIR-08000-3B331-512"), "cobalt reservations: rows have the 16 cells"),
        ("2015-01-05 15:00:03,2015-01-05 23:00:00\n", "maintenance periods: every row"),
        ("start,end\n2015-01-05 15:00:03,2015-01-05 23:00:00\n", "maintenance periods: every row"),
    ],
)
def test_each_kind_is_recognised_by_what_it_has(tmp_path, text, reason):
    path = tmp_path / "x"
    path.write_text(text)
    assert (CobaltReader().recognise(LogFile(path)) or "").startswith(reason)


@pytest.mark.parametrize(
    "text",
    ["", "\x00", "job_id,start_time,end_time,num_nodes\n1,2,3,4\n", "JobIDRaw|Start|End|NodeList\n", "; SWF\n1 2 3\n"],
)
def test_other_logs_are_not_recognised(tmp_path, text):
    path = tmp_path / "x"
    path.write_text(text)
    assert CobaltReader().recognise(LogFile(path)) is None


# ---- real files --------------------------------------------------------------------------------------------------


def test_the_public_files_of_mira(shared: Path):
    logs = shared / "data/logs"
    record = read_files(
        logs / "alcf-mira-cobalt-jobs-3rows.csv",
        logs / "alcf-mira-cobalt-reservations-2013-2018.csv.gz",
        logs / "alcf-mira-maintenance-periods.csv",
    )
    assert [held for _, _, held, _ in intervals(record)] == [1024, 4096, 512]
    assert [(end - start) // SECOND for start, end, _, _ in intervals(record)] == [41_406, 21_637, 3_646]
    assert record.report.rows_read == 3 + 935 + 161
    # 161 windows of 75.7 days, and the 13 of 935 reservations that were the whole machine
    windows = [outage for outage in record.outages if outage.nodes is None]
    assert len(windows) == 161 + 13
    days = sum(outage.end_us - outage.start_us for outage in windows[:161]) / (86_400 * SECOND)
    assert days == pytest.approx(75.7, abs=0.05)
    assert skipped(record) == {"a reservation on unknown nodes": 922}
    assert "as UTC, 127 of 161 maintenance periods begin at 09:00" in record.report.facts["time zone"]
    assert set(record.report.warnings) == {PART_UNKNOWN}
    assert balances(record)


def test_the_public_outages_without_jobs_are_refused(shared: Path):
    for name in ("alcf-mira-cobalt-reservations-2013-2018.csv.gz", "alcf-mira-maintenance-periods.csv"):
        with pytest.raises(InputError, match="the files have no jobs"):
            read_files(shared / "data/logs" / name)


def test_only_alcf_files_among_the_public_logs_are_recognised(shared: Path):
    found = [path.name for path in sorted((shared / "data/logs").iterdir()) if CobaltReader().recognise(LogFile(path))]
    assert found == [
        "alcf-mira-cobalt-jobs-3rows.csv",
        "alcf-mira-cobalt-reservations-2013-2018.csv.gz",
        "alcf-mira-maintenance-periods.csv",
    ]


def test_amounts_of_rows_of_another_machine_of_skipped_ones_and_of_running_ones_are_plain(read):
    rows = [
        job(1, nodes="2", where=",".join(X[:2])),
        job(2, "10:00:00", "13:00:00", nodes="4", machine="theta"),
        job(3, "10:00:00", "12:00:00", nodes="9000"),
        job(4, "09:00:00", "", nodes="3", where=""),
        job(5, "09:00:00", "10:30:00", nodes="2", where=""),
        job(6, "09:00:00", "13:00:00", nodes="1", where=X[5]),
    ]
    record = read(HEADER + "".join(rows))
    record.report.complete(record.last_stamp_us, None)
    found = record.report.warnings
    assert {sentence: tally.node_hours for sentence, tally in found.items()} == {
        OTHER_MACHINE: 4 * 3.0,
        TOO_LARGE: 9000 * 2.0,
        WHERE_MISSING: 3 * 4.0 + 2 * 1.5,
    }
    assert found[OTHER_MACHINE].aside
