"""``bfreplay compare logs`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bfreplay import compare_logs
from bfreplay.cli import main

A = """time,node,state
2024-05-01T00:00:00Z,n1,busy
2024-05-01T00:00:00Z,n2,idle
2024-05-01T00:10:00Z,n1,idle
2024-05-01T00:30:00Z,n2,planned
2024-05-01T00:40:00Z,n2,busy
2024-05-01T01:00:00Z,n1,busy
"""
B = A.replace("00:10:00", "00:10:01").replace("2024-05-01T00:30:00Z,n2,planned\n", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(A)
    (tmp_path / "b.csv").write_text(B)
    return tmp_path


def _compare(*words: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def test_a_person_reads_the_agreement_first_then_the_rules(folder):
    result = _compare("logs", folder / "a.csv", folder / "b.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{compare_logs(folder / 'a.csv', folder / 'b.csv')}\n"
    assert result.stdout.startswith("The two logs agree in 99.9 % of node-time on which nodes are idle, planned")
    for words in ("polling", "planned", "Longest span of each rule", "10 min", str(folder / "b.csv")):
        assert words in result.stdout


def test_json_is_the_dictionary(folder):
    result = _compare("logs", folder / "a.csv", folder / "b.csv", "--json")
    assert json.loads(result.stdout) == compare_logs(folder / "a.csv", folder / "b.csv").to_dict()


def test_every_option_reaches_the_comparison(folder):
    window = ("--window", "2024-05-01T00:05", "2024-05-01T00:35")
    options = ("--tolerance", "500ms", "--nodes", "1", "--json", *window)
    assert "is no length of time" in _compare("logs", folder / "a.csv", folder / "b.csv", *options).stderr
    options = ("--tolerance", "0.5s", *options[2:])
    document = json.loads(_compare("logs", folder / "a.csv", folder / "b.csv", *options).stdout)
    assert document["tolerance_s"] == 0.5
    assert document["window"] == {"start": "2024-05-01T00:05:00Z", "end": "2024-05-01T00:35:00Z"}
    assert [(node["node"], node["node_us"]) for node in document["worst_nodes"]] == [("n2", 300_000_000)]
    assert {rule["rule"]: rule["node_us"] for rule in document["rules"] if rule["node_us"]} == {
        "planned": 300_000_000,
        "other": 1_000_000,
    }


def test_logs_that_cannot_be_compared_are_refused_with_exit_code_2(folder):
    (folder / "later.csv").write_text(A.replace("2024", "2025"))
    (folder / "other.csv").write_text(A.replace("n1", "n1.hpc").replace("n2", "n2.hpc"))
    (folder / "empty.csv").write_text("")
    for name, says in (
        ("later.csv", "no time in common"),
        ("other.csv", "--node-names short-lower"),
        ("empty.csv", "empty"),
        ("missing.csv", "there is no such file"),
    ):
        result = _compare("logs", folder / "a.csv", folder / name)
        assert (result.exit_code, result.stdout) == (2, "")
        assert says in " ".join(result.stderr.split())
        assert "Traceback" not in result.output


def test_who_leaves_logs_out_is_told_and_folders_are_runs(folder):
    words = " ".join(_compare(folder / "a.csv", folder / "b.csv").stderr.replace("│", "").split())
    assert "compare logs /" in words
    assert "compare runs" in _compare(folder, folder).stderr
    assert "Did you mean" not in _compare("nothing-like-it").stderr


def test_help_shows_defaults_and_examples():
    text = _compare("logs", "--help").output
    for word in ("--tolerance", "[default: 2s]", "--nodes", "[default: 5]", "--window", "followed.csv"):
        assert word in text
    assert "logs" in _compare("--help").output
