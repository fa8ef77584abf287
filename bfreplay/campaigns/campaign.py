"""A campaign, apart from the parts that can be swapped."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from bfreplay import checks
from bfreplay.campaigns.parts import Params, Purpose, stream
from bfreplay.campaigns.rules import Arrival, Budget, Retries
from bfreplay.datasets.jobs.curve_points import inline_text
from bfreplay.documents import pick
from bfreplay.errors import InputError
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve
from bfreplay.workload import ElasticJob

HPO, NAS = "hpo", "nas"
KINDS = (HPO, NAS)
IN_TURN, BY_SEED, SEARCHED = "in-turn", "by-seed", "searched"
MODEL_CHOICES = (IN_TURN, BY_SEED, SEARCHED)
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
            **pick(job, "min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s"),
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

    Raises
    ------
    InputError
        A number out of range, or models that do not fit the kind.
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

    def __post_init__(self) -> None:
        checks.name("campaign", self.name, "name")
        checks.one_of("kind", self.kind, KINDS)
        checks.whole("trials", self.trials, 1, MOST_TRIALS)
        checks.name("trial", self.trial_name(self.trials - 1, self.retries.most), "name")
        checks.whole("epochs", self.epochs, 1, MOST_TRIALS)
        checks.whole("seed", self.seed, 0)
        checks.number("start_after_s", self.start_after_s, least=0, most=1e10)
        checks.truth("higher_is_better", self.higher_is_better)
        checks.one_of("model_choice", self.model_choice, MODEL_CHOICES)
        if self.parallel is not None:
            checks.whole("parallel", self.parallel, 1)
        if self.report_every_epochs is not None:
            checks.whole("report_every_epochs", self.report_every_epochs, 1)
        names = [model.name for model in self.models]
        if not names or (self.kind == HPO and len(names) > 1):
            raise InputError(
                f"a campaign of kind {self.kind!r} with {len(names)} models",
                column="kind",
                value=self.kind,
                expected="one model for 'hpo', one or more for 'nas'",
                fix='write kind = "nas", or give one curve' if names else "give a curve",
            )
        for i, name in enumerate(names):
            if name in names[:i]:
                raise InputError(
                    f"two models are called {name!r}",
                    column="name",
                    value=name,
                    expected="unique names",
                    fix="rename one of them",
                )

    def trial_name(self, number: int, attempt: int = 0) -> str:
        """Return the name of a trial, ``NAME-0007``, or of a retry, ``NAME-0007-retry-1``."""
        digits = max(4, len(str(self.trials - 1)))
        return f"{self.name}-{number:0{digits}d}" + (f"-retry-{attempt}" if attempt else "")

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
            chosen = params.get(MODEL_PARAM)
            if not isinstance(chosen, str) or chosen not in names:
                raise InputError(
                    f"trial {number} names no model of the campaign",
                    column=MODEL_PARAM,
                    value=chosen,
                    expected="one of " + ", ".join(names),
                    fix="let the hyper-parameter 'model' take these values",
                )
            return self.models[names.index(chosen)]
        return self.models[number % len(self.models)]

    def describe(self) -> dict[str, object]:
        """Return every parameter with its value, JSON-ready."""
        return {
            **pick(self, "name", "kind", "trials", "epochs", "seed", "parallel"),
            "arrival": asdict(self.arrival),
            **pick(self, "start_after_s", "higher_is_better"),
            "budget": asdict(self.budget),
            "retries": self.retries.describe(),
            "model_choice": self.model_choice,
            "models": [model.describe() for model in self.models],
            "report_every_epochs": self.report_every_epochs,
        }


def _text(curve: Curve, max_nodes: int) -> str:
    """Return the text of a curve in files; a class of curves without a text form as points up to ``max_nodes``."""
    if isinstance(curve, TabulatedCurve | Law | MeasuredLaw):
        return inline_text(curve)
    return inline_text(TabulatedCurve(range(max_nodes + 1), curve.table(max_nodes).tolist()))
