"""Supply of jobs: from a set that is known at the start, or from a source that is asked as time goes on."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from bfreplay import checks
from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.datasets.times import iso_utc
from bfreplay.documents import pick
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies.state import NEVER_US
from bfreplay.registry import one_line
from bfreplay.saved_state import UnsavedError
from bfreplay.wording import duration
from bfreplay.workload import ElasticJob, Ending, JobReport, JobSet, JobSource, Orders, Verdict


class Stop(NamedTuple):
    """Order of a source to stop a job."""

    job: int
    ending: Ending
    is_active: bool
    record: np.void | None  # of a paused job, which was taken out


class Feed:
    """All jobs so far, in order of submission, and the queue of waiting ones.

    Parameters
    ----------
    jobs
        A job set with absolute times, or a source.
    names
        Filled with the name of every job, in the order of ``jobs``; tables keep it to label their rows.
    type_names
        Node types that there are.
    longest_s
        Longest time for which a job of a source may run at its best rate.

    Attributes
    ----------
    paused
        Records of the jobs that are paused, or wait to be admitted again, by number.
    gone
        Jobs that have left for good.
    """

    def __init__(
        self,
        jobs: JobSet | JobSource,
        names: list[str],
        type_names: tuple[str, ...] = (ANY_TYPE,),
        longest_s: float = math.inf,
    ) -> None:
        self.colocation = jobs.colocation if isinstance(jobs, JobSet) else None
        self.model_names: list[str] = []
        self._type_names = type_names
        self._longest_s = longest_s
        self.jobs: list[ElasticJob] = []
        self.names = names
        self.source = None if isinstance(jobs, JobSet) else jobs
        self.ask_us = NEVER_US
        self._queue: list[tuple[int, int, int]] = []  # (time, order of queueing, job)
        self._n_queued = 0
        self._queued: set[int] = set()
        self.paused: dict[int, np.void] = {}
        self.gone: set[int] = set()
        self._index_of: dict[str, int] = {}
        self._models: dict[str, int] = {}
        self._calls: list[tuple[Any, ...]] | None = None  # of the source, since its beginning
        self._answers = hashlib.sha256()
        if isinstance(jobs, JobSet):
            for job in jobs:
                self._submit(job)

    # -- the queue ----------------------------------------------------------------------------------------

    @property
    def next_us(self) -> int:
        """Submit time of the first job in the queue, past or future; ``NEVER_US`` without one."""
        return self._queue[0][0] if self._queue else NEVER_US

    @property
    def may_go_on(self) -> bool:
        """True if a job waits, or the source wants to be asked again."""
        return bool(self._queue) or self.ask_us != NEVER_US

    def pop_due(self, now_us: int) -> tuple[int, np.void | None] | None:
        """Return the next job to admit, with its record if it was paused; ``None`` when none is due."""
        if self.next_us > now_us:
            return None
        job_index = heapq.heappop(self._queue)[2]
        self._queued.discard(job_index)
        self._skip_departures()
        return job_index, self.paused.pop(job_index, None)

    def model_of(self, job_index: int) -> int:
        """Number of the job's model name, in order of appearance; -1 for a job without one."""
        model = self.jobs[job_index].model
        if model is None:
            return -1
        if model not in self._models:
            self._models[model] = len(self._models)
            self.model_names.append(model)
        return self._models[model]

    def waiting_at(self, now_us: int) -> tuple[int, ...]:
        """Return the jobs that wait to be admitted, in their order."""
        entries = sorted(entry for entry in self._queue if entry[0] <= now_us)
        return tuple(job_index for _, _, job_index in entries if job_index not in self.gone)

    def waiting_jobs(self) -> list[int]:
        """Return the jobs that were never admitted."""
        return sorted(self._queued - self.paused.keys())

    def _submit(self, job: ElasticJob) -> None:
        job_index = len(self.jobs)
        self.jobs.append(job)
        self.names.append(job.name)
        self._index_of[job.name] = job_index
        self._enqueue(job.submit_us, job_index)

    def _enqueue(self, time_us: int, job_index: int) -> None:
        heapq.heappush(self._queue, (time_us, self._n_queued, job_index))
        self._n_queued += 1
        self._queued.add(job_index)

    def _skip_departures(self) -> None:
        while self._queue and self._queue[0][2] in self.gone:
            heapq.heappop(self._queue)

    # -- its state ----------------------------------------------------------------------------------------

    def keep_calls(self) -> None:
        """Keep what the source is asked and told from now on: its state is saved as that. Call it before ``begin``."""
        if self.source is not None:
            self._calls = []

    def save_state(self) -> dict[str, Any]:
        """Return the queue, and instead of the state of a source all that it was asked and told.

        Raises
        ------
        UnsavedError
            ``keep_calls`` was not called at the beginning.
        """
        if self.source is not None and self._calls is None:
            raise UnsavedError(f"the state of the job source {self._name!r} was not kept from the beginning")
        return {**pick(self, *_OF_QUEUE), "calls": self._calls, "answers": self._answers.hexdigest()}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore the queue; a source, which always answers alike, is asked and told the same again.

        Raises
        ------
        InputError
            The source answers otherwise than it did.
        """
        self.keep_calls()
        for method, now_us, *arguments in state["calls"] or ():
            if method not in ("begin", "ask", "tell"):
                problem = "the state calls a job source by another method"
                raise InputError(problem, value=method, expected="begin, ask, tell")
            call_arguments = (JobReport(*arguments),) if method == "tell" else arguments
            answer = self._call_source(method, now_us, *call_arguments)
            self._note_call(method, now_us, arguments, answer)
            for job in getattr(answer, "submit", ()):
                self._submit(job)
        if self._answers.hexdigest() != state["answers"]:
            raise InputError(
                f"the job source {self._name!r} answers otherwise than before the state was saved",
                expected="the same answers to the same reports",
                fix="its code, its files or a library have changed: replay from the start",
            )
        for attribute in _OF_QUEUE:
            setattr(self, attribute, state[attribute])

    def take_jobs(self, jobs: Sequence[ElasticJob], n_known: int) -> None:
        """Go on with the jobs of a restored state, the first ``n_known``, and with further ones, which are queued."""
        self.jobs[:] = jobs
        self.names[:] = [job.name for job in jobs]
        self._index_of = {job_name: job_index for job_index, job_name in enumerate(self.names)}
        for job_index in range(n_known, len(jobs)):
            self._enqueue(jobs[job_index].submit_us, job_index)

    # -- the source ---------------------------------------------------------------------------------------

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        """Tell the source that a replay begins; it is asked at the window's start."""
        if self.source is not None:
            window_us = window_start_us, window_end_us
            answer = self._call_source("begin", window_start_us, *window_us)
            self._note_call("begin", window_start_us, window_us, answer)
            self.ask_us = window_start_us

    def tell(self, report: JobReport) -> Verdict:
        """Report to the source and return its verdict.

        Raises
        ------
        InputError
            It raises an error, or answers something else than a verdict with a finite score.
        """
        verdict = self._call_source("tell", report.time_us, report)
        self.ask_us = report.time_us  # it is asked once all reports of this instant are in
        if not isinstance(verdict, Verdict):
            raise self._bad(f"answered {type(verdict).__name__} to a report of job {report.job!r}", "a Verdict")
        score = verdict.score
        if score is not None and not (isinstance(score, Real) and math.isfinite(score)):
            raise self._bad(
                f"gave job {report.job!r} a score that is no finite number", "a finite number, or None", score
            )
        if verdict.ending is not None and not isinstance(verdict.ending, Ending):
            raise self._bad(f"ends job {report.job!r} in an unknown way", "an Ending, or None", verdict.ending)
        if verdict.pause and verdict.ending is not None:
            raise self._bad(f"pauses job {report.job!r} and ends it", "one of the two")
        self._note_call("tell", report.time_us, astuple(report), verdict)
        return verdict

    def ask(self, now_us: int) -> list[Stop]:
        """Ask the source; queue what it submits and resumes, take out what it stops.

        Returns
        -------
        list of Stop
            Active ones are still to be removed by the caller; paused and queued ones are out already.

        Raises
        ------
        InputError
            It raises an error, or gives orders that cannot be carried out.
        """
        orders = self._call_source("ask", now_us, now_us)
        if not isinstance(orders, Orders):
            raise self._bad(f"answered {type(orders).__name__} when asked", "Orders")
        for field, field_type in (("submit", Sequence), ("resume", Sequence), ("stop", Mapping)):
            value = getattr(orders, field)
            if not isinstance(value, field_type) or isinstance(value, str):
                raise self._bad(f"gives {field} as {type(value).__name__}", f"a {field_type.__name__.lower()}", value)
        again_us = orders.ask_again_us
        if again_us is not None and not (isinstance(again_us, Integral) and again_us > now_us):
            raise self._bad(
                "wants to be asked again, but not later", f"a whole number above {now_us}, or None", again_us
            )
        self.ask_us = NEVER_US if again_us is None else int(again_us)
        stops = [self._stop(job_name, ending) for job_name, ending in orders.stop.items()]
        self._skip_departures()
        for job_name in orders.resume:
            job_index = self._find_job(job_name, "resumes")
            if job_index not in self.paused or job_index in self._queued:
                raise self._bad("resumes a job that is not paused", "the name of a paused job", job_name)
            self._enqueue(now_us, job_index)
        for job in orders.submit:
            self._check_new(job, now_us)
            self._submit(job)
        self._note_call("ask", now_us, (now_us,), orders)
        return stops

    def _stop(self, job_name: str, ending: Any) -> Stop:
        job_index = self._find_job(job_name, "stops")
        if not isinstance(ending, Ending):
            raise self._bad(f"stops job {job_name!r} in an unknown way", "an Ending", ending)
        is_active = job_index not in self._queued and job_index not in self.paused
        if not is_active:
            self.withdraw(job_index)
        return Stop(job_index, ending, is_active, self.paused.pop(job_index, None))

    def withdraw(self, job_index: int) -> None:
        """Take a job that is not active out for good."""
        self.gone.add(job_index)
        self._queued.discard(job_index)
        self._skip_departures()

    def _find_job(self, name: str, verb: str) -> int:
        job_index = self._index_of.get(name)
        if job_index is None or job_index in self.gone:
            state = "does not know" if job_index is None else "is told has left"
            raise self._bad(f"{verb} job {name!r}, which the replay {state}", "the name of a job that is there", name)
        return job_index

    def _check_new(self, job: Any, now_us: int) -> None:
        if not isinstance(job, ElasticJob):
            raise self._bad(f"submits {type(job).__name__}", "ElasticJobs")
        if job.name in self._index_of:
            raise self._bad(f"submits a second job called {job.name!r}", "a name never used before", job.name)
        if job.submit_us < now_us:
            raise self._bad(
                f"submits job {job.name!r} in the past", f"a time from {iso_utc(now_us)} on", iso_utc(job.submit_us)
            )
        refuse_other_types((job,), self._type_names)
        if job.least_s > self._longest_s:
            raise self._bad(
                f"submits job {job.name!r}, which takes {duration(job.least_s)} at its best rate",
                f"{duration(self._longest_s)} at most, {checks.MOST_ROUNDS:,} rounds of the policy",
            )

    def _note_call(self, method: str, now_us: int, arguments: tuple[Any, ...], answer: object) -> None:
        if self._calls is not None:
            self._calls.append((method, now_us, *arguments))
            self._answers.update(repr(_main_parts(answer)).encode())

    def _call_source(self, method: str, now_us: int, *arguments: Any) -> Any:
        try:
            return getattr(self.source, method)(*arguments)
        except BfreplayError:
            raise  # said on purpose, for a person to read
        except Exception as error:  # a stranger's code may raise anything
            raise InputError(
                f"the job source {self._name!r} failed in {method}() at {iso_utc(now_us)}: {one_line(error)}"
            ) from error

    def _bad(self, fault: str, expected: str, *value: Any) -> InputError:
        return InputError(
            f"the job source {self._name!r} {fault}", expected=expected, **({"value": value[0]} if value else {})
        )

    @property
    def _name(self) -> str:
        return str(getattr(self.source, "name", type(self.source).__name__))


_OF_QUEUE = ("ask_us", "model_names", "_queue", "_n_queued", "_queued", "paused", "gone", "_models")
"""Attributes of a feed that are saved as they are."""


def _main_parts(answer: object) -> object:
    """Return the parts of a source's answer that tell it from another one."""
    if isinstance(answer, Verdict):
        return answer.score, answer.ending, answer.pause
    if isinstance(answer, Orders):
        jobs = [(job.name, job.submit_us, job.min_nodes, job.max_nodes, job.work_samples) for job in answer.submit]
        return jobs, list(answer.resume), list(answer.stop.items()), answer.ask_again_us
    return None


def refuse_other_types(jobs: Sequence[ElasticJob] | JobSet, type_names: Sequence[str]) -> None:
    """Raise ``InputError`` for a job that runs on none of the node types that there are."""
    for job in jobs:
        if any(job.throughput_on(type_name) is not None for type_name in type_names):
            continue
        reason, expected = "there are no such nodes", f"one of {', '.join(type_names)}, or none"
        remedy = f"add nodes of type {job.node_types[0]}, or leave the job out"
        if tuple(type_names) == (ANY_TYPE,):
            reason, expected = "the log does not tell types apart", "no node types"
            remedy = f"say which type its nodes are: --node-type {job.node_types[0]}; or leave the column empty"
        problem = f"job {job.name!r} runs on certain node types only, and {reason}"
        raise InputError(problem, column="node_types", value=";".join(job.node_types), expected=expected, fix=remedy)
