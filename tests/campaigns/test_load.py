"""Campaign files: what they mean, and what a person reads who wrote a wrong one."""

import hashlib

import pytest

from bfreplay.campaigns.campaign import Arrival, Budget, Retries
from bfreplay.campaigns.load import is_campaign, load_campaign
from bfreplay.datasets import load_jobs
from bfreplay.errors import InputError
from bfreplay.testing.job_source import drive
from bfreplay.workload import Restart

CURVE = 'curve = "0:0 1:10 8:60"'
CAMPAIGN = "[campaign]\ntrials = 6\n"
TRIAL = f"""[trial]
epochs = 9
samples_per_epoch = 1000
min_nodes = 1
max_nodes = 8
scale_up_cost_s = 20
scale_down_cost_s = 10
{CURVE}
"""
LEAST = CAMPAIGN + TRIAL
CURVES = """[curves.small]
nodes = [0, 1, 8]
values = [0.0, 10.0, 60.0]
[curves.large]
nodes = [0, 2, 4]
values = [0.0, 3.0, 5.0]
"""
NAS = CAMPAIGN + 'kind = "nas"\n' + TRIAL.replace(CURVE, 'curve = ["small", "large"]').replace("= 8", "= 4") + CURVES
MODELS = (
    CAMPAIGN
    + 'kind = "nas"\n'
    + TRIAL.replace(CURVE, "")
    + '[[model]]\nname = "wide"\ncurve = "small"\n'
    + '[[model]]\nname = "deep"\ncurve = "large"\nmax_nodes = 4\nsamples_per_epoch = 500\nmin_nodes = 2\n'
    + CURVES
)
RED = r"\u001b[31mred"
SEARCH = "[search.lr]\nlow = 1e-5\nhigh = 0.1\nlog = true\n"


def file_of(folder, text, name="search.toml"):
    file = folder / name
    file.write_text(text)
    return file


def loaded(folder, text, **files):
    return load_campaign(file_of(folder, text), **files)


def refused(folder, text):
    file = file_of(folder, text)
    with pytest.raises(InputError) as caught:
        load_campaign(file)
    error = caught.value
    assert error.file == str(file)
    assert error.expected
    return error


# what a file means


def test_the_least_that_a_campaign_needs(tmp_path):
    made = loaded(tmp_path, LEAST).campaign
    assert (made.name, made.kind, made.trials, made.seed, made.parallel) == ("search", "hpo", 6, 0, None)
    assert (made.epochs, made.higher_is_better, made.start_after_s) == (9, True, 0)
    assert (made.arrival, made.budget, made.retries) == (Arrival(), Budget(), Retries())
    (model,) = made.models
    assert (model.name, model.samples_per_epoch, model.job.work_samples) == ("search", 1000.0, 9000.0)
    assert (model.job.min_nodes, model.job.max_nodes, model.job.weight) == (1, 8, 1.0)
    assert model.job.throughput.table(8)[[1, 8]].tolist() == [10.0, 60.0]


@pytest.mark.parametrize(
    ("text", "problem", "row"),
    [
        (LEAST.replace("trials", f'name = "{RED}"\ntrials'), "name has a line break", "[campaign]"),
        (
            LEAST.replace("trials", f'name = "{"x" * 243}"\ntrials'),
            "a trial name is unusable: it has 256",
            "[campaign]",
        ),
        (LEAST + f'[search."{RED}"]\nlow = 1\nhigh = 2\n', "a hyper-parameter name is unusable", f"[search.{RED}]"),
        (MODELS.replace('"wide"', f'"{RED}"'), "name has a line break", "[[model]] 1"),
    ],
)
def test_names_that_a_terminal_obeys_are_refused(tmp_path, text, problem, row):
    error = refused(tmp_path, text)
    assert problem in error.problem
    assert f"row:      {row}" in str(error).replace(r"\x1b", r"\u001b")


def test_every_key_reaches_its_place(tmp_path):
    text = (
        '[campaign]\nname = "n"\nkind = "hpo"\ntrials = 3\nseed = 5\nparallel = 2\narrival = "poisson"\nper_hour = 6\n'
        'start_after_s = 60\nhigher_is_better = false\nproposer = "random"\n'
        "[campaign.budget]\nnode_hours = 4\nsamples = 1e6\nhours = 5\nfailed_trials = 2\n"
        + TRIAL
        + 'weight = 2\ndeadline_after_s = 100\nmodel = "net"\nobjective_curve = "0:0 8:1"\n'
        '[retries]\nfailures_per_epoch = 0.1\nmost = 3\nfrom = "start"\n'
        "[scores]\nstart = 9\nworst = 5\nbest = 1\npace = [1, 2]\nnoise = 0.1\nreport_every_epochs = 2\n"
        '[pruner]\nkind = "asha"\neta = 2\nfirst_epochs = 2\n' + SEARCH
    )
    made = loaded(tmp_path, text)
    campaign = made.campaign
    assert campaign.arrival == Arrival("poisson", per_hour=6)
    assert campaign.budget == Budget(4, 1e6, 5, 2)
    assert campaign.retries == Retries(0.1, 3, "start")
    assert (campaign.seed, campaign.parallel, campaign.start_after_s, campaign.higher_is_better) == (5, 2, 60, False)
    assert campaign.report_every_epochs == 2
    job = campaign.models[0].job
    assert (job.weight, job.deadline_us, job.model) == (2.0, 100_000_000, "net")
    assert job.objective.table(8)[8] == 1.0
    said = made.describe()
    assert said["pruner"] == {"kind": "asha", "eta": 2, "first_epochs": 2}
    scores = said["scores"]
    assert [scores[key] for key in ("start", "worst", "best", "pace", "noise")] == [9, 5, 1, [1, 2], 0.1]
    assert scores["quality"] == "of the hyper-parameters"


def test_files_are_known_by_their_digests(tmp_path):
    curves = file_of(tmp_path, CURVES, "curves.toml")
    made = loaded(tmp_path, LEAST.replace(CURVE, 'curve = "small"'), curves=curves)
    assert [name for name, _ in made.sources] == ["search.toml", "curves.toml"]
    assert made.sources[1][1] == hashlib.sha256(curves.read_bytes()).hexdigest()
    assert made.campaign.models[0].name == "small"


def test_a_list_of_curves_is_a_model_each(tmp_path):
    made = loaded(tmp_path, NAS).campaign
    assert [(model.name, model.job.max_nodes) for model in made.models] == [("small", 4), ("large", 4)]


def test_a_model_has_what_the_trial_has_but_for_what_it_says_itself(tmp_path):
    wide, deep = loaded(tmp_path, MODELS).campaign.models
    assert (wide.name, wide.samples_per_epoch, wide.job.min_nodes, wide.job.max_nodes) == ("wide", 1000, 1, 8)
    assert (deep.name, deep.samples_per_epoch, deep.job.min_nodes, deep.job.max_nodes) == ("deep", 500, 2, 4)
    assert deep.job.work_samples == 4500.0


def test_the_model_may_be_a_hyper_parameter(tmp_path):
    text = MODELS.replace("[trial]\n", '[trial]\nmodel_choice = "searched"\n')
    driven = drive(loaded(tmp_path, text + '[search.model]\nchoices = ["deep"]\n'), 0, 10**13)
    assert {job.model for job in driven.submitted.values()} == {"deep"}
    error = refused(tmp_path, text + '[search.model]\nchoices = ["deep", "broad"]\n')
    assert "wide, deep" in error.expected
    assert refused(tmp_path, text).row == "[search.model]"


def test_a_curve_may_be_a_law(tmp_path):
    made = loaded(tmp_path, LEAST.replace(CURVE, 'curve = "amdahl(rate_1=10, serial=0.1)"'))
    assert made.campaign.models[0].job.throughput.table(8)[1] == 10.0
    assert "amdahl" in made.describe()["models"][0]["curve"]


def test_trials_without_search_have_no_hyper_parameters_and_with_it_their_own(tmp_path):
    plain, searched = loaded(tmp_path, LEAST), loaded(tmp_path, LEAST + SEARCH)
    for made in (plain, searched):
        drive(made, 0, 10**13)
    assert [trial.params for trial in plain.trials] == [{}] * 6
    rates = [trial.params["lr"] for trial in searched.trials]
    assert len(set(rates)) == 6
    assert all(1e-5 <= rate <= 0.1 for rate in rates)


def test_scores_follow_a_users_function(tmp_path, monkeypatch):
    (tmp_path / "own_scores.py").write_text("def score(number, params, epoch):\n    return number * epoch\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = loaded(tmp_path, LEAST + '[scores]\nfunction = "own_scores:score"\n', allow_code=True)
    drive(made, 0, 10**13)
    assert [trial.score for trial in made.trials] == [9.0 * number for number in range(6)]


def test_a_strangers_proposer_gets_the_setting_and_its_options(tmp_path, monkeypatch):
    (tmp_path / "strangers_proposer.py").write_text(
        "from bfreplay.campaigns.parts_of_file import RandomSearch\n"
        "class Mine(RandomSearch):\n"
        "    @classmethod\n"
        "    def from_campaign(cls, setting, options):\n"
        "        made = cls(None, setting.seed)\n"
        "        made.given = (setting.trials, setting.epochs, setting.higher_is_better, dict(options))\n"
        "        return made\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    text = LEAST.replace("[trial]", 'proposer = "strangers_proposer:Mine"\n[trial]') + "[proposer]\ngrid = 3\n"
    assert loaded(tmp_path, text, allow_code=True)._proposer.given == (6, 9, True, {"grid": 3})


@pytest.mark.parametrize("more", ["", '[pruner]\nkind = "optuna"\n'])
def test_an_optuna_table_makes_optuna_the_proposer_and_a_pruner_in_it_prunes(tmp_path, more):
    table = '[optuna]\nsampler = "random"\npruner = "median"\n' + more
    made = loaded(tmp_path, LEAST.replace("= 6", "= 20") + SEARCH + table)
    assert made._proposer is made._pruner
    drive(made, 0, 10**13)
    assert {trial.state for trial in made.trials} == {"finished", "pruned"}


@pytest.mark.parametrize(("given", "parallel"), [("", 10), ("parallel = 60\n", 60)])
def test_optuna_gets_ten_trials_in_flight_unless_told_otherwise(tmp_path, given, parallel):
    text = LEAST.replace("trials = 6\n", "trials = 60\n" + given) + SEARCH + '[optuna]\nsampler = "random"\n'
    assert loaded(tmp_path, text).campaign.parallel == parallel


@pytest.mark.parametrize("kind", ["none", "asha", "successive-halving", "median"])
def test_optuna_proposes_beside_every_pruner(tmp_path, kind):
    text = LEAST + SEARCH + f'[optuna]\nsampler = "random"\n[pruner]\nkind = "{kind}"\n'
    made = loaded(tmp_path, text)
    drive(made, 0, 10**13)
    assert len(made.trials) == 6
    assert all(trial.state and trial.params for trial in made.trials)


# what is a campaign


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.toml", LEAST, True),
        ("a.TOML", "# [campaign]\n  [ campaign ]\n", True),
        ("a.toml", "[campaign.budget]\nhours = 3\n", True),
        ("a.toml", "[campaigns]\n", False),
        ("a.toml", "# [campaign]\n[[job]]\n", False),
        ("a.csv", LEAST, False),
    ],
)
def test_a_campaign_is_told_from_a_job_set(tmp_path, name, text, wanted):
    assert is_campaign(file_of(tmp_path, text, name)) is wanted


def test_what_is_not_there_is_no_campaign(tmp_path):
    assert not is_campaign(tmp_path / "gone.toml")
    assert not is_campaign(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"[campaign]\n\xff\xfe\n")
    assert is_campaign(tmp_path / "bytes.toml")
    with pytest.raises(InputError, match="not UTF-8"):
        load_campaign(tmp_path / "bytes.toml")


# what is wrong, and where


def changed(old, new, text=LEAST):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "row", "column", "fix"),
    [
        (TRIAL, "[campaign]", None, "jobs make hpo"),
        (CAMPAIGN, "[trial]", None, "jobs make hpo"),
        (LEAST + "[prune]\n", None, "prune", "'pruner'"),
        (LEAST + "[[job]]\n", None, "job", "file of their own"),
        (changed("trials", "trails"), "[campaign]", "trails", "'trials'"),
        (changed("trials = 6", ""), "[campaign]", "trials", "add it"),
        (changed("trials = 6", "trials = 0"), "[campaign]", "trials", "1 or more"),
        (changed("trials = 6", 'trials = "6"'), "[campaign]", "trials", "without quotes"),
        (changed("trials = 6", "trials = 6.5"), "[campaign]", "trials", "whole"),
        (changed("trials = 6", "trials = 6\nseed = -1"), "[campaign]", "seed", "0 or more"),
        (changed("trials = 6", "trials = 6\nparallel = 0"), "[campaign]", "parallel", "1 or more"),
        (changed("trials = 6", 'trials = 6\nkind = "hop"'), "[campaign]", "kind", "'hpo'"),
        (changed("trials = 6", 'trials = 6\nhigher_is_better = "yes"'), "[campaign]", "higher_is_better", "true"),
        (changed("trials = 6", 'trials = 6\narrival = "every"'), "[campaign]", "every_s", "add every_s"),
        (changed("trials = 6", "trials = 6\nevery_s = 3"), "[campaign]", "every_s", "remove"),
        (changed("trials = 6", 'trials = 6\nproposer = "randon"'), "[campaign]", "proposer", "'random'"),
        (changed("trials = 6", 'trials = 6\nproposer = "optuna"'), "[campaign]", "proposer", "add one"),
        (changed("trials = 6", 'trials = 6\nproposer = ""'), "[campaign]", "proposer", "between the quotes"),
        (LEAST + SEARCH + '[optuna]\npruner = ""\n[pruner]\nkind = "optuna"\n', "[optuna]", "pruner", None),
        (changed("trials = 6", "trials = 6\nbudget = 3"), "[campaign.budget]", None, "[campaign.budget]"),
        (changed("[trial]", "[campaign.budget]\nhours = -2\n[trial]"), "[campaign.budget]", "hours", "> 0"),
        (changed("[trial]", "[campaign.budget]\nhour = 2\n[trial]"), "[campaign.budget]", "hour", "'hours'"),
        (changed("epochs = 9", ""), "[trial]", "epochs", "add it"),
        (changed("epochs = 9", "epochs = 0"), "[trial]", "epochs", "1 or more"),
        (changed("= 1000", "= -1000"), "[trial]", "samples_per_epoch", "> 0"),
        (changed("min_nodes = 1", "min_nodes = 9"), "[trial]", "min_nodes", "raise max_nodes"),
        (changed("min_nodes = 1", "nodes = 9"), "[trial]", "nodes", None),
        (changed("max_nodes = 8", "max_nodes = 9"), "[trial]", "curve", "lower max_nodes"),
        (changed("max_nodes = 8", ""), "[trial]", "max_nodes", "add it"),
        (changed("scale_up_cost_s = 20", "scale_up_cost_s = -20"), "[trial]", "scale_up_cost_s", "0 if none"),
        (changed(CURVE, ""), "[trial]", "curve", "add it"),
        (changed(CURVE, 'curve = "smal"') + CURVES, "[trial]", "curve", "'small'"),
        (changed(CURVE, 'curve = ["small", "large"]') + CURVES, "[trial]", "curve", 'kind = "nas"'),
        (changed(CURVE, CURVE + "\nweight = 0"), "[trial]", "weight", "above 0"),
        (changed(CURVE, CURVE + '\nmodel_choice = "turn"'), "[trial]", "model_choice", "'in-turn'"),
        (LEAST + "[retries]\nmost = 3\n", "[retries]", "failures_per_epoch", "add it"),
        (LEAST + "[retries]\nfailures_per_epoch = -1\n", "[retries]", "failures_per_epoch", ">= 0"),
        (LEAST + '[retries]\nfailures_per_epoch = 1\nfrom = "checkpiont"\n', "[retries]", "from", "'checkpoint'"),
        (LEAST + "[scores]\nworst = 0.99\n", "[scores]", "worst", "before training"),
        (LEAST + "[scores]\nstart = 3\nworst = 2\nbest = 1\n", "[scores]", "best", "higher_is_better"),
        (LEAST + "[scores]\npace = 3\n", "[scores]", "pace", None),
        (LEAST + "[scores]\nreport_every_epochs = 0\n", "[scores]", "report_every_epochs", "1 or more"),
        (LEAST + '[scores]\nfunction = "m:f"\nbest = 1\n', "[scores]", "best", "drop one"),
        (LEAST + '[scores]\nfunction = "no_such:f"\n', "[scores]", "function", "--allow-code"),
        (LEAST + '[pruner]\nkind = "succesive-halving"\n', "[pruner]", "kind", "'successive-halving'"),
        (LEAST + '[pruner]\nkind = "asha"\neta = 1\n', "[pruner]", "eta", "2 or more"),
        (LEAST + '[pruner]\nkind = "asha"\nfirst_epochs = 9\n', "[pruner]", "first_epochs", "lower first_epochs"),
        (LEAST + '[pruner]\nkind = "asha"\nrungs = 9\n', "[pruner]", "rungs", "remove"),
        (LEAST + '[pruner]\nkind = "optuna"\n', "[pruner]", "kind", "another pruner"),
        (LEAST + "pruner = 3\n", "[trial]", "pruner", "move it"),
        (LEAST + "[search.lr]\nlow = 3\nhigh = 1\n", "[search.lr]", "low", None),
        (LEAST + "[curves.a]\nnodes = [0]\n", "[curves.a]", None, None),
        (changed('"small", "large"', '"small", "lage"', NAS), "[trial]", "curve", "[curves.NAME]"),
        (NAS + '[[model]]\nname = "a"\n', "[[model]] 1 (a)", "curve", None),
        (changed('name = "deep"', 'name = "wide"', MODELS), "[[model]] 2", "name", "rename"),
        (changed('name = "deep"', "", MODELS), "[[model]] 2", "name", "add it"),
        (changed("max_nodes = 4", "max_nodes = 5", MODELS), "[[model]] 2 (deep)", "curve", "lower max_nodes"),
        (changed("max_nodes = 4", "max_node = 4", MODELS), "[[model]] 2", "max_node", "'max_nodes'"),
        (changed('kind = "nas"', 'kind = "hpo"', MODELS), "[[model]] 1", None, "move its keys"),
        (
            changed("[trial]", 'proposer = "random"\n[trial]') + SEARCH + "[optuna]\n",
            "[campaign]",
            "proposer",
            "drop [optuna]",
        ),
        (
            LEAST + SEARCH + '[optuna]\npruner = "median"\n[pruner]\nkind = "asha"\n',
            "[pruner]",
            "kind",
            'kind = "optuna"',
        ),
        (LEAST + SEARCH + '[optuna]\nsampler = "tep"\n', "[optuna]", "sampler", None),
        (LEAST + SEARCH + "[optuna]\n[proposer]\ngrid = 3\n", "[proposer]", "grid", "[optuna]"),
        (LEAST + "[proposer]\ngrid = 3\n", "[proposer]", "grid", "remove"),
    ],
)
def test_an_error_names_table_and_key_and_what_to_do(tmp_path, text, row, column, fix):
    error = refused(tmp_path, text)
    assert (error.row, error.column) == (row, column)
    if fix is not None:
        assert fix in error.fix


def test_what_is_no_toml_is_refused_with_its_line(tmp_path):
    assert "line 2" in refused(tmp_path, "[campaign]\ntrials = \n").problem
    with pytest.raises(InputError, match="no such file"):
        load_campaign(tmp_path / "gone.toml")


def test_a_curve_in_both_files_is_refused_unless_it_is_the_same(tmp_path):
    loaded(tmp_path, LEAST + CURVES, curves=file_of(tmp_path, CURVES, "curves.toml"))
    curves = file_of(tmp_path, CURVES.replace("60.0", "61.0"), "curves.toml")
    with pytest.raises(InputError, match="stands in the campaign and in the curves file"):
        loaded(tmp_path, LEAST + CURVES, curves=curves)


def test_a_campaign_given_as_a_job_set_is_told_where_it_belongs(tmp_path):
    (tmp_path / "campaign.toml").write_text(LEAST)
    with pytest.raises(InputError) as caught:
        load_jobs(tmp_path / "campaign.toml")
    assert caught.value.problem == "this is a campaign, not a job set"
    assert "bfreplay replay LOG --jobs campaign.toml" in caught.value.fix


CHANGES = """start_cost_s = {0 = 60, 4 = 90}
restart = "pause"
work_saved_every_s = 600
saves = "on-notice"
counts = [1, 4, 8]
"""
READ = {
    "scale_up_cost_s": 20.0,
    "scale_down_cost_s": 10.0,
    "start_cost_s": "0:60 4:90",
    "restart": "pause",
    "work_saved_every_s": 600.0,
    "saves": "on-notice",
    "counts": [1, 4, 8],
}


def test_trials_pay_what_the_file_says_and_the_record_repeats_it(tmp_path):
    made = loaded(tmp_path, LEAST + CHANGES)
    (described,) = made.describe()["models"]
    assert {name: described[name] for name in READ} == READ
    assert described["curve"] == "0:0.0 1:10.0 8:60.0"
    jobs = list(drive(made, 0, 10**13).submitted.values())
    assert len(jobs) == 6
    for job in jobs:
        assert job.changes() == READ
        assert job.throughput.table(3).tolist() == [0.0, 10.0, 10.0, 10.0]


def test_a_record_without_such_costs_is_as_it_was(tmp_path):
    (described,) = loaded(tmp_path, LEAST).describe()["models"]
    assert list(described) == [
        *("name", "samples_per_epoch", "min_nodes", "max_nodes", "scale_up_cost_s", "scale_down_cost_s"),
        *("curve", "objective_curve", "weight", "deadline_after_s"),
    ]


def test_a_model_pays_what_it_says_itself(tmp_path):
    text = MODELS.replace("[trial]\n", "[trial]\nstart_cost_s = 60\n").replace(
        'name = "deep"\n', 'name = "deep"\nstart_cost_s = "0:5 2:7"\nrestart = "pause"\n'
    )
    wide, deep = (model.job for model in loaded(tmp_path, text).campaign.models)
    assert (wide.start_cost_s, wide.restart) == (60.0, "charge")
    assert (str(deep.start_cost_s), deep.restart) == ("0:5 2:7", "pause")


def test_costs_in_python_are_as_in_the_file():
    trial = {"epochs": 9, "samples_per_epoch": 1000, "min_nodes": 1, "max_nodes": 8, "curve": "0:0 1:10 8:60"}
    trial |= {"scale_up_cost_s": {0: 20, 4: 29}, "scale_down_cost_s": 10, "restart": Restart.PAUSE, "counts": (1, 8)}
    (model,) = load_campaign({"campaign": {"trials": 2}, "trial": trial}).campaign.models
    assert (str(model.job.scale_up_cost_s), model.job.restart, model.job.counts) == ("0:20 4:29", "pause", (1, 8))


@pytest.mark.parametrize(
    ("line", "problem", "column"),
    [
        ("start_cost_s = -1", "negative", "start_cost_s"),
        ('start_cost_s = "4:20"', "do not begin at count 0", "start_cost_s"),
        ("work_saved_every_s = 0.0001", "out of range", "work_saved_every_s"),
        ('saves = "on-notice"', "nothing is ever at risk", "saves"),
        ('restart = "puase"', "restart is unknown", "restart"),
        ("counts = [1, 4]", "not within its bounds", "counts"),
        ("start_cost = 20", "did you mean 'start_cost_s'", "start_cost"),
    ],
)
def test_a_wrong_cost_of_trials_names_table_and_key(tmp_path, line, problem, column):
    error = refused(tmp_path, LEAST + line + "\n")
    assert problem in str(error)
    assert (error.row, error.column) == ("[trial]", column)
