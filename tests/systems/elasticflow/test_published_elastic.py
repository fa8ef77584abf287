"""Rules of the published ElasticFlow and EDF by hand; their recorded runs are in tests/parity."""

from bfreplay.systems.elasticflow.published.deadline_schedulers import (
    DeadlineJob,
    DeadlineLoop,
    elasticflow,
)
from bfreplay.systems.elasticflow.published.event_loop import Timetable
from bfreplay.systems.elasticflow.published.program import Servers, TraceJob


def test_all_arrivals_of_an_event_are_declined_if_one_of_them_cannot_be_in_time():
    rates = {1: 1.0, 2: 2.0}
    one, hopeless = (TraceJob(k, k, due, 1, 100, 100, rates, 2) for k, due in enumerate((10_000, 50)))
    alone = elasticflow([one], Servers(1, 2), 60)
    assert (alone.accepted, alone.declined) == (1, 0)
    # the first takes the event at 0 s, the second comes in the slot after it with a third that could be in time
    third = TraceJob(2, 2, 10_000, 1, 100, 100, rates, 2)
    run = elasticflow([one, hopeless, third], Servers(1, 2), 60)
    assert run.refused == [1, 2]


def test_events_within_a_slot_are_handled_at_its_end_and_the_last_one_of_all_when_it_is_due():
    timetable = Timetable([(5.0, "a"), (9.0, "b"), (70.0, "d")], 10)
    timetable.add_end("c", 9.0)
    assert timetable.merge_slot(0.0) == 10.0
    merged = timetable.pop(10.0)
    assert (merged.arrivals, merged.ends) == (["a", "b"], ["c"])
    assert timetable.next_s == 70.0
    assert Timetable([(5.0, "a")], 10).merge_slot(0.0) == 5.0


def test_a_timetable_moves_the_ends_of_jobs_and_drops_events_without_any():
    timetable = Timetable([(0.0, "a")], 10.0)
    timetable.add_end("a", 50.0)
    timetable.move_end("a", 50.0, 80.0)
    assert timetable.pop(0.0).arrivals == ["a"]
    assert timetable.merge_slot(0.0) == 80.0
    assert timetable.pop(80.0).ends == ["a"]
    assert len(timetable) == 0


class _Idle(DeadlineLoop[DeadlineJob]):
    """Runs every job on one GPU."""

    def handle(self, event):
        now_s = event.time_s
        for job in event.ends:
            self.end_running(job, job.end_s)
        self.release()
        for job in event.arrivals:
            self.wait(job)
            self.start(job, now_s)
            job.end_s = now_s + job.remaining
            self.timetable.add_end(job, job.end_s)
        for job in self.runnable:
            self.place(job, 1)
        self.log_allocation(now_s, charges=True)


def test_a_job_stands_still_for_its_overhead_at_each_event_and_is_judged_by_its_end():
    jobs = [TraceJob(0, 0, 110, 1, 100, 100, {1: 1.0}, 1), TraceJob(1, 40, 1000, 1, 100, 100, {1: 1.0}, 1)]
    run = _Idle([DeadlineJob(job) for job in jobs], Servers(1, 2), 20).run()
    # 2 + 2 s at its first event, 2 s at the next one, on GPUs that it had before: 106, and then merged into 20 s slots
    assert [(end.index, end.end_s, end.is_met) for end in run.ends] == [(0, 106.0, True), (1, 146.0, True)]
    assert [moment.running[0].overhead_s for moment in run.moments[:2]] == [4.0, 2.0]
