"""The folder of one tuning: its record, declared once, and the result in memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from bfreplay import checks
from bfreplay.documents import html_table
from bfreplay.result_folders.reading import Result
from bfreplay.result_folders.records import TUNING, Amount, Count, JsonObject, RecordPart, ResultRecord, TimeUs

if TYPE_CHECKING:
    import pandas as pd

TUNED_ON, VALIDATED_ON = "tuning", "validation"
PARTS = (TUNED_ON, VALIDATED_ON)
"""Parts of the log, as named in ``parts`` of the record."""


class Recommended(NamedTuple):
    """Recommended values of ``--t-fwd`` and ``--max-parallel``."""

    t_fwd: float | str
    max_parallel: int


class CurvePoint(NamedTuple):
    """One t_fwd of a curve, and its share of the best value of the grid."""

    t_fwd: float | str
    share: float


class TuningConfig(RecordPart, frozen=True, kw_only=True):
    """Options of the runs and of the tuning; ``flat``: distances below the best that count as flat."""

    options: JsonObject
    train: Amount
    tolerance: Amount
    flat: tuple[Amount, ...]


class InputFile(RecordPart, frozen=True, kw_only=True):
    """A file that was read, with its SHA-256."""

    name: str
    sha256: str


class TuningInputs(RecordPart, frozen=True, kw_only=True):
    """Files of the log and the jobs; ``n_jobs`` is ``None`` for a source of jobs."""

    events: list[InputFile]
    jobs: list[InputFile]
    n_jobs: Count | None


class GridValues(RecordPart, frozen=True, kw_only=True):
    """T values of t_fwd and M of max_parallel, tried in every combination."""

    t_fwd: list[float | str]
    max_parallel: list[Count]


class RecommendedPair(RecordPart, frozen=True, kw_only=True):
    """The recommended pair."""

    t_fwd: float | str
    max_parallel: Count


class Column(RecordPart, frozen=True, kw_only=True):
    """The best t_fwd for one max_parallel, and its influence.

    Parameters
    ----------
    max_parallel
        Value of this column.
    t_fwd
        Value with the fewest rescales among those as good as the best.
    best_t_fwd
        Value with the highest share.
    share
        Share of ``best_t_fwd``, relative to the best of the whole grid.
    flat
        For each of ``TuningConfig.flat``: least and largest fixed value around the best one within that distance;
        ``None`` without fixed values.
    """

    max_parallel: Count
    t_fwd: float | str
    best_t_fwd: float | str
    share: float
    flat: tuple[tuple[float, float] | None, ...]


class TunedPart(RecordPart, frozen=True, kw_only=True):
    """One part of the log. Tables have T rows, for t_fwd, of M numbers, for max_parallel.

    Parameters
    ----------
    window, window_us, duration_s
        Its start and end, and its length.
    idle_nodes, n_pool_events
        Mean number of idle nodes, and number of pool events.
    measure
        ``"samples"``, or ``"finish"`` where every run did all the work.
    value
        Samples, or seconds from the start of the part to when all work was done.
    share
        Share of the best of the grid.
    rescales
        Number of scale-ups and scale-downs.
    share_of_bound
        Samples over the upper bound; ``None`` without a bound.
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


class Validation(RecordPart, frozen=True, kw_only=True):
    """The recommended pair on the validation part.

    Parameters
    ----------
    share_of_bound
        Samples over the upper bound; ``None`` without a bound.
    loss
        Regret of tuning: relative loss, 0 to 1, against the best t_fwd with the same max_parallel.
    best_t_fwd
        Best t_fwd with the same max_parallel.
    loss_of_grid
        Relative loss against the best pair of the grid.
    best_pair
        Best pair of the grid: t_fwd and max_parallel.
    """

    share_of_bound: float | None
    loss: float
    best_t_fwd: float | str
    loss_of_grid: float
    best_pair: tuple[float | str, Count]


class TradeOffPoint(RecordPart, frozen=True, kw_only=True):
    """Idle nodes left alone, with the results in each part of the log.

    Parameters
    ----------
    reserve, min_age_s
        Values of ``--reserve`` and ``--min-age``.
    share
        By part: share of the best of all points, of samples or of the speed of doing all work.
    delay_node_hours
        By part: node-hours for which batch jobs started late.
    """

    reserve: Count
    min_age_s: Amount
    share: dict[str, float]
    delay_node_hours: dict[str, Amount]


class TradeOff(RecordPart, frozen=True, kw_only=True):
    """Training against delay to batch jobs, at the recommended pair.

    Parameters
    ----------
    clear_s
        Seconds to clear a node.
    measure
        By part: ``"samples"`` or ``"finish"``.
    points
        The first leaves nothing alone.
    knee
        Number of the recommended point.
    """

    clear_s: Amount
    measure: dict[str, str]
    points: list[TradeOffPoint]
    knee: Count


class TuningRecord(ResultRecord, frozen=True, kw_only=True):
    """``tuning.json``.

    Parameters
    ----------
    columns
        One column for each max_parallel of the grid.
    parts
        Results by ``PARTS``.
    validation
        Validation; ``None`` where nothing was processed in that part.
    answer
        The recommendation in two sentences, and one on the trade-off.
    warnings, notes
        Sentences.
    trade_off
        Idle nodes left alone; ``None`` unless asked for.
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
    trade_off: TradeOff | None = None


@dataclass(frozen=True, repr=False)
class Tuning(Result[TuningRecord]):
    """A recommendation; the runs behind it are in the subfolder ``sweep``."""

    kind = TUNING
    record_type = TuningRecord

    def __repr__(self) -> str:
        return f"<Tuning: {self.answer[0]}>"

    def _repr_html_(self) -> str:
        rows = [(name, str(value)) for name, value in self.recommended._asdict().items()]
        notes = [*self.answer[1:], *(f"Warning: {warning}" for warning in self.warnings), *self.record.notes]
        return html_table(self.answer[0], rows, str(self.folder or ""), notes)

    @property
    def recommended(self) -> Recommended:
        """The recommended pair."""
        return Recommended(self.record.recommended.t_fwd, self.record.recommended.max_parallel)

    @property
    def answer(self) -> list[str]:
        """The recommendation in two sentences."""
        return self.record.answer

    @property
    def warnings(self) -> list[str]:
        """Warnings, as sentences."""
        return self.record.warnings

    @property
    def table(self) -> pd.DataFrame:  # type: ignore[override]  # there is no other table
        """One row per part of the log, t_fwd and max_parallel: ``value``, ``share``, ``share_of_bound``, ``rescales``.

        ``value`` is samples, or seconds until all work was done, as ``record.parts[part].measure`` says.
        """
        import pandas as pd

        grid = self.record.grid
        points = product(PARTS, grid.t_fwd, grid.max_parallel)
        frame = pd.DataFrame(points, columns=["part", "t_fwd", "max_parallel"])
        for name in ("value", "share", "share_of_bound", "rescales"):
            frame[name] = [cell for part in PARTS for table_row in self.record.parts[part][name] for cell in table_row]
        return frame

    def to_frame(self) -> pd.DataFrame:
        """Return ``table``."""
        return self.table

    def curve(self, max_parallel: int | None = None, part: str = TUNED_ON) -> list[CurvePoint]:
        """Return the share of the best of the grid for each t_fwd.

        Parameters
        ----------
        max_parallel
            One of the grid; the recommended one by default.
        part
            ``"tuning"`` or ``"validation"``.

        Raises
        ------
        InputError
            ``max_parallel`` is not in the grid, or ``part`` is unknown.
        """
        grid = self.record.grid
        part = checks.one_of("part", part, PARTS)
        n_parallel = self.recommended.max_parallel if max_parallel is None else max_parallel
        checks.one_of("max_parallel", str(n_parallel), [str(number) for number in grid.max_parallel])
        column = grid.max_parallel.index(n_parallel)
        part_shares = self.record.parts[part].share
        return [CurvePoint(t_fwd, part_shares[row_number][column]) for row_number, t_fwd in enumerate(grid.t_fwd)]
