"""Folder of a command that makes many runs: the same command resumes it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import SweepResult, sweep
from bfreplay.outputs import remove_leftovers, scratch_prefix
from bfreplay.result_folders.records import ResultKind
from bfreplay.result_folders.writing import check_target, unwritable


def check_folder(out: str | Path, kind: ResultKind) -> Path:
    """Return the path of the folder: a new one, or one of the same kind, complete or not.

    Raises
    ------
    OutputExistsError, InputError
        The path is something else, or cannot be written to.
    """
    path = Path(out)
    if (path / kind.record_file).exists() or (path / _marker(kind)).exists():
        return path.absolute()
    return check_target(path, kind, overwrite=False)


@contextmanager
def resumable_folder(out: str | Path | None, kind: ResultKind, *, stale: Sequence[str]) -> Iterator[Path]:
    """Yield the folder ``out``, made if needed and without its record and the files ``stale``; or a temporary one.

    Warns if the record that is written there replaces a different one.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix=scratch_prefix(kind.word)) as temporary:
            yield Path(temporary)
        return
    folder = check_folder(out, kind)
    record_file = folder / kind.record_file
    try:
        earlier = record_file.read_bytes() if record_file.exists() else None
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(record_file)
        (folder / _marker(kind)).touch()  # so that it can be resumed after a kill
        for file_name in (kind.record_file, *stale):  # of other options, perhaps
            (folder / file_name).unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(folder, error, f"the folder of the {kind.word}") from error
    yield folder
    if earlier is not None and record_file.read_bytes() != earlier:
        warnings.warn(f"the earlier answer in {folder}, of other inputs or options, is replaced", stacklevel=3)


def _marker(kind: ResultKind) -> str:
    return f".{Path(kind.record_file).stem}"


def scheduler_needs(out: str | Path | None, scheduler: str | None) -> None:
    """Raise ``InputError`` for a Dask scheduler without a folder."""
    if scheduler is not None and out is None:
        raise InputError(
            "a Dask scheduler needs a folder that its workers can write to",
            value=scheduler,
            expected="--out with --scheduler",
            fix="add --out with a folder on a file system that all workers share",
        )


def complete_sweep(runs: Iterable[RunOptions], folder: Path, **keywords: Any) -> SweepResult:
    """Make all runs, also those that failed before; ``keywords`` of ``sweep``. ``BfreplayError`` if a run fails."""
    result = sweep(runs, folder, retry_failed=True, **keywords)
    errors = [error for error in result.results["error"].to_pylist() if error is not None]
    if errors:
        raise BfreplayError(
            f"{len(errors):,} of {result.results.num_rows:,} runs failed, so the results cannot be compared\n"
            f"  first:    {errors[0]}\n"
            "  fix:      try this run alone with 'bfreplay replay'; with --out the same command retries the failed "
            "runs only"
        )
    return result
