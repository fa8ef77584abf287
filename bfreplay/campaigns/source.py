"""A campaign as a source of jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from bfreplay.campaigns.campaign import Campaign
from bfreplay.campaigns.parts import Advice, CampaignPart, Params, Proposer, Pruner, ScoreModel, TrialState
from bfreplay.campaigns.trial import Attempt, Trial, marks_of
from bfreplay.errors import BfreplayError
from bfreplay.workload import ElasticJob, Ending, JobReport, Orders, Verdict

if TYPE_CHECKING:
    import pandas as pd


class CampaignSource:
    """Submits the trials of a campaign as there is room, ends those that the pruner rejects, retries crashed ones.

    A trial is one job; a retry is another job. Trials that a pruner lets wait are paused and hold no nodes. When a
    limit of the budget is reached, no trial is submitted any more and all others end (``Ending.STOPPED``).

    Parameters
    ----------
    campaign
        Parameters of the campaign.
    proposer
        Chooses hyper-parameters.
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
    """

    def __init__(
        self,
        campaign: Campaign,
        proposer: Proposer,
        pruner: Pruner,
        scores: ScoreModel,
        sources: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.campaign = campaign
        self.name = campaign.name
        self.higher_is_better = campaign.higher_is_better
        self.sources = tuple(sources)
        self._proposer = proposer
        self._pruner = pruner
        self._parts: list[CampaignPart] = list({id(part): part for part in (proposer, pruner)}.values())
        self._scores = scores
        self._pruner_epochs = _check_epochs(pruner.report_epochs(campaign.epochs), campaign.epochs)
        every = 1 if campaign.budget.needs_every_epoch else campaign.report_every_epochs
        self._other_epochs = () if every is None else range(every, campaign.epochs, every)
        self._forget(0)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Trials of the last replay, by number."""
        return tuple(self._trials)

    def __repr__(self) -> str:
        return f"<CampaignSource {self.name}: {len(self._trials):,} of {self.campaign.trials:,} trials made>"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per trial of the last replay, by number, with its hyper-parameters."""
        import pandas as pd

        columns = "number", "name", "state", "epochs", "score", "best_score", "node_hours", "samples", "params"
        return pd.DataFrame(
            [{each: getattr(trial, each) for each in columns} for trial in self._trials], None, list(columns)
        )

    def describe(self) -> dict[str, object]:
        """Return the parameters of the campaign, its proposer, pruner and scores."""
        return {
            "source": "campaign",
            **self.campaign.describe(),
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
        self._n_unfinished = self._n_failed = 0
        self._node_us, self._samples = 0, 0.0
        self.used_up: str | None = None
        """Limit of the budget that ended the last replay's campaign; ``None`` if none did."""

    def ask(self, now_us: int) -> Orders:
        """Return retries, resumed and new trials as far as there is room, or the end of all trials."""
        if now_us < self._start_us:
            return Orders(ask_again_us=self._start_us)
        if self.used_up is None:
            wall_us = now_us - self._start_us
            self.used_up = self.campaign.budget.used_up(self._node_us, self._samples, wall_us, self._n_failed)
        if self.used_up is not None:
            return self._stop_everything()
        submit = [self._job(trial, now_us) for trial in self._crashed]
        self._crashed.clear()
        stop = self._release()
        resume = self._resume()
        had_more = self._has_more
        while self._has_more and self._has_room and self._arrivals_us[len(self._trials)] <= now_us:
            number = len(self._trials)
            params = self._proposer.propose(number)
            if params is None:
                self._no_more = True
            else:
                submit.append(self._new_trial(number, params, now_us))
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
            score = self._score(trial, self.campaign.epochs)
            self._end(trial, TrialState.FINISHED)
            return Verdict(score)
        mark = trial.take_mark()
        if mark.is_crash:
            self._crash(trial, mark.epochs)
            return Verdict(ending=Ending.FAILED)
        epoch = int(mark.epochs)
        score = self._score(trial, epoch)
        advice = self._pruner.advise(trial.number, epoch, score) if mark.for_pruner else Advice.CONTINUE
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

    def _new_trial(self, number: int, params: Params, now_us: int) -> ElasticJob:
        model = self.campaign.model_of(number, params)
        after_us = model.job.deadline_us
        deadline_us = None if after_us is None else now_us + after_us
        trial = Trial(number, self.campaign.trial_name(number), model, params, deadline_us)
        self._trials.append(trial)
        self._n_unfinished += 1
        self._start(trial, 0, 0)
        return self._job(trial, now_us)

    def _start(self, trial: Trial, index: int, first_epoch: int) -> None:
        campaign = self.campaign
        crash = campaign.retries.crash_epoch(campaign.seed, trial.number, index, first_epoch)
        marks = marks_of(
            campaign.epochs,
            trial.model.samples_per_epoch,
            self._pruner_epochs,
            self._other_epochs,
            first_epoch=first_epoch,
            reported_epochs=trial.epochs,
            crash_epoch=crash,
        )
        trial.start(Attempt(index, first_epoch, marks))

    def _job(self, trial: Trial, now_us: int) -> ElasticJob:
        attempt, model = trial.attempt, trial.model
        name = self._name_of_job(trial)
        self._trial_of_job[name] = trial
        return replace(
            model.job,
            name=name,
            submit_us=now_us,
            deadline_us=trial.deadline_us,
            model=model.name,
            params=trial.params,
            work_samples=(self.campaign.epochs - attempt.first_epoch) * model.samples_per_epoch,
            report_at_samples=tuple(mark.samples for mark in attempt.marks),
        )

    # -- trials wait --------------------------------------------------------------------------------------

    def _release(self) -> dict[str, Ending]:
        """Ask the pruner for waiting trials that continue, and return those that end."""
        to_come = self.campaign.trials - len(self._trials) if self._has_more else 0
        released = self._pruner.released(self._n_unfinished - len(self._waiting) + to_come)
        decided = [*released.promoted, *released.pruned]
        if len(set(decided).intersection(self._waiting)) < len(decided):
            raise BfreplayError(
                f"the pruner released the trials {decided}, each once please, and of those that wait: "
                f"{sorted(self._waiting)}"
            )
        for number in released.promoted:
            self._promoted.append(self._waiting.pop(number))
        stop = {}
        for number in released.pruned:
            trial = self._waiting.pop(number)
            stop[self._name_of_job(trial)] = Ending.PRUNED
            self._end(trial, TrialState.PRUNED)
        return stop

    def _resume(self) -> list[str]:
        names = []
        while self._promoted and self._has_room:
            names.append(self._name_of_job(self._promoted.popleft()))
        return names

    # -- trials end ---------------------------------------------------------------------------------------

    def _crash(self, trial: Trial, epochs: float) -> None:
        retries, attempt = self.campaign.retries, trial.attempt
        if attempt.index == retries.most:
            self._n_failed += 1
            self._end(trial, TrialState.FAILED)
            return
        del self._trial_of_job[self._name_of_job(trial)]
        self._start(trial, attempt.index + 1, retries.first_epoch(epochs))
        self._crashed.append(trial)

    def _end(self, trial: Trial, state: TrialState) -> None:
        self._trial_of_job.pop(self._name_of_job(trial), None)
        trial.state = state
        self._n_unfinished -= 1
        for part in self._parts:
            part.ended(trial.number, state, trial.score)

    def _stop_everything(self) -> Orders:
        stop = dict.fromkeys(self._trial_of_job, Ending.STOPPED)
        for trial in self._trials:
            if trial.state is None:
                self._end(trial, TrialState.STOPPED)
        return Orders(stop=stop)

    def _score(self, trial: Trial, epoch: int) -> float:
        score = self._scores.score(trial.number, trial.params, epoch)
        trial.report(epoch, score, self.campaign.higher_is_better)
        return score

    def _name_of_job(self, trial: Trial) -> str:
        return self.campaign.trial_name(trial.number, trial.attempt.index)


def _check_epochs(epochs: Iterable[int], end: int) -> tuple[int, ...]:
    wanted = tuple(epochs)
    if wanted and not all(before < epoch for before, epoch in pairwise((0, *wanted, end))):
        raise BfreplayError(
            f"the pruner wants reports after {list(wanted)} epochs: they must rise, from 1 on, below {end}"
        )
    return wanted
