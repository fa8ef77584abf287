"""A plain reading of Grid Engine's accounting against runs worked by hand, and the package's reader against both."""

import random

import pytest

from bfreplay.datasets.ingest import grid_engine
from bfreplay.datasets.ingest.catalogue import READERS
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from tests.datasets.ingest import grid_engine_plain as plain
from tests.datasets.ingest.grid_engine_files import (
    CLASSIC,
    FILES,
    HARD,
    HOSTILE,
    OLD,
    PARALLEL,
    SLOTS,
    SUMMARY,
    UNIVA,
    UNSETTLED,
    UPGRADED,
    T,
    file,
    line,
    random_accounting,
    slave,
    univa,
)

US = 1_000_000
NAME = "grid-engine"


def runs(text, procs_per_node=None):
    """(job, start, end in seconds after T, hosts in order, number of nodes) of the plain reading."""
    return [
        (job, start_us / US - T, end_us / US - T, " ".join(sorted(hosts)), n_nodes)
        for job, start_us, end_us, hosts, n_nodes in plain.plain_reading(text, procs_per_node)[0]
    ]


def skipped(text, procs_per_node=None):
    return dict(plain.plain_reading(text, procs_per_node)[1])


# ---- the plain reading, by hand ----------------------------------------------------------------------------------


def test_jobs_of_grid_engine_6_are_read_whatever_colons_their_names_have():
    assert runs(CLASSIC) == [
        ("501", 0, 3_600, "n1", 1),
        ("502", 100, 700, "n2", 1),
        ("503", 200, 800, "n3", 1),
        ("505.1", 900, 1_800, "n2", 1),
        ("505.2", 900, 1_500, "n3", 1),
        ("508", 2_000, 2_900, "n2", 1),
        ("509", 2_000, 2_500, "n3", 1),
        ("510", 3_000, 3_400, "n3", 1),
        ("504", 3_600, 4_200, "n1", 1),
        ("505.10", 5_000, 5_600, "n1", 1),
        ("509", 6_000, 9_000, "n1", 1),
    ]
    assert skipped(CLASSIC) == {plain.NOT_STARTED: 2, plain.NO_LENGTH: 1}


def test_a_parallel_job_is_one_run_on_the_hosts_of_all_its_lines():
    assert runs(PARALLEL, SLOTS) == [
        ("601", 0, 1_000, "n1 n2 n3", 3),
        ("603", 0, 950, "n9", 1),
        ("602", 5, 1_000, "n4 n5 n6", 3),
        ("604.1", 1_100, 1_200, "n7 n8", 2),
        ("604.2", 1_100, 1_200, "n7 n9", 2),
        ("605", 2_000, 2_110, "n1 n2", 2),
        ("605", 3_000, 3_500, "n3 n4", 2),
        ("606", 4_000, 4_500, "n5", 1),
        ("607", 5_000, 5_500, "n6 n7", 2),
    ]
    assert skipped(PARALLEL) == {plain.NOT_STARTED: 1, plain.TWICE: 1}
    assert runs(PARALLEL) == runs(PARALLEL, SLOTS)  # lines name the hosts: slots do not count


def test_a_job_of_one_line_has_as_many_nodes_as_its_slots_need():
    assert runs(SUMMARY, SLOTS) == [
        ("701", 0, 7_200, "n1", 4),
        ("702", 60, 3_600, "n5", 1),
        ("703", 60, 3_600, "n6", 2),
        ("704", 60, 3_600, "n7", 1),
    ]
    assert [n_nodes for *_, n_nodes in runs(SUMMARY)] == [None, None, None, 1]
    assert skipped(SUMMARY) == {}


def test_milliseconds_are_told_by_their_size_and_fields_after_the_45_do_no_harm():
    assert plain.plain_reading(UNIVA, SLOTS)[0] == [
        ("801", T * US + 123_000, (T + 3_600) * US + 500_000, frozenset({"n1"}), 1),
        ("802", (T + 10) * US, (T + 20) * US + 1_000, frozenset({"n2"}), 1),
        ("803.4", (T + 30) * US, (T + 90) * US, frozenset({"n3"}), 1),
        ("805", (T + 100) * US, (T + 200) * US + 250_000, frozenset({"n5", "n6"}), 2),
        ("806", (T + 300) * US, (T + 400) * US, frozenset({"n7"}), 2),
        ("807", (T + 500) * US, (T + 600) * US, frozenset({"n8"}), 1),
    ]
    assert skipped(UNIVA) == {plain.NOT_STARTED: 1}


def test_a_file_may_change_to_milliseconds_half_way():
    assert runs(UPGRADED) == [
        ("901", 0, 1_000, "n1", 1),
        ("902", 500, 1_500, "n2", 1),
        ("905", 600, 1_600, "n3", 1),
        ("903", 2_000.75, 3_000, "n1", 1),
        ("904.3", 2_500, 2_600.5, "n3", 1),
    ]


def test_of_a_hostile_file_only_whole_lines_with_a_host_and_a_time_are_kept():
    assert runs(HOSTILE, SLOTS) == [
        ("1001", 0, 1_000, "n1", 1),
        ("1017", 0, 1_000, "n2", 1),
        ("1011", 10, 1_000, "n3", 1),
        ("1012", 20, 1_000, "n4", 1),
        ("1013", 30, 1_000, "n5", 1),
        ("1016", 40, 1_000, "n6", 1),
        ("1018", 60, 1_000, "n8", 1),
        ("1019", 70, 1_000, "n9", 1),
    ]
    assert skipped(HOSTILE) == {plain.NO_RECORD: 19, plain.NO_SUCH_TIME: 3, plain.NO_HOST: 4, plain.BACKWARDS: 1}


def test_what_the_manual_leaves_open_is_decided_so_that_held_nodes_are_not_idle():
    assert runs(UNSETTLED["slaves_without_master"]) == [("1102", 0, 500, "n3", 1), ("1101", 10, 1_000, "n1 n2", 2)]
    assert runs(UNSETTLED["slave_of_no_length"]) == [("1201", 0, 1_000, "n1 n2", 2)]
    assert runs(UNSETTLED["host_unknown"]) == [("1602", 0, 500, "n2", 1)]
    assert runs(UNSETTLED["usage_that_is_no_number"]) == [("1701", 0, 500, "n1", 1)]
    assert runs(UNSETTLED["end_time_0"]) == [("1302", 0, 500, "n2", 1)]
    assert skipped(UNSETTLED["end_time_0"]) == {plain.BACKWARDS: 1}
    assert runs(UNSETTLED["fewer_hosts_than_slots_need"], SLOTS) == [("1401", 0, 1_000, "n1 n2", 4)]
    wide = UNSETTLED["more_slots_than_any_machine"]
    assert (runs(wide, SLOTS), skipped(wide, SLOTS)) == ([("1502", 0, 500, "n2", 1)], {plain.TOO_WIDE: 1})
    assert runs(wide) == [("1501", 0, 500, "n1", None), ("1502", 0, 500, "n2", 1)]


@pytest.mark.parametrize("name", ["a", "a:b", "a:7", "7:7:7", ":", "0:1:2:3", HARD])
@pytest.mark.parametrize("account", ["sge", "x:y", "2024", "a:2024", "a:07:b", "", ":"])
@pytest.mark.parametrize(
    "category", ["NONE", HARD, "-l h_rt=1:00:00", "-l h_rt=1:0:0 ", "", "a:1:1.b:c:2:3", "a:1:1.b:2:c", "a:b:1.c:2:0:0"]
)
def test_any_name_account_and_category_leave_the_job_what_it_is(name, account, category):
    for write, fields in ((line, {}), (line, OLD), (univa, {})):
        texts = {"name": name, "account": account, "category": category}
        master = write(41, "n1", 0, 100, slots=9, task=3, **texts, **fields)
        other = write(41, "n2", 50, 110, slots=9, task=3, slave="1.n2", **texts, **fields)
        assert runs(file(other, master)) == [("41.3", 0, 100, "n1 n2", 2)]


def test_a_number_after_a_colon_in_both_name_and_account_cannot_be_told_from_the_job():
    assert runs(file(line(41, "n1", 0, 100, name="a", account="7:sge"))) == [("7", 0, 100, "n1", 1)]


@pytest.mark.parametrize("write", [line, slave])
@pytest.mark.parametrize("fields", [{}, OLD])
@pytest.mark.parametrize("category", ["NONE", HARD, "-l h_rt=1:00:00"])
def test_a_line_cut_before_maxvmem_is_skipped_wherever_it_is_cut(write, fields, category):
    whole = write(41, "n1", 0, 100, name="a:b", category=category, **fields)
    maxvmem = whole.rindex("1073741824.000000")
    for n_characters in range(2, maxvmem):
        cut = file(whole[:n_characters], line(42, "n2", 0, 100))
        assert (runs(cut), skipped(cut)) == ([("42", 0, 100, "n2", 1)], {plain.NO_RECORD: 1})


def test_a_line_of_44_fields_is_cut_and_a_slave_of_no_length_alone_is_no_run():
    whole = line(41, "n1", 0, 100)
    assert skipped(file(whole.rsplit(":", 1)[0])) == {plain.NO_RECORD: 1}
    assert skipped(file(whole.rsplit(":", 2)[0])) == {}
    assert (runs(file(slave(41, "n1", 5, 5))), skipped(file(slave(41, "n1", 5, 5)))) == ([], {plain.NO_LENGTH: 1})


def test_of_two_runs_of_a_job_a_slave_belongs_to_the_one_that_it_overlaps_most():
    first, second = line(41, "n1", 0, 100, slots=2), line(41, "n3", 100, 300, slots=2)
    assert runs(file(first, slave(41, "n2", 99, 300), second)) == [
        ("41", 0, 100, "n1", None),
        ("41", 100, 300, "n2 n3", 2),
    ]
    assert runs(file(first, slave(41, "n2", 1, 101), second))[0] == ("41", 0, 100, "n1 n2", 2)


def test_the_file_of_the_issue(shared):
    text = (shared / "cases/logs/c01-sge-classic.acct").read_text()
    assert runs(text, SLOTS) == [
        ("501", 60, 7_260, "na01.example", 1),
        ("502", 1_000, 4_600, "na02.example na03.example", 2),
        ("503.7", 8_000, 9_000, "na01.example", 1),
    ]
    assert skipped(text) == {plain.NOT_STARTED: 1}


@pytest.mark.parametrize("seed", range(20))
def test_random_files_have_jobs_of_every_kind_and_no_job_is_on_a_host_twice(seed):
    text = random_accounting(random.Random(seed), 60)
    assert text == random_accounting(random.Random(seed), 60)
    kept, left = plain.plain_reading(text, SLOTS)
    assert len(kept) >= 50
    assert left.keys() <= {plain.NOT_STARTED, plain.NO_RECORD}
    kinds = {("." in job, n_nodes > 1, n_nodes > len(hosts)) for job, _, _, hosts, n_nodes in kept}
    assert {(False, False, False), (True, False, False), (False, True, False), (False, True, True)} <= kinds


# ---- the package's reader ----------------------------------------------------------------------------------------

reads_grid_engine = pytest.mark.skipif(NAME not in READERS.names(), reason=f"the package has no reader {NAME}")


def package_reading(text, path, procs_per_node=None):
    """(start, end in us, hosts, number of nodes) of the package's reader, and how many rows it skipped."""
    path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    record = read_log([path], NAME, ReadOptions(procs_per_node=procs_per_node)).record
    found = []
    for rows, _ in record.jobs.slices():
        for k in range(len(rows)):
            hosts = frozenset(record.nodes[node] for node in rows.nodes[rows.first_node[k] : rows.first_node[k + 1]])
            found.append((int(rows.start_us[k]), int(rows.end_us[k]), hosts, int(rows.count[k])))
    further = record.report.skipped.get(grid_engine.FURTHER)
    return found, record.report.rows_skipped - (further.count if further else 0)


def check_same(text, path, procs_per_node=None):
    """Compare both readings; where the plain one knows no number of nodes, any that its hosts allow will do."""
    found, n_skipped = package_reading(text, path, procs_per_node)
    expected, reasons = plain.plain_reading(text, procs_per_node)
    in_order = sorted(found, key=lambda run: (run[0], run[1], sorted(run[2])))
    plain_order = sorted((run[1:] for run in expected), key=lambda run: (run[0], run[1], sorted(run[2])))
    assert [run[:3] for run in in_order] == [run[:3] for run in plain_order]
    for (*_, hosts, n_found), (*_, n_expected) in zip(in_order, plain_order, strict=True):
        assert n_found == n_expected or (n_expected is None and n_found >= len(hosts))
    assert n_skipped == sum(reasons.values()) - reasons[plain.TWICE]


@reads_grid_engine
@pytest.mark.parametrize("procs_per_node", [None, SLOTS])
@pytest.mark.parametrize("name", FILES)
def test_the_package_reads_these_files_as_the_plain_reading_does(name, procs_per_node, tmp_path):
    check_same(FILES[name], tmp_path / "accounting", procs_per_node)


@reads_grid_engine
@pytest.mark.parametrize("procs_per_node", [None, SLOTS])
@pytest.mark.parametrize("name", UNSETTLED)
def test_the_package_decides_what_the_manual_leaves_open_as_the_plain_reading_does(name, procs_per_node, tmp_path):
    check_same(UNSETTLED[name], tmp_path / "accounting", procs_per_node)


@reads_grid_engine
@pytest.mark.parametrize("seed", range(30))
def test_the_package_reads_random_files_as_the_plain_reading_does(seed, tmp_path):
    text = random_accounting(random.Random(seed), 80)
    check_same(text, tmp_path / "accounting", SLOTS if seed % 3 else None)


@reads_grid_engine
def test_the_package_reads_the_file_of_the_issue_as_the_plain_reading_does(shared, tmp_path):
    check_same((shared / "cases/logs/c01-sge-classic.acct").read_text(), tmp_path / "accounting", SLOTS)
