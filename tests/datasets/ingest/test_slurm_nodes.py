"""States of Slurm's nodes: events, reservations, samples of sinfo."""

import pytest

from bfreplay.datasets.ingest import sampled_states
from bfreplay.datasets.ingest.occupancy.build import RESERVED_IDLE
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import ingest
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.slurm import node_states
from bfreplay.datasets.ingest.slurm.reader import SlurmReader
from bfreplay.datasets.ingest.slurm.slurm_cells import node_state, stronger
from bfreplay.datasets.ingest.slurm.slurm_times import FOLD_WARNING, OWN_FORMAT, RELATIVE, ZONE_WARNING
from bfreplay.datasets.log.states import NodeState
from bfreplay.errors import InputError
from tests.datasets.ingest.slurm_logs import at, files_of, jobs, outages, read, rows_balance, sacct, skipped, warnings

NOON = at("2024-03-01 12:00:00")
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"


def events(folder, *rows, header=EVENTS, job_at=NOON, **options):
    """Read node events beside one job on n1."""
    job = sacct(f"7|7|COMPLETED|{job_at}|{job_at + 3600}|3600|120|1|n1")
    record = read(folder, "\n".join([header, *rows]) + "\n", job, **{"timezone": "UTC", **options})
    assert rows_balance(record)
    return record


# ---- words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("DOWN", NodeState.DOWN),
        ("DOWN*", NodeState.DOWN),
        ("FAIL", NodeState.DOWN),
        ("IDLE+NOT_RESPONDING", NodeState.DOWN),
        ("DRAIN", NodeState.DRAIN),
        ("drained", NodeState.DRAIN),
        ("DRAINING", NodeState.DRAIN),
        ("IDLE+DRAIN", NodeState.DRAIN),
        ("MIXED+CLOUD+DRAIN", NodeState.DRAIN),
        ("DOWN+DRAIN", NodeState.DOWN),
        ("DRAIN+POWERED_DOWN", NodeState.OFF),
        ("MAINT", NodeState.RESERVED),
        ("RESERVED+DRAIN", NodeState.DRAIN),
        ("POWERING_DOWN", NodeState.OFF),
        ("idle", NodeState.IDLE),
        ("idle-", NodeState.IDLE),
        ("planned", NodeState.IDLE),
        ("idle*", NodeState.DOWN),
        ("idle~", NodeState.OFF),
        ("idle#", NodeState.OFF),
        ("idle%", NodeState.OFF),
        ("idle!", NodeState.OFF),
        ("idle$", NodeState.RESERVED),
        ("idle@", NodeState.DRAIN),
        ("idle^", NodeState.DOWN),
        ("mixed", NodeState.BUSY),
        ("mixed-", NodeState.BUSY),
        ("allocated+", NodeState.BUSY),
        ("allocated#", NodeState.BUSY),
        ("comp", NodeState.BUSY),
        ("unknown", NodeState.UNKNOWN),
        ("resting", None),
        ("", None),
    ],
)
def test_words_and_suffixes_of_nodes(words, state):
    assert node_state(words) is state


def test_of_two_states_the_stronger_counts_whichever_comes_first():
    assert stronger(NodeState.IDLE, NodeState.BUSY) == stronger(NodeState.BUSY, NodeState.IDLE) == NodeState.BUSY
    assert stronger(NodeState.DRAIN, NodeState.OFF) == NodeState.OFF


# ---- sacctmgr show event --------------------------------------------------------------------------------------------


def test_an_event_is_an_outage_of_its_node(tmp_path):
    record = events(tmp_path, "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN*|disk|root")
    assert outages(record) == [("down", NOON, NOON + 3600, ("n1",))]
    assert record.source_format == "slurm sacct + slurm node events"
    assert warnings(record) == {}


@pytest.mark.parametrize("end", ["Unknown", "", "None"])
def test_an_event_without_an_end_is_still_open(tmp_path, end):
    assert outages(events(tmp_path, f"hill|n1|2024-03-01T12:00:00|{end}|DRAIN|x|root")) == [
        ("drain", NOON, None, ("n1",))
    ]


def test_an_event_of_the_cluster_is_no_outage_of_nodes(tmp_path):
    good = "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root"
    record = events(tmp_path, good, "hill||2024-03-01T12:00:00|2024-03-02T12:00:00||Cluster Registered TRES|slurm")
    assert len(record.outages) == 1
    assert skipped(record) == {"cluster event": 1}
    assert warnings(record) == {}


def test_an_event_that_leaves_its_node_usable_is_skipped(tmp_path):
    good = "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root"
    record = events(tmp_path, good, "hill|n2|2024-03-01T12:00:00|2024-03-01T13:00:00|IDLE|x|root")
    assert skipped(record) == {"an event that leaves its node usable": 1}
    assert record.nodes == ("n1",)


def test_a_reason_may_hold_a_separator(tmp_path):
    record = events(tmp_path, "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|disk | fan|root")
    assert len(record.outages) == 1
    assert warnings(record) == {}


@pytest.mark.parametrize(
    ("row", "reason", "sentence"),
    [
        ("hill|n2|soon|Unknown|DOWN|x|root", "unreadable time", UNREADABLE),
        ("hill|n2|Mon 12:00|Unknown|DOWN|x|root", RELATIVE, UNREADABLE),
        ("hill|n2|Unknown|Unknown|DOWN|x|root", "an outage without a start", UNREADABLE),
        ("hill|n[2|2024-03-01T12:00:00|Unknown|DOWN|x|root", "unreadable names of nodes", UNREADABLE),
        ("hill|n2|2024-03-01T12:00:00", "fewer cells than columns", UNREADABLE),
        ("hill|n2|2024-03-01T12:00:00|Unknown|ASLEEP|x|root", "unknown state of a node", node_states.UNKNOWN_STATE),
    ],
)
def test_events_that_cannot_be_read_are_skipped_and_warned_of(tmp_path, row, reason, sentence):
    good = "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root"
    record = events(tmp_path, good, row)
    assert len(record.outages) == 1
    assert skipped(record) == {reason: 1}
    assert warnings(record) == {sentence: 1}


def test_what_stands_before_the_header_of_events_is_counted(tmp_path):
    good = "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root"
    record = events(tmp_path, good, header="sacctmgr: hello\n" + EVENTS)
    assert skipped(record) == {"a line before the header": 1}


def test_events_in_local_time_need_a_zone(tmp_path):
    row = "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root"
    with pytest.raises(InputError, match=r"--tz[\s\S]*sacctmgr -P show event All_Time"):
        events(tmp_path, row, timezone=None)
    assert outages(events(tmp_path, row, timezone="Europe/Paris"))[0][1] == NOON - 3600


def test_events_in_the_repeated_hour_follow_the_rules_of_jobs(tmp_path):
    row = "hill|n1|2024-10-27T02:10:00|2024-10-27T02:30:00|DOWN|x|root"
    with pytest.raises(InputError, match="line 2"):
        events(tmp_path, row, timezone="Europe/Paris")
    record = events(tmp_path, row, timezone="Europe/Paris", dst_fold="later", job_at=at("2024-10-27 01:00:00"))
    assert outages(record) == [("down", at("2024-10-27 01:10:00"), at("2024-10-27 01:30:00"), ("n1",))]
    assert warnings(record) == {FOLD_WARNING: 1}
    good = "hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root"
    skipped = "hill|n1|2024-03-31T02:10:00|2024-03-31T04:30:00|DOWN|x|root"
    assert warnings(events(tmp_path, good, skipped, timezone="Europe/Paris")) == {ZONE_WARNING: 1}


def test_node_events_without_jobs_are_refused_with_what_to_add(tmp_path):
    with pytest.raises(InputError, match=r"the files have no jobs, only 1 row of[\s\S]*sacct -a -X") as error:
        read(tmp_path, f"{RESERVATIONS}\n{MAINT}\n", timezone="UTC")
    assert error.value.value is None
    assert error.value.file == "log0"
    with pytest.raises(InputError, match="only 0 rows"):
        read(tmp_path, f"{EVENTS}\n", timezone="UTC")


def test_events_of_the_last_two_days_of_a_long_log_say_that_all_time_was_forgotten(tmp_path):
    rows = [f"{i}|{i}|COMPLETED|2024-03-{i:02}T12:00:00|2024-03-{i:02}T13:00:00|3600|1|1|n1" for i in range(1, 21)]
    event = "|n1|2024-03-{}T08:00:00|2024-03-{}T09:00:00|DOWN|x|root"
    late = "\n".join([EVENTS, event.format(20, 20)]) + "\n"
    early = "\n".join([EVENTS, event.format(10, 11)]) + "\n"
    assert warnings(read(tmp_path, sacct(*rows), late, timezone="UTC")) == {node_states.RECENT_ONLY: 1}
    record = read(tmp_path, sacct(*rows), late, early, timezone="UTC")
    assert warnings(record) == {}
    assert record.source_format == "slurm sacct + slurm node events"
    assert "node events" not in record.report.facts


@pytest.mark.parametrize(
    "older",
    [
        "hill||2024-02-01T00:00:00|Unknown||Cluster Registered TRES|",
        "hill|n2|2024-03-02T08:00:00|Unknown|DOWN*|Not responding|slurm",
    ],
)
def test_an_open_event_or_the_clusters_own_row_from_before_settles_that_all_events_are_there(tmp_path, older):
    rows = [f"{i}|{i}|COMPLETED|2024-03-{i:02}T12:00:00|2024-03-{i:02}T13:00:00|3600|1|1|n1" for i in range(1, 21)]
    late = "hill|n1|2024-03-20T08:00:00|2024-03-20T09:00:00|DOWN|x|root"
    record = read(tmp_path, sacct(*rows), "\n".join([EVENTS, older, late]) + "\n", timezone="UTC")
    assert warnings(record) == {}
    assert record.report.facts["node events"] == node_states.OPEN_ONLY


def test_a_row_of_the_cluster_from_the_last_days_settles_nothing(tmp_path):
    rows = [f"{i}|{i}|COMPLETED|2024-03-{i:02}T12:00:00|2024-03-{i:02}T13:00:00|3600|1|1|n1" for i in range(1, 21)]
    cluster = "hill||2024-03-20T00:00:00|Unknown||Cluster Registered TRES|"
    assert warnings(read(tmp_path, sacct(*rows), f"{EVENTS}\n{cluster}\n", timezone="UTC")) == {
        node_states.RECENT_ONLY: 1
    }


@pytest.mark.parametrize("start", ["soon", "", "2024-03-31T02:10:00"])
def test_a_row_of_the_cluster_whose_time_cannot_be_read_spoils_nothing(tmp_path, start):
    record = events(tmp_path, f"hill||{start}|Unknown||Cluster Registered TRES|slurm", timezone="Europe/Paris")
    assert skipped(record) == {"cluster event": 1}
    assert warnings(record) == {}


# ---- sacctmgr show reservation --------------------------------------------------------------------------------------

RESERVATIONS = "Cluster|Name|TimeStart|TimeEnd|NodeNames|Flags"
MAINT = "hill|pm|2024-03-01T12:00:00|2024-03-01T13:00:00|n[1-2]|MAINT,SPEC_NODES"
COURSE = "hill|course|2024-03-01T12:00:00|2024-03-01T13:00:00|n3|SPEC_NODES"


@pytest.mark.parametrize("nodes", ["NodeNames", "NodeName"])
def test_reservations_for_maintenance_are_down_and_others_are_a_choice(nodes, tmp_path):
    record = events(tmp_path, MAINT, COURSE, header=RESERVATIONS.replace("NodeNames", nodes))
    assert outages(record) == [("down", NOON, NOON + 3600, ("n1", "n2"))]
    assert skipped(record) == {"reservation, kept idle": 1}
    record = events(tmp_path, MAINT, COURSE, header=RESERVATIONS, reservations="reserved")
    assert outages(record)[1] == ("reserved", NOON, NOON + 3600, ("n3",))
    assert record.source_format == "slurm sacct + slurm reservations"


def test_a_reservation_without_nodes_takes_none(tmp_path):
    record = events(tmp_path, MAINT, "hill|lic|2024-03-01T12:00:00|2024-03-01T13:00:00||MAINT", header=RESERVATIONS)
    assert skipped(record) == {"reservation without nodes": 1}


def test_outputs_of_sacctmgr_are_recognised(tmp_path):
    event, reservation = files_of(tmp_path, EVENTS + "\n", RESERVATIONS + "\n")
    assert "show event" in SlurmReader().recognise(event)
    assert "show reservation" in SlurmReader().recognise(reservation)
    (table,) = files_of(tmp_path, EVENTS.replace("|", ",") + "\n")
    assert SlurmReader().recognise(table) is None


# ---- sinfo ----------------------------------------------------------------------------------------------------------

T = 1_709_294_400


def samples(*rounds, nodes=("a", "b")):
    """Each round: seconds after T, and the states of the nodes (``None``: no line)."""
    lines = []
    for after, *states in rounds:
        lines += [f"{T + after}|{node}|{state}" for node, state in zip(nodes, states, strict=True) if state]
    return "\n".join(lines) + "\n"


def sinfo_of(folder, *texts, **options):
    record = read(folder, *texts, **options)
    assert rows_balance(record)
    return [(state, start - T, end - T, names) for state, start, end, names in outages(record)], record


def test_a_state_holds_from_its_sample_to_the_next_and_equal_ones_are_one_interval(tmp_path):
    text = samples((0, "idle", "mixed"), (60, "allocated", "comp"), (120, "allocated", "idle"), (180, "down*", "idle-"))
    found, record = sinfo_of(tmp_path, text)
    assert found == [("busy", 0, 120, ("b",)), ("busy", 60, 180, ("a",))]
    assert warnings(record) == {}
    assert record.inventory_known
    assert record.nodes == ("a", "b")
    assert (record.coverage.start_us / 1e6, record.coverage.end_us / 1e6) == (T, T + 180)
    assert record.report.kept["samples of node states"] == 8


def test_samples_need_no_zone(tmp_path):
    found, _ = sinfo_of(tmp_path, samples((0, "down", "idle"), (60, "idle", "idle")), timezone="Europe/Paris")
    assert found == [("down", 0, 60, ("a",))]


def test_of_a_node_in_two_partitions_the_strongest_state_counts(tmp_path):
    text = samples((0, "idle", "mixed", "drained"), (60, "idle", "idle", "idle"), nodes=("a", "a", "a"))
    assert sinfo_of(tmp_path, text)[0] == [("drain", 0, 60, ("a",))]


def test_between_samples_that_are_far_apart_all_nodes_are_unknown(tmp_path):
    rounds = [(60 * i, "down", "idle") for i in range(5)] + [(1000 + 60 * i, "down", "idle") for i in range(3)]
    found, record = sinfo_of(tmp_path, samples(*rounds))
    assert found == [("down", 0, 300, ("a",)), ("unknown", 300, 1000, None), ("down", 1000, 1120, ("a",))]
    assert warnings(record) == {sampled_states.GAPS: 1}


def test_three_periods_are_no_gap_yet(tmp_path):
    rounds = [(60 * i, "down", "idle") for i in range(5)] + [(240 + 180, "down", "idle")]
    assert sinfo_of(tmp_path, samples(*rounds))[0] == [("down", 0, 420, ("a",))]


def test_a_node_missing_from_samples_is_unknown_until_it_is_back(tmp_path):
    text = samples(
        (0, "idle", "down"), (60, "idle", None), (120, "idle", None), (180, "idle", "down"), (240, "idle", "idle")
    )
    found, record = sinfo_of(tmp_path, text)
    assert found == [("down", 0, 60, ("b",)), ("unknown", 60, 180, ("b",)), ("down", 180, 240, ("b",))]
    assert warnings(record) == {sampled_states.MISSING: 1}


def test_a_node_that_appears_later_is_unknown_before(tmp_path):
    found, record = sinfo_of(tmp_path, samples((0, "idle", None), (60, "idle", "idle"), (120, "idle", "idle")))
    assert found == [("unknown", 0, 60, ("b",))]
    assert warnings(record) == {sampled_states.MISSING: 1}


def test_files_of_samples_are_one_series_in_any_order(tmp_path):
    early = samples((0, "down", "idle"), (60, "down", "idle"))
    late = samples((120, "down", "idle"), (180, "idle", "idle"))
    assert sinfo_of(tmp_path, late, early)[0] == [("down", 0, 180, ("a",))]


@pytest.mark.parametrize("wrong", [-60, 10_000_000])
def test_one_line_with_a_wrong_time_costs_one_sample_of_one_node(tmp_path, wrong):
    rounds = [(60 * i, "idle", "idle", "down") for i in range(10)]
    lines = samples(*rounds, nodes=("a", "b", "c")).splitlines()
    lines[17] = f"{T + 300 + wrong}|c|down"
    found, record = sinfo_of(tmp_path, "\n".join(lines) + "\n")
    assert found == [("down", 0, 300, ("c",)), ("unknown", 300, 360, ("c",)), ("down", 360, 540, ("c",))]
    assert warnings(record) == {node_states.BACKWARDS: 1, sampled_states.MISSING: 1}


def test_time_never_goes_back_behind_a_sample_that_was_handed_on(tmp_path):
    text = samples(*[(after, "down") for after in (0, 60, 120, 180, 9999, 90, 240, 300)], nodes=("a",))
    found, record = sinfo_of(tmp_path, text)
    assert found == [("down", 0, 300, ("a",))]
    assert warnings(record) == {node_states.BACKWARDS: 2}


def test_a_reason_may_follow_and_fractions_of_seconds_count(tmp_path):
    text = f"{T}.5|a|down|disk | fan\n{T + 60}|a|idle|none\n"
    assert sinfo_of(tmp_path, text)[0] == [("down", 0.5, 60, ("a",))]


@pytest.mark.parametrize("line", [f"{T}|a", f"{T}|a|dreaming", "x|a|idle", f"{T}|n[|idle", f" {T}|a|idle", "12|a|idle"])
def test_samples_that_cannot_be_read_are_skipped_and_warned_of(tmp_path, line):
    text = samples(*[(60 * i, "idle", "down") for i in range(10)])
    found, record = sinfo_of(tmp_path, text + line + "\n")
    assert found == [("down", 0, 540, ("b",))]
    assert skipped(record) == {"unreadable sample": 1}
    assert warnings(record) == {UNREADABLE: 1}


def test_beside_jobs_samples_do_not_say_what_the_log_covers(tmp_path):
    row = f"7|7|COMPLETED|{T}|{T + 3600}|3600|120|1|a"
    record = read(tmp_path, sacct(row), samples((0, "mixed", "idle"), (60, "mixed", "idle")))
    assert len(jobs(record)) == 1
    assert record.coverage is None
    assert record.source_format == "slurm sacct + slurm sinfo samples"


def test_one_sample_is_only_an_inventory(tmp_path):
    found, record = sinfo_of(tmp_path, samples((0, "idle", "down")))
    assert found == []
    assert record.coverage is None
    assert record.nodes == ("a", "b")


def test_spoilt_samples_are_read_on_request_but_not_claimed(tmp_path):
    text = samples(*[(60 * i, "idle", "down") for i in range(4)]) + "ping: lost\n" * 3
    assert SlurmReader().recognise(files_of(tmp_path, text)[0]) is None
    found, record = sinfo_of(tmp_path, text)
    assert found == [("down", 0, 180, ("b",))]
    assert skipped(record) == {"unreadable sample": 3}


def test_samples_are_recognised_and_other_numbers_are_not(tmp_path):
    own, other = files_of(tmp_path, samples((0, "idle", "mix")), "1709294400|3|7\n1709294460|3|8\n")
    assert "EPOCH|NODE|STATE" in SlurmReader().recognise(own)
    assert SlurmReader().recognise(other) is None


def test_text_that_is_nothing_of_slurm_is_refused_with_the_command(tmp_path):
    with pytest.raises(InputError, match=r"log0[\s\S]*slurm --how"):
        read(tmp_path, "1 2 3\n4 5 6\n")
    with pytest.raises(InputError, match="no lines"):
        read(tmp_path, "\n\n")


@pytest.mark.parametrize(
    ("words", "has_warning"), [("POWERED_+DOWN", True), ("MIXED+CLOUD+DRAIN", False), ("DOWN*", False)]
)
def test_a_word_that_nobody_knows_beside_one_that_counts_has_warning(tmp_path, words, has_warning):
    record = events(tmp_path, f"hill|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|{words}|x|root")
    assert (node_states.STRANGE_WORD in record.report.warnings) == has_warning
    assert len(outages(record)) == 1


def test_an_event_of_a_cluster_with_an_unreadable_name_is_left_out_with_a_warning(tmp_path):
    record = events(tmp_path, "hi\x07ll|n1|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root")
    assert outages(record) == []
    assert skipped(record) == {node_states.SPOILT_CLUSTER: 1}
    assert UNREADABLE in record.report.warnings


# ---- amounts of warnings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"), [("IDLE+FROBNICATED", node_states.STRANGE_WORD), ("ASLEEP", node_states.UNKNOWN_STATE)]
)
def test_a_word_that_nobody_knows_concerns_its_node_for_as_long_as_the_event(tmp_path, words, sentence):
    record = events(tmp_path, f"hill|n[1-3]|2024-03-01T12:00:00|2024-03-01T14:30:00|{words}|x|root")
    assert record.report.warnings[sentence].node_hours == 3 * 2.5
    assert record.nodes == ("n1",)  # the others are not of the machine for that


def test_outages_of_no_known_node_say_how_much_they_take(tmp_path):
    record = events(tmp_path, "hill|m[1-2]|2024-03-01T12:00:00|2024-03-01T13:00:00|DOWN|x|root")
    assert record.report.warnings[node_states.OTHER_NODES].node_hours == 2.0


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("IDLE+MAINTENANCE", NodeState.RESERVED),
        ("MAINTENANCE", NodeState.RESERVED),
        ("IDLE+MAINTENANCE+RESERVED", NodeState.RESERVED),
        ("DOWN+MAINTENANCE", NodeState.DOWN),
        ("IDLE+INVALID", NodeState.DOWN),
    ],
)
def test_a_node_in_maintenance_is_not_idle(tmp_path, words, state):
    assert node_state(words) is state
    row = f"hill|n1|2024-03-01T14:00:00|2024-03-01T15:00:00|{words}|x|root"
    record = events(tmp_path, row)
    assert warnings(record) == {}
    assert [outage.state for outage in record.outages] == [state]


RESERVED = "Cluster|Name|TimeStart|TimeEnd|NodeNames|Flags"
JOBS = (
    "1|1|COMPLETED|2024-03-01T00:00:00|2024-03-01T06:00:00|21600|400|4|r[1-4]",
    "2|2|COMPLETED|2024-03-01T08:00:00|2024-03-01T09:00:00|3600|60|2|r[1-2]",
    "3|3|COMPLETED|2024-03-01T20:00:00|2024-03-02T00:00:00|14400|400|4|r[1-4]",
)
RESERVATIONS_OF_ALL_KINDS = (
    "c|course|2024-03-01T07:00:00|2024-03-01T12:00:00|r[1-2]|SPEC_NODES",
    "c|pm|2024-03-01T12:00:00|2024-03-01T16:00:00|r[1-4]|MAINT,SPEC_NODES",
    "c|daily|2024-03-01T17:00:00|2024-03-01T18:00:00|r3|DAILY,SPEC_NODES",
    "c|early|2024-02-01T17:00:00|2024-02-02T18:00:00|r3|SPEC_NODES",
    "c|others|2024-03-01T17:00:00|2024-03-01T18:00:00|q[1-90]|SPEC_NODES",
)


def test_what_depends_on_reservations_is_the_idle_time_that_the_other_choice_takes_away(tmp_path):
    (tmp_path / "jobs.psv").write_text(sacct(*JOBS))
    (tmp_path / "resv.psv").write_text("\n".join((RESERVED, *RESERVATIONS_OF_ALL_KINDS)) + "\n")
    rules = OccupancyRules(window="full")

    def built(reservations):
        options = ReadOptions(timezone="UTC", reservations=reservations)
        files = [tmp_path / "jobs.psv", tmp_path / "resv.psv"]
        return ingest(files, options=options, rules=rules)[1]

    idle, reserved = (built(choice) for choice in ("idle", "reserved"))
    assert idle.facts["node_hours"]["idle"] == 38.0
    assert (idle.warnings[RESERVED_IDLE].count, idle.warnings[RESERVED_IDLE].node_hours) == (3, 9.0)
    assert reserved.facts["node_hours"]["idle"] == 38.0 - 9.0
    assert RESERVED_IDLE not in reserved.warnings


def test_samples_that_lack_a_node_concern_it_until_it_is_back(tmp_path):
    lines = [f"{NOON + 60 * k}|n{i}|idle" for k in range(6) for i in (1, 2) if i == 1 or k in (0, 1, 4, 5)]
    record = read(tmp_path, "\n".join([*lines[:4], "nonsense", *lines[4:]]) + "\n")
    found = record.report.warnings
    assert (found[sampled_states.MISSING].count, found[sampled_states.MISSING].node_hours) == (1, 2 / 60)
    assert found[UNREADABLE].node_hours == 1 / 60  # one node for one sample


def test_a_time_in_a_form_of_its_own_names_the_variable(tmp_path):
    record = events(tmp_path, "hill|n1|01.03.2024 12:00:00|01.03.2024 13:00:00|DOWN|x|root")
    assert skipped(record) == {OWN_FORMAT: 1}
    assert record.report.warnings[UNREADABLE].why == node_states.UNKNOWN_TIMES


def test_a_reservation_is_of_a_node_however_it_is_spelt(tmp_path):
    jobs_file, reservations = tmp_path / "jobs.psv", tmp_path / "resv.psv"
    jobs_file.write_text(sacct(*JOBS))
    reservations.write_text(f"{RESERVED}\nc|x|2024-03-01T06:00:00|2024-03-01T08:00:00|R3.hpc|SPEC_NODES\n")
    options = ReadOptions(timezone="UTC", node_names="short-lower")
    report = ingest(
        [jobs_file, reservations], options=options, rules=OccupancyRules(window="full", empty_machine="idle")
    )[1]
    assert report.warnings[RESERVED_IDLE].node_hours == 2.0


def test_reservations_are_no_record_of_outages_by_which_an_empty_machine_would_be_idle(tmp_path):
    jobs_file, reservations = tmp_path / "jobs.psv", tmp_path / "resv.psv"
    jobs_file.write_text(sacct(*JOBS))
    reservations.write_text(f"{RESERVED}\nc|x|2024-03-01T08:00:00|2024-03-01T12:00:00|r[3-4]|SPEC_NODES\n")

    def report_of(choice):
        options = ReadOptions(timezone="UTC", reservations=choice)
        return ingest([jobs_file, reservations], options=options, rules=OccupancyRules(window="full"))[1]

    idle, reserved = report_of("idle"), report_of("reserved")
    taken = idle.facts["node_hours"]["idle"] - reserved.facts["node_hours"].get("idle", 0.0)
    assert idle.warnings[RESERVED_IDLE].node_hours == taken == 2.0  # from 9:00 on the machine is empty, and down
