"""Parts of a machine: which events are left, in descriptions, replays, reruns and beside batch jobs."""

from __future__ import annotations

import pytest

import bfreplay
from bfreplay import JobSet, NodeEvents, NodeState, load_events, replay_log, write_events
from bfreplay.datasets.batch_jobs import load_batch_jobs
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.node_selection import select_nodes, selection_words
from bfreplay.errors import InputError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.runs.saved_inputs import inputs_of
from bfreplay.runs.summary_text import render
from tests.datasets.ingest.slurm_logs import sacct
from tests.replay.tiny import SECOND, job

IDLE, BUSY = NodeState.IDLE, NodeState.BUSY
PARTITIONS = {"batch": ["n0", "n1"], "gpu": ["n1", "n2"]}


def small_log(names=("n0", "n1", "n2")):
    """n0 is idle at 10-40 s, n1 at 20-50 s, n2 at 20-60 s."""
    rows = [(10, 0, IDLE), (20, 1, IDLE), (20, 2, IDLE), (40, 0, BUSY), (50, 1, BUSY), (60, 2, BUSY)]
    times, nodes, states = zip(*rows, strict=True)
    metadata = EventsMetadata(partitions=PARTITIONS if names[0] == "n0" else {})
    time_us = [time * SECOND for time in times]
    return NodeEvents.from_arrays(names, [BUSY] * 3, time_us, nodes, states, 0, 100 * SECOND, metadata)


def rows_of(log):
    return [
        (int(time_us) // SECOND, log.nodes[node], NodeState(state))
        for batch in log.batches(rows=1)
        for time_us, node, state in zip(*batch.columns, strict=True)
    ]


def test_the_nodes_of_a_partition_are_left_with_their_events():
    log = select_nodes(small_log(), partition="gpu")
    assert log.nodes == ("n1", "n2")
    assert rows_of(log) == [
        (0, "n1", BUSY), (0, "n2", BUSY), (20, "n1", IDLE), (20, "n2", IDLE), (50, "n1", BUSY), (60, "n2", BUSY),
    ]  # fmt: skip
    assert log.metadata.partitions == {"batch": ["n1"], "gpu": ["n1", "n2"]}
    assert log.selection == {"partition": "gpu"}


def test_lists_keep_nodes_or_leave_them_out_and_parts_have_parts(tmp_path):
    assert select_nodes(small_log(), only_nodes="n[0,2]").nodes == ("n0", "n2")
    assert select_nodes(small_log(), without="n1").nodes == ("n0", "n2")
    names = tmp_path / "names.txt"
    names.write_text("n0\nn2\n")
    from_file = select_nodes(small_log(), only_nodes=str(names))
    assert (from_file.nodes, from_file.selection) == (("n0", "n2"), {"only_nodes": "n0,n2"})
    part = select_nodes(select_nodes(small_log(), without="n0"), partition="batch")
    assert rows_of(part) == [(0, "n1", BUSY), (20, "n1", IDLE), (50, "n1", BUSY)]
    assert part.selection == {"without": "n0", "partition": "batch"}
    twice = select_nodes(select_nodes(small_log(), without="n0"), without="n1")
    assert (twice.nodes, twice.selection) == (("n2",), {"only_nodes": "n2"})
    inside = select_nodes(small_log().between(45 * SECOND, 55 * SECOND), only_nodes="n1")
    assert rows_of(inside) == [(45, "n1", IDLE), (50, "n1", BUSY)]


def test_a_node_stands_for_its_gpus():
    log = small_log(("cn1/gpu0", "cn1/gpu1", "cn2/gpu0"))
    assert select_nodes(log, only_nodes="cn1").nodes == ("cn1/gpu0", "cn1/gpu1")
    assert select_nodes(log, without="cn1/gpu0").nodes == ("cn1/gpu1", "cn2/gpu0")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"partition": "gpus"}, r"the log has no such partition\n.*\n.*\n.*'gpus'\n.*batch, gpu\n.*did you mean 'gpu'"),
        ({"only_nodes": "n[0-3]"}, r"--only-nodes: the log has no such node\n.*\n.*\n.*'n3'"),
        ({"without": "n[0-"}, "--without: this is no list of nodes"),
        ({"without": "n[0-2]"}, "no node is left of the log"),
        ({"partition": "batch", "only_nodes": "n2"}, "no node is left of the log"),
    ],
)
def test_what_the_log_does_not_have_is_refused_by_name(options, problem, tmp_path):
    write_events(small_log(), tmp_path / "log.csv")
    with pytest.raises(InputError, match=problem):
        select_nodes(load_events(tmp_path / "log.csv"), **options)


def test_a_log_without_partitions_says_how_to_get_them():
    with pytest.raises(InputError, match="does not say which partitions its nodes are in"):
        select_nodes(small_log(("a", "b", "c")), partition="gpu")


def test_parts_of_the_idle_time_add_up_over_disjoint_parts_of_the_machine():
    whole = bfreplay.describe(small_log()).idle_node_us
    parts = [bfreplay.describe(small_log(), only_nodes=node).idle_node_us for node in ("n0", "n1", "n2")]
    assert parts == [30 * SECOND, 30 * SECOND, 40 * SECOND]
    assert whole == sum(parts)


def test_what_leaving_nodes_out_means_is_the_first_sentence():
    text = str(bfreplay.describe(small_log(), without="n2")).replace("\n", " ")
    # n2 is busy for 20 + 40 s; n0 and n1 are idle for 60 s
    assert text.startswith(
        "The batch jobs of the nodes left out, 0.0167 node-hours, are left out too: if they had to run on the other "
        "nodes, 0 to 0.0167 idle node-hours would remain."
    )
    assert "of 2 nodes (without n2) are idle" in text


def test_a_run_on_a_part_says_so_and_is_read_again_on_the_same_part(tmp_path):
    log = tmp_path / "log.csv"
    write_events(small_log(), log)
    run = replay_log(log, [job(work=1e9)], partition="gpu", without="n2", node_type="v100", out=tmp_path / "run")
    assert run.summary.ledger.idle_node_us == 30 * SECOND
    assert run.record.config.selection == {"partition": "gpu", "without": "n2"}
    assert "1 node (partition gpu, without n2); the batch jobs of the nodes left out are left out too" in render(run)
    events, _ = inputs_of(run, jobs=JobSet([job(work=1e9)]))
    assert (events.nodes, events.node_types.names) == (("n1",), ("v100",))
    whole = replay_log(log, [job(work=1e9)], out=tmp_path / "whole")
    assert "selection" not in (tmp_path / "whole" / "run.json").read_text()
    assert inputs_of(whole, jobs=JobSet([job(work=1e9)]))[0].nodes == ("n0", "n1", "n2")


SLURM = sacct(
    "1|1|COMPLETED|2024-05-01T00:00:00|2024-05-01T01:00:00|3600||2|cn[1-2]",
    "2|2|COMPLETED|2024-05-01T00:30:00|2024-05-01T02:00:00|5400||1|cn3",
    "4|4|COMPLETED|2024-05-01T01:30:00|2024-05-01T03:00:00|5400||2|cn[1-2]",
)


def test_batch_jobs_are_those_of_the_part_on_its_nodes(tmp_path):
    (tmp_path / "log").write_text(SLURM)
    rules = OccupancyRules(window="full", min_gap_s=0, empty_machine="idle")
    built = read_log(tmp_path / "log", "slurm", ReadOptions(timezone="UTC"), job_names=True).build(rules)
    write_events(built.events, tmp_path / "events.parquet")
    built.write_batch_jobs(tmp_path / "jobs.parquet")
    log = load_events(tmp_path / "events.parquet")
    jobs = load_batch_jobs(tmp_path / "jobs.parquet", select_nodes(log, without="cn1"))
    assert list(map(str, jobs.job)) == ["1", "2", "4"]
    assert (jobs.first.tolist(), jobs.node.tolist()) == ([0, 1, 2, 3], [0, 1, 0])
    only = load_batch_jobs(tmp_path / "jobs.parquet", select_nodes(log, only_nodes="cn3"))
    assert (list(map(str, only.job)), only.node.tolist()) == (["2"], [0])
    files = {"batch_jobs": tmp_path / "jobs.parquet"}
    run = replay_log(tmp_path / "events.parquet", [job(work=1e9)], only_nodes="cn3", **files)
    assert run.summary.batch_delays.n_jobs == 1


def test_the_nodes_of_a_followed_log_stay_in_their_order():
    log = small_log(("b", "c", "d")).followed()
    assert log.metadata.n_nodes_at_start == 3
    part = select_nodes(log, only_nodes="c,d")
    assert (part.nodes, part.metadata.n_nodes_at_start) == (("c", "d"), 2)


def test_a_run_keeps_the_names_of_a_file_which_is_read_below_the_folder_of_a_spec(tmp_path):
    (tmp_path / "names.txt").write_text("n0\nn2\n")
    options = {"jobs": "sample", "events": "sample", "only-nodes": "names.txt"}
    assert RunOptions.from_mapping(options, folder=tmp_path).only_nodes == "n0,n2"
    assert RunOptions.from_mapping(options).only_nodes == "names.txt"  # no such file here: a list
    (tmp_path / "names.txt").write_text("n1\n")
    assert RunOptions(jobs="sample", events="sample", without=str(tmp_path / "names.txt")).without == "n1"


def test_a_list_may_be_longer_than_the_name_of_a_file(tmp_path):
    names = [f"node{number:04}" for number in range(400)]
    log = NodeEvents.from_arrays(names, [BUSY] * 400, [], [], [], 0, SECOND)
    part = select_nodes(log, only_nodes=",".join(names[:300]))
    assert len(part.nodes) == 300
    assert selection_words(part.selection) == f" (only {','.join(names)[:80]}...)"
    run = replay_log(log, [job(work=1.0)], only_nodes=",".join(names[:300]))
    assert "300 nodes (only node0000,node0001," in render(run)


def test_parts_of_the_whole_log_are_left_out_of_parts():
    described = bfreplay.describe(small_log(), partition="gpu", without="n2")
    assert (described.n_nodes, described.left_out_us) == (1, 60 * SECOND)
    both = bfreplay.describe(small_log(), only_nodes="n[0-1]", without="n0")
    assert (both.n_nodes, both.idle_node_us) == (1, 30 * SECOND)
    with pytest.raises(InputError, match="no node is left of the log"):
        bfreplay.describe(small_log(), partition="gpu", without="n[1-2]")
    with pytest.raises(InputError, match="only_nodes"):
        bfreplay.describe(small_log(), only_nodes=["n1"])  # type: ignore[arg-type]
