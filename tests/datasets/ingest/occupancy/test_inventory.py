"""Nodes that were not there, that have several names, and that are not wanted."""

import pytest

from bfreplay.datasets.ingest.occupancy.build import build_events
from bfreplay.datasets.ingest.occupancy.inventory import (
    ABSENT_WARNING,
    LONG_UNUSED,
    MERGED,
    NAMED_ONCE,
    NAMED_OTHERWISE,
    NEVER_USED,
    SKIPPED_NODES,
    TWO_SPELLINGS,
)
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import NODE_NAMES, NOT_IN_INVENTORY, ScheduleRecord, one_name
from bfreplay.datasets.log.states import NodeState
from tests.datasets.ingest.occupancy.by_the_second import events_by_the_second
from tests.datasets.ingest.occupancy.small_records import DAY, HOUR, S, listed, plain, rows_of, tally


def absent_log(first, last):
    """Node a all the time, day 0 to 100; node b from first to last."""
    return listed([(0, 100 * DAY, "a"), (first * DAY, last * DAY, "b")], inventory=())


@pytest.mark.parametrize(
    ("first", "last", "unknown", "idle"),
    [(0, 100, 0, 0), (7, 93, 0, 14), (8, 93, 8, 7), (7, 92, 8, 7), (8, 92, 16, 0), (99, 100, 99, 0)],
)
def test_a_node_is_absent_if_unused_for_longer_than_the_limit_at_an_edge(first, last, unknown, idle):
    built = build_events(absent_log(first, last), plain())
    hours = {"busy": 24.0 * (100 + last - first), "unknown": 24.0 * unknown, "idle": 24.0 * idle}
    assert built.report.facts["node_hours"] == {word: hour for word, hour in hours.items() if hour}
    fact = built.report.facts.get("nodes assumed absent")
    if not unknown:
        assert fact is None
    else:
        assert fact["node_hours"] == 24.0 * unknown
        assert fact["before their first job"] == (first > 7)
        assert fact["after their last job"] == (last < 93)


def test_nodes_assumed_absent_are_a_warning_with_the_idle_time_with_and_without_them():
    built = build_events(absent_log(8, 92), plain())
    warning = built.report.warnings[ABSENT_WARNING]
    assert (warning.count, warning.node_hours) == (1, 24.0 * 16)
    assert warning.examples[0].value == "b: idle 0.0 node-hours, 384.0 if they were there"


def test_time_of_a_recorded_outage_is_not_assumed_absence():
    for first, last, outage, before, after, days in (
        (30, 100, (0, 30), 0, 0, 0),
        (30, 100, (10, 20), 1, 0, 20),
        (30, 60, (0, 30), 0, 1, 40),
        (30, 60, (20, 70), 1, 1, 50),
    ):
        record = absent_log(first, last)
        record.add_outage(NodeState.DOWN, outage[0] * DAY, outage[1] * DAY, record.node_ids("b"))
        report = build_events(record, plain()).report
        fact = report.facts.get("nodes assumed absent", {"before their first job": 0, "after their last job": 0})
        assert (fact["before their first job"], fact["after their last job"]) == (before, after)
        warning = report.warnings.get(ABSENT_WARNING)
        assert (None if warning is None else (warning.count, warning.node_hours)) == (
            (1, 24.0 * days) if days else None
        )


def test_absence_counts_inside_the_window_only():
    record = absent_log(50, 53)
    for window, nodes, unknown in (
        ((60, 80), ("a", "b"), 20),
        ((60.5, 80), ("a",), 0),
        ((30, 43), ("a", "b"), 13),
        ((30, 42.5), ("a",), 0),
        ((45, 80), ("a", "b"), 27),
    ):
        edges = int(window[0] * DAY), int(window[1] * DAY)
        built = build_events(record, plain(window=edges))
        assert built.events.nodes == nodes
        assert built.report.facts["node_hours"].get("unknown", 0.0) == 24.0 * unknown
        assert built.report.facts.get("nodes assumed absent", {"node_hours": 0.0})["node_hours"] == 24.0 * unknown


def test_a_node_is_there_until_it_is_released():
    record = absent_log(0, 50)
    built = build_events(record, plain(release_delay_s=86_400))
    assert built.report.facts["node_hours"] == {"busy": 24.0 * 151, "unknown": 24.0 * 49}


def test_nodes_left_out_do_not_shift_those_that_are_kept():
    record = listed([(0, DAY, "a"), (100 * DAY, 110 * DAY, "c"), (100 * DAY, 105 * DAY, "b")], inventory=())
    record.add_outage(NodeState.DRAIN, 105 * DAY, 110 * DAY, record.node_ids("b"))
    built = build_events(record, plain(window=(100 * DAY, 110 * DAY)))
    assert built.events.nodes == ("b", "c")
    assert rows_of(built.events)[0] == (105 * DAY, "b", NodeState.DRAIN)


# ---- several names of one node --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "short", "lower", "both"),
    [
        ("CN01.hpc.site", "CN01", "cn01.hpc.site", "cn01"),
        ("cn01", "cn01", "cn01", "cn01"),
        ("10.0.0.7", "10.0.0.7", "10.0.0.7", "10.0.0.7"),
        (".odd", ".odd", ".odd", ".odd"),
    ],
)
def test_names_lose_their_domain_and_their_capitals_as_asked(name, short, lower, both):
    assert [one_name(name, rule) for rule in NODE_NAMES] == [name, short, lower, both]


def spelt(names, rule="as-is", **changes):
    record = ScheduleRecord(node_names=rule)
    for i, name in enumerate(names):
        record.add_job(i, i * HOUR, (i + 1) * HOUR, record.node_ids([name]))
    return build_events(record, plain(**changes))


@pytest.mark.parametrize("names", [("cn01", "cn01.hpc"), ("CN01", "cn01"), ("cn01.hpc", "CN01.hpc")])
def test_two_spellings_of_a_node_are_a_warning_about_the_time_that_one_of_them_is_too_many(names):
    built = spelt(names)
    warning = built.report.warnings[TWO_SPELLINGS]
    assert (warning.count, warning.node_hours, warning.examples[0].value) == (1, 2.0, ", ".join(names))
    assert built.report.facts["node_hours"] == {"busy": 2.0, "idle": 2.0}
    mended = spelt(names, "short-lower")
    assert TWO_SPELLINGS not in mended.report.warnings
    assert mended.report.facts["node_hours"] == {"busy": 2.0}
    assert mended.report.facts["node names"] == "2 spellings of 1 (short-lower)"


def test_time_for_which_a_spelling_is_assumed_absent_is_not_too_much_idle_time():
    record = ScheduleRecord()
    record.add_job(1, 0, 30 * DAY, record.node_ids(["cn01"]))
    record.add_job(2, 20 * DAY, 30 * DAY, record.node_ids(["cn01.hpc"]))
    assert build_events(record, plain()).report.warnings[TWO_SPELLINGS].node_hours == 10 * 24.0


@pytest.mark.parametrize("names", [("cn01.east", "cn01.west"), ("cn1", "cn01"), ("10.0.0.7", "10.0.0.8")])
def test_other_nodes_are_not_taken_for_spellings_of_one(names):
    assert TWO_SPELLINGS not in spelt(names).report.warnings


def test_nodes_of_two_domains_that_became_one_are_a_warning():
    warning = spelt(("cn01.east", "cn01.west", "cn02", "cn02.east"), "short").report.warnings[MERGED]
    assert (warning.count, warning.examples[0].value) == (1, "cn01.east, cn01.west")


# ---- only some of the nodes -----------------------------------------------------------------------------------------


def only(names, jobs):
    record = ScheduleRecord()
    record.give_inventory(names, is_restricted=True)
    for i, (start, end, held, count) in enumerate(jobs):
        record.add_job(i, start * S, end * S, record.node_ids(held), count)
    return build_events(record, plain())


def test_only_nodes_of_the_inventory_are_left_and_the_uses_of_others_are_counted():
    built = only("ab", [(0, 10, "ax", 2), (0, 20, "xy", 2), (10, 30, "b", 1)])
    assert built.events.nodes == ("a", "b")
    found = events_by_the_second(built.events)
    assert [t for t in range(30) if found["a"][t] == NodeState.BUSY] == list(range(10))
    assert [t for t in range(30) if found["b"][t] == NodeState.BUSY] == list(range(10, 30))
    assert built.report.facts[SKIPPED_NODES] == (
        "2 nodes that the inventory does not have (--inventory-only), such as x, y: 3 uses by jobs not counted"
    )
    assert not {NOT_IN_INVENTORY, NEVER_USED} & built.report.warnings.keys()


def test_a_job_of_counts_is_given_no_node_that_is_not_wanted():
    built = only("ab", [(0, 5, "x", 1), (0, 40, "a", 1), (10, 20, "", 1), (25, 30, "x", 1), (30, 40, "", 2)])
    found = events_by_the_second(built.events)["b"]
    assert [t for t in range(40) if found[t] == NodeState.BUSY] == [*range(10, 20), *range(30, 40)]
    assert tally(built, "got the nodes that were free").count == 1


def test_nodes_never_or_long_not_used_are_warned_of_with_their_node_hours():
    record = listed([(0, 50 * DAY, "a"), (8 * DAY, 42 * DAY, "b")], inventory="abc")
    warnings = build_events(record, plain()).report.warnings
    assert (warnings[NEVER_USED].node_hours, warnings[LONG_UNUSED].node_hours) == (50 * 24.0, 16 * 24.0)


def test_nodes_that_may_be_none_have_the_idle_hours_of_these_nodes_alone():
    record = ScheduleRecord()
    for i in range(4):
        record.add_job(i, i * 24 * HOUR, (i * 24 + 20) * HOUR, record.node_ids([f"cn{i % 2}", "cn8", "cn9"]))
    record.add_job(8, 24 * HOUR, 34 * HOUR, record.node_ids(["login"]))
    record.add_outage(NodeState.DOWN, 40 * HOUR, 50 * HOUR, record.node_ids(["login"]))
    built = build_events(record, OccupancyRules(window="full", empty_machine="idle"))
    assert built.report.warnings[NAMED_OTHERWISE].node_hours == 92 - 10 - 10


def test_names_of_several_domains_made_one_node_concern_the_others_for_all_the_window():
    record = ScheduleRecord(node_names="short")
    record.add_job(1, 0, 10 * HOUR, record.node_ids(["n1.a", "n2.a"]))
    record.add_job(2, 0, 10 * HOUR, record.node_ids(["n1.b", "n1.c"]))
    warning = build_events(record, OccupancyRules(window="full")).report.warnings[MERGED]
    assert (warning.count, warning.node_hours) == (1, 2 * 10.0)


def test_a_node_that_may_be_misspelt_is_in_one_warning_only():
    record = ScheduleRecord()
    for i in range(60):
        record.add_job(i, i * 2 * HOUR, (i * 2 + 1) * HOUR, record.node_ids([f"cn{k:02d}" for k in range(12)]))
    record.add_job(99, 24 * HOUR, 25 * HOUR, record.node_ids(["bigmem"]))
    built = build_events(record, OccupancyRules(window="full", empty_machine="idle"))
    found = [tally.node_hours for s, tally in built.report.warnings.items() if s in (NAMED_ONCE, NAMED_OTHERWISE)]
    assert found == [119 - 1]
