"""Sweeps as a user types them, whose processes are killed in the middle: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.experiments.sweep.small_sweeps import (
    ALL_ONCE,
    begun,
    is_alive,
    n_begun,
    start_sweep,
    sweep_here,
    sweep_to_the_end,
    table_of,
    wait_until,
    write_files,
)


@pytest.fixture
def files(tmp_path) -> Path:
    return write_files(tmp_path)


@pytest.mark.slow
def test_one_process_two_processes_and_a_second_time_give_the_same_bytes(files, unbroken):
    assert "4 runs, none failed." in sweep_to_the_end(files, "out", "--processes", "2").stdout
    assert table_of(files, "out") == unbroken
    assert "4 runs, 4 reused" in sweep_here(files, "out").stdout
    assert n_begun(files) == ALL_ONCE
    assert table_of(files, "out") == unbroken


def test_a_sweep_that_is_killed_is_gone_on_with_and_its_folder_is_not_locked(files, unbroken):
    (files / "hold-30").touch()
    first = start_sweep(files, "out", "--processes", "2")
    wait_until(lambda: n_begun(files) == ALL_ONCE, "three runs are done and one is at work")
    wait_until(lambda: len([*(files / "out" / "runs").glob("[!.]*")]) == 3, "three runs are in place")
    workers = {pid for _, pid in begun(files)}
    first.kill()
    first.wait()
    wait_until(lambda: not any(map(is_alive, workers)), "its workers are gone")
    assert not (files / "out" / "results.parquet").exists()
    assert len([*(files / "out" / "runs").glob(".*.partial-*")]) == 1
    (files / "hold-30").unlink()
    second = sweep_here(files, "out", "--processes", "1")
    assert second.exit_code == 0, second.stderr
    assert "4 runs, 3 reused" in second.stdout
    assert n_begun(files) == {**ALL_ONCE, "30": 2}  # the one that was cut off, and no other
    assert [*(files / "out" / "runs").glob(".*")] == []
    assert table_of(files, "out") == unbroken


@pytest.mark.thorough
def test_a_worker_that_is_killed_changes_nothing(files, unbroken):
    (files / "hold-20").touch()
    process = start_sweep(files, "out", "--processes", "2")
    wait_until(lambda: "20" in n_begun(files), "the run is begun")
    os.kill(dict(begun(files))["20"], signal.SIGKILL)
    (files / "hold-20").unlink()
    said, complained = process.communicate(timeout=6000)
    assert process.returncode == 0, complained
    assert "4 runs, none failed." in said
    assert n_begun(files) == {**ALL_ONCE, "20": 2}
    assert [*(files / "out" / "runs").glob(".*")] == []
    assert table_of(files, "out") == unbroken


@pytest.mark.thorough
def test_a_run_that_kills_every_worker_is_a_row_that_says_so(files):
    (files / "die-20").touch()
    done = sweep_to_the_end(files, "out", "--processes", "2")
    assert done.returncode == 1, done.stderr
    rows = pq.read_table(files / "out" / "results.parquet").to_pylist()
    assert [row["status"] for row in rows] == ["finished", "failed", "finished", "finished"]
    assert rows[1]["error"] == "every worker that tried it died"
    assert "ended by SIGKILL" in (files / "out" / "failures" / f"{rows[1]['id']}.json").read_text()
    assert n_begun(files) == {**ALL_ONCE, "20": 3}
    assert "Error of 1 row: every worker" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_a_sweep_that_is_stopped_says_how_to_go_on_and_leaves_no_worker(files, number):
    (files / "hold-40").touch()
    process = start_sweep(files, "out", "--processes", "1")
    wait_until(lambda: n_begun(files) == ALL_ONCE, "the last run is at work")
    process.send_signal(number)
    _, complained = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert "3 of 4 runs are finished and kept. Repeat the command to resume." in complained
    assert "Traceback" not in complained
    assert not any(is_alive(pid) for _, pid in begun(files))
    assert [*(files / "out" / "runs").glob(".*")] == []


@pytest.mark.thorough
def test_a_second_sweep_in_the_same_folder_is_refused_while_the_first_is_at_work(files):
    (files / "hold-10").touch()
    first = start_sweep(files, "out", "--processes", "1")
    wait_until(lambda: begun(files), "the first sweep is at work")
    second = sweep_to_the_end(files, "out")
    assert second.returncode == 2
    assert "another sweep is at work in this folder" in second.stderr
    (files / "hold-10").unlink()
    assert first.wait(120) == 0
    first.communicate()
    assert n_begun(files) == ALL_ONCE
