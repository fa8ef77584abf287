"""A campaign, apart from the parts that can be swapped: its trials, models, arrivals, budget and retries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from msgspec import to_builtins

from bfreplay import checks
from bfreplay.campaigns.parts import Params, Purpose, TrialState, stream
from bfreplay.datasets.jobs.curve_points import inline_text
from bfreplay.documents import pick
from bfreplay.errors import InputError
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve
from bfreplay.scalability.stepped import curve_as_given
from bfreplay.typed_tables import Count, Positive, TypedTable
from bfreplay.workload import ElasticJob

AT_ONCE, EVERY, POISSON = "at-once", "every", "poisson"
PATTERNS = (AT_ONCE, EVERY, POISSON)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Trial k may not be submitted before its arrival; a limit of trials in flight may hold it up for longer.

    Parameters
    ----------
    pattern
        ``"at-once"``: all when the campaign starts. ``"every"``: trial k after ``k * every_s``. ``"poisson"``: a
        Poisson process of ``per_hour`` trials an hour, the first trial after the first gap.
    every_s
        Seconds between two trials; for ``"every"`` only, >= 0.
    per_hour
        Trials an hour on average; for ``"poisson"`` only, > 0.

    Raises
    ------
    InputError
        The number of the pattern is missing, or there is one of another.
    """

    pattern: str = AT_ONCE
    every_s: float | None = None
    per_hour: float | None = None

    def __post_init__(self) -> None:
        checks.belongs("every_s", self.every_s, 'arrival = "every"', is_needed=self.pattern == EVERY)
        checks.belongs("per_hour", self.per_hour, 'arrival = "poisson"', is_needed=self.pattern == POISSON)

    def after_us(self, trials: int, seed: int) -> list[int]:
        """Return the arrivals of trials 0, 1, ... in microseconds after the start of the campaign, never decreasing."""
        if self.every_s is not None:
            return [round(number * self.every_s * 1e6) for number in range(trials)]
        if self.per_hour is not None:
            gaps_s = stream(seed, Purpose.ARRIVAL).exponential(3_600 / self.per_hour, trials)
            return [round(after_s * 1e6) for after_s in np.cumsum(gaps_s).tolist()]
        return [0] * trials


_HOUR_US = 3_600_000_000


class Budget(TypedTable, frozen=True):
    """``[campaign.budget]``, the limits: when one is reached, all trials end and no more are submitted.

    Node time and samples are known when trials report, so a campaign with such a limit has its trials report after
    each epoch: it overshoots by less than one epoch of each running trial.

    Parameters
    ----------
    node_hours
        Node-hours that its jobs have held, rescaling and lost work included, > 0.
    samples
        Samples that its jobs have processed, those of crashed attempts included, > 0.
    hours
        Wall time since the campaign started, > 0: "finish by".
    failed_trials
        Trials that failed for good, >= 1.
    finished_trials
        Trials that finished, >= 1.

    ``None`` is no limit.
    """

    node_hours: Positive | None = None
    samples: Positive | None = None
    hours: Positive | None = None
    failed_trials: Count | None = None
    finished_trials: Count | None = None

    @property
    def needs_every_epoch(self) -> bool:
        """True if a limit needs a report after each epoch."""
        return self.node_hours is not None or self.samples is not None

    def end_us(self, start_us: int) -> int | None:
        """Return when a campaign that starts at ``start_us`` ends; ``None`` for no such time."""
        return None if self.hours is None else start_us + round(self.hours * _HOUR_US)

    def used_up(self, node_us: int, samples: float, wall_us: int, n_ended: Mapping[TrialState, int]) -> str | None:
        """Return the name of the first limit that is reached; ``None`` if none is.

        Parameters
        ----------
        node_us
            Node time in node-microseconds.
        samples
            Samples processed.
        wall_us
            Microseconds since the campaign started.
        n_ended
            Number of trials by their end.
        """
        if self.node_hours is not None and node_us >= self.node_hours * _HOUR_US:
            return "node_hours"
        if self.samples is not None and samples >= self.samples:
            return "samples"
        if self.hours is not None and wall_us >= round(self.hours * _HOUR_US):
            return "hours"
        if self.failed_trials is not None and n_ended[TrialState.FAILED] >= self.failed_trials:
            return "failed_trials"
        if self.finished_trials is not None and n_ended[TrialState.FINISHED] >= self.finished_trials:
            return "finished_trials"
        return None


CHECKPOINT, START = "checkpoint", "start"


@dataclass(frozen=True, slots=True)
class Retries:
    """Crashes of attempts, and the point from which the next one continues.

    The rate is one per epoch of training, not per node-hour: a trial then crashes at the same progress under every
    policy and on every log. (Reclaimed nodes, which do depend on node-hours, are in the log already.) The time to a
    crash is exponential in epochs.

    Parameters
    ----------
    failures_per_epoch
        Mean number of crashes in an epoch, >= 0.
    most
        Maximum number of retries of a trial, >= 0; the trial fails when one more attempt crashes.
    origin
        ``"checkpoint"``: a retry continues from the last complete epoch; ``"start"``: from nothing.
    """

    failures_per_epoch: float = 0.0
    most: int = 2
    origin: str = CHECKPOINT

    def crash_epoch(self, seed: int, number: int, attempt: int, first_epoch: int) -> float | None:
        """Return the progress in epochs at which attempt ``attempt`` (0, 1, ...) of a trial crashes; ``None``: never.

        Parameters
        ----------
        seed, number, attempt
            The result depends on these and ``first_epoch`` only.
        first_epoch
            Epochs that the attempt begins with.
        """
        if not self.failures_per_epoch:
            return None
        epochs_to_crash = float(stream(seed, Purpose.FAILURE, number, attempt).exponential(1 / self.failures_per_epoch))
        return first_epoch + epochs_to_crash

    def first_epoch(self, crash_epoch: float) -> int:
        """Return the number of epochs that a retry begins with after a crash at ``crash_epoch`` epochs."""
        return int(crash_epoch) if self.origin == CHECKPOINT else 0

    def describe(self) -> dict[str, object]:
        """Return its parameters."""
        return {"failures_per_epoch": self.failures_per_epoch, "most": self.most, "from": self.origin}


HPO, NAS = "hpo", "nas"
IN_TURN, BY_SEED, SEARCHED = "in-turn", "by-seed", "searched"
MODEL_PARAM = "model"
"""The hyper-parameter that names the model of a trial under ``SEARCHED``."""
MOST_TRIALS = 1_000_000


@dataclass(frozen=True, slots=True)
class TrialModel:
    """A model as all its trials train it.

    Parameters
    ----------
    job
        Template of the trials: bounds, costs, curves, weight and model name; a deadline counts from the trial's submit
        time, in microseconds. Name, submit time and work are set for each trial.
    samples_per_epoch
        Samples of an epoch, > 0.
    """

    job: ElasticJob
    samples_per_epoch: float

    @property
    def name(self) -> str:
        """Name of the model that is trained."""
        return self.job.model or self.job.name

    def describe(self) -> dict[str, object]:
        """Return every parameter with its value."""
        job = self.job
        return {
            **pick(self, "name", "samples_per_epoch"),
            **pick(job, "min_nodes", "max_nodes"),
            **job.changes(),
            "curve": _text(job.throughput, job.max_nodes),
            "objective_curve": None if job.objective is None else _text(job.objective, job.max_nodes),
            "weight": job.weight,
            "deadline_after_s": None if job.deadline_us is None else job.deadline_us / 1e6,
        }


@dataclass(frozen=True, slots=True)
class Campaign:
    """Trials that a user submits to find the best hyper-parameters (HPO) or the best model (NAS).

    Parameters
    ----------
    name
        Name of the campaign; trials are called NAME-0000, NAME-0001, ...
    models
        Models: one for HPO, one or more for NAS.
    epochs
        Epochs of a trial that is not ended early, >= 1.
    trials
        Maximum number of trials, >= 1.
    kind
        ``"hpo"`` or ``"nas"``.
    seed
        Seed of all random numbers, >= 0.
    parallel
        Maximum number of trials that are queued, running or to be retried, without those that wait for a pruner.
        ``None``: no limit.
    arrival
        Arrival times of trials.
    start_after_s
        Seconds from the window's start to the campaign's.
    higher_is_better
        True if a larger score is better.
    budget
        Limits that end the campaign.
    retries
        Crashes of trials, and their retries.
    model_choice
        Models take turns (``"in-turn"``), are drawn (``"by-seed"``), or are named by the hyper-parameter ``model``
        (``"searched"``).
    report_every_epochs
        Number of epochs between reports besides those for the pruner; ``None``: no such reports.
    numbers
        Numbers of the trials in their names, if they are not 0, 1, ...

    Raises
    ------
    InputError
        The name is no name, or too long for those of the trials.
    """

    name: str
    models: tuple[TrialModel, ...]
    epochs: int
    trials: int
    kind: str = HPO
    seed: int = 0
    parallel: int | None = None
    arrival: Arrival = field(default_factory=Arrival)
    start_after_s: float = 0.0
    higher_is_better: bool = True
    budget: Budget = field(default_factory=Budget)
    retries: Retries = field(default_factory=Retries)
    model_choice: str = IN_TURN
    report_every_epochs: int | None = None
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        checks.name("campaign", self.name, "name")
        checks.name("trial", self.trial_name(self.trials - 1, self.retries.most), "name")

    def trial_name(self, number: int, attempt: int = 0) -> str:
        """Return the name of a trial, ``NAME-0007``, or of a retry, ``NAME-0007-retry-1``."""
        digits = max(4, len(str(max(self.numbers, default=self.trials - 1))))
        shown_number = self.numbers[number] if self.numbers else number
        return f"{self.name}-{shown_number:0{digits}d}" + (f"-retry-{attempt}" if attempt else "")

    def model_of(self, number: int, params: Params) -> TrialModel:
        """Return the model that trial ``number`` trains.

        Raises
        ------
        InputError
            ``model_choice`` is ``"searched"`` and ``params`` name no model of the campaign.
        """
        if self.model_choice == BY_SEED:
            return self.models[int(stream(self.seed, Purpose.MODEL, number).integers(len(self.models)))]
        if self.model_choice == SEARCHED:
            names = [model.name for model in self.models]
            model_name = params.get(MODEL_PARAM)
            if not isinstance(model_name, str) or model_name not in names:
                raise InputError(
                    f"trial {number} names no model of the campaign",
                    column=MODEL_PARAM,
                    value=model_name,
                    expected="one of " + ", ".join(names),
                    fix="let the hyper-parameter 'model' take these values",
                )
            return self.models[names.index(model_name)]
        return self.models[number % len(self.models)]

    def describe(self) -> dict[str, object]:
        """Return every parameter with its value, JSON-ready."""
        return {
            **pick(self, "name", "kind", "trials", "epochs", "seed", "parallel"),
            "arrival": asdict(self.arrival),
            **pick(self, "start_after_s", "higher_is_better"),
            "budget": to_builtins(self.budget),
            "retries": self.retries.describe(),
            "model_choice": self.model_choice,
            "models": [model.describe() for model in self.models],
            "report_every_epochs": self.report_every_epochs,
        }


def _text(curve: Curve, max_nodes: int) -> str:
    """Return the text of a curve in files; a class of curves without a text form as points up to ``max_nodes``."""
    curve = curve_as_given(curve)
    if isinstance(curve, TabulatedCurve | Law | MeasuredLaw):
        return inline_text(curve)
    return inline_text(TabulatedCurve(range(max_nodes + 1), curve.table(max_nodes).tolist()))
