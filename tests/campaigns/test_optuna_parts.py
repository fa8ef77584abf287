from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

from bfreplay.campaigns.parts import Advice, TrialState
from bfreplay.campaigns.search_space import SearchSpace
from bfreplay.errors import BfreplayError, InputError
from tests.campaigns.little_campaign import FILE, study

SMALL = SearchSpace.from_table(
    {"layers": {"low": 2, "high": 4, "whole": True}, "activation": {"choices": ["relu", "gelu"]}}, FILE
)


def _own(module: Path, text: str, monkeypatch) -> None:
    (module / "mine.py").write_text(text)
    monkeypatch.syspath_prepend(str(module))
    monkeypatch.delitem(sys.modules, "mine", raising=False)


# -- strangers --------------------------------------------------------------------------------------------


def test_a_stranger_s_sampler_gets_the_seed_and_its_options(tmp_path, monkeypatch):
    _own(
        tmp_path,
        "import optuna\nmade = []\n"
        "def factory(**options):\n"
        "    made.append(options)\n    return optuna.samplers.RandomSampler(options['seed'])\n",
        monkeypatch,
    )
    own = study(seed=6, sampler="mine:factory", sampler_options={"size": [1, 2]})
    assert own.propose(0) == study(seed=6, sampler="random").propose(0)
    assert sys.modules["mine"].made == [{"size": [1, 2], "seed": 6}]
    assert own.describe()["sampler_options"] == {"size": [1, 2]}


def test_a_stranger_s_pruner_prunes(tmp_path, monkeypatch):
    text = (
        "import optuna\nclass Mine(optuna.pruners.BasePruner):\n"
        "    def __init__(self, below): self.below = below\n"
        "    def prune(self, study, trial): return trial.intermediate_values[trial.last_step] < self.below\n"
    )
    _own(tmp_path, text, monkeypatch)
    asked = study(pruner="mine:Mine", pruner_options={"below": 0.3})
    asked.propose(0)
    assert [asked.advise(0, epoch, score) for epoch, score in ((1, 0.4), (2, 0.2))] == [Advice.CONTINUE, Advice.PRUNE]


def test_optuna_s_other_samplers_can_be_named_and_end_the_campaign_when_all_is_tried():
    asked = study(space=SMALL, sampler="optuna.samplers:BruteForceSampler")
    seen = []
    for number in range(10):
        params = asked.propose(number)
        if params is None:
            break
        asked.ended(number, TrialState.FINISHED, 0.5)
        seen.append(tuple(params.values()))
    assert sorted(seen) == [(n, name) for n in (2, 3, 4) for name in ("gelu", "relu")]
    asked.begin(True)
    assert asked.propose(0) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("factory = 3", "TypeError"),
        ("def factory(seed): return seed", "makes no sampler"),
        ("def factory(): pass", "TypeError"),
        ("def factory(seed): raise SystemExit(1)", "SystemExit"),
        ("1 / 0", "ZeroDivisionError: division by zero (mine.py, line 1)"),
        ("", "AttributeError"),
    ],
)
def test_a_stranger_s_sampler_that_cannot_be_made_is_refused(text, said, tmp_path, monkeypatch):
    _own(tmp_path, text, monkeypatch)
    with pytest.raises(InputError) as caught:
        study(sampler="mine:factory")
    assert said in str(caught.value)
    assert (caught.value.file, caught.value.row, caught.value.column) == ("campaign.toml", "[optuna]", "sampler")


def test_a_sampler_that_fails_while_it_samples_is_named():
    asked = study(sampler="optuna.samplers:GridSampler", sampler_options={"search_space": {"other": [1, 2]}})
    with pytest.raises(BfreplayError, match=r"'optuna\.samplers:GridSampler' failed at trial 0: ValueError"):
        asked.propose(0)


# -- settings ---------------------------------------------------------------------------------------------


def test_it_describes_every_option_with_its_value():
    described = study(seed=3, pruner="asha", sampler_options={"n_startup_trials": 4}).describe()
    assert json.loads(json.dumps(described)) == described
    assert described == {
        "kind": "optuna",
        "version": importlib.metadata.version("optuna"),
        "seed": 3,
        "sampler": "tpe",
        "sampler_options": {"n_startup_trials": 4, "n_ei_candidates": 24, "multivariate": True, "constant_liar": True},
        "pruner": "asha",
        "pruner_options": {
            "min_resource": 1,
            "reduction_factor": 4,
            "min_early_stopping_rate": 0,
            "bootstrap_count": 0,
        },
        "report_every": 1,
    }


@pytest.mark.parametrize(
    ("table", "row", "column", "said"),
    [
        ({"smapler": "tpe"}, "[optuna]", "smapler", "did you mean 'sampler'"),
        ({"sampler": "tpee"}, "[optuna]", "sampler", "did you mean 'tpe'"),
        ({"sampler": 3}, "[optuna]", "sampler", "no text"),
        ({"pruner": "medain"}, "[optuna]", "pruner", "did you mean 'median'"),
        ({"report_every": 0}, "[optuna]", "report_every", "below 1"),
        ({"report_every": 1.5}, "[optuna]", "report_every", "a whole number"),
        ({"sampler_options": "fast"}, "[optuna]", "sampler_options", "no table"),
        ({"sampler_options": {"n_startup": 3}}, "[optuna.sampler_options]", "n_startup", "'n_startup_trials'"),
        ({"sampler_options": {"seed": 3}}, "[optuna.sampler_options]", "seed", "no key 'seed'"),
        ({"sampler_options": {"n_ei_candidates": 0}}, "[optuna.sampler_options]", "n_ei_candidates", "below 1"),
        ({"sampler_options": {"multivariate": 1}}, "[optuna.sampler_options]", "multivariate", "true or false"),
        ({"sampler": "random", "sampler_options": {"x": 1}}, "[optuna.sampler_options]", "x", "no key 'x'"),
        (
            {"sampler": "qmc", "sampler_options": {"qmc_type": "Sobol"}},
            "[optuna.sampler_options]",
            "qmc_type",
            "'sobol'",
        ),
        (
            {"pruner": "percentile", "pruner_options": {"percentile": 101}},
            "[optuna.pruner_options]",
            "percentile",
            "<= 100",
        ),
        (
            {"pruner": "asha", "pruner_options": {"reduction_factor": 1}},
            "[optuna.pruner_options]",
            "reduction_factor",
            "below 2",
        ),
        (
            {"pruner": "hyperband", "pruner_options": {"min_resource": 10}},
            "[optuna.pruner_options]",
            "min_resource",
            "at most max_resource, here 9 epochs",
        ),
    ],
)
def test_a_wrong_setting_is_refused_with_its_place(table, row, column, said):
    with pytest.raises(InputError) as caught:
        study(**table)
    assert (caught.value.file, caught.value.row, caught.value.column) == ("campaign.toml", row, column)
    assert said in str(caught.value)


def test_a_seed_that_optuna_cannot_take_is_refused():
    assert study(seed=2**32 - 1).propose(0)
    with pytest.raises(InputError, match="seed is above"):
        study(seed=2**32)


@pytest.mark.parametrize(
    ("pruner", "options"),
    [
        ("hyperband", {"max_resource": 9, "bootstrap_count": 3}),
        ("median", {"n_warmup_steps": 2, "interval_steps": 3, "n_min_trials": 2}),
        ("asha", {"min_early_stopping_rate": 1, "bootstrap_count": 2}),
    ],
)
def test_every_option_of_a_pruner_reaches_it(pruner, options):
    asked = study(pruner=pruner, pruner_options=options)
    assert {name: getattr(asked._study.pruner, f"_{name}") for name in options} == options
