"""What a change of nodes costs, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay._compiled import compiled
from bfreplay.milp.charge_rule import (
    charged_rate,
    charged_rates,
    move_cost,
    preemption_cost,
    rescale_cost,
    rescale_costs,
    scale_down_cost,
    scale_up_cost,
)

UP_S, DOWN_S = 20.0, 10.0


@compiled
def _compiled_costs(rate, before, after, min_nodes, is_published):
    was = charged_rate(rate, before, min_nodes, is_published)
    return rescale_cost(was, before, after, UP_S, DOWN_S), preemption_cost(was, DOWN_S)


@pytest.mark.parametrize(
    ("before", "after", "cost"),
    [
        (4, 5, 30 * 20.0),
        (4, 8, 30 * 20.0),  # however many nodes it gains
        (4, 3, 30 * 10.0),
        (4, 0, 30 * 10.0),  # however many it loses
        (4, 4, 0.0),
    ],
)
def test_a_job_of_30_samples_a_second_gives_up_its_rate_for_20_s_when_it_grows_and_10_s_when_it_shrinks(
    before, after, cost
):
    assert rescale_cost(30.0, before, after, UP_S, DOWN_S) == cost
    assert _compiled_costs(30.0, before, after, 1, False)[0] == cost


def test_a_reclaim_costs_what_a_decision_to_shrink_costs():
    assert preemption_cost(30.0, DOWN_S) == scale_down_cost(30.0, DOWN_S) == 300.0


def test_a_move_to_another_node_type_costs_both():
    assert move_cost(scale_up_cost(30.0, UP_S), scale_down_cost(30.0, DOWN_S)) == 900.0


def test_a_start_is_free_because_the_rate_before_is_0():
    assert rescale_cost(charged_rate(0.0, 0, 2), 0, 4, UP_S, DOWN_S) == 0.0


def test_a_job_below_its_minimum_is_charged_nothing_except_by_the_published_accounting():
    assert charged_rate(5.0, 1, 2) == 0.0
    assert charged_rate(5.0, 1, 2, True) == 5.0
    assert charged_rate(5.0, 2, 2) == 5.0
    assert _compiled_costs(5.0, 1, 3, 2, False) == (0.0, 0.0)
    assert _compiled_costs(5.0, 1, 3, 2, True) == (100.0, 50.0)


def test_arrays_of_jobs_cost_what_each_job_costs():
    rate, before, after = np.array([30.0, 30.0, 30.0, 5.0]), np.array([4, 4, 4, 1]), np.array([6, 2, 4, 3])
    up_s, down_s = np.full(4, UP_S), np.full(4, DOWN_S)
    was = charged_rates(rate, before, np.full(4, 2))
    assert was.tolist() == [30.0, 30.0, 30.0, 0.0]
    assert rescale_costs(was, before, after, up_s, down_s).tolist() == [600.0, 300.0, 0.0, 0.0]
