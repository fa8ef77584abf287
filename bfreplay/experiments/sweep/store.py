"""The folder of a sweep: finished runs by id, failures, and who is at work on what."""

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
    """Why there is no result.

    Parameters
    ----------
    type
        Class of the error, or ``"WorkerDied"``.
    problem
        One line, without paths: what the table shows.
    message
        All that was said.
    """

    type: str
    problem: str
    message: str


class Store:
    """``FOLDER/runs/ID`` is a finished run, whole or not there; ``FOLDER/failures/ID.json`` one that failed.

    Locks are those of the operating system: they are gone with the process that holds them, however it ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self._failures = folder / "failures"
        self._claims = folder / ".claims"

    @classmethod
    def made(cls, out: str | Path) -> Store:
        """The store in ``out``, which is made where it is not there, or is empty.

        Raises
        ------
        OutputExistsError, InputError
            There is something else, or nothing can be written.
        """
        store = cls(Path(out).absolute())
        # one that was killed before it wrote its record has the folder of claims, which comes first
        if not ((store.folder / SWEEP.record_file).exists() or store._claims.is_dir()):
            store = cls(check_target(Path(out), SWEEP, overwrite=False))
        try:
            for each in (store._claims, store.runs, store._failures):
                each.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(store.folder, error, "the folder of the sweep") from error
        return store

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second sweep out while the block runs.

        Raises
        ------
        OutputExistsError
            One is at work already.
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
    def claimed(self, run_id: str) -> Iterator[None]:
        """Have a run for this process alone; waits for another that is at it."""
        with FileLock(self._claims / f"{run_id}.lock"):
            self._remove_partial(run_id)  # of one that was killed at it
            yield

    def run_folder(self, run_id: str) -> Path:
        """Where the run lies, or will."""
        return self.runs / run_id

    def has(self, run_id: str) -> bool:
        """Whether the run is finished."""
        return (self.run_folder(run_id) / RUN.record_file).is_file()

    def discard(self, run_id: str) -> None:
        """Remove a finished run, in one step for whoever looks; for a process that claims it."""
        self.run_folder(run_id).rename(self.runs / f".{run_id}.partial-discarded")
        self._remove_partial(run_id)

    def failure(self, run_id: str) -> Failure | None:
        """Why the run failed; ``None`` where it did not, or was not tried."""
        file = self._failures / f"{run_id}.json"
        try:
            found = parse_json(file.read_text(encoding="utf-8"))
            return Failure(found["type"], found["problem"], found["message"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                "the note of a failed run cannot be read", file=file, value=str(error),
                fix="remove it: the run will be tried again",
            ) from error  # fmt: skip

    def note_failure(self, run_id: str, failure: Failure, options: JsonObject) -> None:
        """Write down why a run failed, and what it was."""
        text = record_json({"id": run_id, **asdict(failure), "options": options}, "the failure")
        write_whole(self._failures / f"{run_id}.json", text)

    def forget_failure(self, run_id: str) -> None:
        """The run may be tried again."""
        (self._failures / f"{run_id}.json").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what killed sweeps and workers left behind, but no run that one is at; for who has the lock."""
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
    """What the table and the note say of an error."""
    if isinstance(error, BfreplayError):
        return Failure(type(error).__name__, str(error).splitlines()[0], str(error))
    # the text of an OSError has the path in it
    said = f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else one_line(error)
    return Failure(type(error).__name__, said, "".join(format_exception(error)))
