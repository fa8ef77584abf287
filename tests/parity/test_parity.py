"""The comparison with the published systems: how figures are compared, a changed record, and the page."""

import gzip
import importlib
import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from bfreplay.errors import InputError
from bfreplay.systems.elasticflow.published import themis
from tests.conftest import REPOSITORY
from tests.parity import elasticflow, print_table
from tests.parity.comparison import (
    ANY,
    EXACT,
    ROUNDING,
    Comparison,
    Reason,
    Table,
    Tally,
    Tolerance,
    difference,
    printed,
)
from tests.parity.parts import SYSTEMS, table_of

PAGE = REPOSITORY / "docs" / "parity.md"


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


def unexplained(folder: Path, system: str, part: str) -> list[str]:
    """Items of a part that differ without a known reason."""
    table = Table()
    SYSTEMS[system].PARTS[part](table, folder)
    return [f"{row.what}: {item}" for row, tally in table.tallies.items() for item in tally.unexplained]


@pytest.mark.thorough
def test_the_page_has_the_table_and_the_named_differences_of_all_records(shared):
    tables = {system: table_of(shared, system) for system in SYSTEMS}
    assert not any(tally.has_failed for table in tables.values() for tally in table.tallies.values())
    page = PAGE.read_text()
    # the digits of rounding may be others on another machine
    rows = re.compile(r"^\| (.+?) \| (.+?) \| ([\d,]+) \| ([\d,]+) \| [\w-]+ \| ([\d,]*) \|$", re.MULTILINE)
    made = print_table.to_markdown(tables)
    assert len(rows.findall(made)) == sum(len(module.ROWS) for module in SYSTEMS.values())
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
    ("system", "record", "change", "part", "item"),
    [
        (
            "elasticflow",
            "unit_mss_n1g8_slot240.json.gz",
            one_more_second,
            "plans of unit_mss_n1g8_slot240",
            "unit_mss_n1g8_slot240, case 7: differs by ",
        ),
        ("bftrainer", "decisions.json.gz", a_better_objective, "decisions", " differs by 1.0e-07"),
        ("bftrainer", "replay-G1.json.gz", other_samples, "replay G1", "G1, row 5: Thr differs by 1.0e+01"),
        (
            "gavel",
            "simulations/quirk_stall.json.gz",
            another_worker,
            "simulations of quirk_stall",
            ", round 2: type, nodes, steps not the same",
        ),
        (
            "elasticflow",
            "small_n1g8.json.gz",
            another_gpu,
            "run n1g8_syn10tight/gandiva",
            "n1g8_syn10tight/gandiva, job",
        ),
        pytest.param(
            "shockwave",
            "planner/solves_first12_4gpus_tacc.json.gz",
            another_target,
            "plans of first12",
            "finish target differs by ",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_changed_record_is_named_by_its_item_and_figure(changed, system, record, change, part, item):
    (text,) = unexplained(changed(system, record, change), system, part)
    assert item in text


def test_a_record_that_stops_the_repetition_is_a_difference(changed):
    def without_decision(replay):
        del replay["decisions"][3]

    folder = changed("bftrainer", "replay-G1.json.gz", without_decision)
    (text,) = unexplained(folder, "bftrainer", "replay G1")
    assert "idle nodes: G1: InputError: " in text
    assert "KeyError" in text


def test_without_records_the_table_is_not_printed_and_the_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BFREPLAY_SHARED", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("sys.argv", ["print_table"])
    with pytest.raises(SystemExit, match=r"elsewhere \(set BFREPLAY_SHARED"):
        print_table.main()


def test_without_the_solver_of_the_published_themis_its_runs_are_named_as_not_compared(monkeypatch):
    monkeypatch.setattr(themis, "missing_solver", lambda: "ecos is not installed")
    try:
        without = importlib.reload(elasticflow)
        assert "Runs of Themis are not compared: ecos is not installed" in without.COUNTS.notes
        assert not any("themis" in part for part in without.PARTS)
        assert any("gandiva" in part for part in without.PARTS)
    finally:
        monkeypatch.undo()
        importlib.reload(elasticflow)


# --- how differences are measured and named


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
    row, table = Comparison("things", Tolerance(1e-6), notes=["Some are not recorded."]), Table()
    half = Reason("Half is missing.", Tolerance(0.25))
    table.compare_all(row, "thing", [1.0, 2.0, 3.0], [1.0 + 1e-7, 2.5, 4.5], {"thing 1": half, "thing 2": half})
    table.compare_all(row, "late", {"a": 1}, {"b": 1})
    with table.attempt(row, "broken"):
        raise InputError("no such node")
    tally = table.tallies[row]
    assert (tally.n, tally.n_equal, tally.n_named, tally.has_failed) == (6, 1, 1, True)
    assert tally.differences == {"Half is missing.": 1}
    assert [each.partition(" ")[0] for each in tally.unexplained] == ["thing", "late", "late", "broken:"]
    assert tally.digits == 7


@pytest.mark.parametrize(
    ("figure", "recorded", "agrees"),
    [
        ("exact", 24_197.423, True),
        ("exact", 24_197.423 * 1.004, False),
        ("exact", 24_197.423 * (1 + 1e-8), False),
        ("percent", 5.0, True),
        ("percent", 5.01, False),
        ("whole", 4, False),
        ("any", 7.0, True),
    ],
)
def test_every_figure_has_a_tolerance_of_its_own(figure, recorded, agrees):
    row, table = Comparison("runs", {"exact": ROUNDING, "percent": printed(2), "whole": EXACT, "any": ANY}), Table()
    ours = {"exact": 24_197.423, "percent": 4.996, "whole": 3, "any": 1.0}
    table.compare(row, "run", ours, {**ours, figure: recorded})
    assert table.tallies[row].has_failed is not agrees
    assert [figure in item for item in table.tallies[row].unexplained] == [True] * (not agrees)


def test_a_reason_explains_the_figures_that_it_names_up_to_their_tolerances():
    row = Comparison("runs", {"makespan": ROUNDING, "JCT": ROUNDING})
    known = Reason("Plans are not unique.", {"makespan": Tolerance(0.05)})
    for makespan, jct, n_named in ((104.0, 10.0, 1), (106.0, 10.0, 0), (100.0, 10.1, 0)):
        table = Table()
        ours, recorded = {"makespan": makespan, "JCT": jct}, {"makespan": 100.0, "JCT": 10.0}
        table.compare(row, "run", ours, recorded, known)
        assert table.tallies[row].n_named == n_named
        assert table.tallies[row].has_failed is (n_named == 0)


def test_other_figures_than_those_of_the_row_are_an_error_in_the_comparison():
    with pytest.raises(ValueError, match="run: other figures than makespan"):
        Table().compare(Comparison("runs", {"makespan": EXACT}), "run", {"end": 1.0}, {"end": 1.0})


def test_a_row_that_compares_nothing_has_failed():
    assert Tally().has_failed


@pytest.mark.parametrize(("largest", "digits"), [(0.0, None), (1e-9, 9), (9.9e-10, 9), (1.01e-9, 8), (0.5, 0)])
def test_digits_are_those_to_which_all_agree(largest, digits):
    assert Tally(1, 1, largest).digits == digits


def test_the_table_shows_how_much_agrees_and_why_the_rest_differs():
    ends, rounds = Comparison("jobs: ends", ROUNDING, notes=["Some are not recorded."]), Comparison("rounds", EXACT)
    gavel, shockwave = Table(), Table()
    gavel.tallies[ends] = Tally(1200, 1190, 1e-7)
    gavel.of(ends).differences["They round."] = 3
    gavel.of(ends).unexplained.extend(["job 1"] * 7)
    gavel.add(gavel)
    shockwave.tallies[rounds] = Tally(5, 5)
    page = print_table.to_markdown({"gavel": gavel, "shockwave": shockwave})
    assert "| gavel | jobs: ends | 2,380 | 2,400 | 7 | 6 |" in page
    assert "| shockwave | rounds | 5 | 5 | all |  |" in page
    assert "- *gavel*: 6 named: They round." in page
    assert "- *gavel*: Some are not recorded." in page
    assert "2,385 of 2,405 agree, 6 differ for a named reason: 1 of 2 rows FAILED." in page
