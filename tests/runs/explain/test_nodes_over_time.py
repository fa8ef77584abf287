"""Nodes over time add up to the node time in the ledger."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from bfreplay import replay_log
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy
from bfreplay.runs.explain.nodes_over_time import nodes_over_time, nodes_over_time_by_model
from bfreplay.workload import JobSet
from tests.examples import examples
from tests.replay.tiny import SECOND, job, job_sets, log, logs

NODE_TIME = ("useful_node_us", "rescaling_node_us", "preempted_node_us", "stalled_node_us")


def test_a_job_that_gains_and_loses_nodes():
    events = log(3, [(10, 1, True), (20, 0, False), (20, 1, False), (40, 2, True)], 60, idle_first=[0])
    run = replay_log(events, JobSet([job("a")]), BFTrainerPolicy(60.0), efficiency=False, bound=False)
    steps = nodes_over_time(run, "a")
    assert (steps.edge_us / SECOND).tolist() == [0, 10, 20, 40, 60]
    assert steps.count.tolist() == [1, 2, 0, 1]
    assert steps.node_us() == (10 + 2 * 10 + 20) * SECOND
    assert steps.mean_in(np.array([0, 20, 50, 60]) * SECOND).tolist() == [1.5, pytest.approx(1 / 3), 1.0]


def test_a_job_without_nodes_is_flat():
    run = replay_log(log(1, [], 60), JobSet([job("a")]), efficiency=False, bound=False)
    steps = nodes_over_time(run, "a")
    assert ((steps.edge_us / SECOND).tolist(), steps.count.tolist()) == ([0, 60], [0])
    assert {label: each.count.tolist() for label, each in nodes_over_time_by_model(run).items()} == {"(no model)": [0]}


def test_a_job_that_is_not_there_is_refused_with_the_nearest_name():
    run = replay_log(log(1, [], 60), JobSet([job("Trial-7"), job("other")]), efficiency=False, bound=False)
    with pytest.raises(InputError, match="did you mean 'Trial-7'") as caught:
        nodes_over_time(run, "trial-07")
    assert "one of Trial-7, other" in str(caught.value)


@settings(max_examples=examples(60))
@given(events=logs(), jobs=job_sets())
def test_nodes_over_time_are_the_node_time_of_the_books(events, jobs):
    run = replay_log(events, jobs, EqualSharePolicy(), efficiency=False, bound=False)
    for row in run.jobs.to_dict("records"):
        steps = nodes_over_time(run, row["job"])
        assert steps.node_us() == sum(row[name] for name in NODE_TIME)
        assert (np.diff(steps.edge_us) > 0).all()
        assert (np.diff(steps.count) != 0).all()
    ((_, together),) = nodes_over_time_by_model(run).items()
    assert together.node_us() == sum(int(run.jobs[name].sum()) for name in NODE_TIME)
