"""PBS Pro, OpenPBS and TORQUE accounting: runs from start and end records, in any order of files."""

import gzip
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.occupancy.record import MISMATCH, ScheduleRecord
from bfreplay.datasets.occupancy.spool import OPEN_END
from bfreplay.datasets.scheduler_logs.log_file import LogFile, OpenedLog
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.pbs.days import MISSING_DAYS_DOUBT
from bfreplay.datasets.scheduler_logs.pbs.reader import CUT_END_DOUBT, PbsReader
from bfreplay.errors import BfreplayError, InputError

T = 1_700_000_000  # 2023-11-14T22:13:20Z
US = 1_000_000
CST, CDT = -6, -5
UNREADABLE = "rows that cannot be read were left out: their nodes look idle"
AUTUMN = 1_699_167_600  # 2023-11-05T07:00:00Z: at 02:00 -05:00 in Chicago the clock shows 01:00 -06:00 again
SPRING = 1_678_608_000  # 2023-03-12T08:00:00Z: at 02:00 -06:00 in Chicago the clock shows 03:00 -05:00


def line(at, kind, job, text="", offset=CST):
    stamp = datetime.fromtimestamp(at, UTC) + timedelta(hours=offset)
    return f"{stamp:%m/%d/%Y %H:%M:%S};{kind};{job};{text}"


def started(at, job="7.srv", hosts="n1/0+n1/1+n2/0", more="", offset=CST, stamp=None):
    text = f"user=ann queue=batch ctime={at - 9} start={at} exec_host={hosts} Resource_List.ncpus=4 {more}"
    return line(at if stamp is None else stamp, "S", job, text, offset)


def ended(start, end, job="7.srv", hosts="n1/0+n1/1+n2/0", more="", offset=CST, kind="E", stamp=None):
    text = f"user=ann queue=batch ctime={start - 9} start={start} exec_host={hosts} session=4 end={end} {more}"
    return line(end if stamp is None else stamp, kind, job, text, offset)


def read(tmp_path, *files, **options):
    """Read logs, each a list of lines, as files ``0``, ``1``, ..."""
    logs = []
    for i, lines in enumerate(files):
        path = tmp_path / str(i)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
        logs.append(LogFile(path, str(i)))
    record = ScheduleRecord()
    PbsReader().read(logs, record, ReadOptions(**options))
    assert record.lint.rows_read == sum(record.lint.kept.values()) + record.lint.rows_dropped
    return record


def runs(record):
    """(start, end in seconds or None, nodes, count), by start."""
    found = []
    for rows, _ in record.jobs.slices():
        for j in range(len(rows)):
            nodes = rows.nodes[rows.first_node[j] : rows.first_node[j + 1]]
            end = None if rows.end_us[j] == OPEN_END else rows.end_us[j] / US
            found.append((rows.start_us[j] / US, end, tuple(record.nodes[i] for i in nodes), int(rows.count[j])))
    return sorted(found, key=lambda run: (run[0], run[2]))


def doubts(record):
    return {sentence: tally.count for sentence, tally in record.lint.doubts.items()}


def dropped(record):
    return {reason: tally.count for reason, tally in record.lint.dropped.items()}


BOTH = ("n1", "n2")


def test_a_run_goes_from_its_start_record_to_its_end_record(tmp_path):
    record = read(tmp_path, [started(T), ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert not record.lint.doubts
    assert record.source_format == "pbs accounting"
    assert record.lint.facts["outages"].startswith("not in accounting logs")
    assert "--outages FILE" in record.lint.facts["outages"]


def test_an_end_record_alone_makes_a_run(tmp_path):
    assert runs(read(tmp_path, [ended(T, T + 60)])) == [(T, T + 60, BOTH, 2)]


def test_start_and_end_may_lie_in_different_files_named_in_any_order(tmp_path):
    later, earlier = [ended(T, T + 90_000)], [started(T)]
    record = read(tmp_path, later, earlier)
    assert runs(record) == [(T, T + 90_000, BOTH, 2)]
    assert not record.lint.doubts
    assert record.n_open == 0


def test_a_folder_of_compressed_days_is_read_as_one_log(tmp_path):
    folder = tmp_path / "accounting"
    folder.mkdir()
    (folder / "20231115.gz").write_bytes(gzip.compress(f"{ended(T, T + 90_000)}\n".encode()))
    (folder / "20231114").write_text(f"{started(T)}\n")
    record = ScheduleRecord()
    with OpenedLog([folder]) as log:
        PbsReader().read(log.files, record, ReadOptions())
    assert runs(record) == [(T, T + 90_000, BOTH, 2)]


def test_a_day_that_is_read_twice_counts_once(tmp_path):
    day = [started(T), ended(T, T + 60)]
    assert runs(read(tmp_path, day, day)) == [(T, T + 60, BOTH, 2)]


def test_a_job_without_an_end_record_is_running_and_its_limit_is_known(tmp_path):
    record = read(tmp_path, [started(T, more="Resource_List.walltime=01:00:30"), ended(T + 5, T + 60, "8.srv")])
    assert runs(record) == [(T, None, BOTH, 2), (T + 5, T + 60, BOTH, 2)]
    assert record.n_open == 1
    rows = next(record.jobs.slices())[0]
    assert rows.limit_end_us[0] == (T + 3_630) * US
    assert not record.lint.doubts


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("01:30", 90), ("2:00:00", 7_200), ("1:02:00:00", 93_600)])
def test_time_limits_are_read_as_seconds_or_with_colons(tmp_path, text, seconds):
    record = read(tmp_path, [started(T, more=f"Resource_List.walltime={text}")])
    assert next(record.jobs.slices())[0].limit_end_us[0] == (T + seconds) * US


def test_values_in_quotes_may_have_spaces_and_semicolons_and_equals_signs(tmp_path):
    odd = 'account="A; end=5 start=9 exec_host=x/0" Resource_Request_2.0=-L tasks=1:lprocs=1'
    record = read(tmp_path, [started(T, more=odd), ended(T, T + 60, more=odd)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]


@pytest.mark.parametrize(
    ("hosts", "nodes"),
    [
        ("n1/0+n1/1+n2/0", ("n1", "n2")),
        ("c1/0-31+c2/0-7", ("c1", "c2")),
        ("c3/24-27,30", ("c3",)),
        ("n1/0*13+n2/0*13", ("n1", "n2")),
        ("crh65/34", ("crh65",)),
        ("n-01.site.edu/0*4", ("n-01.site.edu",)),
        ("n1", ("n1",)),
    ],
)
def test_nodes_stand_before_the_slash_and_count_once(tmp_path, hosts, nodes):
    assert runs(read(tmp_path, [ended(T, T + 60, hosts=hosts)])) == [(T, T + 60, nodes, len(nodes))]


def test_without_hosts_the_virtual_nodes_tell_the_hosts(tmp_path):
    text = f"start={T} exec_vnode=(n1:ncpus=4:mem=1gb)+(n2[0]:ncpus=4+n2[1]:ncpus=2) end={T + 60}"
    assert runs(read(tmp_path, [line(T + 60, "E", "7.srv", text)])) == [(T, T + 60, BOTH, 2)]


def test_an_end_record_without_hosts_takes_those_of_the_start_record(tmp_path):
    bare = line(T + 60, "E", "7.srv", f"start={T} end={T + 60}")
    assert runs(read(tmp_path, [started(T), bare])) == [(T, T + 60, BOTH, 2)]


def test_a_count_of_chunks_is_no_count_of_nodes_but_torques_count_is(tmp_path):
    record = read(tmp_path, [ended(T, T + 60, more="Resource_List.nodect=5")])
    assert not record.lint.doubts
    record = read(tmp_path, [ended(T, T + 60, more="unique_node_count=2")])
    assert not record.lint.doubts
    record = read(tmp_path, [ended(T, T + 60, more="unique_node_count=3")])
    assert runs(record) == [(T, T + 60, BOTH, 3)]
    assert doubts(record) == {MISMATCH: 1}


def test_parents_of_arrays_are_dropped_and_members_kept(tmp_path):
    record = read(
        tmp_path,
        [started(T, "5[].srv"), started(T, "5[1].srv"), ended(T, T + 60, "5[1].srv"), ended(T, T + 70, "5[].srv")],
    )
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert dropped(record)["array parent"] == 2


def test_records_that_hold_no_nodes_are_counted_by_kind(tmp_path):
    others = [line(T, kind, "7.srv", "x=1") for kind in "QLMPpazrBx"] + [line(T, "D", "7.srv", "requestor=a@b")]
    record = read(tmp_path, [*others, ended(T, T + 60)])
    assert dropped(record) == {
        "queued record": 1,
        "licence record": 1,
        "moved to another server": 1,
        "provisioning record": 2,
        "alteration of a job": 1,
        "suspend or resume record": 2,
        "reservation": 1,
        "other record type": 1,
        "request to delete": 1,
    }
    assert not record.lint.doubts


def test_a_job_that_never_started_is_dropped(tmp_path):
    never = line(T, "E", "9.srv", f"user=a ctime={T} start=0 end={T}")
    record = read(tmp_path, [never, line(T, "A", "8.srv"), ended(T, T + 60)])
    assert dropped(record) == {"never started": 1, "aborted before it started": 1}


# ---- runs that end without an end record ---------------------------------------------------------------------------


def test_a_rerun_record_with_times_closes_a_run_and_the_next_start_opens_another(tmp_path):
    record = read(
        tmp_path,
        [started(T), ended(T, T + 5, kind="R"), started(T + 11, hosts="n3/0"), ended(T + 11, T + 15, hosts="n3/0")],
    )
    assert runs(record) == [(T, T + 5, BOTH, 2), (T + 11, T + 15, ("n3",), 1)]
    assert not record.lint.doubts


@pytest.mark.parametrize("kind", ["R", "A"])
def test_a_bare_rerun_or_abort_closes_the_run_at_its_text_stamp(tmp_path, kind):
    record = read(tmp_path, [started(T), line(T + 50, kind, "7.srv"), started(T + 80), ended(T + 80, T + 90)])
    assert runs(record) == [(T, T + 50, BOTH, 2), (T + 80, T + 90, BOTH, 2)]
    assert not record.lint.doubts
    assert "text stamps are -06:00 of UTC" in record.lint.facts["time zone"]
    assert "1 ends come from text stamps" in record.lint.facts["time zone"]


def test_a_bare_rerun_of_a_job_that_started_before_the_log_is_a_doubt(tmp_path):
    record = read(tmp_path, [line(T, "R", "6.srv"), ended(T, T + 60)])
    assert dropped(record) == {"rerun of a job whose start is not in the log": 1}
    assert len(record.lint.doubts) == 1


def day(number, *more):
    """The records of one day: a job of an hour, and more."""
    noon = T + 86_400 * number
    return [ended(noon, noon + 3_600, f"{100 + number}.srv"), *more]


def test_a_day_without_a_file_is_named_and_agrees_with_what_becomes_of_its_jobs(tmp_path):
    lost = started(T + 86_400, "7.srv", "n3/0", more="Resource_List.walltime=06:00:00", stamp=T + 86_400)
    days = [day(0), day(1, lost), day(3), day(4), day(7)]
    record = read(tmp_path, *days)
    assert doubts(record)[MISSING_DAYS_DOUBT] == 3
    assert str(record.lint.doubts[MISSING_DAYS_DOUBT].examples[0]) == "2023-11-16, 2023-11-19 to 2023-11-20"
    (past_limit,) = [sentence for sentence in doubts(record) if "time limit" in sentence]
    assert "runaway" in past_limit
    assert "running" not in past_limit
    assert MISSING_DAYS_DOUBT not in doubts(read(tmp_path, day(0), day(1), day(2), day(3)))


def test_files_of_several_days_and_two_files_say_nothing_of_missing_days(tmp_path):
    assert not read(tmp_path, day(0), day(5)).lint.doubts
    long = [day(0) + day(3), day(4) + day(6), day(8) + day(9), day(11)]
    assert not read(tmp_path, *long).lint.doubts


def test_a_file_that_covers_the_days_of_a_gap_leaves_none(tmp_path):
    assert not read(tmp_path, day(0), day(1) + day(3), day(4), day(5)).lint.doubts


def test_a_stamp_of_a_wrong_century_makes_no_missing_days(tmp_path):
    far = line(T + 86_400 * 40_000, "Q", "9.srv")
    assert MISSING_DAYS_DOUBT not in doubts(read(tmp_path, day(0), day(1), day(2), [*day(3), far]))


def cut(tmp_path, *lines):
    """Read a log whose last line has no end."""
    path = tmp_path / "cut"
    path.write_text("\n".join(lines))
    record = ScheduleRecord()
    PbsReader().read([LogFile(path, "cut")], record, ReadOptions())
    assert record.lint.rows_read == sum(record.lint.kept.values()) + record.lint.rows_dropped
    assert doubts(record)[CUT_END_DOUBT] == 1
    assert record.lint.doubts[CUT_END_DOUBT].examples[0].line == len(lines)
    return record


def test_a_last_line_without_its_end_is_a_doubt_even_if_all_that_is_needed_is_there(tmp_path):
    record = cut(tmp_path, started(T), ended(T, T + 60, more="Exit_status=0"))
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert list(doubts(record)) == [CUT_END_DOUBT]


def test_a_cut_inside_the_node_list_makes_no_node(tmp_path):
    good, full = ended(T, T + 60), started(T + 70, "8.srv", "n2/0+n11/0")
    for end in range(full.index("exec_host=") + 10, full.index(" Resource_List")):
        record = cut(tmp_path, good, full[:end])
        assert record.nodes == BOTH
        assert runs(record) == [(T, T + 60, BOTH, 2)]
        assert doubts(record) == {CUT_END_DOUBT: 1, UNREADABLE: 1}


def test_a_cut_end_time_is_not_believed_and_the_stamp_of_its_record_is(tmp_path):
    full = ended(T, T + 60)
    for n in range(1, 8):
        record = cut(tmp_path, started(T), full.rstrip()[:-n])
        assert runs(record) == [(T, T + 60, BOTH, 2)]


def test_a_cut_id_ends_no_job(tmp_path):
    record = cut(tmp_path, started(T, "1.s"), started(T + 1, "12.s", "n3/0"), line(T + 50, "R", "1.s").rstrip(";"))
    assert [run[1] for run in runs(record)] == [None, None]
    whole = cut(tmp_path, started(T, "1.s"), started(T + 1, "12.s", "n3/0"), line(T + 50, "R", "1.s"))
    assert [run[1] for run in runs(whole)] == [T + 50, None]


def test_what_stands_inside_quotes_that_were_cut_is_no_attribute(tmp_path):
    text = f'start={T} exec_host=n1/0 x=1 account="A end={T + 5} session=1 B'
    record = cut(tmp_path, ended(T, T + 30, "8.srv"), line(T + 60, "E", "7.srv", text))
    assert (T, T + 60, ("n1",), 1) in runs(record)


def test_every_cut_of_the_last_record_gives_a_run_that_the_whole_one_could_give(tmp_path):
    first, full = ended(T, T + 60), ended(T + 70, T + 90, "8.srv", "n2/0+n11/0", more="Exit_status=0")
    for end in range(1, len(full)):
        record = cut(tmp_path, first, full[:end])
        assert set(runs(record)) <= {(T, T + 60, BOTH, 2), (T + 70, T + 90, ("n2", "n11"), 2)}


def test_a_second_start_closes_the_run_before_it_with_a_doubt(tmp_path):
    record = read(tmp_path, [started(T), started(T + 30), ended(T + 30, T + 60)])
    assert runs(record) == [(T, T + 30, BOTH, 2), (T + 30, T + 60, BOTH, 2)]
    assert [sentence[:28] for sentence in doubts(record)] == ["a job started again without "]


def test_an_end_record_of_a_later_start_closes_the_open_run_too(tmp_path):
    record = read(tmp_path, [started(T), ended(T + 30, T + 60)])
    assert runs(record) == [(T, T + 30, BOTH, 2), (T + 30, T + 60, BOTH, 2)]
    assert len(record.lint.doubts) == 1


def test_the_start_of_the_start_record_is_believed_where_the_end_record_gives_an_earlier_one(tmp_path):
    record = read(tmp_path, [started(T), ended(T - 4_000, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert len(record.lint.doubts) == 1


def test_an_end_record_of_an_earlier_run_leaves_the_open_run_alone(tmp_path):
    record = read(tmp_path, [started(T + 30), ended(T, T + 20, stamp=T + 31)])
    assert runs(record) == [(T, T + 20, BOTH, 2), (T + 30, None, BOTH, 2)]


def test_a_start_record_before_an_open_run_is_dropped_with_a_doubt(tmp_path):
    record = read(tmp_path, [started(T + 30), started(T), ended(T + 30, T + 60)])
    assert runs(record) == [(T + 30, T + 60, BOTH, 2)]
    assert dropped(record)["start record that comes after a later one of the same job"] == 1
    assert len(record.lint.doubts) == 1


def test_a_request_to_delete_ends_nothing(tmp_path):
    asked = line(T + 20, "D", "7.srv", "requestor=ann@login")
    record = read(tmp_path, [started(T), asked, ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert not record.lint.doubts
    record = read(tmp_path, [started(T), asked, ended(T, T + 60, "8.srv")])
    assert (T, None, BOTH, 2) in runs(record)
    assert [sentence[:35] for sentence in doubts(record)] == ["jobs whose deletion was requested n"]


def test_an_end_record_that_was_cut_before_its_end_takes_its_stamp(tmp_path):
    cut = line(T + 60, "E", "7.srv", f"start={T} exec_host=n1/0+n2/0 session=4")
    record = read(tmp_path, [started(T), cut])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert [sentence[:23] for sentence in doubts(record)] == ["end records without end"]


def test_a_job_that_gives_back_nodes_holds_them_all_with_a_doubt(tmp_path):
    record = read(tmp_path, [started(T), line(T + 9, "u", "7.srv"), line(T + 9, "c", "7.srv"), ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert dropped(record)["update of a running job"] == 2
    assert len(record.lint.doubts) == 1


def test_a_checkpoint_of_a_running_job_is_a_doubt(tmp_path):
    record = read(tmp_path, [started(T), line(T + 9, "C", "7.srv"), ended(T, T + 60), line(T + 99, "T", "7.srv")])
    assert dropped(record)["checkpoint record"] == 2
    assert list(doubts(record).values()) == [1]


def test_different_nodes_in_start_and_end_record_are_a_doubt(tmp_path):
    record = read(tmp_path, [started(T, hosts="n1/0"), ended(T, T + 60, hosts="n2/0")])
    assert runs(record) == [(T, T + 60, ("n2",), 1)]
    assert len(record.lint.doubts) == 1


def test_a_run_that_outlasts_its_limit_without_an_end_record_is_a_doubt(tmp_path):
    limited = started(T, "1.s", more="Resource_List.walltime=00:01:00")
    assert not read(tmp_path, [limited, ended(T, T + 600)]).lint.doubts
    record = read(tmp_path, [limited, ended(T, T + 9_000)])
    assert [sentence[:40] for sentence in doubts(record)] == ["jobs have no end record though their tim"]


def test_an_end_that_is_not_when_its_record_was_written_is_a_doubt(tmp_path):
    record = read(tmp_path, [ended(T, T + 60, stamp=T + 300)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert [sentence[:24] for sentence in doubts(record)] == ["end records were written"]


def test_a_record_that_ends_with_its_node_list_is_a_doubt_and_a_broken_list_is_left_out(tmp_path):
    cut = line(T, "S", "7.srv", f"start={T} exec_host=n1/0+n")
    record = read(tmp_path, [cut, ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert sum("may have been cut" in sentence for sentence in doubts(record)) == 1
    record = read(tmp_path, [ended(T, T + 60), ended(T, T + 60, "8.srv", "n1/0 +n3/0")])
    assert dropped(record) == {"a node list that cannot be read": 1}


# ---- text stamps ---------------------------------------------------------------------------------------------------


def test_the_change_to_winter_time_shows_in_the_facts(tmp_path):
    record = read(
        tmp_path,
        [ended(AUTUMN - 90, AUTUMN - 60, "1.s", offset=CDT), ended(AUTUMN - 90, AUTUMN + 4_000, "2.s", offset=CST)],
    )
    facts = record.lint.facts["time zone"]
    assert "text stamps are -05:00 of UTC until 2023-11-05T08:06:40Z, -06:00 after" in facts


@pytest.mark.parametrize("timezone", [None, "America/Chicago"])
@pytest.mark.parametrize(
    ("change", "moment", "before", "after"),
    [
        (AUTUMN, AUTUMN - 100, CDT, CST),
        (AUTUMN, AUTUMN + 100, CDT, CST),
        (SPRING, SPRING - 100, CST, CDT),
        (SPRING, SPRING + 100, CST, CDT),
    ],
)
def test_a_bare_record_at_the_change_of_the_clock_is_settled_by_its_neighbours(
    tmp_path, timezone, change, moment, before, after
):
    def offset(at):
        return before if at < change else after

    lines = [
        started(change - 9_000, offset=before),
        ended(change - 9_500, moment - 70, "1.s", offset=offset(moment - 70)),
        line(moment, "R", "7.srv", offset=offset(moment)),
        ended(change - 9_500, moment + 150, "2.s", offset=offset(moment + 150)),
        ended(change - 9_500, change + 9_000, "3.s", offset=after),
    ]
    record = read(tmp_path, lines, timezone=timezone)
    assert (change - 9_000, moment, BOTH, 2) in runs(record)
    assert not record.lint.doubts


def folded(tmp_path, **options):
    """The record of the end is at 01:30, which came twice, and nothing lies between the two."""
    return read(
        tmp_path,
        [
            started(AUTUMN - 9_000, offset=CDT),
            line(AUTUMN - 1_800, "R", "7.srv", offset=CDT),
            ended(AUTUMN - 9_500, AUTUMN + 9_000, "3.s", offset=CST),
        ],
        **options,
    )


@pytest.mark.parametrize("timezone", [None, "America/Chicago"])
def test_a_bare_record_in_the_repeated_hour_asks_for_a_choice(tmp_path, timezone):
    with pytest.raises(InputError, match="--dst-fold earlier") as error:
        folded(tmp_path, timezone=timezone)
    assert (error.value.file, error.value.row) == ("0", "line 2")
    assert ("--tz America/Chicago is wrong" in error.value.fix) == (timezone is not None)
    for choice, end in (("earlier", AUTUMN - 1_800), ("later", AUTUMN + 1_800)):
        record = folded(tmp_path, timezone=timezone, dst_fold=choice)
        assert (AUTUMN - 9_000, end, BOTH, 2) in runs(record)
        assert len(record.lint.doubts) == 1


def test_without_any_evidence_of_the_zone_a_bare_record_asks_for_it(tmp_path):
    lines = [started(T, stamp=T + 400), line(T + 500, "R", "7.srv")]
    with pytest.raises(InputError, match="--tz") as error:
        read(tmp_path, lines)
    assert (error.value.file, error.value.row) == ("0", "line 2")
    record = read(tmp_path, lines, timezone="America/Chicago")
    assert runs(record) == [(T, T + 500, BOTH, 2)]
    assert record.timezone == "America/Chicago"


def test_later_evidence_settles_an_earlier_bare_record(tmp_path):
    record = read(tmp_path, [started(T, stamp=T + 400), line(T + 500, "R", "7.srv"), ended(T, T + 900, "8.srv")])
    assert (T, T + 500, BOTH, 2) in runs(record)


def test_a_given_zone_that_the_records_contradict_is_a_doubt(tmp_path):
    record = read(tmp_path, [started(T), ended(T, T + 60)], timezone="Europe/Paris")
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert list(doubts(record)) == ["the text stamps are not in the time zone that was given: check --tz"]


def test_a_text_stamp_in_the_skipped_hour_is_dropped_with_a_doubt(tmp_path):
    lines = [started(SPRING - 9_000), line(SPRING + 1_800, "R", "7.srv"), ended(SPRING - 99, SPRING - 50, "8.s")]
    record = read(tmp_path, lines, timezone="America/Chicago")
    assert runs(record) == [(SPRING - 99, SPRING - 50, BOTH, 2)]
    assert any("do not exist in the time zone" in sentence for sentence in doubts(record))


def test_an_unknown_zone_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such time zone"):
        read(tmp_path, [ended(T, T + 60)], timezone="Mars/Base")


def test_records_out_of_order_are_a_doubt_but_not_the_repeated_hour(tmp_path):
    record = read(tmp_path, [ended(T, T + 90_000, "1.s"), ended(T, T + 60, "2.s")])
    assert [sentence[:32] for sentence in doubts(record)] == ["records are not in order of time"]


def test_the_last_text_stamp_tells_how_long_the_log_was_written(tmp_path):
    record = read(tmp_path, [ended(T, T + 60), line(T + 600, "D", "9.srv")])
    assert record.last_stamp_us == (T + 600) * US
    far = "11/14/2093 10:00:00;D;9.srv;"
    assert read(tmp_path, [ended(T, T + 60), far]).last_stamp_us == (T + 60) * US


# ---- reservations --------------------------------------------------------------------------------------------------


def begun(start, end):
    return line(start, "B", "R9.srv", f"owner=root start={start} end={end} nodes=(n1:ncpus=4)+(n3:ncpus=4)")


def outages(record):
    return [
        (one.state, one.start_us / US, one.end_us / US, tuple(record.nodes[i] for i in one.nodes))
        for one in record.outages
    ]


def test_reservations_take_nodes_away_only_if_asked_for(tmp_path):
    lines = [begun(T, T + 600), ended(T, T + 60)]
    assert not read(tmp_path, lines).outages
    record = read(tmp_path, lines, reservations="reserved")
    assert outages(record) == [(NodeState.RESERVED, T, T + 600, ("n1", "n3"))]
    assert record.lint.kept == {"job intervals": 1, "outage intervals": 1}


def test_a_reservation_that_is_removed_early_ends_then(tmp_path):
    lines = [begun(T, T + 600), ended(T, T + 60), line(T + 300, "k", "R9.srv", "requestor=root@srv")]
    assert outages(read(tmp_path, lines, reservations="reserved")) == [(NodeState.RESERVED, T, T + 300, ("n1", "n3"))]


# ---- what cannot be used -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        "half a line",
        "13/40/2023 10:00:00;E;7.srv;start=1 end=2 exec_host=n1/0",
        "11/14/2023 25:00:00;E;7.srv;start=1 end=2 exec_host=n1/0",
        "11/14/2023 10:00:00;EE;7.srv;start=1 end=2",
        "11/14/2023 10:00:00;E;;start=1 end=2",
        "11/14/2023 16:14:00;E;job seven;start=1 end=2",
        ended(T, T + 60, hosts="n1/0+"),
        ended(T, T + 60, hosts="n1/x"),
        ended(T, T + 60, hosts="n*/0"),
        ended(T, "1_700_000_060", stamp=T),
        ended(T, "１７", stamp=T),
        ended(T, "nan", stamp=T),
        ended(T, -5, stamp=T),
        ended(T, T + 400_000, stamp=T + 60),
        ended(T, T + 60, more=f"end={T + 61}"),
        started(T - 400_000, stamp=T),
        line(T, "S", "7.srv", "exec_host=n1/0"),
        line(T + 60, "E", "7.srv", f"ctime={T + 90_000} start={T} end={T + 60} exec_host=n1/0"),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out_with_a_doubt(tmp_path, bad):
    record = read(tmp_path, [started(T, "1.s"), ended(T, T + 30, "1.s"), bad])
    assert runs(record) == [(T, T + 30, BOTH, 2)]
    assert doubts(record) == {UNREADABLE: 1}
    assert record.lint.doubts[UNREADABLE].examples[0].line == 3


def test_an_interval_of_no_length_is_counted_by_the_record(tmp_path):
    record = read(tmp_path, [started(T), ended(T, T), ended(T, T + 5, "8.srv")])
    assert dropped(record)["job of no length"] == 1


def test_a_log_without_any_run_is_refused_with_what_was_found(tmp_path):
    with pytest.raises(InputError, match="queued record: 2") as error:
        read(tmp_path, [line(T, "Q", "7.srv"), line(T, "Q", "8.srv")])
    assert "server_priv" in error.value.fix


def test_the_servers_own_log_is_refused_by_what_it_is(tmp_path):
    with pytest.raises(InputError, match="log of the PBS server") as error:
        read(tmp_path, ["11/14/2023 10:00:00;0100;PBS_Server;Job;7.srv;enqueuing into batch"])
    assert "accounting" in error.value.expected


def test_a_file_of_another_kind_is_refused_by_its_name(tmp_path):
    with pytest.raises(InputError, match="no PBS accounting file") as error:
        read(tmp_path, [ended(T, T + 60)], ["# notes", "read me"])
    assert error.value.file == "1"


def test_it_recognises_its_own_and_nothing_else(tmp_path):
    def reason(text):
        path = tmp_path / "log"
        path.write_text(text)
        return PbsReader().recognise(LogFile(path))

    assert "accounting records" in reason(f"{started(T)}\n{line(T, 'R', '7.srv')}\n")
    for other in (
        "11/14/2023 10:00:00;0100;PBS_Server;Job;7.srv;queued\n",
        "JobID|State|Start|End\n1|COMPLETED|2023-11-14T10:00:00|2023-11-14T11:00:00\n",
        '"JOB_FINISH" "10.1" 1700000000 7 500\n',
        "; UnixStartTime: 0\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n",
        "\x00\xff;S;x",
        "\n",
    ):
        assert reason(other) is None


# ---- a real log ----------------------------------------------------------------------------------------------------


def test_the_sample_of_casper_gives_its_five_runs(shared):
    path = shared / "data/logs/ncar-casper-pbspro-acct-sample.txt"
    record = ScheduleRecord()
    assert PbsReader().recognise(LogFile(path)).startswith("18 of the first 18 lines")
    PbsReader().read([LogFile(path)], record, ReadOptions())
    assert [(run[1] - run[0], len(run[2])) for run in runs(record)] == [(5, 1), (4, 1), (218, 1), (2_016, 1), (23, 1)]
    assert len(record.nodes) == 4
    assert dropped(record) == {"queued record": 8, "start record, its run is known from the end record": 5}
    assert record.lint.kept == {"job intervals": 5}
    assert not record.lint.doubts
    assert "text stamps are -06:00 of UTC" in record.lint.facts["time zone"]


# ---- damage --------------------------------------------------------------------------------------------------------

VALID = [
    line(T - 5, "Q", "7.srv", "queue=batch"),
    started(T, more='account="A B" Resource_List.walltime=01:00:00'),
    started(T + 3, "8[2].srv", "n3/0-3"),
    line(T + 20, "R", "8[2].srv"),
    line(T + 21, "D", "7.srv", "requestor=a@b"),
    started(T + 40, "8[2].srv", "n4/0-3"),
    ended(T, T + 60, more='account="A B" unique_node_count=2'),
    ended(T + 40, T + 90, "8[2].srv", "n4/0-3"),
    begun(T + 50, T + 200),
]
MALFORMED = {
    "a line that is no record",
    "a record without a job's id",
    "times that cannot be read",
    "a node list that cannot be read",
    "times that contradict the record's own text stamp",
}


@st.composite
def damaged(draw):
    """The valid log with a few lines cut, doubled, exchanged or with characters replaced."""
    lines = list(VALID)
    for _ in range(draw(st.integers(1, 4))):
        i = draw(st.integers(0, len(lines) - 1))
        text = lines[i]
        at = draw(st.integers(0, max(0, len(text) - 1)))
        what = draw(st.sampled_from(["replace", "cut", "insert", "double", "swap", "remove"]))
        if what == "replace":
            lines[i] = text[:at] + draw(st.characters(codec="utf-8", exclude_characters="\r\n")) + text[at + 1 :]
        elif what == "insert":
            lines[i] = text[:at] + draw(st.text("0123456789;=/+ []\"'()x", max_size=4)) + text[at:]
        elif what == "cut":
            lines[i] = text[:at]
        elif what == "double":
            lines.insert(i, text)
        elif what == "swap":
            j = draw(st.integers(0, len(lines) - 1))
            lines[i], lines[j] = lines[j], lines[i]
        elif len(lines) > 1:
            del lines[i]
    return lines


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=damaged(), timezone=st.sampled_from([None, "America/Chicago", "UTC"]))
def test_damage_gives_a_record_or_an_error_and_what_is_left_out_changes_nothing_else(tmp_path, lines, timezone):
    options = {"timezone": timezone, "reservations": "reserved"}
    caught = None
    try:
        record = read(tmp_path, lines, **options)
    except InputError as error:
        caught = error
    if caught is not None:
        assert caught.file
        return
    bad = {
        example.line
        for reason in MALFORMED & set(record.lint.dropped)
        for example in record.lint.dropped[reason].examples
    }
    if sum(record.lint.dropped[reason].count for reason in MALFORMED & set(record.lint.dropped)) != len(bad):
        return  # more of a kind than the report names
    assert not bad or UNREADABLE in record.lint.doubts
    numbered = [(number, text) for number, text in enumerate("\n".join(lines).split("\n"), 1) if text.strip()]
    without = read(tmp_path, [text for number, text in numbered if number not in bad], **options)
    assert runs(without) == runs(record)
    assert outages(without) == outages(record)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_end_in_another_error(tmp_path, data):
    content = bytearray("\n".join(VALID).encode())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "log"
    path.write_bytes(content)
    record = ScheduleRecord()
    caught = None
    try:
        PbsReader().recognise(LogFile(path))
        PbsReader().read([LogFile(path)], record, ReadOptions())
    except BfreplayError as error:
        caught = error
    if caught is not None:
        assert str(path) in str(caught)
        return
    assert record.lint.rows_read == sum(record.lint.kept.values()) + record.lint.rows_dropped
