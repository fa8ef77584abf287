"""A session whose cluster runs: what is reported to it, and what it answers about now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.portions import FeedCounts, Portions
from bfreplay.datasets.log.states import EventBatch
from bfreplay.errors import InputError
from bfreplay.policies import Policy
from bfreplay.replay.engine import Engine
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs.live_reports import LiveReports
from bfreplay.runs.restored_session import KnownJob, jobs_after, jobs_to_submit, known_jobs
from bfreplay.runs.run_settings import RunSettings
from bfreplay.runs.session_now import NodeNow, holders_of, nodes_of
from bfreplay.scalability import Curve
from bfreplay.workload import ElasticJob, Ending, JobSet, JobSource
from bfreplay.workload.change_costs import Cost


class LiveSession(ABC):
    """The part of a ``ReplaySession`` that is for a cluster which runs, and for jobs that really train on it."""

    events: NodeEvents
    engine: Engine
    policy: Policy
    portions: Portions | None
    settings: ReplaySettings
    _anchored: JobSet | JobSource
    _reports: LiveReports
    _run_settings: RunSettings

    @property
    @abstractmethod
    def until_us(self) -> int:
        """Time up to which the log is complete."""

    @abstractmethod
    def _check_open(self) -> None:
        """Raise ``InputError`` if the session has ended."""

    @abstractmethod
    def _take_jobs(self, jobs: JobSet, given: Sequence[ElasticJob], further: Sequence[KnownJob], since_us: int) -> None:
        """Go on with the known jobs and the ``further`` ones of those given."""

    # -- what is reported -----------------------------------------------------------------------------------

    def report(self, job: str, samples: float, *, at: Any = None, ended: Ending | str | None = None) -> None:
        """Report the measured progress of a job, and that it has ended.

        The log that comes tells only the nodes; without reports the replay drifts away from the real jobs. A report
        waits until ``advance`` gets to its time, and counts after all events of this time. From then on the job has
        ``samples``; the difference from what it had is in the ledger's ``credited_samples``. What it owes for changes
        stays, and so do the samples that it has at risk.

        Jobs whose ends are reported should have endless work (``unlimited_work=True``, or ``work_samples=math.inf``):
        the session itself ends others at their predicted end.

        Parameters
        ----------
        job
            Its name. If it is not active at that time, progress is not used, and the run says so.
        samples
            Samples of all its work so far, 0 to 1e30. More than its ``work_samples`` mean that it is done, unless it
            has ended: then they count.
        at
            A time as for ``advance``; by default ``until_us``. One that is final already means the earliest that is
            not, and one after the window its end.
        ended
            ``"finished"``, or ``"failed"``, ``"stopped"``, ``"pruned"`` (an ``Ending``): its nodes are free from then
            on, and a decision follows. The work of a finished job is what was reported.

        Raises
        ------
        InputError
            There is no such job, it has left, or a value cannot be used; nothing has changed. Or the session reads its
            log itself, has the published clock or a job source.
        """
        self._check_open()
        self._reports.report(job, samples, at, ended)

    def update_job(
        self,
        job: str,
        *,
        throughput: Curve | None = None,
        scale_up_cost_s: Cost | None = None,
        scale_down_cost_s: Cost | None = None,
        start_cost_s: Cost | None = None,
        at: Any = None,
    ) -> None:
        """Replace an assumed curve, or assumed costs, of a job by measured ones from ``at`` on.

        ``at`` is as for ``report``. An active job has its new rate at once, for no charge; no decision follows from
        it. A job that waits begins with it.

        Raises
        ------
        InputError
            As for ``report``; or the job cannot have such a curve or cost, or the policy such a job.
        """
        self._check_open()
        changes = {
            "throughput": throughput,
            "scale_up_cost_s": scale_up_cost_s,
            "scale_down_cost_s": scale_down_cost_s,
            "start_cost_s": start_cost_s,
        }
        self._reports.update(job, changes, at)

    def submit(self, jobs: JobSet | Iterable[ElasticJob], *, at: Any = None) -> None:
        """Submit further jobs to a session with a hold-back.

        A restored session has them, whether it is given them or not.

        Parameters
        ----------
        jobs
            Names are new. Each is submitted at its submit time, but not before ``at``.
        at
            A time as for ``report``.

        Raises
        ------
        InputError
            The jobs cannot be used, or not in this session; none is submitted.
        """
        self._check_open()
        since_us, portions, anchored = self._reports.time_us(at), self._portions, self._anchored
        if not (portions.is_followed and isinstance(anchored, JobSet)):
            raise InputError(
                "jobs can be submitted only to a session with a hold-back and a plain set of jobs",
                expected='open_session(..., hold_back="3s") with jobs of its own',
            )
        new = jobs_to_submit(jobs, self.events, self.settings, since_us, endless=self._run_settings.unlimited_work)
        given = JobSet([*anchored, *new]).jobs
        self.policy.check_jobs(given, int(np.bincount(self.events.node_types.of_node).max()))
        further = jobs_after([], known_jobs(new, self.events.most_nodes), since_us)
        self._take_jobs(anchored, given, further, since_us)
        self._reports.submitted += new

    # -- answers about now ------------------------------------------------------------------------------------

    @property
    def _portions(self) -> Portions:
        if self.portions is None:
            raise InputError("this session reads its log itself", expected="NodeEvents.to_come(...) as its log")
        return self.portions

    @property
    def final_events(self) -> EventBatch:
        """Events that became final in the last ``advance`` or ``finish``, in order; ``node`` indexes ``events.nodes``.

        All of them, one after the other, are the log: the first have the state of every node at the start. They are
        saved with the session, so that nothing is lost between a checkpoint and the log file.
        """
        return self._portions.final_events

    @property
    def feed_counts(self) -> FeedCounts:
        """Counts of what a session with a hold-back has put right."""
        return self._portions.counts

    def holders(self) -> dict[str, tuple[str, ...]]:
        """Return the nodes of each active job by its name, after the last instant that was replayed."""
        return holders_of(self.engine)

    def nodes_now(self) -> list[NodeNow]:
        """Return the state of every node, since when it has it, and the job that holds it; of final events alone."""
        return nodes_of(self.engine, self._portions)

    def ledger_now(self) -> dict[str, float]:
        """Return the node-seconds from the start to ``until_us`` by the ledger's labels, and those idle in all.

        They are what a run that ended there would have; the run goes on as if nobody had asked.
        """
        return {label: node_us / 1e6 for label, node_us in self.engine.node_us_until(self.until_us).items()}

    def forget_waiting(self) -> None:
        """Drop the rows that wait, as if they had not been given: the log ends with the events that are final."""
        self._check_open()
        self._portions.forget_waiting()
