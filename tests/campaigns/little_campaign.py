"""A campaign without a replay: trials in a few slots take turns to report, and a study is asked and told.

As a script it prints what every sampler does beside every pruner, for tests that compare processes.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bfreplay.campaigns.optuna_study import OptunaStudy, OptunaTable
from bfreplay.campaigns.parts import Advice, TrialState
from bfreplay.campaigns.scores import ResponseSurface
from bfreplay.campaigns.search_space import Choice, SearchSpace
from bfreplay.typed_tables import typed_table
from tests.campaigns.small_campaigns import campaign

TABLES = {
    "lr": {"low": 1e-5, "high": 1e-1, "log": True},
    "layers": {"low": 2, "high": 8, "whole": True},
    "activation": {"choices": ["relu", "gelu", "tanh"]},
    "dropout": {"low": 0, "high": 0.6},
    "width": {"low": 16, "high": 1024, "whole": True, "log": True},
}
SPACE = SearchSpace.from_table(TABLES, Path("campaign.toml"))
FILE = Path("campaign.toml")
EPOCHS = 9


def study(seed: int = 0, space: SearchSpace = SPACE, higher_is_better: bool = True, **table: object) -> OptunaStudy:
    typed = typed_table(table, OptunaTable, FILE, "[optuna]")
    return OptunaStudy(space, typed, campaign(epochs=EPOCHS, seed=seed, higher_is_better=higher_is_better), FILE)


def in_unit_cube(space: SearchSpace, params: Mapping[str, Any]) -> dict[str, float]:
    """Place of each number on its own scale, from 0 to 1; choices have none."""
    numbers = {name: each for name, each in space.dimensions.items() if not isinstance(each, Choice)}
    return {name: dimension.unit(params[name]) for name, dimension in numbers.items()}


def history(asked: OptunaStudy, n_trials: int, slots: int = 4, sign: float = 1.0) -> list[list[object]]:
    """Each trial's number, hyper-parameters, end and last score, in order of their ends."""
    surface = ResponseSurface(SPACE, 7)
    told, running, number = [], {}, 0
    while True:
        while number < n_trials and len(running) < slots:
            running[number] = (asked.propose(number), 0)
            number += 1
        if not running:
            return told
        for trial, (params, epoch) in list(running.items()):
            epoch += 1
            score = sign * surface.quality(params) * (1 - math.exp(-epoch / 3))
            state = None
            if epoch == EPOCHS:
                state = TrialState.FINISHED
            elif epoch in asked.report_epochs(EPOCHS) and asked.advise(trial, epoch, score) is Advice.PRUNE:
                state = TrialState.PRUNED
            elif trial % 11 == 5 and epoch == 2:
                state = TrialState.FAILED
            elif trial % 13 == 7 and epoch == 4:
                state = TrialState.STOPPED
            running[trial] = (params, epoch)
            if state is not None:
                asked.ended(trial, state, score)
                told.append([trial, params, state.value, score])
                del running[trial]


if __name__ == "__main__":
    pairs = [(sampler, pruner) for sampler in ("tpe", "random", "qmc") for pruner in ("median", "asha", "hyperband")]
    record = {
        f"{sampler} {pruner}": history(study(seed=3, sampler=sampler, pruner=pruner), 30) for sampler, pruner in pairs
    }
    json.dump(record, sys.stdout)
