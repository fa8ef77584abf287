"""Checkpoints of a run: its state, and the rows of its tables so far, in the folder ``RUN.checkpoint`` beside ``RUN``.

Rows are kept as they are written, a file for each chunk. The state has the checksums of the chunks that belong to it:
a run goes on from its last state whatever was written later, and from nothing that was damaged. When it is complete its
tables are made of the chunks: the same bytes as those of a run that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bfreplay.documents import parse_json
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.outputs import write_whole
from bfreplay.replay.tables import TableSink, as_bytes
from bfreplay.result_folders.writing import table_writer
from bfreplay.saved_state import State, read_state, write_state
from bfreplay.versions import versions

if TYPE_CHECKING:
    from filelock import FileLock

_ABOUT, _STATE, _HOLDER = "about.json", "state", "holder"
_VERSION = 5


class StoppedError(BfreplayError):
    """The run was asked to stop, and its state is saved."""


class ChunkSink(TableSink):
    """Chunks of a table, a file each, of which the table is made at the end."""

    def __init__(self, folder: Path, name: str, table: Path, schema: pa.Schema) -> None:
        self._folder, self._name, self._table, self._schema = folder, name, table, schema
        self._checksums: list[str] = []  # of the chunks, SHA-256

    def write(self, table: pa.Table) -> None:
        """Write the next chunk."""
        chunk = as_bytes(table)
        self._chunk(len(self._checksums)).write_bytes(chunk)
        self._checksums.append(hashlib.sha256(chunk).hexdigest())

    def save_state(self) -> list[str]:
        """Return the checksums of the chunks."""
        return list(self._checksums)

    def restore_state(self, state: Sequence[str]) -> None:
        """Hold the first chunks of the folder, which must be as they were; others are written again."""
        self._checksums = list(state)
        for _ in self._chunks():
            pass

    def close(self) -> None:
        """Make the table."""
        with table_writer(self._table, self._schema) as table_file:
            for chunk in self._chunks():
                table_file.write_table(pa.ipc.open_stream(chunk).read_all())

    def _chunks(self) -> Iterator[bytes]:
        """Yield the chunks; ``InputError`` for one that is not as it was."""
        for chunk_number, checksum in enumerate(self._checksums):
            file = self._chunk(chunk_number)
            content = file.read_bytes() if file.is_file() else b""
            if hashlib.sha256(content).hexdigest() != checksum:
                raise InputError(
                    "rows of the unfinished run are missing, or were changed",
                    file=file,
                    expected="the file that the state has the checksum of",
                    fix="replay from the start",
                )
            yield content

    def _chunk(self, chunk_number: int) -> Path:
        return self._folder / f"{self._name}-{chunk_number:06d}.arrows"


class Checkpoints:
    """Checkpoints of one run; a context manager, which holds the folder for this process.

    Parameters
    ----------
    out
        Folder of the run.
    every_s
        Seconds of wall time between two checkpoints.
    about
        What the run is made of, by ``about``: it goes on only from a checkpoint that says the same.
    options
        Options to make the run from again, for ``options_of``; ``None`` where it is not made from options.

    Raises
    ------
    InputError
        The folder cannot be written.
    """

    def __init__(
        self, out: Path, every_s: float, about: Mapping[str, Any], options: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = folder_of(out)
        self._out = out
        self._every_s = every_s
        self._about = about
        self._options = options
        self._last = monotonic()
        self._held: FileLock | None = None

    def begin(self, *, resume: bool, overwrite: bool = False) -> State | None:
        """Make the folder; or, to resume, return the last state in it, ``None`` if there is none yet.

        Raises
        ------
        OutputExistsError
            There is an unfinished run already, and it is neither resumed nor to be replaced.
        InputError
            There is none to resume, it is that of another run, or another process works on it.
        """
        if resume:
            read_about(self._out)  # before a lock is laid beside what is not there
        self._lock()
        try:
            state = None
            if not resume:
                self._make(overwrite)
            else:
                check_same(read_about(self._out), self._about, self.folder)
                if (self.folder / _STATE).exists():
                    state = read_state(self.folder / _STATE)
            since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            write_whole(self.folder / _HOLDER, f"process {os.getpid()} on {platform.node()}, since {since}\n")
        except BaseException:
            self.close()
            raise
        return state

    def _make(self, overwrite: bool) -> None:
        if self.folder.exists():
            if not overwrite:
                raise OutputExistsError(
                    f"an unfinished run is there already\n  file:     {self.folder}\n"
                    f"  fix:      resume it (--resume {self._out}; in Python: resume=True), or start anew with --force "
                    "(overwrite=True)"
                )
            if not (self.folder / _ABOUT).is_file():
                read_about(self._out)  # raises: it is none of ours
            shutil.rmtree(self.folder)
        with _writing(self.folder):
            self.folder.mkdir()
            write_whole(self.folder / _ABOUT, _seal({**self._about, "options": self._options}))

    def _lock(self) -> None:
        """Hold the run for this process, by a file beside the folder, which may be removed and made meanwhile."""
        from filelock import FileLock, Timeout  # most runs have no checkpoints

        with _writing(self.folder):
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self._held = FileLock(self.folder.with_name(f".{self.folder.name}.lock"))
            try:
                self._held.acquire(timeout=0)
            except Timeout as error:
                holder = self.folder / _HOLDER
                raise InputError(
                    "another process works on this run",
                    file=self.folder,
                    value=holder.read_text(encoding="utf-8").strip() if holder.is_file() else "not known yet",
                    expected="an unfinished run that nobody works on",
                    fix="wait until it ends, or stop it",
                ) from error

    def visit(self, state_of: Callable[[], State], *, stops: bool = False) -> None:
        """Save the state that ``state_of`` returns if it is time, or if the run stops.

        Raises
        ------
        StoppedError
            It is saved, and the run stops.
        """
        if stops or monotonic() - self._last >= self._every_s:
            self.save(state_of())
        if stops:
            raise StoppedError(f"stopped; its state is saved in {self.folder}")

    def save(self, state: State) -> None:
        """Save a state in place of the last one, whole or not at all."""
        write_state(self.folder / _STATE, state)
        self._last = monotonic()

    def sink(self, name: str, table: Path, schema: pa.Schema) -> ChunkSink:
        """Return the sink of a table, which is written to ``table`` at the end."""
        return ChunkSink(self.folder, name, table, schema)

    def end(self) -> None:
        """Remove the folder: the run is complete."""
        trash = self.folder.with_name(f".{self.folder.name}.ended")
        shutil.rmtree(trash, ignore_errors=True)  # of a process that was killed right here
        self.folder.rename(trash)  # at once: half a folder would look like a run to resume
        shutil.rmtree(trash)

    def close(self) -> None:
        """Let other processes resume the run; harmless when called twice."""
        if self._held is not None and self._held.is_locked:
            Path(self._held.lock_file).unlink(missing_ok=True)  # still held: who waits for it makes a new one
            self._held.release()


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"the folder of checkpoints cannot be written: {error.strerror or error}",
            file=folder,
            expected="a folder in which you may write",
            fix="choose another output folder",
        ) from error


def folder_of(out: Path) -> Path:
    """Return the folder of the checkpoints of a run."""
    return out.resolve().with_name(f"{out.resolve().name}.checkpoint")


def read_about(out: Path) -> dict[str, Any]:
    """Return what an unfinished run is made of.

    Raises
    ------
    InputError
        There is no such run, or it cannot be read.
    """
    file = folder_of(out) / _ABOUT
    try:
        json_text = file.read_text(encoding="utf-8")
        about = parse_json(json_text)
        if not isinstance(about, dict) or about.get("schema") != _VERSION:
            raise ValueError("it is not of this version")
        about.pop("sha256", None)
        if json_text != _seal(about):
            raise ValueError("its checksum does not agree, so that it was changed")
        if not isinstance(about["options"], dict | None):
            raise ValueError("its options are none")
    except FileNotFoundError as error:
        is_complete = out.exists()
        raise InputError(
            "this run is complete" if is_complete else "there is no unfinished run of this name",
            file=folder_of(out),
            expected="the folder of a run that was begun with --checkpoint-every, and did not end",
            fix="there is nothing to resume" if is_complete else "name the run as --out did",
        ) from error
    except (OSError, ValueError, KeyError) as error:
        problem, expected = f"the unfinished run cannot be read: {error}", "a file that bfreplay wrote"
        raise InputError(problem, file=file, expected=expected, fix="replay from the start") from error
    return about


def _seal(about: Mapping[str, Any]) -> str:
    """Return the text of ``about.json``, with the SHA-256 of all else that is in it."""
    json_text = json.dumps(about, sort_keys=True)
    document = {**about, "sha256": hashlib.sha256(json_text.encode()).hexdigest()}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def about(**parts: Any) -> dict[str, Any]:
    """Return what a run is made of, JSON-ready: its parts, and what its numbers depend on besides."""
    return {"schema": _VERSION, "versions": versions(), "processor": processor(), **parts}


def check_same(saved_options: Mapping[str, Any], new_options: Mapping[str, Any], file: Path) -> None:
    """Raise ``InputError`` with the first entry of ``about`` that is another one now."""
    saved_values, new_values = _flat(dict(saved_options)), _flat(json.loads(json.dumps(new_options)))
    for entry_name in sorted(saved_values.keys() | new_values.keys()):
        if saved_values.get(entry_name) != new_values.get(entry_name) and not entry_name.startswith("options"):
            raise InputError(
                "the unfinished run is another one: it cannot go on here and give the bytes of an unbroken run",
                file=file,
                column=entry_name,
                value=new_values.get(entry_name, "nothing"),
                expected=str(saved_values.get(entry_name, "nothing")),
                fix="resume it with equal inputs, options and versions, on the same kind of processor; or begin anew",
            )


def processor() -> str:
    """Return the kind of processor: numbers are rounded alike on the same kind."""
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # no stub

    features = sorted(feature for feature, is_there in __cpu_features__.items() if is_there)
    return f"{platform.machine()} with {' '.join(features)}"


def _flat(document: Any, name: str = "") -> dict[str, Any]:
    """Return the entries of nested data by their paths."""
    if not isinstance(document, dict):
        return {name: document}
    parts = ((f"{name}.{path_of_value}" if name else path_of_value, value) for path_of_value, value in document.items())
    return {path: value for path_of_value, nested in parts for path, value in _flat(nested, path_of_value).items()}
