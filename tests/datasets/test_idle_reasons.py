"""Why no job ran: hand-worked examples, and a second computation that looks at every second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bfreplay
from bfreplay import NodeEvents, NodeState
from bfreplay.datasets.batch_jobs import BatchJobs, Waited, WaitingJobs, write_batch_jobs
from bfreplay.datasets.idleness.parts_text import reason_sentences, reason_tables
from bfreplay.datasets.idleness.reasons import FITS, NOBODY, NOT_KNOWN, TOO_WIDE, reasons_of, why_idle
from bfreplay.datasets.log.event_tables import LogHeader
from bfreplay.datasets.log.metadata import EventsMetadata

S = 1_000_000
IDLE, BUSY, DRAIN, PLANNED = NodeState.IDLE, NodeState.BUSY, NodeState.DRAIN, NodeState.PLANNED
PARTITIONS = {"batch": ["n0", "n1", "n2"], "gpu": ["n2", "n3"]}


def log_of(rows, end_s=100, initial=IDLE, partitions=PARTITIONS, nodes=4):
    time_s, node, state = zip(*rows, strict=True) if rows else ((), (), ())
    names, time_us = [f"n{number}" for number in range(nodes)], [time * S for time in time_s]
    metadata = EventsMetadata(partitions=partitions)
    return NodeEvents.from_arrays(names, [initial] * nodes, time_us, node, state, 0, end_s * S, metadata)


def waiting(*jobs, n_unknown=0):
    """Jobs (from, until, wanted, partition)."""
    names = list(dict.fromkeys(["", *(job[3] for job in jobs)]))
    rows = [(start * S, end * S, wanted, names.index(name)) for start, end, wanted, name in jobs]
    return WaitingJobs(*np.array(rows, np.int64).reshape(-1, 4).T, tuple(names), len(rows), n_unknown)


def reasons(log, jobs):
    """All reasons of a log."""
    state_us = {state.state: state.node_us for state in bfreplay.describe(log).states}
    return reasons_of(why_idle(log, jobs), state_us, jobs, log.metadata.partitions)


def seconds(found):
    return {reason: node_us // S for reason, node_us in found.node_us.items()}


def test_nobody_waits_or_every_job_is_too_wide_or_one_would_fit():
    jobs = waiting((10, 30, 5, ""), (20, 25, 2, ""))
    assert seconds(reasons(log_of([]), jobs)) == {NOBODY: 4 * 80, TOO_WIDE: 4 * 15, FITS: 4 * 5}


def test_a_job_waits_for_the_nodes_of_its_partition_only():
    # three nodes of gpu are wanted, and there are two: n0 and n1 are of no use to the job
    found = why_idle(log_of([]), waiting((0, 100, 3, "gpu")))
    assert found == {
        "batch": {NOBODY: 200 * S, TOO_WIDE: 0, FITS: 0},
        "batch + gpu": {NOBODY: 0, TOO_WIDE: 100 * S, FITS: 0},
        "gpu": {NOBODY: 0, TOO_WIDE: 100 * S, FITS: 0},
    }
    # of two partitions, in either of them: three nodes are idle in batch
    both = reasons(log_of([]), waiting((0, 100, 3, "gpu,batch")))
    assert seconds(both) == {TOO_WIDE: 100, FITS: 300}
    # nobody can wait for nodes that no partition of the log has
    elsewhere = reasons(log_of([]), waiting((0, 100, 1, "elsewhere"), (0, 100, 1, "far,away"), (0, 1, 9, "gpu")))
    assert (seconds(elsewhere)[NOBODY], elsewhere.n_elsewhere) == (398, 2)
    assert reason_sentences(elsewhere)[1].startswith("2 batch jobs waited for partitions of which the log has no node")


def test_a_partition_may_have_a_comma_in_its_name():
    log = log_of([], partitions={"a,b": ["n0"], "a": ["n1"]}, nodes=2)
    assert seconds(reasons(log, waiting((0, 100, 1, "a,b")))) == {FITS: 100, NOBODY: 100}


def test_jobs_may_use_nodes_that_are_not_shown():
    # of batch n0, n1 and n2 are idle, so that a job of three would fit, also where n2 alone is shown
    is_shown = np.array([False, False, True, True])
    found = why_idle(log_of([]), waiting((0, 100, 3, "batch")), is_shown)
    assert found["batch + gpu"] == {NOBODY: 0, TOO_WIDE: 0, FITS: 100 * S}
    assert found["batch"] == {NOBODY: 0, TOO_WIDE: 0, FITS: 0}
    assert found["gpu"] == {NOBODY: 100 * S, TOO_WIDE: 0, FITS: 0}


def test_the_nodes_that_become_idle_are_counted_at_each_instant():
    rows = [(10, 0, IDLE), (20, 1, IDLE), (30, 0, BUSY), (30, 1, BUSY)]
    log = log_of(rows, initial=BUSY, partitions={})
    assert seconds(reasons(log, waiting((0, 30, 2, "")))) == {TOO_WIDE: 10, FITS: 20}


def test_states_are_reasons_of_their_own():
    rows = [(10, 0, DRAIN), (20, 1, PLANNED), (60, 1, BUSY), (60, 2, BUSY), (60, 3, BUSY)]
    found = reasons(log_of(rows), waiting())
    assert seconds(found) == {NOBODY: 10 + 20 + 60 + 60, "planned for a waiting job": 40, "drained": 90}
    assert found.total_us == 280 * S
    assert reason_sentences(found) == [
        "Of 0.0778 node-hours without a job, 53.6 % were idle while no job waited for them, 32.1 % were drained, "
        "14.3 % were planned for a waiting job."
    ]
    assert [row[0] for row in reason_tables(found)[0].rows] == [NOBODY, "drained", "planned for a waiting job"]


def test_jobs_whose_waiting_is_not_known_are_said():
    found = reasons(log_of([]), waiting((10, 30, 5, ""), n_unknown=3))
    assert reason_sentences(found)[1].startswith("The log does not say since when 3 batch jobs waited")
    assert seconds(found) == {NOBODY: 4 * 80, TOO_WIDE: 4 * 20}
    nothing = reasons(log_of([]), waiting(n_unknown=3))
    assert (seconds(nothing), nothing.groups) == ({NOT_KNOWN: 400}, {})
    assert reason_sentences(nothing)[0].endswith("100 % were idle, and it is not known whether a job waited for them.")


def test_planned_and_reserved_nodes_keep_their_reason_when_they_count_as_idle(tmp_path):
    header = LogHeader(("n0", "n1"), 0, 100 * S, EventsMetadata())
    jobs = BatchJobs(["a"], np.array([90 * S]), np.array([95 * S]), np.array([0, 1]), np.array([0], np.int32))
    waited = Waited(np.array([0]), np.array([2]), [""], [""])
    write_batch_jobs([replace(jobs, waited=waited)], header, tmp_path / "jobs.parquet")
    log = log_of([(0, 1, PLANNED)], partitions={}, nodes=2)
    for pool in (None, "startable", "idle"):
        described = bfreplay.describe(log, pool=pool, batch_jobs=tmp_path / "jobs.parquet")
        assert described.reasons is not None
        assert seconds(described.reasons) == {NOBODY: 10, TOO_WIDE: 90, "planned for a waiting job": 100}


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("partitions", [{}, PARTITIONS])
def test_reasons_are_those_of_a_computation_that_looks_at_every_second(seed, partitions):
    rng = np.random.default_rng(seed)
    states = np.full((4, 61), BUSY)
    states[:, 0] = rng.choice([IDLE, BUSY, DRAIN], 4)
    rows = [(0, node, NodeState(states[node, 0])) for node in range(4)]
    for second in range(1, 61):
        states[:, second] = states[:, second - 1]
        for node in range(4):
            if rng.random() < 0.2:
                new = int(rng.choice([state for state in (IDLE, BUSY, DRAIN) if state != states[node, second]]))
                states[node, second] = new
                rows.append((second, node, NodeState(new)))
    log = log_of([row for row in rows if row[0] or row[2] != BUSY], end_s=60, initial=BUSY, partitions=partitions)
    jobs = []
    for _ in range(int(rng.integers(0, 9))):
        start = int(rng.integers(-5, 60))
        partition = str(rng.choice(["", "gpu", "batch", "gpu,batch", "other"]))
        jobs.append((start, start + int(rng.integers(0, 40)), int(rng.integers(1, 7)), partition))
    expected = {}
    for second in range(60):
        idle = {node for node in range(4) if states[node, second] == IDLE}
        for node in range(4):
            if states[node, second] == DRAIN:
                expected["drained"] = expected.get("drained", 0) + 1
            if node in idle:
                reason = 0
                for start, end, wanted, names in jobs:
                    if not start <= second < end:
                        continue
                    for name in names.split(",") if partitions else [""]:
                        nodes = partitions.get(name, []) if name else ["n0", "n1", "n2", "n3"]
                        if f"n{node}" in nodes:
                            n_idle = sum(f"n{other}" in nodes for other in idle)
                            reason = max(reason, 2 if wanted <= n_idle else 1)
                name = (NOBODY, TOO_WIDE, FITS)[reason]
                expected[name] = expected.get(name, 0) + 1
    assert seconds(reasons(log, waiting(*jobs))) == expected
    assert sum(expected.get(name, 0) for name in (NOBODY, TOO_WIDE, FITS)) * S == bfreplay.describe(log).idle_node_us
