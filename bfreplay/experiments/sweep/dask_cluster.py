"""Executor on the workers of a Dask cluster that share the folder of the sweep."""

from __future__ import annotations

import importlib
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bfreplay import __version__
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.sweep.local_processes import Answer, Done, Task
from bfreplay.registry import one_line

_CONNECT_S = 20
_LOOK_S = 0.5


class DaskExecutor:
    """Submits tasks to a running Dask scheduler.

    Parameters
    ----------
    address
        Address of the scheduler, ``"tcp://host:8786"``.
    folder
        Folder of the sweep, which every worker has to see.
    files
        Inputs that every worker has to see.
    on_wait
        Called once while there is no worker; work begins with the first worker.

    Raises
    ------
    InputError
        Dask is not installed, no scheduler answers at the address, a worker does not see the folder or a file, or has
        another version of bfreplay.
    """

    def __init__(
        self, address: str, folder: Path, files: Sequence[str] = (), on_wait: Callable[[], None] | None = None
    ) -> None:
        self._distributed = _import_distributed()
        # it logs the end of a scheduler as a traceback; ``each`` raises an error instead
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._address = address
        self._folder = folder
        self._files = tuple(files)
        self._futures: list[Any] = []
        try:
            self._distributed.comm.get_address_host_port(address)  # a client of no address leaves a traceback at exit
            self._client = self._distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: not an address
            raise InputError(
                f"no Dask scheduler answers: {one_line(error)}",
                column="scheduler",
                value=address,
                expected="the address that 'dask scheduler' printed, such as tcp://host:8786",
                fix="start one: dask scheduler; and workers: dask worker ADDRESS --nthreads 1",
            ) from error
        try:
            if not self.n_workers and on_wait is not None:
                on_wait()
            while not self.n_workers:
                time.sleep(_LOOK_S)
            self._check_workers()
        except BaseException:
            self.close()
            raise

    @property
    def n_workers(self) -> int:
        """Number of workers known to the scheduler now."""
        return len(self._client.nthreads())

    def run_tasks(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Yield answers as they come; see ``Executor``. The scheduler repeats the tasks of dead workers.

        Raises
        ------
        BfreplayError
            The scheduler has ended.
        """
        # the folder is part of the name: another sweep may have the same content and another folder
        folder_digest = uuid.uuid5(uuid.NAMESPACE_URL, str(self._folder)).hex[:12]
        key_of = {f"bfreplay-{task_key}-{folder_digest}": task_key for task_key in tasks}
        self._futures = [self._client.submit(work, tasks[task_key], key=name) for name, task_key in key_of.items()]
        for future in self._distributed.as_completed(self._futures, loop=self._client.loop):
            task_key = key_of[future.key]
            if future.status == "cancelled":
                raise BfreplayError(
                    f"the Dask scheduler at {self._address} has ended, or has cancelled the runs\n"
                    "  fix:      start it again, then give the same command: finished runs stay"
                )
            try:
                # an answer that was lost with its worker is computed again
                outcome = Done(task_key, future.result())
            except self._distributed.KilledWorker as error:
                outcome = Done(
                    task_key, died=f"on {error.last_worker.address}" if error.last_worker is not None else "on Dask"
                )
            yield outcome

    def close(self) -> None:
        """Cancel tasks that have not begun; workers finish their current run, and its result stays."""
        if self._futures:
            self._client.cancel(self._futures)
            self._futures = []
        self._client.close()

    def _check_workers(self) -> None:
        probe = self._folder / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        try:
            visible_files = self._client.run(_look, (str(probe), *self._files), on_error="return")
        finally:
            probe.unlink()
        for worker, file_stamps in sorted(visible_files.items()):
            if isinstance(file_stamps, BaseException):
                raise InputError(
                    f"the Dask worker {worker} cannot run bfreplay: {one_line(file_stamps)}",
                    fix=f"install bfreplay {__version__} in its environment",
                )
            version, missing = file_stamps
            if version != __version__:
                raise InputError(
                    f"the Dask worker {worker} has another version of bfreplay",
                    value=version,
                    expected=__version__,
                    fix="install the same version everywhere: the ids of runs depend on it",
                )
            if missing:
                description = "the folder of the sweep" if missing[0] == str(probe) else "an input"
                raise InputError(
                    f"the Dask worker {worker} does not see {description}",
                    file=self._folder if missing[0] == str(probe) else missing[0],
                    expected="files on a file system that all workers share, under the same path",
                    fix="move it there; or sweep without --scheduler, on this machine",
                )


def _look(files: Sequence[str]) -> tuple[str, list[str]]:
    """Return, on a worker, its version of bfreplay and the files that it does not see."""
    from bfreplay import __version__

    return __version__, [file for file in files if not Path(file).exists()]


def _import_distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise InputError(
            f"--scheduler needs Dask, which cannot be imported: {one_line(error)}",
            expected="dask and distributed",
            fix="pip install 'bfreplay[cluster]'",
        ) from error
