"""Files of a solver's failures: the model, and the decision behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bfreplay.milp.files.decision_json import write_decision
from bfreplay.milp.files.models import file_stem, write_mps
from bfreplay.milp.model import LinearModel
from bfreplay.milp.problem import AllocationProblem


class FailureFolder:
    """Folder that gets two files for each failure: ``choices-on-cbc-00000.mps`` and ``.json`` beside it.

    The folder is made with the first failure. Files that are there stay; several processes may share it.

    Parameters
    ----------
    folder
        Where they go.
    most
        Failures to keep of each solver and kind (process status, solver status, quality), for models of megabytes add
        up; ``None`` for all.
    """

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder = folder
        self._most = most
        self._next: dict[str, int] = {}
        self._kept: Counter[tuple[str, ...]] = Counter()

    def keep(
        self, solver: str, problem: AllocationProblem, model: LinearModel | None, about: Mapping[str, object]
    ) -> None:
        """Write the model (if there is one) and its decision; ``about`` describes the failure."""
        kind = (solver, *(str(about.get(name)) for name in ("process_status", "solver_status", "quality")))
        if self._most is not None and self._kept[kind] >= self._most:
            return
        self._kept[kind] += 1
        self._folder.mkdir(parents=True, exist_ok=True)
        decision = self._claim_file(file_stem(solver))
        try:
            if model is not None:
                write_mps(model, decision.with_suffix(".mps"))
            write_decision(problem, decision, {"solver": solver, **about})
        except BaseException:
            decision.unlink()
            raise

    def _claim_file(self, stem: str) -> Path:
        """Return the first free file name, made as an empty file at once: other processes may write here too."""
        while True:
            number = self._next.get(stem, 0)
            self._next[stem] = number + 1
            decision = self._folder / f"{stem}-{number:05d}.json"
            with suppress(FileExistsError):
                decision.touch(exist_ok=False)
                return decision
