"""The published ElasticFlow and EDF, with and without admission, against what their program left."""

import pytest
from elasticflow_data import Case

from bfreplay.systems.elasticflow.published.deadline_schedulers import (
    DeadlineJob,
    DeadlineLoop,
    edf,
    edf_with_admission,
    elastic_sharing,
    elasticflow,
)
from bfreplay.systems.elasticflow.published.event_loop import Timetable
from bfreplay.systems.elasticflow.published.program import Servers, TraceJob

RUNS = [
    ("small_n1g8", "n1g8_resnet_cifar_trace"),
    ("small_n1g8", "n1g8_syn10_600lam_max8_seed0_ddlseed12345"),
    ("small_n1g8", "n1g8_syn10tight"),
    ("25job_n4g8", "n4g8_195job_first25"),
    ("25job_n4g8", "n4g8_195job_rows35to59"),
    ("195job_n16g8", "n16g8_195job"),
    ("fig10_n16g8", "fig10"),
]
PROGRAMS = [
    ("ef-accessctrl", elasticflow),
    ("ef", elastic_sharing),
    ("edf", edf),
    ("edf-accessctrl", edf_with_admission),
]


@pytest.mark.parametrize(("file", "name"), RUNS)
@pytest.mark.parametrize(("schedule", "program"), PROGRAMS)
def test_the_published_schedulers_leave_what_their_program_left(shared, file, name, schedule, program):
    case = Case.read(shared, file, f"{name}/{schedule}")
    run, golden = program(case.jobs, case.servers, case.slot_s), case.record
    assert (run.accepted, run.declined) == (golden["accepted"], golden["declined"])
    # the file judges by logged ends, and has ends of one event in another order in places
    ends = [[*each[:4], each[2] <= case.jobs[case.names.index(each[0])].deadline_s] for each in case.ends_of(run)]
    assert sorted(ends) == sorted(golden["per_job"])
    assert sorted(case.names[index] for index in run.refused) == sorted(golden["never_run_job_ids"])
    if "events" in golden:
        assert case.events_of(run) == [event[:2] for event in golden["events"]]
        assert case.efficiencies(run) == pytest.approx([event[2] for event in golden["events"]], abs=1e-8)


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
