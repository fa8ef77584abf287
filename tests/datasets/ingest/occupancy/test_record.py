"""Input of a record, sorting by its spool, and the rules."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bfreplay.datasets.ingest.occupancy import spool
from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.inventory import node_use
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import MISMATCH, MOST_NODES, ScheduleRecord, machine_nodes
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobIntervals, JobSpool
from bfreplay.datasets.ingest.occupancy.submissions import job_key
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.occupancy.by_the_second import events_by_the_second
from tests.datasets.ingest.occupancy.small_records import S, busy_nodes, listed, plain, tally

# ---- what a record takes --------------------------------------------------------------------------------------------


def test_what_cannot_be_an_interval_is_counted_by_reason():
    record = ScheduleRecord()
    nodes = record.node_ids("a")
    record.add_job(1, 10, 10, nodes, file="log", line=1)
    record.add_job(2, 10, 9, nodes, file="log", line=2)
    record.add_job(3, 10, 10**18, nodes)
    record.add_job(4, -(10**18), 10, nodes)
    record.add_job(5, 0, 10, None, 0)
    record.add_job(6, 0, 10, None, MOST_NODES + 1)
    record.add_job(7, 0, 10, None)
    record.add_outage(NodeState.DOWN, 10, 10, nodes)
    assert {reason: tally.count for reason, tally in record.report.skipped.items()} == {
        "job of no length": 1,
        "job that ends before it starts": 1,
        "job: a time outside the calendar": 2,
        "a job without nodes": 2,
        "a job on more nodes than any machine has": 1,
        "outage of no length": 1,
    }
    assert (record.jobs.n_rows, record.outages, record.report.kept) == (0, [], {})
    record.add_job(8, 0, 10, None, MOST_NODES)
    assert record.jobs.n_rows == 1


@pytest.mark.parametrize(("said", "warnings", "assigned"), [(None, 0, 0), (1, 1, 0), (2, 0, 0), (3, 1, 1)])
def test_the_greater_number_of_nodes_counts_and_a_difference_has_warning(said, warnings, assigned):
    record = ScheduleRecord()
    record.add_inventory("abc")
    record.add_job(1, 0, 10 * S, record.node_ids("ab"), said, file="log", line=9)
    found = record.report.warnings.get(MISMATCH)
    assert (found.count if found else 0, record.n_counted) == (warnings, assigned)
    assert [str(example) for example in found.examples] == [f"log:9: {said} nodes, 2 listed"] if found else True
    built, busy = busy_nodes(record, plain())
    assert busy == [max(2, said or 0)] * 10
    assert (built.events.metadata.allocator is None) == (assigned == 0)


def test_the_record_knows_what_it_spans():
    record = ScheduleRecord()
    record.add_job(1, 10 * S, 30 * S, record.node_ids("a"))
    record.add_job(2, 20 * S, None, record.node_ids("ab"))
    record.add_counted_jobs(np.array([3, 4]), np.array([5, 25]) * S, np.array([40 * S, OPEN_END]), np.array([1, 1]))
    record.add_outage(NodeState.DOWN, 1 * S, 44 * S, record.node_ids("c"))
    record.add_outage(NodeState.DOWN, 46 * S, None, record.node_ids("c"))
    assert (record.first_start_us, record.last_start_us) == (5 * S, 25 * S)
    assert (record.first_end_us, record.last_end_us, record.longest_us) == (30 * S, 40 * S, 35 * S)
    assert (record.last_stamp_us, record.n_open, record.n_counted) == (40 * S, 2, 2)
    use = node_use(record, OccupancyRules(), 46 * S)
    assert use.first_us.tolist() == [10 * S, 20 * S, OPEN_END]
    assert use.last_us.tolist() == [OPEN_END, OPEN_END, -OPEN_END]
    assert use.jobs_on.tolist() == [2, 1, 0]
    assert record.report.kept == {"job intervals": 4, "outage intervals": 2}


def test_many_nodes_are_seen_each():
    record = ScheduleRecord()
    nodes = [f"n{i}" for i in range(1_025)]
    record.add_job(1, 0, 10 * S, record.node_ids(nodes[:1_024]))
    record.add_job(2, 5 * S, 20 * S, record.node_ids(nodes))
    use = node_use(record, OccupancyRules(), 20 * S)
    assert (use.first_us.tolist(), use.last_us.tolist()) == ([0] * 1_024 + [5 * S], [20 * S] * 1_025)


def test_coverage_of_several_files_is_from_the_first_to_the_last():
    record = ScheduleRecord()
    for start, end in ((20, 30), (10, 15), (12, 50), (20, 25)):
        record.covers(start, end, "sampled")
    assert (record.coverage.start_us, record.coverage.end_us) == (10, 50)


def test_made_up_names_are_no_names_of_the_log():
    record = ScheduleRecord()
    record.node_ids(["unlisted0001", "cn1"])
    record.set_machine_size(4)
    assert list(machine_nodes(record)) == ["unlisted0001", "cn1", "unlisted_0001", "unlisted_0002"]
    record = ScheduleRecord()
    record.set_machine_size(2)
    assert list(machine_nodes(record)) == ["n0001", "n0002"]


def test_a_machine_said_to_be_smaller_than_its_list_has_warning():
    record = listed([(0, 10 * S, "a"), (0, 20 * S, "bc")], inventory=())
    record.set_machine_size(2)
    built = build_events(record, plain())
    assert tally(built, "more nodes than the given size of the machine").examples[0].value == "3 listed, 2 given"
    assert built.events.nodes == ("a", "b", "c")


def test_keys_of_jobs_are_their_numbers_or_differ():
    assert (job_key(12), job_key("12"), job_key("0012")) == (12, 12, 12)
    keys = {job_key(text) for text in ("12_1", "12_2", "12.srv", "12[7].srv", "1" * 18, "")}
    assert len(keys) == 6
    assert all(-(2**63) <= key <= 0 for key in keys)


# ---- the spool ------------------------------------------------------------------------------------------------------


def test_the_known_end_counts_even_if_the_running_one_comes_later():
    for order in ([None, 10 * S], [10 * S, None], [10 * S, 8 * S, None], [None, 8 * S, 10 * S]):
        for run_rows in (1, 100):
            record = ScheduleRecord(spool=JobSpool(run_rows))
            for end_us in order:
                record.add_job("7", 0, end_us, record.node_ids("a"))
            record.add_job("8", 0, 20 * S, record.node_ids("b"))
            built = build_events(record, plain())
            assert events_by_the_second(built.events)["a"] == [NodeState.BUSY] * 10 + [NodeState.IDLE] * 10
            assert built.report.facts["runs that were read twice and count once"] == len(order) - 1
            assert (tally(built, "read twice") is None) == (8 * S not in order)


def test_a_full_list_of_nodes_ends_a_run_too():
    jobs = JobSpool(1_000, 4)
    for i in range(10):
        jobs.add(i, i + 1, OPEN_END, i, 3, np.arange(3, dtype=np.int32))
    pieces = list(jobs.slices())
    assert sum(len(piece) for piece, _ in pieces) == 10
    assert all((np.diff(piece.first_node) == 3).all() for piece, _ in pieces)
    assert jobs._folder is not None
    assert len(list(Path(jobs._folder.name).glob("*.rows"))) == 5


def test_a_start_is_never_split_over_two_pieces(monkeypatch):
    monkeypatch.setattr(spool, "BLOCK_ROWS", 2)
    jobs = JobSpool(5)
    starts = [7] * 9 + [8] + [9] * 6
    for i, start in enumerate(starts):
        jobs.add(start, 20, OPEN_END, i, 1, None)
    pieces = [piece.start_us.tolist() for piece, _ in jobs.slices()]
    assert [start for piece in pieces for start in piece] == starts
    assert all(earlier[-1] < later[0] for earlier, later in pairwise(pieces))
    assert len(pieces) > 1


# ---- rules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["empty_after_s", "min_gap_s", "release_delay_s", "limit_grace_s", "absent_after_s"])
def test_lengths_are_seconds_from_zero_on(column):
    assert getattr(OccupancyRules(**{column: 0}), column) == 0
    for value in (-1e-9, 1e9, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"out of range|not finite") as caught:
            OccupancyRules(**{column: value})
        assert caught.value.column == column


@pytest.mark.parametrize("column", ["assignment", "oversubscription", "shared_nodes", "empty_machine", "window"])
def test_unknown_words_are_refused(column):
    with pytest.raises(InputError, match="unknown") as caught:
        OccupancyRules(**{column: "sometimes"})
    assert (caught.value.column, caught.value.value) == (column, "sometimes")


@pytest.mark.parametrize(("run_rows", "run_nodes"), [(100, 100), (3, 100), (100, 4), (1, 1)])
def test_jobs_added_at_once_lie_in_the_same_runs_as_jobs_added_one_by_one(run_rows, run_nodes):
    start, end, limit = np.array([5, 1, 3, 1, 9]), np.array([6, 9, 4, 2, 11]), np.array([OPEN_END, 12, 5, OPEN_END, 20])
    first_node, nodes = np.array([0, 1, 2, 5, 7, 9]), np.arange(9, dtype=np.int32)
    one_by_one, at_once = (JobSpool(run_rows, run_nodes) for _ in range(2))
    for each in (one_by_one, at_once):
        each.add(2, 3, OPEN_END, 99, 2, np.array([7, 8], np.int32))
    for j in range(5):
        listed = nodes[first_node[j] : first_node[j + 1]]
        one_by_one.add(int(start[j]), int(end[j]), int(limit[j]), j, len(listed), listed)
    eligible, kind = np.full(5, -1), np.zeros(5, np.int64)
    columns = (start, end, limit, np.arange(5), np.diff(first_node), eligible, kind)
    at_once.add_with_nodes(JobIntervals(*columns, first_node, nodes))
    assert at_once.n_rows == one_by_one.n_rows
    assert [run.n_rows for run in at_once._runs] == [run.n_rows for run in one_by_one._runs]
    assert [(str(rows), following) for rows, following in at_once.slices()] == [
        (str(rows), following) for rows, following in one_by_one.slices()
    ]
