"""Small records and what comes of them, for the tests of occupancy."""

from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import JobSpool
from bfreplay.datasets.log.states import NodeState
from tests.datasets.ingest.occupancy.by_the_second import events_by_the_second

S = 10**6
MIN, HOUR, DAY = 60 * S, 3_600 * S, 86_400 * S
SHARED = "starts on a node that is in use (shared nodes)"


def counted(jobs, n_nodes=4, run_rows=10_000):
    """A log of counts: start, end, nodes."""
    record = ScheduleRecord(spool=JobSpool(run_rows))
    record.set_machine_size(n_nodes)
    for i, (start_us, end_us, count) in enumerate(jobs):
        record.add_job(i, start_us, end_us, None, count)
    return record


def listed(jobs, inventory=("a", "b"), run_rows=10_000):
    """A log of names: start, end, nodes. No inventory: only those that jobs used are known."""
    record = ScheduleRecord(spool=JobSpool(run_rows))
    if inventory:
        record.add_inventory(inventory)
    for i, (start_us, end_us, nodes) in enumerate(jobs):
        record.add_job(i, start_us, end_us, record.node_ids(nodes))
    return record


def plain(**changes):
    return OccupancyRules(**{"window": "full", "min_gap_s": 0, "empty_machine": "idle", **changes})


def rows_of(events):
    """Changes of states after the snapshot at the start of the window."""
    return [
        (int(time), events.nodes[node], int(state))
        for batch in events.batches()
        for time, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
        if time > events.window_start_us
    ]


def states_at_the_start(events):
    return {node: line[0] for node, line in events_by_the_second(events).items()}


def busy_nodes(record, rules):
    built = build_events(record, rules)
    found = events_by_the_second(built.events)
    return built, [sum(state == NodeState.BUSY for state in second) for second in zip(*found.values(), strict=True)]


def tally(built, words):
    found = [tally for sentence, tally in built.report.warnings.items() if words in sentence]
    assert len(found) <= 1
    return found[0] if found else None
