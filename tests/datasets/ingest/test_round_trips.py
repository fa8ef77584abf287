import tempfile
from pathlib import Path
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from tests.datasets.ingest.schedules import (
    NODES,
    event_text,
    pbs_days,
    reservation_text,
    sacct_json,
    sacct_text,
    schedules,
    shown,
    swf_text,
)
from tests.examples import examples

S = 10**6
ZONES = st.sampled_from(["UTC", "Europe/Paris", "America/Chicago"]).map(ZoneInfo)
MANY = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])


def rows_of(events):
    """A log as plain values: its nodes, its window, and every row with the node by name."""
    rows = [
        (int(time), events.nodes[node], int(state))
        for batch in events.batches()
        for time, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
    ]
    return events.nodes, events.window_start_us, events.window_end_us, rows


def rules_for(schedule):
    start = min(run.start for run in schedule.runs)
    return OccupancyRules(window=(start * S, schedule.now * S), log_end_us=schedule.now * S, min_gap_s=0)


def direct(schedule, rename=lambda name: name, outages=()):
    """The schedule without any file between."""
    record = ScheduleRecord()
    record.add_inventory(map(rename, NODES))
    for i, run in enumerate(schedule.runs):
        end = None if run.end is None else run.end * S
        record.add_job(i, run.start * S, end, record.node_ids(map(rename, run.nodes)))
    for outage in outages:
        end = None if outage.end is None else outage.end * S
        record.add_outage(outage.state, outage.start * S, end, record.node_ids(map(rename, outage.nodes)))
    return rows_of(build_events(record, rules_for(schedule)).events)


def through(files, reader, schedule, options=None, inventory=NODES):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text)
        (folder / "inventory").write_text("\n".join(inventory))
        paths = [folder / file for file in files]
        log = read_log(paths, reader, options, inventory=folder / "inventory")
        assert log.record.report.rows_read > 0
        return rows_of(log.build(rules_for(schedule)).events)


def shows_twice(schedule, zone):
    """Return whether some run lies within the hour that the clock shows twice, so that nothing resolves it."""

    def is_twice(time):
        text = shown(time, zone)
        return shown(time + 3_600, zone) == text or shown(time - 3_600, zone) == text

    times = [(run.start, run.end) for run in schedule.runs]
    times += [(outage.start, outage.end) for outage in (*schedule.outages, *schedule.reservations)]
    return any(is_twice(start) or (end is not None and is_twice(end)) for start, end in times)


def through_unless_shown_twice(files, reader, schedule, zone):
    """Return the rows read back, or None if the reader rightly refuses an ambiguous time."""
    try:
        return through(files, reader, schedule, ReadOptions(timezone=zone.key))
    except InputError as error:
        is_refused = "twice" in str(error)
        if not (is_refused and shows_twice(schedule, zone)):
            raise
        event("refused: a time that the clock showed twice")
        return None


@MANY
@given(schedules(), ZONES, st.permutations(["jobs", "events", "reservations"]))
def test_slurm_gives_back_what_was_scheduled(schedule, zone, order):
    assume(schedule.runs)
    texts = {"jobs": sacct_text(schedule, zone)}
    if schedule.outages:
        texts["events"] = event_text(schedule, zone)
    if schedule.reservations:
        texts["reservations"] = reservation_text(schedule, zone)
    files = {name: texts[name] for name in order if name in texts}
    found = through_unless_shown_twice(files, "slurm", schedule, zone)
    assert found in (None, direct(schedule, outages=(*schedule.outages, *schedule.reservations)))


@MANY
@given(schedules(with_outages=False), st.sampled_from(["old", "new"]))
def test_slurm_json_gives_back_what_was_scheduled(schedule, style):
    assume(schedule.runs)
    assert through({"jobs.json": sacct_json(schedule, style)}, "slurm", schedule) == direct(schedule)


@MANY
@given(schedules(with_outages=False), ZONES, st.booleans(), st.randoms(use_true_random=False))
def test_pbs_gives_back_what_was_scheduled(schedule, zone, torque, random):
    assume(schedule.runs)
    days = list(pbs_days(schedule, zone, torque).items())
    random.shuffle(days)
    found = through_unless_shown_twice(dict(days), "pbs", schedule, zone)
    assert found in (None, direct(schedule))


@MANY
@given(schedules(with_outages=False), ZONES)
def test_pbs_pro_needs_no_zone(schedule, zone):
    assume(schedule.runs)
    assert through(pbs_days(schedule, zone, torque=False), "pbs", schedule) == direct(schedule)


@MANY
@given(schedules(with_open=False, with_outages=False))
def test_swf_with_nodes_gives_back_what_was_scheduled(schedule):
    assume(schedule.runs)
    names = tuple(str(int(name[2:])) for name in NODES)
    found = through({"log.swf": swf_text(schedule)}, "swf", schedule, inventory=names)
    assert found == direct(schedule, rename=lambda name: str(int(name[2:])))


@settings(max_examples=examples(20))
@given(schedules(with_open=False, with_outages=False), st.sampled_from(["slurm", "pbs", "swf"]))
def test_the_reader_is_found_without_its_name(schedule, reader):
    assume(len(schedule.runs) > 2)
    zone = ZoneInfo("UTC")
    files = {
        "slurm": {"jobs": sacct_text(schedule, zone)},
        "pbs": pbs_days(schedule, zone, torque=False),
        "swf": {"log": swf_text(schedule)},
    }[reader]
    inventory = [str(int(name[2:])) for name in NODES] if reader == "swf" else NODES
    by_name = through(files, reader, schedule, ReadOptions(timezone="UTC"), inventory)
    assert through(files, "auto", schedule, ReadOptions(timezone="UTC"), inventory) == by_name
