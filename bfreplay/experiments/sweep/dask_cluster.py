"""Workers are those of a Dask cluster, on any machines that share the folder of the sweep."""

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
    """Submits to a scheduler that runs already.

    Parameters
    ----------
    address
        Of the scheduler, ``"tcp://host:8786"``.
    folder
        Of the sweep: every worker has to see it, and ``files``.
    files
        Inputs that every worker has to see.
    on_wait
        Called once when there is no worker yet; work begins when one comes.

    Raises
    ------
    InputError
        Dask is not installed; nobody answers at the address; or a worker does not see what it must see, or has
        another version of bfreplay.
    """

    def __init__(
        self, address: str, folder: Path, files: Sequence[str] = (), on_wait: Callable[[], None] | None = None
    ) -> None:
        self._distributed = _distributed()
        # it logs the end of a scheduler as a traceback; ``each`` says it in words
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        self._address = address
        self._folder = folder
        self._files = tuple(files)
        self._futures: list[Any] = []
        try:
            self._client = self._distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: no address at all
            raise InputError(
                f"no Dask scheduler answers: {one_line(error)}", column="scheduler", value=address,
                expected="the address that 'dask scheduler' printed, such as tcp://host:8786",
                fix="start one: dask scheduler; and workers: dask worker ADDRESS --nthreads 1",
            ) from error  # fmt: skip
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
        """Processes that the scheduler knows now."""
        return len(self._client.nthreads())

    def each(self, work: Callable[[Task], Answer], tasks: Mapping[str, Task]) -> Iterator[Done[Answer]]:
        """Answers as they come; see ``Executor``. The scheduler does again what a worker died at.

        Raises
        ------
        BfreplayError
            The scheduler is gone, or a defect.
        """
        # the folder is part of the name: another sweep may have the same content and another folder
        place = uuid.uuid5(uuid.NAMESPACE_URL, str(self._folder)).hex[:12]
        key_of = {f"bfreplay-{key}-{place}": key for key in tasks}
        self._futures = [self._client.submit(work, tasks[key], key=name) for name, key in key_of.items()]
        for future in self._distributed.as_completed(self._futures, loop=self._client.loop):
            key = key_of[future.key]
            if future.status == "cancelled":
                raise BfreplayError(
                    f"the Dask scheduler at {self._address} is gone, or has dropped the runs\n"
                    "  fix:      start it again, then give the same command: what is finished stays"
                )
            try:
                # waits for an answer that was lost with its worker after the scheduler had told of it: it is made again
                done = Done(key, future.result())
            except self._distributed.KilledWorker as error:
                done = Done(key, died=f"on {error.last_worker.address}" if error.last_worker is not None else "on Dask")
            yield done

    def close(self) -> None:
        """Take back what has not begun; a worker that is at a run ends it first, and its result stays."""
        if self._futures:
            self._client.cancel(self._futures)
            self._futures = []
        self._client.close()

    def _check_workers(self) -> None:
        probe = self._folder / f".probe-{uuid.uuid4().hex}"
        probe.touch()
        try:
            seen = self._client.run(_look, (str(probe), *self._files), on_error="return")
        finally:
            probe.unlink()
        for worker, found in sorted(seen.items()):
            if isinstance(found, BaseException):
                raise InputError(
                    f"the Dask worker {worker} cannot run bfreplay: {one_line(found)}",
                    fix=f"install bfreplay {__version__} in its environment",
                )
            version, missing = found
            if version != __version__:
                raise InputError(
                    f"the Dask worker {worker} has another version of bfreplay", value=version, expected=__version__,
                    fix="install the same version everywhere: the ids of runs depend on it",
                )  # fmt: skip
            if missing:
                what = "the folder of the sweep" if missing[0] == str(probe) else "an input"
                raise InputError(
                    f"the Dask worker {worker} does not see {what}",
                    file=self._folder if missing[0] == str(probe) else missing[0],
                    expected="files on a file system that all workers share, under the same path",
                    fix="move it there; or sweep without --scheduler, on this machine",
                )


def _look(files: Sequence[str]) -> tuple[str, list[str]]:
    """On a worker: its version of bfreplay, and which of the files it does not see."""
    from bfreplay import __version__

    return __version__, [file for file in files if not Path(file).exists()]


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise InputError(
            f"--scheduler needs Dask, which cannot be imported: {one_line(error)}", expected="dask and distributed",
            fix="pip install 'bfreplay[cluster]'",
        ) from error  # fmt: skip
