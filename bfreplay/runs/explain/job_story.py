"""Story of one job from its submission to its end: every change of its nodes, with the reason and the cost."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.milp.charge_rule import DOWN, START, UP, change_cost, charged_rate, preemption_pause_s
from bfreplay.policies.state import LONG_AGO_US
from bfreplay.replay.engine import ProgressCallback
from bfreplay.replay.progress import Semantics
from bfreplay.runs.explain.saved_tables import (
    jobs_frame,
    microseconds,
    nodes_over_time,
    refuse_unknown_job,
    relative_origin_us,
    reports_frame,
)
from bfreplay.runs.rerun import Moment, Rerun
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_decisions import is_placed_by_policy
from bfreplay.runs.saved_inputs import GivenInputs
from bfreplay.wording import count, samples
from bfreplay.workload import ElasticJob, Restart
from bfreplay.workload.change_costs import seconds_at

if TYPE_CHECKING:
    import pandas as pd

_MOST_SHOWN = 3
"""Largest number of pauses that are listed."""


def time_words(time_us: int, origin_us: int | None) -> str:
    """Return a time in UTC; in a relative log seconds from ``origin_us``, such as ``+407.5``, as for ``--at``."""
    return iso_utc(time_us) if origin_us is None else f"+{(time_us - origin_us) / 1e6:.6f}".rstrip("0").rstrip(".")


class ChangeCost(NamedTuple):
    """Cost of a change of a job's nodes, as the replay charges it.

    Parameters
    ----------
    kind
        ``START``, ``UP`` or ``DOWN``.
    seconds
        Length of the pause or charge.
    samples
        The cost.
    pause_s
        Seconds that the job then pauses; 0 for a charge.
    """

    kind: int
    seconds: float
    samples: float
    pause_s: float


def cost_of_change(
    job: ElasticJob,
    rates: NDArray[np.float64],
    before: int,
    after: int,
    *,
    is_published: bool = False,
    notice_s: float = 0.0,
) -> ChangeCost:
    """Return the cost of a change of ``job``, which makes ``rates (K + 1,)`` samples/s at each count."""
    costs = job.start_cost_s, job.scale_up_cost_s, job.scale_down_cost_s
    costs_s = np.array([seconds_at(cost, after) for cost in costs])
    costs_s[DOWN:] = preemption_pause_s(costs_s[DOWN:], notice_s)
    kind = START if before < job.min_nodes <= after else UP if after > before else DOWN
    pauses = job.restart == Restart.PAUSE
    rate_before = charged_rate(float(rates[before]), before, job.min_nodes, is_published)
    rate_after = charged_rate(float(rates[after]), after, job.min_nodes)
    cost_samples = change_cost(pauses, rate_before, rate_after, before, after, job.min_nodes, *costs_s.tolist())
    seconds = float(costs_s[kind])
    pause_s = seconds if pauses and after >= job.min_nodes else 0.0
    return ChangeCost(kind, seconds, cost_samples, pause_s)


class Life:
    """Life of one job beside the decisions of its run, read from the tables.

    Parameters
    ----------
    run
        The run.
    name
        Name of a job of the run.
    """

    def __init__(self, run: RunResult, name: str) -> None:
        self._origin_us = relative_origin_us(run)
        job_table = jobs_frame(run)
        self.number = int((job_table["job"] == name).to_numpy().argmax())
        job_row = job_table.iloc[self.number]
        self.status = str(job_row["status"])
        event_times = (microseconds(job_row[column]) for column in ("submitted", "admitted", "ended"))
        self.submitted_us, self.admitted_us, self.ended_us = event_times
        self._reports: list[tuple[int, bool]] = []  # time, is a pause; ascending
        reports = reports_frame(run)
        if reports is not None:
            verdicts = _of_job(reports, name, "verdict")
            self._reports = [(time_us, str(verdict) == "paused") for time_us, verdict in verdicts]
        self._losses: list[tuple[int, float]] = []  # time, samples; ascending
        if run.has_table("losses"):
            self._losses = _of_job(run.frame("losses"), name, "samples")
        self.paused_us = tuple(time_us for time_us, is_pause in self._reports if is_pause)
        self.end_us = run.record.config.window_end_us if self.ended_us is None else self.ended_us
        count_columns = ("n_jobs_preempted", "n_jobs_scaled_down")
        decision_table = run.columns("decisions", "time", *count_columns)
        self.times_us = np.asarray(decision_table["time"].cast("int64"))
        self._n_preemptions, self._n_scale_downs = (np.asarray(decision_table[column]) for column in count_columns)

    def last_pause_before(self, time_us: int) -> int | None:
        """Return the time of its last report by ``time_us`` if that was a pause; it may have been resumed since."""
        reports = [report for report in self._reports if report[0] <= time_us]
        return reports[-1][0] if reports and reports[-1][1] else None

    def refuse_outside(self, time_us: int) -> None:
        """Raise ``InputError`` for a time before its admission or after its end."""
        is_over = self.ended_us is not None and time_us >= self.ended_us
        if self.admitted_us is None or time_us < self.admitted_us or is_over:
            raise self._refusal(time_us, self._when_active())

    def not_active(self, time_us: int) -> InputError:
        """Return the error for a time between its admission and its end at which it was paused."""
        pause_us, reason = self.last_pause_before(time_us), self._when_active()
        if pause_us is not None:
            since_words, time_words = self._words(pause_us), self._words(time_us)
            reason = f"it was paused at {since_words}, and not admitted again before {time_words} ({reason})"
        return self._refusal(time_us, reason)

    def last_decision(self) -> int:
        """Return the last decision that the job could be part of; 0 for a job that was never admitted."""
        if self.admitted_us is None:
            return 0
        return max(0, int(np.searchsorted(self.times_us, self.end_us, side="right")) - 1)

    def decision_of(self, time_us: int) -> int | None:
        """Return the last decision at exactly this time."""
        index = int(np.searchsorted(self.times_us, time_us, side="right")) - 1
        return index if index >= 0 and self.times_us[index] == time_us else None

    def reason_from_tables(self, time_us: int, before: int, after: int, *, had_nodes: bool) -> str:
        """Return the reason of a change, as far as the tables show it."""
        if after > before:
            return SCALED_UP if before else RESTARTED if had_nodes else STARTED
        if time_us in self.paused_us:
            return PAUSED
        rows = slice(*np.searchsorted(self.times_us, [time_us, time_us + 1]).tolist())
        if self._n_preemptions[rows].size and not self._n_preemptions[rows].any():
            # with --settle nodes are lost before there is a decision
            return SCALED_DOWN
        return LOST if self._n_scale_downs[rows].any() else PREEMPTED

    def all_steps(self, changes: list[Step]) -> tuple[Step, ...]:
        """Return the changes and losses of work, preceded by the job's submission and admission, followed by its end.

        A job that is stopped before its submission has no submission.
        """
        first_steps: list[Step] = []
        if self.submitted_us is not None and self.submitted_us <= self.end_us:
            first_steps.append(Step(self.submitted_us, SUBMITTED, 0, 0))
        if self.admitted_us is not None:
            first_steps.append(Step(self.admitted_us, ADMITTED, 0, 0))
        changes = list(changes)
        for time_us, lost_samples in self._losses:
            place = bisect_right(changes, time_us, key=lambda step: step.time_us)
            nodes = changes[place - 1].after if place else 0
            changes.insert(place, Step(time_us, WORK_LOST, nodes, nodes, None, lost_samples))
        last_nodes = changes[-1].after if changes else 0
        last_step = Step(self.end_us, WINDOW_END, last_nodes, last_nodes)
        if self.ended_us is not None:
            last_step = Step(self.ended_us, self.status, last_nodes, 0, self.decision_of(self.ended_us))
        return (*first_steps, *changes, last_step)

    def lost_to_reclaims(self, decision: int, unsaved_samples: float) -> float:
        """Return the work lost to the reclaims since the decision before ``decision``.

        A change by ``decision`` itself loses the ``unsaved_samples`` that the job then has: none where it was hit just
        then.
        """
        since_us, now_us = self.times_us[decision - 1 : decision + 1].tolist()
        last_us = now_us - 1 if unsaved_samples else now_us
        return sum(samples for time_us, samples in self._losses if since_us < time_us <= last_us)

    def _words(self, time_us: int) -> str:
        return time_words(time_us, self._origin_us)

    def _refusal(self, time_us: int, reason: str) -> InputError:
        return InputError(
            f"the job was not active at this time: {reason}",
            column="time",
            value=self._words(time_us),
            expected="a time at which it was admitted, not paused, and not yet ended",
        )

    def _when_active(self) -> str:
        status = self.status.replace("_", " ")
        if self.admitted_us is None:
            plan = "" if self.submitted_us is None else f"to be submitted at {self._words(self.submitted_us)} and "
            return f"it was {plan}never admitted ({status})"
        end_words = "the end of the window" if self.ended_us is None else f"{self._words(self.ended_us)} ({status})"
        pause_words = [self._words(time_us) for time_us in self.paused_us]
        if not pause_words:
            return f"admitted at {self._words(self.admitted_us)}, active until {end_words}"
        n_omitted = len(pause_words) - _MOST_SHOWN
        text = ", ".join(pause_words[:_MOST_SHOWN]) + (f" and {count(n_omitted, 'time')} more" if n_omitted > 0 else "")
        return f"admitted at {self._words(self.admitted_us)}, paused at {text}, active until {end_words}"


def _of_job(frame: pd.DataFrame, name: str, column: str) -> list[tuple[int, Any]]:
    """Return time and cell of each row of a job, in the order of the table."""
    rows = frame[frame["job"] == name]
    return [(int(time.value // 1000), cell) for time, cell in zip(rows["time"], rows[column].tolist(), strict=True)]


def is_active_after(
    run: RunResult, job: str, index: int, progress: ProgressCallback | None = None, **inputs: Unpack[GivenInputs]
) -> bool:
    """Return whether ``job`` is active after decision ``index``, by a rerun.

    The tables do not show when a paused job was admitted again, as it may have had no nodes for long. Arguments and
    errors as for ``recorded_decisions``.
    """
    rerun = Rerun(run, index, progress, **inputs)
    rerun.run(lambda moment: None)  # only the state at the end counts
    return rerun.is_active([job.name for job in rerun.jobs].index(job))


SUBMITTED, ADMITTED, STARTED, RESTARTED = "submitted", "admitted", "started", "restarted"
SCALED_UP, SCALED_DOWN, PREEMPTED, PAUSED = "scaled up", "scaled down", "preempted", "paused"
LOST = "preempted or scaled down"
"""Reason of a loss that the tables alone cannot resolve."""
WORK_LOST = "work lost"
WINDOW_END = "window end"


@dataclass(frozen=True, slots=True)
class Step:
    """One change.

    Parameters
    ----------
    time_us
        Time of the change.
    reason
        ``submitted``, ``admitted``; ``started`` (for the first time) or ``restarted`` from no nodes, ``scaled up`` and
        ``scaled down``, by a decision; ``preempted``, by the batch scheduler; ``paused``, by the job's source;
        ``preempted or scaled down``, where only tables are at hand; ``work lost``, since its last checkpoint; its
        status at the end; ``window end``.
    before, after
        Number of nodes.
    decision
        Row of the ``decisions`` table; ``None`` without a decision.
    cost_samples
        Cost of the change, or the work that is lost; ``None`` where it is unknown.
    pause_s
        Seconds of the pause that it begins.
    """

    time_us: int
    reason: str
    before: int
    after: int
    decision: int | None = None
    cost_samples: float | None = 0.0
    pause_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready; ``pause_s`` of those that pause."""
        document = asdict(self)
        if not self.pause_s:
            del document["pause_s"]
        return {"time": iso_utc(document.pop("time_us")), **document}

    def cells(self, origin_us: int | None) -> list[str]:
        """Return its row in the text of a job: time, reason, nodes, cost, decision."""
        node_words = f"{self.before} -> {self.after}"
        cost_words = "?" if self.cost_samples is None else samples(self.cost_samples) if self.cost_samples else ""
        reason_words = f"{self.reason}, pause of {self.pause_s:g} s" if self.pause_s else self.reason
        if self.reason in (SUBMITTED, ADMITTED):
            node_words = cost_words = ""
        if self.reason == WORK_LOST:
            node_words = ""
        if self.reason == WINDOW_END:
            node_words, cost_words = str(self.after), ""
        decision_words = "" if self.decision is None else str(self.decision)
        return [time_words(self.time_us, origin_us), reason_words, node_words, cost_words, decision_words]


@dataclass(frozen=True, slots=True, eq=False)
class JobStory:
    """The changes of one job in order of time, and the job itself where the inputs were at hand.

    Parameters
    ----------
    name
        Name of the job.
    steps
        The changes.
    job
        The submitted job; ``None`` where the story is from tables alone.
    origin_us
        Origin of the times shown, for a log without a calendar.
    """

    name: str
    steps: tuple[Step, ...]
    job: ElasticJob | None
    origin_us: int | None = None


def job_story(
    run: RunResult, name: str, *, progress: ProgressCallback | None = None, **inputs: Unpack[GivenInputs]
) -> JobStory:
    """Return the story of job ``name`` from a rerun; arguments and errors as for ``recorded_jobs``.

    A job may lose nodes to the batch scheduler at the instant at which it ends: as its source stops it, or under the
    published clock as its end is noticed. The story has its end alone; ``n_preemptions`` counts the loss. So it is with
    ``--settle`` at the end of the window, as nothing is decided on after it.

    A run whose policy chose the nodes itself cannot be rerun: its story is from the tables.

    Raises
    ------
    InputError
        Also for a job that the run does not have.
    """
    refuse_unknown_job(run, name)
    if is_placed_by_policy(run):
        return job_story_from_tables(run, name)
    life = Life(run, name)
    rerun = Rerun(run, life.last_decision(), progress, **inputs)
    follower = _Follower(run, name, life, rerun)
    rerun.run(follower.watch)
    follower.close()
    job = rerun.jobs[life.number] if life.number < len(rerun.jobs) else None
    return JobStory(name, life.all_steps(follower.steps), job, relative_origin_us(run))


def job_story_from_tables(run: RunResult, name: str) -> JobStory:
    """Return the story of job ``name`` from the tables of the run alone.

    All changes at one instant are then one step, a loss at an instant with both reclaims and scale-downs is ``preempted
    or scaled down``, and costs are unknown.

    Raises
    ------
    InputError
        The run has no such job.
    """
    nodes_of_job, life = nodes_over_time(run, name), Life(run, name)
    steps: list[Step] = []
    before, had_nodes = 0, False
    for time_us, after in zip(nodes_of_job.edge_us[:-1].tolist(), nodes_of_job.counts.tolist(), strict=True):
        if after != before and time_us != life.ended_us:
            reason = life.reason_from_tables(time_us, before, after, had_nodes=had_nodes)
            steps.append(Step(time_us, reason, before, after, life.decision_of(time_us), None))
            had_nodes = had_nodes or after > 0
        before = after
    return JobStory(name, life.all_steps(steps), None, relative_origin_us(run))


class _Follower:
    """Follows one job through the decisions of a run."""

    def __init__(self, run: RunResult, name: str, life: Life, rerun: Rerun) -> None:
        config, nodes = run.record.config, nodes_over_time(run, name)
        self.steps: list[Step] = []
        self._life = life
        self._rerun = rerun
        self._is_published = config.semantics == Semantics.PUBLISHED
        self._notice_s = config.notice_s
        self._settle_us = round(config.settle_s * 1e6)
        self._edge_us, self._counts = nodes.edge_us, nodes.counts
        self._held = 0
        self._seen = -1  # the last decision that the job was part of
        self._started = False
        self._hit_us = LONG_AGO_US
        self._table: NDArray[np.float64] | None = None

    def watch(self, moment: Moment) -> None:
        """Process one decision with jobs and idle nodes."""
        job_places = np.flatnonzero(moment.state.job == self._life.number)
        if not job_places.size or moment.index > self._seen + 1:
            self._skip_decision()
        if not job_places.size:
            return
        position = int(job_places[0])
        self._seen = moment.index
        self._before_the_decision(moment, position)
        self._add_decision(moment, position)
        if self._job.adaptation is not None:  # its rates until the next decision
            self._table = moment.state.throughput[position].copy()

    def close(self) -> None:
        """Process the end: no more decisions with idle nodes."""
        if self._seen + 1 < self._rerun.n_rows:
            self._skip_decision()
        if self._held:
            self._add_earlier_reclaims(self._seen, self._life.end_us, 0, None)

    def _skip_decision(self) -> None:
        """Process a decision without the job: it ended, paused, or no node was idle."""
        if not self._held:
            return
        index = self._seen + 1
        time_us = int(self._life.times_us[index])
        if time_us in self._life.paused_us:
            self._add(time_us, PAUSED, 0, index, is_free=True)
        elif time_us != self._life.ended_us:
            self._add_reclaims(index, 0)

    def _before_the_decision(self, moment: Moment, position: int) -> None:
        time_us, current = moment.state.time_us, int(moment.state.current[position])
        n_reclaimed = int(moment.reclaimed[position])
        if n_reclaimed:
            self._add_reclaims(moment.index, self._held - n_reclaimed)
        if self._held > current:
            self._add(time_us, PAUSED, current, moment.index, is_free=True)

    def _add_reclaims(self, index: int, after_all: int) -> None:
        time_us = int(self._life.times_us[index])
        self._add_earlier_reclaims(max(index - 1, 0), time_us, after_all, index)
        if after_all < self._held:
            self._add_reclaim(time_us, after_all, index)

    def _add_earlier_reclaims(self, last: int, until_us: int, after_all: int, index: int | None) -> None:
        """Add the reclaims between decision ``last`` and ``until_us``: with ``--settle`` they come before decisions."""
        begin, end = np.searchsorted(self._edge_us, [self._life.times_us[last] + 1, until_us])
        for time_us, after in zip(self._edge_us[begin:end].tolist(), self._counts[begin:end].tolist(), strict=True):
            if after_all <= after < self._held and time_us not in self._life.paused_us:
                self._add_reclaim(time_us, after, index)

    def _add_reclaim(self, time_us: int, after: int, index: int | None) -> None:
        is_of_burst = self._job.restart == Restart.CHARGE and time_us <= self._hit_us + self._settle_us
        self._add(time_us, PREEMPTED, after, index, is_free=is_of_burst, notice_s=self._notice_s)
        self._hit_us = time_us

    def _add_decision(self, moment: Moment, position: int) -> None:
        nodes_after, held = int(moment.counts[position]), self._held
        if nodes_after == held:
            return
        reason = SCALED_DOWN if nodes_after < held else SCALED_UP if held else RESTARTED if self._started else STARTED
        self._started = True
        self._add(moment.state.time_us, reason, nodes_after, moment.index, is_published=self._is_published)

    def _add(
        self,
        time_us: int,
        reason: str,
        after: int,
        index: int | None,
        *,
        is_free: bool = False,
        is_published: bool = False,
        notice_s: float = 0.0,
    ) -> None:
        job = self._job
        rates: NDArray[np.float64] = job.throughput.table(job.max_nodes) if self._table is None else self._table
        cost = cost_of_change(job, rates, self._held, after, is_published=is_published, notice_s=notice_s)
        cost_samples, pause_s = (0.0, 0.0) if is_free else (cost.samples, cost.pause_s)
        # the published first map is charged as a scale-up
        if is_published and index == 0:
            rate = charged_rate(float(rates[after]), after, job.min_nodes)
            cost_samples = rate * seconds_at(job.scale_up_cost_s, after)
        self.steps.append(Step(time_us, reason, self._held, after, index, cost_samples, pause_s))
        self._held = after

    @property
    def _job(self) -> ElasticJob:
        return self._rerun.jobs[self._life.number]
