"""The tables and keys of a campaign file, with their types; docs/campaigns.md has their meaning."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, field
from msgspec.structs import asdict

from bfreplay.campaigns.campaign import MOST_TRIALS, Budget
from bfreplay.campaigns.optuna_study import OptunaTable
from bfreplay.campaigns.recorded_study import StudyTable
from bfreplay.documents import Cell
from bfreplay.typed_tables import Count, Finite, NotNegative, Positive, TypedTable, Whole

_TrialCount: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_TRIALS)]
_Gap: TypeAlias = Annotated[int, Meta(ge=0, le=10**9)] | Annotated[float, Meta(ge=0, le=1e9)]
_HourlyRate: TypeAlias = Annotated[int, Meta(ge=1, le=10**9)] | Annotated[float, Meta(ge=1e-6, le=1e9)]
_Delay: TypeAlias = Annotated[int, Meta(ge=0, le=10**10)] | Annotated[float, Meta(ge=0, le=1e10)]
_CrashRate: TypeAlias = Annotated[int, Meta(ge=0, le=10**6)] | Annotated[float, Meta(ge=0, le=1e6)]
_Exponent: TypeAlias = Annotated[int, Meta(ge=1, le=100)] | Annotated[float, Meta(gt=0, le=100)]


class CampaignTable(TypedTable, frozen=True, kw_only=True):
    """``[campaign]``."""

    name: str | None = None
    kind: Literal["hpo", "nas"] = "hpo"
    trials: _TrialCount
    seed: Whole = 0
    parallel: Count | None = None
    arrival: Literal["at-once", "every", "poisson"] = "at-once"
    every_s: _Gap | None = None
    per_hour: _HourlyRate | None = None
    start_after_s: _Delay = 0.0
    higher_is_better: bool = True
    proposer: str | None = None
    budget: Budget = Budget()


class ModelKeys(TypedTable, frozen=True):
    """Keys of a model: ``[trial]`` has them for all models, ``[[model]]`` where one differs.

    Most are cells of a job, which are read as in job files.
    """

    samples_per_epoch: Positive | None = None
    min_nodes: Any = None
    max_nodes: Any = None
    scale_up_cost_s: Any = None
    scale_down_cost_s: Any = None
    start_cost_s: Any = None
    restart: Any = None
    work_saved_every_s: Any = None
    saves: Any = None
    counts: Any = None
    curve: Any = None
    objective_curve: Any = None
    weight: Any = None
    deadline_after_s: Any = None

    def cells(self) -> dict[str, Cell]:
        """Return the keys of a model that the table has."""
        return {key: value for key in ModelKeys.__struct_fields__ if (value := getattr(self, key)) is not None}


class TrialTable(ModelKeys, frozen=True, kw_only=True):
    """``[trial]``."""

    epochs: _TrialCount
    model: str | None = None
    model_choice: Literal["in-turn", "by-seed", "searched"] = "in-turn"


class ModelTable(ModelKeys, frozen=True, kw_only=True):
    """``[[model]]``."""

    name: str


class RetriesTable(TypedTable, frozen=True):
    """``[retries]``, whose first key is required in a table with any."""

    failures_per_epoch: _CrashRate | None = None
    most: Whole | None = None
    origin: Literal["checkpoint", "start"] | None = field(name="from", default=None)


class ScoresTable(TypedTable, frozen=True):
    """``[scores]``."""

    start: Finite | None = None
    worst: Finite | None = None
    best: Finite | None = None
    pace: Annotated[list[_Exponent], Meta(min_length=2, max_length=2)] | None = None
    noise: NotNegative | None = None
    function: str | None = None
    report_every_epochs: Count | None = None

    def curve_keys(self) -> dict[str, Any]:
        """Return the keys of the made-up learning curves that the table has."""
        return {key: value for key, value in asdict(self).items() if value is not None and key not in _OTHER_KEYS}


_OTHER_KEYS = ("function", "report_every_epochs")


class CampaignFile(TypedTable, frozen=True):
    """All tables."""

    campaign: CampaignTable
    trial: TrialTable
    model: Annotated[list[ModelTable], Meta(min_length=1)] | None = None
    retries: RetriesTable = RetriesTable()
    scores: ScoresTable = ScoresTable()
    pruner: dict[str, Any] = field(default_factory=dict)
    proposer: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] | None = None
    optuna: OptunaTable | None = None
    study: StudyTable | None = None
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)
