"""Files that ``bfreplay jobs make`` writes say what was asked for."""

import re
import tomllib

import numpy as np
import pytest

from bfreplay.campaigns.campaign import Arrival
from bfreplay.campaigns.load import load_campaign
from bfreplay.campaigns.make_campaign import (
    arrival_of,
    curves_of_file,
    family_curves,
    find_curve,
    hpo_text,
    nas_text,
    node_counts,
    pruner_table,
    random_curves,
)
from bfreplay.campaigns.make_list import JobShape, jobs_of_list
from bfreplay.datasets.jobs.curve_points import toml_value
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve
from bfreplay.testing.job_source import drive

CURVES = {
    'odd name, with "marks" and ünicode': TabulatedCurve((0, 1, 8), (0.0, 1.5, 9.25)),
    "plain": TabulatedCurve((0, 2, 32), (0.0, 1 / 3, 4.0)),
}
SHAPE = JobShape(1, 16, 20.0, 10.0, 2.0)


def tables(**campaign):
    trial = {
        "epochs": 9,
        "samples_per_epoch": 500,
        "min_nodes": 1,
        "max_nodes": 8,
        "scale_up_cost_s": 3,
        "scale_down_cost_s": 2.5,
    }
    return {"campaign": {"trials": 7, "seed": 3, **campaign}, "trial": trial, "pruner": {"kind": "asha", "eta": 4}}


def read_back(folder, text):
    file = folder / "made.toml"
    file.write_text(text, encoding="utf-8")
    return load_campaign(file)


def test_an_hpo_file_read_back_is_what_was_asked_for(tmp_path):
    given = tables(parallel=2, arrival="every", every_s=30, higher_is_better=False, budget={"node_hours": 12.5})
    made = read_back(tmp_path, hpo_text(given, "plain", CURVES, tmp_path / "made.toml"))
    campaign = made.campaign
    assert (campaign.name, campaign.kind, campaign.trials, campaign.seed) == ("made", "hpo", 7, 3)
    assert (campaign.parallel, campaign.higher_is_better) == (2, False)
    assert campaign.arrival == Arrival("every", every_s=30)
    assert campaign.budget.node_hours == 12.5
    (model,) = campaign.models
    job = model.job
    assert (model.name, job.min_nodes, job.max_nodes, job.scale_up_cost_s, job.scale_down_cost_s) == (
        "plain",
        1,
        8,
        3.0,
        2.5,
    )
    assert job.throughput.table(32).tolist() == CURVES["plain"].table(32).tolist()
    assert made.describe()["pruner"] == {"kind": "asha", "eta": 4, "first_epochs": 1}


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_tables_that_are_commented_out_can_be_used(tmp_path, higher_is_better):
    given = {**tables(higher_is_better=higher_is_better, proposer="optuna"), "pruner": {"kind": "optuna"}}
    text = hpo_text(given, "plain", CURVES, tmp_path / "made.toml")
    head, *unused = re.split(r"^# \[(?=retries|scores|optuna)", text, flags=re.MULTILINE)
    assert len(unused) == 3
    used = re.sub(r"^# (?=\w+ = )", "", "".join(f"\n[{each}" for each in unused), flags=re.MULTILINE)
    assert read_back(tmp_path, head + used).describe()["retries"]["most"] == 2


def test_names_and_numbers_survive_whatever_they_are(tmp_path):
    made = read_back(tmp_path, nas_text(tables(name='a "b" \\ ü'), (), CURVES, 1, tmp_path / "made.toml"))
    assert made.campaign.name == 'a "b" \\ ü'
    assert [model.name for model in made.campaign.models] == list(CURVES)
    for model, curve in zip(made.campaign.models, CURVES.values(), strict=True):
        assert model.job.throughput.table(8).tolist() == curve.table(8).tolist()


def test_a_model_whose_curve_ends_early_has_its_own_bound(tmp_path):
    given = tables()
    given["trial"]["max_nodes"] = 20
    made = read_back(tmp_path, nas_text(given, (), CURVES, 1, tmp_path / "made.toml"))
    assert [model.job.max_nodes for model in made.campaign.models] == [8, 20]


def test_curves_can_be_chosen(tmp_path):
    made = read_back(tmp_path, nas_text(tables(), ("plain",), CURVES, 1, tmp_path / "made.toml"))
    assert [model.name for model in made.campaign.models] == ["plain"]
    with pytest.raises(InputError, match="no curve is called 'plan'"):
        nas_text(tables(), ("plan",), CURVES, 1, tmp_path / "made.toml")


def test_a_curve_may_be_a_law_or_points(tmp_path):
    for curve, rate in (("amdahl(rate_1=5, serial=0.1)", 5.0), ("0:0 1:7 8:9", 7.0)):
        made = read_back(tmp_path, hpo_text(tables(), curve, None, tmp_path / "made.toml"))
        assert made.campaign.models[0].job.throughput.table(8)[1] == rate


def test_of_several_curves_an_hpo_campaign_needs_one(tmp_path):
    with pytest.raises(InputError, match="one model") as caught:
        hpo_text(tables(), None, CURVES, tmp_path / "made.toml")
    assert "jobs make nas" in caught.value.fix


def test_made_up_curves_are_labelled_and_come_from_the_seed(tmp_path):
    text = nas_text(tables(), (), None, 4, tmp_path / "made.toml")
    assert text.count("made up, not measured") == 4
    assert text == nas_text(tables(), (), None, 4, tmp_path / "made.toml")
    assert text != nas_text(tables(seed=4), (), None, 4, tmp_path / "made.toml")
    laws = [each.curve for each in random_curves(40, 3)]
    assert random_curves(4, 3)[3].curve == laws[3]  # more models leave the first ones as they are
    peaks = [int(np.argmax(law.table(4_096))) for law in laws]
    assert min(peaks) < 100 < 500 < max(peaks)  # some fall soon, others scale
    assert "made up, not measured" in hpo_text(tables(), None, None, tmp_path / "made.toml")


def test_optuna_gets_a_search_space_to_begin_with(tmp_path):
    made = read_back(tmp_path, hpo_text(tables(proposer="optuna"), None, None, tmp_path / "made.toml"))
    drive(made, 0, 10**13)
    assert set(made.trials[0].params) == {"learning_rate", "batch_size"}


def test_an_error_of_what_is_made_names_table_and_key_but_no_file(tmp_path):
    given = tables(trials=0)
    with pytest.raises(InputError) as caught:
        hpo_text(given, None, None, tmp_path / "made.toml")
    assert (caught.value.file, caught.value.row, caught.value.column) == (None, "[campaign]", "trials")


@pytest.mark.parametrize("value", ["", 'a"b\\c\n', True, False, 3, -2, 1e-5, 1e300, 0.1, [1, 2.5], ["a", "b"]])
def test_values_are_written_as_toml_reads_them(value):
    read = tomllib.loads(f"x = {toml_value(value)}")["x"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("at-once", Arrival()),
        ("every:60", Arrival("every", every_s=60)),
        ("every:0.5", Arrival("every", every_s=0.5)),
        ("every:5min", Arrival("every", every_s=300)),
        ("poisson:12", Arrival("poisson", per_hour=12)),
    ],
)
def test_arrivals_are_spelt_in_one_word(text, wanted):
    assert arrival_of(text) == wanted


@pytest.mark.parametrize("text", ["", "every", "every:", "every:x", "at-once:3", "poisson:-1", "poison:3", "every:nan"])
def test_other_arrivals_are_refused(text):
    with pytest.raises(InputError):
        arrival_of(text)


def test_options_of_a_pruner_have_the_types_that_toml_gives_them():
    options = ["eta=4", "rate=0.5", "compare=last", 'name="x y"', "on=true"]
    assert pruner_table("p", options) == {
        "kind": "p",
        "eta": 4,
        "rate": 0.5,
        "compare": "last",
        "name": "x y",
        "on": True,
    }
    for option in ("eta", "=4", "eta="):
        with pytest.raises(InputError, match="no option of a pruner"):
            pruner_table("p", [option])


# plain lists


@pytest.mark.parametrize(("most", "wanted"), [(1, [1]), (2, [1, 2]), (8, [1, 2, 4, 8]), (20, [1, 2, 4, 8, 16, 20])])
def test_made_up_curves_have_points_up_to_the_end(most, wanted):
    assert list(node_counts(most)) == wanted
    assert family_curves(most)[0].curve.last_nodes == most


def test_a_list_has_so_many_jobs_of_each_curve():
    jobs = jobs_of_list(
        ["plain:2", "plain:1", f"{next(iter(CURVES))}:2"], CURVES, JobShape(2, 16, 3, 4, 1.5), "at-once", 0
    )
    assert [job.name.rpartition("-")[2] for job in jobs] == ["0000", "0001", "0002", "0000", "0001"]
    assert {(job.model, job.max_nodes) for job in jobs} == {("plain", 16), (next(iter(CURVES)), 8)}
    assert {job.submit_us for job in jobs} == {0}
    work = {job.model: job.work_samples for job in jobs}
    # one node has rate 1/6 (halfway to 1/3 on two), and 1.5
    assert work == {"plain": round(1.5 * 3600 / 6), next(iter(CURVES)): 1.5 * 3600 * 1.5}


def test_a_curve_without_a_rate_on_one_node_counts_from_min_nodes():
    flat = {"wide": TabulatedCurve((0, 1, 4), (0.0, 0.0, 9.0))}
    (job,) = jobs_of_list(["wide:1"], flat, JobShape(4, 4, 0, 0, 2.0), "at-once", 0)
    assert job.work_samples == round(2.0 * 3600 * 9 / 4)
    with pytest.raises(InputError, match="no rate"):
        jobs_of_list(["wide:1"], {"wide": TabulatedCurve((0, 4), (0.0, 0.0))}, SHAPE, "at-once", 0)


def test_jobs_that_come_one_by_one_are_mixed():
    names = ["plain:20", f"{next(iter(CURVES))}:20"]
    jobs = jobs_of_list(names, CURVES, SHAPE, "every:60", 0)
    assert [job.submit_us for job in jobs] == [60_000_000 * i for i in range(40)]
    assert len({job.model for job in jobs[:10]}) == 2
    assert [job.name for job in jobs] == [job.name for job in jobs_of_list(names, CURVES, SHAPE, "every:60", 0)]
    assert [job.name for job in jobs] != [job.name for job in jobs_of_list(names, CURVES, SHAPE, "every:60", 1)]


@pytest.mark.parametrize("item", ["plain", "plain:", ":3", "plain:0", "plain:x", "plain:1.5", "plan:3"])
def test_items_of_another_form_are_refused(item):
    with pytest.raises(InputError) as caught:
        jobs_of_list([item], CURVES, SHAPE, "at-once", 0)
    assert caught.value.column == "--job"
    assert caught.value.fix


def test_an_empty_list_and_no_work_are_refused():
    with pytest.raises(InputError, match="no jobs"):
        jobs_of_list([], CURVES, SHAPE, "at-once", 0)
    with pytest.raises(InputError, match="node_hours"):
        jobs_of_list(["plain:1"], CURVES, JobShape(1, 4, 0, 0, 0.0), "at-once", 0)


def test_curves_come_from_a_file(tmp_path):
    (tmp_path / "curves.csv").write_text("curve,nodes,value\na,0,0\na,4,3\n")
    assert find_curve("a", curves_of_file(tmp_path / "curves.csv")).table(4)[4] == 3.0
