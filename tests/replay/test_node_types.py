"""Nodes of several types: what a job makes, what a move costs, and what is refused. Numbers to be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.errors import BfreplayError, InputError
from bfreplay.policies import EqualSharePolicy, Trigger
from bfreplay.replay import ReplaySettings
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet
from tests.replay.placed import Scripted, Step, intervals, node_seconds, of_job, run, typed_job, typed_log
from tests.replay.tiny import job, log

V100_AND_P100 = "v100 v100 p100 p100"  # n0 and n1, n2 and n3


@pytest.mark.parametrize(("nodes", "samples"), [([0], 100), ([0, 1], 200), ([2], 40), ([3, 2], 80)])
def test_the_rate_of_a_job_is_that_of_the_type_of_its_nodes(nodes, samples):
    result = run(typed_log(V100_AND_P100, 10), [typed_job()], Scripted(Step({0: nodes})))
    assert of_job(result)["done_samples"] == pytest.approx(samples)
    node_type = "v100" if nodes[0] < 2 else "p100"
    assert intervals(result) == [("job", node_type, len(nodes), 0.0, 10.0)]


def test_a_job_moves_to_another_type_with_the_same_count():
    # 10 s x 10 samples/s on v100, then 10 s x 4 on p100
    policy = Scripted(Step({0: [0]}, until_s=10), Step({0: [2]}))
    result = run(typed_log(V100_AND_P100, 20), [typed_job()], policy)
    assert of_job(result)["done_samples"] == pytest.approx(140)
    assert intervals(result) == [("job", "p100", 1, 10.0, 20.0), ("job", "v100", 1, 0.0, 10.0)]
    assert of_job(result)["n_scale_ups"] == 1  # the start; a move is no change of the count


def test_growing_on_another_type_costs_seconds_at_the_rate_of_the_old_one():
    # 1 v100 makes 10/s: 3 s of it are 30 samples, made up for on 2 p100 (8/s) in 3.75 s; then 6.25 s x 8 = 50
    policy = Scripted(Step({0: [0]}, until_s=10), Step({0: [2, 3]}))
    row = of_job(run(typed_log(V100_AND_P100, 20), [typed_job(up_s=3)], policy))
    assert row["rescale_cost_samples"] == pytest.approx(30)
    assert row["rescaling"] == pytest.approx(2 * 3.75)
    assert row["done_samples"] == pytest.approx(100 + 50)


def test_a_reclaimed_node_costs_seconds_at_the_rate_of_its_type():
    # 2 p100 make 8/s; at 10 s one leaves: 5 s x 8 = 40 samples, made up for on the other (4/s) in 10 s
    policy = Scripted(Step({0: [2, 3]}), wakes_on=Trigger.ARRIVAL)
    events = typed_log(V100_AND_P100, 25, [(10, 3, False)])
    row = of_job(run(events, [typed_job(down_s=5)], policy))
    assert row["preemption_cost_samples"] == pytest.approx(40)
    assert row["preempted"] == pytest.approx(10)
    assert row["done_samples"] == pytest.approx(80 + 5 * 4)


def test_a_job_makes_nothing_on_a_type_that_it_cannot_run_on():
    only_v100 = typed_job(rates={"v100": (0.0, 10.0)})
    result = run(typed_log(V100_AND_P100, 10), [only_v100], Scripted(Step({0: [2]})))
    row = of_job(result)
    assert row["done_samples"] == 0
    assert row["stalled"] == 10
    assert row["status"] == "waiting"


def test_one_curve_on_every_type_is_the_same_everywhere_and_node_types_still_bound_it():
    anywhere = job("anywhere", rates=(0.0, 7.0))
    curve = TabulatedCurve((0, 1), (0.0, 7.0))
    on_p100 = ElasticJob("on p100", 0, 1, 1, 0.0, 0.0, 1e9, curve, node_types=("p100",))
    policy = Scripted(Step({0: [0], 1: [1]}, until_s=10), Step({0: [2], 1: [3]}))
    result = run(typed_log(V100_AND_P100, 20), [anywhere, on_p100], policy)
    assert of_job(result, "anywhere")["done_samples"] == pytest.approx(140)
    assert of_job(result, "on p100")["done_samples"] == pytest.approx(70)


def test_a_policy_sees_the_types_in_the_order_of_the_log_and_what_each_job_makes_on_them():
    events = typed_log("p100 v100", 20, busy_first=[0], changes=[(10, 0, True)])
    policy = Scripted(Step({0: [1]}, until_s=5), Step({0: [1]}), Step({0: [0]}, until_s=15), Step({0: [0]}))
    run(events, [typed_job()], policy)
    assert policy.asked == [0.0, 5.0, 10.0, 15.0]
    first, second, third, last = policy.seen
    assert first["type_names"] == ("p100", "v100")
    assert first["node_type"] == [0, 1]
    assert first["by_type"] == [[[0.0, 4.0, 8.0], [0.0, 10.0, 20.0]]]
    assert (first["is_idle"], third["is_idle"]) == ([False, True], [True, True])
    assert [seen["held"] for seen in policy.seen] == [[[]], [[1]], [[1]], [[0]]]
    assert second["throughput"] == [[0.0, 10.0, 20.0]]  # it is on a v100
    assert last["throughput"] == [[0.0, 4.0, 8.0]]


def test_what_a_policy_sees_of_the_nodes_is_not_the_books_themselves():
    class Scribbles(Scripted):
        def decide(self, state):
            state.nodes.is_idle[:] = False
            state.nodes.held(0)[:] = 99
            with pytest.raises(ValueError, match="read-only"):
                state.nodes.node_type[:] = 1
            with pytest.raises(ValueError, match="read-only"):
                state.throughput_by_type[:] = 1.0
            return super().decide(state)

    result = run(typed_log(V100_AND_P100, 20), [typed_job()], Scribbles(Step({0: [0]}, until_s=10), Step({0: [0]})))
    assert of_job(result)["done_samples"] == pytest.approx(200)


def test_a_log_of_one_named_type_needs_no_policy_that_places():
    result = run(typed_log("p100 p100", 10), [typed_job()], EqualSharePolicy())
    assert of_job(result)["done_samples"] == pytest.approx(80)
    assert intervals(result) == [("job", "p100", 2, 0.0, 10.0)]


def test_dedicated_nodes_and_the_bound_are_of_the_one_type_of_the_log():
    # 2 nodes idle from start to end are 2 dedicated nodes: the same samples, and nobody could have more
    jobs = JobSet([typed_job(rates={"v100": (0.0, 99.0, 99.0), "p100": (0.0, 4.0, 8.0)})])
    result = replay_log(typed_log("p100 p100", 10), jobs, EqualSharePolicy())
    assert result.summary["efficiency"]["samples"] == pytest.approx(80)
    assert result.summary["efficiency"]["dedicated_samples"] == pytest.approx(80)
    assert result.summary["bound"]["samples"] == pytest.approx(80)


def test_a_policy_that_does_not_place_is_refused_on_several_types():
    with pytest.raises(InputError, match="'equal-share' decides on nodes of one type"):
        run(typed_log(V100_AND_P100, 10), [typed_job()], EqualSharePolicy())


def test_a_job_that_runs_on_none_of_the_types_is_refused():
    with pytest.raises(InputError, match="on certain node types only, and there are no such nodes") as caught:
        run(typed_log("p100 k80", 10), [typed_job(rates={"v100": (0.0, 1.0)})], Scripted(Step()))
    assert "v100" in str(caught.value)


def test_a_job_of_certain_types_is_refused_where_the_log_tells_none_apart():
    with pytest.raises(InputError, match="the log does not tell types apart"):
        run(log(1, [], 10, [0]), [typed_job()], Scripted(Step()))


def test_rounds_under_the_published_clock_are_refused():
    with pytest.raises(InputError, match="decides in rounds"):
        run(typed_log("v100", 10), [typed_job()], Scripted(Step()), semantics="published")


def test_the_published_clock_is_for_nodes_of_one_type():
    # it charges a rescale by the job's curve at the count before, which is another curve once the job has moved
    policy = Scripted(Step({0: [0]}), wakes_on=Trigger.POOL | Trigger.ARRIVAL)
    with pytest.raises(InputError, match="published"):
        run(typed_log(V100_AND_P100, 10), [typed_job()], policy, semantics="published")


def test_node_time_on_each_type_adds_up_without_tables_too():
    policy = Scripted(Step({0: [0]}, until_s=10), Step({0: [2, 3]}))
    result = replay_log(
        typed_log(V100_AND_P100, 20),
        JobSet([typed_job()]),
        policy,
        ReplaySettings(),
        efficiency=False,
        bound=False,
        with_tables=False,
    )
    assert node_seconds(result, "allocated") == 10 + 20
    assert result.summary["ledger"]["samples"] == pytest.approx(100 + 80)


_TWO = [typed_job("a"), typed_job("b")]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step({0: [0], 1: [0]}), "gave node 0 twice"),
        (Step({0: [1, 1]}), "gave node 1 twice"),
        (Step({0: [1, 2]}), r"gave nodes \[1, 2\] of several types to one job"),
        (Step({0: [4]}), "gave node 4 of 4"),
        (Step({0: [-1]}), "gave node -1 of 4"),
        (Step({0: [3]}), "gave node 3, which is not idle"),
        (Step({0: [0]}, change={"counts": np.array([1])}), r"counts of shape \(1,\), expected one for each of 2 jobs"),
        (Step({0: [0]}, change={"counts": np.array([1.0, 0.0])}), "float64 counts, expected whole numbers"),
        (Step({0: [0]}, change={"counts": np.array([2, 0])}), r"gave \[1, 0\] nodes, which are not its counts"),
        (Step({0: [0]}, change={"assigned": (np.array([0]),)}), "gave nodes for 1 of 2 jobs"),
        (Step({0: [0]}, change={"assigned": None}), "counts without nodes"),
        (Step({0: [0, 1, 2]}), r"counts outside 0 to max_nodes \[2, 2\]"),
        (Step({0: [0, 1], 1: [2, 3]}), "counts that sum to 4 of 3 idle nodes"),
        (Step({0: [0]}, change={"assigned": (np.array([0.5]), np.array([], np.int64))}), "whole numbers"),
    ],
)
def test_nodes_that_cannot_be_given_are_refused_in_words_that_say_which(step, message):
    events = typed_log(V100_AND_P100, 10, busy_first=[3])
    with pytest.raises(BfreplayError, match=f"the policy 'scripted' gave .*{message.removeprefix('gave ')}"):
        run(events, _TWO, Scripted(step))


def test_counts_below_the_minimum_are_refused():
    with pytest.raises(BfreplayError, match=r"counts between 0 and min_nodes \[2\]"):
        run(typed_log(V100_AND_P100, 10), [typed_job(min_nodes=2)], Scripted(Step({0: [0]})))


def test_a_job_may_keep_fewer_nodes_than_it_needs_after_a_reclaim_and_makes_nothing_on_them():
    policy = Scripted(Step({0: [0, 1]}), Step({0: [0]}))
    result = run(typed_log(V100_AND_P100, 20, [(10, 1, False)]), [typed_job(min_nodes=2)], policy)
    row = of_job(result)
    assert row["done_samples"] == pytest.approx(200)
    assert row["stalled"] == 10
    assert row["n_preemptions"] == 1


def test_a_job_on_other_nodes_of_the_same_number_goes_on_with_its_debts():
    # growing from 1 to 2 v100 at 2 s costs 10 x 4 = 40 samples; at 3 s 20 of them are left, and it moves to 2 p100
    # (8/s): 2.5 s more; then 4.5 s x 8
    policy = Scripted(Step({0: [0]}, until_s=2), Step({0: [0, 1]}, until_s=3), Step({0: [2, 3]}))
    row = of_job(run(typed_log(V100_AND_P100, 10), [typed_job(up_s=4)], policy))
    assert row["rescaling"] == pytest.approx(2 * 1 + 2 * 2.5)
    assert row["done_samples"] == pytest.approx(20 + 4.5 * 8)


def test_the_nodes_table_says_who_was_where():
    policy = Scripted(Step({0: [0], 1: [3]}, until_s=4), Step({0: [2], 1: [3]}))
    table = run(typed_log(V100_AND_P100, 10), _TWO, policy).table("nodes").to_pydict()
    spans = {
        (node, name, since.timestamp(), until.timestamp())
        for node, name, since, until in zip(*(table[key] for key in ("node", "job", "from", "to")), strict=True)
    }
    assert spans == {("n0", "a", 0, 4), ("n2", "a", 4, 10), ("n3", "b", 0, 10)}
