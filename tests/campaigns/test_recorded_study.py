"""Studies that Optuna has run, as campaigns: from its own files, which stay as they are."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState as State

from bfreplay.campaigns.load import is_campaign, load_campaign
from bfreplay.campaigns.parts import TrialState
from bfreplay.campaigns.workloads import workload_of
from bfreplay.datasets.jobs.load import load_jobs
from bfreplay.errors import InputError
from bfreplay.experiments.prepared_run import load_jobs_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.runs.metric import words_of_run
from bfreplay.testing import job_source
from bfreplay.workload import Ending

ENDS = [
    (State.COMPLETE, [0.1, 0.2, 0.3, 0.4]),
    (State.PRUNED, [0.1, 0.15]),
    (State.FAIL, [0.3]),
    (State.FAIL, []),
    (State.RUNNING, [0.5]),
    (State.PRUNED, []),
    (State.COMPLETE, [0.2, float("nan"), 0.6]),
    (State.PRUNED, [0.1, 0.1, 0.1, 0.1]),
]
"""Ends and reported values of the trials of a study."""
TABLES = "[campaign]\nparallel = 99\n[study]\n{}\n[trial]\nsamples_per_epoch = 100\n"


def drive(source, slots=9):
    return job_source.drive(source, 0, 10**15, slots=slots)


def storage(folder, kind="journal"):
    if kind == "sqlite":
        return f"sqlite:///{folder}/study.db", folder / "study.db"
    return JournalStorage(JournalFileBackend(str(folder / "study.log"))), folder / "study.log"


def add(study, ends=ENDS, first=1, step=1, **attributes):
    for state, values in ends:
        at = {first + step * index: value for index, value in enumerate(values)}
        value = values[-1] if values and state in (State.COMPLETE, State.PRUNED) else None
        distributions = {"lr": optuna.distributions.FloatDistribution(0.0, 1.0)}
        study.add_trial(
            optuna.trial.create_trial(
                state=state,
                value=value,
                params={"lr": 0.25},
                distributions=distributions,
                intermediate_values=at,
                user_attrs={name: of_values(values) for name, of_values in attributes.items()},
            )
        )
    return study


def made(folder, kind="journal", **given):
    url, file = storage(folder, kind)
    add(optuna.create_study(study_name="mine", storage=url, direction="maximize"), **given)
    return file


def campaign_file(folder, study, **tables):
    file = folder / "search.toml"
    keys = {"file": f'"{study.name}"', **tables}
    file.write_text(TABLES.format("\n".join(f"{key} = {value}" for key, value in keys.items())))
    return file


def refusal(file):
    with pytest.raises(InputError) as caught:
        load_campaign(file)
    return caught.value


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_trials_report_and_end_as_they_did_and_the_file_stays_as_it_is(tmp_path, kind):
    study = made(tmp_path, kind)
    before = study.read_bytes(), sorted(tmp_path.iterdir())
    assert is_campaign(study)
    source = load_campaign(study)
    assert source.sources == (("study.db" if kind == "sqlite" else "study.log", hashlib.sha256(before[0]).hexdigest()),)
    driven = drive(source, slots=99)
    assert (study.read_bytes(), sorted(tmp_path.iterdir())) == before
    trials = {trial.name: trial for trial in source.trials}
    assert {name: (trial.state, trial.epochs, trial.score) for name, trial in trials.items()} == {
        "study-0000": (TrialState.FINISHED, 4, 0.4),
        "study-0001": (TrialState.PRUNED, 2, 0.15),
        "study-0002": (TrialState.FAILED, 1, 0.3),
        "study-0003": (TrialState.FAILED, 0, None),
        "study-0006": (TrialState.FINISHED, 3, 0.6),
        "study-0007": (TrialState.PRUNED, 4, 0.1),
    }
    epoch = 1_000_000
    ends = {a.report.job: a.report.samples / epoch for a in driven.answers if a.verdict.ending or a.report.is_finished}
    assert ends == {
        "study-0000": 4, "study-0001": 2, "study-0002": 1.5, "study-0003": 0.5, "study-0006": 3, "study-0007": 4,
    }  # fmt: skip
    assert {a.report.samples / epoch for a in driven.answers if a.report.job == "study-0001"} == {1, 2}
    nan = [a.verdict for a in driven.answers if (a.report.job, a.report.samples) == ("study-0006", 2 * epoch)]
    assert [verdict.score for verdict in nan] == [None]
    assert driven.submitted["study-0000"].params == {"lr": 0.25}
    assert source.describe()["warnings"][0].startswith("2 of 8 trials of the study are left out: they still run, or")


def test_what_a_study_does_not_say_is_assumed_with_a_warning_or_given(tmp_path):
    study = made(tmp_path)
    (_, assumed) = load_campaign(study).describe()["warnings"]
    assert "max_nodes = 16" in assumed
    (_, assumed) = load_campaign(campaign_file(tmp_path, study)).describe()["warnings"]
    assert "samples_per_epoch" not in assumed
    assert refusal(campaign_file(tmp_path, study, retries="1\n[retries]\nmost = 3")).row == "[study]"
    file = campaign_file(tmp_path, study)
    file.write_text(file.read_text() + "epochs = 9\n")
    error = refusal(file)
    assert (error.row, error.column) == ("[trial]", "epochs")
    file.write_text(file.read_text().replace("epochs = 9\n", "[retries]\nmost = 3\n"))
    assert refusal(file).row == "[retries]"


def test_more_parallel_trials_of_a_study_than_jobs_at_once_have_no_effect(tmp_path):
    options = {"jobs": str(campaign_file(tmp_path, made(tmp_path))), "efficiency": False, "bound": False}
    words = "parallel = 99 in [campaign] has no effect: --max-parallel 10 lets no more trials run at once."
    assert words in RunOptions(events="sample", **options).run().warnings
    assert words not in RunOptions(events="sample", **options | {"jobs": str(tmp_path / "study.log")}).run().warnings


def test_trials_have_the_only_curve_that_is_given_and_one_of_several_is_named(tmp_path):
    file, curves = campaign_file(tmp_path, made(tmp_path)), tmp_path / "curves.toml"
    own = '[curves.own]\nlaw = "amdahl"\nrate_1 = 7\nserial = 0\n'
    curves.write_text(own)
    (model,) = load_campaign(file, curves).campaign.models
    assert (model.name, model.job.throughput.rate_1) == ("own", 7.0)
    (warning,) = [text for text in load_campaign(file, curves).describe()["warnings"] if "assumed" in text]
    assert warning.startswith("The study mine does not say everything; assumed: min_nodes = 1, max_nodes = 16, ")
    assert warning.endswith('curve = "own". Give yours in [trial] of search.toml: docs/optuna.md.')
    (of_study,) = [text for text in load_campaign(tmp_path / "study.log").describe()["warnings"] if "assumed" in text]
    assert 'Give yours in [trial] of a campaign file with [study] file = "study.log"' in of_study
    file.write_text(f"{file.read_text()}{own.replace('own', 'mine')}")
    with pytest.raises(InputError) as caught:
        load_campaign(file, curves)
    assert (caught.value.column, caught.value.expected) == ("curve", "one of own, mine")
    file.write_text(file.read_text().replace("[trial]", '[trial]\ncurve = "mine"'))
    assert load_campaign(file, curves).campaign.models[0].name == "mine"


def test_where_jobs_are_expected_a_study_is_told_from_other_files(tmp_path):
    for kind in ("sqlite", "journal"):
        with pytest.raises(InputError) as caught:
            load_jobs(made(tmp_path, kind))
        assert "in Python to load_campaign" in caught.value.fix
    file = campaign_file(tmp_path, tmp_path / "study.db")
    file.write_text(file.read_text().replace("[campaign]\nparallel = 99\n", ""))
    with pytest.raises(InputError) as caught:
        load_jobs(file)
    assert caught.value.problem == "this is a campaign, not a job set"
    with pytest.raises(InputError) as caught:
        workload_of(optuna.create_study())
    assert "a study of Optuna: the file of its storage" in caught.value.expected


def test_a_budget_and_node_hours_work_between_recorded_reports(tmp_path):
    file = campaign_file(tmp_path, made(tmp_path, first=2, step=2), epochs_from='"step"')
    file.write_text(file.read_text().replace("[study]", "[campaign.budget]\nsamples = 550\n[study]"))
    source = load_campaign(file)
    driven = drive(source, slots=99)
    assert source.used_up == "samples"
    assert 550 <= sum(trial.samples for trial in source.trials) < 550 + 100 * len(source.trials)
    assert Ending.STOPPED in driven.endings.values()


@pytest.mark.parametrize(
    ("first", "step", "source", "epochs"),
    [
        (1, 1, None, 5), (0, 1, None, 5), (0, 10, "step", 32), (5, 1, "step", 9), (4, 5, "step+1", 21),
        (1, 1, "user_attrs.done", 9),
    ],
)  # fmt: skip
def test_steps_without_gaps_from_0_or_1_are_epochs_and_others_are_named(tmp_path, first, step, source, epochs):
    study = made(tmp_path, first=first, step=step, done=lambda values: 2 * len(values))
    named = {} if source is None else {"epochs_from": f'"{source}"'}
    file = campaign_file(tmp_path, study, **named)
    assert load_campaign(file).campaign.epochs == epochs
    if step > 1 or first > 1:
        error = refusal(study)
        assert error.column == "epochs_from"
        assert error.expected == "one of step, step+1, user_attrs.done"
        assert "every step is an epoch" in error.problem
        error = refusal(campaign_file(tmp_path, study, epochs_from='"user_attrs.don"'))
        assert (error.problem, error.fix) == (
            "there is no 'user_attrs.don' in the study", "did you mean 'user_attrs.done'?",
        )  # fmt: skip


def test_a_study_without_values_is_refused_with_what_to_record_unless_an_attribute_is_named(tmp_path):
    url, study = storage(tmp_path)
    mine = optuna.create_study(study_name="mine", storage=url, direction="minimize")
    assert refusal(study).problem == "the study has no trials"
    mine.add_trial(optuna.trial.create_trial(state=State.COMPLETE, value=0.5))
    error = refusal(study)
    assert "no intermediate values" in error.problem
    assert "trial.report(value, epoch)" in error.expected
    mine.add_trial(optuna.trial.create_trial(state=State.COMPLETE, value=0.5, user_attrs={"epochs": 3}))
    source = load_campaign(campaign_file(tmp_path, study, epochs_from='"user_attrs.epochs"'))
    drive(source)
    assert [(trial.name, trial.epochs, trial.score) for trial in source.trials] == [("search-0001", 3, 0.5)]
    assert not source.higher_is_better
    assert source.describe()["warnings"][0].startswith("1 of 2 trials")
    mine.add_trial(optuna.trial.create_trial(state=State.RUNNING, user_attrs={"x": 3}))
    assert "no trial can be replayed" in refusal(campaign_file(tmp_path, study, epochs_from='"user_attrs.x"')).problem


def test_the_csv_of_trials_needs_epochs_and_says_nothing_of_the_direction(tmp_path):
    csv = tmp_path / "trials.csv"
    add(optuna.create_study(), ENDS[:3], epochs=len).trials_dataframe().to_csv(csv)
    assert is_campaign(csv)
    error = refusal(campaign_file(tmp_path, csv, epochs_from='"step"'))
    assert (error.column, error.expected) == ("epochs_from", "one of user_attrs.epochs")
    assert load_campaign(csv).describe()["study"]["epochs_from"] == "user_attrs.epochs"
    csv.write_text(csv.read_text().replace("user_attrs_epochs", "user_attrs_long"))
    assert (refusal(csv).column, refusal(csv).expected) == ("epochs_from", "one of user_attrs.long")
    file = campaign_file(tmp_path, csv, epochs_from='"user_attrs.long"')
    assert load_campaign(file).higher_is_better
    assert "assumed: higher_is_better = true. Give yours in [campaign]" in load_campaign(file).describe()["warnings"][0]
    file.write_text(file.read_text().replace("[campaign]", "[campaign]\nhigher_is_better = false"))
    source = load_campaign(file)
    assert not any("higher_is_better" in warning for warning in source.describe()["warnings"])
    driven = drive(source)
    assert not source.higher_is_better
    assert sorted((each.report.job[-1], each.report.samples) for each in driven.answers) == [
        ("0", 400.0),
        ("1", 200.0),
        ("2", 100.0),
        ("2", 150.0),
    ], "a trial reports at its own epochs only"
    assert [answer.report.samples for answer in driven.answers if answer.verdict.ending is Ending.FAILED] == [150.0]
    ends = [(trial.state.value, trial.epochs, trial.score, dict(trial.params)) for trial in source.trials]
    assert ends == [
        ("finished", 4, 0.4, {"lr": 0.25}), ("pruned", 2, 0.15, {"lr": 0.25}), ("failed", 0, None, {"lr": 0.25}),
    ]  # fmt: skip
    csv.write_text(csv.read_text().replace("value", "value_accuracy"))  # so Optuna writes it with a metric name
    assert load_campaign(file).campaign.epochs == 4
    csv.write_text(csv.read_text().replace("value_accuracy", "accuracy"))
    assert refusal(file).problem == "the column 'value' is missing"
    csv.write_text(csv.read_text().replace("accuracy", "value").replace("0.15", "much"))
    assert (refusal(file).row, refusal(file).column, refusal(file).value) == (2, "value", "much")
    add(optuna.create_study(), ENDS[:3], epochs=len).trials_dataframe(multi_index=True).to_csv(csv)
    assert (refusal(file).problem, refusal(file).fix) == (
        "the CSV has two header rows", "write it with study.trials_dataframe(multi_index=False)",
    )  # fmt: skip


def test_of_several_studies_and_objectives_one_is_named(tmp_path):
    url, study = storage(tmp_path)
    add(optuna.create_study(study_name="mine", storage=url, direction="maximize"))
    two = optuna.create_study(study_name="two", storage=url, directions=["minimize", "maximize"])
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        two.set_metric_names(["loss", "accuracy"])
    two.add_trial(optuna.trial.create_trial(state=State.COMPLETE, values=[0.5, 0.9], user_attrs={"epochs": 3}))
    assert (refusal(study).column, refusal(study).expected) == ("name", "one of mine, two")
    assert load_campaign(campaign_file(tmp_path, study, name='"mine"')).higher_is_better
    error = refusal(campaign_file(tmp_path, study, name='"mien"'))
    assert (error.problem, error.fix) == ("there is no study 'mien'", "did you mean 'mine'?")
    error = refusal(campaign_file(tmp_path, study, name='"two"'))
    assert (error.column, error.expected) == ("objective", "one of loss, accuracy")
    choices = {"objective": '"accuracy"', "epochs_from": '"user_attrs.epochs"'}
    source = load_campaign(campaign_file(tmp_path, study, name='"two"', **choices))
    drive(source)
    assert (source.higher_is_better, source.trials[0].score) == (True, 0.9)
    two.add_trial(optuna.trial.create_trial(state=State.COMPLETE, values=[0.5, 0.9]))
    error = refusal(campaign_file(tmp_path, study, name='"two"', objective='"loss"', epochs_from='"step"'))
    assert (error.column, error.expected) == ("epochs_from", "one of user_attrs.epochs")


def test_a_database_that_may_compute_without_end_and_one_of_others_are_refused(tmp_path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE trials (a)")
    before = file.read_bytes()
    assert refusal(file).problem == "there is no study of Optuna"
    assert file.read_bytes() == before  # Optuna would add its tables
    with sqlite3.connect(file) as database:
        database.execute(
            "CREATE VIEW studies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
        )
    assert "views" in refusal(file).problem
    journal = tmp_path / "broken.log"
    journal.write_text('{"op_code":99}\n')
    assert "Optuna cannot read it" in refusal(journal).problem
    whole = made(tmp_path).read_text()
    for right, wrong in (('{"1":0.1', '{"one":0.1'), ('{"1":0.1', '{"1":"much"'), ('"value":0.4', '"value":"much"')):
        journal.write_text(whole.replace(right, wrong))
        assert journal.read_text() != whole
        assert "Optuna cannot read it" in refusal(journal).problem


def test_a_campaign_of_a_study_needs_no_table_of_its_own_and_its_file_is_named_where_it_lacks(tmp_path):
    file = campaign_file(tmp_path, made(tmp_path))
    file.write_text(file.read_text().replace("[campaign]\nparallel = 99\n", ""))
    assert is_campaign(file)
    assert load_campaign(file).campaign.trials == 6
    file.write_text(file.read_text().replace("study.log", "gone.log"))
    assert refusal(file).fix == f"correct [study] file in {file}"


def test_no_other_trials_are_pruned_on_dedicated_nodes(tmp_path):
    run = RunOptions(events="sample", jobs=str(made(tmp_path)), bound=False).run()
    assert run.summary.efficiency is not None
    assert words_of_run(run)["others"] == ""


def test_a_url_of_sqlite_is_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path, "sqlite")
    for url in ("sqlite:///study.db", f"sqlite:///{tmp_path}/study.db"):
        assert load_jobs_of(RunOptions(events="sample", jobs=url)).name == "study"


def test_a_study_on_a_server_is_refused_with_how_to_copy_it_and_without_its_password(tmp_path):
    (tmp_path / "search.toml").write_text(TABLES.format('file = "mysql://me:secret@host/db"'))
    (tmp_path / "gone.toml").write_text(TABLES.format('file = "gone.db"'))
    server = refusal(tmp_path / "search.toml")
    with pytest.raises(InputError) as caught:
        RunOptions(events="sample", jobs="mysql://me:secret@host/db")
    for error in (server, caught.value, refusal("mysql://me:secret@host/db")):
        assert "optuna.copy_study" in error.fix
        assert "secret" not in str(error)
    assert refusal(tmp_path / "gone.toml").problem == "there is no such file"


def test_what_is_only_in_the_write_ahead_log_is_read_too_and_is_a_source(tmp_path):
    file = made(tmp_path, "sqlite")
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("UPDATE studies SET study_name = 'renamed'")
        database.commit()
        source = load_campaign(file)
    assert source.describe()["study"]["name"] == "renamed"
    assert [name for name, _ in source.sources] == ["study.db", "study.db-wal"]
