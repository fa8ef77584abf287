"""Gavel's policies in the replay: by name, on clusters, and on nodes that come and go."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents, NodeState
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import Trigger
from bfreplay.policies.catalogue import POLICIES, policy_of
from bfreplay.replay import ReplaySettings
from bfreplay.runs import RunResult
from bfreplay.scalability import TabulatedCurve
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.systems.gavel.rounds_in_replay import KnownJobs
from bfreplay.workload import Colocation, ElasticJob, JobSet

NAMES = [name for name in POLICIES.names() if name.startswith("gavel.")]
S = 1_000_000


def job(name: str, steps: float, rates: dict[str, float], gang: int = 1, submit_s: float = 0, **more) -> ElasticJob:
    curves = {kind: TabulatedCurve([0, gang], [0, rate]) for kind, rate in rates.items()}
    return ElasticJob(
        name=name,
        submit_us=int(submit_s * S),
        min_nodes=gang,
        max_nodes=gang,
        scale_up_cost_s=0,
        scale_down_cost_s=0,
        work_samples=steps,
        throughput=next(iter(curves.values())),
        throughput_by_type=curves,
        **{"model": name, **more},
    )


def run(events: NodeEvents, jobs: Sequence[ElasticJob] | JobSet, policy, **settings) -> RunResult:
    jobs = jobs if isinstance(jobs, JobSet) else JobSet(jobs, submit_is_relative=True)
    chosen = {"max_parallel": 100, "until_done": True, "record_nodes": True, **settings}
    return replay_log(events, jobs, policy, ReplaySettings(**chosen), efficiency=False, bound=False)


def finished_s(result: RunResult) -> list[float]:
    seconds = (result.jobs["finished"] - result.jobs["submitted"]).dt.total_seconds()
    return [round(value, 3) for value in seconds]


def allocations(result: RunResult) -> list[tuple[str, str, int, float, float]]:
    table = result.allocations
    start = table["from"].min()
    columns = [table[name] for name in ("job", "node_type", "count")]
    columns += [(table[name] - start).dt.total_seconds() for name in ("from", "to")]
    return list(zip(*columns, strict=True))


FAST, SLOW = {"a": 10.0, "b": 1.0}, {"a": 4.0, "b": 2.0}
TOGETHER = Colocation({("one", "two", 1, "a"): (6.0, 3.0), ("one", "two", 1, "b"): (0.8, 1.6)})


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_runs_all_jobs_to_their_end_and_the_same_way_twice(name):
    jobs = JobSet(
        [
            job("one", 4_000, FAST),
            job("two", 2_000, SLOW, weight=5.0, deadline_us=9_000 * S),
            job("three", 900, SLOW, submit_s=400),
            job("four", 700, FAST, submit_s=401),
        ],
        submit_is_relative=True,
        colocation=TOGETHER,
    )
    policy = policy_of(name, t_fwd_s=120, solver=ExactSolver(), prices={"a": 2.0, "b": 1.0})
    first, second = (run(fixed_cluster("a=1,b=2"), jobs, policy) for _ in range(2))
    assert first.summary["jobs"]["finished"] == 4
    assert first.record == second.record
    assert first.allocations.equals(second.allocations)
    assert first.record["config"]["policy"]["name"] == name
    assert first.summary["policy"]["n_rounds"] > 2


def test_a_job_alone_runs_whole_rounds_of_whole_steps_on_the_fastest_type():
    """3.7 steps/s: 1,332 whole steps take 360 s. Two full rounds, and 336 steps."""
    result = run(fixed_cluster("a=1,b=1"), [job("one", 3_000, {"a": 3.7, "b": 1.0})], gavel_policy("fifo_perf")())
    assert finished_s(result) == [round(3_000 / 3.7, 3)]
    assert result.summary["policy"]["n_rounds"] == 3
    assert {kind for _, kind, *_ in allocations(result)} == {"a"}


def test_steps_that_do_not_fill_a_round_are_waited_for_and_booked_as_stalled():
    """1.505 steps/s: 541 steps a round take 359.468 s; the other job's round is full, so that is waited for."""
    jobs = [job("one", 1_082, {"a": 1.505}), job("two", 720, {"a": 1.0})]
    result = run(fixed_cluster("a=2"), jobs, gavel_policy("fifo_perf")())
    assert finished_s(result) == [round(360 + 541 / 1.505, 3), 720]
    waited_s = 360 - 541 / 1.505
    assert result.summary["ledger"]["stalled_node_us"] == pytest.approx(waited_s * S, abs=2)


def test_one_that_arrives_in_mid_round_waits_for_the_next_and_one_that_finds_nobody_starts_at_once():
    jobs = [
        job("one", 500, {"a": 1.0}),
        job("two", 10, {"a": 1.0}, submit_s=100),
        job("late", 5, {"a": 1.0}, submit_s=9_000),
    ]
    result = run(fixed_cluster("a=2"), jobs, gavel_policy("fifo_perf")())
    assert finished_s(result) == [500, 270, 5]


def test_time_is_shared_between_two_jobs_on_one_node():
    jobs = [job("one", 1_440, {"a": 1.0}), job("two", 1_440, {"a": 1.0})]
    result = run(fixed_cluster("a=1"), jobs, gavel_policy("max_min_fairness_perf")())
    rounds = [(name, start) for name, _, _, start, _ in allocations(result)]
    assert [name for name, _ in rounds] == ["one", "two"] * 4
    assert finished_s(result) == [2_520, 2_880]


def test_a_restart_costs_its_seconds_whenever_a_job_has_other_nodes_than_before():
    jobs = [job("one", 600, {"a": 1.0}), job("two", 600, {"a": 1.0})]
    result = run(fixed_cluster("a=1"), jobs, gavel_policy("max_min_fairness_perf")(GavelOptions(restart_s=60.0)))
    # 300 steps a round, one after the other: each starts twice
    assert finished_s(result) == [1_080, 1_440]
    assert result.summary["ledger"]["rescaling_node_us"] == 4 * 60 * S
    alone = run(fixed_cluster("a=1"), jobs[:1], gavel_policy("max_min_fairness_perf")(GavelOptions(restart_s=60.0)))
    assert finished_s(alone) == [660]


def test_packed_jobs_share_the_node_and_half_of_its_time_each():
    jobs = JobSet(
        [job("one", 3_600, {"a": 10.0}), job("two", 1_800, {"a": 4.0})], submit_is_relative=True, colocation=TOGETHER
    )
    result = run(fixed_cluster("a=1"), jobs, gavel_policy("max_min_fairness_packed")())
    assert set(result.allocations["sharing"]) == {1, 2}
    useful = result.jobs["useful_node_us"].tolist()
    assert sum(useful) == result.summary["ledger"]["useful_node_us"]
    # 6 and 3 steps/s: 600 s each, of which each is charged half
    assert finished_s(result) == [600, 600]
    assert useful == [300 * S, 300 * S]


def idle_log(events: Sequence[tuple[float, int, NodeState]], n_nodes: int, end_s: float) -> NodeEvents:
    """Nodes that are idle from the start, but for those that an event at 0 takes."""
    return NodeEvents.from_arrays(
        [f"n{k}" for k in range(n_nodes)],
        np.full(n_nodes, NodeState.IDLE),
        [int(at * S) for at, _, _ in events],
        [node for _, node, _ in events],
        [state for _, _, state in events],
        0,
        int(end_s * S),
        node_types=["a"] * n_nodes,
    )


def test_a_gang_that_loses_a_node_moves_to_free_ones_at_once_where_nodes_are_refilled():
    log = idle_log([(100, 0, NodeState.BUSY)], 3, 5_000)
    jobs = [job("one", 2_000, {"a": 2.0}, gang=2)]
    at_once = run(log, jobs, gavel_policy("fifo_perf")())
    assert finished_s(at_once) == [1_000]
    table = at_once.frame("nodes")
    assert set(table["node"]) == {"n0", "n1", "n2"}
    waits = run(log, jobs, gavel_policy("fifo_perf")(GavelOptions(refill=False)))
    assert finished_s(waits) == [1_260]  # stalled from 100 to the end of the round
    assert waits.summary["ledger"]["stalled_node_us"] == 260 * S


def test_nodes_that_come_in_mid_round_are_used_at_once_and_others_go_on_undisturbed():
    log = idle_log([(0, 1, NodeState.BUSY), (100, 1, NodeState.IDLE)], 2, 5_000)
    jobs = [job("one", 360, {"a": 1.0}), job("two", 260, {"a": 1.0})]
    result = run(log, jobs, gavel_policy("max_min_fairness_perf")())
    assert finished_s(result) == [360, 360]
    assert result.summary["policy"]["n_rounds"] == 1
    assert result.summary["ledger"]["stalled_node_us"] == 0


def test_what_a_round_had_left_is_left_after_nodes_came_in_its_middle():
    """A limit of 541 steps a round stays one of 541: nodes that come do not start the count anew."""
    log = idle_log([(0, 1, NodeState.BUSY), (100, 1, NodeState.IDLE)], 2, 5_000)
    jobs = [job("one", 1_082, {"a": 1.505}), job("two", 10_000, {"a": 1.0})]
    result = run(log, jobs, gavel_policy("max_min_fairness_perf")(), until_done=False)
    assert finished_s(result)[0] == pytest.approx(2 * 541 / 1.505, abs=2e-3)
    two = result.jobs.iloc[1]
    assert two["done_samples"] == pytest.approx(5_000 - 100, abs=20)  # whole steps, and waits for the other's rounds


def test_without_any_node_left_everything_waits_and_goes_on_when_one_comes():
    log = idle_log([(50, 0, NodeState.BUSY), (1_000, 0, NodeState.IDLE)], 1, 5_000)
    result = run(log, [job("one", 400, {"a": 1.0})], gavel_policy("fifo_perf")())
    assert finished_s(result) == [1_350]


def test_a_round_of_a_job_that_has_to_make_up_for_a_stop_lasts_until_it_has():
    """Two jobs take turns; leaving its node costs each 20 s of work, which must not become 20 million tiny rounds."""
    curve = TabulatedCurve([0, 1], [0, 1.0])
    jobs = [ElasticJob(name, 0, 1, 1, 0, 20.0, 361.0, curve) for name in ("one", "two")]
    log = idle_log([], 1, 5_000)
    result = run(log, jobs, gavel_policy("max_min_fairness_perf")())
    assert result.summary["policy"]["n_rounds"] <= 6
    assert result.summary["jobs"]["finished"] == 2
    assert result.summary["ledger"]["rescaling_node_us"] >= 20 * S


def test_one_that_starts_in_mid_round_with_a_debt_does_not_hold_up_the_others():
    """It loses its node at 50 s, has one at 100 s, and 200 s to make up for: the round ends at 360 s all the same."""
    curve = TabulatedCurve([0, 1], [0, 1.0])
    jobs = [ElasticJob(name, 0, 1, 1, 0, cost, 720.0, curve) for name, cost in (("one", 0.0), ("two", 200.0))]
    log = idle_log([(50, 1, NodeState.BUSY), (100, 1, NodeState.IDLE)], 2, 5_000)
    result = run(log, jobs, gavel_policy("max_min_fairness_perf")())
    assert finished_s(result)[0] == 720
    assert result.summary["ledger"]["preempted_node_us"] == 200 * S


def test_elastic_jobs_use_one_width():
    curve = TabulatedCurve([0, 1, 8], [0, 1.0, 8.0])
    elastic = ElasticJob("one", 0, 1, 8, 0, 0, 720, curve)
    for gang, expected in (("min", 720), ("max", 180), (2, 360), (4, 180)):  # there are four nodes
        log = idle_log([], 4, 5_000)
        result = run(log, [elastic], gavel_policy("fifo_perf")(GavelOptions(gang=gang)))
        assert finished_s(result) == [expected], gang


def test_priorities_are_entities_of_the_hierarchy():
    """Two jobs of weight 1 together get what one of weight 1 would: a third, beside weight 2."""
    jobs = [job(name, 4_000, {"a": 1.0}, weight=weight) for name, weight in (("x", 1.0), ("y", 1.0), ("z", 2.0))]
    result = run(fixed_cluster("a=1"), jobs, gavel_policy("hierarchical_perf")())
    assert finished_s(result)[2] == pytest.approx(6_000, abs=720)
    plain = run(fixed_cluster("a=1"), jobs, gavel_policy("max_min_fairness_perf")())
    assert finished_s(plain)[2] == pytest.approx(8_000, abs=720)  # half of the time, were all jobs weighed together
    fifo = run(fixed_cluster("a=1"), jobs, gavel_policy("hierarchical_perf")(GavelOptions(inner="fifo")))
    assert finished_s(fifo)[0] < finished_s(result)[0] - 1_000
    assert finished_s(fifo)[0] < finished_s(fifo)[1]


def test_types_are_filled_in_the_order_in_which_they_were_listed_unless_it_is_set():
    shares = gavel_policy("fifo_perf").make_shares(GavelOptions())
    for types, expected in (((), (1, 0)), (("a", "b"), (0, 1))):
        assert GavelOptions(types=types).rules(("b", "a"), ("a", "b"), shares).type_order == expected


def test_options_that_make_no_sense_are_refused():
    for field, value in (
        ("round_s", 0.0),
        ("least_reset_s", -1.0),
        ("restart_s", 400.0),
        ("seed", -1),
        ("gang", "all"),
        ("gang", 0),
        ("inner", "lifo"),
        ("prices", {"a": 0.0}),
    ):
        with pytest.raises(InputError):
            GavelOptions(**{field: value})
    with pytest.raises(InputError, match="does not name each of them once"):
        run(fixed_cluster("a=1,b=1"), [job("one", 10, FAST)], gavel_policy("fifo_perf")(GavelOptions(types=("a",))))


def test_as_published_means_its_throttle_and_its_defects():
    policy = policy_of("gavel.fifo(published=true, seed=3)", t_fwd_s=120, solver=ExactSolver())
    assert policy.shares.over_allocates
    assert policy.shares.seed == 3
    rules = policy.options.rules(("a",), ("a",), policy.shares)
    assert rules.least_reset_s == 1920
    assert rules.quirks.few_steps_fail
    assert not math.isnan(rules.round_s)


def test_as_published_types_are_filled_in_its_order_however_they_are_listed():
    shares = gavel_policy("fifo_perf").make_shares(GavelOptions())
    listed, alphabet = ("k80", "a100", "v100"), ("a100", "k80", "v100")
    assert GavelOptions(published=True).rules(listed, alphabet, shares).type_order == (2, 1, 0)
    assert GavelOptions().rules(listed, alphabet, shares).type_order == (1, 0, 2)
    assert GavelOptions(published=True).to_json()["least_reset_s"] == 1920
    with pytest.raises(InputError, match="its own least time"):
        GavelOptions(published=True, least_reset_s=5.0)


def test_a_policy_that_counts_costs_asks_for_the_price_of_every_type():
    policy = policy_of("gavel.max_sum_throughput_normalized_by_cost_perf", t_fwd_s=120, solver=ExactSolver())
    with pytest.raises(InputError, match=r"--prices a=1\.0"):
        run(fixed_cluster("a=1"), [job("one", 10, FAST)], policy)


@pytest.mark.parametrize("refill", [True, False])
@pytest.mark.parametrize("gone", [(0,), (0, 1)])
def test_a_job_whose_nodes_were_gone_while_nobody_was_asked_starts_anew(refill, gone):
    """Nodes go at 100 s and come back at 200 s, within the round: the job restarts, on one node or the other."""
    changes = [(100, k, NodeState.BUSY) for k in gone] + [(200, k, NodeState.IDLE) for k in gone]
    log = idle_log(changes, len(gone), 2_000)
    policy = gavel_policy("max_min_fairness_perf")(GavelOptions(restart_s=50.0, refill=refill))
    result = run(log, [job("one", 1_000, {"a": 1.0}, gang=1)], policy, until_done=False)
    # one second of two is worked off at one sample/s: 50 s each time
    assert result.summary["ledger"]["rescaling_node_us"] == 2 * 50 * S


def test_a_policy_that_does_not_refill_sleeps_through_nodes_that_come():
    assert gavel_policy("fifo_perf")().wakes_on == Trigger.ROUND | Trigger.POOL
    assert gavel_policy("fifo_perf")(GavelOptions(refill=False)).wakes_on == Trigger.ROUND


def test_known_jobs_number_each_arrival_anew_and_drop_those_that_are_gone():
    known = KnownJobs()
    left, came = known.follow(np.array([7, 3, 9]))
    assert (left.tolist(), came.tolist()) == ([], [0, 1, 2])
    left, came = known.follow(np.array([7, 9, 4]))
    assert (left.tolist(), came.tolist(), known.number.tolist()) == ([1], [3], [0, 2, 3])
    left, came = known.follow(np.array([9, 4, 7]))  # 7 left and came back
    assert (left.tolist(), came.tolist(), known.number.tolist()) == ([0], [4], [2, 3, 4])
    assert known.remaining_jobs(np.array([4, 9])).tolist() == [3]


@pytest.mark.parametrize("name", NAMES)
def test_jobs_without_end_are_refused_by_those_that_go_by_the_work_that_is_left(name):
    jobs = [job("one", math.inf, FAST), job("two", math.inf, SLOW)]
    policy = policy_of(name, t_fwd_s=120, solver=ExactSolver(), prices={"a": 2.0})
    log = idle_log([], 1, 3_600)
    if any(word in name for word in ("finish_time", "total_duration", "allox")):
        with pytest.raises(InputError, match="needs the remaining work"):
            run(log, jobs, policy)
    else:
        result = run(log, jobs, policy)
        assert result.summary["jobs"]["finished"] == 0
        assert result.summary["ledger"]["useful_node_us"] == 3_600 * S


def _wide(submit_s: float = 0) -> ElasticJob:
    return replace(job("wide", 400, FAST, gang=2, submit_s=submit_s), min_nodes=1)


def _never_asked(policy, monkeypatch):
    asked = []
    monkeypatch.setattr(type(policy), "decide", lambda self, state: asked.append(state.time_us))
    return asked


@pytest.mark.parametrize("gang", ["max", 2])
def test_allox_refuses_jobs_on_several_nodes_before_the_first_decision(gang, monkeypatch):
    jobs = [job("narrow", 4_000, FAST), _wide(submit_s=1_000)]
    policy = gavel_policy("allox")(GavelOptions(gang=gang))
    asked = _never_asked(policy, monkeypatch)
    with pytest.raises(InputError, match="AlloX cannot schedule job 'wide', which needs 2 nodes at once"):
        run(fixed_cluster("a=2,b=2"), jobs, policy)
    assert asked == []


def test_allox_takes_elastic_jobs_on_one_node_each():
    policy = gavel_policy("allox")(GavelOptions(gang="min"))
    assert run(fixed_cluster("a=2,b=2"), [_wide()], policy).summary["jobs"]["finished"] == 1


def test_a_job_without_end_is_refused_before_the_first_decision(monkeypatch):
    policy = gavel_policy("allox")()
    asked = _never_asked(policy, monkeypatch)
    with pytest.raises(InputError, match="needs the remaining work"):
        run(idle_log([], 1, 3_600), [job("one", 4_000, FAST), job("two", math.inf, SLOW, submit_s=1_000)], policy)
    assert asked == []


@pytest.mark.parametrize("slow", [5e-324, 1e-20, 9e-7])
def test_a_job_that_hardly_goes_on_on_one_of_its_types_is_refused(slow):
    with pytest.raises(InputError, match="job 'a' hardly goes on on the node type 'v100'"):
        run(fixed_cluster("v100=1,k80=1"), [job("a", 100, {"v100": slow, "k80": 1.0})], gavel_policy("fifo_perf")())
    fine = [job("a", 100, {"v100": 0.0, "k80": 1.0}), job("b", 100, {"v100": 1e3, "k80": 1e-3})]
    assert finished_s(run(fixed_cluster("v100=1,k80=1"), fine, gavel_policy("fifo_perf")())) == [100.0, 0.1]
