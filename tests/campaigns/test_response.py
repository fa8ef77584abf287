from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bfreplay.campaigns.scores import ResponseSurface
from bfreplay.campaigns.search_space import SearchSpace
from tests.campaigns.little_campaign import FILE, SPACE, TABLES, in_unit_cube

ROOT = Path(__file__).resolve().parents[2]


def _qualities(surface, space, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([surface.quality(space.sample(rng)) for _ in range(n)])


@pytest.mark.parametrize("seed", range(5))
def test_quality_lies_between_0_and_1_and_varies(seed):
    qualities = _qualities(ResponseSurface(SPACE, seed), SPACE, 400)
    assert qualities.min() >= 0
    assert qualities.max() <= 1
    assert 0.2 < qualities.mean() < 0.6
    assert qualities.std() > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_the_best_is_1_inside_the_space_and_nothing_drawn_beats_it(seed):
    surface = ResponseSurface(SPACE, seed)
    assert surface.quality(surface.best) == pytest.approx(1.0, abs=1e-12)
    assert list(surface.best) == list(TABLES)
    unit = in_unit_cube(SPACE, surface.best)
    assert all(0.2 < unit[name] < 0.8 for name in ("lr", "dropout", "layers", "width"))
    assert _qualities(surface, SPACE, 400).max() < 1


@pytest.mark.parametrize("seed", range(5))
def test_every_step_away_from_the_best_is_a_loss(seed):
    surface = ResponseSurface(SPACE, seed)
    for name, value in [("lr", 1e-5), ("lr", 1e-1), ("dropout", 0.0), ("dropout", 0.6), ("layers", 2), ("layers", 8)]:
        assert surface.quality({**surface.best, name: value}) < 1 - 1e-4
    for choice in {"relu", "gelu", "tanh"} - {surface.best["activation"]}:
        assert surface.quality({**surface.best, "activation": choice}) < 1 - 1e-4


def test_the_same_space_and_seed_give_the_same_surface_and_another_seed_another():
    rng = np.random.default_rng(0)
    params = [SPACE.sample(rng) for _ in range(5)]
    first, same, other = (ResponseSurface(SPACE, seed) for seed in (1, 1, 2))
    assert [first.quality(p) for p in params] == [same.quality(p) for p in params]
    assert [first.quality(p) for p in params] != [other.quality(p) for p in params]


def test_the_order_of_the_tables_does_not_matter():
    turned = SearchSpace.from_table(dict(reversed(TABLES.items())), FILE)
    params = SPACE.sample(np.random.default_rng(0))
    assert ResponseSurface(turned, 3).quality(params) == ResponseSurface(SPACE, 3).quality(params)
    assert ResponseSurface(turned, 3).best == ResponseSurface(SPACE, 3).best


def test_it_is_smooth_along_a_real_hyper_parameter():
    """Halving the step quarters the second difference: no jump, no kink."""
    surface = ResponseSurface(SPACE, 0)
    params = SPACE.sample(np.random.default_rng(3))

    def largest(step):
        at = [surface.quality({**params, "dropout": float(x)}) for x in np.arange(0, 0.6, step)]
        return np.abs(np.diff(at, 2)).max()

    assert largest(0.02) / largest(0.01) == pytest.approx(4, rel=0.1)


def test_hyper_parameters_interact():
    """The gain of a better dropout depends on something else, beyond what the product of separate effects explains."""
    space = SearchSpace.from_table({"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}}, FILE)
    surface = ResponseSurface(space, 0)

    def log(a, b):
        return math.log(surface.quality({"a": a, "b": b}))

    assert abs(log(0.1, 0.1) + log(0.9, 0.9) - log(0.1, 0.9) - log(0.9, 0.1)) > 0.01


def test_a_choice_moves_the_best_of_another_hyper_parameter():
    space = SearchSpace.from_table({"lr": {"low": 0, "high": 1}, "optimiser": {"choices": ["sgd", "adam"]}}, FILE)
    surface = ResponseSurface(space, 0)
    places = np.linspace(0, 1, 201).tolist()
    best = {
        choice: max(places, key=lambda lr: surface.quality({"lr": lr, "optimiser": choice}))
        for choice in ("sgd", "adam")
    }
    assert 0.01 < abs(best["sgd"] - best["adam"]) <= 0.16


@pytest.mark.parametrize("tables", [{"lr": TABLES["lr"]}, {"activation": TABLES["activation"]}], ids=["real", "choice"])
def test_a_single_hyper_parameter_is_enough(tables):
    space = SearchSpace.from_table(tables, FILE)
    surface = ResponseSurface(space, 0)
    assert surface.quality(surface.best) == 1
    assert _qualities(surface, space, 50).min() < 0.8


def test_it_does_not_depend_on_how_python_hashes_text():
    script = (
        "from tests.campaigns.little_campaign import SPACE; import numpy as np\n"
        "from bfreplay.campaigns.scores import ResponseSurface\n"
        "rng = np.random.default_rng(0)\n"
        "print([ResponseSurface(SPACE, s).quality(SPACE.sample(rng)) for s in range(9)])"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert said[0] == said[1]
