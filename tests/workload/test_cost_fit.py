"""Costs from the pauses of restarts: medians by the new count, and the rule of steps."""

from __future__ import annotations

import pytest

from bfreplay.workload.change_costs import CostByCount
from bfreplay.workload.cost_fit import CostStep, MeasuredRestart, fit_costs


def ups(pauses_of_count):
    """Scale-ups from one node to each count."""
    return [MeasuredRestart(1, nodes, pause_s) for nodes, pauses in pauses_of_count.items() for pause_s in pauses]


def up_cost(pauses_of_count):
    return fit_costs(ups(pauses_of_count)).costs()["scale_up_cost_s"]


def test_starts_and_changes_are_told_apart_by_the_counts_before_and_after():
    rows = [(0, 4, 60), (0, 4, 62), (0, 4, 64), (4, 8, 30), (4, 8, 31), (4, 8, 38), (8, 2, 5), (4, 2, 7), (3, 2, 6)]
    fitted = fit_costs(MeasuredRestart(*row) for row in rows)
    assert fitted.costs() == {"start_cost_s": 62.0, "scale_up_cost_s": 31.0, "scale_down_cost_s": 6.0}
    assert fitted.warnings == ()


@pytest.mark.parametrize(
    ("pauses_of_count", "cost"),
    [
        ({2: [20, 20, 26]}, 20.0),
        ({2: [20, 21]}, 20.5),
        ({2: [0.12345, 0.12345, 9]}, 0.123),
        # medians 20 and 22: just within 10 % of 20; all six have the median 21
        ({2: [20, 20, 20], 4: [22, 22, 22]}, 21.0),
        # 22.1 is not
        ({2: [20, 20, 20], 4: [22.1, 22.1, 22.1]}, CostByCount(((0, 20.0), (4, 22.1)))),
        # lower at more nodes is a step as well
        ({2: [20, 20, 20], 4: [17, 17, 17]}, CostByCount(((0, 20.0), (4, 17.0)))),
        # 20, 21.5 join with the median 20.75; 22.5 is within 10 % of it; 29 begins a step, 30 joins it
        (
            {2: [20] * 3, 3: [21.5] * 3, 4: [22.5] * 3, 8: [29] * 3, 9: [30] * 3},
            CostByCount(((0, 21.5), (8, 29.5))),
        ),
        # one at 2 and one at 3 are taken together with the two at 4: 20, 40, 30, 30 have the median 30
        ({2: [20], 3: [40], 4: [30, 30], 8: [90, 95, 99]}, CostByCount(((0, 30.0), (8, 95.0)))),
        # the two at 16 are too few: with those at 8
        ({4: [20, 20, 20], 8: [50, 50, 50], 16: [70, 70]}, CostByCount(((0, 20.0), (8, 50.0)))),
        ({4: [20, 20, 20], 8: [50, 50]}, 20.0),
        ({2: [0, 0, 0], 4: [0, 0, 0]}, 0.0),
        ({2: [0, 0, 0], 4: [1, 1, 1]}, CostByCount(((0, 0.0), (4, 1.0)))),
    ],
)
def test_a_cost_is_the_median_in_as_many_steps_as_differ(pauses_of_count, cost):
    assert up_cost(pauses_of_count) == cost
    backwards = dict(reversed(pauses_of_count.items()))
    assert up_cost(backwards) == cost


def test_a_step_says_its_counts_restarts_and_spread():
    (low, high) = fit_costs(ups({2: [10, 20], 3: [30, 40, 50], 8: [90, 90, 90]})).steps["scale_up_cost_s"]
    assert low == CostStep(2, 3, (10, 20, 30, 40, 50))
    assert (low.median_s, low.quartiles_s) == (30.0, (20.0, 40.0))
    assert (high.first_nodes, high.last_nodes, high.median_s, high.quartiles_s) == (8, 8, 90.0, (90.0, 90.0))


def test_what_is_not_used_missing_or_too_little_is_told():
    fitted = fit_costs([MeasuredRestart(*row) for row in [(4, 0, 9), (0, 0, 9), (4, 4, 9), (0, 4, 60), (4, 2, 7)]])
    assert fitted.costs() == {"start_cost_s": 60.0, "scale_down_cost_s": 7.0}
    assert fitted.warnings == (
        "not used: 2 restarts to 0 nodes.",
        "not used: 1 restart on as many nodes as before.",
        "fewer than 3 restarts from 0 nodes: start_cost_s may be far off.",
        "no restart to more nodes: scale_up_cost_s is not known.",
        "fewer than 3 restarts to fewer nodes: scale_down_cost_s may be far off.",
    )
    assert fit_costs([]).steps == {}
