"""A whole sweep, worked on by one executor or the other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.sweep import SweepResult, run_sweep, sweep
from bfreplay.experiments.sweep.local_processes import Done
from bfreplay.experiments.sweep.store import Failure, Store
from bfreplay.runs import RunResult
from tests.experiments.sweep.small_sweeps import Inline, n_begun, options, write_files


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "noting", raising=False)  # the one of another test
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    return write_files(tmp_path)


def _noting(files: Path, *t_fwd: float, **changed: object) -> list:
    common = {"policy": "noting:Noting", "efficiency": False, **changed}
    return [options(files, t_fwd=each, **common) for each in t_fwd]


def test_the_table_has_a_row_for_each_point_in_the_order_of_the_spec(files):
    result = sweep(files / "sweep.toml", files / "out", allow_code=True)
    table = result.results
    assert table.column("t_fwd").to_pylist() == [10, 20, 30, 40]
    assert table.column_names[:4] == ["t_fwd", "id", "status", "error"]
    assert table.column("status").to_pylist() == ["finished"] * 4
    assert result.ids == table.column("id").to_pylist()
    for run_id, run in result.runs.items():
        row = table.to_pylist()[result.ids.index(run_id)]
        ledger = run.summary["ledger"]
        assert row["samples"] == ledger["samples"]
        assert row["useful_node_hours"] == ledger["node_hours"]["useful"]
        assert row["n_decisions"] == run.summary["n_decisions"]
        assert row["jobs_finished"] == run.summary["jobs"]["finished"]
        assert isinstance(run, RunResult)
        assert len(run.table("decisions")) == row["n_decisions"]
    assert list(result.table.columns) == table.column_names  # as a data frame
    assert set(result.timings["id"]) == set(result.ids)


def test_a_run_is_made_once_however_many_rows_stand_for_it(files):
    runs = [*_noting(files, 10, 20, 10), *_noting(files, 20, solver="exact", time_limit=3)]
    result = sweep(runs, files / "out")
    assert n_begun(files) == {"10": 1, "20": 1}
    ids = result.results.column("id").to_pylist()
    assert len(ids) == 4
    assert ids[0] == ids[2]
    assert ids[1] == ids[3]


def test_a_spec_that_grows_makes_only_what_is_new_and_gives_the_same_as_a_new_sweep(files):
    sweep(_noting(files, 10, 20), files / "grown")
    result = sweep(_noting(files, 40, 10, 20, 30), files / "grown")
    assert n_begun(files) == {"10": 1, "20": 1, "30": 1, "40": 1}
    assert result.n_reused == 2
    sweep(_noting(files, 40, 10, 20, 30), files / "fresh")
    for name in ("results.parquet", "sweep.json"):
        assert (files / "grown" / name).read_bytes() == (files / "fresh" / name).read_bytes()


def test_a_run_that_fails_is_a_row_and_is_tried_again_only_when_asked(files):
    (files / "fail-20").touch()
    result = sweep(_noting(files, 10, 20, 30), files / "out")
    rows = result.results.to_pylist()
    assert [row["status"] for row in rows] == ["finished", "failed", "finished"]
    assert rows[1]["error"].endswith("ValueError: no luck with 20 (noting.py, line 30)")
    assert rows[1]["samples"] is None
    assert result.n_failed == 1
    assert list(result.runs) == [rows[0]["id"], rows[2]["id"]]
    note = json.loads((files / "out" / "failures" / f"{rows[1]['id']}.json").read_text())
    assert "Traceback" in note["message"]
    assert note["options"]["t-fwd"] == 20
    assert not (files / "out" / "runs" / rows[1]["id"]).exists()
    (files / "fail-20").unlink()
    sweep(_noting(files, 10, 20, 30), files / "out")
    assert n_begun(files) == {"10": 1, "20": 1, "30": 1}
    again = sweep(_noting(files, 10, 20, 30), files / "out", retry_failed=True)
    assert n_begun(files) == {"10": 1, "20": 2, "30": 1}
    assert again.n_failed == 0
    assert list((files / "out" / "failures").iterdir()) == []


def test_a_log_that_turns_out_to_be_broken_is_a_row(files):
    (files / "broken.csv").write_text((files / "events.csv").read_text() + "2024-05-01T01:10:00,n1,true\n")
    runs = [options(files, efficiency=False), options(files, events=files / "broken.csv", efficiency=False)]
    rows = sweep(runs, files / "out").results.to_pylist()
    assert [row["status"] for row in rows] == ["finished", "failed"]
    assert str(files) not in rows[1]["error"]


def test_a_file_that_changes_while_the_sweep_runs_makes_no_result_under_a_wrong_id(files):
    plan = run_sweep.plan_of([options(files, t_fwd=t_fwd, efficiency=False) for t_fwd in (10, 20)])
    (files / "jobs.csv").write_text((files / "jobs.csv").read_text().replace("50000", "60000"))
    rows = sweep(plan, files / "out").results.to_pylist()
    assert {row["error"] for row in rows} == {"the file of the jobs has changed since the sweep began"}


def test_a_worker_that_dies_after_it_has_written_the_run_has_finished_it(files, monkeypatch):
    class Dying(Inline):
        def run_tasks(self, work, tasks):
            for key, task in tasks.items():
                work(task)
                yield Done(key, died="ended by SIGKILL")

    monkeypatch.setattr(run_sweep, "ProcessExecutor", Dying)
    seen: list[run_sweep.SweepProgress] = []
    result = sweep(_noting(files, 10), files / "out", progress=seen.append)
    assert (seen[-1].n_finished, seen[-1].n_failed, result.n_failed) == (1, 0, 0)
    assert list((files / "out" / "failures").iterdir()) == []


def test_a_run_at_which_every_worker_died_is_a_row_that_says_so(files, monkeypatch):
    class Deadly(Inline):
        def run_tasks(self, work, tasks):
            first, *others = tasks
            yield Done(first, died="ended by SIGKILL")
            yield from super().run_tasks(work, {key: tasks[key] for key in others})

    monkeypatch.setattr(run_sweep, "ProcessExecutor", Deadly)
    rows = sweep(_noting(files, 10, 20), files / "out").results.to_pylist()
    assert [row["status"] for row in rows] == ["failed", "finished"]
    assert rows[0]["error"] == "every worker that tried it died"
    assert "ended by SIGKILL" in (files / "out" / "failures" / f"{rows[0]['id']}.json").read_text()


def test_a_run_that_is_there_has_no_note_of_a_failure(files):
    (run_id,) = sweep(_noting(files, 10), files / "out").ids
    Store(files / "out").note_failure(run_id, Failure("WorkerDied", "died", "died"), {})
    assert sweep(_noting(files, 10), files / "out").n_failed == 0
    assert list((files / "out" / "failures").iterdir()) == []


def test_nothing_is_written_where_something_is_wrong_with_the_spec(files):
    with pytest.raises(InputError, match="unknown policy"):
        sweep([options(files), options(files, policy="nobody")], files / "out")
    assert not (files / "out").exists()


def test_processes_beside_a_scheduler_are_refused(files):
    with pytest.raises(InputError, match="one of the two"):
        sweep([options(files)], files / "out", processes=2, scheduler="tcp://localhost:1")


def test_a_sweep_can_be_loaded_again(files):
    made = sweep(_noting(files, 10, 20), files / "out")
    loaded = SweepResult.load(files / "out")
    assert loaded.results == made.results
    assert loaded.record == made.record
    (files / "out" / "results.parquet").unlink()
    with pytest.raises(InputError, match="the sweep is unfinished"):
        SweepResult.load(files / "out")
    with pytest.raises(InputError, match="not a sweep folder"):
        SweepResult.load(files)


def test_progress_is_told_in_runs(files):
    (files / "fail-20").touch()
    sweep(_noting(files, 10), files / "out")
    told = []
    sweep(_noting(files, 10, 20, 30), files / "out", progress=told.append)
    assert [(each.n_reused, each.n_finished, each.n_failed) for each in told] == [(1, 0, 0), (1, 1, 0), (1, 1, 1)]
    assert {each.n_runs for each in told} == {3}
    assert told[0].left_s is None
    assert told[1].left_s > 0
    assert told[-1].left_s == 0


def test_the_table_holds_no_path_and_no_time(files):
    sweep(_noting(files, 10, 20), files / "one")
    table = pq.read_table(files / "one" / "results.parquet")
    assert str(files) not in str(table.to_pydict())
    measured = set(pq.read_table(files / "one" / "timings.parquet").column_names) - {"id"}
    assert not measured & set(table.column_names)


def test_runs_of_a_sweep_have_what_they_need_to_be_explained(files):
    result = sweep(_noting(files, 10), files / "out")
    (run,) = result.runs.values()
    assert run.session["files"]["events"] == str(files / "events.csv")
    assert ":" in run.session["worker"]
