"""``bfreplay sweep`` as a user types it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from bfreplay.commands.progress import sweep_progress
from bfreplay.experiments.sweep import SweepProgress, run_sweep
from tests.experiments.sweep.small_sweeps import Inline, n_begun, write_files


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "noting", raising=False)  # the one of another test
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    return write_files(tmp_path)


def _sweep(*words: str) -> Result:
    return CliRunner().invoke(main, ["sweep", "--allow-code", *words])


def test_a_person_gets_the_table_and_where_it_lies(files):
    result = _sweep("sweep.toml", "--out", "out")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "4 runs, none failed."
    assert lines[2].split() == ["t_fwd", "status"]
    assert lines[7].startswith("The same in all runs (to three digits): samples ")
    assert [line.split()[0] for line in lines[3:7]] == ["10", "20", "30", "40"]
    assert lines[-1].split() == ["Table", str(files / "out" / "results.parquet")]
    again = _sweep("sweep.toml", "--out", "out", "--quiet")
    assert again.stdout.splitlines()[0] == "4 runs, 4 reused, none failed."
    assert again.stderr == ""


def test_the_first_error_is_told(files):
    (files / "fail-30").touch()
    (files / "fail-20").touch()
    result = _sweep("sweep.toml", "--out", "out")
    assert result.exit_code == 1
    assert "4 runs, 2 failed." in result.stdout
    assert "Error of 1 row: the policy 'noting' failed in decide() at " in result.stdout
    assert "ValueError: no luck with 20" in " ".join(result.stdout.split())
    assert "--retry-failed" in result.stdout
    (files / "fail-20").unlink()
    assert "4 runs, 2 reused, 1 failed." in _sweep("sweep.toml", "--out", "out", "--retry-failed").stdout


def test_json_is_the_table(files):
    rows = json.loads(_sweep("sweep.toml", "--out", "out", "--json").stdout)
    assert [row["t_fwd"] for row in rows] == [10, 20, 30, 40]
    assert rows[0]["useful_node_hours"] > 0
    assert rows[0]["last_finish"] is None


def test_a_dry_run_tells_what_would_be_done_and_writes_nothing(files):
    said = _sweep("sweep.toml", "--out", "out", "--dry-run").stdout
    assert said.startswith("4 runs: 0 finished, 0 failed before, 4 to do.")
    assert said.count("to do") == 5
    assert not (files / "out").exists()
    assert n_begun(files) == {}
    (files / "fail-20").touch()
    _sweep("sweep.toml", "--out", "out")
    said = _sweep("sweep.toml", "--out", "out", "--dry-run").stdout
    assert said.startswith("4 runs: 3 finished, 1 failed before, 0 to do.")
    assert n_begun(files) == {"10": 1, "20": 1, "30": 1, "40": 1}


@pytest.mark.slow
def test_a_long_table_is_not_printed(files):
    (files / "long.toml").write_text(
        '[run]\nevents = "events.csv"\njobs = "jobs.csv"\npolicy = "noting:Noting"\nefficiency = false\nbound = false\n'
        f"[vary]\nt-fwd = {list(range(1, 42))}\n"
    )
    assert len(_sweep("long.toml", "--out", "out", "--dry-run").stdout.splitlines()) == 1
    said = _sweep("long.toml", "--out", "out").stdout
    assert "41 runs, none failed." in said
    assert len(said.splitlines()) == 3


def test_rows_that_share_a_run_are_counted(files):
    (files / "sweep.toml").write_text((files / "sweep.toml").read_text().replace("[10, 20, 30, 40]", "[10, 20, 10.0]"))
    assert _sweep("sweep.toml", "--out", "out").stdout.startswith("2 runs for 3 rows, none failed.")


@pytest.mark.parametrize(
    ("spec", "words", "says"),
    [
        ("[run]\nevents = 'sample'\njobs = 'sample'\ntfwd = 3\n", (), "did you mean 't-fwd'?"),
        ("[run]\nevents = 'nowhere.csv'\njobs = 'sample'\n", (), "nowhere.csv"),
        (
            "[run]\nevents = 'sample'\njobs = 'sample'\n[vary]\npolicy = ['bftrainer', 'bftrianer']\n",
            (),
            "unknown policy",
        ),
        ("[run]\nevents = 'sample'\njobs = 'sample'\nsolver = 'cplex'\n", (), "unknown solver"),
        (
            "[run]\nevents = 'sample'\njobs = 'sample'\n",
            ("--processes", "2", "--scheduler", "x"),
            "remove one of the two",
        ),
        ("[run]\nevents = 'sample'\njobs = 'sample'\n", ("--processes", "0"), "--processes"),
        ("[run]\nevents = 'sample'\njobs = 'sample'\n", ("--scheduler", "nonsense"), "no Dask scheduler answers"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(files, spec, words, says):
    (files / "wrong.toml").write_text(spec)
    result = _sweep("wrong.toml", "--out", "out", *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not [*files.glob("out/runs/*")]


def test_a_spec_that_is_not_there_and_a_folder_of_something_else_are_refused(files):
    assert "no such file" in _sweep("nothing.toml", "--out", "out").stderr
    (files / "mine").mkdir()
    (files / "mine" / "precious.txt").write_text("mine")
    result = _sweep("sweep.toml", "--out", "mine")
    assert result.exit_code == 2
    assert "is not a sweep folder" in result.stderr
    assert [path.name for path in (files / "mine").iterdir()] == ["precious.txt"]


def test_a_person_at_a_terminal_sees_how_far_it_is(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    with sweep_progress(hidden=False) as progress:
        assert progress is not None
        progress(SweepProgress(n_runs=60, n_reused=3, n_finished=10, n_failed=2, n_workers=4, left_s=90.0))
    for words in ("15/60", "4 at work", "2 failed", "3 reused", "90 s left"):
        assert words in terminal.getvalue()
    with sweep_progress(hidden=True) as progress:
        assert progress is None


def test_help_has_examples():
    text = CliRunner().invoke(main, ["sweep", "--help"]).output
    for word in ("Examples", "--retry-failed", "--scheduler", "[vary]", "processors"):
        assert word in text
    assert "bfreplay sweep SPEC.toml" in CliRunner().invoke(main, ["--help"]).output
