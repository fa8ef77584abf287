"""``Tuning``: what a tuning leaves behind, in memory or as a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bfreplay import checks
from bfreplay.experiments.tuning.parts import PARTS, TUNING
from bfreplay.result_folders import TUNING as KIND
from bfreplay.result_folders import read_documents

if TYPE_CHECKING:
    import pandas as pd


class Recommended(NamedTuple):
    """What to give as ``--t-fwd`` and ``--max-parallel``."""

    t_fwd: float | str
    max_parallel: int


class CurvePoint(NamedTuple):
    """One t_fwd of a curve, and its share of the best of the grid in that part of the log."""

    t_fwd: float | str
    share: float


@dataclass(frozen=True, slots=True, repr=False)
class Tuning:
    """A recommendation, and every run that it rests on.

    Parameters
    ----------
    record
        Contents of ``tuning.json``: plain data.
    folder
        Where it lies, ``None`` for one in memory.
    """

    record: dict[str, Any]
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"<Tuning: {self.answer[0]}>"

    @classmethod
    def load(cls, folder: str | Path) -> Tuning:
        """Read the folder of a complete tuning.

        Raises
        ------
        InputError
            It is none, or of another schema version.
        """
        path = Path(folder)
        (record,) = read_documents(path, KIND)
        return cls(record, path)

    @property
    def recommended(self) -> Recommended:
        """What to use."""
        found = self.record["recommended"]
        return Recommended(found["t_fwd"], found["max_parallel"])

    @property
    def answer(self) -> list[str]:
        """The recommendation in two sentences."""
        sentences: list[str] = self.record["answer"]
        return sentences

    @property
    def warnings(self) -> list[str]:
        """What not to trust, as sentences."""
        sentences: list[str] = self.record["warnings"]
        return sentences

    @property
    def table(self) -> pd.DataFrame:
        """One row a part of the log, t_fwd and max_parallel: ``value``, ``share``, ``share_of_bound``, ``rescales``.

        ``value`` is samples, or seconds until all work was done, as ``record["parts"][part]["measure"]`` says.
        """
        import pandas as pd

        grid = self.record["grid"]
        rows = [
            {
                "part": part, "t_fwd": t_fwd, "max_parallel": number,
                **{name: self.record["parts"][part][name][t][m] for name in _TABLES},
            }
            for part in PARTS
            for t, t_fwd in enumerate(grid["t_fwd"])
            for m, number in enumerate(grid["max_parallel"])
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def curve(self, max_parallel: int | None = None, part: str = TUNING) -> list[CurvePoint]:
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
        grid = self.record["grid"]
        part = checks.one_of("part", part, PARTS)
        wanted = self.recommended.max_parallel if max_parallel is None else max_parallel
        checks.one_of("max_parallel", str(wanted), [str(each) for each in grid["max_parallel"]])
        column = grid["max_parallel"].index(wanted)
        share = self.record["parts"][part]["share"]
        return [CurvePoint(t_fwd, share[t][column]) for t, t_fwd in enumerate(grid["t_fwd"])]


_TABLES = ("value", "share", "share_of_bound", "rescales")
