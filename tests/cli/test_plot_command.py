"""``bfreplay plot``: which pictures it writes, and what it says when it cannot."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bfreplay import replay_log
from bfreplay.cli import main
from bfreplay.policies import EqualSharePolicy
from bfreplay.report.figures.figure import FIGURES, find_figure
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """``run`` and ``other``: two jobs on two nodes for 60 s; ``empty``: no node is ever idle."""
    place = tmp_path_factory.mktemp("runs")
    events = log(2, [(10, 0, False), (20, 1, True), (30, 0, True)], 60, idle_first=[0])
    for name, up_s in (("run", 0.0), ("other", 2.0)):
        jobs = JobSet([replace(job("a", work=150.0, up_s=up_s), model="net"), job("b", submit_s=5, up_s=up_s)])
        replay_log(events, jobs, EqualSharePolicy(), out=place / name)
    replay_log(log(1, [], 60), JobSet([job("a")]), EqualSharePolicy(), out=place / "empty")
    return place


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: object):
    return CliRunner().invoke(main, ["plot", *map(str, words)])


def said(*words: object) -> str:
    done = call(*words)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*words: object) -> str:
    done = call(*words)
    assert done.exit_code == 2, done.output
    return re.sub(r"[\s│]+", " ", done.output)


def test_a_picture_is_written_here_unless_told_otherwise(folders, here):
    assert said("timeline", folders / "run") == "wrote timeline.png\n"
    assert (here / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert said("timeline", folders / "run", "-o", "x.svg") == "wrote x.svg\n"
    assert "<svg" in (here / "x.svg").read_text()
    assert [file.name for file in here.iterdir() if file.name not in ("timeline.png", "x.svg")] == []


def test_a_picture_that_is_there_is_replaced_only_when_asked(folders, here):
    (here / "timeline.png").write_bytes(b"mine")
    assert "exists already" in refused("timeline", folders / "run")
    assert (here / "timeline.png").read_bytes() == b"mine"
    said("timeline", folders / "run", "--force")
    assert (here / "timeline.png").read_bytes() != b"mine"


def test_several_runs_are_labelled_in_their_order_with_their_folders(folders, here):
    said("node-hours", folders / "run", folders / "other", "-o", "x.svg")
    drawn = (here / "x.svg").read_text()
    assert re.findall(r"<!-- ([AB] \(\w+\)) -->", drawn) == ["A (run)", "B (other)"]


def test_runs_with_nothing_to_show_are_left_out_and_named(folders, here):
    done = call("jobs", folders / "run", folders / "empty")
    assert done.exit_code == 0
    assert "Note: jobs: B (empty) is skipped: no job held a node" in done.output
    assert "Note" not in said("jobs", folders / "run", folders / "empty", "--quiet", "--force")
    assert "no job held a node" in refused("jobs", folders / "empty", "-o", "y.png")
    assert not (here / "y.png").exists()


@pytest.mark.slow
def test_all_figures_go_into_a_folder_and_those_left_out_are_noted(folders, here):
    output = said("all", folders / "run", "-o", "new/pictures")
    names = {file.stem for file in (here / "new/pictures").iterdir()}
    noted = set(re.findall(r"Note: no ([\w-]+)\.png", output))
    assert names | noted == set(FIGURES.built_in)
    assert not names & noted
    assert {"timeline", "jobs", "node-hours"} <= names
    of_empty = said("all", folders / "empty", "-o", "empty", "--svg")
    assert "Note: no jobs.svg: no job held a node" in of_empty
    assert (here / "empty/timeline.svg").exists()


def test_a_part_of_the_window_is_drawn(folders, here):
    for start, end in (("+10", "+40"), ("1970-01-01T00:00:10", "40")):
        said("jobs", folders / "run", "--window", start, end, "-o", "part.svg", "--force")
        drawn = (here / "part.svg").read_text()
        assert re.findall(r"<!-- (00:00:\d\d) -->", drawn)[0] == "00:00:10"
        assert re.findall(r"<!-- (00:00:\d\d) -->", drawn)[-1] == "00:00:40"


def test_a_window_that_cannot_be_is_refused(folders, here):
    of_run = ("timeline", folders / "run", "--window")
    assert "empty, or reaches outside it" in refused(*of_run, "+40", "+10")
    assert "empty, or reaches outside it" in refused(*of_run, "+40", "+61")
    assert "--window" in refused(*of_run, "noon", "+10")
    assert "is not over time" in refused("node-hours", folders / "run", "--window", "+0", "+10")
    assert "--window applies to one figure" in refused("all", folders / "run", "--window", "+0", "+10")


def test_names_are_listed_with_what_they_show(here):
    listed = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in said("--list").splitlines())
    assert listed.pop("sweep").startswith("Metrics of a sweep")
    assert listed == {name: find_figure(name).title for name in FIGURES.built_in}


def test_a_figure_of_another_package_that_is_broken_leaves_the_others_alone(monkeypatch, folders, here):
    broken = {"broken": "nowhere:NOTHING"}
    monkeypatch.setattr(
        "bfreplay.registry._entry_points_by_name", lambda group, path: broken if group == FIGURES.group else {}
    )
    few = replace(FIGURES, built_in={"timeline": FIGURES.built_in["timeline"]})
    monkeypatch.setattr("bfreplay.report.figures.figure.FIGURES", few)
    assert "broken    (the figure 'broken' cannot be imported" in said("--list")
    output = said("all", folders / "run", "-o", "pictures")
    assert "Note: no broken.png: the figure 'broken' cannot be imported" in output
    assert (here / "pictures/timeline.png").exists()


def test_what_is_no_figure_or_no_run_is_refused(folders, here, tmp_path):
    assert "did you mean 'timeline'?" in refused("time-line", folders / "run")
    assert "this is not a run folder" in refused("timeline", tmp_path / "nowhere")
    assert "another format" in refused("timeline", folders / "run", "-o", "x.jpg")
    assert "the folder of the output does not exist" in refused("timeline", folders / "run", "-o", "no/x.png")
    assert "--svg applies to 'all' only" in refused("timeline", folders / "run", "--svg")
    assert "Missing argument" in refused("timeline")
    (here / "file").write_text("mine")
    assert "the folder of the pictures is a file" in refused("all", folders / "run", "-o", "file")
    assert [file.name for file in here.iterdir()] == ["file"]


def test_a_folder_of_which_a_part_is_missing_is_refused(folders, here):
    shutil.copytree(folders / "run", here / "half")
    (here / "half" / "allocations.parquet").unlink()
    assert "the run has no table 'allocations'" in refused("timeline", here / "half")
    shutil.copytree(folders / "run", here / "cut")
    table = here / "cut" / "pool.parquet"
    table.write_bytes(table.read_bytes()[:100])
    assert "belongs to another run" in refused("timeline", here / "cut")
    shutil.copytree(folders / "run", here / "older")
    record = json.loads((here / "older" / "run.json").read_text())
    (here / "older" / "run.json").write_text(json.dumps(record | {"schema_version": 0}))
    assert "another schema version" in refused("timeline", here / "older")
    assert not (here / "timeline.png").exists()


@pytest.mark.parametrize("name", ["timeline", "all"])
def test_a_folder_that_is_damaged_is_refused_before_anything_is_drawn(folders, here, name):
    for table, column in (
        ("allocations", "count"),
        ("jobs", "model"),
        ("decisions", "n_idle"),
        ("timings", "decide_s"),
    ):
        damaged = here / f"{table}-{name}"
        shutil.copytree(folders / "run", damaged)
        file = damaged / f"{table}.parquet"
        pq.write_table(pq.read_table(file).drop_columns([column]), file)
        assert f"{table}.parquet" in refused(name, folders / "other", damaged, "-o", here / "pictures.png").replace(
            " ", ""
        )
    shutil.copytree(folders / "run", here / "record")
    record = json.loads((here / "record" / "run.json").read_text())
    del record["summary"]["ledger"]
    (here / "record" / "run.json").write_text(json.dumps(record))
    assert "run.json" in refused(name, here / "record", "-o", here / "pictures.png").replace(" ", "")
    assert not (here / "pictures.png").exists()


def test_names_of_folders_are_shown_as_they_are_and_long_ones_shortened(folders, here):
    odd, long = here / "a$\\foo$b", here / f"first-{'y' * 200}-last"
    shutil.copytree(folders / "run", odd)
    shutil.copytree(folders / "run", long)
    said("node-hours", odd, long, "-o", "x.svg")
    first, second = re.findall(r"<!-- ([AB] \(.+\)) -->", (here / "x.svg").read_text())
    assert first == "A (a$\\foo$b)"
    assert re.fullmatch(r"B \(first-y+…y+-last\)", second)
    assert len(second) < 50


def test_the_examples_of_the_help_are_commands():
    from bfreplay.commands.plot import plot

    examples = re.findall(r"bfreplay plot (.*)", plot.help or "")
    assert len(examples) >= 5
    for words in examples:
        context = plot.make_context("plot", words.split(), resilient_parsing=True)
        assert context.params["name"] in (None, "all", "sweep", *FIGURES.built_in)
