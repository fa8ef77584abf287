"""Where runs are worked on: one interface for all machines, and the processes on this machine behind it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import current_process, parent_process, resource_tracker
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Generic, Protocol, TypeVar

from pebble import ProcessExpired, ProcessPool

from bfreplay import checks
from bfreplay.errors import BfreplayError

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Done(Generic[Answer]):
    """What became of one task.

    Parameters
    ----------
    key
        Of the task.
    answer
        What ``work`` returned; ``None`` where every worker that tried it died.
    died
        How the last of them ended; empty where there is an answer.
    """

    key: str
    answer: Answer | None = None
    died: str = ""


class Executor(Protocol):
    """Does the same work on many tasks, several at a time, in other processes.

    A worker that dies costs nothing but the task it was at, which another one does again; how often, and what becomes
    of workers when the executor is closed, each kind says of itself.
    """

    @property
    def n_workers(self) -> int:
        """How many tasks are worked on at a time, as far as is known now; 0 while none has come."""
        ...

    def each(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Do ``work`` on every task; answers come as they are ready.

        Parameters
        ----------
        work
            A function (or a ``functools.partial`` of one) that other processes can import. It returns errors that
            belong to a task as an answer; what it raises is a defect and is raised here.
        tasks
            By a key that tells tasks apart, the same for the same work on the same content.
        """
        ...

    def close(self) -> None:
        """Have no more tasks begun; harmless when called twice."""
        ...


MOST_DEATHS = 3
"""A task whose workers died so often is given up."""

_LOOK_S = 1.0
_SAFE_PATH = "PYTHONSAFEPATH"
_SAFE_PATH_LOCK = threading.Lock()


class ProcessExecutor:
    """One process for each worker, started when first needed and replaced when it dies.

    Parameters
    ----------
    processes
        How many, >= 1; as many as this process may use processors by default.

    Notes
    -----
    Every worker is a pool of its own: what a killed process leaves locked or half-sent in its channel then concerns
    nobody else. Processes are spawned, not forked: compiled loops and Arrow have threads.

    A task whose worker dies is done again by another one; it is given up when ``MOST_DEATHS`` have died at it. Workers
    end when the executor is closed, whatever they are at, and soon after this process is gone, however it went.
    """

    def __init__(self, processes: int | None = None) -> None:
        leave_unguarded_script()
        self._n = len(os.sched_getaffinity(0)) if processes is None else checks.whole("processes", processes, 1)
        self._slots: list[_Slot] = []

    @property
    def n_workers(self) -> int:
        """As many as were asked for."""
        return self._n

    def each(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Answers as they come; see ``Executor``.

        Raises
        ------
        BfreplayError
            Workers do not even start.
        """
        self._slots += [_Slot() for _ in range(min(self._n, len(tasks)) - len(self._slots))]
        waiting, free = deque(tasks), deque(self._slots)
        running: dict[Future[Answer], tuple[str, _Slot]] = {}
        deaths: Counter[str] = Counter()
        try:
            while waiting or running:
                while waiting and free:
                    key, slot = waiting.popleft(), free.popleft()
                    running[slot.start(work, tasks[key])] = (key, slot)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key, slot = running.pop(future)
                    free.append(slot)
                    died = slot.ended(future)
                    if not died:
                        yield Done(key, future.result())
                        continue
                    deaths[key] += 1
                    if deaths[key] < MOST_DEATHS:
                        waiting.appendleft(key)
                    else:
                        yield Done(key, died=died)
        finally:
            if running:  # nobody waits for these any more
                self.close()

    def close(self) -> None:
        """Kill the workers."""
        while self._slots:
            self._slots.pop().drop()


class _Slot:
    """Room for one worker."""

    def __init__(self) -> None:
        self._pool: ProcessPool | None = None
        self._false_starts = 0

    def start(self, work: Callable[[Task], Answer], task: Task) -> Future[Answer]:
        """Hand a task to the worker."""
        if self._pool is None:
            with _safe_path() as given:
                resource_tracker.ensure_running()  # another process, which the pool would start
            self._pool = ProcessPool(1, initializer=_begin, initargs=(given,), context=_Spawn())
        future: Future[Answer] = self._pool.schedule(work, args=(task,))
        return future

    def ended(self, future: Future[Any]) -> str:
        """How the worker died on the task of ``future``; empty where it did not, whatever it answered."""
        error = future.exception()
        if not isinstance(error, ProcessExpired | BrokenProcessPool):
            self._false_starts = 0
            return ""
        self.drop()
        if isinstance(error, ProcessExpired):
            self._false_starts = 0
            return _how(error.exitcode)
        self._false_starts += 1
        if self._false_starts >= MOST_DEATHS:
            raise BfreplayError(
                f"a worker process ended {MOST_DEATHS} times before it took any work; what it wrote stands above\n"
                "  fix:      put the calls of a script that sweeps under: if __name__ == '__main__':"
            ) from error
        return "before it began"

    def drop(self) -> None:
        """End the worker, whatever it is at."""
        pool: Any = self._pool  # its stop() has no types
        if pool is not None:
            pool.stop()
            pool.join()
            self._pool = None


def leave_unguarded_script() -> None:
    """End a worker that runs the calls of the user's script, because these have no guard; its parent says so."""
    if getattr(current_process(), "_inheriting", False):
        sys.exit(1)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"


class _Process(SpawnProcess):
    """A worker that does not look for modules in the working directory while it takes over the parent's search path."""

    def start(self) -> None:
        with _safe_path():
            super().start()


class _Spawn(SpawnContext):
    Process = _Process


@contextmanager
def _safe_path() -> Iterator[str | None]:
    """Set ``PYTHONSAFEPATH`` for processes that start meanwhile, one thread at a time; yields the user's value."""
    with _SAFE_PATH_LOCK:
        given = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield given
        finally:
            _set_safe_path(given)


def _set_safe_path(value: str | None) -> None:
    os.environ.pop(_SAFE_PATH, None)
    if value is not None:
        os.environ[_SAFE_PATH] = value


def _begin(safe_path: str | None) -> None:
    """First thing in a worker: die with the parent, use one processor, and leave stdout to the parent."""
    _set_safe_path(safe_path)  # for processes that the user's code starts
    parent = parent_process()
    assert parent is not None
    started_by = os.getppid()

    def watch() -> None:
        while os.getppid() == started_by:
            if wait_for_end([parent.sentinel], _LOOK_S):
                break
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    sys.stdout.flush()
    os.dup2(2, 1)
    import pyarrow

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
