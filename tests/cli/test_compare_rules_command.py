"""``bfreplay compare rules`` as a user types it, and its page."""

import json

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.experiments.sweep import run_sweep
from tests.experiments.sweep.small_sweeps import Inline

COMMAND = ("compare", "rules", "sample", "--jobs", "sample", "--rule", "scavenger", "--quiet")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    return tmp_path


def made(*words):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_site_gets_an_answer_a_table_a_folder_with_pictures_and_a_page(here):
    own = ("--yours", "products.scavenger(size=12)", "--restart-cost", "30", "--out", "out")
    command = (*COMMAND, "--window", "2024-07-01", "2024-07-02", *own)
    text = made(*command)
    record = json.loads((here / "out" / "rules.json").read_text())
    assert text.startswith(record["answer"])
    assert record["answer"].startswith("On this log products.scavenger(size=12), your setting, reaches ")
    assert {"products.scavenger", "bftrainer", "reclaim-aware", "upper"} <= {*text.split()}
    assert "cost a pause of 30 s" in text
    names = {".rules", "rules.json", "rules.png", "rules.svg", "sweep"}
    assert {path.name for path in (here / "out").iterdir()} == names
    assert made(*command) == text
    assert json.loads(made(*command, "--json")) == record
    made("report", "out", "-o", "page.html", "--quiet")
    assert record["answer"] in (here / "page.html").read_text()
    assert "bfreplay runs ./out" in CliRunner().invoke(main, ["runs", "."]).output
    assert "not a rules folder" in CliRunner().invoke(main, [*COMMAND, "--out", "out/sweep"]).stderr


def test_the_help_says_that_no_product_publishes_costs():
    assert "No product publishes how long a restart takes" in " ".join(made("compare", "rules", "--help").split())
