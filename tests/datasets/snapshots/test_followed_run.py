"""A real Slurm of 16 nodes, polled for 330 s under every operation of an administrator, against its accounting."""

import csv
from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.snapshots.changes import StateChanges
from bfreplay.datasets.snapshots.readings import JobReading, NodeReading, Snapshot
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.datasets.times import US

TABLE = StateTable.default()


def reading(raw, since_us=None):
    state, free = TABLE.state_of(raw), TABLE.state_without_jobs(raw)
    return NodeReading(raw, state, None if state == NodeState.BUSY else since_us, without_jobs=free)


def accounted_jobs(folder):
    """Return the runs that accounting has, as (partition, start, end, nodes) in seconds."""
    runs = []
    for row in csv.DictReader((folder / "jobs.psv").open(), delimiter="|"):
        times = (row["Start"], row["End"])
        if all(time_text[:1].isdigit() for time_text in times):
            start, end = (datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in times)
            runs.append((row["Partition"], int(start), int(end), expand_nodes(row["NodeList"])))
    return runs


def snapshots(folder, runs):
    """Rebuild the polls: raw states go on until the next change, jobs are listed as far as they are known then."""
    rows = list(csv.DictReader((folder / "changes.csv").open()))
    nodes, polls = {}, {}
    for row in rows:
        last_busy_us = round(float(row["exact"]) * US) if row["source"] == "last busy" else None
        nodes[row["node"]] = reading(row["raw"], last_busy_us)
        polls[float(row["poll"])] = dict(nodes)
    for time_s, readings in polls.items():
        jobs = tuple(
            JobReading(str(k), partition, "", start * US, end * US if end <= time_s else None, names)
            for k, (partition, start, end, names) in enumerate(runs)
            if start <= time_s
        )
        yield Snapshot(round(time_s * US), readings, jobs)


def test_no_second_of_the_followed_run_is_idle_while_accounting_has_a_job_there(shared):
    folder = shared / "data" / "real-slurm" / "followed"
    runs = accounted_jobs(folder)
    first, *later = snapshots(folder, runs)
    changes = StateChanges.of_first(first)
    timeline = {node: [(first.time_us, state)] for node, state in changes.states.items()}
    for snapshot in later:
        for time_us, node, state in changes.update(snapshot):
            assert timeline[node][-1][0] < time_us <= snapshot.time_us
            assert timeline[node][-1][1] != state
            timeline[node].append((time_us, state))
    first_s, last_s = first.time_us // US + 1, snapshot.time_us // US
    looks = Counter()
    for node, states in timeline.items():
        for second in range(first_s, last_s):
            middle_us = second * US + US // 2
            state = next(state for time_us, state in reversed(states) if time_us <= middle_us)
            has_job = any(start <= second < end and node in names for _, start, end, names in runs)
            looks[STATE_WORDS[state], has_job] += 1
    with_job = {state: count for (state, has_job), count in looks.items() if has_job}
    assert sum(with_job.values()) == 2364
    assert with_job == {
        "busy": 2052,
        "off": 304,
        "unknown": 8,
    }  # powered up for a job; the controller was started again
    assert looks["busy", False] == 4
    assert looks["idle", False] == 516
    assert looks["planned", False] == 693


@st.composite
def jobs_and_polls(draw):
    """Return jobs on one node, one after the other with gaps, and times of polls that are no whole seconds."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=2, max_size=16))
    times = [100]
    for length in lengths:
        times.append(times[-1] + length)
    jobs = list(zip(times[1::2], times[2::2], strict=False))
    steps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    return jobs, [100.5 + sum(steps[:k]) for k in range(len(steps) + 1)]


@given(jobs_and_polls())
def test_however_a_node_is_polled_the_times_of_its_jobs_come_out(example):
    """A node whose jobs are all listed is followed to the second, whatever happens between two polls."""
    jobs, poll_times = example
    last_poll = poll_times[-1]

    def snapshot(time_s):
        is_busy = any(start <= time_s < end for start, end in jobs)
        listed = tuple(
            JobReading(str(start), "p", "", start * US, end * US if end <= time_s else None, ("n1",))
            for start, end in jobs
            if start <= time_s
        )
        return Snapshot(round(time_s * US), {"n1": reading("ALLOCATED" if is_busy else "IDLE")}, listed)

    changes = StateChanges.of_first(snapshot(poll_times[0]))
    rows = [row for time_s in poll_times[1:] for row in changes.update(snapshot(time_s))]
    true_times = {start: NodeState.BUSY for start, _ in jobs}
    true_times |= {end: NodeState.IDLE for _, end in jobs if end not in true_times}
    expected = [(time_s * US, "n1", true_times[time_s]) for time_s in sorted(true_times) if 100.5 < time_s < last_poll]
    assert rows == expected
