"""Units and formats of times in tables, what speaks against a zone, and what messages say of it all."""

import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bfreplay.datasets.ingest.occupancy.spool import OPEN_END
from bfreplay.datasets.ingest.table.open_tables import CUT_END
from bfreplay.datasets.ingest.table.reader import EXPORTS, TableReader
from bfreplay.datasets.ingest.table.table_cells import unit_in_name
from bfreplay.datasets.ingest.table.table_jobs import (
    BACKWARDS,
    BACKWARDS_BY_LESS_THAN_AN_HOUR,
    ELAPSED_DIFFERS,
    NO_NODES,
    NO_START,
    WHOLE_HOURS,
)
from bfreplay.errors import InputError
from tests.datasets.ingest.what_was_read import record_of

SECOND = 1_000_000
GERMAN = "%d.%m.%Y %H:%M:%S"


def read_files(*paths, **options):
    return record_of(TableReader(), *paths, **options)


@pytest.fixture
def read(tmp_path):
    """Write texts as files and read them as one log."""

    def read_texts(*texts, **options):
        paths = [tmp_path / f"{i}.csv" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return read_files(*paths, **options)

    return read_texts


def times(record):
    """(start in s, end in s or None) of all jobs."""
    return [
        (rows.start_us[j] / SECOND, None if rows.end_us[j] == OPEN_END else rows.end_us[j] / SECOND)
        for rows, _ in record.jobs.slices()
        for j in range(len(rows))
    ]


# ---- units -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "cell"),
    [
        ("s", "5400"),
        ("ms", "5400000"),
        ("us", "5400000000"),
        ("ns", "5400000000000"),
        ("min", "90"),
        ("h", "1.5"),
        ("d", "0.0625"),
        ("min", "01:30:00"),
    ],
)
def test_elapsed_time_is_in_the_unit_given(read, unit, cell):
    record = read(f"id,start,ran,nodes\n1,100,{cell},2\n", mapping={"elapsed": f"ran:{unit}"})
    assert times(record) == [(100, 5500)]


def test_a_time_limit_has_a_unit_too(read):
    record = read("id,start,end,nodes,timelimit\n1,1614556800,,2,60\n", mapping={"limit": "timelimit:min"})
    rows, _ = next(record.jobs.slices())
    assert rows.limit_end_us[0] == (1_614_556_800 + 3600) * SECOND


def test_start_and_end_may_be_in_units_of_their_own(read):
    text = "id,t0,t1,nodes\n1,1614556800000,1614556860,2\n"
    record = read(text, mapping={"start": "t0:ms", "end": "t1"})
    assert times(record) == [(1_614_556_800, 1_614_556_860)]
    assert "(in ms, s)" in record.report.facts["time zone"]


@pytest.mark.parametrize(("role", "unit"), [("start", "min"), ("end", "h"), ("elapsed", "weeks"), ("limit", "")])
def test_a_unit_that_a_role_cannot_have_is_refused(read, role, unit):
    with pytest.raises(InputError, match="cannot be in that unit") as caught:
        read("id,start,end,elapsed,limit,nodes\n1,100,160,60,60,2\n", mapping={role: f"{role}:{unit}"})
    assert caught.value.fix == f"--map {role}={role}:s"


def test_a_column_whose_name_ends_like_a_unit_is_that_column(read):
    assert times(read("id,start,ran:min,nodes\n1,100,60,2\n", mapping={"elapsed": "ran:min:s"})) == [(100, 160)]
    with pytest.raises(InputError, match="seem to be in another unit"):
        read("id,start,ran:min,nodes\n1,100,60,2\n", mapping={"elapsed": "ran:min"})


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("dur_min", "min"),
        ("runtimeMinutes", "min"),
        ("Elapsed [h]", "h"),
        ("wall_hrs", "h"),
        ("run ms", "ms"),
        ("elapsedMs", "ms"),
        ("days", "d"),
        ("RUNTIME_SECONDS", "s"),
        ("minimum", None),
        ("elapsed", None),
        ("elapsedraw", None),
        ("wallclock", None),
        ("the", None),
    ],
)
def test_units_are_found_in_names(name, unit):
    assert unit_in_name(name) == unit


@pytest.mark.parametrize("role", ["elapsed", "limit"])
def test_a_number_from_a_column_named_for_another_unit_needs_its_unit(read, role):
    text = "id,start,end,dur_min,nodes\n1,100,3700,{},2\n"
    with pytest.raises(InputError, match="seem to be in another unit") as caught:
        read(text.format("60.0"), mapping={role: "dur_min"})
    assert f"--map {role}=dur_min:min" in caught.value.fix
    assert (caught.value.row, caught.value.column) == ("line 2", "dur_min")
    assert times(read(text.format("01:00:00"), mapping={role: "dur_min"})) == [(100, 3700)]


def test_parquet_numbers_from_such_a_column_need_their_unit_too(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1], "start": [100], "dur_min": [0.5], "nodes": [2]}), path)
    with pytest.raises(InputError, match="seem to be in another unit"):
        read_files(path, mapping={"elapsed": "dur_min"})
    assert times(read_files(path, mapping={"elapsed": "dur_min:min"})) == [(100, 130)]


def test_the_time_unit_is_that_of_start_and_end_and_elapsed_says_its_own(read):
    text = "id,start,elapsed,nodes\n1,100000,60000,2\n"
    with pytest.raises(InputError, match="seem to be in another unit") as caught:
        read(text, time_unit="ms")
    assert "--map elapsed=elapsed:ms" in caught.value.fix
    assert times(read(text, time_unit="ms", mapping={"elapsed": "elapsed:ms"})) == [(100, 160)]


@pytest.mark.parametrize(("cell", "is_warning"), [("1", False), ("1.0", False), ("1.5", False), ("1.50", True)])
def test_a_rounded_running_time_is_as_exact_as_its_last_digit(read, cell, is_warning):
    record = read(f"id,start,end,ran,nodes\n1,100,194,{cell},2\n", mapping={"elapsed": "ran:min"})
    assert (ELAPSED_DIFFERS in record.report.warnings) == is_warning


# ---- formats -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "form", "options"),
    [
        ("01.03.2021 01:00:00", GERMAN, {"timezone": "Europe/Berlin"}),
        ("03/01/2021 12:00:00 AM", "%m/%d/%Y %I:%M:%S %p", {"timezone": "UTC"}),
        ("01.03.2021 01:00:00 +0100", f"{GERMAN} %z", {}),
        ("20210301000000", "%Y%m%d%H%M%S", {"timezone": "UTC"}),
        ("2021-01-03T00:00:00", "%Y-%d-%mT%H:%M:%S", {"timezone": "UTC"}),
    ],
)
def test_times_are_read_in_the_format_given(read, cell, form, options):
    record = read(f"id,start,elapsed,nodes\n1,{cell},60,2\n", time_format=form, **options)
    assert times(record) == [(1_614_556_800, 1_614_556_860)]


def test_a_format_without_an_offset_needs_a_zone(read):
    with pytest.raises(InputError, match="no zone"):
        read("id,start,elapsed,nodes\n1,01.03.2021 01:00:00,60,2\n", time_format=GERMAN)


def test_a_clock_that_is_set_back_is_settled_in_any_format(read):
    text = "id,start,end,elapsed,nodes\n1,31.10.2021 01:30:00,31.10.2021 02:30:00,{},2\n"
    for elapsed in (3600, 7200):
        record = read(text.format(elapsed), time_format=GERMAN, timezone="Europe/Berlin")
        assert [end - start for start, end in times(record)] == [elapsed]
    with pytest.raises(InputError, match="occurs twice"):
        read(text.format(""), time_format=GERMAN, timezone="Europe/Berlin")


def test_with_a_format_a_number_is_a_spoilt_time(read):
    rows = "1,01.03.2021 01:00:00,60,2\n2,1614556800,60,2\n3,2021-03-01T00:00:00Z,60,2\n"
    record = read(f"id,start,elapsed,nodes\n{rows}", time_format=GERMAN, timezone="UTC")
    assert len(times(record)) == 1
    assert record.report.skipped["a time that cannot be read"].count == 2


@pytest.mark.parametrize("form", ["%d.%m. %H:%M", "%d.%m.%Y", "%d.%m.%Y %I:%M", f"{GERMAN} %Z", "%Q", "%", "", "now"])
def test_a_format_that_does_not_settle_the_time_is_refused(read, form):
    with pytest.raises(InputError, match="cannot be read in this format") as caught:
        read("id,start,elapsed,nodes\n1,01.03.2021 01:00:00,60,2\n", time_format=form, timezone="UTC")
    assert caught.value.column == "--time-format"


@pytest.mark.parametrize(
    ("cell", "forms"),
    [
        ("28.02.2021 01:32:06", [GERMAN]),
        ("02/28/2021 01:32:06 AM", ["%m/%d/%Y %I:%M:%S %p"]),
        ("28/02/2021 13:32", ["%d/%m/%Y %H:%M"]),
        ("01/02/2021 13:32", ["%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M"]),
        ("20210228013206", ["%Y%m%d%H%M%S"]),
        ("soon", [GERMAN]),
    ],
)
def test_times_that_cannot_be_read_say_which_can_and_what_to_type(read, cell, forms):
    with pytest.raises(InputError, match="no row of the table can be used") as caught:
        read(f"id,start,elapsed,nodes\n1,{cell},60,2\n", timezone="UTC")
    assert [form for form in forms if f'--time-format "{form}"' not in caught.value.fix] == []
    assert caught.value.fix.count("--time-format") == len(forms)
    assert "2024-10-01T01:32:06Z" in caught.value.expected


# ---- what speaks against a zone ----------------------------------------------------------------------------------


def test_running_times_that_are_whole_hours_off_speak_against_the_zone(read):
    row = "1,2021-10-31 01:30:00,2021-10-31 03:30:00,10800,2\n"  # an hour more in Berlin that night, not in UTC
    text = f"id,start,end,elapsed,nodes\n{row}"
    assert not read(text, timezone="Europe/Berlin").report.warnings
    assert read(text, timezone="UTC").report.warnings[WHOLE_HOURS].count == 1
    assert "--tz" in WHOLE_HOURS


def test_whole_hours_say_nothing_where_the_zone_is_known(read):
    record = read("id,start,end,elapsed,nodes\n1,1614556800,1614564000,10800,2\n")
    assert list(record.report.warnings) == [ELAPSED_DIFFERS]


def test_jobs_that_end_just_before_they_start_speak_against_the_zone(read):
    good = "1,2021-10-30 01:30:00,2021-10-30 03:30:00,2\n"
    text = f"id,start,end,nodes\n{good}2,2021-10-31 02:50:00,2021-10-31 02:10:00,2\n"
    assert read(text, timezone="UTC").report.warnings[BACKWARDS_BY_LESS_THAN_AN_HOUR].count == 1
    assert not read(text, timezone="Europe/Berlin").report.warnings
    assert "--tz" in BACKWARDS_BY_LESS_THAN_AN_HOUR


def test_jobs_that_end_long_before_they_start_are_a_warning_too(read):
    record = read("id,start,end,nodes\n1,100,160,2\n2,9000,160,2\n")
    assert list(record.report.warnings) == [BACKWARDS]


def test_jobs_that_ran_and_lack_a_start_or_nodes_are_warnings(read):
    rows = "2,,160,COMPLETED,c2\n3,,160,CANCELLED,c3\n4,,,FAILED,c4\n5,100,160,COMPLETED,[]\n6,100,100,FAILED,[]\n"
    record = read(f"id,start,end,state,nodelist\n1,100,160,COMPLETED,c1\n{rows}")
    assert {sentence: tally.count for sentence, tally in record.report.warnings.items()} == {NO_START: 1, NO_NODES: 1}
    assert record.report.rows_skipped == 5


# ---- what messages show ------------------------------------------------------------------------------------------


def test_only_columns_that_are_all_but_called_so_are_proposed_and_none_twice(read):
    with pytest.raises(InputError) as caught:
        read("Auftrag;Rechner;Beginn;Ende;Status;Kerne\n1;a;b;c;d;1\n")
    assert caught.value.fix == "name the columns: --map start=Beginn --map end=Ende --map nodes=COLUMN"
    with pytest.raises(InputError) as caught:
        read("id,t,n\n1,100,2\n")
    assert caught.value.fix == "name the columns: --map start=COLUMN --map end=COLUMN --map nodes=COLUMN"


def test_owners_of_csv_are_shown_csv_and_owners_of_parquet_a_query(read, tmp_path):
    text = "id,start,end,nodes\n1,2021-03-01 00:00:00,2021-03-01 01:00:00,2\n"
    messages = []
    for table in (text, "id,start,end,nodes\n", "id,start,end,nodes\n1,,,2\n"):
        with pytest.raises(InputError) as caught:
            read(table)
        messages.append(str(caught.value))
    assert not any("duckdb" in message for message in messages)
    assert "2024-10-01T01:32:06Z" in messages[0]
    assert all("job,start,end,nodes\n" in message for message in messages[1:])
    path = tmp_path / "a.parquet"
    stamps = pa.array([1_614_556_800], pa.timestamp("s"))
    pq.write_table(pa.table({"id": [1], "start": stamps, "end": stamps, "nodes": [2]}), path)
    with pytest.raises(InputError, match="duckdb -c"):
        read_files(path)


def test_the_table_that_how_shows_can_be_made_and_read(tmp_path):
    subprocess.run(["sh", "-c", EXPORTS[0].command], cwd=tmp_path, check=True)
    record = read_files(tmp_path / "jobs.csv")
    assert record.report.kept == {"job intervals": 2}
    assert not record.report.warnings
    assert "--time-format" in EXPORTS[0].gives


def test_a_last_line_without_an_end_is_a_warning(read):
    whole = "id,start,end,nodelist\n1,100,160,cn4\n2,100,160,cn"
    record = read(whole)
    assert record.report.warnings[CUT_END].examples[0].line == 3
    assert not read(f"{whole}\n").report.warnings
