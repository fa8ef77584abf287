"""PBS Pro, OpenPBS and TORQUE accounting: runs from start and end records, in any order of files."""

import gzip

import pytest

from bfreplay.datasets.ingest.log_file import LogFile, OpenedLog
from bfreplay.datasets.ingest.occupancy.schedule import MISMATCH, NOT_IN_INVENTORY, ScheduleRecord
from bfreplay.datasets.ingest.pbs.reader import PbsReader
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.pbs_records import (
    BOTH,
    UNREADABLE,
    US,
    T,
    begun,
    ended,
    line,
    outages,
    read,
    runs,
    skipped,
    started,
    warnings,
)

# ---- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_goes_from_its_start_record_to_its_end_record(tmp_path):
    record = read(tmp_path, [started(T), ended(T, T + 60)])
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert not record.report.warnings
    assert record.source_format == "pbs accounting"
    assert record.report.facts["outages"].startswith("not in accounting logs")
    assert "--outages FILE" in record.report.facts["outages"]


def test_an_end_record_alone_makes_a_run(tmp_path):
    assert runs(read(tmp_path, [ended(T, T + 60)])) == [(T, T + 60, BOTH, 2)]


def test_start_and_end_may_lie_in_different_files_named_in_any_order(tmp_path):
    later, earlier = [ended(T, T + 90_000)], [started(T)]
    record = read(tmp_path, later, earlier)
    assert runs(record) == [(T, T + 90_000, BOTH, 2)]
    assert not record.report.warnings
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
    assert not record.report.warnings


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
    assert not record.report.warnings
    record = read(tmp_path, [ended(T, T + 60, more="unique_node_count=2")])
    assert not record.report.warnings
    record = read(tmp_path, [ended(T, T + 60, more="unique_node_count=3")])
    assert runs(record) == [(T, T + 60, BOTH, 3)]
    assert warnings(record) == {MISMATCH: 1}


def test_parents_of_arrays_are_skipped_and_members_kept(tmp_path):
    record = read(
        tmp_path,
        [started(T, "5[].srv"), started(T, "5[1].srv"), ended(T, T + 60, "5[1].srv"), ended(T, T + 70, "5[].srv")],
    )
    assert runs(record) == [(T, T + 60, BOTH, 2)]
    assert skipped(record)["array parent"] == 2


def test_records_that_hold_no_nodes_are_counted_by_kind(tmp_path):
    others = [line(T, kind, "7.srv", "x=1") for kind in "QLMPpazrBx"] + [line(T, "D", "7.srv", "requestor=a@b")]
    record = read(tmp_path, [*others, ended(T, T + 60)])
    assert skipped(record) == {
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
    assert not record.report.warnings


def test_a_job_that_never_started_is_skipped(tmp_path):
    never = line(T, "E", "9.srv", f"user=a ctime={T} start=0 end={T}")
    record = read(tmp_path, [never, line(T, "A", "8.srv"), ended(T, T + 60)])
    assert skipped(record) == {"never started": 1, "aborted before it started": 1}


# ---- reservations ---------------------------------------------------------------------------------------------------


def test_reservations_take_nodes_away_only_if_asked_for(tmp_path):
    lines = [begun(T, T + 600), ended(T, T + 60)]
    assert not read(tmp_path, lines).outages
    record = read(tmp_path, lines, reservations="reserved")
    assert outages(record) == [(NodeState.RESERVED, T, T + 600, ("n1", "n3"))]
    assert record.report.kept == {"job intervals": 1, "outage intervals": 1}


def test_a_reservation_that_is_removed_early_ends_then(tmp_path):
    lines = [begun(T, T + 600), ended(T, T + 60), line(T + 300, "k", "R9.srv", "requestor=root@srv")]
    assert outages(read(tmp_path, lines, reservations="reserved")) == [(NodeState.RESERVED, T, T + 300, ("n1", "n3"))]


# ---- what cannot be used --------------------------------------------------------------------------------------------


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
def test_a_row_that_cannot_be_read_is_left_out_with_a_warning(tmp_path, bad):
    record = read(tmp_path, [started(T, "1.s"), ended(T, T + 30, "1.s"), bad])
    assert runs(record) == [(T, T + 30, BOTH, 2)]
    assert warnings(record) == {UNREADABLE: 1}
    assert record.report.warnings[UNREADABLE].examples[0].line == 3


def test_an_interval_of_no_length_is_counted_by_the_record(tmp_path):
    record = read(tmp_path, [started(T), ended(T, T), ended(T, T + 5, "8.srv")])
    assert skipped(record)["job of no length"] == 1


def test_a_log_without_any_run_is_refused_with_what_was_found(tmp_path):
    with pytest.raises(InputError, match="queued record: 2") as error:
        read(tmp_path, [line(T, "Q", "7.srv"), line(T, "Q", "8.srv")])
    assert "server_priv" in error.value.fix


def test_the_servers_own_log_is_refused_by_what_it_is(tmp_path):
    with pytest.raises(InputError, match="log of the PBS server") as error:
        read(tmp_path, ["11/14/2023 10:00:00;0100;PBS_Server;Job;7.srv;enqueuing into batch"])
    assert "accounting" in error.value.expected


def test_a_file_of_another_kind_is_refused_by_its_name(tmp_path):
    with pytest.raises(InputError, match="not a PBS accounting file") as error:
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


# ---- a real log -----------------------------------------------------------------------------------------------------


def test_the_sample_of_casper_gives_its_five_runs(shared):
    path = shared / "data/logs/ncar-casper-pbspro-acct-sample.txt"
    record = ScheduleRecord()
    assert PbsReader().recognise(LogFile(path)).startswith("18 of the first 18 lines")
    PbsReader().read([LogFile(path)], record, ReadOptions())
    assert [(run[1] - run[0], len(run[2])) for run in runs(record)] == [(5, 1), (4, 1), (218, 1), (2_016, 1), (23, 1)]
    assert len(record.nodes) == 4
    assert skipped(record) == {"queued record": 8, "start record, its run is known from the end record": 5}
    assert record.report.kept == {"job intervals": 5}
    assert not record.report.warnings
    assert "text stamps are -06:00 of UTC" in record.report.facts["time zone"]


def test_a_reservation_that_leaves_nodes_idle_keeps_what_it_would_take(tmp_path):
    lines = [begun(T, T + 600), ended(T + 700, T + 760)]  # its nodes are known only after it began
    record = read(tmp_path, lines)
    (kept,) = record.reservations
    assert (kept.start_us, kept.end_us) == (T * US, (T + 600) * US)
    assert [record.nodes[i] for i in kept.nodes] == ["n1"]  # no job used n3
    assert skipped(record)["reservation"] == 1


# ---- amounts of warnings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [started(T), line(T + 600, "C", "7.srv"), ended(T, T + 7_200)],
        [started(T), line(T + 600, "c", "7.srv"), ended(T, T + 7_200)],
        [line(T, "S", "7.srv", f"start={T} exec_host=n1/0+n2/0"), ended(T, T + 7_200)],
        [started(T, stamp=T + 300), ended(T, T + 7_200)],
        [ended(T, T + 7_200, stamp=T + 7_500)],
    ],
)
def test_whatever_is_wrong_with_a_run_concerns_its_nodes_and_times(tmp_path, lines):
    others = [ended(T + 9_000, T + 9_000 + 36_000, "9.srv"), ended(T + 50_000, T + 90_000, "10.srv")]
    report = read(tmp_path, [*lines, *others]).report
    assert [tally.node_hours for tally in report.warnings.values()] == [2 * 2.0]


def test_a_run_does_not_get_the_amount_of_an_earlier_run_in_the_same_record(tmp_path):
    lines = [started(T, hosts="n1/0"), ended(T + 3_600, T + 9_000, hosts="m8/0+m9/0")]
    record = ScheduleRecord()
    record.give_inventory(["n1", "n2"])
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    PbsReader().read([LogFile(tmp_path / "log")], record, ReadOptions())
    assert record.report.warnings[NOT_IN_INVENTORY].node_hours == 2 * 1.5
