"""A folder with a little log and little jobs, and sweeps without processes."""

import pytest

from bfreplay.experiments.sweep import run_sweep
from tests.experiments.sweep.small_sweeps import Inline
from tests.experiments.tuning.little_logs import write_jobs, write_log


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    write_log(tmp_path / "events.csv")
    write_jobs(tmp_path / "jobs.csv")
    return tmp_path
