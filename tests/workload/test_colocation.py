"""The table of what two jobs make on the same nodes."""

from __future__ import annotations

import math

import pytest

from bfreplay.errors import InputError
from bfreplay.workload import Colocation, JobSet
from tests.replay.placed import typed_job

TABLE = Colocation({("a", "b", 1, "v100"): (6, 3.5), ("a", "a", 2, "v100"): (4.0, 5.0)})


def test_a_pair_is_found_in_both_orders():
    assert TABLE.rates("a", "b", 1, "v100") == (6.0, 3.5)
    assert TABLE.rates("b", "a", 1, "v100") == (3.5, 6.0)
    assert len(TABLE) == 2


def test_a_pair_named_in_both_orders_is_taken_as_it_is_asked_for():
    both = Colocation({("a", "b", 1, "v100"): (6.0, 3.0), ("b", "a", 1, "v100"): (2.0, 5.0)})
    assert both.rates("a", "b", 1, "v100") == (6.0, 3.0)
    assert both.rates("b", "a", 1, "v100") == (2.0, 5.0)


def test_two_jobs_of_one_model_may_share():
    assert TABLE.rates("a", "a", 2, "v100") == (4.0, 5.0)


@pytest.mark.parametrize("pair", [("a", "c", 1, "v100"), ("a", "b", 2, "v100"), ("a", "b", 1, "p100")])
def test_a_pair_that_is_not_there_makes_nothing(pair):
    assert TABLE.rates(*pair) == (0.0, 0.0)


@pytest.mark.parametrize("rates", [(-1.0, 2.0), (1.0, math.nan), (math.inf, 1.0)])
def test_rates_that_are_none_are_refused_by_name(rates):
    with pytest.raises(InputError, match=r"'a' and 'b' on 4 shared nodes \(k80\) are invalid"):
        Colocation({("a", "b", 4, "k80"): rates})


def test_tables_are_equal_by_what_they_say():
    same = Colocation({("a", "a", 2, "v100"): (4, 5), ("a", "b", 1, "v100"): (6.0, 3.5)})
    assert same == TABLE
    assert hash(same) == hash(TABLE)
    assert Colocation({("a", "b", 1, "v100"): (6, 3)}) != TABLE
    assert TABLE != {("a", "b", 1, "v100"): (6, 3.5)}


def test_a_set_of_jobs_keeps_its_table_whatever_is_made_of_it():
    jobs = JobSet([typed_job("a"), typed_job("b")], submit_is_relative=True, colocation=TABLE)
    assert jobs.anchored_at(5).colocation is TABLE
    assert jobs.endless(1, 5).colocation is TABLE
    assert JobSet([typed_job("a")]).colocation is None
