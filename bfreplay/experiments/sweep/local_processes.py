"""Executors of runs: the interface, and worker processes on this machine."""

from __future__ import annotations

import os
import pickle
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
    """Outcome of one task.

    Parameters
    ----------
    key
        Key of the task.
    answer
        Return value of ``work``; ``None`` where every worker that tried it died.
    died
        Cause of death of the last worker; empty where there is an answer.
    """

    key: str
    answer: Answer | None = None
    died: str = ""


class Executor(Protocol):
    """Does the same work on many tasks in parallel, in other processes.

    A worker that dies loses only its current task, which another worker repeats. The number of attempts, and the end of
    the workers, depend on the executor.
    """

    @property
    def n_workers(self) -> int:
        """Number of parallel workers known now; 0 while none has come."""
        ...

    def run_tasks(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Do ``work`` on every task, and yield answers as they are ready.

        Parameters
        ----------
        work
            A function (or a ``functools.partial`` of one) that other processes can import. It returns errors of
            a task as an answer; an exception is a defect and is raised here.
        tasks
            Tasks by a key, equal for the same work on the same content.
        """
        ...

    def close(self) -> None:
        """Start no more tasks; a second call does nothing."""
        ...


MOST_DEATHS = 3
"""Number of dead workers after which a task is given up."""

_LOOK_S = 1.0
_SAFE_PATH = "PYTHONSAFEPATH"
_SAFE_PATH_LOCK = threading.Lock()


class ProcessExecutor:
    """Executor with one process per worker, started on first use and replaced when it dies.

    Parameters
    ----------
    processes
        Number of workers, >= 1; by default the processors that this process may use.

    Notes
    -----
    Every worker is a pool of its own, so that the locks and half-sent messages of a killed process affect no other.
    Processes are spawned, not forked: compiled loops and Arrow have threads. They import the calling script only if a
    task has something that it defines.

    A task whose worker dies is repeated by another one, and given up after ``MOST_DEATHS``. Workers end when the
    executor is closed, even at work, and soon after this process ends.
    """

    def __init__(self, processes: int | None = None) -> None:
        leave_unguarded_script()
        usual = len(os.sched_getaffinity(0))
        self._n = usual if processes is None else checks.whole("processes", processes, 1, checks.MOST_THREADS)
        self._slots: list[_Slot] = []

    @property
    def n_workers(self) -> int:
        """Number of worker processes."""
        return self._n

    def run_tasks(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Yield answers as they come; see ``Executor``.

        Raises
        ------
        BfreplayError
            Workers do not start.
        """
        self._slots += [_Slot() for _ in range(min(self._n, len(tasks)) - len(self._slots))]
        waiting, free = deque(tasks), deque(self._slots)
        running: dict[Future[Answer], tuple[str, _Slot]] = {}
        deaths: Counter[str] = Counter()
        context = _Spawn() if b"__main__" in pickle.dumps((work, tasks)) else _SpawnWithoutScript()
        try:
            while waiting or running:
                while waiting and free:
                    task_key, slot = waiting.popleft(), free.popleft()
                    running[slot.start(work, tasks[task_key], context)] = (task_key, slot)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task_key, slot = running.pop(future)
                    free.append(slot)
                    cause_of_death = slot.cause_of_death(future)
                    if not cause_of_death:
                        yield Done(task_key, future.result())
                        continue
                    deaths[task_key] += 1
                    if deaths[task_key] < MOST_DEATHS:
                        waiting.appendleft(task_key)
                    else:
                        yield Done(task_key, died=cause_of_death)
        finally:
            if running:  # the caller has stopped
                self.close()

    def close(self) -> None:
        """Kill the workers."""
        while self._slots:
            self._slots.pop().drop()


class _Slot:
    """One worker process, replaced when it dies."""

    def __init__(self) -> None:
        self._pool: ProcessPool | None = None
        self._false_starts = 0

    def start(self, work: Callable[[Task], Answer], task: Task, context: SpawnContext) -> Future[Answer]:
        """Hand a task to the worker, which is started in ``context`` if it does not run."""
        if self._pool is None:
            with _safe_path() as environment:
                resource_tracker.ensure_running()  # otherwise the pool starts it
            self._pool = ProcessPool(1, initializer=_begin, initargs=(environment,), context=context)
        future: Future[Answer] = self._pool.schedule(work, args=(task,))
        return future

    def cause_of_death(self, future: Future[Any]) -> str:
        """Return how the worker died on the task of ``future``; empty if it did not."""
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
                f"a worker process ended {MOST_DEATHS} times before it took any work: all workers import the script\n"
                "  fix:      put the code of the calling script under: if __name__ == '__main__':"
            ) from None
        return "before it began"

    def drop(self) -> None:
        """Kill the worker."""
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
    """Worker process that ignores modules in the working directory while it takes over the parent's search path."""

    imports_script = True

    def start(self) -> None:
        main = vars(sys.modules["__main__"])
        with _safe_path():
            script = None if self.imports_script else main.pop("__file__", None)
            try:
                super().start()
            finally:
                if script is not None:
                    main["__file__"] = script


class _Spawn(SpawnContext):
    Process = _Process


class _ScriptlessProcess(_Process):
    """Worker process that does not import the calling script, whose calls then need no guard."""

    imports_script = False


class _SpawnWithoutScript(SpawnContext):
    Process = _ScriptlessProcess


@contextmanager
def _safe_path() -> Iterator[str | None]:
    """Set ``PYTHONSAFEPATH`` for processes started in the block, one thread at a time; yield the user's value."""
    with _SAFE_PATH_LOCK:
        environment = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield environment
        finally:
            _set_safe_path(environment)


def _set_safe_path(setting: str | None) -> None:
    os.environ.pop(_SAFE_PATH, None)
    if setting is not None:
        os.environ[_SAFE_PATH] = setting


def _begin(safe_path: str | None) -> None:
    """Set up a worker: it dies with the parent, uses one processor, and leaves stdout to the parent."""
    _set_safe_path(safe_path)  # for processes that the user's code starts
    parent = parent_process()
    assert parent is not None
    parent_pid = os.getppid()

    def watch() -> None:
        while os.getppid() == parent_pid:
            if wait_for_end([parent.sentinel], _LOOK_S):
                break
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    sys.stdout.flush()
    os.dup2(2, 1)
    import pyarrow

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
