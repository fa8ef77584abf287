"""The folder of one tuning: its record, declared once, and the result in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bfreplay import checks
from bfreplay.result_folders.reading import Result
from bfreplay.result_folders.records import TUNING, Amount, Count, JsonObject, Part, ResultKind, ResultRecord, TimeUs

if TYPE_CHECKING:
    import pandas as pd

TUNED_ON, VALIDATED_ON = "tuning", "validation"
PARTS = (TUNED_ON, VALIDATED_ON)
"""Of the log, in ``parts`` of the record."""


class Recommended(NamedTuple):
    """What to give as ``--t-fwd`` and ``--max-parallel``."""

    t_fwd: float | str
    max_parallel: int


class CurvePoint(NamedTuple):
    """One t_fwd of a curve, and its share of the best of the grid in that part of the log."""

    t_fwd: float | str
    share: float


class TuningConfig(Part, frozen=True, kw_only=True):
    """Options of the runs and of the tuning; ``flat``: how far below the best still counts as flat."""

    options: JsonObject
    train: Amount
    tolerance: Amount
    flat: tuple[Amount, ...]


class InputFile(Part, frozen=True, kw_only=True):
    """A file that was read, and the SHA-256 of its content."""

    name: str
    sha256: str


class TuningInputs(Part, frozen=True, kw_only=True):
    """Files of the log and the jobs; ``n_jobs`` is ``None`` for a source of jobs."""

    events: list[InputFile]
    jobs: list[InputFile]
    n_jobs: Count | None


class GridValues(Part, frozen=True, kw_only=True):
    """T values of t_fwd and M of max_parallel: every combination was tried."""

    t_fwd: list[float | str]
    max_parallel: list[Count]


class RecommendedPair(Part, frozen=True, kw_only=True):
    """What to use."""

    t_fwd: float | str
    max_parallel: Count


class Column(Part, frozen=True, kw_only=True):
    """The best t_fwd for one max_parallel, and how much it matters.

    Parameters
    ----------
    max_parallel
        Of this column.
    t_fwd
        The one with the fewest rescales among those as good as the best.
    best_t_fwd
        The one with the highest share.
    share
        Of ``best_t_fwd``, against the best of the whole grid.
    flat
        For each of ``TuningConfig.flat``: least and largest of the fixed values around the best fixed one that stay
        that near to it; ``None`` where no value is fixed.
    """

    max_parallel: Count
    t_fwd: float | str
    best_t_fwd: float | str
    share: float
    flat: tuple[tuple[float, float] | None, ...]


class TunedPart(Part, frozen=True, kw_only=True):
    """One part of the log. Tables have T rows, for t_fwd, of M numbers, for max_parallel.

    Parameters
    ----------
    window, window_us, duration_s
        Its start and its end, and the time between.
    idle_nodes, n_pool_events
        Their mean, and how many there are.
    measure
        ``"samples"``, or ``"finish"`` where every run did all the work.
    value
        Samples, or seconds from the start of the part to when all work was done.
    share
        Of the best of the grid.
    rescales
        Jobs grown and shrunk by decision.
    share_of_bound
        Samples over the upper bound; ``None`` where there is none.
    """

    window: tuple[str, str]
    window_us: tuple[TimeUs, TimeUs]
    duration_s: Amount
    idle_nodes: Amount
    n_pool_events: Count
    measure: str
    value: list[list[float]]
    share: list[list[float]]
    rescales: list[list[Count]]
    share_of_bound: list[list[float | None]]


class Validation(Part, frozen=True, kw_only=True):
    """The recommended pair on the validation part.

    Parameters
    ----------
    share_of_bound
        Samples over the upper bound there; ``None`` where there is none.
    loss
        Regret of tuning: what it has less than the best t_fwd there has with as many jobs at once, relative, 0 to 1.
    best_t_fwd
        That one.
    loss_of_grid
        What it has less than the best pair of the grid there.
    best_pair
        That one: t_fwd and max_parallel.
    """

    share_of_bound: float | None
    loss: float
    best_t_fwd: float | str
    loss_of_grid: float
    best_pair: tuple[float | str, Count]


class TuningRecord(ResultRecord, frozen=True, kw_only=True):
    """``tuning.json``.

    Parameters
    ----------
    columns
        One for each max_parallel of the grid.
    parts
        By ``PARTS``.
    validation
        ``None`` where nothing was processed in that part.
    answer
        The recommendation in two sentences.
    warnings, notes
        What not to trust, and what else to know, as sentences.
    """

    versions: dict[str, str]
    config: TuningConfig
    inputs: TuningInputs
    grid: GridValues
    recommended: RecommendedPair
    columns: list[Column]
    parts: dict[str, TunedPart]
    validation: Validation | None
    answer: list[str]
    warnings: list[str]
    notes: list[str]


@dataclass(frozen=True, repr=False)
class Tuning(Result[TuningRecord]):
    """A recommendation, and every run that it rests on: these are the folder ``sweep`` in its own."""

    kind: ClassVar[ResultKind] = TUNING
    record_type: ClassVar[type[TuningRecord]] = TuningRecord

    def __repr__(self) -> str:
        return f"<Tuning: {self.answer[0]}>"

    @property
    def recommended(self) -> Recommended:
        """What to use."""
        return Recommended(self.record.recommended.t_fwd, self.record.recommended.max_parallel)

    @property
    def answer(self) -> list[str]:
        """The recommendation in two sentences."""
        return self.record.answer

    @property
    def warnings(self) -> list[str]:
        """What not to trust, as sentences."""
        return self.record.warnings

    @property
    def table(self) -> pd.DataFrame:  # type: ignore[override]  # there is no other table
        """One row a part of the log, t_fwd and max_parallel: ``value``, ``share``, ``share_of_bound``, ``rescales``.

        ``value`` is samples, or seconds until all work was done, as ``record.parts[part].measure`` says.
        """
        import pandas as pd

        rows = [
            {
                "part": part, "t_fwd": t_fwd, "max_parallel": number,
                **{name: self.record.parts[part][name][t][m] for name in _TABLES},
            }
            for part in PARTS
            for t, t_fwd in enumerate(self.record.grid.t_fwd)
            for m, number in enumerate(self.record.grid.max_parallel)
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def to_frame(self) -> pd.DataFrame:
        """Return ``table``."""
        return self.table

    def curve(self, max_parallel: int | None = None, part: str = TUNED_ON) -> list[CurvePoint]:
        """Share of the best of the grid for each t_fwd.

        Parameters
        ----------
        max_parallel
            One of the grid; the recommended one by default.
        part
            ``"tuning"`` or ``"validation"``.

        Raises
        ------
        InputError
            The grid has no such ``max_parallel``, or there is no such part.
        """
        grid = self.record.grid
        part = checks.one_of("part", part, PARTS)
        wanted = self.recommended.max_parallel if max_parallel is None else max_parallel
        checks.one_of("max_parallel", str(wanted), [str(each) for each in grid.max_parallel])
        column = grid.max_parallel.index(wanted)
        share = self.record.parts[part].share
        return [CurvePoint(t_fwd, share[t][column]) for t, t_fwd in enumerate(grid.t_fwd)]


_TABLES = ("value", "share", "share_of_bound", "rescales")
