"""Parity with the published systems: all of the quick part agrees, and a changed record is found and named."""

import gzip
import json
import math
import re
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.errors import InputError
from bfreplay.experiments.parity import elasticflow
from bfreplay.experiments.parity.check import SYSTEMS, Check, SystemParity, data_folder, difference, parity
from bfreplay.experiments.parity.parity_text import render, to_json, to_markdown
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "benchmarks" / "RESULTS.md"


def run(*words: object):
    return CliRunner().invoke(main, ["parity", *map(str, words)])


def shown_checks(result) -> dict[str, dict]:
    document = json.loads(result.stdout)
    return {check["what"]: check for system in document["systems"] for check in system["checks"]}


@pytest.fixture
def changed(shared: Path, tmp_path: Path):
    """Makes a folder with the data of one system, of which one record is changed."""

    def make(system: str, record: str, change) -> Path:
        golden = tmp_path / "golden" / system
        golden.parent.mkdir(parents=True)
        shutil.copytree(shared / "golden" / system, golden)
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / system).symlink_to(shared / "data" / system)
        path = golden / record
        content = json.loads(gzip.decompress(path.read_bytes()))
        change(content)
        path.write_bytes(gzip.compress(json.dumps(content).encode()))
        return tmp_path

    return make


# --- the published systems


@pytest.mark.parametrize("system", SYSTEMS)
def test_all_of_the_quick_part_agrees_or_differs_for_a_named_reason(shared, system):
    result = run(system, "--quick", "--json", "--quiet", "--data", shared)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["failed"] is False
    ((found,),) = [[each] for each in document["systems"]]
    assert (found["system"], found["absent"], found["failed"]) == (system, None, False)
    for check in found["checks"]:
        assert check["n"] == check["n_equal"] + check["n_named"] > 0, check
        assert check["largest_difference"] <= check["tolerance"] < 0.01
        assert check["unexplained"] == []


@pytest.mark.thorough
def test_the_page_has_the_table_and_the_named_differences_of_a_whole_run(shared):
    systems = parity(shared)
    assert not any(each.has_failed for each in systems)
    page = PAGE.read_text().split("\n## Parity with the published systems\n")[1]
    # the digits of rounding may be others on another machine
    rows = re.compile(r"^\| (.+?) \| (.+?) \| ([\d,]+) \| ([\d,]+) \| [\w-]+ \| ([\d,]*) \|$", re.MULTILINE)
    made = to_markdown(systems)
    assert len(rows.findall(made)) == sum(len(each.checks) for each in systems)
    assert rows.findall(page) == rows.findall(made)
    assert [line for line in made.splitlines() if not line.startswith("|") and line not in page] == []


def one_more_second(plans):
    plans["cases"][7]["alloc"][0][2] += 1


def another_gpu(runs):
    runs["runs"]["n1g8_syn10tight/gandiva"]["per_job"][3][3] += 1


def a_better_objective(decisions):
    decisions[11]["optimal_objective"] *= 1 + 1e-7


def other_samples(replay):
    replay["step_log"]["Thr"][5] += 10


def another_worker(simulation):
    result = next(iter(simulation["results"].values()))
    task = next(iter(result["rounds"][2]["run"].values()))
    task["workers"][0] = 1_000


def another_target(solves):
    solves[4]["ftf_target"][1] *= 1.001


@pytest.mark.parametrize(
    ("system", "record", "change", "what", "named"),
    [
        ("elasticflow", "unit_mss_n1g8_slot240.json.gz", one_more_second, "minimum satisfactory shares", "case 7:"),
        ("bftrainer", "decisions.json.gz", a_better_objective, "optimal objective", "differs by 1.0e-07"),
        ("bftrainer", "replay-G1.json.gz", other_samples, "step logs", "G1, row 5: differs by"),
        ("gavel", "simulations/quirk_stall.json.gz", another_worker, "rounds of sim", ", round 2: not the same"),
        pytest.param(
            "elasticflow",
            "small_n1g8.json.gz",
            another_gpu,
            "jobs of these runs",
            "n1g8_syn10tight/gandiva, job",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "shockwave",
            "planner/solves_first12_4gpus_tacc.json.gz",
            another_target,
            "recorded plans:",
            "differs by ",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_changed_record_is_found_and_named(changed, system, record, change, what, named):
    folder = changed(system, record, change)
    result = run(system, "--quick", "--data", folder)
    assert result.exit_code == 1, result.output
    assert "1 of " in result.stdout.splitlines()[-1]
    assert "FAILED" in result.stdout.splitlines()[-1]
    (told,) = [line for line in result.stdout.splitlines() if "DIFFERS" in line]
    assert what in told
    assert ": 1 of" in told
    (item,) = [line for line in result.stdout.splitlines() if named in line and ":" in line and "DIFFERS" not in line]
    assert item.startswith("    ")


def test_a_record_that_stops_the_repetition_is_a_difference_and_the_others_are_compared(changed):
    def without_decision(replay):
        del replay["decisions"][3]

    result = run(
        "bftrainer", "--quick", "--json", "--data", changed("bftrainer", "replay-G1.json.gz", without_decision)
    )
    assert result.exit_code == 1
    checks = shown_checks(result)
    (log,) = [check for what, check in checks.items() if "step logs" in what]
    assert log["failed"]
    assert log["n_equal"] > 100
    assert log["unexplained"][0].startswith("G1: KeyError")


# --- data that are not there


def test_without_data_an_error_says_where_they_were_looked_for_and_how_to_name_them(tmp_path, monkeypatch):
    result = run("--data", tmp_path)
    assert result.exit_code == 2
    assert str(tmp_path) in result.stderr
    assert "--data FOLDER" in result.stderr
    assert "BFREPLAY_SHARED" in result.stderr
    monkeypatch.setenv("BFREPLAY_SHARED", str(tmp_path / "elsewhere"))
    with pytest.raises(InputError, match="elsewhere"):
        data_folder(None)


def test_the_variable_names_the_folder_and_without_it_the_one_beside_the_checkout_is_taken(tmp_path, monkeypatch):
    (tmp_path / "golden").mkdir()
    monkeypatch.setenv("BFREPLAY_SHARED", str(tmp_path))
    assert data_folder(None) == tmp_path
    monkeypatch.delenv("BFREPLAY_SHARED")
    beside = REPOSITORY.parent / "shared"
    if (beside / "golden").is_dir():
        assert data_folder(None) == beside
    else:
        with pytest.raises(InputError, match=re.escape(str(beside))):
            data_folder(None)


def test_an_absent_system_is_named_and_an_error_only_if_it_was_asked_for(tmp_path):
    (tmp_path / "golden" / "gavel").mkdir(parents=True)  # and no data/gavel
    result = run("--quick", "--data", tmp_path)
    assert result.exit_code == 0
    for system in SYSTEMS:
        assert f"{system}: not compared, its data are absent" in result.stdout
    asked = run("gavel", "--data", tmp_path)
    assert asked.exit_code == 2
    assert str(tmp_path / "data" / "gavel") in asked.stderr


def test_an_unknown_system_is_refused_with_those_that_there_are(tmp_path):
    (tmp_path / "golden").mkdir()
    result = run("gravel", "--data", tmp_path)
    assert result.exit_code == 2
    assert "'gravel'" in result.stderr
    assert "bftrainer, gavel, shockwave, elasticflow" in result.stderr


def test_help_has_examples_and_says_what_is_quick():
    text = " ".join(run("--help").stdout.split())
    for words in ("bfreplay parity --quick", "BFREPLAY_SHARED", "exit code 1", "less than a minute"):
        assert words in re.sub(r"[│ ]+", " ", text)


# --- how differences are measured and told


@pytest.mark.parametrize(
    ("ours", "recorded", "by"),
    [
        ([1, "a", None, True], [1, "a", None, True], 0.0),
        (1001.0, 1000.0, 1e-3),
        (0.25, 0.5, 0.25),  # absolute below 1
        (5, 4, math.inf),  # whole numbers
        (5.0, 4, 0.25),
        (None, 3.0, math.inf),
        (math.nan, 1.0, math.inf),
        (math.inf, math.inf, 0.0),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]}, 0.2),
        ({"a": 1}, {"b": 1}, math.inf),
        ([1, 2], [1], math.inf),
        ("4", 4.0, math.inf),
        (np.array([1.0, 10.0]), np.array([1.0, 8.0]), 0.25),
        (np.array([1.0]), np.array([1.0, 2.0]), math.inf),
        (np.array([np.nan]), np.array([1.0]), math.inf),
        (np.array([]), [], 0.0),
    ],
)
def test_a_difference_is_relative_and_infinite_where_it_is_not_one_of_numbers(ours, recorded, by):
    assert difference(ours, recorded) == pytest.approx(by)


def test_items_agree_differ_for_a_reason_or_without_one():
    check = Check("things", tolerance=1e-6, notes=["Some are not recorded."])
    check.compare_all("thing", [1.0, 2.0, 3.0], [1.0 + 1e-7, 2.5, 3.5], {"thing 1": "Half is missing."})
    check.compare_all("late", {"a": 1}, {"b": 1})
    with check.attempt("broken"):
        raise InputError("no such node")
    assert (check.n, check.n_equal, check.n_named, check.has_failed) == (6, 1, 1, True)
    assert check.differences == {"Some are not recorded.": 0, "Half is missing.": 1}
    assert [each.partition(":")[0] for each in check.unexplained] == ["thing 2", "late b", "late a", "broken"]
    assert check.digits == 7


def test_a_check_that_compares_nothing_has_failed():
    assert Check("nothing").has_failed


@pytest.mark.parametrize(("largest", "digits"), [(0.0, None), (1e-9, 9), (9.9e-10, 9), (1.01e-9, 8), (0.5, 0)])
def test_digits_are_those_to_which_all_agree(largest, digits):
    assert Check("x", 1, 1, 1.0, largest).digits == digits


def test_texts_show_what_agrees_what_differs_and_why():
    odd = [f"job {k}: not the same" for k in range(7)]
    checks = (Check("jobs: ends", 1200, 1190, 1e-6, 1e-7, {"They round.": 3}, odd), Check("rounds", 5, 5, seconds=1.25))
    systems = [SystemParity("gavel", checks), SystemParity("shockwave", absent="golden/shockwave")]
    text = render(systems)
    assert "  jobs: ends  1,190  1,200       7      3  0.0" in text
    assert "  rounds          5      5     all         1.2" in text
    assert "DIFFERS  jobs: ends: 7 of 1,200 without a known reason" in text
    assert "    and 2 more" in text
    assert "- 3 named: They round." in text
    assert "shockwave: not compared" in text
    assert text.endswith("1,195 of 1,205 agree, 3 differ for a named reason: 1 of 2 checks FAILED.")
    page = to_markdown(systems)
    assert "| gavel | jobs: ends | 1,190 | 1,200 | 7 | 3 |" in page
    assert "- *gavel*: 3 named: They round." in page
    document = json.loads(json.dumps(to_json(systems)))
    assert document["failed"]
    assert document["systems"][1]["absent"] == "golden/shockwave"
    assert document["systems"][0]["checks"][0]["differences"] == [{"reason": "They round.", "n": 3}]


def test_without_the_solver_of_the_published_themis_its_runs_are_named_as_not_compared(shared, monkeypatch):
    monkeypatch.setattr(elasticflow, "_plans", lambda data: (Check("shares"), Check("spare")))
    monkeypatch.setattr(elasticflow, "QUICK_FILES", ("small_n1g8",))
    monkeypatch.setattr(elasticflow, "missing_solver", lambda: "ecos is not installed")
    (accepted,) = islice(elasticflow.checks(shared, quick=True), 2, 3)
    assert accepted.differences["Runs of Themis are not compared: ecos is not installed"] == 0
    assert accepted.n == accepted.n_equal == 3 * 6  # three traces, each under the six other schedules
