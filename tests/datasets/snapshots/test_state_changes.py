"""From snapshot to snapshot: the times at which nodes changed, and no more than the snapshots tell.

Times are seconds; a poll shows a few nodes, and jobs as (partition, start, end or None, nodes).
"""

import pytest

from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.snapshots.changes import StateChanges, lent_partitions
from bfreplay.datasets.snapshots.readings import JobReading, NodeReading, Snapshot
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.datasets.times import US
from bfreplay.errors import InputError

TABLE = StateTable.default()


def us(seconds):
    return None if seconds is None else round(seconds * US)


def poll(time_s, nodes, jobs=None, since=()):
    """Return a snapshot: ``nodes`` is node -> raw state, ``since`` node -> when it was last busy."""
    readings = {
        node: NodeReading(
            raw, TABLE.state_of(raw), us(dict(since).get(node)), without_jobs=TABLE.state_without_jobs(raw)
        )
        for node, raw in nodes.items()
    }
    if jobs is not None:
        jobs = tuple(
            JobReading(str(k), partition, "RUNNING" if end is None else "COMPLETED", us(start), us(end), tuple(on))
            for k, (partition, start, end, *on) in enumerate(jobs)
        )
    return Snapshot(us(time_s), readings, jobs)


def followed(*polls, lends=()):
    """Return the rows after the first poll, as (seconds, node, word)."""
    changes = StateChanges.of_first(polls[0], lends)
    rows = [row for snapshot in polls[1:] for row in changes.update(snapshot)]
    return [(time_us / US, node, STATE_WORDS[state]) for time_us, node, state in rows]


# ---- exact times ----------------------------------------------------------------------------------------------------


def test_a_node_is_busy_since_its_job_started():
    jobs = [("batch", 12, None, "n1")]
    assert followed(poll(10.5, {"n1": "IDLE"}, []), poll(13.5, {"n1": "ALLOCATED"}, jobs)) == [(12, "n1", "busy")]


def test_without_jobs_it_is_busy_at_the_poll():
    assert followed(poll(10.5, {"n1": "IDLE"}), poll(13.5, {"n1": "ALLOCATED"})) == [(13.5, "n1", "busy")]


def test_a_node_is_idle_since_it_was_last_busy():
    after = poll(13.5, {"n1": "IDLE"}, since={"n1": 11})
    assert followed(poll(10.5, {"n1": "ALLOCATED"}), after) == [(11, "n1", "idle")]


def test_a_node_is_idle_since_its_job_ended():
    jobs = [("batch", 5, 12, "n1")]
    assert followed(poll(10.5, {"n1": "ALLOCATED"}, []), poll(13.5, {"n1": "IDLE"}, jobs)) == [(12, "n1", "idle")]


def test_between_the_end_of_its_job_and_the_last_time_it_was_busy_a_node_is_completing():
    jobs = [("batch", 5, 12, "n1")]
    after = poll(18.5, {"n1": "IDLE+PLANNED"}, jobs, since={"n1": 17})
    assert followed(poll(10.5, {"n1": "ALLOCATED"}, []), after) == [(12, "n1", "completing"), (17, "n1", "planned")]


def test_completing_seen_at_a_poll_begins_with_the_end_of_the_job():
    jobs = [("batch", 5, 11, "n1")]
    polls = [
        poll(10.5, {"n1": "ALLOCATED"}, []),
        poll(12.5, {"n1": "IDLE+COMPLETING"}, jobs),
        poll(14.5, {"n1": "IDLE"}, jobs, since={"n1": 13}),
    ]
    assert followed(*polls) == [(11, "n1", "completing"), (13, "n1", "idle")]


@pytest.mark.parametrize("flag", ["PLANNED", "RESERVED", "DRAIN", "MAINTENANCE"])
def test_a_flag_on_an_idle_node_begins_at_the_poll_whenever_it_was_last_busy(flag):
    after = poll(13.5, {"n1": f"IDLE+{flag}"}, since={"n1": 4})
    assert followed(poll(10.5, {"n1": "IDLE"}), after) == [(13.5, "n1", flag.lower())]


def test_a_time_just_before_the_last_poll_is_the_second_of_a_change_just_after_it():
    jobs = [("batch", 10, None, "n1")]
    assert followed(poll(10.5, {"n1": "IDLE"}, []), poll(11.5, {"n1": "ALLOCATED"}, jobs)) == [
        (10.500001, "n1", "busy")  # not before the first poll, which is the row of n1 before this one
    ]
    polls = [poll(9.5, {"n1": "IDLE"}, []), poll(10.5, {"n1": "IDLE"}, []), poll(11.5, {"n1": "ALLOCATED"}, jobs)]
    assert followed(*polls) == [(10, "n1", "busy")]


def test_a_job_that_is_older_than_that_had_the_node_by_another_way():
    jobs = [("batch", 3, None, "n1")]  # a job that grew, or a node that was seen idle while the job had it
    assert followed(poll(10.5, {"n1": "IDLE"}, []), poll(13.5, {"n1": "ALLOCATED"}, jobs)) == [(13.5, "n1", "busy")]


def test_no_row_is_later_than_its_poll():
    after = poll(13.5, {"n1": "IDLE"}, since={"n1": 21})  # the poll's clock is late
    assert followed(poll(10.5, {"n1": "ALLOCATED"}), after) == [(13.5, "n1", "idle")]


# ---- between two polls ----------------------------------------------------------------------------------------------


def test_a_short_job_between_two_polls_is_put_in():
    jobs = [("batch", 11, 13, "n1")]
    polls = poll(10.5, {"n1": "IDLE"}, []), poll(14.5, {"n1": "IDLE"}, jobs), poll(15.5, {"n1": "IDLE"}, jobs)
    assert followed(*polls) == [(11, "n1", "busy"), (13, "n1", "idle")]


def test_a_short_gap_between_two_jobs_is_put_in_once():
    jobs = [("batch", 2, 11, "n1"), ("batch", 13, None, "n1")]
    polls = [poll(time_s, {"n1": "ALLOCATED"}, jobs) for time_s in (13.5, 13.7, 14.5)]
    assert followed(poll(10.5, {"n1": "ALLOCATED"}, []), *polls) == [(11, "n1", "idle"), (13, "n1", "busy")]


def test_a_gap_on_a_node_that_drains_is_no_idle_time():
    jobs = [("batch", 2, 11, "n1"), ("batch", 13, None, "n1")]
    assert followed(poll(10.5, {"n1": "ALLOCATED+DRAIN"}, []), poll(13.5, {"n1": "ALLOCATED+DRAIN"}, jobs)) == [
        (11, "n1", "drain"),
        (13, "n1", "busy"),
    ]


def test_in_a_gap_a_node_is_what_it_was_before():
    jobs = [("batch", 11, 12, "n1"), ("batch", 13, None, "n1")]
    for before, gap in (("IDLE+PLANNED", "planned"), ("IDLE", "idle"), ("IDLE+COMPLETING", "idle")):
        rows = followed(poll(10.5, {"n1": before}, []), poll(13.5, {"n1": "ALLOCATED"}, jobs))
        assert rows == [(11, "n1", "busy"), (12, "n1", gap), (13, "n1", "busy")]


def test_jobs_on_a_shared_node_are_one_busy_time():
    jobs = [("batch", 11, 14, "n1"), ("batch", 12, 13, "n1"), ("batch", 14, 15, "n1")]
    assert followed(poll(10.5, {"n1": "IDLE"}, []), poll(16.5, {"n1": "IDLE"}, jobs)) == [
        (11, "n1", "busy"),
        (15, "n1", "idle"),
    ]


def test_a_job_that_began_after_the_nodes_were_asked_is_seen_at_the_next_poll():
    jobs = [("batch", 12, None, "n1")]
    polls = poll(10.5, {"n1": "IDLE"}, []), poll(12.4, {"n1": "IDLE"}, jobs), poll(13, {"n1": "ALLOCATED"}, jobs)
    assert followed(*polls) == [(12, "n1", "busy")]


def test_a_job_of_no_length_leaves_no_row():
    assert followed(poll(10.5, {"n1": "IDLE"}, []), poll(14.5, {"n1": "IDLE"}, [("b", 11, 11, "n1")])) == []


def test_a_node_that_dies_under_its_job_was_busy_until_the_job_ended():
    jobs = [("batch", 11, 13, "n1")]
    assert followed(poll(10.5, {"n1": "IDLE"}, []), poll(14.5, {"n1": "DOWN"}, jobs)) == [
        (11, "n1", "busy"),
        (13, "n1", "down"),
    ]


def test_rows_are_in_order_of_time_and_node():
    jobs = [("batch", 12, None, "n2"), ("batch", 11, None, "n3", "n1")]
    names = {"n3": "ALLOCATED", "n2": "ALLOCATED", "n1": "ALLOCATED"}
    assert followed(poll(10.5, dict.fromkeys(names, "IDLE"), []), poll(12.5, names, jobs)) == [
        (11, "n1", "busy"),
        (11, "n3", "busy"),
        (12, "n2", "busy"),
    ]


# ---- nodes come and go, nothing is known ----------------------------------------------------------------------------


def test_a_node_that_is_missing_is_unknown_and_a_new_one_is_what_it_is_at_the_poll():
    polls = poll(10, {"n1": "IDLE"}), poll(11, {"n2": "IDLE"}, since={"n2": 7}), poll(12, {"n1": "IDLE", "n2": "IDLE"})
    assert followed(*polls) == [(11, "n1", "unknown"), (11, "n2", "idle"), (12, "n1", "idle")]


def test_while_the_scheduler_does_not_answer_all_nodes_are_unknown():
    changes = StateChanges.of_first(poll(10, {"n1": "IDLE", "n2": "ALLOCATED", "n3": "IDLE"}, []))
    assert changes.lose_sight(us(12)) == [(us(12), node, NodeState.UNKNOWN) for node in ("n1", "n2", "n3")]
    assert changes.lose_sight(us(20)) == []
    back = poll(
        40,
        {"n1": "ALLOCATED", "n2": "IDLE", "n3": "IDLE"},
        [("batch", 30, None, "n1")],
        since={"n2": 35, "n3": 4},
    )
    assert changes.update(back) == [
        (us(30), "n1", NodeState.BUSY),  # the job is a fact
        (us(35), "n2", NodeState.IDLE),
        (us(40), "n3", NodeState.IDLE),  # of the time between nothing is known
    ]


def test_a_clock_that_is_set_back_is_not_followed():
    changes = StateChanges.of_first(poll(10, {"n1": "IDLE"}))
    assert changes.update(poll(4, {"n1": "ALLOCATED"})) == []
    assert changes.update(poll(10, {"n1": "ALLOCATED"})) == []
    assert changes.lose_sight(us(9)) == []
    assert changes.update(poll(11, {"n1": "ALLOCATED"})) == [(us(11), "n1", NodeState.BUSY)]


def test_a_strange_state_is_unknown():
    readings = {"n1": NodeReading("IDLE+QUANTUM", NodeState.UNKNOWN, without_jobs=NodeState.UNKNOWN)}
    changes = StateChanges.of_first(poll(10, {"n1": "IDLE"}))
    assert changes.update(Snapshot(us(11), readings)) == [(us(11), "n1", NodeState.UNKNOWN)]


# ---- jobs of others -------------------------------------------------------------------------------------------------


def test_a_node_with_lending_jobs_alone_is_idle_and_busy_when_another_starts():
    lent, own = ("idle", 5, None, "n1"), ("batch", 14, None, "n1")
    polls = [
        poll(10, {"n1": "ALLOCATED"}, [lent]),
        poll(12, {"n1": "ALLOCATED"}, [("idle", 5, 11, "n1"), ("idle", 12, None, "n1")]),
        poll(15, {"n1": "ALLOCATED"}, [("idle", 12, 14, "n1"), own]),
        poll(17, {"n1": "ALLOCATED"}, [("batch", 14, 16, "n1"), ("idle", 16, None, "n1")]),
    ]
    assert StateChanges.of_first(polls[0], ["idle"]).states == {"n1": NodeState.IDLE}
    assert followed(*polls, lends=["idle"]) == [(14, "n1", "busy"), (16, "n1", "idle")]


@pytest.mark.parametrize(
    ("raw", "word"), [("ALLOCATED+DRAIN", "drain"), ("MIXED+PLANNED", "planned"), ("ALLOCATED+RESERVED", "reserved")]
)
def test_flags_win_over_lending_jobs(raw, word):
    lent = [("idle", 5, None, "n1")]
    polls = poll(10, {"n1": "ALLOCATED"}, lent), poll(12, {"n1": raw}, lent)
    assert followed(*polls, lends=["idle"]) == [(12, "n1", word)]


def test_a_shared_node_with_one_job_that_does_not_lend_is_busy_and_so_is_one_whose_jobs_are_hidden():
    jobs = [("idle", 5, None, "n1"), ("batch", 5, None, "n1")]
    states = StateChanges.of_first(poll(10, {"n1": "MIXED", "n2": "MIXED"}, jobs), ["idle"]).states
    assert states == {"n1": NodeState.BUSY, "n2": NodeState.BUSY}


def test_busy_nodes_without_a_job_at_two_polls_show_that_jobs_are_hidden():
    nodes, jobs = {"n1": "ALLOCATED", "n2": "ALLOCATED"}, [("batch", 5, None, "n1")]
    changes = StateChanges.of_first(poll(10, {"n1": "IDLE", "n2": "IDLE"}, []))
    changes.update(poll(11, nodes, jobs))
    assert changes.sees_others_jobs  # a job may have started between the two questions
    changes.update(poll(12, nodes, jobs))
    assert not changes.sees_others_jobs
    changes.update(poll(13, nodes, [*jobs, ("batch", 10, None, "n2")]))
    assert changes.sees_others_jobs


def test_lending_is_by_partition():
    assert lent_partitions(["partition=idle", "partition=scavenge"]) == ("idle", "scavenge")
    for text in ("idle", "partition=", "account=x"):
        with pytest.raises(InputError, match="names no partition"):
            lent_partitions([text])


def test_a_node_that_is_powered_up_for_a_job_is_off_until_the_job_starts():
    waiting, running = [("batch", None, None, "n1")], [("batch", 20, None, "n1")]
    polls = [
        poll(10, {"n1": "IDLE+POWERED_DOWN"}, []),
        poll(12, {"n1": "ALLOCATED+POWERING_UP"}, waiting),
        poll(21, {"n1": "ALLOCATED"}, running),
    ]
    assert followed(*polls) == [(20, "n1", "busy")]


def test_a_job_that_has_not_started_shows_that_jobs_can_be_seen():
    changes = StateChanges.of_first(poll(10, {"n1": "ALLOCATED"}, [("batch", None, None, "n1")]))
    for time_s in (11, 12, 13):
        changes.update(poll(time_s, {"n1": "ALLOCATED"}, [("batch", None, None, "n1")]))
    assert changes.sees_others_jobs


def test_a_node_is_planned_while_it_is_made_ready_for_a_job_and_busy_from_its_start():
    waiting, running = [("batch", None, None, "n1")], [("batch", 20, None, "n1")]
    polls = [
        poll(10, {"n1": "IDLE"}, []),
        poll(12, {"n1": "ALLOCATED"}, waiting),
        poll(21, {"n1": "ALLOCATED"}, running),
    ]
    assert followed(*polls) == [(12, "n1", "planned"), (20, "n1", "busy")]
    assert StateChanges.of_first(polls[1]).states == {"n1": NodeState.PLANNED}


def test_a_node_that_is_shared_with_a_job_that_has_started_is_busy():
    jobs = [("batch", None, None, "n1"), ("batch", 9, None, "n1")]
    assert StateChanges.of_first(poll(10, {"n1": "MIXED"}, jobs)).states == {"n1": NodeState.BUSY}
