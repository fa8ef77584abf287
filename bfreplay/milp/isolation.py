"""Back ends in a worker process, reused from decision to decision, so that failures are statuses; or in this one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from bfreplay.errors import SolverUnavailableError
from bfreplay.milp.backends import BACKENDS, Backend, BackendAnswer, SolveOptions, backend_of, try_to_solve, why_not
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import ProcessStatus, SolverStatus
from bfreplay.outputs import scratch_prefix

START_TIMEOUT_S = 120.0
"""A worker imports numpy and the solver before it is ready; that may be slow on a login node."""

GRACE_S = 5.0
"""What a solver may take beyond its own time limit before the worker is killed."""

_STUCK_S = 60
"""A message that stops half way for so long will not come."""


@dataclass(frozen=True, slots=True)
class IsolatedAnswer:
    """Result from the worker: an answer, or the fate of the process.

    Parameters
    ----------
    process_status
        ``OK`` also when the back end raised: then ``answer`` is ``None`` and ``message`` says what.
    answer
        The back end's claim, unverified.
    message
        Why there is no answer.
    elapsed_s
        From handing the model over to having the answer; starting a worker is not counted.
    """

    process_status: ProcessStatus
    answer: BackendAnswer | None
    message: str
    elapsed_s: float

    @classmethod
    def of(cls, kind: str, content: Any, elapsed_s: float) -> IsolatedAnswer:
        """Return the result of ``try_to_solve``."""
        if kind == "answer":
            return cls(ProcessStatus.OK, content, "", elapsed_s)
        return cls(ProcessStatus.REFUSED if kind == "refused" else ProcessStatus.OK, None, str(content), elapsed_s)


@dataclass(frozen=True, slots=True)
class InProcessBackend:
    """Back end in this process, where a crash is a crash; otherwise as ``IsolatedBackend``."""

    backend: Backend

    def solve(self, model: LinearModel, options: SolveOptions) -> IsolatedAnswer:
        """Solve here; exceptions of the back end become the message."""
        start_s = time.perf_counter()
        answer_kind, content = try_to_solve(self.backend, model, options)
        return IsolatedAnswer.of(answer_kind, content, time.perf_counter() - start_s)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class IsolatedBackend:
    """Back end in a worker process; the worker is started when first needed and replaced after a failure.

    Parameters
    ----------
    backend
        Registered name, or ``package.module:Class``, importable in the worker (it gets this process's ``sys.path``).
    memory_limit_bytes
        Address space the worker may use (``RLIMIT_AS``); ``None`` for no cap.
    grace_s
        The worker is killed when the solver's own time limit has passed by so much.
    start_timeout_s
        Longest start; it is not counted against any solve.
    python
        Another interpreter to run the back end in, with its own installed packages (numpy, packaging and the
        solver must be among them): how builds of one solver are compared. This process's own by default.

    Notes
    -----
    The worker is a fresh interpreter (not ``multiprocessing``), so scripts without a ``__main__`` guard work, in a
    session of its own, so Ctrl-C reaches only the parent, which then kills it. It dies with its parent. One solve
    at a time: give each thread its own. After a fork the child starts a worker of its own.
    """

    def __init__(
        self,
        backend: str,
        *,
        memory_limit_bytes: int | None = None,
        grace_s: float = GRACE_S,
        start_timeout_s: float = START_TIMEOUT_S,
        python: str | Path | None = None,
    ) -> None:
        self._backend = backend
        self._python = sys.executable if python is None else str(python)
        self._memory_limit_bytes = memory_limit_bytes
        self._grace_s = grace_s
        self._start_timeout_s = start_timeout_s
        self._worker: _Worker | None = None
        self.starts = 0
        """Workers started so far; every one after the first replaced a failed one."""

    @property
    def location(self) -> str:
        """``"package.module:Class"`` of the back end."""
        return BACKENDS.location(self._backend)

    @property
    def worker_pid(self) -> int | None:
        """Process id of the living worker, if there is one."""
        return None if self._worker is None else self._worker.process.pid

    def solve(self, model: LinearModel, options: SolveOptions) -> IsolatedAnswer:
        """Solve in the worker. Never raises for what the solver does."""
        try:
            worker = self._ready_worker()
        except _WorkerError as failure:
            return IsolatedAnswer(failure.status, None, f"the worker did not start: {failure}", 0.0)
        start_s = time.perf_counter()
        try:
            worker.send((model, options))
            answer_kind, content = worker.receive(options.time_limit_s + self._grace_s)
        except _WorkerError as failure:
            self.close()
            return IsolatedAnswer(failure.status, None, str(failure), time.perf_counter() - start_s)
        except BaseException:  # Ctrl-C among them: the worker is busy and its answer would come to the next question
            self.close()
            raise
        return IsolatedAnswer.of(answer_kind, content, time.perf_counter() - start_s)

    def close(self) -> None:
        """End the worker; harmless when called twice. A later ``solve`` starts a new one."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def __enter__(self) -> IsolatedBackend:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ready_worker(self) -> _Worker:
        if self._worker is not None and not self._worker.usable():
            self.close()
        if self._worker is None:
            try:
                worker = _Worker(self._python)
            except OSError as error:
                raise _WorkerError(ProcessStatus.CRASHED, f"{self._python}: {error.strerror or error}") from error
            self.starts += 1
            try:
                search_path = _search_path(foreign=self._python != sys.executable)
                worker.send((search_path, self._backend, self._memory_limit_bytes))
                greeting = worker.receive(self._start_timeout_s)
                if greeting[0] != "ready":
                    raise _WorkerError(ProcessStatus.CRASHED, str(greeting[1]))
            except BaseException:
                worker.end()
                raise
            self._worker = worker
        return self._worker


class ModelSolver:
    """Solver of linear models other than decisions, such as those of published programs.

    A back end that is sound in a process (``Capabilities.in_process``), as HiGHS is, runs in this one, unless a module
    that it ``excludes`` is loaded here; others run in a worker process.

    Parameters
    ----------
    name
        Registered name of the back end, or ``package.module:Class``.
    user
        What the models are for, for the error.

    Raises
    ------
    SolverUnavailableError
        The back end does not work here.
    """

    def __init__(self, name: str, user: str) -> None:
        self.backend = backend_of(name)
        if reason := why_not(self.backend):
            raise SolverUnavailableError(f"{user} cannot use {self.backend.name}: {reason}")
        self._name = name
        self._worker: IsolatedBackend | None = None

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        """Solve; an answer without finite numbers for all columns counts as none."""
        abilities = self.backend.capabilities
        if not abilities.warm_start:
            model = replace(model, start=None)
        if self._worker is None and not (abilities.in_process and sys.modules.keys().isdisjoint(abilities.excludes)):
            self._worker = IsolatedBackend(self._name)
        outcome = (self._worker or InProcessBackend(self.backend)).solve(model, options)
        if outcome.answer is None:
            return BackendAnswer(SolverStatus.ERROR, message=outcome.message)
        x, has_answer = outcome.answer.x, outcome.answer.solver_status in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE)
        is_usable = has_answer and x is not None and x.shape == (model.n_columns,) and bool(np.isfinite(x).all())
        return outcome.answer if is_usable else replace(outcome.answer, x=None)

    def close(self) -> None:
        """End the worker process, if any."""
        if self._worker is not None:
            self._worker.close()


def _search_path(*, foreign: bool) -> list[str]:
    """Return the module search path of the worker: that of this process, but a foreign interpreter keeps its packages.

    It gets our folders outside this interpreter's installation: those of the project and of the user.
    """
    own_entries = [entry or str(Path.cwd()) for entry in sys.path]
    if not foreign:
        return own_entries
    prefixes = [Path(prefix).resolve() for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}]
    return [entry for entry in own_entries if not any(Path(entry).resolve().is_relative_to(root) for root in prefixes)]


class _WorkerError(Exception):
    """The worker died or had to be killed."""

    def __init__(self, status: ProcessStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Worker:
    """One process, our end of its socket, and the file that its standard error goes to."""

    def __init__(self, python: str) -> None:
        parent_end, worker_end = socket.socketpair()
        scratch = tempfile.mkdtemp(prefix=scratch_prefix("solver"))  # a killed solver cannot tidy up: removed in _end
        try:
            for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
                parent_end.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", _STUCK_S, 0))
            self.stderr_file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in _end
            package_root = str(Path(__file__).resolve().parents[2])
            old_path = os.environ.get("PYTHONPATH")
            by_kernel = int(threading.current_thread() is threading.main_thread())
            arguments = map(str, (worker_end.fileno(), os.getpid(), by_kernel, scratch))
            self.process = subprocess.Popen(
                [python, "-P", "-m", "bfreplay.milp.worker", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.stderr_file,
                pass_fds=(worker_end.fileno(),),
                env={
                    **os.environ,
                    "PYTHONPATH": package_root + (os.pathsep + old_path if old_path else ""),
                    "OPENBLAS_NUM_THREADS": "1",
                    "TMPDIR": scratch,
                },
                start_new_session=True,
            )
            self.connection = Connection(parent_end.detach())
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        finally:
            parent_end.close()
            worker_end.close()
        self.owner = os.getpid()
        self.end = weakref.finalize(
            self, _end, self.process, self.connection, self.stderr_file, Path(scratch), self.owner
        )
        """Stop, reap and release; harmless when called twice."""

    def usable(self) -> bool:
        """True if this process started it and it still lives."""
        return self.owner == os.getpid() and self.process.poll() is None

    def send(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except BlockingIOError as error:
            raise _WorkerError(ProcessStatus.TIMED_OUT, "the worker no longer reads; it was killed") from error
        except OSError as error:
            raise self._crash() from error

    def receive(self, timeout_s: float) -> Any:
        try:
            if not self.connection.poll(timeout_s):
                reason = f"no answer after {timeout_s:.6g} s with grace; the worker was killed"
                raise _WorkerError(ProcessStatus.TIMED_OUT, reason)
        except OSError as error:
            raise self._crash() from error
        try:
            return self.connection.recv()
        except BlockingIOError as error:
            raise _WorkerError(ProcessStatus.TIMED_OUT, "an answer stopped half way; the worker was killed") from error
        except (EOFError, OSError) as error:
            raise self._crash() from error
        except Exception as error:  # a stranger's answer may not even unpickle here
            reason = f"the worker's answer cannot be read: {type(error).__name__}: {error}"
            raise _WorkerError(ProcessStatus.CRASHED, reason) from error

    def _crash(self) -> _WorkerError:
        """Describe the end of the dead process."""
        try:
            exit_code = self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            return _WorkerError(ProcessStatus.CRASHED, "the worker closed its connection but goes on; it was killed")
        signal_name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else f"signal {-exit_code}"
        exit_text = f"was ended by {signal_name}" if exit_code < 0 else f"exited with code {exit_code}"
        self.stderr_file.seek(max(0, self.stderr_file.seek(0, os.SEEK_END) - 500))
        last_words = self.stderr_file.read().decode(errors="replace").strip()
        return _WorkerError(
            ProcessStatus.CRASHED, f"the worker {exit_text}" + (f"; it said last: {last_words}" if last_words else "")
        )


def _end(
    process: subprocess.Popen[bytes], connection: Connection, stderr_file: IO[bytes], scratch: Path, owner: int
) -> None:
    """Kill and reap the worker; a forked child only closes its copies.

    The worker leads a process group, and a solver may have started processes of its own: all of it goes.
    """
    connection.close()
    stderr_file.close()
    if owner == os.getpid():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    else:
        process.returncode = 0  # not ours to wait for: keeps Popen from asking
