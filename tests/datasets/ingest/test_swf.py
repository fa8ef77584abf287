"""Logs in the Standard Workload Format."""

import gzip

import numpy as np
import pytest

from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.swf.log import IN_PIECES, NO_START, WAIT_IS_ZERO
from bfreplay.datasets.ingest.swf.machine import NOT_WHOLE, PARTLY_FILLED, most_at_once
from bfreplay.datasets.ingest.swf.reader import CLEANED, SUBMIT_IS_START, WAIT_BESIDE_NOTE, SwfReader
from bfreplay.errors import InputError

HEADER = "; Version: 2.2\n; UnixStartTime: 1000\n; MaxNodes: 4\n; MaxProcs: 8\n"


def row(job=1, submit=0, wait=0, run=10, procs=2, requested=-1, status=1, extra=""):
    return f"{job} {submit} {wait} {run} {procs} -1 -1 {requested} -1 -1 {status} 1 1 -1 -1 -1 -1 -1{extra}\n"


def read(tmp_path, *texts, name="log.swf", **options):
    files = []
    for i, text in enumerate(texts):
        path = tmp_path / (name if not i else f"{i}-{name}")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        files.append(LogFile(path))
    record = ScheduleRecord()
    SwfReader().read(files, record, ReadOptions(**options))
    assert record.report.rows_read == sum(record.report.kept.values()) + record.report.rows_skipped
    return record


def jobs_of(record):
    """Start and end in seconds, nodes held: sorted."""
    rows = [
        (int(s) // 10**6, int(e) // 10**6, int(c))
        for part, _ in record.jobs.slices()
        for s, e, c in zip(part.start_us, part.end_us, part.count, strict=True)
    ]
    return sorted(rows)


def skipped(record):
    return {reason: tally.count for reason, tally in record.report.skipped.items()}


def warnings(record):
    return {sentence: tally.count for sentence, tally in record.report.warnings.items()}


def test_a_job_starts_after_its_wait_and_holds_its_nodes_for_its_running_time(tmp_path):
    record = read(tmp_path, HEADER + row(submit=100, wait=20, run=30, procs=6))
    assert jobs_of(record) == [(1120, 1150, 3)]
    assert (record.machine_size, record.time_origin, record.source_format) == (4, "epoch", "swf")
    assert not record.report.warnings


def test_times_without_a_unix_start_count_from_1970(tmp_path):
    record = read(tmp_path, "; MaxNodes: 4\n; MaxProcs: 4\n" + row(submit=5))
    assert jobs_of(record) == [(5, 15, 2)]
    assert record.time_origin == "relative"


def test_a_unix_start_of_zero_is_none(tmp_path):
    assert read(tmp_path, HEADER.replace("1000", "0") + row()).time_origin == "relative"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"wait": -1}, "wait is missing"),
        ({"submit": -1}, "submit time is missing"),
        ({"run": -1}, "run time is missing"),
        ({"run": 0}, "ran no time"),
        ({"procs": 0}, "no processors"),
        ({"procs": -1}, "no processors"),
        ({"procs": -1, "requested": 2, "status": 5}, "no processors"),
        ({"procs": 1 << 31}, "more processors than a machine has"),
        ({"submit": 300_000_000_000}, "a time outside the calendar"),
        ({"status": 3}, "a piece of a job that was stopped and continued"),
    ],
)
def test_what_is_no_interval_is_skipped_by_reason_with_its_line(tmp_path, fields, reason):
    record = read(tmp_path, HEADER + row(job=7) + row(job=8, **fields))
    assert skipped(record) == {reason: 1}
    (example,) = record.report.skipped[reason].examples
    assert (example.line, example.value) == (6, row(job=8, **fields).strip())
    assert len(jobs_of(record)) == 1


def test_all_rows_of_a_reason_are_counted_and_three_are_shown(tmp_path):
    record = read(tmp_path, HEADER + row() + row(run=0) * 5)
    assert skipped(record) == {"ran no time": 5}
    assert [example.line for example in record.report.skipped["ran no time"].examples] == [6, 7, 8]


@pytest.mark.parametrize("status", [0, 1, 5, -1])
def test_the_status_does_not_say_who_ran(tmp_path, status):
    record = read(tmp_path, HEADER + row(status=status))
    assert len(jobs_of(record)) == 1
    assert record.report.facts["jobs by status (not used to tell who ran)"] == {str(status): 1}


def test_requested_processors_stand_in_for_unknown_ones(tmp_path):
    record = read(tmp_path, HEADER + row(procs=-1, requested=4))
    assert jobs_of(record) == [(1000, 1010, 2)]
    assert record.report.facts["jobs whose processors are those requested, as those in use are unknown"] == 1


def test_jobs_that_ran_without_a_wait_are_a_warning_among_others_that_have_one(tmp_path):
    record = read(tmp_path, HEADER + row() + row(wait=-1))
    assert warnings(record) == {NO_START: 1}


def test_a_log_in_which_no_job_has_a_wait_is_refused_with_the_way_in(tmp_path):
    with pytest.raises(InputError, match="no job in this log has a waiting time") as caught:
        read(tmp_path, HEADER + row(wait=-1) * 3)
    assert "--missing-wait-is-zero" in str(caught.value)
    assert "log.swf" in str(caught.value)


def test_on_request_jobs_start_when_they_were_submitted(tmp_path):
    record = read(tmp_path, HEADER + row(submit=50, wait=-1) + row(submit=60, wait=5), missing_wait_is_zero=True)
    assert jobs_of(record) == [(1050, 1060, 1), (1065, 1075, 1)]
    assert warnings(record) == {WAIT_IS_ZERO: 1}


def test_pieces_of_a_job_are_left_to_its_summary_row(tmp_path):
    record = read(tmp_path, HEADER + row(run=30) + row(run=10, status=2) + row(submit=-1, run=20, status=3))
    assert jobs_of(record) == [(1000, 1030, 1)]
    assert warnings(record) == {IN_PIECES: 2}


def test_processors_that_fill_no_whole_node_are_rounded_up_and_warned_of(tmp_path):
    record = read(tmp_path, HEADER + row(job=1, procs=3) + row(job=2, procs=4))
    assert [count for *_, count in jobs_of(record)] == [2, 2]
    assert warnings(record) == {PARTLY_FILLED: 1}


def test_nodes_of_several_sizes_give_each_job_its_share_of_the_machine(tmp_path):
    # 7 processors in 4 nodes: all of them are all nodes, 2 of them are 8/7 nodes
    text = HEADER.replace("MaxProcs: 8", "MaxProcs: 7") + row(job=1, procs=7) + row(job=2, procs=2)
    record = read(tmp_path, text)
    assert [count for *_, count in jobs_of(record)] == [2, 4]
    assert warnings(record) == {NOT_WHOLE: 1}


def test_options_decide_over_the_header(tmp_path):
    record = read(tmp_path, HEADER + row(procs=8), n_nodes=3, procs_per_node=4)
    assert (record.machine_size, jobs_of(record)) == (3, [(1000, 1010, 2)])


def test_the_number_of_nodes_follows_from_max_procs_and_processors_per_node(tmp_path):
    record = read(tmp_path, "; UnixStartTime: 1\n; MaxProcs: 10\n" + row(), procs_per_node=4)
    assert record.machine_size == 3


# 1,700,000,000 s: 2023-11-14
@pytest.mark.parametrize("start", ["; UnixStartTime: 0", "; UnixStartTime: -1", "; UnixStartTime: 1700000000", ";"])
def test_submit_times_since_1970_are_taken_as_they_are(tmp_path, start):
    header = HEADER.replace("; UnixStartTime: 1000", start)
    record = read(tmp_path, header + row(submit=-1) + row(2, submit=1_700_000_000, wait=5))
    assert jobs_of(record) == [(1_700_000_005, 1_700_000_015, 1)]
    assert record.time_origin == "epoch"
    assert "submit times are read as seconds since 1970-01-01 UTC" in record.report.facts["time zone"]


def test_times_years_after_the_start_of_a_log_still_count_from_it(tmp_path):
    text = HEADER.replace("1000", "0") + row(submit=400_000_000) + row(2, submit=1_700_000_000)
    record = read(tmp_path, text)
    assert record.time_origin == "relative"
    assert jobs_of(record)[0] == (400_000_000, 400_000_010, 1)


def test_a_header_number_may_be_followed_by_text(tmp_path):
    record = read(tmp_path, HEADER.replace("4\n", "4 (batch partition; 9 total)\n") + row())
    assert record.machine_size == 4


@pytest.mark.parametrize("value", ["many", "1,024", "4.5", "", "1234567890123", "4 \x01"])
@pytest.mark.parametrize("key", ["MaxNodes", "MaxProcs", "UnixStartTime"])
def test_a_header_number_that_is_none_is_refused_with_its_line(tmp_path, key, value):
    text = f"; Version: 2.2\n; {key}: {value}\n" + HEADER + row()
    with pytest.raises(InputError, match=f"{key} is not a whole number") as caught:
        read(tmp_path, text)
    assert caught.value.row == "line 2"


def test_without_a_header_the_peak_of_processors_helps_to_tell_the_machine(tmp_path):
    # 3 from 0 to 10, 4 from 5 to 15, 2 from 10 on: as one ends the other starts; 90 of 7 x 20 processor-seconds
    with pytest.raises(InputError, match=r"7 processors in use at once \(.*be 36 % idle over the whole") as caught:
        read(tmp_path, row(1, 0, 0, 10, 3) + row(2, 5, 0, 10, 4) + row(3, 10, 0, 10, 2))
    assert "--procs-per-node" in str(caught.value)


def test_the_peak_of_processors_is_that_of_the_jobs_that_are_read(tmp_path):
    submit = 900_000_000
    pieces = row(1, submit, 0, 10, 8, status=2) + row(1, -1, 0, 20, 8, status=3)
    text = row(1, submit, 0, 30, 8) + pieces + row(2, submit, 0, 15, 4) + row(3, -1, 0, 10, 9)
    with pytest.raises(InputError, match=r"12 processors in use at once \(.*would be 17 % idle over the whole"):
        read(tmp_path, text)


def test_a_machine_without_processors_enough_is_refused(tmp_path):
    with pytest.raises(InputError, match="the number of nodes cannot be right"):
        read(tmp_path, HEADER.replace("MaxProcs: 8", "MaxProcs: 3") + row())


def test_comments_may_stand_between_jobs(tmp_path):
    text = HEADER + row(1) + "; Note: the machine was moved\n\n  \t\n;\n" + HEADER + row(2, submit=20)
    assert len(jobs_of(read(tmp_path, text))) == 2


@pytest.mark.parametrize("comment", ["; UnixStartTime: 2000\n", "; MaxNodes: 9\n", "; MaxProcs: 16\n"])
def test_a_header_that_changes_between_jobs_is_refused_with_its_line(tmp_path, comment):
    with pytest.raises(InputError, match="comes after the first job") as caught:
        read(tmp_path, HEADER + row() + comment + row(2))
    assert caught.value.row == "line 6"


def test_a_cleaned_version_is_a_warning_with_the_number_of_jobs_removed(tmp_path):
    note = "; Note: THIS IS A CLEANED VERSION OF THE LOG!\n;   user=1 (30 jobs removed)\n;   job<=2 (1 job removed)\n"
    assert warnings(read(tmp_path, HEADER + note + row())) == {CLEANED: 31}
    assert warnings(read(tmp_path, HEADER + note.split("\n")[0] + "\n" + row())) == {CLEANED: 1}
    assert not warnings(read(tmp_path, HEADER + "; Conversion: uncleaned version\n" + row()))


@pytest.mark.parametrize(("zone", "known"), [("Europe/Stockholm", "Europe/Stockholm"), ("CEST", "UTC")])
def test_the_zone_is_kept_if_it_is_one_and_changes_no_time(tmp_path, zone, known):
    record = read(tmp_path, HEADER + f"; TimeZoneString: {zone}\n" + row())
    assert (record.timezone, jobs_of(record)) == (known, [(1000, 1010, 1)])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 2 3\n", "not 18 columns"),
        (row().rstrip() + " 7\n", "not 18 columns"),
        (row().rstrip() + " -1 1 x\n", "column 19 is not a list of nodes"),
        (row(job="x"), "a field is not a number"),
        (row(run="1e3"), "a field is not a number"),
        (row(run="+3"), "a field is not a number"),
        (row(run="1_0"), "a field is not a number"),
        (row(run="nan"), "a field is not a number"),
        (row(run="１２"), "a field is not a number"),
        (row(wait="-"), "a field is not a number"),
        (row(wait="1" * 13), "a field is not a number"),
        (row(procs="2.5"), "a field is not a number"),
    ],
)
def test_what_is_no_row_is_skipped_and_warned_of_with_its_line(tmp_path, line, reason):
    record = read(tmp_path, HEADER + row() + line + row(2))
    assert (skipped(record), warnings(record)) == ({reason: 1}, {UNREADABLE: 1})
    assert record.report.skipped[reason].examples[0].line == 6
    assert len(jobs_of(record)) == 2


def test_times_may_have_decimals_and_tabs_may_separate(tmp_path):
    text = HEADER + row(submit="1.5", wait="0.25", run="2.5", procs="2.0").replace(" ", "\t").replace("\n", "\r\n")
    ((part, _),) = read(tmp_path, text).jobs.slices()
    assert (part.start_us.tolist(), part.end_us.tolist()) == ([1_001_750_000], [1_004_250_000])


def test_junk_in_columns_that_say_nothing_about_nodes_is_no_matter(tmp_path):
    fields = row(requested="two", status="ok").split()
    fields[5], fields[12] = "2.12", "\x00\udcff"
    text = HEADER.encode() + " ".join(fields).encode("utf-8", "surrogateescape")
    assert jobs_of(read(tmp_path, text)) == [(1000, 1010, 1)]


def test_a_byte_order_mark_and_a_missing_last_newline_are_no_matter(tmp_path):
    record = read(tmp_path, b"\xef\xbb\xbf" + (HEADER + row() + row(2)).rstrip().encode())
    assert record.report.rows_read == 2
    assert record.machine_size == 4


def test_rows_are_the_same_however_the_file_is_cut_into_blocks(tmp_path, monkeypatch):
    lines = [row(i, i, i % 3, 1 + i % 5, 1 + i % 8) if i % 7 else "no row\n" for i in range(200)]
    text = HEADER + "".join(lines)
    whole = read(tmp_path, text)
    blocks = LogFile.blocks
    monkeypatch.setattr(LogFile, "blocks", lambda self: blocks(self, 100))
    cut = read(tmp_path, text)
    assert jobs_of(cut) == jobs_of(whole)
    for record in (cut, whole):
        for tally in record.report.warnings.values():  # a sum of other parts
            tally.node_hours = None if tally.node_hours is None else round(tally.node_hours, 9)
    assert cut.report.to_json() == whole.report.to_json()


def test_a_job_without_a_number_is_not_taken_for_another(tmp_path):
    assert len(jobs_of(read(tmp_path, HEADER + row(job=-1) * 2))) == 2


def test_jobs_of_the_same_number_in_two_files_are_two(tmp_path):
    record = read(tmp_path, HEADER + row(), HEADER.replace("1000", "1000") + row())
    assert len(jobs_of(record)) == 2


def test_the_same_file_twice_is_refused(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(HEADER + row())
    with pytest.raises(InputError, match="given twice"):
        SwfReader().read([LogFile(path), LogFile(path)], ScheduleRecord(), ReadOptions())


def test_logs_of_different_machines_are_not_joined(tmp_path):
    with pytest.raises(InputError, match="machines of different size"):
        read(tmp_path, HEADER + row(), HEADER.replace("MaxNodes: 4", "MaxNodes: 8") + row())


def test_logs_without_a_common_clock_are_not_joined(tmp_path):
    with pytest.raises(InputError, match="count from its own start"):
        read(tmp_path, HEADER + row(), "; MaxNodes: 4\n; MaxProcs: 8\n" + row())


@pytest.mark.parametrize("text", ["JobID|State\n1|COMPLETED\n", "; Version: 2.2\n", "a b c\n" * 2000])
def test_another_format_is_refused_with_what_was_found(tmp_path, text):
    with pytest.raises(InputError, match="no row of the Standard Workload Format") as caught:
        read(tmp_path, text)
    assert "18 columns" in str(caught.value)


def test_a_log_in_which_nobody_ran_is_refused_with_the_reasons(tmp_path):
    with pytest.raises(InputError, match="no job of this log can be used") as caught:
        read(tmp_path, HEADER + row(run=0) * 3 + row(run=-1))
    assert "3 x ran no time; 1 x run time is missing" in str(caught.value)


def test_node_lists_of_the_extended_form_are_read(tmp_path):
    extra = " {12,12,007} queue 1:ppn=3"
    record = read(tmp_path, "; UnixStartTime: 1000\n; MaxNodes: 30\n" + row(procs=3, extra=extra))
    ((part, _),) = record.jobs.slices()
    assert [record.nodes[i] for i in part.nodes] == ["12", "7"]
    assert (part.count.tolist(), record.machine_size, record.report.warnings) == ([2], 30, {})
    assert record.source_format == "swf with node lists"


def test_a_node_list_of_another_length_is_believed_and_warned_of(tmp_path):
    record = read(tmp_path, "; UnixStartTime: 1000\n" + row(procs=9, extra=" {1,2} q r"))
    assert jobs_of(record) == [(1000, 1010, 2)]
    assert list(warnings(record)) == [
        "column 19 lists another number of processors than column 5: the listed nodes are used"
    ]


def test_a_log_with_node_lists_needs_no_machine(tmp_path):
    assert read(tmp_path, row(extra=" {1,2} q r") * 2).machine_size is None


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (HEADER + row(), True),
        (HEADER, True),
        (row() * 3, True),
        (row(extra=" {1,2} q r") * 3, True),
        (row(), False),
        ("; just a comment\n", False),
        (HEADER + "JobID|State\n", False),
        ("a " * 18 + "\n", False),
        ("JobID|State\n1|COMPLETED\n", False),
        ("11/01/2017 00:00:01;E;1.server;start=1 end=2\n" * 3, False),
        ('{"jobs": []}', False),
        ("job_id,starting_time,finish_time,allocated_resources\n1,0,1,0\n", False),
        (b"\x00\xff" * 100, False),
    ],
)
def test_the_format_is_recognised_by_its_comments_or_rows(tmp_path, text, is_one):
    path = tmp_path / "log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert (SwfReader().recognise(LogFile(path)) is not None) == is_one


def test_a_compressed_log_is_read_as_it_is(tmp_path):
    assert jobs_of(read(tmp_path, gzip.compress((HEADER + row()).encode()))) == [(1000, 1010, 1)]


# ---- real logs ---------------------------------------------------------------------------------------------------


def real(shared, name, **options):
    record = ScheduleRecord()
    SwfReader().read([LogFile(shared / "data" / "logs" / name)], record, ReadOptions(**options))
    assert record.report.rows_read == record.report.kept["job intervals"] + record.report.rows_skipped
    assert UNREADABLE not in record.report.warnings
    return record


def most_nodes(record):
    """Nodes held at once, at most."""
    return most_at_once(record.jobs)


def test_kth_has_its_jobs_and_nodes(shared):
    record = real(shared, "KTH-SP2-1996-2.1-cln.swf.gz")
    assert (record.report.rows_read, record.report.kept["job intervals"], record.machine_size) == (27_992, 27_992, 100)
    assert (most_nodes(record), record.timezone) == (103, "Europe/Stockholm")


def test_sdsc_blue_has_its_jobs_and_whole_nodes_of_eight(shared):
    record = real(shared, "SDSC-BLUE-2000-4.2-cln.swf.gz")
    assert (record.report.rows_read, record.report.kept["job intervals"], record.machine_size) == (
        243_306,
        223_637,
        144,
    )
    assert skipped(record) == {"run time is missing": 10_744, "ran no time": 26, "no processors": 8_899}
    assert PARTLY_FILLED not in record.report.warnings
    assert most_nodes(record) == 1544 // 8


def test_curie_has_its_jobs_and_its_nodes_of_several_sizes_are_hardly_overbooked(shared):
    record = real(shared, "CEA-Curie-2011-2.1-cln.swf.gz")
    assert (record.report.rows_read, record.report.kept["job intervals"], record.machine_size) == (
        312_826,
        295_540,
        5_544,
    )
    assert skipped(record) == {"ran no time": 17_286}
    assert NOT_WHOLE in record.report.warnings
    assert most_nodes(record) == 5_552


def test_thunder_is_refused_until_missing_waits_are_allowed(shared):
    with pytest.raises(InputError, match=r"no job in this log has a waiting time.*121,039"):
        real(shared, "LLNL-Thunder-2007-1.1-cln.swf.gz")
    record = real(shared, "LLNL-Thunder-2007-1.1-cln.swf.gz", missing_wait_is_zero=True)
    assert (record.report.rows_read, record.machine_size) == (121_039, 1_002)
    assert record.report.warnings[WAIT_IS_ZERO].count == record.report.kept["job intervals"] == 113_613


def test_metacentrum_without_a_header_needs_to_be_told_the_machine(shared):
    with pytest.raises(InputError, match=r"604 processors in use at once \(.*would be 57 % idle"):
        real(shared, "METACENTRUM-2009-2.swf.gz")
    record = real(shared, "METACENTRUM-2009-2.swf.gz", n_nodes=604, procs_per_node=1)
    assert (record.report.rows_read, record.report.kept["job intervals"], most_nodes(record)) == (103_656, 99_944, 604)
    assert record.time_origin == "relative"


def test_real_logs_of_other_formats_are_not_taken_for_this_one(shared):
    names = [
        path.name
        for path in sorted((shared / "data" / "logs").iterdir())
        if SwfReader().recognise(LogFile(path)) is not None
    ]
    assert len(names) == 5
    assert all(name.endswith(".swf.gz") for name in names)


def test_starts_of_a_real_log_are_those_of_a_plain_reading(shared):
    path = shared / "data" / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz"
    with gzip.open(path, "rt") as stream:
        fields = np.array([[int(v) for v in line.split()[:5]] for line in stream if not line.startswith(";")])
    expected = 843_480_031 + fields[:, 1] + fields[:, 2]
    found = np.concatenate([part.start_us for part, _ in real(shared, path.name).jobs.slices()])
    assert np.array_equal(np.sort(expected) * 1_000_000, found)


NOTES = [
    "; Note: There is no information on wait times - the given submit\n;       times are actually start times\n",
    "; Note: submit times are start times\n",
    "; Note: the submit field is in fact the start time of the job\n; Note: something else\n",
    "; Information: Submission times are really the starting times.\n",
    "; Note: the submit time was set to the start time\n",
    "; Note: start times are used as submit times\n",
    "; Note: no waits (submit=start)\n",
]


@pytest.mark.parametrize("note", NOTES)
def test_a_note_that_submit_times_are_start_times_is_taken_and_quoted(tmp_path, note):
    record = read(tmp_path, HEADER + note + row(submit=50, wait=-1) + row(2, submit=60, wait=-1))
    assert [start for start, *_ in jobs_of(record)] == [1050, 1060]
    assert warnings(record) == {}
    assert "start" in record.report.facts[SUBMIT_IS_START].lower()
    assert "Version" not in record.report.facts[SUBMIT_IS_START]


@pytest.mark.parametrize(
    "note",
    [
        "",
        "; Note: submit times are not start times\n",
        "; Note: submit times are missing\n; Note: start times are as given\n",
        "; Note: the submit time is before the queue was open\n",
        "; Note: submit times are missing for jobs that start before 1996\n",
        "; Note: Submit time is known only since start of accounting\n",
        "; Note: Submit time is always before the start time\n",
        "; Note: submit times are the start times of the script\n",
    ],
)
def test_without_such_a_note_waiting_times_are_needed(tmp_path, note):
    with pytest.raises(InputError, match="no job in this log has a waiting time"):
        read(tmp_path, HEADER + note + row(submit=50, wait=-1))


def test_amounts_are_the_node_hours_of_the_rows(tmp_path):
    hour = 3_600
    text = HEADER + row(1, run=2 * hour, procs=3) + row(2, wait=-1, run=3 * hour, procs=4)
    text += row(3, run=hour, procs=2, status=2) + row(4, run=hour, procs=8, status=3)
    found = read(tmp_path, text).report.warnings
    assert found[NO_START].node_hours == pytest.approx(2 * 3)
    assert found[IN_PIECES].node_hours == pytest.approx(1 + 4)
    assert found[PARTLY_FILLED].node_hours == pytest.approx(0.5 * 2)  # three processors are one and a half nodes
    found = read(tmp_path, text, missing_wait_is_zero=True).report.warnings
    assert found[WAIT_IS_ZERO].node_hours == pytest.approx(2 * 3)


def test_removed_jobs_count_as_the_median_of_those_that_stayed_and_the_mean_is_told(tmp_path):
    note = "; Note: THIS IS A CLEANED VERSION OF THE LOG!\n;   user=1 (30 jobs removed)\n"
    hour = 3_600
    rows = [row(k, submit=k, run=run * hour, procs=2) for k, run in enumerate((1, 1, 1, 2, 95))]
    found = read(tmp_path, HEADER + note + "".join(rows)).report.warnings[CLEANED]
    assert (found.node_hours, found.is_estimate) == (30.0, True)
    assert "30 node-hours at the median of the others, 600 at their mean" in found.examples[0].value
    unknown = read(tmp_path, HEADER + note.split("\n")[0] + "\n" + row()).report.warnings[CLEANED]
    assert (unknown.node_hours, unknown.why) == (None, "the log does not tell how many")


def test_a_waiting_time_beside_such_a_note_is_a_warning(tmp_path):
    record = read(
        tmp_path, HEADER + NOTES[1] + row(submit=50, wait=30) + row(2, submit=60, wait=-1), missing_wait_is_zero=True
    )
    assert [start for start, *_ in jobs_of(record)] == [1060, 1080]
    assert warnings(record) == {WAIT_BESIDE_NOTE: 1}
    assert record.report.facts["--missing-wait-is-zero"].startswith("has no effect: the note")
