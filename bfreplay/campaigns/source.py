"""A campaign as a source of jobs: its trials, their attempts and their reports."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bfreplay.campaigns.campaign import Campaign, TrialModel
from bfreplay.campaigns.parts import Advice, CampaignPart, Params, Proposer, Pruner, ScoreModel, TrialState
from bfreplay.campaigns.recorded_study import RecordedStudy
from bfreplay.documents import Cell, pick
from bfreplay.errors import BfreplayError
from bfreplay.workload import ElasticJob, Ending, JobReport, Orders, Verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Mark:
    """Progress at which an attempt reports or crashes.

    Parameters
    ----------
    samples
        Progress of the attempt's job.
    epochs
        Progress of the trial: whole, but for a crash.
    is_crash
        True if the attempt ends here.
    for_pruner
        True if the pruner is asked.
    """

    samples: float
    epochs: float
    is_crash: bool = False
    for_pruner: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One job of a trial.

    Parameters
    ----------
    index
        0 for the first, 1 for the first retry.
    first_epoch
        Epochs that it begins with.
    marks
        Progress at which it reports, in order.
    """

    index: int
    first_epoch: int
    marks: tuple[Mark, ...]


class Trial:
    """One trial, changed by ``CampaignSource``.

    Attributes
    ----------
    number, name, model, params, deadline_us
        Identity and parameters.
    attempt, marks_ahead
        Its present or last job, and the marks that it has not reached.
    state
        State at its end; ``None`` before.
    score, best_score
        Last and best score that it reported; ``None`` for none.
    epochs
        Number of whole epochs in its last report.
    work_epochs
        Epochs of its whole work.
    """

    def __init__(self, number: int, name: str, model: TrialModel, params: Params, deadline_us: int | None) -> None:
        self.number = number
        self.name = name
        self.model = model
        self.params = params
        self.deadline_us = deadline_us
        self.attempt = Attempt(0, 0, ())
        self.marks_ahead: Iterator[Mark] = iter(())
        self.state: TrialState | None = None
        self.epochs = self.work_epochs = 0
        self.score: float | None = None
        self.best_score: float | None = None
        self._node_us: list[int] = []  # of each attempt
        self._samples: list[float] = []

    def __repr__(self) -> str:
        state = "not ended" if self.state is None else self.state.value
        score = "" if self.score is None else f", score {self.score:g}"
        return f"<Trial {self.name}: {state} after {self.epochs} epochs{score}>"

    def start(self, attempt: Attempt) -> None:
        """Begin an attempt."""
        self.attempt, self.marks_ahead = attempt, iter(attempt.marks)
        self._node_us.append(0)
        self._samples.append(0.0)

    def use(self, node_us: int, samples: float) -> tuple[int, float]:
        """Note the use of the present attempt, and return the increase since its last report."""
        increase = node_us - self._node_us[-1], samples - self._samples[-1]
        self._node_us[-1], self._samples[-1] = node_us, samples
        return increase

    def report(self, epoch: int, score: float, higher_is_better: bool) -> None:
        """Note a score."""
        self.epochs, self.score = epoch, score
        previous_best = self.best_score
        if previous_best is None or (score > previous_best if higher_is_better else score < previous_best):
            self.best_score = score

    @property
    def node_hours(self) -> float:
        """Node-hours of its jobs up to their last reports, those of crashed attempts included."""
        return sum(self._node_us) / 3.6e9

    @property
    def samples(self) -> float:
        """Samples that its jobs processed."""
        return sum(self._samples)


class CampaignSource:
    """Submits the trials of a campaign as there is room, ends those that the pruner rejects, retries crashed ones.

    A trial is one job; a retry is another job. Trials that a pruner lets wait are paused and hold no nodes. When a
    limit of the budget is reached, no trial is submitted any more and all others end (``Ending.STOPPED``).

    Parameters
    ----------
    campaign
        Parameters of the campaign.
    proposer
        Chooses hyper-parameters. Trials of a ``RecordedStudy`` end as they did.
    pruner
        Ends trials; may be the same object as ``proposer``.
    scores
        Gives scores in place of training.
    sources
        Files of all these, with their SHA-256.

    Raises
    ------
    BfreplayError
        The pruner wants reports outside a trial, or out of order.

    Attributes
    ----------
    tables
        Tables of its file; empty for one that was made of objects.
    remake
        Makes it again from the tables; ``None`` without them.
    """

    not_saved = ("tables", "remake")

    def __init__(
        self,
        campaign: Campaign,
        proposer: Proposer,
        pruner: Pruner,
        scores: ScoreModel,
        sources: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.campaign = campaign
        self._study = proposer if isinstance(proposer, RecordedStudy) else None
        self.name = campaign.name
        self.higher_is_better = campaign.higher_is_better
        self.sources = tuple(sources)
        self._proposer = proposer
        self._pruner = pruner
        self._parts: list[CampaignPart] = list({id(part): part for part in (proposer, pruner)}.values())
        self._scores = scores
        self._pruner_epochs = _check_epochs(pruner.report_epochs(campaign.epochs), campaign.epochs)
        report_every = 1 if campaign.budget.needs_every_epoch else campaign.report_every_epochs
        other_epochs = () if report_every is None else range(report_every, campaign.epochs, report_every)
        self._report_epochs = sorted(self._pruner_epochs.union(other_epochs))
        self.tables: Mapping[str, Cell] = {}
        self.remake: Callable[[], CampaignSource] | None = None
        self._forget(0)

    def __reduce__(self) -> Any:
        """Return how pickle makes a copy for another process: from the tables, as a study of Optuna has no copy."""
        return super().__reduce__() if self.remake is None else (self.remake, ())

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Trials of the last replay, by number."""
        return tuple(self._trials)

    def __repr__(self) -> str:
        return f"<CampaignSource {self.name}: {len(self._trials):,} of {self.campaign.trials:,} trials made>"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per trial of the last replay, by number, with its hyper-parameters."""
        import pandas as pd

        columns = ["number", "name", "state", "epochs", "score", "best_score", "node_hours", "samples", "params"]
        return pd.DataFrame([pick(trial, *columns) for trial in self._trials], columns=columns)

    def describe(self) -> dict[str, object]:
        """Return the parameters of the campaign, its proposer, pruner and scores, or its study with its warnings."""
        description = {"source": "campaign", **self.campaign.describe()}
        if self._study is not None:
            return {**description, "study": self._study.describe(), "warnings": self._study.warnings}
        return {
            **description,
            "proposer": self._proposer.describe(),
            "pruner": self._pruner.describe(),
            "scores": self._scores.describe(),
        }

    # -- questions and reports of the replay --------------------------------------------------------------

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        """Restart without any trial."""
        self._forget(window_start_us)
        for part in self._parts:
            part.begin(self.higher_is_better)

    def _forget(self, window_start_us: int) -> None:
        campaign = self.campaign
        self._start_us = window_start_us + round(campaign.start_after_s * 1e6)
        self._arrivals_us = [self._start_us + us for us in campaign.arrival.after_us(campaign.trials, campaign.seed)]
        self._trials: list[Trial] = []
        self._no_more = False  # no more trials from the proposer
        self._trial_of_job: dict[str, Trial] = {}  # unfinished jobs, waiting ones included
        self._waiting: dict[int, Trial] = {}  # for the pruner
        self._crashed: list[Trial] = []  # to be retried
        self._promoted: deque[Trial] = deque()  # to be resumed, when there is room
        self._n_unfinished = 0
        self._n_ended: Counter[TrialState] = Counter()
        self._node_us, self._samples = 0, 0.0
        self.used_up: str | None = None
        """Limit of the budget that ended the last replay's campaign; ``None`` if none did."""

    def ask(self, now_us: int) -> Orders:
        """Return retries, resumed and new trials as far as there is room, or the end of all trials."""
        if now_us < self._start_us:
            return Orders(ask_again_us=self._start_us)
        if self.used_up is None:
            wall_us = now_us - self._start_us
            self.used_up = self.campaign.budget.used_up(self._node_us, self._samples, wall_us, self._n_ended)
        if self.used_up is not None:
            return self._stop_everything()
        submit = [self._job(trial, now_us) for trial in self._crashed]
        self._crashed.clear()
        stop, resume, had_more = self._release(), self._resume(), self._has_more
        while self._has_more and self._has_room and self._arrivals_us[len(self._trials)] <= now_us:
            trial_number = len(self._trials)
            params = self._proposer.propose(trial_number)
            if params is None:
                self._no_more = True
            else:
                submit.append(self._new_trial(trial_number, params, now_us))
        if had_more and self._no_more:  # a pruner that waited for the rest of the trials waits no more
            stop |= self._release()
            resume += self._resume()
        return Orders(tuple(submit), tuple(resume), stop, self._ask_again_us())

    def tell(self, report: JobReport) -> Verdict:
        """Return the trial's score, and its end or pause by the pruner's advice."""
        trial = self._trial_of_job[report.job]
        node_us, samples = trial.use(report.node_us, report.samples)
        self._node_us += node_us
        self._samples += samples
        if report.is_finished:
            score = self._score(trial, trial.work_epochs)
            self._end(trial, TrialState.FINISHED)
            return Verdict(score)
        mark = next(trial.marks_ahead)
        if mark.is_crash:
            self._crash(trial, mark.epochs)
            return Verdict(ending=Ending.FAILED)
        epoch = int(mark.epochs)
        score = self._score(trial, epoch)
        advice = Advice.CONTINUE
        if mark.for_pruner:
            advice = self._pruner.advise(trial.number, epoch, math.nan if score is None else score)
        if not isinstance(advice, Advice):
            raise BfreplayError(f"the pruner's advice is {advice!r}, not one of {', '.join(Advice.__members__)}")
        if advice is Advice.PRUNE:
            self._end(trial, TrialState.PRUNED)
            return Verdict(score, ending=Ending.PRUNED)
        if advice is Advice.WAIT:
            self._waiting[trial.number] = trial
            return Verdict(score, pause=True)
        return Verdict(score)

    # -- trials begin -------------------------------------------------------------------------------------

    @property
    def _has_more(self) -> bool:
        return not self._no_more and len(self._trials) < self.campaign.trials

    @property
    def _has_room(self) -> bool:
        in_flight = self._n_unfinished - len(self._waiting) - len(self._promoted)
        return self.campaign.parallel is None or in_flight < self.campaign.parallel

    def _ask_again_us(self) -> int | None:
        times_us = [self._arrivals_us[len(self._trials)]] if self._has_more and self._has_room else []
        end_us = self.campaign.budget.end_us(self._start_us)
        if end_us is not None and (self._has_more or self._trial_of_job):
            times_us.append(end_us)
        return min(times_us, default=None)

    def _new_trial(self, trial_number: int, params: Params, now_us: int) -> ElasticJob:
        model = self.campaign.model_of(trial_number, params)
        deadline_after_us = model.job.deadline_us
        deadline_us = None if deadline_after_us is None else now_us + deadline_after_us
        trial = Trial(trial_number, self.campaign.trial_name(trial_number), model, params, deadline_us)
        self._trials.append(trial)
        self._n_unfinished += 1
        self._start(trial, 0, 0)
        return self._job(trial, now_us)

    def _start(self, trial: Trial, attempt_index: int, first_epoch: int) -> None:
        """Begin an attempt, with the marks at which it reports: neither its end nor what the trial has reported."""
        campaign, samples_per_epoch = self.campaign, trial.model.samples_per_epoch
        crash_epoch = campaign.retries.crash_epoch(campaign.seed, trial.number, attempt_index, first_epoch)
        trial.work_epochs = campaign.epochs
        if self._study is not None:
            trial.work_epochs, crash_epoch = self._study.course(trial.number)
        end_epoch = trial.work_epochs if crash_epoch is None else min(crash_epoch, trial.work_epochs)
        begin_epoch = max(first_epoch, trial.epochs)
        report_epochs = self._report_epochs
        if self._study is not None and not campaign.budget.needs_every_epoch:
            report_epochs = sorted(self._study.trials[trial.number].reported)
        marks = [
            Mark((epoch - first_epoch) * samples_per_epoch, epoch, for_pruner=epoch in self._pruner_epochs)
            for epoch in report_epochs
            if begin_epoch < epoch < end_epoch
        ]
        if end_epoch < trial.work_epochs:
            crash_samples = (end_epoch - first_epoch) * samples_per_epoch
            work_samples = (trial.work_epochs - first_epoch) * samples_per_epoch
            # rounding may put the crash on a report or an end: it then does not happen
            if (marks[-1].samples if marks else 0.0) < crash_samples < work_samples:
                marks.append(Mark(crash_samples, end_epoch, is_crash=True))
        trial.start(Attempt(attempt_index, first_epoch, tuple(marks)))

    def _job(self, trial: Trial, now_us: int) -> ElasticJob:
        attempt, model = trial.attempt, trial.model
        job = replace(
            model.job,
            name=self._name_of_job(trial),
            submit_us=now_us,
            deadline_us=trial.deadline_us,
            model=model.name,
            params=trial.params,
            work_samples=(trial.work_epochs - attempt.first_epoch) * model.samples_per_epoch,
            report_at_samples=tuple(mark.samples for mark in attempt.marks),
            samples_per_epoch=model.samples_per_epoch,
            first_epoch=attempt.first_epoch,
        )
        self._trial_of_job[job.name] = trial
        return job

    # -- trials wait --------------------------------------------------------------------------------------

    def _release(self) -> dict[str, Ending]:
        """Ask the pruner for waiting trials that continue, and return those that end."""
        to_come = self.campaign.trials - len(self._trials) if self._has_more else 0
        released = self._pruner.released(self._n_unfinished - len(self._waiting) + to_come)
        numbers = [*released.promoted, *released.pruned]
        if len(set(numbers).intersection(self._waiting)) < len(numbers):
            raise BfreplayError(
                f"the pruner released the trials {numbers}, each once please, and of those that wait: "
                f"{sorted(self._waiting)}"
            )
        self._promoted += [self._waiting.pop(trial_number) for trial_number in released.promoted]
        pruned = [self._waiting.pop(trial_number) for trial_number in released.pruned]
        for trial in pruned:
            self._end(trial, TrialState.PRUNED)
        return {self._name_of_job(trial): Ending.PRUNED for trial in pruned}

    def _resume(self) -> list[str]:
        job_names = []
        while self._promoted and self._has_room:
            job_names.append(self._name_of_job(self._promoted.popleft()))
        return job_names

    # -- trials end ---------------------------------------------------------------------------------------

    def _crash(self, trial: Trial, epochs: float) -> None:
        retries, attempt = self.campaign.retries, trial.attempt
        if attempt.index == retries.most:
            self._end(trial, TrialState.FAILED)
            return
        del self._trial_of_job[self._name_of_job(trial)]
        self._start(trial, attempt.index + 1, retries.first_epoch(epochs))
        self._crashed.append(trial)

    def _end(self, trial: Trial, state: TrialState) -> None:
        self._trial_of_job.pop(self._name_of_job(trial), None)
        trial.state = state
        self._n_unfinished -= 1
        self._n_ended[state] += 1
        for part in self._parts:
            part.ended(trial.number, state, trial.score)

    def _stop_everything(self) -> Orders:
        stop = dict.fromkeys(self._trial_of_job, Ending.STOPPED)
        for trial in self._trials:
            if trial.state is None:
                self._end(trial, TrialState.STOPPED)
        return Orders(stop=stop)

    def _score(self, trial: Trial, epoch: int) -> float | None:
        score = self._scores.score(trial.number, trial.params, epoch)
        if score is not None:
            trial.report(epoch, score, self.campaign.higher_is_better)
        return score

    def _name_of_job(self, trial: Trial) -> str:
        return self.campaign.trial_name(trial.number, trial.attempt.index)


def _check_epochs(epochs: Iterable[int], end: int) -> frozenset[int]:
    report_epochs = tuple(epochs)
    if report_epochs and not all(before < epoch for before, epoch in pairwise((0, *report_epochs, end))):
        raise BfreplayError(
            f"the pruner wants reports after {list(report_epochs)} epochs: they must rise, from 1 on, below {end}"
        )
    return frozenset(report_epochs)
