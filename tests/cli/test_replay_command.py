"""``bfreplay replay`` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from bfreplay.runs import RunResult

EVENTS = """time,node,idle
2024-05-01T00:00:00,n1,true
2024-05-01T00:00:00,n2,true
2024-05-01T00:10:00,n2,false
2024-05-01T00:20:00,n3,true
2024-05-01T01:00:00,n3,false
"""
JOBS = """name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve
small,1,2,10,5,50000,0:0 1:10 2:18
large,1,4,10,5,1e9,0:0 1:20 2:38 4:60
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def _replay(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(
        main, ["replay", str(folder / "events.csv"), "--jobs", str(folder / "jobs.csv"), *options]
    )


def test_a_person_gets_a_summary_and_a_run_folder(files):
    result = _replay(files, "--out", str(files / "run"))
    assert result.exit_code == 0, result.output
    for word in ("Idle", "useful", "rescaling", "preempted", "unallocated", "Samples", "U ", "Jobs", "proven"):
        assert word in result.stdout
    names = {path.name for path in (files / "run").iterdir()}
    assert names == {
        "run.json",
        "session.json",
        "decisions.parquet",
        "jobs.parquet",
        "allocations.parquet",
        "timings.parquet",
        "pool.parquet",
        "idle_intervals.parquet",
    }
    assert not [path for path in files.iterdir() if path.name.startswith(".")]


def test_without_jobs_the_message_says_which_are_wanted_and_what_is_bundled(files):
    for command in ("replay", "tune"):
        result = CliRunner().invoke(main, [command, str(files / "events.csv"), "--quiet"])
        assert result.exit_code == 2
        assert "the option 'jobs' is missing: the training jobs to replay" in result.stderr
        assert "(--jobs FILE)" in result.stderr
        assert "'sample' stands for the bundled jobs" in result.stderr


def test_json_is_the_record_of_the_run(files):
    result = _replay(files, "--json", "--out", str(files / "run"))
    printed = json.loads(result.stdout)
    saved = json.loads((files / "run" / "run.json").read_text())
    assert {key: printed[key] for key in saved} == saved
    assert saved["config"]["policy"] == {
        "name": "bftrainer",
        "objective": {"spec": "own", "terms": [{"name": "own", "parameters": {}, "weight": 1.0}]},
        "solver": {"name": "exact"},
        "t_fwd_s": 120.0,
    }
    assert [source["name"] for source in saved["inputs"]["events"]["files"]] == ["events.csv"]
    assert all(len(source["sha256"]) == 64 for source in saved["inputs"]["jobs"]["files"])


def test_a_saved_run_can_be_loaded_again(files):
    _replay(files, "--out", str(files / "run"), "--record-nodes")
    run = RunResult.load(files / "run")
    assert len(run.decisions) == run.summary["n_decisions"]
    assert run.table("nodes").num_rows > 0
    assert run.jobs["job"].tolist() == ["small", "large"]


def test_without_out_nothing_is_written(files):
    before = sorted(files.iterdir())
    assert _replay(files).exit_code == 0
    assert sorted(files.iterdir()) == before


def test_an_output_folder_that_exists_is_refused_before_the_replay_and_left_alone(files):
    (files / "run").mkdir()
    (files / "run" / "precious.txt").write_text("mine")
    for options in ((), ("--force",)):
        result = _replay(files, "--out", str(files / "run"), *options)
        assert result.exit_code == 2
        assert "the output folder exists" in result.stderr
        assert str(files / "run") in result.stderr
    assert (files / "run" / "precious.txt").read_text() == "mine"


def test_force_replaces_an_earlier_run(files):
    assert _replay(files, "--out", str(files / "run")).exit_code == 0
    assert _replay(files, "--out", str(files / "run")).exit_code == 2
    assert _replay(files, "--out", str(files / "run"), "--force", "--t-fwd", "300").exit_code == 0
    assert RunResult.load(files / "run").record["config"]["policy"]["t_fwd_s"] == 300
    assert not [path for path in files.iterdir() if path.name.startswith(".")]


def test_a_log_that_turns_out_to_be_broken_leaves_nothing_behind(files):
    (files / "events.csv").write_text(EVENTS + "2024-05-01T00:30:00,n1,false\n")
    result = _replay(files, "--out", str(files / "run"))
    assert result.exit_code == 2
    assert "events.csv" in result.stderr
    assert sorted(path.name for path in files.iterdir()) == ["events.csv", "jobs.csv"]


def test_a_window_is_replayed_alone(files):
    result = _replay(files, "--window", "2024-05-01T00:05", "2024-05-01T00:15", "--json")
    record = json.loads(result.stdout)
    assert record["summary"]["duration_s"] == 600
    assert record["summary"]["ledger"]["node_hours"]["idle"] * 60 == pytest.approx(15)  # 2 nodes x 5 min, 1 x 5 min


@pytest.mark.parametrize(
    ("window", "says"),
    [
        (("2024-06-01", "2024-06-02"), "outside the log"),
        (("2024-05-01T00:20", "2024-05-01T00:10"), "empty"),
        (("yesterday", "2024-05-01"), "--window"),
    ],
)
def test_a_window_that_cannot_be_is_refused(files, window, says):
    result = _replay(files, "--window", *window)
    assert result.exit_code == 2
    assert says in result.stderr


def test_unlimited_work_keeps_the_first_jobs_running_to_the_end(files):
    record = json.loads(_replay(files, "--unlimited-work", "--max-parallel", "1", "--json").stdout)
    assert record["summary"]["jobs"]["running"] + record["summary"]["jobs"]["waiting"] == 1
    assert record["summary"]["jobs"]["finished"] == 0


def test_every_solver_gets_the_same_samples(files):
    samples = {
        tuple(options): json.loads(_replay(files, *options, "--json").stdout)["summary"]["ledger"]["samples"]
        for options in ((), ("--solver", "cbc"), ("--solver", "cbc", "--formulation", "node_level"))
    }
    assert len(samples) == 3
    reference = samples[()]
    assert all(value == pytest.approx(reference, rel=1e-6) for value in samples.values())


def test_equal_share_and_the_published_clock_are_a_switch_each(files):
    record = json.loads(_replay(files, "--policy", "equal-share", "--semantics", "published", "--json").stdout)
    assert record["config"]["policy"] == {"name": "equal-share"}
    assert record["config"]["semantics"] == "published"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--solver", "cplex"), "unknown solver"),
        (("--solver", "cbc", "--formulation", "choises"), "did you mean 'choices'"),
        (("--formulation", "choices"), "such as 'cbc', with this formulation"),
        (("--t-fwd", "0"), "forward-looking time"),
        (("--seed", "-1"), "--seed"),
        (("--policy", "json:JSONDecoder"), "is no policy"),
        (("--solver", "json:JSONDecoder"), "is no back end"),
        (("--solver", "cbc", "--formulation", "json:JSONDecoder"), "is no formulation"),
        (("--solver", "cbc", "--time-limit", "inf"), "time-limit is not finite"),
        (("--curves", "nothing.csv"), "nothing.csv"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_what_to_do(files, options, says):
    result = _replay(files, *options)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_the_same_inputs_give_the_same_bytes_under_two_hash_seeds(files):
    digests = []
    for seed in ("1", "2"):
        out = files / f"run{seed}"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "bfreplay.cli",
                "replay",
                "sample",
                "--jobs",
                "sample",
                "--record-nodes",
                "--semantics",
                "published",
                "--window",
                "2024-07-01T06:00",
                "2024-07-01T09:00",
                "--out",
                str(out),
            ],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        same = [path for path in sorted(out.iterdir()) if path.name not in ("session.json", "timings.parquet")]
        digests.append([(path.name, path.read_bytes()) for path in same])
    assert digests[0] == digests[1]
    assert len(digests[0]) == 7


def test_no_bar_is_drawn_when_nobody_looks(files):
    _replay(files)  # compiles, and may say so
    assert _replay(files).stderr == ""


@pytest.mark.slow
def test_without_compiled_code_a_run_is_the_same(files):
    command = [
        "replay",
        "sample",
        "--jobs",
        "sample",
        "--record-nodes",
        "--window",
        "2024-07-01T06:00",
        "2024-07-01T09:00",
    ]
    assert CliRunner().invoke(main, [*command, "--out", str(files / "compiled")]).exit_code == 0
    subprocess.run(
        [sys.executable, "-m", "bfreplay.cli", *command, "--out", str(files / "plain")],
        check=True,
        capture_output=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    records = []
    for name in ("compiled", "plain"):
        same = [p for p in sorted((files / name).iterdir()) if p.name not in ("session.json", "timings.parquet")]
        records.append([(path.name, path.read_bytes()) for path in same])
    assert records[0] == records[1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--policy", "mine:Fair"], "fair"),
        pytest.param(["--solver", "cbc", "--formulation", "mine:Mine"], "mine on", marks=pytest.mark.thorough),
    ],
    ids=["policy", "formulation"],
)
def test_a_strangers_policy_and_formulation_may_lie_where_the_user_stands(files, options, says):
    (files / "mine.py").write_text(
        "from bfreplay.milp.formulations.choices import Choices\n"
        "from bfreplay.policies import EqualSharePolicy\n"
        "class Fair(EqualSharePolicy):\n    name = 'fair'\n"
        "class Mine(Choices):\n    name = 'mine'\n"
    )
    done = subprocess.run(  # -P: as in the installed command, this folder is not on the path by itself
        [sys.executable, "-P", "-m", "bfreplay.cli", "replay", "events.csv", "--jobs", "jobs.csv", *options],
        check=True,
        capture_output=True,
        text=True,
        cwd=files,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert says in done.stdout


def test_options_without_effect_are_named(files):
    said = _replay(files, "--policy", "equal-share", "--fallback", "keep", "--seed", "3", "--force").stderr
    assert "--fallback has no effect with --policy equal-share" in said
    assert "--seed has no effect with --semantics continuous" in said
    assert "--force has no effect without --out" in said
    assert _replay(files, "--force", "--quiet").stderr == ""


def test_the_record_holds_every_option_of_the_solver(files):
    options = ("--solver", "cbc", "--fallback", "keep", "--time-limit", "3")
    solver = json.loads(_replay(files, *options, "--json").stdout)["config"]["policy"]["solver"]
    assert (solver["name"], solver["fallback"], solver["time_limit_s"]) == ("choices_reduced on cbc", "keep", 3.0)


@pytest.mark.slow
def test_a_run_that_is_terminated_leaves_nothing_behind(files):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "bfreplay.cli",
            "replay",
            "sample",
            "--jobs",
            "sample",
            "--solver",
            "cbc",
            "--out",
            str(files / "run"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not list(files.glob(".run.partial-*")):
        time.sleep(0.05)
    process.terminate()
    assert process.wait(600) == 128 + signal.SIGTERM
    assert sorted(path.name for path in files.iterdir()) == ["events.csv", "jobs.csv"]


def test_help_shows_defaults_and_examples():
    text = CliRunner().invoke(main, ["replay", "--help"]).output
    for word in ("120", "Examples", "--unlimited-work", "exact", "continuous"):
        assert word in text


def test_decisions_say_when_what_and_how_sure(files):
    _replay(files, "--out", str(files / "run"))
    table = pq.read_table(files / "run" / "decisions.parquet").to_pylist()
    assert [str(row["time"])[11:16] for row in table[:2]] == ["00:00", "00:10"]
    assert table[0]["trigger"] == "pool+arrival"
    assert table[1]["n_reclaimed"] == 1
    assert all((row["quality"] == "proven" and row["gap"] in (None, 0.0)) or row["gap"] < 1e-9 for row in table)
