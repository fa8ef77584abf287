"""``bfreplay compare runs`` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay.cli import main
from bfreplay.experiments import RunComparison
from tests.cli.test_replay_command import EVENTS, JOBS


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Folder with the runs ``one`` and ``two``, which differ in T_fwd, and ``part`` of the window."""
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "jobs.csv").write_text(JOBS)
    window = ("--window", "2024-05-01T00:00", "2024-05-01T00:30")
    for name, options in (("one", ()), ("two", ("--t-fwd", "5")), ("part", window)):
        words = ["replay", str(tmp_path / "events.csv"), "--jobs", str(tmp_path / "jobs.csv"), "--quiet"]
        done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / name), *options])
        assert done.exit_code == 0, done.output
    return tmp_path


def _compare(folder: Path, *words: str) -> Result:
    names = [str(folder / word) if (folder / word).exists() else word for word in words]
    return CliRunner().invoke(main, ["compare", "runs", *names])


def test_a_person_gets_a_sentence_tables_and_a_folder_with_pictures(runs):
    result = _compare(runs, "one", "two", "--bin", "1min", "--resamples", "200", "--out", str(runs / "found"))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("B processed ")
    for word in ("policy.t_fwd_s", "by bins of", "rescaling", "preemption", "job by job", "Comparison folder"):
        assert word in result.stdout
    assert {path.name for path in (runs / "found").iterdir()} == {
        "comparison.json",
        "hours.parquet",
        "jobs.parquet",
        "cumulative.parquet",
        "causes.png",
        "causes.svg",
        "differences-over-time.png",
        "differences-over-time.svg",
    }
    assert result.stderr == ""


def test_json_is_the_record(runs):
    options = ("--json", "--seed", "4", "--resamples", "150", "--bin", "10min", "--no-pictures")
    result = _compare(runs, "one", "two", *options, "--out", str(runs / "found"))
    printed = json.loads(result.stdout)
    assert printed == json.loads((runs / "found" / "comparison.json").read_text())
    config = {key: printed["config"][key] for key in ("seed", "resamples", "bin_s")}
    assert config == {"seed": 4, "resamples": 150, "bin_s": 600.0}
    assert [run["name"] for run in printed["runs"]] == ["one", "two"]
    assert printed["session"]["command"].startswith("bfreplay")
    assert not list((runs / "found").glob("*.png"))


def test_a_folder_that_exists_is_replaced_only_with_force(runs):
    found = str(runs / "found")
    assert _compare(runs, "one", "two", "--out", found, "--no-pictures").exit_code == 0
    refused = _compare(runs, "one", "two", "--out", found)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert _compare(runs, "one", "one", "two", "--out", found, "--no-pictures", "--force").exit_code == 0
    assert len(RunComparison.load(found).pairs) == 2
    assert _compare(runs, "one", "two", "--out", str(runs / "one"), "--force").exit_code == 2


def test_a_run_against_itself_is_the_same(runs):
    result = _compare(runs, "one", "one")
    assert result.exit_code == 0
    assert "B processed as many samples as A, in every hour." in result.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("one", "part"), "its window differs"),
        (("one",), "two runs or more"),
        (("one", "nowhere"), "not a run folder"),
        (("one", "two", "--bin", "soon"), "such as 1h, 10min, 30s or 1d"),
        ((), "Missing argument"),
    ],
)
def test_what_cannot_be_compared_is_told_with_exit_code_2(runs, words, told):
    result = _compare(runs, *words)
    assert result.exit_code == 2
    assert told in result.stderr


def test_help_shows_defaults_and_examples():
    text = CliRunner().invoke(main, ["compare", "runs", "--help"]).output
    for word in ("Examples", "1h", "2000", "--resamples", "bootstrap"):
        assert word in text
    group = CliRunner().invoke(main, ["compare", "--help"]).output
    assert "runs" in group
    assert "formulations" in group


def test_help_loads_no_heavy_library():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom bfreplay.cli import main\n"
        "assert CliRunner().invoke(main, ['compare', 'runs', '--help']).exit_code == 0\n"
        "assert not {'pandas', 'pyarrow', 'scipy', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_runs_without_the_word_runs_are_told_the_command(tmp_path):
    (tmp_path / "own").mkdir()
    result = CliRunner().invoke(main, ["compare", str(tmp_path / "own"), "fair"])
    assert result.exit_code == 2
    text = " ".join(result.stderr.replace("│", " ").split())  # in a box, of broken lines
    assert "Did you mean:" in text
    assert "compare runs" in text
