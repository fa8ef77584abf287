"""``bfreplay compare formulations`` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from bfreplay.experiments import LabResult
from tests.cli.test_replay_command import EVENTS, JOBS

ROOT = Path(__file__).resolve().parents[2]
FAULTY = "tests.milp.faulty_backends:"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def _compare(folder: Path, *options: str, formulations: str = "choices", backends: str = "cbc") -> Result:
    return CliRunner().invoke(
        main,
        [
            "compare",
            "formulations",
            str(folder / "events.csv"),
            "--jobs",
            str(folder / "jobs.csv"),
            "--formulations",
            formulations,
            "--backends",
            backends,
            *options,
        ],
    )


def test_a_person_gets_a_table_a_winner_and_a_folder_with_pictures(files):
    result = _compare(files, "--out", str(files / "lab"))
    assert result.exit_code == 0, result.output
    for word in ("choices on cbc", "exact", "proven", "Winner      choices on cbc, the only pair", "Wrong       none"):
        assert word in result.stdout
    names = {path.name for path in (files / "lab").iterdir()}
    pictures = {f"{name}.{e}" for name in ("performance-profile", "time-by-size", "outcomes") for e in ("png", "svg")}
    tables = {f"{name}.parquet" for name in ("decisions", "answers", "summary", "profile", "time_by_size")}
    assert names == {"lab.json", *pictures, *tables}
    assert [line for line in result.stderr.splitlines() if not line.startswith("Compiling")] == []


def test_json_is_the_record(files):
    result = _compare(files, "--json", "--out", str(files / "lab"), "--no-pictures", "--time-limit", "3")
    printed = json.loads(result.stdout)
    assert printed == json.loads((files / "lab" / "lab.json").read_text())
    assert printed["config"]["time_limit_s"] == 3.0
    assert printed["winner"]["pair"] == "choices on cbc"
    assert printed["session"]["command"].startswith("bfreplay")
    assert not list((files / "lab").glob("*.png"))


def test_every_option_reaches_the_comparison(files):
    options = (
        "--sample",
        "2",
        "--seed",
        "4",
        "--t-fwd",
        "300",
        "--max-parallel",
        "1",
        "--unlimited-work",
        "--gap",
        "0.01",
        "--threads",
        "2",
        "--solver-seed",
        "7",
        "--no-warm-start",
        "--reformulate-sets",
        "--memory-limit",
        "4000",
        "--window",
        "2024-05-01T00:05",
        "2024-05-01T00:30",
    )
    config = json.loads(_compare(files, *options, "--json").stdout)["config"]
    expected = {
        "sample": 2,
        "seed": 4,
        "t_fwd_s": 300.0,
        "max_parallel": 1,
        "unlimited_work": True,
        "relative_gap": 0.01,
        "threads": 2,
        "solver_seed": 7,
        "warm_start": False,
        "reformulate_sets": True,
        "memory_limit_bytes": 4_000_000_000,
    }
    assert {key: config[key] for key in expected} == expected
    assert (config["window_end_us"] - config["window_start_us"]) / 1e6 == 25 * 60


@pytest.mark.slow
def test_failures_are_told_in_plain_words_and_kept(files):
    result = _compare(
        files,
        "--backend",
        FAULTY + "CallsSuboptimalOptimal",
        "--backend",
        FAULTY + "Aborts",
        "--out",
        str(files / "lab"),
        "--no-pictures",
        "--sample",
        "2",
    )
    assert result.exit_code == 0, result.output
    assert "answers wrong" in result.stdout
    assert "answers crashed" in result.stdout
    assert "models as MPS, decisions as JSON" in result.stdout
    assert list((files / "lab" / "failures" / "choices-on-CallsSuboptimalOptimal").glob("*.mps"))


def test_failures_go_where_the_user_says(files):
    kept = ("--sample", "1", "--save-failures", str(files / "kept"))
    assert _compare(files, "--backend", FAULTY + "Raises", *kept).exit_code == 0
    assert list((files / "kept" / "choices-on-faulty").glob("*.json"))


def test_what_is_left_out_is_named_with_the_reason(files):
    result = _compare(files, "--backend", FAULTY + "WithoutSets", formulations="choices,node_level")
    assert "Not compared" in result.stdout
    assert "node_level on faulty: faulty takes no special ordered sets" in result.stdout
    assert "--reformulate-sets" in result.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"backends": "cplex"}, "unknown back end"),
        ({"backends": "cbc," + FAULTY + "Unavailable"}, "no licence found"),
        ({"formulations": "choises"}, "did you mean 'choices'"),
        ({"formulations": "node_level", "backends": FAULTY + "WithoutSets"}, "no pair"),
    ],
)
def test_names_that_cannot_be_are_refused(files, options, says):
    result = _compare(files, **options)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--sample", "0"), "--sample"),
        (("--t-fwd", "0"), "forward-looking time"),
        (("--formulation", "json:JSONDecoder"), "is no formulation"),
        (("--time-limit", "inf"), "time-limit is not finite"),
        (("--window", "2024-06-01", "2024-06-02"), "outside the log"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_what_to_do(files, options, says):
    result = _compare(files, *options)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.slow
def test_a_folder_that_exists_is_refused_before_anything_runs_and_replaced_with_force(files):
    assert _compare(files, "--out", str(files / "lab"), "--no-pictures").exit_code == 0
    refused = _compare(files, "--out", str(files / "lab"), "--jobs", str(files / "no-such-jobs.csv"))
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert "no-such-jobs" not in refused.stderr
    assert _compare(files, "--out", str(files / "lab"), "--no-pictures", "--force", "--sample", "2").exit_code == 0
    assert len(LabResult.load(files / "lab").decisions) == 2
    assert sorted(path.name for path in files.iterdir()) == ["events.csv", "jobs.csv", "lab"]


@pytest.mark.slow
def test_the_formulation_of_the_docs_is_compared_from_the_folder_where_the_user_stands(files):
    page = (ROOT / "docs" / "algorithm-developers.md").read_text()
    (files / "mine.py").write_text(page.split("`mine.py`, complete:\n\n```python\n")[1].split("```")[0])
    done = subprocess.run(  # -P: as in the installed command, this folder is not on the path by itself
        [
            sys.executable,
            "-P",
            "-m",
            "bfreplay.cli",
            "compare",
            "formulations",
            "events.csv",
            "--jobs",
            "jobs.csv",
            "--formulations",
            "choices",
            "--backends",
            "cbc",
            "--formulation",
            "mine:Mine",
        ],
        check=True,
        capture_output=True,
        text=True,
        cwd=files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "mine on cbc" in done.stdout
    assert "Wrong       none" in done.stdout


WAITS = """
import os, pathlib, time
from tests.milp.faulty_backends import Faulty
class Waits(Faulty):
    def solve(self, model, options):
        pathlib.Path("worker.part").write_text(str(os.getpid()))
        pathlib.Path("worker.part").rename("worker.pid")
        time.sleep(600)
"""


@pytest.mark.slow
def test_a_comparison_that_is_terminated_leaves_no_folder_and_no_worker(files):
    (files / "waits.py").write_text(WAITS)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "bfreplay.cli",
            "compare",
            "formulations",
            "events.csv",
            "--jobs",
            "jobs.csv",
            "--formulations",
            "choices",
            "--backends",
            "waits:Waits",
            "--time-limit",
            "500",
            "--out",
            "lab",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    while process.poll() is None and not (files / "worker.pid").exists():
        time.sleep(0.05)
    assert list(files.glob(".lab.partial-*"))
    process.terminate()
    assert process.wait(600) == 128 + signal.SIGTERM
    assert not [path for path in files.iterdir() if "lab" in path.name]
    with pytest.raises(ProcessLookupError):
        os.kill(int((files / "worker.pid").read_text()), 0)


def test_help_shows_defaults_and_examples():
    text = CliRunner().invoke(main, ["compare", "formulations", "--help"]).output
    for word in ("Examples", "50", "--reformulate-sets", "--formulation", "120", "all that work"):
        assert word in text
    assert "formulations" in CliRunner().invoke(main, ["compare", "--help"]).output


def test_failures_are_not_saved_where_they_would_be_lost(files):
    result = _compare(files, "--out", str(files / "lab"), "--save-failures", str(files / "lab" / "failed"))
    assert result.exit_code == 2
    assert "--save-failures is inside --out" in result.stderr
    assert not (files / "lab").exists()


def test_a_folder_of_failures_that_is_not_needed_is_not_made(files):
    before = sorted(files.iterdir())
    assert _compare(files, "--save-failures", str(files / "a" / "b")).exit_code == 0
    assert sorted(files.iterdir()) == before


def test_failures_that_cannot_be_saved_are_known_before_anything_is_solved(files):
    (files / "file").write_text("")
    result = _compare(files, "--save-failures", str(files / "file" / "failed"))
    assert result.exit_code == 2
    assert "--save-failures cannot be written" in result.stderr


def test_what_bfreplay_did_not_write_is_left_alone_even_with_force(files):
    assert _compare(files, "--out", str(files / "lab"), "--quiet", "--no-pictures", "--sample", "1").exit_code == 0
    (files / "lab" / "mine").mkdir()
    refused = _compare(files, "--out", str(files / "lab"), "--force")
    assert refused.exit_code == 2
    assert "holds files that bfreplay did not write" in refused.stderr
    assert (files / "lab" / "mine").is_dir()


@pytest.mark.parametrize(("strict", "exit_code"), [(["--strict"], 1), pytest.param([], 0, marks=pytest.mark.thorough)])
def test_a_wrong_answer_fails_the_command_where_it_is_to_after_everything_is_written(files, strict, exit_code):
    options = ["--backend", f"{FAULTY}CallsSuboptimalOptimal", "--no-pictures", "--out", str(files / "lab"), *strict]
    result = _compare(files, *options)
    assert result.exit_code == exit_code
    assert "answers wrong" in result.stdout
    outcomes = {row["pair"]: row["wrong"] for row in LabResult.load(files / "lab").record["summary"]}
    assert outcomes["choices on CallsSuboptimalOptimal"] > 0 == outcomes["choices on cbc"]


def test_without_a_wrong_answer_the_strict_command_succeeds(files):
    assert _compare(files, "--strict").exit_code == 0
