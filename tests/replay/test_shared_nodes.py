"""Two jobs on the same nodes: what each makes, what each is charged, and what happens when one goes."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.errors import BfreplayError
from bfreplay.policies import EqualSharePolicy, Trigger
from bfreplay.workload import Colocation
from tests.replay.placed import Scripted, Step, intervals, node_seconds, of_job, run, typed_job, typed_log
from tests.replay.tiny import SECOND

# alone, a job makes 10/s on one v100 and 20/s on two
TOGETHER = Colocation(
    {
        ("a", "b", 1, "v100"): (6.0, 3.0),
        ("a", "b", 2, "v100"): (12.0, 5.0),
        ("b", "a", 1, "p100"): (1.0, 2.0),  # the other way round: b makes 1, a makes 2
    }
)
BOTH_ON_N0 = Step({0: [0], 1: [0]}, pairs=((0, 1),))
ONLY_AT_THE_START = Trigger.ARRIVAL


def _pair(**options):
    return [typed_job("a", **options), typed_job("b", **options)]


def _books(result, name):
    row = of_job(result, name)
    return [row[label] for label in ("useful", "rescaling", "preempted", "stalled")]


def test_each_of_two_makes_what_the_table_says_and_is_charged_half():
    result = run(typed_log("v100", 10), _pair(), Scripted(BOTH_ON_N0), colocation=TOGETHER)
    assert of_job(result, "a")["done_samples"] == pytest.approx(60)
    assert of_job(result, "b")["done_samples"] == pytest.approx(30)
    assert _books(result, "a") == _books(result, "b") == [5, 0, 0, 0]
    assert node_seconds(result, "idle") == node_seconds(result, "allocated") == 10
    assert intervals(result, "sharing") == [("a", "v100", 1, 0.0, 10.0, 1), ("b", "v100", 1, 0.0, 10.0, 2)]


def test_a_pair_is_found_in_the_table_in_either_order_and_by_the_type_of_its_nodes():
    step = Step({0: [1], 1: [1]}, pairs=((0, 1),))
    result = run(typed_log("v100 p100", 10), _pair(), Scripted(step), colocation=TOGETHER)
    assert of_job(result, "a")["done_samples"] == pytest.approx(20)
    assert of_job(result, "b")["done_samples"] == pytest.approx(10)


def test_two_that_are_not_in_the_table_make_nothing_together():
    jobs = [typed_job("a"), typed_job("c")]
    result = run(typed_log("v100", 10), jobs, Scripted(BOTH_ON_N0), colocation=TOGETHER)
    assert _books(result, "a") == _books(result, "c") == [0, 0, 0, 5]
    assert of_job(result, "a")["done_samples"] == 0


def test_a_span_of_an_odd_number_of_microseconds_is_charged_whole():
    # 7 microseconds: the first pays for the even ones (ended at 2, 4, 6), the second for the odd ones
    result = run(typed_log("v100", 7e-6), _pair(), Scripted(BOTH_ON_N0), colocation=TOGETHER)
    ledger = result.summary["ledger"]
    assert ledger["idle_node_us"] == ledger["allocated_node_us"] == 7
    assert [of_job(result, name)["useful_node_us"] for name in "ab"] == [3, 4]


@pytest.mark.parametrize("cuts_us", [[1], [1, 2, 3], [3, 4], [1, 4, 5, 10]])
def test_what_two_are_charged_does_not_depend_on_how_time_is_cut(cuts_us):
    steps = [Step({0: [0], 1: [0]}, pairs=((0, 1),), until_s=cut * 1e-6) for cut in cuts_us]
    result = run(typed_log("v100", 11e-6), _pair(), Scripted(*steps, BOTH_ON_N0), colocation=TOGETHER)
    assert [of_job(result, name)["useful_node_us"] for name in "ab"] == [5, 6]
    assert result.summary["ledger"]["allocated_node_us"] == 11


def test_two_pairs_on_wide_gangs_pay_by_the_node():
    step = Step({0: [0, 1], 1: [0, 1]}, pairs=((0, 1),))
    result = run(typed_log("v100 v100 v100", 10), _pair(), Scripted(step), colocation=TOGETHER)
    assert [of_job(result, name)["done_samples"] for name in "ab"] == pytest.approx([120, 50])
    assert _books(result, "a") == _books(result, "b") == [10, 0, 0, 0]
    assert node_seconds(result, "unallocated") == 10
    assert [row[2] for row in intervals(result)] == [2, 2]  # the whole gang, for both


def test_when_one_is_done_the_other_has_the_nodes_for_itself_and_pays_for_them():
    # b does 30 samples at 3/s in 10 s; from then on a makes what it makes alone, 10/s, though nobody decides again
    jobs = [typed_job("a"), typed_job("b", work=30)]
    result = run(typed_log("v100", 20), jobs, Scripted(BOTH_ON_N0, wakes_on=ONLY_AT_THE_START), colocation=TOGETHER)
    assert of_job(result, "b")["finished"] == 10.0
    assert _books(result, "b") == [5, 0, 0, 0]
    assert _books(result, "a") == [5 + 10, 0, 0, 0]
    assert intervals(result, "sharing") == [
        ("a", "v100", 1, 0.0, 10.0, 1),
        ("a", "v100", 1, 10.0, 20.0, 0),
        ("b", "v100", 1, 0.0, 10.0, 2),
    ]
    assert of_job(result, "a")["done_samples"] == pytest.approx(60 + 100)


def test_when_the_first_of_two_is_done_the_node_passes_to_the_second():
    jobs = [typed_job("a", work=60), typed_job("b")]
    result = run(typed_log("v100", 20), jobs, Scripted(BOTH_ON_N0, wakes_on=ONLY_AT_THE_START), colocation=TOGETHER)
    assert _books(result, "b") == [5 + 10, 0, 0, 0]
    table = result.table("nodes").to_pydict()
    assert list(zip(table["job"], [t.timestamp() for t in table["to"]], strict=True)) == [("a", 10), ("b", 20)]


def test_both_done_at_the_same_instant_were_useful_until_then():
    jobs = [typed_job("a", work=60), typed_job("b", work=30)]
    result = run(typed_log("v100", 20), jobs, Scripted(BOTH_ON_N0), colocation=TOGETHER)
    assert [of_job(result, name)["finished"] for name in "ab"] == [10.0, 10.0]
    assert _books(result, "a") == _books(result, "b") == [5, 0, 0, 0]
    assert node_seconds(result, "unallocated") == 10


def test_of_two_that_wait_for_each_other_each_has_its_own_useful_time():
    # a is done after 5 s and b after 10 s; both hold the node until 20 s: 2.5 and 5 node-seconds were useful
    jobs = [typed_job("a", work=30), typed_job("b", work=30)]
    step = Step({0: [0], 1: [0]}, pairs=((0, 1),), not_before_s={0: 20, 1: 20})
    result = run(typed_log("v100", 30), jobs, Scripted(step), colocation=TOGETHER)
    assert [of_job(result, name)["finished"] for name in "ab"] == [20.0, 20.0]
    assert _books(result, "a") == pytest.approx([2.5, 0, 0, 7.5], abs=2e-6)
    assert _books(result, "b") == pytest.approx([5, 0, 0, 5], abs=2e-6)


def test_both_lose_a_node_that_is_reclaimed_and_both_pay():
    # at 10 s one of the two shared nodes leaves: a owes 2 s x 12, b 2 s x 5; on one node they make 6 and 3
    result = run(
        typed_log("v100 v100", 30, [(10, 1, False)]),
        _pair(down_s=2),
        Scripted(Step({0: [0, 1], 1: [0, 1]}, pairs=((0, 1),)), BOTH_ON_N0),
        colocation=TOGETHER,
    )
    assert result.summary["n_preemptions"] == 2
    assert [of_job(result, name)["preemption_cost_samples"] for name in "ab"] == pytest.approx([24, 10])
    assert _books(result, "a") == pytest.approx([10 + 8, 0, 2, 0])  # 24 samples at 6/s: 4 s of half a node
    assert _books(result, "b") == pytest.approx([10 + 10 - 5 / 3, 0, 5 / 3, 0], abs=2e-6)
    assert [of_job(result, name)["done_samples"] for name in "ab"] == pytest.approx([120 + 96, 50 + 50])
    assert intervals(result, "sharing")[:2] == [("a", "v100", 1, 10.0, 30.0, 1), ("a", "v100", 2, 0.0, 10.0, 1)]


def test_two_that_lost_a_node_go_on_with_the_rates_of_fewer_nodes_though_nobody_decides():
    result = run(
        typed_log("v100 v100", 20, [(10, 0, False)]),
        _pair(),
        Scripted(Step({0: [0, 1], 1: [0, 1]}, pairs=((0, 1),)), wakes_on=ONLY_AT_THE_START),
        colocation=TOGETHER,
    )
    assert [of_job(result, name)["done_samples"] for name in "ab"] == pytest.approx([120 + 60, 50 + 30])


def test_two_that_lose_all_their_nodes_wait_and_start_again_somewhere_else():
    policy = Scripted(BOTH_ON_N0, Step({0: [1], 1: [1]}, pairs=((0, 1),)))
    result = run(typed_log("v100 v100", 20, [(10, 0, False)]), _pair(), policy, colocation=TOGETHER)
    assert [of_job(result, name)["n_starts"] for name in "ab"] == [2, 2]
    assert [of_job(result, name)["done_samples"] for name in "ab"] == pytest.approx([120, 60])


def test_a_pair_that_a_decision_parts_is_charged_and_paid_alone_from_then_on():
    policy = Scripted(
        Step({0: [0], 1: [0]}, pairs=((0, 1),), until_s=10), Step({0: [1], 1: [0]}, until_s=20), Step({1: [0]})
    )
    result = run(typed_log("v100 v100", 30), _pair(), policy, colocation=TOGETHER)
    assert [of_job(result, name)["done_samples"] for name in "ab"] == pytest.approx([60 + 100, 30 + 200])
    assert _books(result, "a") == [15, 0, 0, 0]
    assert _books(result, "b") == [25, 0, 0, 0]
    assert node_seconds(result, "unallocated") == 10 + 10


def test_a_job_may_change_its_partner():
    table = Colocation({("a", "b", 1, "v100"): (6.0, 3.0), ("b", "c", 1, "v100"): (4.0, 8.0)})
    policy = Scripted(
        Step({0: [0], 1: [0]}, pairs=((0, 1),), until_s=10), Step({0: [1], 1: [0], 2: [0]}, pairs=((1, 2),))
    )
    result = run(typed_log("v100 v100", 20), [typed_job(name) for name in "abc"], policy, colocation=table)
    done = [of_job(result, name)["done_samples"] for name in "abc"]
    assert done == pytest.approx([60 + 100, 30 + 40, 80])
    assert [of_job(result, name)["useful"] for name in "abc"] == [5 + 10, 5 + 5, 5]


def test_time_lost_to_a_restart_is_half_of_a_node_too():
    step = Step({0: [0], 1: [0]}, pairs=((0, 1),), restart_s={0: 4})
    result = run(typed_log("v100", 10), _pair(), Scripted(step, wakes_on=ONLY_AT_THE_START), colocation=TOGETHER)
    assert _books(result, "a") == [3, 2, 0, 0]
    assert of_job(result, "a")["done_samples"] == pytest.approx(36)
    assert of_job(result, "b")["done_samples"] == pytest.approx(30)


def test_runs_whose_jobs_cannot_share_have_no_column_for_it():
    result = run(typed_log("v100", 10), _pair(), Scripted(Step({0: [0]})))
    assert "sharing" not in result.table("allocations").column_names


def test_after_the_last_pair_a_policy_that_gives_counts_only_may_go_on():
    # on one type; when b is done a is alone, and the placement rule gives it the second node: 20/s
    class PairThenCounts(Scripted):
        def decide(self, state):
            return super().decide(state) if state.n_jobs == 2 else EqualSharePolicy().decide(state)

    jobs = [typed_job("a"), typed_job("b", work=30)]
    result = run(typed_log("v100 v100", 20), jobs, PairThenCounts(BOTH_ON_N0), colocation=TOGETHER)
    assert of_job(result, "a")["done_samples"] == pytest.approx(60 + 200)


def test_while_two_share_nodes_counts_alone_do_not_say_who_gets_them():
    class CountsAtOnce(Scripted):
        def decide(self, state):
            return EqualSharePolicy().decide(state) if state.current.any() else super().decide(state)

    events = typed_log("v100 v100 v100", 20, [(5, 2, False)])
    with pytest.raises(BfreplayError, match="counts without nodes, where nodes are of several types or shared"):
        run(events, _pair(), CountsAtOnce(BOTH_ON_N0), colocation=TOGETHER)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step({0: [0], 1: [0]}, change={"partner": np.array([1])}), r"partners of shape \(1,\) for 3 jobs"),
        (Step({0: [0], 1: [0]}, change={"partner": np.array([1, -1, -1])}), "job 1 to job 0 as a partner"),
        (Step({0: [0], 1: [0]}, change={"partner": np.array([1, 2, 0])}), "which is not mutual"),
        (Step({0: [0]}, change={"partner": np.array([0, -1, -1])}), "job 0 to job 0 as a partner"),
        (Step({0: [0]}, change={"partner": np.array([3, -1, -1])}), "job 3 to job 0 as a partner"),
        (Step({0: [0], 1: [1]}, pairs=((0, 1),)), "jobs 0 and 1 other nodes, though they share them"),
        (Step({0: [0], 1: [0], 2: [0]}, pairs=((0, 1),)), "node 0 twice"),
        (Step({0: [0], 1: [0]}, pairs=((0, 1),), change={"assigned": None}), "counts without nodes"),
        (Step({0: [0, 2], 1: [0, 2]}, pairs=((0, 1),)), "several types to one job"),
    ],
)
def test_pairs_that_are_none_are_refused(step, message):
    jobs = [typed_job(name) for name in "abc"]
    with pytest.raises(BfreplayError, match=message):
        run(typed_log("v100 v100 p100", 10), jobs, Scripted(step), colocation=TOGETHER)


@pytest.mark.parametrize("types", ["v100", "v100 p100"])
def test_jobs_cannot_share_where_nobody_says_how_fast_they_are_then(types):
    with pytest.raises(BfreplayError, match="share nodes, and the jobs have no table"):
        run(typed_log(types, 10), _pair(), Scripted(BOTH_ON_N0))


def test_the_ledger_is_in_whole_node_microseconds():
    jobs = [typed_job("a", work=17.123), typed_job("b", work=7.77)]
    result = run(typed_log("v100", 12.345677), jobs, Scripted(BOTH_ON_N0), colocation=TOGETHER)
    ledger = result.summary["ledger"]
    assert ledger["idle_node_us"] == round(12.345677 * SECOND)
    assert (
        sum(ledger[f"{name}_node_us"] for name in ("useful", "rescaling", "preempted", "stalled", "unallocated"))
        == (ledger["idle_node_us"])
    )
