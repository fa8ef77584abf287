"""Tuning from files to the record."""

import json
import sys

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import run_sweep
from bfreplay.experiments.tuning.tuner import tune
from bfreplay.result_folders.tuning import Tuning
from tests.experiments.sweep.small_sweeps import NOTING, Inline
from tests.experiments.tuning.little_logs import BORDER, END, START, write_log


def _tune(files, events="events.csv", **changed):
    given = {"t_fwd": [20, 300, "auto"], "max_parallel": [1, 3], "train": 2 / 3}
    return tune(files / events, files / "jobs.csv", **{**given, **changed})


def test_every_value_of_the_table_is_that_of_the_run_by_itself(files):
    found = _tune(files)
    table = found.table
    assert len(table) == 2 * 3 * 2
    for part, window in (("tuning", (START, BORDER)), ("validation", (BORDER, END))):
        for t_fwd, number in ((300.0, 1), ("auto", 3)):
            run = RunOptions(
                events=files / "events.csv",
                jobs=files / "jobs.csv",
                window=window,
                t_fwd=t_fwd,
                max_parallel=number,
                unlimited_work=True,
                efficiency=False,
            ).run()
            row = table[(table.part == part) & (table.t_fwd == t_fwd) & (table.max_parallel == number)].iloc[0]
            assert row["value"] == run.summary["ledger"]["samples"]
            assert row["rescales"] == run.summary["n_scale_ups"] + run.summary["n_scale_downs"]
            assert row["share_of_bound"] == run.summary["bound"]["share"]
    assert table.groupby("part")["share"].max().tolist() == [1.0, 1.0]


def test_the_parts_are_the_log(files):
    parts = _tune(files).record.to_json()["parts"]
    assert parts["tuning"]["window"] == [f"{START}Z", f"{BORDER}Z"]
    assert parts["validation"]["window"] == [f"{BORDER}Z", f"{END}Z"]
    assert parts["tuning"]["duration_s"] == 7200
    half = _tune(files, window=(START, BORDER), train=0.5).record.to_json()["parts"]
    assert half["validation"]["window"] == ["2024-05-01T01:00:00Z", f"{BORDER}Z"]


@pytest.mark.slow
def test_the_part_that_validates_never_decides(files):
    """Whatever the second part is, all but what is said of it stays the same."""
    write_log(files / "calm.csv", late=lambda minute: 60)
    write_log(files / "wild.csv", late=lambda minute: 1)
    calm, wild = _tune(files, "calm.csv"), _tune(files, "wild.csv")
    assert calm.record["parts"]["validation"]["value"] != wild.record["parts"]["validation"]["value"]
    for key in ("recommended", "columns", "grid"):
        assert calm.record[key] == wild.record[key]
    assert calm.record["parts"]["tuning"] == wild.record["parts"]["tuning"]
    assert calm.record["validation"] != wild.record["validation"]


def test_the_part_that_is_tuned_on_does_decide(files):
    """A node that flaps each minute is not worth a rescale; one that stays is."""
    write_log(files / "wild.csv", first=1)
    assert _tune(files).record["columns"] != _tune(files, "wild.csv").record["columns"]


def test_own_work_is_measured_by_when_it_is_done_where_all_is_done(files):
    found = _tune(files, unlimited_work=False)
    assert {part["measure"] for part in found.record["parts"].values()} == {"finish"}
    table = found.table
    tuned = table[table.part == "tuning"].set_index(["t_fwd", "max_parallel"])
    run = RunOptions(
        events=files / "events.csv", jobs=files / "jobs.csv", window=(START, BORDER), t_fwd=20, max_parallel=3
    ).run()
    assert tuned.loc[(20.0, 3), "value"] == pytest.approx(
        (run.summary["last_finish_us"] - run.record["config"]["window_start_us"]) / 1e6
    )
    best = tuned["value"].min()
    assert tuned["share"].tolist() == pytest.approx((best / tuned["value"]).tolist())


def test_own_work_that_is_not_all_done_is_measured_by_samples(files):
    jobs = (files / "jobs.csv").read_text().replace(",20000,", ",1e9,")
    (files / "jobs.csv").write_text(jobs)
    assert {part["measure"] for part in _tune(files, unlimited_work=False).record["parts"].values()} == {"samples"}


def test_the_curve_is_that_of_the_recommended_number_unless_another_is_asked_for(files):
    found = _tune(files)
    row = found.table.set_index(["part", "max_parallel", "t_fwd"])["share"]
    mine = found.curve()
    assert [point.t_fwd for point in mine] == [20.0, 300.0, "auto"]
    assert mine[0].share == row["tuning", found.recommended.max_parallel, 20.0]
    assert found.curve(1, "validation")[1].share == row["validation", 1, 300.0]
    with pytest.raises(InputError, match="max_parallel"):
        found.curve(7)
    with pytest.raises(InputError, match="part"):
        found.curve(1, "other")


@pytest.mark.thorough
def test_a_second_time_nothing_runs_again_and_more_values_run_alone(files, monkeypatch):
    (files / "noting.py").write_text(NOTING)
    monkeypatch.syspath_prepend(str(files))
    monkeypatch.delitem(sys.modules, "noting", raising=False)  # the one of another test
    given = {"policy": "noting:Noting", "bound": False, "t_fwd": [20, 60], "max_parallel": [1], "out": files / "out"}
    first = _tune(files, **given)
    assert (files / "begun.txt").read_text().count("\n") == 4
    before = (files / "out" / "tuning.json").read_bytes()
    assert _tune(files, **given).record == first.record
    assert (files / "begun.txt").read_text().count("\n") == 4
    assert (files / "out" / "tuning.json").read_bytes() == before
    _tune(files, **{**given, "t_fwd": [20, 60, 90]})
    assert (files / "begun.txt").read_text().count("\n") == 6


def test_a_run_that_fails_is_an_error_that_says_which_and_may_be_tried_again(files, monkeypatch):
    (files / "noting.py").write_text(NOTING)
    monkeypatch.syspath_prepend(str(files))
    monkeypatch.delitem(sys.modules, "noting", raising=False)
    given = {"policy": "noting:Noting", "bound": False, "t_fwd": [20, 60], "max_parallel": [1], "out": files / "out"}
    (files / "fail-60").touch()
    with pytest.raises(BfreplayError, match=r"2 of 4 runs failed(.|\n)*no luck with 60"):
        _tune(files, **given)
    assert not (files / "out" / "tuning.json").exists()
    (files / "fail-60").unlink()
    assert "T_fwd changes nothing here" in _tune(files, **given).warnings[1]


def test_a_folder_is_read_again(files):
    found = _tune(files, out=files / "out")
    again = Tuning.load(files / "out")
    assert again == found
    assert again.record.to_json() == json.loads((files / "out" / "tuning.json").read_text())
    assert repr(again).startswith("<Tuning: Use --t-fwd")
    html = again._repr_html_()
    assert f"<b>{again.answer[0]}</b> {again.folder}" in html
    assert f"max_parallel</th><td>{again.recommended.max_parallel}</td>" in html
    assert html.count("<p>Warning: ") == len(again.warnings)


def test_no_path_of_this_machine_is_in_the_record(files):
    assert str(files) not in json.dumps(_tune(files).record.to_json())


def test_without_a_folder_nothing_is_left(files, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(files / "tmp"))
    (files / "tmp").mkdir()
    assert _tune(files).folder is None
    assert [*(files / "tmp").iterdir()] == []


def test_a_folder_of_something_else_is_left_alone(files):
    (files / "mine").mkdir()
    (files / "mine" / "notes.txt").touch()
    with pytest.raises(OutputExistsError, match="not a tuning folder"):
        _tune(files, out=files / "mine")


def test_jobs_that_never_fit_are_refused(files):
    (files / "jobs.csv").write_text(
        "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\nwide,4,4,1,1,9,0:0 4:10\n"
    )
    with pytest.raises(InputError, match="no job processed anything"):
        _tune(files)


def test_a_part_without_idle_nodes_cannot_validate(files):
    (files / "first.csv").write_text(f"time,node,idle\n{START},n1,true\n{BORDER},n1,false\n{END},n1,true\n")
    found = _tune(files, "first.csv", train=0.7)
    assert found.record["validation"] is None
    assert "so its value is unknown" in found.answer[0]


def test_a_campaign_needs_work_that_ends(files):
    made = CliRunner().invoke(main, ["jobs", "make", "hpo", "-o", "campaign.toml", "--trials", "4"])
    assert made.exit_code == 0, made.output
    with pytest.raises(InputError, match="--own-work"):
        tune("events.csv", "campaign.toml")
    found = tune("events.csv", "campaign.toml", unlimited_work=False, t_fwd=[60], max_parallel=[2, 9])
    assert found.record["grid"]["max_parallel"] == [2, 9]
    assert found.record["inputs"]["n_jobs"] is None  # how many jobs there will be, nobody knows


@pytest.mark.slow
def test_a_note_says_that_more_jobs_without_end_are_other_jobs(files):
    assert any("the first N" in note for note in _tune(files).record["notes"])
    assert not any("the first N" in note for note in _tune(files, max_parallel=[2]).record["notes"])
    assert not any("the first N" in note for note in _tune(files, unlimited_work=False).record["notes"])


def test_a_dask_scheduler_needs_a_folder_that_its_workers_see(files):
    with pytest.raises(InputError, match="--out"):
        _tune(files, scheduler="tcp://127.0.0.1:1")


def test_a_folder_of_something_else_with_a_sweep_in_it_is_left_alone(files):
    (files / "mine" / "sweep").mkdir(parents=True)
    (files / "mine" / "thesis.tex").write_text("much work")
    with pytest.raises(OutputExistsError, match="not a tuning folder"):
        _tune(files, out=files / "mine")
    assert sorted(path.name for path in (files / "mine").iterdir()) == ["sweep", "thesis.tex"]


def test_one_that_does_not_come_to_its_end_leaves_no_record_of_an_earlier_one(files, monkeypatch):
    _tune(files, out=files / "out")
    assert (files / "out" / "tuning.json").exists()

    def killed(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bfreplay.experiments.tuning.tuner.complete_sweep", killed)
    with pytest.raises(KeyboardInterrupt):
        _tune(files, out=files / "out", t_fwd=[20])
    assert not (files / "out" / "tuning.json").exists()
    monkeypatch.undo()
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    assert _tune(files, out=files / "out", t_fwd=[20]).record["grid"]["t_fwd"] == [20.0]
