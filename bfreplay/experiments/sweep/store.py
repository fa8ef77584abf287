"""Folder of a sweep: finished runs by id, failures, and claims of workers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from traceback import format_exception

from filelock import FileLock, Timeout

from bfreplay.documents import parse_json
from bfreplay.errors import BfreplayError, InputError
from bfreplay.outputs import write_whole
from bfreplay.registry import one_line
from bfreplay.result_folders.records import RUN, SWEEP, JsonObject
from bfreplay.result_folders.writing import check_target, existing, record_json, unwritable


@dataclass(frozen=True, slots=True)
class Failure:
    """Error of a failed run.

    Parameters
    ----------
    type
        Class of the error, or ``"WorkerDied"``.
    problem
        One line without paths, for the table.
    message
        Complete message.
    """

    type: str
    problem: str
    message: str


class Store:
    """Runs and failures of a sweep: ``FOLDER/runs/ID`` is a finished run, ``FOLDER/failures/ID.json`` a failed one.

    Locks are those of the operating system, which releases them when a process ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self._failures = folder / "failures"
        self._claims = folder / ".claims"

    @classmethod
    def create(cls, out: str | Path) -> Store:
        """Open the store in ``out``, or make it in a new or empty folder.

        Raises
        ------
        OutputExistsError, InputError
            The folder is something else, or cannot be written.
        """
        store = cls(Path(out).absolute())
        # a sweep that was killed before it wrote its record has the folder of claims, made first
        if not ((store.folder / SWEEP.record_file).exists() or store._claims.is_dir()):
            store = cls(check_target(Path(out), SWEEP, overwrite=False))
        try:
            for subfolder in (store._claims, store.runs, store._failures):
                subfolder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(store.folder, error, "the folder of the sweep") from error
        return store

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other sweeps out of the folder during the block.

        Raises
        ------
        OutputExistsError
            Another sweep is at work in it.
        """
        lock = FileLock(self._claims / "sweep.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            fix = "wait until it has ended, or choose another --out"
            raise existing("another sweep is at work in this folder", self.folder, fix) from error
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def claim(self, run_id: str) -> Iterator[None]:
        """Reserve a run for this process during the block; waits for another process at work on it."""
        with FileLock(self._claims / f"{run_id}.lock"):
            self._remove_partial(run_id)  # left by a killed process
            yield

    def run_folder(self, run_id: str) -> Path:
        """Return the folder of a run, which may not exist yet."""
        return self.runs / run_id

    def has(self, run_id: str) -> bool:
        """Return whether the run is finished."""
        return (self.run_folder(run_id) / RUN.record_file).is_file()

    def discard(self, run_id: str) -> None:
        """Remove a finished run atomically; only for a process that claims it."""
        self.run_folder(run_id).rename(self.runs / f".{run_id}.partial-discarded")
        self._remove_partial(run_id)

    def failure(self, run_id: str) -> Failure | None:
        """Return the error of a failed run; ``None`` for any other."""
        file = self._failures / f"{run_id}.json"
        try:
            document = parse_json(file.read_text(encoding="utf-8"))
            return Failure(document["type"], document["problem"], document["message"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                "the note of a failed run cannot be read",
                file=file,
                value=str(error),
                fix="remove it to repeat the run",
            ) from error

    def note_failure(self, run_id: str, failure: Failure, options: JsonObject) -> None:
        """Save the error and the options of a failed run."""
        text = record_json({"id": run_id, **asdict(failure), "options": options}, "the failure")
        write_whole(self._failures / f"{run_id}.json", text)

    def forget_failure(self, run_id: str) -> None:
        """Remove the note of a failed run, so that it is repeated."""
        (self._failures / f"{run_id}.json").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove leftovers of killed sweeps and workers, but no claimed run; needs the lock."""
        for folder, pattern in ((self.folder, ".*.part-*"), (self._failures, ".*.part-*"), (self.folder, ".probe-*")):
            for leftover in folder.glob(pattern):
                leftover.unlink(missing_ok=True)
        partial = {path.name[1:].partition(".partial-")[0] for path in self.runs.glob(".*.partial-*")}
        claims = {path.stem for path in self._claims.glob("*.lock")} - {"sweep"}
        for run_id in sorted(partial | claims):
            lock = FileLock(self._claims / f"{run_id}.lock", timeout=0)
            with suppress(Timeout), lock:
                self._remove_partial(run_id)
                (self._claims / f"{run_id}.lock").unlink(missing_ok=True)

    def _remove_partial(self, run_id: str) -> None:
        for path in self.runs.glob(f".{run_id}.partial-*"):
            shutil.rmtree(path, ignore_errors=True)


def failure_of(error: BaseException) -> Failure:
    """Describe an error for the table and the note."""
    if isinstance(error, BfreplayError):
        # with the traceback of code that is not bfreplay's
        causes = [] if error.__cause__ is None else ["\n", *format_exception(error.__cause__)]
        return Failure(type(error).__name__, str(error).splitlines()[0], "".join([str(error), *causes]))
    # the text of an OSError has the path in it
    problem = f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else one_line(error)
    return Failure(type(error).__name__, problem, "".join(format_exception(error)))
