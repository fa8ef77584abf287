"""When compiled loops are compiled, and the process that compiles beside a run.

Machine code is kept on disk, but a new machine has none, and numba takes half a minute for the loops of a replay. So
small work runs interpreted meanwhile, with the same results to the bit, and large work waits for the compiler.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import IO, TYPE_CHECKING, Any

from bfreplay.errors import InputError

if TYPE_CHECKING:
    from filelock import FileLock

VARIABLE = "BFREPLAY_COMPILE"
MODES = {
    "background": "small work is interpreted while another process compiles; large work waits (the default)",
    "wait": "every loop is compiled before its first use",
    "never": "a loop without machine code on disk is interpreted, however large the work",
}
"""Values of the environment variable ``BFREPLAY_COMPILE``."""

_SMALL_ROWS = 100_000
"""Most events, rows of a log, or values of one decision whose loops are interpreted: about 20 s."""
_INTERPRETED_CPU_S = 15.0
"""CPU time after the first interpreted call from which on the process waits for machine code after all."""
_LONGEST_WAIT_S = 300.0
"""A compiler that was stopped by hand would hold the lock for ever."""
_IDLE_S = 10.0
_CPU_LIMIT_S = 900
"""Limits of the background process: time without a request, and CPU time in all."""
_RESTART_S = 5.0
_COLLECT_EVERY = 50_000
"""New objects before Python looks for unreachable ones; at its own pace, compiling takes a tenth longer."""
_HEADER = struct.Struct("<q")


def compile_mode() -> str:
    """Return the value of ``BFREPLAY_COMPILE``; ``InputError`` if it is none of ``MODES``."""
    mode = os.environ.get(VARIABLE) or "background"
    if mode not in MODES:
        raise InputError(f"unknown value of {VARIABLE}", value=mode, expected=", ".join(MODES), fix=f"unset {VARIABLE}")
    return mode


@dataclass(slots=True)
class _ThisProcess:
    """State of this process: whether it waits for the compiler now, and since which CPU time it interprets."""

    is_waiting: bool = False
    interpreting_since_s: float | None = None


_this_process = _ThisProcess()


def expect_rows(n_rows: int) -> None:
    """Tell how many events, rows of a log, or values of one decision come: many are not begun before the compiler."""
    if n_rows > _SMALL_ROWS:
        _this_process.is_waiting = True


def is_interpreted() -> bool:
    """Decide whether a loop without machine code is interpreted, or compiled before it is used.

    Once much work is expected, or interpreted calls have taken long, the process waits for all further loops.
    """
    mode = compile_mode()
    if mode != "background":
        return mode == "never"
    if not _this_process.is_waiting:
        if _this_process.interpreting_since_s is None:
            _this_process.interpreting_since_s = process_time()
        _this_process.is_waiting = process_time() - _this_process.interpreting_since_s > _INTERPRETED_CPU_S
    return not _this_process.is_waiting


@contextmanager
def compiling_first() -> Iterator[None]:
    """Compile every loop used in this block before its use, unless ``BFREPLAY_COMPILE`` is ``never``."""
    compile_mode()  # an unknown value is refused where nothing is to be compiled, too
    was_waiting, _this_process.is_waiting = _this_process.is_waiting, True
    try:
        yield
    finally:
        _this_process.is_waiting = was_waiting


_notices: dict[bool, Callable[[bool], None]] = {}


@contextmanager
def notice_of_compiling(show: Callable[[bool], None]) -> Iterator[None]:
    """Call ``show`` if loops of this context have no machine code: once with true if they are interpreted meanwhile.

    And once with false if the process waits for the compiler.
    """
    compile_mode()
    _notices.update({True: show, False: show})
    try:
        yield
    finally:
        _notices.clear()


def tell(is_interpreting: bool) -> None:
    """Show the notice of this context, if it has not been shown, and something is compiled."""
    if is_interpreting in _notices and compile_mode() != "never":
        _notices.pop(is_interpreting)(is_interpreting)


@contextmanager
def sole_compiler(folder: Path | None) -> Iterator[None]:
    """Wait until no other process compiles into ``folder``, the cache, and keep others out.

    numba numbers the files of a function by an index that it reads before and writes after compiling: two processes at
    once could lose, or exchange, each other's machine code. The own background process is asked to finish first.
    """
    if folder is None:
        yield
        return
    from filelock import Timeout

    _background.finish()
    with ExitStack() as stack:
        with suppress(Timeout, OSError, NotImplementedError):  # not every file system has locks: then without
            stack.enter_context(_lock_of(folder).acquire(timeout=_LONGEST_WAIT_S))
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(_COLLECT_EVERY)
        yield


@cache
def _lock_of(folder: Path) -> FileLock:
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / "bfreplay-compiling.lock")


@dataclass(slots=True)
class _Background:
    """The background process of this one, started by the first request; requests go through an unnamed file."""

    process: subprocess.Popen[bytes] | None = None
    file: IO[bytes] | None = None
    n_bytes: int = 0
    started_s: float = -_RESTART_S
    requested: set[tuple[Any, ...]] = field(default_factory=set)

    def request(self, folder: Path, module: str, name: str, signature: tuple[Any, ...]) -> None:
        """Have the function ``name`` of ``module`` compiled for ``signature``, numba's types of its arguments."""
        wanted = (module, name, signature)
        if compile_mode() == "never" or (wanted in self.requested and self._is_at_work()):
            return
        with suppress(OSError):  # no room or no process to be had: the run goes on interpreted
            if not self._is_at_work():
                if monotonic() - self.started_s < _RESTART_S:
                    return
                self._start(folder)
            self.requested.add(wanted)
            self._write(pickle.dumps(wanted))

    def finish(self) -> None:
        """Tell the process, if there is one, that no request follows."""
        if self.file is not None:
            with suppress(OSError):
                self._write(b"")
            self.file.close()
            self.file = None

    def forget(self) -> None:
        """Leave the process to the parent of this one, which has been forked."""
        self.process = self.file = None

    def _is_at_work(self) -> bool:
        return self.file is not None and self.process is not None and self.process.poll() is None

    def _start(self, folder: Path) -> None:
        self.started_s, self.n_bytes, self.requested = monotonic(), 0, set()
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by ``finish``
        root = str(Path(__file__).resolve().parents[1])
        paths = [root, *(path for path in sys.path if path)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _MAIN, str(folder), str(os.getpid())],
            stdin=self.file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), VARIABLE: "wait"},
            start_new_session=True,
        )

    def _write(self, message: bytes) -> None:
        assert self.file is not None
        content = _HEADER.pack(len(message)) + message
        self.n_bytes += os.pwrite(self.file.fileno(), content, self.n_bytes)


_background = _Background()
request = _background.request
_MAIN = "import sys; from bfreplay._compiling import compile_requests as c; c(sys.argv[1], int(sys.argv[2]))"


def compile_requests(folder: str, parent_pid: int) -> None:
    """Run the background process: compile what the file on stdin asks for, until nobody asks any more.

    It ends at once if another process compiles into the same ``folder``. A loop that cannot be compiled is left to its
    next large use, which shows the error.
    """
    import resource

    from filelock import Timeout

    os.nice(19)
    gc.set_threshold(_COLLECT_EVERY)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_LIMIT_S, _CPU_LIMIT_S))
    with suppress(Timeout, OSError, NotImplementedError), _lock_of(Path(folder)).acquire(timeout=0):
        for module, name, signature in _requests(parent_pid):
            with suppress(Exception):
                attrgetter(name)(import_module(module)).compile(signature)


def _requests(parent_pid: int) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """Yield requests as they are written; end with the empty one, after ``_IDLE_S`` without any, or the parent."""
    position, asked_s = 0, monotonic()
    while monotonic() - asked_s < _IDLE_S:
        is_last = os.getppid() != parent_pid
        header = os.pread(0, _HEADER.size, position)
        length = _HEADER.unpack(header)[0] if len(header) == _HEADER.size else None
        message = os.pread(0, length, position + _HEADER.size) if length else b""
        if length == 0 or (length is None and is_last):
            return
        if length is None or len(message) < length:
            sleep(0.05)
            continue
        position += _HEADER.size + length
        yield pickle.loads(message)
        asked_s = monotonic()


atexit.register(_background.finish)
os.register_at_fork(after_in_child=_background.forget)
