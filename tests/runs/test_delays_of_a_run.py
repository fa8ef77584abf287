"""Delays of batch jobs in a run: figures, table and refusals, from an ingested log with its batch jobs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bfreplay import load_events, replay_log
from bfreplay.cli import main
from bfreplay.datasets.batch_jobs import load_batch_jobs
from bfreplay.errors import InputError
from bfreplay.runs import RunResult
from bfreplay.runs.batch_delays import propagated_delays
from tests.replay.tiny import SECOND, job
from tests.runs.test_resume import same, stopped_after

# n1 and n2 idle from 00:10 on, to 00:30 and 00:20; b waits 30 s for n1, and c, which starts 5 s after b ends, for b
JOBS = """JobIDRaw|State|Start|End|NNodes|NodeList
0|COMPLETED|2024-05-01T00:00:00|2024-05-01T00:10:00|2|n[1-2]
1|COMPLETED|2024-05-01T00:20:00|2024-05-01T01:00:00|1|n2
2|COMPLETED|2024-05-01T00:30:00|2024-05-01T00:40:00|1|n1
3|COMPLETED|2024-05-01T00:40:05|2024-05-01T01:00:00|1|n1
"""


@pytest.fixture
def files(tmp_path, monkeypatch):

    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.psv").write_text(JOBS)
    done = CliRunner().invoke(
        main,
        [
            "ingest",
            "slurm",
            "jobs.psv",
            "--tz",
            "UTC",
            "--full-window",
            "-o",
            "events.parquet",
            "--batch-jobs",
            "batch.parquet",
        ],
    )
    assert done.exit_code == 0, done.output
    return tmp_path


_OPTIONS = {"efficiency": False, "bound": False, "batch_jobs": "batch.parquet"}


def _run(**options):
    return replay_log("events.parquet", [job()], "equal-share", **_OPTIONS, **options)


def test_a_late_job_makes_the_next_one_late(files):
    run = _run(out="run", clear="30s")
    found = run.summary.batch_delays
    assert (found.n_jobs, found.n_jobs_met, found.n_jobs_delayed) == (4, 2, 3)
    assert found.total_us == found.node_us == (30 + 30 + 25) * SECOND
    assert found.direct_us == found.direct_node_us == 60 * SECOND
    assert (found.worst_us, found.quantiles_s["50"], found.n_nodes_unmatched) == (30 * SECOND, 30.0, 0)
    assert [(row["job"], row["n_held"], row["delay_s"]) for row in run.table("batch_delays").to_pylist()] == [
        ("1", 1, 30.0),
        ("2", 1, 30.0),
        ("3", 0, 25.0),
    ]
    saved = RunResult.load("run")
    assert saved.summary == run.summary
    saved.check()
    assert saved.record.inputs.batch_jobs.name == "batch.parquet"
    assert run.summary.batch_starts.n_starts_met == 2
    assert run.summary.batch_starts.delay_node_us == 60 * SECOND


def test_nothing_is_late_if_nodes_are_clear_at_once(files):
    found = _run(clear=0).summary.batch_delays
    assert (found.n_jobs_met, found.n_jobs_delayed, found.node_us) == (2, 0, 0)
    assert found.worst_job is None


def test_jobs_after_the_end_of_a_run_do_not_count(files):
    whole = load_events("events.parquet")
    part = whole.between(whole.window_start_us, whole.window_start_us + 1500 * SECOND)
    run = replay_log(part, [job()], "equal-share", batch_jobs="batch.parquet", efficiency=False, bound=False)
    assert (run.summary.batch_delays.n_jobs, run.summary.batch_delays.n_jobs_met) == (2, 1)


def test_jobs_that_started_before_the_window_are_not_counted(files):
    whole = load_events("events.parquet")
    part = whole.between(whole.window_start_us + SECOND, whole.window_end_us)
    run = replay_log(part, [job()], "equal-share", batch_jobs="batch.parquet", efficiency=False, bound=False)
    starts = pq.read_table("batch.parquet")["start"].cast("int64").to_pylist()
    inside = sum(start >= part.window_start_us for start in starts)
    assert run.summary.batch_delays.n_jobs == inside < len(starts)


def test_a_folder_is_no_file_of_batch_jobs(files):
    with pytest.raises(InputError, match="folder"):
        replay_log("events.parquet", [job()], "equal-share", batch_jobs=files)


@pytest.mark.parametrize("name", ["a\x1b[31m\x07", "a\nWarning: b", "\x9b31m", "\u202e"])
def test_control_characters_of_a_batch_job_do_not_reach_the_terminal(name, files):
    table = pq.read_table("batch.parquet")
    names = pa.array([name] * table.num_rows, pa.string())
    pq.write_table(table.set_column(0, "job", names), "batch.parquet", use_dictionary=False)
    worst = _run().summary.batch_delays.worst_job
    assert worst == name.encode("unicode_escape").decode()
    done = CliRunner().invoke(
        main, ["replay", "events.parquet", "--jobs", "sample", "--batch-jobs", "batch.parquet", "--quiet"]
    )
    assert done.exit_code == 0, done.output
    assert worst in done.output
    assert not {each for each in done.output if not each.isprintable()} - {"\n"}


def test_the_run_hands_on_what_the_replay_met(files):
    """The sample of the table ``nodes`` has the same holds at the same starts."""
    run = _run(record_nodes=True, clear=30)
    events = load_events("events.parquet")
    number = {name: k for k, name in enumerate(events.nodes)}
    holds = sorted((row["to"], number[row["node"]]) for row in run.table("nodes").to_pylist())
    times = [round(to.timestamp() * SECOND) for to, _ in holds if to.minute in (20, 30)]
    nodes = [node for to, node in holds if to.minute in (20, 30)]
    delays = propagated_delays(load_batch_jobs("batch.parquet", events), times, nodes, 30 * SECOND)
    assert delays.node_us == run.summary.batch_delays.node_us


def test_batch_jobs_of_another_log_are_refused(files):
    (files / "jobs.psv").write_text(JOBS.replace("01:00:00", "01:10:00"))

    CliRunner().invoke(main, ["ingest", "slurm", "jobs.psv", "--tz", "UTC", "-o", "other.parquet"])
    with pytest.raises(InputError, match="the batch jobs are not of this log"):
        replay_log("other.parquet", [job()], batch_jobs="batch.parquet")
    with pytest.raises(InputError, match="batch_jobs cannot be combined with --cluster"):
        replay_log(jobs=[job()], cluster="a=2", batch_jobs="batch.parquet")


def test_a_resumed_run_has_the_same_delays(files):
    _run(out="whole")
    stopped_after(4, {**_OPTIONS, "events": "events.parquet", "jobs": [job()], "policy": "equal-share"}, "run")
    _run(out="run", resume=True)
    same(Path("run"), Path("whole"))


@pytest.mark.slow
def test_a_sweep_has_them_too(files):
    (files / "jobs.csv").write_text(
        "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\na,1,2,0,0,1e9,0:0 1:10 2:20\n"
    )
    (files / "sweep.toml").write_text(
        '[run]\nevents = "events.parquet"\njobs = "jobs.csv"\nbatch-jobs = "batch.parquet"\nefficiency = false\n'
        'bound = false\n[vary]\nclear = ["0s", "30s"]\n'
    )
    done = CliRunner().invoke(main, ["sweep", "sweep.toml", "--out", "swept", "--processes", "1"])
    assert done.exit_code == 0, done.output
    assert "propagated delay" in done.output
