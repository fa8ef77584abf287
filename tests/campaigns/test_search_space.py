from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.campaigns.search_space import Choice, Real, SearchSpace, Whole
from bfreplay.errors import InputError
from tests.campaigns.little_campaign import in_unit_cube

FILE = Path("campaign.toml")
TABLES = {
    "lr": {"low": 1e-5, "high": 1e-1, "log": True},
    "layers": {"low": 2, "high": 8, "whole": True, "step": 3},
    "activation": {"choices": ["relu", "gelu", "tanh"]},
    "dropout": {"low": 0, "high": 0.5},
    "width": {"low": 16, "high": 1024, "whole": True, "log": True},
}


def _space(**tables):
    return SearchSpace.from_table(tables, FILE)


def test_tables_become_dimensions_in_their_order():
    space = SearchSpace.from_table(TABLES, FILE)
    assert list(space.dimensions.items()) == [
        ("lr", Real(1e-5, 1e-1, log=True)),
        ("layers", Whole(2, 8, step=3)),
        ("activation", Choice(("relu", "gelu", "tanh"))),
        ("dropout", Real(0.0, 0.5)),
        ("width", Whole(16, 1024, log=True)),
    ]


def test_a_high_between_two_steps_is_lowered_to_the_last_value():
    assert _space(n={"low": 1, "high": 10, "whole": True, "step": 4}).dimensions["n"] == Whole(1, 9, step=4)


def test_the_unit_cube_follows_the_scales():
    space = SearchSpace.from_table(TABLES, FILE)
    middle = in_unit_cube(space, {"lr": 1e-3, "layers": 5, "dropout": 0.125, "width": 128})
    assert middle == pytest.approx({"lr": 0.5, "layers": 0.5, "dropout": 0.25, "width": 0.5})
    first = in_unit_cube(space, {"lr": 1e-5, "layers": 2, "dropout": 0, "width": 16})
    last = in_unit_cube(space, {"lr": 1e-1, "layers": 8, "dropout": 0.5, "width": 1024})
    assert list(first.values()) == [0.0] * 4
    assert list(last.values()) == [1.0] * 4


@given(low=st.floats(1e-300, 1e300), factor=st.floats(1.001, 1e6), place=st.floats(0, 1), log=st.booleans())
def test_a_place_of_a_real_and_its_value_are_inverse(low, factor, place, log):
    real = Real(low, low * factor, log)
    value = real.at(place)
    assert real.low <= value <= real.high
    # a relative error of 1e-13 in the value is so much more of a narrow scale
    assert real.unit(value) == pytest.approx(place, abs=1e-6)


@given(low=st.integers(-50, 50), n=st.integers(1, 40), step=st.integers(1, 7))
def test_each_whole_number_is_nearest_to_its_own_place(low, n, step):
    dimension = Whole(low, low + n * step, step=step)
    values = range(low, low + n * step + 1, step)
    assert [dimension.at(dimension.unit(value)) for value in values] == list(values)


def test_each_whole_number_on_a_logarithmic_scale_is_nearest_to_its_own_place():
    dimension = Whole(1, 300, log=True)
    assert [dimension.at(dimension.unit(value)) for value in range(1, 301)] == list(range(1, 301))


def test_samples_lie_within_and_reach_every_whole_number_and_choice():
    space = SearchSpace.from_table(TABLES, FILE)
    rng = np.random.default_rng(1)
    samples = [space.sample(rng) for _ in range(300)]
    units = np.array([list(in_unit_cube(space, params).values()) for params in samples])
    assert units.shape == (300, 4)
    assert units.min() >= 0
    assert units.max() <= 1
    assert {params["layers"] for params in samples} == {2, 5, 8}
    assert {params["activation"] for params in samples} == {"relu", "gelu", "tanh"}
    # on its own scale each is uniform: the mean of 300 lies within 5 standard errors
    assert np.abs(units[:, [0, 2, 3]].mean(axis=0) - 0.5).max() < 5 / math.sqrt(12 * 300)


def test_whole_numbers_on_a_logarithmic_scale_are_as_likely_as_they_are_wide():
    space = _space(n={"low": 1, "high": 3, "whole": True, "log": True})
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng)["n"] for _ in range(2000)]
    for n in (1, 2, 3):
        wide = math.log((n + 0.5) / (n - 0.5)) / math.log(3.5 / 0.5)
        assert drawn.count(n) / 2000 == pytest.approx(wide, abs=5 * math.sqrt(0.25 / 2000))


def test_the_same_generator_gives_the_same_plain_samples():
    space = SearchSpace.from_table(TABLES, FILE)
    first, second = (space.sample(np.random.default_rng(5)) for _ in range(2))
    assert first == second
    assert json.loads(json.dumps(first)) == first
    assert {name: type(value) for name, value in first.items()} == {
        "lr": float,
        "layers": int,
        "activation": str,
        "dropout": float,
        "width": int,
    }


@pytest.mark.parametrize(
    ("table", "column", "said"),
    [
        ({"low": 1, "hihg": 2}, "hihg", "did you mean 'high'"),
        ({"low": 1}, "high", "'high' is missing"),
        ({"high": 1}, "low", "'low' is missing"),
        ({}, "low", "'low' is missing"),
        ({"low": 2, "high": 2}, "low", "low < high"),
        ({"low": 3, "high": 2}, "low", "low < high"),
        ({"low": "1e-5", "high": 2}, "low", "no number"),
        ({"low": True, "high": 2}, "low", "no number"),
        ({"low": 0, "high": math.inf}, "high", "not finite"),
        ({"low": math.nan, "high": 1}, "low", "not finite"),
        ({"low": -1e308, "high": 1e308}, "high", "too wide"),
        ({"low": 0, "high": 1, "log": True}, "low", "low > 0"),
        ({"low": 0, "high": 1, "log": 1}, "log", "true or false"),
        ({"low": 0, "high": 1, "step": 1}, "step", "whole = true"),
        ({"low": 0.5, "high": 3, "whole": True}, "low", "no whole number"),
        ({"low": 0, "high": 3, "whole": True, "log": True}, "low", "low >= 1"),
        ({"low": 0, "high": 3, "whole": True, "step": 0}, "step", "below 1"),
        ({"low": 0, "high": 3, "whole": True, "step": 4}, "step", "from 1 to 3"),
        ({"low": 1, "high": 9, "whole": True, "step": 2, "log": True}, "step", "log = false"),
        ({"choices": []}, "choices", "a list"),
        ({"choices": "relu"}, "choices", "a list"),
        ({"choices": [["relu"]]}, "choices", "unusable"),
        ({"choices": [math.nan, 1.0]}, "choices", "unusable"),
        ({"choices": ["relu", "gelu", "relu"]}, "choices", "twice"),
        ({"choices": [1, True]}, "choices", "twice"),
        ({"choices": ["relu"], "low": 1}, "low", "has no key 'low'"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(table, column, said):
    with pytest.raises(InputError) as caught:
        _space(lr={"low": 0, "high": 1}, x=table)
    assert (caught.value.file, caught.value.row, caught.value.column) == ("campaign.toml", "[search.x]", column)
    assert said in str(caught.value)


def test_a_key_of_search_that_is_no_table_is_refused():
    with pytest.raises(InputError, match="no table") as caught:
        _space(lr=0.1)
    assert caught.value.row == "[search.lr]"


def test_an_empty_search_space_is_refused():
    with pytest.raises(InputError, match="the search space is empty") as caught:
        _space()
    assert caught.value.file == "campaign.toml"
