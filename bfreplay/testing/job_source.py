"""Contract of job sources."""

from __future__ import annotations

import json
import math
import random
import time
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bfreplay.datasets import NodeEvents
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs import Output, ReplaySession, RunSettings, run_replay
from bfreplay.testing.replays import SECOND, check_resumes, toggling_log
from bfreplay.testing.subject import made, subject
from bfreplay.workload import ElasticJob, Ending, JobReport, JobSource, Orders, Verdict
from bfreplay.workload.elastic_job import OPTIONAL_COSTS


@dataclass(frozen=True, slots=True)
class Answer:
    """Report of a job with the answer of its source."""

    report: JobReport
    verdict: Verdict


@dataclass(slots=True)
class Drive:
    """Orders and answers of a source.

    Parameters
    ----------
    orders
        (time in microseconds, orders) for each time it was asked.
    answers
        Every report with its verdict, in order.
    submitted
        All jobs by name, in order of submission.
    endings
        Reason of each job that left without finishing, by name.
    """

    orders: list[tuple[int, Orders]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    submitted: dict[str, ElasticJob] = field(default_factory=dict)
    endings: dict[str, Ending] = field(default_factory=dict)

    @property
    def finished(self) -> list[str]:
        """Jobs that did all their work, in order."""
        return [answer.report.job for answer in self.answers if answer.report.is_finished]


@dataclass(slots=True)
class _Job:
    job: ElasticJob
    targets: list[float]  # progress still to report; its work comes last
    since_us: int = 0
    from_samples: float = 0.0
    node_us: int = 0

    @property
    def rate(self) -> float:
        return float(self.job.throughput.table(self.job.min_nodes)[self.job.min_nodes])

    @property
    def due_us(self) -> float:
        """Time at which it reaches its next target."""
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
        has_reports = state.tell_due(int(now_us))
        if has_reports or state.ask_us <= now_us:
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
        """Return the next instant at which something happens."""
        times = [self.ask_us, *(job.due_us for job in self.active)]
        if self.queue and len(self.active) < self.slots:
            times.append(min(max(job.job.submit_us, job.since_us) for job in self.queue))
        return min(times)

    def tell_due(self, now_us: int) -> bool:
        """Report all jobs that have reached a target to the source."""
        due_jobs = [job for job in self.active if job.due_us <= now_us]
        for job in due_jobs:
            job.node_us += (now_us - job.since_us) * job.job.min_nodes
            job.since_us, job.from_samples = now_us, job.targets.pop(0)
            report = JobReport(job.job.name, now_us, job.from_samples, job.node_us, is_finished=not job.targets)
            verdict = self.source.tell(report)
            assert isinstance(verdict, Verdict)
            assert verdict.score is None or math.isfinite(verdict.score)
            assert not (verdict.pause and verdict.ending), "a job that ends cannot pause"
            self.drive.answers.append(Answer(report, verdict))
            if report.is_finished or verdict.ending or verdict.pause:
                self.active.remove(job)
            if not report.is_finished and verdict.ending:
                self.drive.endings[job.job.name] = verdict.ending
            elif not report.is_finished and verdict.pause:
                self.paused[job.job.name] = job
        return bool(due_jobs)

    def ask(self, now_us: int) -> None:
        """Ask the source, and carry out what it orders."""
        orders = self.source.ask(now_us)
        assert isinstance(orders, Orders)
        self.drive.orders.append((now_us, orders))
        again_us = orders.ask_again_us
        assert again_us is None or again_us > now_us, "asked again, but not later"
        self.ask_us = math.inf if again_us is None else again_us
        for job_name, ending in orders.stop.items():
            self._remove(job_name)
            self.drive.endings[job_name] = Ending(ending)
        for job_name in orders.resume:
            assert job_name in self.paused, f"{job_name} is resumed and was not paused"
            job = self.paused.pop(job_name)
            job.since_us = now_us
            self.queue.append(job)
        for submission in orders.submit:
            assert submission.name not in self.drive.submitted, f"{submission.name} is submitted twice"
            assert submission.submit_us >= now_us, f"{submission.name} is submitted in the past"
            self.drive.submitted[submission.name] = submission
            self.queue.append(_Job(submission, [*submission.report_at_samples, submission.work_samples], now_us))
        self.admit(now_us)

    def admit(self, now_us: int) -> None:
        """Let queued jobs run as far as there are slots."""
        for job in sorted(self.queue, key=lambda job: job.job.submit_us):
            if len(self.active) < self.slots and job.job.submit_us <= now_us:
                self.queue.remove(job)
                job.since_us = now_us
                self.active.append(job)

    def _remove(self, job_name: str) -> None:
        for jobs in (self.active, self.queue):
            for job in jobs:
                if job.job.name == job_name:
                    jobs.remove(job)
                    return
        assert job_name in self.paused, f"{job_name} is stopped and is not active, paused or queued"
        del self.paused[job_name]


START_US = 1_700_000_000 * SECOND
_MEASURED = ("session.json", "timings.parquet")
_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time")


class JobSourceContract:
    """Inherit, and set ``source`` to your class (called without arguments), or override ``make``.

    ``hours`` and ``n_nodes`` are the size of what the tests replay: enough for a job of the source to finish.

    It demands of a job source:

    - It has ``name``, ``higher_is_better`` (a bool), ``sources`` (pairs of a file and its SHA-256) and ``describe()``,
      JSON without nan and inf, which a replay does not change.
    - Orders can be carried out: names are new, submitted jobs are ``ElasticJob`` objects, only paused jobs are resumed,
      only jobs that have not left are stopped, ``ask_again_us`` is later than now. Scores are finite.
    - After ``begin`` it gives the same orders again, also in the middle of a replay; so do two of them, whatever the
      clock and the global random numbers. A later window only moves them.
    - A job finishes within ``hours``; a replay trains something, and repeats its bytes.
    - Its attributes are data, or named in ``not_saved``: a run can be cut after any instant and resumed.
    """

    source: type[Any]
    hours: float = 24.0
    n_nodes: int = 16

    def make(self) -> JobSource:
        """Return a new source, as the command line makes one."""
        source: JobSource = made(subject(self, "source", "begin", "ask", "tell", "describe"), "job source")
        return source

    def _drive(self, source: JobSource) -> Drive:
        return drive(source, START_US, START_US + round(self.hours * 3_600) * SECOND)

    def test_it_says_what_it_is(self) -> None:
        source = self.make()
        assert isinstance(source, JobSource)
        assert isinstance(source.name, str)
        assert source.name
        assert isinstance(source.higher_is_better, bool)
        assert all(isinstance(name, str) and isinstance(digest, str) for name, digest in source.sources)
        json.dumps(source.describe(), allow_nan=False)

    def test_a_replay_does_not_change_what_it_says(self) -> None:
        source = self.make()
        description = json.dumps(source.describe(), sort_keys=True)
        self._drive(source)
        assert json.dumps(source.describe(), sort_keys=True) == description

    def test_its_orders_can_be_carried_out(self) -> None:
        driven = self._drive(self.make())  # an order that cannot be carried out has raised
        assert driven.submitted, "it submits no job"
        assert all(isinstance(job, ElasticJob) for job in driven.submitted.values())
        assert driven.finished, f"no job finishes within {self.hours:g} h: set `hours`"

    def test_begun_again_it_gives_the_same_orders(self) -> None:
        source = self.make()
        assert _plain(self._drive(source)) == _plain(self._drive(source))

    def test_begun_again_in_the_middle_it_gives_the_same_orders(self) -> None:
        source = self.make()
        first_orders = _plain(self._drive(source))
        drive(source, START_US, START_US + round(self.hours * 1_200) * SECOND)
        assert _plain(self._drive(source)) == first_orders

    def test_two_of_them_give_the_same_orders(self) -> None:
        assert _plain(self._drive(self.make())) == _plain(self._drive(self.make()))

    def test_another_window_only_moves_its_orders(self) -> None:
        source = self.make()
        length_us = round(self.hours * 3_600) * SECOND
        first = drive(source, START_US, START_US + length_us)
        moved = drive(source, START_US + 86_400 * SECOND, START_US + 86_400 * SECOND + length_us)
        assert list(first.submitted) == list(moved.submitted)
        assert [answer.report.samples for answer in first.answers] == [
            answer.report.samples for answer in moved.answers
        ]

    def test_neither_the_clock_nor_global_random_numbers_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first_orders = _plain(self._drive(self.make()))
        python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            random.seed(12_345)
            np.random.seed(12_345)  # noqa: NPY002
            ticks = count(1_000_000_000, 3_600)
            with monkeypatch.context() as patch:
                for name in _CLOCKS:
                    unit = 10**9 if name.endswith("_ns") else 1.0
                    patch.setattr(time, name, lambda unit=unit: next(ticks) * unit)
                second_orders = _plain(self._drive(self.make()))
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002
        assert second_orders == first_orders

    def _log(self) -> NodeEvents:
        length_s = round(self.hours * 3_600)
        return toggling_log(self.n_nodes, min(200, length_s // 4), length_s, start_us=START_US)

    def test_a_replay_with_it_can_be_saved_and_resumed_at_any_instant(self) -> None:
        events, settings, run_settings = self._log(), ReplaySettings(max_parallel=6), RunSettings(efficiency=False)
        check_resumes(lambda: ReplaySession(events, self.make(), EqualSharePolicy(), settings, run_settings))

    def test_a_replay_with_it_closes_its_ledger_and_repeats_its_bytes(self, tmp_path: Path) -> None:
        events = self._log()
        folders = [tmp_path / "one", tmp_path / "other"]
        for folder in folders:
            result = run_replay(
                events,
                self.make(),
                EqualSharePolicy(),
                ReplaySettings(max_parallel=6),
                RunSettings(efficiency=False),
                Output(folder=folder),
            )  # a ledger that does not close has raised
            assert result.summary["ledger"]["samples"] > 0, "nothing was trained"
        files = sorted(path.name for path in folders[0].iterdir())
        assert files == sorted(path.name for path in folders[1].iterdir())
        for name in files:
            if name not in _MEASURED:
                assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


_SUBMITTED = attrgetter(
    *("name", "submit_us", "min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s", "work_samples"),
    *("weight", "deadline_us", "model", "report_at_samples", *OPTIONAL_COSTS),
)


def _plain(driven: Drive) -> list[Any]:
    """Return orders and answers of a source as values to compare and show."""
    return [[(time_us, _orders(orders)) for time_us, orders in driven.orders], driven.answers]


def _orders(orders: Orders) -> list[Any]:
    submissions = [(*_SUBMITTED(job), job.throughput.table(job.max_nodes).tolist()) for job in orders.submit]
    return [submissions, list(orders.resume), list(orders.stop.items()), orders.ask_again_us]
