"""The published schedulers against what ElasticFlow's program left, and the placement of three of them by hand."""

import pytest

from bfreplay.errors import BfreplayError
from bfreplay.experiments.parity.recorded.elasticflow_runs import FILES, PROGRAMS, runs
from bfreplay.systems.elasticflow.published.gandiva import gandiva
from bfreplay.systems.elasticflow.published.placement import BuddyPlacement, cache_key
from bfreplay.systems.elasticflow.published.program import NO_DEADLINE_S, Servers, TraceJob
from bfreplay.systems.elasticflow.published.slots import (
    Event,
    arrival_events,
    is_restart,
    merge_within_slot,
    overhead_s,
)
from bfreplay.systems.elasticflow.published.themis import NO_START_S, themis
from bfreplay.systems.elasticflow.published.tiresias import tiresias


def job(index, gpus, *, submit_s=0, duration_s=1000, deadline_s=10_000):
    rates = {n: float(n) for n in (1, 2, 4, 8, 16)}
    return TraceJob(index, submit_s, deadline_s, gpus, duration_s, duration_s * gpus, rates, 16)


# golden runs


RUNS = [
    *((file, schedule) for file in FILES for schedule in ("dlas-gpu", "gandiva")),
    ("small_n1g8", "themis"),
    *((file, schedule) for file in FILES[:2] for schedule in PROGRAMS if schedule.startswith("e")),
    *(pytest.param(file, "themis", marks=pytest.mark.thorough) for file in FILES[1:]),
    *(
        pytest.param(file, schedule, marks=pytest.mark.thorough)
        for file in FILES[2:]
        for schedule in PROGRAMS
        if schedule.startswith("e")
    ),
]


@pytest.mark.parametrize(("file", "schedule"), RUNS)
def test_a_program_leaves_what_the_published_one_left(shared, file, schedule):
    found = [run for run in runs(shared, [file]) if run.schedule == schedule]
    assert found
    for run in found:
        record = run.record
        assert (run.repeated.accepted, run.repeated.declined) == (record["accepted"], record["declined"]), run.name
        assert run.ends() == run.recorded_ends(), run.name
        assert len(run.repeated.moments) == record["n_scheduling_rows"], run.name
        if "events" in record:
            assert run.events() == record["events"], run.name


# hand-made


def test_small_jobs_fill_the_server_that_is_used_most_and_fits():
    placement = BuddyPlacement(Servers(2, 8))
    for index, n in enumerate([4, 2, 1, 8, 1]):
        placement.place(index, n)
    # 4 + 2 leave 2 in the first server; the single GPUs go there, and the whole job has the second server
    assert placement.gpus() == {0: (0, 1, 2, 3), 1: (4, 5), 2: (6,), 3: tuple(range(8, 16)), 4: (7,)}


def test_a_job_prefers_its_own_class_to_a_larger_one():
    placement = BuddyPlacement(Servers(3, 8))
    placement.place(0, 4)  # leaves 4: class 4
    placement.place(1, 8)
    placement.place(2, 2)  # no server of class 2: takes that of class 4, which leaves 2
    placement.place(3, 4)  # none of class 4 is left: a fresh server
    placement.place(4, 2)  # class 2 before class 4
    assert placement.gpus()[3] == (16, 17, 18, 19)
    assert placement.gpus()[4] == (6, 7)


def test_what_a_server_has_left_decides_its_class_also_after_a_release():
    placement = BuddyPlacement(Servers(2, 8))
    for index, n in enumerate([4, 2, 2]):
        placement.place(index, n)
    placement.release(0)  # the others move up; 4 are left
    assert placement.gpus() == {1: (0, 1), 2: (2, 3)}
    placement.place(3, 4)
    assert placement.gpus()[3] == (4, 5, 6, 7)
    for index in (1, 2, 3):
        placement.release(index)
    placement.place(4, 16)
    assert placement.gpus() == {4: tuple(range(16))}


def test_nothing_is_left_of_a_placement_that_was_cleared():
    placement, fresh = BuddyPlacement(Servers(4, 4)), BuddyPlacement(Servers(4, 4))
    for index, n in enumerate([1, 8, 2, 1]):
        placement.place(index, n)
    placement.release(1)
    placement.clear()
    for index, n in enumerate([8, 2, 1, 4]):
        placement.place(index, n)
        fresh.place(index, n)
    assert placement.gpus() == fresh.gpus()


@pytest.mark.parametrize("n", [3, 0, 12, 20])
def test_a_size_that_the_program_cannot_place_is_refused(n):
    with pytest.raises(BfreplayError, match=f"job 7 cannot have {n} GPUs"):
        BuddyPlacement(Servers(4, 8)).place(7, n)


def test_a_job_without_room_is_refused_and_changes_nothing():
    placement = BuddyPlacement(Servers(1, 8))
    placement.place(0, 4)
    with pytest.raises(BfreplayError, match="job 1 needs 1 free servers for 8 GPUs, and 0 are"):
        placement.place(1, 8)
    placement.place(2, 4)
    assert placement.gpus() == {0: (0, 1, 2, 3), 2: (4, 5, 6, 7)}


def test_the_cache_knows_a_placement_by_its_first_gpu_and_size():
    assert cache_key((8, 9, 10, 11)) == (8, 4)
    assert cache_key((*range(8, 16), *range(24, 32))) == (8, 16)


def test_events_within_a_slot_become_one_at_its_end():
    events = [Event(500.0, [2]), Event(100.0, [0]), Event(240.0, [1], [7])]
    merge_within_slot(events, 0.0, 240)
    assert [(event.time_s, event.arrivals, event.ends) for event in events] == [
        (240.0, [0, 1], [7]),
        (500.0, [2], []),
    ]


def test_the_only_event_keeps_its_time():
    events = [Event(100.0, [0])]
    merge_within_slot(events, 0.0, 240)
    assert events[0].time_s == 100.0


def test_jobs_submitted_at_once_are_one_event():
    events = arrival_events([job(0, 1, submit_s=5), job(1, 1, submit_s=3), job(2, 1, submit_s=5)])
    assert [(event.time_s, event.arrivals) for event in events] == [(3, [1]), (5, [0, 2])]


def test_overheads_by_hand():
    assert overhead_s(8, 128, restart=False) == 2 + 2 * 4
    assert overhead_s(8, 128, restart=True) == 29 + 2 * 4
    assert overhead_s(1, 256, restart=False) == 7 + 2
    assert overhead_s(1, 256, restart=True) == 54 + 2
    assert overhead_s(8, 128, restart=True, cached=True) == 2
    assert [n for n in range(500) if is_restart(n, 240)] == [240, 480]


@pytest.mark.parametrize("run_published", [tiresias, gandiva, themis])
def test_a_best_effort_job_is_not_counted(run_published):
    run = run_published([job(0, 1, deadline_s=NO_DEADLINE_S), job(1, 2)], Servers(1, 8), 240)
    assert (run.accepted, run.declined) == (1, 0)
    assert {end.index: end.is_met for end in run.ends} == {0: None, 1: True}


@pytest.mark.parametrize("run_published", [tiresias, gandiva, themis])
def test_no_jobs_leave_nothing(run_published):
    run = run_published([], Servers(1, 8), 240)
    assert not run.moments
    assert not run.ends


def test_tiresias_leaves_a_job_that_is_too_large_waiting():
    run = tiresias([job(0, 16), job(1, 1)], Servers(1, 8), 240)
    assert [end.index for end in run.ends] == [1]


@pytest.mark.parametrize("run_published", [gandiva, themis])
def test_a_job_that_would_wait_for_ever_is_refused(run_published):
    with pytest.raises(BfreplayError, match="job 0 wants 16 GPUs, and the cluster has 8"):
        run_published([job(0, 16)], Servers(1, 8), 240)


def test_themis_ends_jobs_by_duration_and_never_says_when_they_started():
    run = themis([job(0, 1, duration_s=500)], Servers(1, 8), 240)
    (end,) = run.ends
    assert (end.start_s, end.end_s) == (NO_START_S, 720)  # its iterations run out with the third slot
