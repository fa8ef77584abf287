"""One run in a worker: nothing is kept under an id that stands for something else."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from bfreplay.experiments.sweep.plan import plan_runs
from bfreplay.experiments.sweep.spec import spec_of_options
from bfreplay.experiments.sweep.store import Store
from bfreplay.experiments.sweep.worker import OtherCodeError, RunTask, work_on
from tests.experiments.sweep.small_sweeps import options, write_files


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "noting", raising=False)  # the one of another test
    return write_files(tmp_path)


def _tasks(files, *t_fwd: float) -> list[RunTask]:
    runs = [options(files, policy="noting:Noting", efficiency=False, t_fwd=each) for each in t_fwd]
    plan = plan_runs(spec_of_options(runs))
    store = Store.create(files / "out")
    return [plan.task(run_id, store.folder) for run_id in plan.ids]


def test_a_log_that_is_replaced_between_two_runs_is_not_replayed_under_the_old_id(files):
    first, second = _tasks(files, 10, 20)
    assert work_on(first).failure is None
    (files / "other.csv").write_text((files / "events.csv").read_text().replace("00:20:00", "00:25:00"))
    (files / "other.csv").replace(files / "events.csv")
    failure = work_on(second).failure
    assert failure is not None
    assert failure.problem == "the file of the events has changed since the sweep began"


@pytest.mark.parametrize("file", ["events", "jobs"])
def test_a_file_that_is_replaced_during_a_run_leaves_no_result(files, file):
    replacing = f"""
import os, shutil
from pathlib import Path

here = Path(__file__).parent
decide = Noting.decide

def replacing(self, state):
    shutil.copy(here / "{file}.csv", here / "copy")
    os.replace(here / "copy", here / "{file}.csv")
    return decide(self, state)

Noting.decide = replacing
"""
    (files / "noting.py").write_text((files / "noting.py").read_text() + replacing)
    (task,) = _tasks(files, 10)
    failure = work_on(task).failure
    assert failure is not None
    assert failure.problem == f"the file of the {file} has changed since the sweep began"
    assert list((files / "out" / "runs").iterdir()) == []


def test_a_file_that_was_only_touched_is_read_again_and_found_the_same(files):
    first, second = _tasks(files, 10, 20)
    assert work_on(first).failure is None
    os.utime(files / "events.csv", (1, 1))
    assert work_on(second).failure is None


def test_a_worker_with_another_version_takes_no_run(files):
    (task,) = _tasks(files, 10)
    with pytest.raises(OtherCodeError, match="update bfreplay on the workers"):
        work_on(replace(task, content={**task.content, "bfreplay": "0.0.1"}))


def test_a_worker_that_finds_another_file_of_a_module_takes_no_run(files):
    (task,) = _tasks(files, 10)
    assert list(task.content["code"]) == ["noting:Noting"]
    (files / "noting.py").write_text((files / "noting.py").read_text() + "\n# mended\n")
    with pytest.raises(OtherCodeError, match="another file of the module 'noting'"):
        work_on(task)
    assert list((files / "out" / "runs").iterdir()) == []


def test_a_worker_that_has_an_old_module_loaded_takes_no_run(files):
    (first,) = _tasks(files, 10)
    assert work_on(first).failure is None
    (files / "noting.py").write_text((files / "noting.py").read_text() + "\n# mended\n")
    (second,) = _tasks(files, 20)  # the sweep is another process, which would have the new one
    with pytest.raises(OtherCodeError, match="restart the workers: they have the old noting loaded"):
        work_on(second)
    del sys.modules["noting"]
    assert work_on(second).failure is None
