"""``bfreplay compare rules`` as a user types it, and its page."""

import json
import re

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.experiments.sweep import run_sweep
from tests.experiments.sweep.small_sweeps import Inline

DAY = ("--window", "2024-07-01", "2024-07-02")
COMMAND = ("compare", "rules", "sample", "--jobs", "sample", "--rule", "scavenger", *DAY, "--quiet")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    return tmp_path


def made(*words):
    result = CliRunner().invoke(main, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_site_gets_an_answer_a_table_a_folder_with_pictures_and_a_page(here):
    command = (*COMMAND, "--yours", "products.scavenger(size=12)", "--restart-cost", "30", "--out", "out")
    text = made(*command)
    record = json.loads((here / "out" / "rules.json").read_text())
    lines = text.splitlines()
    assert lines[0] == record["answer"]
    assert re.match(
        r"On this log products\.scavenger\(size=12\), your setting, reaches [\d.]+ % of the upper", lines[0]
    )
    assert {"products.scavenger", "bftrainer", "reclaim-aware", "upper"} <= {line.split()[0] for line in lines if line}
    assert "pauses a job for 30 s" in text
    names = {".rules", "rules.json", "rules.png", "rules.svg", "sweep"}
    assert {path.name for path in (here / "out").iterdir()} == names
    assert made(*command) == text
    assert json.loads(made(*command, "--json")) == record
    made("report", "out", "-o", "page.html", "--quiet")
    page = (here / "page.html").read_text()
    assert record["answer"] in page
    assert all(run["run"] in page for run in record["rules"])
    assert "bfreplay runs ./out" in CliRunner().invoke(main, ["runs", "."]).output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rule", "rya"), "expected: "),
        (("--count", "jobs"), "'speed-up'"),
        (("--cluster", "v100=2"), "No such option"),
        (("--out", ".."), "not a rules folder"),
        (("--picture", "mine.pdf"), ".png or .svg"),
    ],
)
def test_what_cannot_be_is_refused(words, message):
    result = CliRunner().invoke(main, [*COMMAND, *words])
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_the_help_names_the_rules_and_says_that_no_product_publishes_costs():
    text = " ".join(made("compare", "rules", "--help").split())
    assert "No product publishes how long a restart takes" in text
    assert "scavenger" in text
