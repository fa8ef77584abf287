"""Whatever stands in a campaign file, the answer is a campaign or a message, never something else."""

import copy
import json
import math
import tomllib
from datetime import date
from pathlib import Path

import pytest

from bfreplay.campaigns.load import campaign_of
from bfreplay.errors import InputError

FILE = Path("campaign.toml")
FULL = tomllib.loads("""
[campaign]
name = "n"
kind = "nas"
trials = 3
seed = 5
parallel = 2
arrival = "poisson"
per_hour = 6
start_after_s = 60
higher_is_better = false
proposer = "random"
[campaign.budget]
node_hours = 4
samples = 1e6
hours = 5
failed_trials = 2
[trial]
epochs = 9
samples_per_epoch = 1000
min_nodes = 1
max_nodes = 4
scale_up_cost_s = 20
scale_down_cost_s = 10
objective_curve = "0:0 8:1"
weight = 2
deadline_after_s = 100
model_choice = "by-seed"
[[model]]
name = "a"
curve = "flat"
[[model]]
name = "b"
curve = "usl(rate_1=3, serial=0.1, kappa=0.001)"
max_nodes = 8
[retries]
failures_per_epoch = 0.1
most = 3
from = "start"
[scores]
start = 9
worst = 5
best = 1
pace = [1, 2]
noise = 0.1
report_every_epochs = 2
[pruner]
kind = "asha"
eta = 2
first_epochs = 2
[search.lr]
low = 1e-5
high = 0.1
log = true
[curves.flat]
nodes = [0, 8]
values = [0.0, 4.0]
""")
ODD = [
    "", " ", "x", "3", "\0", "nan", -1, 0, 1, 2, 10**30, -(10**30), 0.5, 1e308, -1e308, 5e-324, math.nan, math.inf,
    True, False, [], [1], [[]], ["a", "b"], {}, {"a": 1}, date(2024, 1, 1), [True], "a:b", "no:such", "json:dumps",
    "amdahl(", "0:0 1:inf", "[campaign]",
]  # fmt: skip


def places(tables, path=()):
    for key, value in tables.items() if isinstance(tables, dict) else enumerate(tables):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def at(tables, path):
    for key in path:
        tables = tables[key]
    return tables


def test_the_full_file_is_a_campaign():
    assert len(campaign_of(FULL, FILE).campaign.models) == 2


def pairing_fault(tables):
    """The error of a file with these tables; None if it is a campaign."""
    try:
        json.dumps(campaign_of(tables, FILE).describe(), allow_nan=False)
    except InputError as error:
        return error
    return None


@pytest.mark.parametrize("path", list(places(FULL)), ids=lambda path: ".".join(map(str, path)))
def test_one_odd_value_gives_a_campaign_or_a_message_with_its_place(path):
    for odd in ODD:
        tables = copy.deepcopy(FULL)
        at(tables, path[:-1])[path[-1]] = odd
        error = pairing_fault(tables)
        assert error is None or (error.file == str(FILE) and (error.row or error.column)), odd


@pytest.mark.parametrize("path", list(places(FULL)), ids=lambda path: ".".join(map(str, path)))
def test_without_one_of_its_keys_there_is_a_campaign_or_a_message(path):
    tables = copy.deepcopy(FULL)
    del at(tables, path[:-1])[path[-1]]
    error = pairing_fault(tables)
    assert error is None or (error.file == str(FILE) and error.row)
