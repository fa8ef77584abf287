from __future__ import annotations

import importlib.metadata
import json
import logging
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import optuna
import pytest

from bfreplay.campaigns.optuna_study import OptunaStudy
from bfreplay.campaigns.parts import Advice, Released, TrialState
from bfreplay.campaigns.scores import ResponseSurface
from bfreplay.errors import InputError
from tests.campaigns.little_campaign import EPOCHS, SPACE, history, in_unit_cube, study

ROOT = Path(__file__).resolve().parents[2]
LITTLE = ROOT / "tests" / "campaigns" / "little_campaign.py"


def _told(asked: OptunaStudy) -> list[tuple[str, float | None]]:
    """What Optuna itself has on record."""
    return [(trial.state.name, trial.value) for trial in asked._study.get_trials()]


def _all_end(asked: OptunaStudy, numbers, state=TrialState.FINISHED, score=0.5) -> None:
    for number in numbers:
        asked.propose(number)
        asked.ended(number, state, score)


# -- reproducible -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_that_hash_differently_say_the_same_and_nothing_else():
    """Every sampler beside every kind of pruner, to the byte; and neither a message nor a warning."""
    done = [
        subprocess.run(
            [sys.executable, "-W", "error::UserWarning", "-W", "error::FutureWarning", str(LITTLE)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
        )
        for hash_seed in ("0", "1")
    ]
    assert done[0].stdout == done[1].stdout
    assert [run.stderr for run in done] == ["", ""]
    record = json.loads(done[0].stdout)
    assert len(record) == 9
    assert all(len(told) == 30 for told in record.values())


@pytest.mark.parametrize("pruner", ["median", "percentile", "asha", "successive-halving", "hyperband", "none"])
def test_begin_forgets_everything(pruner):
    asked = study(seed=5, pruner=pruner)
    first = history(asked, 20)
    asked.begin(True)
    assert history(asked, 20) == first
    assert history(study(seed=5, pruner=pruner), 20) == first


def test_another_seed_gives_other_trials():
    first, second = (study(seed=seed, sampler=sampler).propose(0) for seed, sampler in ((0, "tpe"), (1, "tpe")))
    assert first != second
    first, second = ([study(seed=seed, sampler="qmc").propose(0) for _ in range(2)] for seed in (0, 1))
    assert first[0] == first[1] != second[0]


def test_hyper_parameters_are_plain_and_in_the_order_of_the_space():
    asked = study()
    history(asked, 15)
    params = asked.propose(15)
    assert list(params) == list(SPACE.dimensions)
    assert json.loads(json.dumps(params)) == params
    assert {name: type(value) for name, value in params.items()} == {
        "lr": float,
        "layers": int,
        "activation": str,
        "dropout": float,
        "width": int,
    }
    assert all(0 <= place <= 1 for place in in_unit_cube(SPACE, params).values())
    assert params["activation"] in SPACE.dimensions["activation"].choices


def test_neither_numpy_s_nor_python_s_global_generator_matters_or_moves():
    import random

    histories = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
        histories.append(history(study(), 15))
        assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002
    assert histories[0] == histories[1]


# -- it searches ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tpe_finds_better_trials_than_random_search():
    def late_mean(sampler, seed):
        surface, asked, qualities = ResponseSurface(SPACE, seed), study(seed=seed, sampler=sampler), []
        for number in range(40):
            qualities.append(surface.quality(asked.propose(number)))
            asked.ended(number, TrialState.FINISHED, qualities[-1])
        return np.mean(qualities[20:])

    gains = [late_mean("tpe", seed) - late_mean("random", seed) for seed in range(5)]
    assert min(gains) > 0
    assert np.mean(gains) > 0.2


def test_lower_scores_are_better_when_the_campaign_says_so():
    """The mirror image of a campaign proposes and prunes the same trials."""
    up = history(study(seed=2), 25)
    down = history(study(seed=2, higher_is_better=False), 25, sign=-1.0)
    assert [told[:3] for told in down] == [told[:3] for told in up]
    wrong = study(seed=2)
    wrong.begin(higher_is_better=False)
    assert [told[:3] for told in history(wrong, 25)] != [told[:3] for told in up]


@pytest.mark.slow
def test_the_liar_keeps_trials_in_flight_apart():
    def distance(constant_liar, seed):
        """Mean distance of 20 trials in flight from their nearest."""
        asked = study(seed=seed, sampler_options={"constant_liar": constant_liar})
        surface = ResponseSurface(SPACE, seed)
        for number in range(40):
            asked.ended(number, TrialState.FINISHED, surface.quality(asked.propose(number)))
        units = np.array([list(in_unit_cube(SPACE, asked.propose(number)).values()) for number in range(40, 60)])
        apart = np.linalg.norm(units[:, None] - units, axis=2)
        return np.sort(apart, axis=1)[:, 1].mean()

    lying, honest = (np.mean([distance(liar, seed) for seed in range(4)]) for liar in (True, False))
    assert lying > 1.15 * honest


# -- it prunes --------------------------------------------------------------------------------------------


def test_a_trial_below_the_median_is_pruned_and_one_above_is_not():
    asked = study(pruner="median", pruner_options={"n_startup_trials": 2})
    for number, score in enumerate((0.4, 0.6)):
        asked.propose(number)
        assert asked.advise(number, 1, score) is Advice.CONTINUE
        asked.ended(number, TrialState.FINISHED, score)
    asked.propose(2)
    asked.propose(3)
    assert asked.advise(2, 1, 0.49) is Advice.PRUNE
    assert asked.advise(3, 1, 0.51) is Advice.CONTINUE


def test_percentile_25_keeps_the_best_quarter():
    asked = study(pruner="percentile", pruner_options={"percentile": 25, "n_startup_trials": 4})
    for number in range(5):
        asked.propose(number)
        asked.advise(number, 1, number / 4)
        asked.ended(number, TrialState.FINISHED, number / 4)
    asked.propose(5)
    asked.propose(6)
    assert asked.advise(5, 1, 0.74) is Advice.PRUNE
    assert asked.advise(6, 1, 0.76) is Advice.CONTINUE


@pytest.mark.parametrize("name", ["asha", "successive-halving"])
def test_asha_prunes_at_its_rungs_only(name):
    asked = study(pruner=name, pruner_options={"min_resource": 2, "reduction_factor": 2})
    asked.propose(0)
    asked.propose(1)
    assert [asked.advise(0, epoch, 0.9) for epoch in (1, 2, 3, 4)] == [Advice.CONTINUE] * 4
    assert asked.advise(1, 1, 0.1) is Advice.CONTINUE
    assert asked.advise(1, 2, 0.1) is Advice.PRUNE


def test_hyperband_is_told_the_epochs_of_a_trial():
    assert study(pruner="hyperband").describe()["pruner_options"]["max_resource"] == EPOCHS
    given = study(pruner="hyperband", pruner_options={"max_resource": 27})
    assert given.describe()["pruner_options"]["max_resource"] == 27
    states = {told[2] for told in history(study(pruner="hyperband"), 40)}
    assert {"pruned", "finished"} <= states


def test_without_a_pruner_nothing_is_pruned():
    assert "pruned" not in {told[2] for told in history(study(pruner="none"), 25)}
    assert "pruned" in {told[2] for told in history(study(pruner="median"), 25)}


def test_reports_come_every_so_many_epochs_before_the_last():
    assert list(study().report_epochs(4)) == [1, 2, 3]
    assert list(study(report_every=3).report_epochs(9)) == [3, 6]
    assert list(study(report_every=3).report_epochs(10)) == [3, 6, 9]
    assert list(study().report_epochs(1)) == []


def test_no_trial_waits():
    asked = study(pruner="asha")
    asked.propose(0)
    asked.advise(0, 1, 0.5)
    assert asked.released(3) == Released((), ())


# -- what Optuna is told ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "score", "expected"),
    [
        (TrialState.FINISHED, 0.5, ("COMPLETE", 0.5)),
        (TrialState.PRUNED, 0.5, ("PRUNED", 0.5)),
        (TrialState.STOPPED, 0.5, ("PRUNED", 0.5)),
        (TrialState.STOPPED, None, ("FAIL", None)),
        (TrialState.FAILED, 0.5, ("FAIL", None)),
        (TrialState.FAILED, None, ("FAIL", None)),
        (TrialState.FINISHED, None, ("FAIL", None)),
        (TrialState.FINISHED, math.nan, ("FAIL", None)),
    ],
)
@pytest.mark.parametrize("has_reported", [True, False])
def test_each_end_is_told_as_optuna_has_it(state, score, expected, has_reported):
    asked = study(pruner="none")
    asked.propose(0)
    if has_reported:
        asked.advise(0, 1, 0.2)
        asked.advise(0, 4, 0.5)
    asked.ended(0, state, score)
    assert _told(asked) == [expected]


def test_a_trial_that_fails_teaches_nothing_and_one_that_finishes_does():
    def next_params(state):
        asked = study(sampler_options={"n_startup_trials": 1}, seed=4)
        _all_end(asked, range(3))
        _all_end(asked, [3], state, 0.9)
        return asked.propose(4)

    assert next_params(TrialState.FAILED) != next_params(TrialState.FINISHED)


# -- the program around -----------------------------------------------------------------------------------


def test_making_a_study_says_nothing_and_leaves_optuna_s_logging_as_it_was(monkeypatch):
    said = []

    class Listener(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())

    logger = logging.getLogger("optuna")
    monkeypatch.setattr(logger, "handlers", [Listener()])
    before = logger.level
    try:
        for level in (logging.DEBUG, logging.INFO, logging.ERROR):
            logger.setLevel(level)
            history(study(pruner="none"), 12)
            assert logger.level == level
        assert said == []
        logger.setLevel(logging.INFO)
        optuna.create_study()
        assert "A new study created" in said[0]
    finally:
        logger.setLevel(before)


def test_experimental_parts_are_not_announced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history(study(sampler="qmc"), 12)
        history(study(sampler="tpe"), 12)


def test_without_optuna_the_extra_to_install_is_named(monkeypatch):
    def version(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr("bfreplay.milp.backends.backend.version", version)
    with pytest.raises(InputError) as caught:
        study()
    assert "optuna is not installed; pip install 'bfreplay[hpo]'" in str(caught.value)
    assert (caught.value.file, caught.value.row) == ("campaign.toml", "[optuna]")


def test_an_optuna_that_cannot_be_imported_is_no_crash(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"optuna cannot be imported .*; pip install 'bfreplay\[hpo\]'"):
        study()


def test_another_release_of_optuna_is_refused(monkeypatch):
    monkeypatch.setattr("bfreplay.milp.backends.backend.version", lambda package: "3.6.1")
    with pytest.raises(InputError, match=r"optuna 3\.6\.1 is not known to be sound"):
        study()


def test_optuna_is_not_loaded_before_a_study_is_made():
    script = "import sys, bfreplay.campaigns.optuna_study; sys.exit('optuna' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


# -- a whole replay ---------------------------------------------------------------------------------------

CAMPAIGN = """
[campaign]
name = "tune"
trials = 40
parallel = 8
seed = 7

[trial]
epochs = 9
samples_per_epoch = 1_000_000
min_nodes = 1
max_nodes = 16
scale_up_cost_s = 20
scale_down_cost_s = 5
curve = "0:0 1:500 4:1900 16:6400"

[search.lr]
low = 1e-5
high = 1e-1
log = true

[search.activation]
choices = ["relu", "gelu"]

[optuna]
pruner = "hyperband"

[pruner]
kind = "optuna"
"""


@pytest.mark.thorough
def test_a_whole_replay_is_the_same_to_the_byte_in_processes_that_hash_differently(tmp_path):
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    for hash_seed in ("0", "1"):
        subprocess.run(
            [sys.executable, "-m", "bfreplay.cli", "replay", "sample", "--jobs", "campaign.toml", "--out", hash_seed],
            check=True,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
        )
    same = {
        file.name: file.read_bytes() == (tmp_path / "1" / file.name).read_bytes() for file in (tmp_path / "0").iterdir()
    }
    assert {name for name, is_same in same.items() if not is_same} <= {"timings.parquet", "session.json"}
    assert {"run.json", "jobs.parquet", "reports.parquet", "decisions.parquet"} <= set(same)
    config = json.loads((tmp_path / "0" / "run.json").read_text())
    assert '"kind": "optuna"' in json.dumps(config)
