"""``bfreplay finish`` as a user types it, on the sample, and its page."""

import json
import re

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.commands.finish import finish
from bfreplay.experiments.study_options import N_STARTS
from bfreplay.experiments.sweep import run_sweep
from tests.experiments.sweep.small_sweeps import Inline


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, list(map(str, words)))


def made(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


SEARCH = (
    "jobs",
    "make",
    "hpo",
    "-o",
    "search.toml",
    "--trials",
    "20",
    "--pruner",
    "asha",
    "--curve",
    "0:0 1:400 16:4000",
)
QUICK = ("--starts", "4", "--quiet")


@pytest.mark.slow
def test_a_search_on_the_sample_gets_its_answer_folder_picture_and_page(here):
    made(*SEARCH)
    command = ("finish", "sample", "--jobs", "search.toml", "--dedicated", "12", *QUICK, "--out", "out")
    text = made(*command)
    record = json.loads((here / "out" / "finish.json").read_text())
    lines = text.splitlines()
    assert lines[0] == record["answer"]
    assert re.fullmatch(
        r"The search is over after [\d.]+ (h|min)( \(.*\))?, against [\d.]+ (h|min) on 12 nodes of your own; to this "
        r"search these idle nodes are worth \d+ dedicated nodes?\.",
        lines[0],
    )
    assert [f"Warning: {each}" for each in record["warnings"]] == [each for each in lines if each.startswith("Warn")]
    assert lines[-1].split() == ["Folder", str(here / "out")]
    assert {path.name for path in (here / "out").iterdir()} == {
        ".finish",
        "finish.json",
        "finish.png",
        "finish.svg",
        "starts",
        "dedicated",
    }
    assert made(*command) == text
    assert json.loads(made(*command, "--json")) == record
    made("report", "out", "-o", "page.html", "--quiet")
    page = (here / "page.html").read_text()
    assert record["answer"] in page
    assert "<title>When the search in search.toml is over on the idle nodes of sample-events.parquet" in page
    assert all(start["run"] in page for start in record["starts"])
    assert run("report", "out", "-o", "page.html").exit_code == 2


@pytest.mark.slow
def test_a_start_is_the_replay_of_its_window(here):
    document = json.loads(made("finish", "sample", "--jobs", "sample", "--starts", "2", "--quiet", "--json"))
    start, end_us = document["starts"][0], document["inputs"]["window_us"][1]
    words = ("replay", "sample", "--jobs", "sample", "--until-done", "--quiet", "--json")
    summary = json.loads(made(*words, "--window", start["time"], end_us // 10**6))["summary"]
    assert summary["last_finish_us"] == start["time_us"] + round(start["duration_s"] * 1e6)


@pytest.mark.slow
def test_without_a_folder_only_the_picture_is_left(here):
    made(*SEARCH)
    command = ("finish", "sample", "--jobs", "search.toml", *QUICK, "--picture", "mine.svg")
    assert "against" not in made(*command).splitlines()[0]
    assert {path.name for path in here.iterdir()} == {"search.toml", "mine.svg"}
    assert "exists already" in run(*command).stderr
    made(*command, "--force")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--starts", "0"), "not in the range 1<=x<=10000"),
        (("--starts", "10001"), "not in the range 1<=x<=10000"),
        (("--dedicated", "0"), "not in the range x>=1"),
        (("--tz", "Mars"), "time zone"),
        (("--picture", "mine.pdf"), ".png or .svg"),
        (("--processes", "1", "--scheduler", "tcp://x:1"), "remove one of the two"),
        (("--out", ".."), "not a finish folder"),
        (("--policy", "bftrianer"), "unknown policy"),
    ],
)
def test_what_cannot_be_is_refused(words, says):
    result = run("finish", "sample", "--jobs", "sample", *words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_the_help_tells_the_defaults():
    assert next(each.default for each in finish.params if each.name == "starts") == N_STARTS
    assert "bfreplay finish log.parquet --jobs search.toml --dedicated 32 --out finish" in made("finish", "--help")
