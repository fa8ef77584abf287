"""PBS accounting: runs that end without an end record."""

import pytest

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.pbs.reader import CUT_END_WARNING, PbsReader
from bfreplay.datasets.ingest.pbs.records import MISSING_DAYS_WARNING
from bfreplay.datasets.ingest.reader import ReadOptions
from tests.datasets.ingest.pbs_records import BOTH, UNREADABLE, T, ended, line, read, runs, skipped, started, warnings


def test_a_rerun_record_with_times_closes_a_run_and_the_next_start_opens_another(tmp_path):
    record = read(
        tmp_path,
        [started(T), ended(T, T + 5, kind="R"), started(T + 11, hosts="n3/0"), ended(T + 11, T + 15, hosts="n3/0")],
    )
    assert runs(record) == [(T, T + 5, BOTH, 2), (T + 11, T + 15, ("n3",), 1)]
    assert not record.report.warnings


@pytest.mark.parametrize("kind", ["R", "A"])
def test_a_bare_rerun_or_abort_closes_the_run_at_its_text_stamp(tmp_path, kind):
    record = read(tmp_path, [started(T), line(T + 50, kind, "7.srv"), started(T + 80), ended(T + 80, T + 90)])
    assert runs(record) == [(T, T + 50, BOTH, 2), (T + 80, T + 90, BOTH, 2)]
    assert not record.report.warnings
    assert "text stamps are -06:00 of UTC" in record.report.facts["time zone"]
    assert "1 ends come from text stamps" in record.report.facts["time zone"]


def test_a_bare_rerun_of_a_job_that_started_before_the_log_is_a_warning(tmp_path):
    record = read(tmp_path, [line(T, "R", "6.srv"), ended(T, T + 60)])
    assert skipped(record) == {"rerun of a job without a start in the log": 1}
    assert len(record.report.warnings) == 1


def day(number, *more):
    """The records of one day: a job of an hour, and more."""
    noon = T + 86_400 * number
    return [ended(noon, noon + 3_600, f"{100 + number}.srv"), *more]


def test_a_day_without_a_file_is_named_and_agrees_with_what_becomes_of_its_jobs(tmp_path):
    lost = started(T + 86_400, "7.srv", "n3/0", more="Resource_List.walltime=06:00:00", stamp=T + 86_400)
    days = [day(0), day(1, lost), day(3), day(4), day(7)]
    record = read(tmp_path, *days)
    assert warnings(record)[MISSING_DAYS_WARNING] == 3
    assert str(record.report.warnings[MISSING_DAYS_WARNING].examples[0]) == "2023-11-16, 2023-11-19 to 2023-11-20"
    (past_limit,) = [sentence for sentence in warnings(record) if "time limit" in sentence]
    assert "runaway" in past_limit
    assert "running" not in past_limit
    assert MISSING_DAYS_WARNING not in warnings(read(tmp_path, day(0), day(1), day(2), day(3)))


def test_files_of_several_days_and_two_files_say_nothing_of_missing_days(tmp_path):
    assert not read(tmp_path, day(0), day(5)).report.warnings
    long = [day(0) + day(3), day(4) + day(6), day(8) + day(9), day(11)]
    assert not read(tmp_path, *long).report.warnings


def test_a_file_that_covers_the_days_of_a_gap_leaves_none(tmp_path):
    assert not read(tmp_path, day(0), day(1) + day(3), day(4), day(5)).report.warnings


def test_a_stamp_of_a_wrong_century_makes_no_missing_days(tmp_path):
    far = line(T + 86_400 * 40_000, "Q", "9.srv")
    assert MISSING_DAYS_WARNING not in warnings(read(tmp_path, day(0), day(1), day(2), [*day(3), far]))


def cut(tmp_path, *lines):
    """Read a log whose last line has no end."""
    path = tmp_path / "cut"
    path.write_text("\n".join(lines))
    record = ScheduleRecord()
    PbsReader().read([LogFile(path, "cut")], record, ReadOptions())
    assert record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped
    assert warnings(record)[CUT_END_WARNING] == 1
    assert record.report.warnings[CUT_END_WARNING].examples[0].line == len(lines)
    return record


def test_a_last_line_without_its_end_is_a_warning_even_if_all_that_is_needed_is_there(tmp_path):
    record = cut(tmp_path, started(T), ended(T, T + 60, more="Exit_status=0"))
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert list(warnings(record)) == [CUT_END_WARNING]


def test_a_cut_inside_the_node_list_makes_no_node(tmp_path):
    good, full = ended(T, T + 60), started(T + 70, "8.srv", "n2/0+n11/0")
    for end in range(full.index("exec_host=") + 10, full.index(" Resource_List")):
        record = cut(tmp_path, good, full[:end])
        assert record.nodes == BOTH
        assert runs(record) == [(T, T + 60, BOTH, 2)]
        assert warnings(record) == {CUT_END_WARNING: 1, UNREADABLE: 1}


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


def test_a_second_start_closes_the_run_before_it_with_a_warning(tmp_path):
    record = read(tmp_path, [started(T), started(T + 30), ended(T + 30, T + 60)])
    assert runs(record) == [(T, T + 30, BOTH, 2), (T + 30, T + 60, BOTH, 2)]
    assert [sentence[:28] for sentence in warnings(record)] == ["a job started again without "]


def test_an_end_record_of_a_later_start_closes_the_open_run_too(tmp_path):
    record = read(tmp_path, [started(T), ended(T + 30, T + 60)])
    assert runs(record) == [(T, T + 30, BOTH, 2), (T + 30, T + 60, BOTH, 2)]
    assert len(record.report.warnings) == 1


def test_the_start_of_the_start_record_is_believed_where_the_end_record_gives_an_earlier_one(tmp_path):
    record = read(tmp_path, [started(T), ended(T - 4_000, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert len(record.report.warnings) == 1


def test_an_end_record_of_an_earlier_run_leaves_the_open_run_alone(tmp_path):
    record = read(tmp_path, [started(T + 30), ended(T, T + 20, stamp=T + 31)])
    assert runs(record) == [(T, T + 20, BOTH, 2), (T + 30, None, BOTH, 2)]


def test_a_start_record_before_an_open_run_is_skipped_with_a_warning(tmp_path):
    record = read(tmp_path, [started(T + 30), started(T), ended(T + 30, T + 60)])
    assert runs(record) == [(T + 30, T + 60, BOTH, 2)]
    assert skipped(record)["start record that comes after a later one of the same job"] == 1
    assert len(record.report.warnings) == 1


def test_a_request_to_delete_ends_nothing(tmp_path):
    asked = line(T + 20, "D", "7.srv", "requestor=ann@login")
    record = read(tmp_path, [started(T), asked, ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert not record.report.warnings
    record = read(tmp_path, [started(T), asked, ended(T, T + 60, "8.srv")])
    assert (T, None, BOTH, 2) in runs(record)
    assert [sentence[:35] for sentence in warnings(record)] == ["deleted jobs never end in the log: "]


def test_an_end_record_that_was_cut_before_its_end_takes_its_stamp(tmp_path):
    cut = line(T + 60, "E", "7.srv", f"start={T} exec_host=n1/0+n2/0 session=4")
    record = read(tmp_path, [started(T), cut])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert [sentence[:23] for sentence in warnings(record)] == ["end records without end"]


def test_a_job_that_gives_back_nodes_holds_them_all_with_a_warning(tmp_path):
    record = read(tmp_path, [started(T), line(T + 9, "u", "7.srv"), line(T + 9, "c", "7.srv"), ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert skipped(record)["update of a running job"] == 2
    assert len(record.report.warnings) == 1


def test_a_checkpoint_of_a_running_job_is_a_warning(tmp_path):
    record = read(tmp_path, [started(T), line(T + 9, "C", "7.srv"), ended(T, T + 60), line(T + 99, "T", "7.srv")])
    assert skipped(record)["checkpoint record"] == 2
    assert list(warnings(record).values()) == [1]


def test_different_nodes_in_start_and_end_record_are_a_warning(tmp_path):
    record = read(tmp_path, [started(T, hosts="n1/0"), ended(T, T + 60, hosts="n2/0")])
    assert runs(record) == [(T, T + 60, ("n2",), 1)]
    assert len(record.report.warnings) == 1


def test_a_run_that_outlasts_its_limit_without_an_end_record_is_a_warning(tmp_path):
    limited = started(T, "1.s", more="Resource_List.walltime=00:01:00")
    assert not read(tmp_path, [limited, ended(T, T + 600)]).report.warnings
    record = read(tmp_path, [limited, ended(T, T + 9_000)])
    assert [sentence[:40] for sentence in warnings(record)] == ["jobs have no end record though their tim"]


def test_an_end_that_is_not_when_its_record_was_written_is_a_warning(tmp_path):
    record = read(tmp_path, [ended(T, T + 60, stamp=T + 300)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert [sentence[:24] for sentence in warnings(record)] == ["end records were written"]


def test_a_record_that_ends_with_its_node_list_is_a_warning_and_a_broken_list_is_left_out(tmp_path):
    cut = line(T, "S", "7.srv", f"start={T} exec_host=n1/0+n")
    record = read(tmp_path, [cut, ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert sum("may have been cut" in sentence for sentence in warnings(record)) == 1
    record = read(tmp_path, [ended(T, T + 60), ended(T, T + 60, "8.srv", "n1/0 +n3/0")])
    assert skipped(record) == {"a node list that cannot be read": 1}
