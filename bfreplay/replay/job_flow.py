"""Jobs of a replay, from admission to departure: their progress reports, the orders of their source."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bfreplay.policies import Round, Trigger
from bfreplay.policies.state import LONG_AGO_US, NEVER_US
from bfreplay.replay.active import ALONE, ActiveJobs, update_placed_curves
from bfreplay.replay.feed import Feed
from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.ledger import HELD, RunTotals
from bfreplay.replay.pool import NodePool
from bfreplay.replay.progress import charge_preemption, predict_finish, trim_to_work
from bfreplay.replay.run_tables import RunTables
from bfreplay.workload import ElasticJob, Ending, JobReport

# plain numbers: ten times as fast
_ARRIVAL, _COMPLETION, _BATCH_SIZE = Trigger.ARRIVAL.value, Trigger.COMPLETION.value, Trigger.BATCH_SIZE.value
_CONTINUE, _PAUSED, _FINISHED = "continue", "paused", "finished"


class JobFlow:
    """Admits jobs, lets them report, pause and leave. What may cause a decision returns its ``Trigger``.

    Attributes
    ----------
    next_finish_us
        Earliest time at which an active job reaches its target if nothing changes.
    n_preemptions
        Jobs that lost nodes to reclaims, each time.
    note_departure
        Called with the number of every job that leaves for good.
    """

    not_saved = ("note_departure",)

    def __init__(
        self,
        active: ActiveJobs,
        feed: Feed,
        pool: NodePool,
        outcomes: JobOutcomes,
        run_tables: RunTables,
        *,
        is_published: bool,
        settle_us: int = 0,
    ) -> None:
        self._active = active
        self._feed = feed
        self._pool = pool
        self._outcomes = outcomes
        self._run_tables = run_tables
        self._is_published = is_published
        self._settle_us = settle_us
        self.totals = RunTotals()
        self.next_finish_us = NEVER_US
        self.n_preemptions = 0
        self.note_departure: Callable[[int], None] | None = None

    @property
    def jobs_remain(self) -> bool:
        """True if a job is active, waits, or may still be submitted."""
        return self._active.n > 0 or self._feed.may_go_on

    @property
    def makes_progress(self) -> bool:
        """True if an active job makes progress."""
        records = self._active.records[: self._active.n]
        is_below = records["progress"] < np.minimum(records["work"], records["halt"])
        return bool(np.any(is_below & (records["rate"] > 0)))

    def preempt(self, now_us: int) -> tuple[int, float]:
        """Charge the jobs that have lost nodes; return (jobs, samples charged)."""
        active = self._active
        if self._feed.colocation is not None:
            self.update_curves()  # two on fewer nodes make something else
        n_jobs, samples = charge_preemption(
            active.records,
            active.n,
            active.throughput,
            active.costs_s,
            now_us,
            self._settle_us,
            self._is_published,
        )
        self.note_losses(now_us)
        self.n_preemptions += int(n_jobs)
        if self._is_published:
            self.totals.samples -= float(samples)
        return int(n_jobs), float(samples)

    def note_losses(self, now_us: int) -> None:
        """Take the work that jobs have lost at this instant out of the totals, and write a row for each."""
        if self._active.has_published_costs:
            return
        records = self._active.records[: self._active.n]
        for job_row in np.flatnonzero((records["loss_samples"] > 0) | (records["loss"] > 0)).tolist():
            samples = float(records["loss_samples"][job_row])
            self.totals.samples -= samples
            self.totals.repeated_samples += samples
            if self._run_tables.losses is not None:
                name = self._feed.names[int(records["job"][job_row])]
                self._run_tables.losses.append((now_us, name, samples, int(records["loss"][job_row])))
        records["loss_samples"] = 0.0
        records["loss"] = 0

    def update_curves(self) -> None:
        """Write what the active jobs make on the nodes that they hold."""
        update_placed_curves(self._active, self._feed.model_names, self._feed.colocation)

    def complete(self, now_us: int) -> int:
        """Let jobs that have reached their target report and, if they end or pause, leave."""
        if not self._is_published and now_us < self.next_finish_us - 1:
            return 0
        records = self._active.records[: self._active.n]
        if self._is_published:
            rows_reached = np.flatnonzero(records["progress"] >= records["target"])
            rows_due = np.flatnonzero(records["progress"] >= records["work"])
        else:
            # rounding may have predicted a finish for the next microsecond that is due now: one decision follows all
            # completions of an instant
            is_due = records["finish_us"] <= now_us
            self.next_finish_us = int(predict_finish(self._active.records, self._active.n, now_us))
            rows_reached = rows_due = np.flatnonzero(is_due | (records["finish_us"] <= now_us))
        trigger = 0
        for row in rows_reached.tolist():
            trigger |= self._reach_batch_sizes(row)
        leaving = [(row, verdict) for row in rows_due.tolist() if (verdict := self._report(row, now_us)) != _CONTINUE]
        for row, verdict in reversed(leaving):
            self._leave(row, verdict, now_us)
        if rows_due.size and not leaving:  # no decision follows that would look ahead again
            self.next_finish_us = int(predict_finish(self._active.records, self._active.n, now_us))
        return trigger | (_COMPLETION if leaving else 0)

    def _reach_batch_sizes(self, job_row: int) -> int:
        """Let a job that has reached a change of its batch size train with the new one."""
        record = self._active.records[job_row]
        job = self._feed.jobs[int(record["job"])]
        samples = float(record["target"])
        if job.adaptation is None or samples >= job.work_samples:
            return 0
        if self._is_published:  # it looks at progress seldom: several changes may lie behind
            samples = float(record["progress"])
            record["target"] = self._active.next_target(job, samples)
        return _BATCH_SIZE if self._active.reach_batch_size(job_row, job, samples) else 0

    def _report(self, job_row: int, now_us: int) -> str:
        """Report a job that has reached its target to its source; return the verdict, a word of ``reports``."""
        record = self._active.records[job_row]
        job_index, samples = int(record["job"]), float(record["target"])
        job = self._feed.jobs[job_index]
        is_finished = samples >= job.work_samples
        if not is_finished:
            record["target"] = self._active.next_target(job, samples)
        if self._feed.source is None or not (is_finished or samples in job.report_at_samples):
            return _FINISHED if is_finished else _CONTINUE  # it has only changed its batch size
        node_us = int(sum(record[label] for label in HELD))
        verdict = self._feed.tell(JobReport(job.name, now_us, samples, node_us, is_finished))
        self._outcomes.note_report(job_index, verdict.score, now_us)
        verdict_word = _FINISHED if is_finished else verdict.ending or (_PAUSED if verdict.pause else _CONTINUE)
        self._record_report(now_us, job, samples, verdict.score, verdict_word)
        return verdict_word

    def _record_report(self, now_us: int, job: ElasticJob, samples: float, score: float | None, verdict: str) -> None:
        if self._run_tables.reports is not None:
            self._run_tables.reports.append((now_us, job.name, samples, job.epoch_at(samples), score, str(verdict)))

    def _leave(self, job_row: int, ending: str, now_us: int) -> None:
        """Free the nodes of an active job and remove it: it is done, has to end, or pauses."""
        active = self._active
        record = active.records[job_row]
        if ending == _FINISHED:
            excess = trim_to_work(record, self._is_published)
            self.totals.trimmed_samples += excess
            self.totals.samples -= excess
        is_shared = record["sharing"] != ALONE
        self._pool.release(job_row, now_us)
        if is_shared:
            self.update_curves()  # the other has its nodes for itself
        self._run_tables.allocations.close_intervals(active.records, active.n, now_us)
        if ending == _PAUSED:
            record["rate"] = 0.0
            record["saved"] = record["progress"]  # its source lets it save its work
            record["at_risk"] = 0
            record["pause_until_us"] = LONG_AGO_US
            record["lost"] = record["lost_nodes"] = 0
            record["paused_at_us"] = now_us
            self._feed.paused[int(record["job"])] = record.copy()
        else:
            self._outcomes.leave(record, ending, now_us)
            self._feed.gone.add(int(record["job"]))
            if self.note_departure is not None:
                self.note_departure(int(record["job"]))
        active.remove(job_row)

    def follow_orders(self, now_us: int) -> int:
        """Ask the source, and take out the jobs that it stops."""
        trigger = 0
        for stop in self._feed.ask(now_us):
            progress = 0.0
            if stop.is_active:
                job_row = int(self._active.row_of_job[stop.job])
                progress = self._progress(self._active.records[job_row])
                self._leave(job_row, stop.ending, now_us)
                trigger = _COMPLETION
            elif stop.record is not None:
                progress = self._progress(stop.record)
                self._outcomes.leave(stop.record, stop.ending, now_us)
            else:
                self._outcomes.note_not_admitted(stop.job, now_us, stop.ending)
            self._record_report(now_us, self._feed.jobs[stop.job], progress, None, stop.ending)
        return trigger

    def _progress(self, record: np.void) -> float:
        """Samples of a job; those of a report that it has passed by less than a microsecond's work."""
        progress, step = float(record["progress"]), 1e-6 * float(record["span_rate"])
        marks = self._feed.jobs[int(record["job"])].report_at_samples
        return next((mark for mark in marks if -1e-9 * mark <= progress - mark <= step), progress)

    def correct_progress(self, job_index: int, samples: float, now_us: int) -> bool:
        """Let the measured progress of an active job replace that of the replay; return whether it is active.

        The difference is credited. What a job has at risk stays, as far as there is so much; the samples that it may
        process until the next decision stay too.
        """
        job_row = self._active.row_of(job_index)
        if job_row < 0:
            return False
        record, job = self._active.records[job_row], self._feed.jobs[job_index]
        credit = samples - float(record["progress"])
        record["progress"] = samples
        record["saved"] = min(max(float(record["saved"]) + credit, 0.0), samples)
        record["halt"] += credit
        record["target"] = self._active.next_target(job, samples)
        self._active.reach_batch_size(job_row, job, samples)
        self.totals.credited_samples += credit
        self.totals.samples += credit
        self.totals.largest_credit_samples = max(self.totals.largest_credit_samples or 0.0, abs(credit))
        self._set_rate(job_row, now_us)
        return True

    def end(self, job_index: int, ending: str, now_us: int) -> int:
        """Let a job leave that has really ended, its work what it has done if it is finished; return the trigger."""
        job_row = self._active.row_of(job_index)
        if job_row < 0:
            self._feed.withdraw(job_index)
            self._outcomes.note_not_admitted(job_index, now_us, ending)
            if self.note_departure is not None:
                self.note_departure(job_index)
            return 0
        record = self._active.records[job_row]
        if ending == _FINISHED:
            record["work"] = record["progress"]
            record["preempt_debt"] = record["rescale_debt"] = 0.0
        self._leave(job_row, ending, now_us)
        return _COMPLETION

    def update_job(self, job_index: int, job: ElasticJob, now_us: int) -> None:
        """Let a job have other curves or costs from now on, if it is active; a change of its rate costs nothing."""
        if (job_row := self._active.row_of(job_index)) >= 0:
            self._active.update(job_row, job)
            if self._active.is_placed:
                self.update_curves()
            self._set_rate(job_row, now_us)

    def _set_rate(self, job_row: int, now_us: int) -> None:
        """Write the rate of a job on its nodes, by which it waits or goes on; predict all finishes anew."""
        record = self._active.records[job_row]
        count = int(record["count"])
        record["pace"] = self._active.throughput[job_row, count] if count >= record["min_nodes"] else 0.0
        record["rate"] = record["pace"]
        self.next_finish_us = int(predict_finish(self._active.records, self._active.n, now_us))

    def admit(self, now_us: int) -> int:
        """Let waiting jobs become active, as far as there is room."""
        trigger = 0
        while not self._active.is_full and (next_job := self._feed.pop_due(now_us)) is not None:
            job_index, old_record = next_job
            self._active.admit(
                job_index, self._feed.jobs[job_index], self._feed.model_of(job_index), now_us, old_record
            )
            trigger = _ARRIVAL
        return trigger

    def dismiss(self, until: Round, now_us: int) -> None:
        """Let the jobs leave that the policy has given up or declined."""
        ending_of = {job_row: (Ending.DECLINED, reason) for job_row, reason in until.declined.items()}
        if until.failed is not None:
            ending_of |= dict.fromkeys(np.flatnonzero(until.failed).tolist(), (Ending.FAILED, ""))
        for job_row in sorted(ending_of, reverse=True):
            ending, reason = ending_of[job_row]
            if reason:
                self._outcomes.declined[self._feed.names[int(self._active.records[job_row]["job"])]] = reason
            self._leave(job_row, ending, now_us)
