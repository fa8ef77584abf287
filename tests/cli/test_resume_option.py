"""``replay --checkpoint-every`` and ``--resume``, as a user and a batch system use them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import bfreplay
from bfreplay.cli import main
from bfreplay.replay.checkpoint import _seal, folder_of
from tests.runs.test_resume import Killed, _raising_after, same, unsealed

BFREPLAY = str(Path(sys.executable).with_name("bfreplay"))
BEGIN = [
    "replay",
    "sample",
    "--jobs",
    "sample",
    "--no-bound",
    "--quiet",
    "--seed",
    "0",
    "--window",
    "2024-07-01",
    "2024-07-02",
]


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    out = tmp_path_factory.mktemp("unbroken") / "run"
    assert run(*BEGIN, "--out", str(out)).exit_code == 0
    return out


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """An unfinished run, of which a first checkpoint is there."""
    monkeypatch.chdir(tmp_path)
    visits = []

    def stop(checkpoints, state_of, *, stops=False):
        visits.append(None)
        if len(visits) == 100:
            checkpoints.save(state_of())
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bfreplay.replay.checkpoint.Checkpoints.visit", stop)
        assert run(*BEGIN, "--out", "run", "--checkpoint-every", "1h").exit_code == 130
    assert not Path("run").exists()
    return Path("run")


def test_a_run_is_resumed_by_its_name_alone(stopped, unbroken):
    done = run("replay", "--resume", "run", "--quiet")
    assert done.exit_code == 0, done.output
    assert "Decisions" in done.output
    same(stopped, unbroken)
    again = run("replay", "--resume", "run")
    assert again.exit_code == 2
    assert "this run is complete" in again.output


def test_inputs_that_have_moved_are_named(stopped, unbroken, tmp_path):
    moved = tmp_path / "elsewhere" / bfreplay.sample_events_path().name
    moved.parent.mkdir()
    moved.write_bytes(bfreplay.sample_events_path().read_bytes())
    about = unsealed(folder_of(stopped) / "about.json")
    about["options"]["events"] = "/gone.parquet"
    (folder_of(stopped) / "about.json").write_text(_seal(about))
    assert run("replay", "--resume", "run").exit_code == 2
    renamed = moved.with_name("renamed.parquet")
    renamed.write_bytes(moved.read_bytes())
    refused = run("replay", str(renamed), "--resume", "run")  # the record has the name
    assert refused.exit_code == 2
    assert "renamed.parquet" in refused.output
    assert run("replay", str(moved), "--resume", "run").exit_code == 0
    same(stopped, unbroken)


def test_options_of_the_run_cannot_be_given_again(stopped):
    refused = run("replay", "--resume", "run", "--t-fwd", "60")
    assert refused.exit_code == 2
    assert "--t-fwd is not for a run that is resumed" in refused.output


def test_code_that_the_run_names_needs_a_word(stopped):
    about = unsealed(folder_of(stopped) / "about.json")
    about["options"]["policy"] = "some.module:Policy"
    (folder_of(stopped) / "about.json").write_text(_seal(about))
    refused = run("replay", "--resume", "run")
    assert refused.exit_code == 2
    assert "--allow-code" in refused.output


def test_a_run_begun_in_python_is_resumed_there(tmp_path):
    with pytest.raises(Killed):
        bfreplay.replay_log(
            "sample", "sample", out=tmp_path / "run", checkpoint_every=0, progress=_raising_after(5), efficiency=False
        )
    refused = run("replay", "--resume", str(tmp_path / "run"))
    assert refused.exit_code == 2
    assert "begun in Python" in refused.output


@pytest.mark.parametrize("every", ["soon", "-1h", "1 week"])
def test_a_time_that_is_none_is_refused(every, tmp_path):
    refused = run(*BEGIN, "--out", str(tmp_path / "run"), "--checkpoint-every", every)
    assert refused.exit_code == 2
    assert "length of time such as 1h, 10min" in refused.output


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_the_state_and_says_how_to_go_on(number, unbroken, tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [BFREPLAY, *BEGIN, "--out", str(out), "--checkpoint-every", "0"], stderr=subprocess.PIPE, text=True
    )
    while not (folder_of(out) / "state").exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == 128 + number, said
    assert f"Go on with: bfreplay replay --resume {out}" in said
    assert run("replay", "--resume", str(out), "--quiet").exit_code == 0
    same(out, unbroken)
