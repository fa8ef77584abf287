"""A replay in small for job sources: no log, no policy, no books; jobs run on their least nodes, a few at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bfreplay.workload import ElasticJob, Ending, JobReport, JobSource, Orders, Verdict


@dataclass(frozen=True, slots=True)
class Told:
    """A report and what the source answered."""

    report: JobReport
    verdict: Verdict


@dataclass(slots=True)
class Drive:
    """What a source ordered.

    Parameters
    ----------
    orders
        (time in microseconds, orders) of each time it was asked.
    told
        Every report with its verdict, in order.
    submitted
        All jobs by name, in order of submission.
    endings
        How jobs left that did not finish.
    """

    orders: list[tuple[int, Orders]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    submitted: dict[str, ElasticJob] = field(default_factory=dict)
    endings: dict[str, Ending] = field(default_factory=dict)

    @property
    def finished(self) -> list[str]:
        """Jobs that did all their work, in order."""
        return [told.report.job for told in self.told if told.report.is_finished]


@dataclass(slots=True)
class _Job:
    job: ElasticJob
    targets: list[float]  # progress still to be told, its work at the end
    since_us: int = 0
    from_samples: float = 0.0
    node_us: int = 0

    @property
    def rate(self) -> float:
        return float(self.job.throughput.table(self.job.min_nodes)[self.job.min_nodes])

    @property
    def due_us(self) -> float:
        """When it reaches its next target."""
        if not self.rate or self.targets[0] == math.inf:
            return math.inf
        return self.since_us + math.ceil((self.targets[0] - self.from_samples) / self.rate * 1e6)


def drive(source: JobSource, start_us: int, end_us: int, slots: int = 4) -> Drive:
    """Run a source's jobs from ``start_us`` to ``end_us``, at most ``slots`` at once, each on its ``min_nodes``.

    Raises
    ------
    AssertionError
        An order that no replay could carry out.
    """
    state = _State(source, slots)
    source.begin(start_us, end_us)
    state.ask(start_us)
    while (now_us := state.next_us) < end_us:
        is_told = state.tell_due(int(now_us))
        if is_told or state.ask_us <= now_us:
            state.ask(int(now_us))
        state.admit(int(now_us))
    return state.drive


class _State:
    def __init__(self, source: JobSource, slots: int) -> None:
        self.source = source
        self.slots = slots
        self.drive = Drive()
        self.active: list[_Job] = []
        self.queue: list[_Job] = []
        self.paused: dict[str, _Job] = {}
        self.ask_us = math.inf

    @property
    def next_us(self) -> float:
        """The next instant at which something happens."""
        times = [self.ask_us, *(job.due_us for job in self.active)]
        if self.queue and len(self.active) < self.slots:
            times.append(min(max(job.job.submit_us, job.since_us) for job in self.queue))
        return min(times)

    def tell_due(self, now_us: int) -> bool:
        """Tell the source of all jobs that have reached a target."""
        due = [job for job in self.active if job.due_us <= now_us]
        for job in due:
            job.node_us += (now_us - job.since_us) * job.job.min_nodes
            job.since_us, job.from_samples = now_us, job.targets.pop(0)
            report = JobReport(job.job.name, now_us, job.from_samples, job.node_us, is_finished=not job.targets)
            verdict = self.source.tell(report)
            assert isinstance(verdict, Verdict)
            assert verdict.score is None or math.isfinite(verdict.score)
            assert not (verdict.pause and verdict.ending), "a job that ends cannot pause"
            self.drive.told.append(Told(report, verdict))
            if report.is_finished or verdict.ending or verdict.pause:
                self.active.remove(job)
            if not report.is_finished and verdict.ending:
                self.drive.endings[job.job.name] = verdict.ending
            elif not report.is_finished and verdict.pause:
                self.paused[job.job.name] = job
        return bool(due)

    def ask(self, now_us: int) -> None:
        """Ask the source, and carry out what it orders."""
        orders = self.source.ask(now_us)
        assert isinstance(orders, Orders)
        self.drive.orders.append((now_us, orders))
        again_us = orders.ask_again_us
        assert again_us is None or again_us > now_us, "asked again, but not later"
        self.ask_us = math.inf if again_us is None else again_us
        for name, ending in orders.stop.items():
            self._remove(name)
            self.drive.endings[name] = Ending(ending)
        for name in orders.resume:
            assert name in self.paused, f"{name} is resumed and was not paused"
            job = self.paused.pop(name)
            job.since_us = now_us
            self.queue.append(job)
        for new in orders.submit:
            assert new.name not in self.drive.submitted, f"{new.name} is submitted twice"
            assert new.submit_us >= now_us, f"{new.name} is submitted in the past"
            self.drive.submitted[new.name] = new
            self.queue.append(_Job(new, [*new.report_at_samples, new.work_samples], now_us))
        self.admit(now_us)

    def admit(self, now_us: int) -> None:
        """Let queued jobs run as far as there are slots."""
        for job in sorted(self.queue, key=lambda job: job.job.submit_us):
            if len(self.active) < self.slots and job.job.submit_us <= now_us:
                self.queue.remove(job)
                job.since_us = now_us
                self.active.append(job)

    def _remove(self, name: str) -> None:
        for jobs in (self.active, self.queue):
            for job in jobs:
                if job.job.name == name:
                    jobs.remove(job)
                    return
        assert name in self.paused, f"{name} is stopped and is not there"
        del self.paused[name]
