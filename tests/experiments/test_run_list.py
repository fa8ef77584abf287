"""The list of the runs in a folder."""

from __future__ import annotations

import shutil

import pytest

import bfreplay
from bfreplay.errors import InputError
from bfreplay.experiments.run_list import render
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.report.page.run_list_page import write_run_list
from tests.experiments.run_comparison.little_runs import endless_jobs, run, two_hours
from tests.report.page.read_page import ReadPage


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four runs, one of them nested and one of another policy, and two damaged copies."""
    place = tmp_path_factory.mktemp("many")
    for name, policy, more in (
        ("a", BFTrainerPolicy(120.0), {}),
        ("b", BFTrainerPolicy(30.0), {}),
        ("sweep/runs/c", BFTrainerPolicy(120.0), {"max_parallel": 1}),
        ("equal", EqualSharePolicy(), {}),
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        run(two_hours(), endless_jobs(), policy, out=place / name, **more)
    for name, file in (("no-record", "run.json"), ("cut", "session.json")):
        shutil.copytree(place / "a", place / name)
        (place / name / file).unlink()
    (place / "notes").mkdir()
    return place


@pytest.fixture(scope="module")
def listed(folder):
    return bfreplay.list_runs(folder)


def test_runs_are_found_at_any_depth_and_damaged_ones_are_not_hidden(listed, folder):
    assert [each.name for each in listed] == ["a", "b", "cut", "equal", "no-record", "sweep/runs/c"]
    assert {each.name: each.error for each in listed if each.error} == {
        "cut": "this is not a run folder: it has no session.json",
        "no-record": "this is not a run folder: it has no run.json",
    }
    assert repr(listed) == f"<RunList: 6 runs in {folder}, 2 damaged>"
    assert repr(listed[2]) == "<ListedRun: cut, damaged: this is not a run folder: it has no session.json>"


def test_the_runs_of_a_finish_are_listed_on_their_own(folder, tmp_path):
    shutil.copytree(folder / "a", tmp_path / "finish" / "starts" / "runs" / "c")
    (tmp_path / "finish" / "finish.json").touch()
    with pytest.raises(InputError, match=f"fix: +bfreplay runs {tmp_path}/finish"):
        bfreplay.list_runs(tmp_path)
    shutil.copytree(folder / "a", tmp_path / "a")
    assert [each.name for each in bfreplay.list_runs(tmp_path)] == ["a"]
    assert f"bfreplay runs {tmp_path}/finish" in render(bfreplay.list_runs(tmp_path))
    assert [each.name for each in bfreplay.list_runs(tmp_path / "finish")] == ["starts/runs/c"]


def test_a_run_without_a_table_or_with_a_changed_one_is_damaged(folder, tmp_path):
    for name in ("cut-off", "missing"):
        shutil.copytree(folder / "a", tmp_path / name)
    jobs = tmp_path / "cut-off" / "jobs.parquet"
    jobs.write_bytes(jobs.read_bytes()[:-1])
    (tmp_path / "missing" / "pool.parquet").unlink()
    assert {each.name: each.error for each in bfreplay.list_runs(tmp_path)} == {
        "cut-off": "jobs.parquet: the file is damaged, was changed, or belongs to another run",
        "missing": "pool.parquet is missing",
    }


def test_an_option_that_another_policy_does_not_have_is_no_difference(listed):
    assert listed.options == {
        "policy.name": ["bftrainer", "bftrainer", "equal-share", "bftrainer"],
        "max_parallel": [10, 10, 10, 1],
        "policy.t_fwd_s": [120.0, 30.0, None, 120.0],
    }


def test_the_table_has_a_row_a_run_and_the_metrics_that_differ(listed):
    lines = render(listed).splitlines()
    assert lines[0].split() == ["run", "made", "(UTC)", "policy.name", "max_parallel", "policy.t_fwd_s", "samples"]
    assert lines[1].split()[0] == "a"
    assert lines[1].split()[3:6] == ["bftrainer", "10", "120"]
    assert lines[3].split() == ["cut", "damaged"]
    assert "6 runs, 2 damaged." in lines
    assert "cut: this is not a run folder: it has no session.json" in lines


def test_a_terminal_gets_the_columns_that_fit_and_the_names_of_the_others(listed):
    whole, narrow = render(listed).splitlines(), render(listed, 60).splitlines()
    assert max(map(len, whole)) > 60 >= max(len(line) for line in narrow[: len(listed)])
    assert render(listed, 10_000).splitlines()[0] == whole[0]
    named = next(line for line in narrow if "in --html and --json" in line)
    assert all(
        name in whole[0] and name not in narrow[0] for name in named.partition(": ")[2].split(", ") if name != "..."
    )


def test_a_data_frame_and_json_have_every_metric(listed):
    frame = listed.to_frame()
    assert frame["name"].tolist() == [each.name for each in listed]
    assert frame["error"].notna().sum() == 2
    assert frame["samples"].notna().sum() == 4
    (first, *_, last) = listed.to_json()
    assert first["options"] == {"policy.name": "bftrainer", "max_parallel": 10, "policy.t_fwd_s": 120.0}
    assert first["metrics"]["samples"] == listed[0].run.summary.ledger.samples
    assert last["name"] == "sweep/runs/c"


def test_the_page_links_to_runs_and_reports(listed, folder, tmp_path):
    without = write_run_list(listed, folder / "plain.html").read_text()
    assert ReadPage(without).tables["runs"].columns[:2] == ["run", "made"]
    (folder / "b.html").touch()
    page = write_run_list(listed, folder / "list <&>.html").read_text()
    table = ReadPage(page).tables["runs"]
    assert table.columns[:3] == ["run", "report", "made"]
    assert len(table.rows) == 6
    assert '<a href="sweep/runs/c">sweep/runs/c</a>' in page
    assert '<a href="b.html">report</a>' in page
    assert 'class="sortable"' in page
    assert "it has no run.json" in page


def test_logs_of_one_name_and_other_contents_are_told_apart(tmp_path):
    for name, log in (("a", two_hours()), ("b", two_hours().between(0, 3_600_000_000))):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "log.parquet"
        bfreplay.write_events(log, file)
        run(bfreplay.load_events(file), endless_jobs(), out=tmp_path / name / "run")
    logs = bfreplay.list_runs(tmp_path).options["log"]
    assert len(set(logs)) == 2
    assert all(each.startswith("log.parquet (") for each in logs)


def test_one_run_is_a_list_as_well(folder):
    (only,) = bfreplay.list_runs(folder / "a")
    assert only.name == "a"
    assert "samples" in render(bfreplay.list_runs(folder / "a"))


@pytest.mark.parametrize(
    ("name", "words"), [("notes", "the folder has no run in it"), ("none", "the folder does not exist")]
)
def test_a_folder_without_runs_is_refused(folder, name, words):
    with pytest.raises(InputError, match=words):
        bfreplay.list_runs(folder / name)


def test_options_of_a_campaign_are_listed_key_by_key(tmp_path):
    for name, most in (("wide", 4), ("narrow", 2)):
        file = tmp_path / f"{name}.toml"
        file.write_text(
            f"[campaign]\nname = 'c'\ntrials = 3\n[trial]\nepochs = 2\nsamples_per_epoch = 9\nmin_nodes = 1\n"
            f"max_nodes = {most}\nscale_up_cost_s = 1\nscale_down_cost_s = 1\ncurve = 'm'\n[curves.m]\n"
            f"nodes = [0, 1, 4]\nvalues = [0.0, 1.0, 3.0]\n"
        )
        bfreplay.replay_log("sample", file, out=tmp_path / name, efficiency=False)
    run(two_hours(), endless_jobs(), BFTrainerPolicy(120.0), out=tmp_path / "of-a-job-set")
    options = bfreplay.list_runs(tmp_path).options
    assert options["jobs.models.m.max_nodes"] == [2, None, 4]
    assert {name for name in options if name.startswith(("jobs.", "policy."))} == {"jobs.models.m.max_nodes"}
