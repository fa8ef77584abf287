"""The error for a damaged run: in which of its files, and what to do."""

from __future__ import annotations

from typing import Any

from bfreplay.errors import InputError
from bfreplay.replay.result import RunResult


def damaged(
    run: RunResult, problem: str, *, file: str, column: str | None, value: Any, expected: str, row: int | None = None
) -> InputError:
    """Return the error to raise; ``file`` is the name of one in the run's folder."""
    return InputError(
        problem,
        file=f"{file} of a run in memory" if run.folder is None else run.folder / file,
        row=row,
        column=column,
        value=value,
        expected=expected,
        fix=f"a file is damaged, cut short or of another run: make the run again ('{run.kind.made_by}')",
    )
