"""A real Dask scheduler and two real workers, one of which is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.sweep import sweep
from bfreplay.experiments.sweep.dask_cluster import DaskExecutor
from bfreplay.experiments.sweep.store import Store
from tests.experiments.sweep.small_sweeps import (
    ALL_ONCE,
    ROOT,
    begun,
    is_alive,
    n_begun,
    options,
    start_sweep,
    table_of,
    wait_until,
    write_files,
)


class Cluster:
    """A scheduler and workers as a user starts them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")
        self.address = self._said("scheduler", r"Scheduler at:\s+(tcp://\S+)")

    def add_worker(self, name: str, nanny: str = "--no-nanny") -> None:
        """Start one; a nanny would start it anew when it is killed."""
        self._start(
            "worker",
            self.address,
            "--nthreads",
            "1",
            nanny,
            "--no-dashboard",
            "--name",
            name,
            "--local-directory",
            str(self.folder / name),
            log=name,
        )
        self._said(name, r"Registered to:\s+(tcp://\S+)")

    def n_clients(self) -> int:
        """How many sweeps have come to the scheduler."""
        return (self.folder / "scheduler.log").read_text().count("Receive client connection")

    def close(self) -> None:
        """Kill all of it."""
        for process in reversed(self._started):
            process.kill()
            process.wait(60)

    def _start(self, command: str, *words: str, log: str | None = None) -> subprocess.Popen:
        with (self.folder / f"{log or command}.log").open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", command, *words],
                stdout=out,
                stderr=out,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        self._started.append(process)
        return process

    def _said(self, log: str, pattern: str) -> str:
        file = self.folder / f"{log}.log"
        wait_until(lambda: re.search(pattern, file.read_text()), f"{log} says {pattern}")
        found = re.search(pattern, file.read_text())
        assert found is not None
        return found.group(1)


@pytest.fixture
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def files(tmp_path) -> Path:
    return write_files(tmp_path)


@pytest.mark.slow
def test_two_workers_one_killed_and_then_the_sweep_itself_give_the_same_table(files, cluster, unbroken):
    cluster.add_worker("one")
    cluster.add_worker("two")
    (files / "hold-20").touch()
    (files / "hold-30").touch()
    first = start_sweep(files, "out", "--scheduler", cluster.address)
    wait_until(lambda: {"20", "30"} <= set(n_begun(files)), "both workers are held up")
    os.kill(dict(begun(files))["20"], signal.SIGKILL)
    (files / "hold-30").unlink()
    wait_until(lambda: n_begun(files)["20"] == 2, "the other worker begins the run of the dead one again")
    first.kill()
    first.communicate()
    # a worker of the cluster outlives the sweep, and ends what it is at while the next sweep waits for it
    second = start_sweep(files, "out", "--scheduler", cluster.address)
    wait_until(lambda: cluster.n_clients() == 2, "the second sweep has begun")
    (files / "hold-20").unlink()
    said, complained = second.communicate(timeout=600)
    assert second.returncode == 0, complained
    assert "4 runs, " in said
    assert "none failed" in said
    assert n_begun(files) == {**ALL_ONCE, "20": 2}  # the run that was at work was waited for, not done twice
    assert [*(files / "out" / "runs").glob(".*")] == []
    assert table_of(files, "out") == unbroken


def test_an_answer_that_was_lost_with_its_worker_is_waited_for():
    class Lost:
        """Told of as finished; its worker died before anybody asked, so it is made again."""

        status = "pending"

        def __init__(self, key):
            self.key = key

        def result(self):
            return "made again"

        def exception(self):
            return None

    (done,) = _executor_of(Lost).run_tasks(str, {"20": "task"})
    assert (done.key, done.answer, done.died) == ("20", "made again", "")


@pytest.mark.parametrize(
    ("worker", "told"), [(SimpleNamespace(address="tcp://a:1"), "on tcp://a:1"), (None, "on Dask")]
)
def test_a_run_that_the_scheduler_gives_up_is_told_with_its_last_worker(worker, told):
    class GivenUp:
        status = "error"

        def __init__(self, key):
            self.key = key

        def result(self):
            error = KilledWorker()
            error.last_worker = worker
            raise error

    (done,) = _executor_of(GivenUp).run_tasks(str, {"20": "task"})
    assert (done.key, done.died) == ("20", told)


class KilledWorker(Exception):
    """What Dask raises for a task at which too many workers died."""


def _executor_of(future) -> DaskExecutor:
    """One whose scheduler is not there and gives each run such a future."""
    executor = object.__new__(DaskExecutor)
    executor._folder, executor._address = Path("sweep"), "tcp://nobody"
    executor._client = SimpleNamespace(submit=lambda work, task, key: future(key), loop=None)
    executor._distributed = SimpleNamespace(KilledWorker=KilledWorker, as_completed=lambda futures, loop: futures)
    return executor


@pytest.mark.thorough
def test_a_run_that_kills_every_worker_is_a_row_that_says_so(files, cluster):
    cluster.add_worker("one", "--nanny")
    (files / "die-20").touch()
    process = start_sweep(files, "out", "--scheduler", cluster.address)
    _, complained = process.communicate(timeout=600)
    assert process.returncode == 1, complained
    rows = pq.read_table(files / "out" / "results.parquet").to_pylist()
    assert [row["status"] for row in rows] == ["finished", "failed", "finished", "finished"]
    assert rows[1]["error"] == "every worker that tried it died"
    assert {key: n_begun(files)[key] for key in ("10", "30", "40")} == {"10": 1, "30": 1, "40": 1}
    assert n_begun(files)["20"] >= 3
    nannys = {pid for _, pid in begun(files)}
    cluster.close()
    wait_until(lambda: not any(map(is_alive, nannys)), "the workers of the nanny are gone with it")


@pytest.mark.thorough
def test_a_scheduler_that_goes_away_is_said_and_what_is_finished_stays(files, cluster):
    cluster.add_worker("one")
    (files / "hold-30").touch()
    process = start_sweep(files, "out", "--scheduler", cluster.address)
    wait_until(lambda: n_begun(files).get("30"), "a run is held up")
    cluster.scheduler.kill()
    _, complained = process.communicate(timeout=600)
    assert process.returncode == 3
    assert "the Dask scheduler" in complained
    assert "Traceback" not in complained
    assert len([*(files / "out" / "runs").glob("[!.]*")]) == len(begun(files)) - 1


@pytest.mark.slow
def test_a_worker_that_does_not_see_the_folder_or_an_input_is_named(files, cluster):
    cluster.add_worker("one")
    store = Store.create(files / "out")
    with pytest.raises(InputError, match="does not see an input") as caught:
        DaskExecutor(cluster.address, store.folder, [str(files / "events.csv"), "/nowhere/log.csv"])
    assert "/nowhere/log.csv" in str(caught.value)
    with pytest.raises(BfreplayError, match="does not see the folder of the sweep"):
        _ask_without_the_folder(cluster.address, store, files)


def _ask_without_the_folder(address: str, store: Store, files: Path) -> None:
    """What happens on a worker that came later, elsewhere: the folder that it is told of is not there."""
    from bfreplay.experiments.sweep.plan import plan_runs
    from bfreplay.experiments.sweep.spec import spec_of_options
    from bfreplay.experiments.sweep.worker import work_on

    plan = plan_runs(spec_of_options([options(files)]))
    executor = DaskExecutor(address, store.folder)
    try:
        list(executor.run_tasks(work_on, {plan.ids[0]: plan.task(plan.ids[0], Path("/nowhere/out"))}))
    finally:
        executor.close()


def test_nobody_at_the_address_is_an_error_with_what_to_do(files, monkeypatch):
    monkeypatch.setattr("bfreplay.experiments.sweep.dask_cluster._CONNECT_S", 0.2)
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        with pytest.raises(InputError, match="no Dask scheduler answers") as caught:
            sweep([options(files)], files / "out", scheduler=address)
        assert "dask scheduler" in str(caught.value)


def test_without_dask_the_error_says_what_to_install(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"bfreplay\[cluster\]"):
        sweep([options(files)], files / "out", scheduler="tcp://127.0.0.1:9")
