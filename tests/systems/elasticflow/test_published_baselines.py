"""The published Tiresias, Gandiva and Themis and their placement by hand; their recorded runs are in tests/parity."""

from types import SimpleNamespace

import numpy as np
import pytest

import bfreplay.systems.elasticflow.published.themis as themis_module
from bfreplay.errors import BfreplayError
from bfreplay.systems.elasticflow.published.event_loop import (
    BuddyPlacement,
    Job,
    PublishedLoop,
    Timetable,
    cache_key,
    is_restart,
    overhead_s,
)
from bfreplay.systems.elasticflow.published.gandiva import gandiva
from bfreplay.systems.elasticflow.published.program import NO_DEADLINE_S, Servers, TraceJob
from bfreplay.systems.elasticflow.published.themis import NO_START_S, fair_fractions, themis
from bfreplay.systems.elasticflow.published.tiresias import tiresias
from tests.parity.elasticflow_records import needs_ecos


def job(index, gpus, *, submit_s=0, duration_s=1000, deadline_s=10_000):
    rates = {n: float(n) for n in (1, 2, 4, 8, 16)}
    return TraceJob(index, submit_s, deadline_s, gpus, duration_s, duration_s * gpus, rates, 16)


# the program of Themis


def claims(elapsed_s, iterations, rates, reference_s, gpus, n_gpus):
    arrays = [np.array(each, dtype=float) for each in (elapsed_s, iterations, rates, reference_s, gpus)]
    return SimpleNamespace(
        **dict(zip(("elapsed_s", "iterations", "rates", "reference_s", "gpus"), arrays, strict=True)), n_gpus=n_gpus
    )


def ratios(of, fractions):
    return (of.elapsed_s + of.iterations / (of.rates * fractions)) / of.reference_s


def best_ratio(of):
    """Return the best ratio by bisection: at a ratio each job needs a fraction, and the GPUs must suffice."""

    def fits(ratio):
        time_s = ratio * of.reference_s - of.elapsed_s
        if (time_s <= 0).any():
            return False
        needs = of.iterations / (of.rates * time_s)
        return (needs <= 1).all() and of.gpus @ needs <= of.n_gpus

    low, high = 0.0, 1.0
    while not fits(high):
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@needs_ecos
def test_two_equal_jobs_share_a_gpu_equally():
    of = claims([0, 0], [100, 100], [1, 1], [100, 100], [1, 1], 1)
    assert fair_fractions(**vars(of)) == pytest.approx([0.5, 0.5], abs=1e-6)


@needs_ecos
def test_the_worst_job_has_all_its_time_where_there_is_room():
    of = claims([0, 0, 0], [100, 200, 400], [1, 1, 1], [100, 100, 100], [1, 1, 1], 3)
    fractions = fair_fractions(**vars(of))
    assert fractions[2] == pytest.approx(1, abs=1e-6)
    assert 0.25 < fractions[0] < 1  # it needs 0.25 for the ratio of the worst, 4
    assert 0.5 < fractions[1] < 1


@needs_ecos
def test_no_fractions_have_a_better_ratio():
    random = np.random.default_rng(5)
    for n_jobs in (2, 3, 5, 8, 20):
        for n_gpus in (1, 8, 32):
            iterations, rates = random.uniform(10, 1e5, n_jobs), random.uniform(0.1, 20, n_jobs)
            gpus = random.choice([1, 2, 4, 8], n_jobs)
            of = claims(
                random.uniform(0, 1e4, n_jobs),
                iterations,
                rates,
                iterations * random.uniform(1, 4, n_jobs),
                gpus,
                n_gpus,
            )
            fractions = fair_fractions(**vars(of))
            assert max(ratios(of, fractions)) == pytest.approx(best_ratio(of), rel=1e-4)
            assert max(fractions) < 1 + 1e-6
            assert gpus @ fractions < n_gpus + 1e-5


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


def test_nothing_is_left_of_a_placement_that_was_cleared():
    placement, fresh = BuddyPlacement(Servers(4, 4)), BuddyPlacement(Servers(4, 4))
    for index, n in enumerate([1, 8, 2, 1]):
        placement.place(index, n)
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
    timetable = Timetable([(500.0, 2), (100.0, 0), (240.0, 1)], 240)
    timetable.add_end(7, 240.0)
    assert timetable.merge_slot(0.0) == 240.0
    merged = timetable.pop(240.0)
    assert (merged.time_s, merged.arrivals, merged.ends) == (240.0, [0, 1], [7])
    last = timetable.pop(500.0)
    assert (last.time_s, last.arrivals, last.ends) == (500.0, [2], [])
    assert len(timetable) == 0


def test_the_only_event_keeps_its_time():
    assert Timetable([(100.0, 0)], 240).merge_slot(0.0) == 100.0


class _Idle(PublishedLoop[Job]):
    """A loop whose jobs never run."""

    def advance(self, now_s, elapsed_s):
        pass

    def handle(self, event):
        self.runnable += event.arrivals


def test_jobs_submitted_at_once_are_one_event():
    jobs = [job(0, 1, submit_s=5), job(1, 1, submit_s=3), job(2, 1, submit_s=5)]
    timetable = _Idle([Job(trace) for trace in jobs], Servers(1, 8), 240).timetable
    events = [timetable.pop(timetable.next_s) for _ in range(2)]
    assert [(event.time_s, [job.trace.index for job in event.arrivals]) for event in events] == [(3, [1]), (5, [0, 2])]
    assert len(timetable) == 0


def test_overheads_by_hand():
    assert overhead_s(8, 128, restart=False) == 2 + 2 * 4
    assert overhead_s(8, 128, restart=True) == 29 + 2 * 4
    assert overhead_s(1, 256, restart=False) == 7 + 2
    assert overhead_s(1, 256, restart=True) == 54 + 2
    assert overhead_s(8, 128, restart=True, is_cached=True) == 2
    assert [n for n in range(500) if is_restart(n, 240)] == [240, 480]


@pytest.mark.parametrize("run_published", [tiresias, gandiva, pytest.param(themis, marks=needs_ecos)])
def test_a_best_effort_job_is_not_counted(run_published):
    run = run_published([job(0, 1, deadline_s=NO_DEADLINE_S), job(1, 2)], Servers(1, 8), 240)
    assert (run.accepted, run.declined) == (1, 0)
    assert {end.index: end.is_met for end in run.ends} == {0: None, 1: True}


@pytest.mark.parametrize("run_published", [tiresias, gandiva, pytest.param(themis, marks=needs_ecos)])
def test_no_jobs_leave_nothing(run_published):
    run = run_published([], Servers(1, 8), 240)
    assert not run.moments
    assert not run.ends


def test_tiresias_leaves_a_job_that_is_too_large_waiting():
    run = tiresias([job(0, 16), job(1, 1)], Servers(1, 8), 240)
    assert [end.index for end in run.ends] == [1]


@pytest.mark.parametrize("run_published", [gandiva, pytest.param(themis, marks=needs_ecos)])
def test_a_job_that_would_wait_for_ever_is_refused(run_published):
    with pytest.raises(BfreplayError, match="job 0 wants 16 GPUs, and the cluster has 8"):
        run_published([job(0, 16)], Servers(1, 8), 240)


@needs_ecos
def test_themis_ends_jobs_by_duration_and_never_says_when_they_started():
    run = themis([job(0, 1, duration_s=500)], Servers(1, 8), 240)
    (end,) = run.ends
    assert (end.start_s, end.end_s) == (NO_START_S, 720)  # its iterations run out with the third slot


def test_themis_without_its_solver_says_what_to_install(monkeypatch):
    monkeypatch.setattr(themis_module, "missing_solver", lambda: "ecos is not installed; pip install it")
    with pytest.raises(BfreplayError, match="published Themis needs its solver: ecos is not installed; pip install it"):
        themis([job(0, 1)], Servers(1, 8), 240)
