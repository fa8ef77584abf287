"""``bfreplay runs`` as a user types it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from tests.experiments.run_comparison.little_runs import endless_jobs, run, two_hours


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("two")
    for t_fwd in (30.0, 120.0):
        run(two_hours(), endless_jobs(), t_fwd=t_fwd, out=place / f"run-{t_fwd:g}")
    return place


def test_runs_are_listed_as_text_and_as_json(folder):
    done = CliRunner().invoke(main, ["runs", str(folder)])
    assert done.exit_code == 0, done.output
    assert "policy.t_fwd_s" in done.stdout
    document = json.loads(CliRunner().invoke(main, ["runs", str(folder), "--json"]).stdout)
    assert [each["options"] for each in document] == [{"policy.t_fwd_s": 120.0}, {"policy.t_fwd_s": 30.0}]


def test_the_page_is_replaced_only_when_asked(folder, tmp_path):
    page = tmp_path / "runs.html"
    command = ["runs", str(folder), "--html", str(page)]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert CliRunner().invoke(main, [*command, "--force"]).exit_code == 0


def test_what_is_no_page_is_refused(folder, tmp_path):
    refused = CliRunner().invoke(main, ["runs", str(folder), "--html", str(tmp_path / "runs.txt")])
    assert refused.exit_code == 2
    assert ".html" in refused.stderr
