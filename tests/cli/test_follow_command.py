"""``bfreplay follow`` as a user types it, on commands of a site that a test wrote."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay import load_events
from bfreplay.cli import main
from bfreplay.outputs import temporary_name
from bfreplay.runs import RunResult


def follow(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["follow", *map(str, words)])


def script(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "states.sh"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def common(tmp_path: Path) -> list[str]:
    return ["--jobs", "sample", "--out", str(tmp_path / "live"), "--poll", "0.2s", "--hold-back", "0.2s"]


def test_a_command_of_the_site_is_followed_to_a_log_a_run_a_page_and_metrics(tmp_path):
    states = script(tmp_path, "echo n1 idle; test -e $0.seen && echo n2 idle || echo n2 busy; touch $0.seen")
    page, metrics = tmp_path / "now.html", tmp_path / "now.prom"
    result = follow("command", *common(tmp_path), "--for", "2s", "--page", page, "--metrics", metrics, "--", states)
    assert result.exit_code == 0, result.output
    log = load_events(tmp_path / "live" / "log.csv")
    assert log.nodes == ("n1", "n2")
    assert log.metadata.source_format == "followed: command"
    assert RunResult.load(tmp_path / "live" / "run").table("decisions").num_rows >= 2
    assert "2 idle: a preemptible worker could start" in page.read_text()
    assert 'bfreplay_nodes{state="idle"} 2.0' in metrics.read_text()
    assert "Stopped. The log:" in result.output


def test_the_shortest_time_has_a_poll_and_says_that_there_is_no_run(tmp_path):
    page = tmp_path / "now.html"
    words = ["--hold-back", "1min", "--for", "0.001s", "--page", page, "--", script(tmp_path, "echo n1 idle")]
    result = follow("command", *common(tmp_path)[:-2], *words)
    assert result.exit_code == 0, result.output
    assert "1 idle" in page.read_text()
    assert "Nothing was final yet: there is no log." in result.output


def test_a_second_start_says_what_it_resumes_and_tidies_after_a_killed_one(tmp_path):
    page, metrics, live = tmp_path / "now.html", tmp_path / "now.prom", tmp_path / "live"
    words = ["--for", "1s", "--page", page, "--metrics", metrics, "--", script(tmp_path, "echo n1 idle")]
    assert follow("command", *common(tmp_path), *words).exit_code == 0
    end = json.loads((live / "log.csv.meta.json").read_text())["window_end"]
    files = set(tmp_path.rglob("*"))
    name = temporary_name("NAME", "part").replace(f"-{os.getpid()}-", "-999999999-")
    for file in (page, metrics, live / "status.json", live / "log.csv.meta.json"):
        file.with_name(name.replace("NAME", file.name)).write_text("half")
    result = follow("command", *common(tmp_path), *words)
    assert f"Resumes the log in {live}, which ends at {end}." in result.output.replace("\n", " ")
    assert set(tmp_path.rglob("*")) == files


def test_closed_outputs_are_no_reason_to_stop(tmp_path):
    words = [sys.executable, "-m", "bfreplay", "follow", "command", *common(tmp_path), "--for", "1s", "--"]
    line = shlex.join([*words, str(script(tmp_path, "echo n1 idle"))])
    assert subprocess.run(["sh", "-c", f"{line} >&- 2>&-"], check=False).returncode == 0
    assert RunResult.load(tmp_path / "live" / "run")


def test_a_word_that_is_not_in_the_table_is_said_once(tmp_path):
    result = follow("command", *common(tmp_path), "--for", "1s", "--", script(tmp_path, "echo n1 idle; echo n2 odd"))
    assert result.output.replace("\n", " ").count("the table of states lacks 'odd' (odd)") == 1
    notes = json.loads((tmp_path / "live" / "log.csv.meta.json").read_text())["notes"]["followed"]["notes"]
    assert len(notes) == 1


def test_a_terminal_shows_one_line_of_the_last_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    states = script(tmp_path, "echo n1 idle; echo n2 planned; echo n3 busy")
    words = [*common(tmp_path), "--for", "0.5s", "--", str(states)]
    main(["follow", "command", *words], standalone_mode=False)
    assert "UTC: 2 of 3 nodes idle, 1 startable; training would hold" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_following_with_everything_written(tmp_path, number):
    states = script(tmp_path, "echo n1 idle")
    words = [sys.executable, "-m", "bfreplay", "follow", "command", *common(tmp_path), "--", str(states)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "live" / "log.csv.meta.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    assert process.wait(timeout=120) == 0, process.stderr.read()
    assert RunResult.load(tmp_path / "live" / "run")
    assert json.loads((tmp_path / "live" / "log.csv.meta.json").read_text())["window_end"]


def test_the_table_of_states_is_printed_and_read_back(tmp_path):
    result = follow("slurm", "--print-states")
    assert result.exit_code == 0
    file = tmp_path / "states.toml"
    file.write_text(result.output)
    states = script(tmp_path, "echo n1 idle")
    assert follow("command", *common(tmp_path), "--for", "1s", "--states", file, "--", states).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["command", "--poll", "0s", "--", "true"], "more than 0 s"),
        (["command", "--poll", "soon", "--", "true"], "no length of time"),
        (["command", "--", "false"], "false: exit code 1"),
        (["command", "--", "echo", "hello"], "cannot be read"),
        (["command", "--states", "nowhere.toml", "--", "true"], "nowhere.toml"),
        (["slurm", "--lends", "idle"], "partition=NAME"),
        (["file", "nowhere.csv"], "nowhere.csv"),
        (["command", "--page", "nowhere/now.html", "--", "echo", "n1", "idle"], "the folder of the output"),
        (["command", "--metrics", "nowhere/now.prom", "--", "echo", "n1", "idle"], "the folder of the output"),
        (["command", "--metrics", "log.csv", "--", "echo", "n1", "idle"], "NAME.prom"),
        (["command", "--", "no-such-command"], "there is no such command here"),
    ],
)
def test_what_cannot_be_followed_is_refused_and_leaves_nothing(tmp_path, words, message):
    result = follow(words[0], "--jobs", "sample", "--out", tmp_path / "live", *words[1:])
    assert result.exit_code in (2, 3)
    assert message in result.output
    assert list(tmp_path.iterdir()) == []


def test_jobs_and_the_folder_are_required():
    assert "Missing option" in follow("command", "--jobs", "sample", "--", "true").output
    assert "Missing option" in follow("command", "--out", "live", "--", "true").output
