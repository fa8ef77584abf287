"""JCT, makespan, utilisation, cost and fairness, by runs that a person can follow, and beside the recorded ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bfreplay import replay_log
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.replay import ReplaySettings
from bfreplay.runs.scheduling_metrics import scheduling_tables
from bfreplay.runs.summary_text import render
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.policies import gavel_policy
from bfreplay.wording import percent
from bfreplay.workload import Colocation, JobSet
from tests.parity.gavel_records import RecordedPolicy, RecordedShares, record_of, replay_scenario
from tests.replay.placed import Scripted, Step, of_job, run, typed_job, typed_log
from tests.replay.tiny import job, log
from tests.runs.explain.little_source import LittleHalving

HOUR = 3600
EACH_ITS_OWN = Step({0: [0], 1: [1]})


def two_jobs():
    """One runs from 0 to 20 s on a v100, the other, of weight 5, from 5 to 35 s on a p100."""
    return [typed_job("a", work=200), replace(typed_job("b", work=120, submit_s=5), weight=5.0)]


def metrics(jobs=None, policy=None, end_s=100, types="v100 p100", **settings):
    result = run(typed_log(types, end_s), jobs or two_jobs(), policy or Scripted(EACH_ITS_OWN), **settings)
    return result.summary["scheduling"]


def test_metrics_of_two_jobs_on_two_types_by_hand():
    assert metrics().to_json() == {
        "n_jobs": 2,
        "n_completed": 2,
        "average_jct_s": 25.0,
        "average_jct_s_by_weight": {"1": 20.0, "5": 30.0},
        "makespan_s": 35.0,
        "utilisation": (20 + 30) / 200,
        "node_hours_by_type": {"v100": 20 / HOUR, "p100": 30 / HOUR},
        "cost": pytest.approx(20 / HOUR * 0.74 + 30 / HOUR * 0.43),
        "finish_time_fairness": None,
        "geometric_mean_jct_s": pytest.approx((20 * 30) ** 0.5),
        "harmonic_mean_jct_s": pytest.approx(24.0),
        # alone on v100, at 10 samples/s on one node and 20 on two of the two: 10 s and 6 s
        "contention_fairness": {
            "contention": 1.0,
            "average_rho": 3.5,
            "largest_rho": 5.0,
            "unfair_share": 1.0,
            "largest_rho_by_presence": 5.0,
            "unfair_share_by_presence": 1.0,
        },
    }


def test_a_run_that_ends_with_its_jobs_is_as_long_as_its_makespan():
    assert metrics(until_done=True)["utilisation"] == pytest.approx((20 + 30) / 70)


def test_prices_are_those_given_then_the_known_ones_and_a_type_without_a_price_leaves_no_cost():
    assert metrics(prices={"v100": 3.6, "h100": 9.0})["cost"] == pytest.approx(20 * 3.6 / HOUR + 30 * 0.43 / HOUR)
    jobs = [typed_job("a", {"v100": (0.0, 10.0)}), typed_job("b", {"tpu": (0.0, 10.0)})]
    assert metrics(jobs, types="v100 tpu")["cost"] is None
    assert metrics(jobs, types="v100 tpu", prices={"tpu": 7.2})["cost"] == pytest.approx((0.74 + 7.2) * 100 / HOUR)
    with pytest.raises(InputError, match="price of v100"):
        ReplaySettings(prices={"v100": 0.0})


def test_the_record_has_the_prices_that_were_counted_with():
    result = run(typed_log("v100 tpu", 10), [typed_job()], Scripted(Step({0: [0]})), prices={"v100": 3.6})
    assert result.record["config"]["prices"] == {"v100": 3.6}
    untold = replay_log(log(1, [], 10, [0]), JobSet([job()]), efficiency=False, bound=False)
    assert not untold.record["config"]["prices"]
    assert untold.summary["scheduling"]["cost"] is None
    assert untold.summary["policy"] is None


def test_only_measured_jobs_count_and_node_hours_are_those_of_all():
    # the run ends when a is done; b has held its node for 15 s by then
    assert metrics(measured=(0, 1)).to_json() == {
        "n_jobs": 1,
        "n_completed": 1,
        "average_jct_s": 20.0,
        "average_jct_s_by_weight": {"1": 20.0},
        "makespan_s": 20.0,
        "utilisation": (20 + 15) / 40,
        "node_hours_by_type": {"v100": 20 / HOUR, "p100": 15 / HOUR},
        "cost": pytest.approx(20 / HOUR * 0.74 + 15 / HOUR * 0.43),
        "finish_time_fairness": None,
        "geometric_mean_jct_s": pytest.approx(20.0),
        "harmonic_mean_jct_s": 20.0,
        "contention_fairness": {
            "contention": 0.5,
            "average_rho": 2.0,
            "largest_rho": 2.0,
            "unfair_share": 1.0,
            "largest_rho_by_presence": 2.0,
            "unfair_share_by_presence": 1.0,
        },
    }


def test_where_nobody_completes_there_is_no_jct_and_no_makespan():
    told = metrics([typed_job("a"), typed_job("b")])
    assert (told["n_jobs"], told["n_completed"]) == (2, 0)
    assert told["average_jct_s"] is told["makespan_s"] is None
    assert told["average_jct_s_by_weight"] == {}
    assert told["utilisation"] == 1.0


def test_where_some_complete_there_is_a_jct_and_no_makespan():
    told = metrics([typed_job("a", work=200), typed_job("b")])
    assert (told["n_completed"], told["average_jct_s"], told["makespan_s"]) == (1, 20.0, None)


def test_nodes_of_two_jobs_are_held_and_paid_for_once():
    together = Colocation({("a", "b", 1, "v100"): (6.0, 5.0)})
    jobs = [typed_job("a", work=60), typed_job("b", work=50)]
    told = metrics(jobs, Scripted(Step({0: [0], 1: [0]}, pairs=((0, 1),))), colocation=together)
    assert told["average_jct_s"] == told["makespan_s"] == 10.0
    assert told["node_hours_by_type"] == {"v100": 10 / HOUR, "p100": 0.0}
    assert told["cost"] == pytest.approx(10 / HOUR * 0.74)
    assert told["utilisation"] == 10 / 200


def test_a_replay_without_tables_tells_the_same():
    events, jobs, settings = typed_log("v100 p100", 100), JobSet(two_jobs()), ReplaySettings()
    told = [
        replay_log(
            events,
            jobs,
            Scripted(EACH_ITS_OWN),
            settings,
            efficiency=False,
            bound=False,
            with_tables=with_tables,
            fairness=True,
        ).summary["scheduling"]
        for with_tables in (False, True)
    ]
    assert told[0] == told[1]


def test_a_log_that_tells_no_types_apart_has_one():
    result = replay_log(log(2, [], 10, [0]), JobSet([job()]), EqualSharePolicy())
    assert result.summary["scheduling"]["node_hours_by_type"] == {"any": 10 / HOUR}


def narrow_job(name, **options):
    """10 samples/s on one v100, which is all that it can use."""
    return typed_job(name, {"v100": (0.0, 10.0)}, **options)


def with_fairness(events, jobs, policy, **settings):
    return replay_log(
        events, JobSet(jobs), policy, ReplaySettings(**settings), efficiency=False, bound=False, fairness=True
    )


def test_fairness_is_the_time_of_each_job_over_that_with_an_equal_part_of_the_nodes():
    # two nodes for two jobs of 100 s: each would have had its own; here the second waits for the first
    jobs = [narrow_job("a", work=1000), narrow_job("b", work=1000), narrow_job("c")]
    one_by_one = Scripted(Step({0: [0]}, until_s=100), Step({1: [0]}))
    result = with_fairness(typed_log("v100 v100 v100", 250), jobs, one_by_one)
    assert result.summary["scheduling"]["finish_time_fairness"].to_json() == {
        "average_rho": 1.5,
        "largest_rho": 2.0,
        "share_above_1": 0.5,
        "policy": "gavel.isolated",
    }
    assert [of_job(result, name)["isolated_jct_s"] for name in "abc"] == [100.0, 100.0, None]
    assert result.session["seconds"]["isolated_s"] > 0


def test_only_measured_jobs_are_compared():
    jobs = [narrow_job("a", work=1000), narrow_job("b", work=1000)]
    one_by_one = Scripted(Step({0: [0]}, until_s=100), Step({1: [0]}))
    told = with_fairness(typed_log("v100 v100", 250), jobs, one_by_one, measured=(1, 2)).summary["scheduling"]
    assert told["finish_time_fairness"]["average_rho"] == 2.0


def test_where_no_job_is_done_in_both_there_is_no_rho():
    told = with_fairness(typed_log("v100", 50), [narrow_job("a")], Scripted(Step({0: [0]}))).summary["scheduling"]
    assert told["finish_time_fairness"].to_json() == {
        "average_rho": None,
        "largest_rho": None,
        "share_above_1": None,
        "policy": "gavel.isolated",
    }


def test_the_isolated_policy_has_the_options_of_the_policy_that_is_measured():
    # with rounds of 360 s instead of 30 s the second job, which comes in mid-round, would wait for longer
    jobs = [narrow_job("a", work=900), narrow_job("b", work=400, submit_s=40), narrow_job("c", work=80, submit_s=41)]
    policy = gavel_policy("isolated")(GavelOptions(round_s=30.0, refill=False))
    told = with_fairness(typed_log("v100 v100", 900), jobs, policy).summary
    assert told["scheduling"]["n_completed"] == 3
    assert told["scheduling"]["finish_time_fairness"]["average_rho"] == 1.0
    assert told["policy"]["n_rounds"] > 3


def test_a_source_has_no_fairness():
    with pytest.raises(InputError, match="fairness cannot be measured for a job source"):
        replay_log(log(1, [], 100, [0]), LittleHalving(), EqualSharePolicy(), fairness=True)


def test_a_policy_that_sums_itself_up_by_no_mapping_is_refused():
    policy = Scripted(EACH_ITS_OWN)
    policy.summary = lambda: 7
    with pytest.raises(InputError, match="sums itself up by int"):
        metrics(policy=policy)


def test_the_summary_says_what_a_person_wants_to_know_of_a_cluster():
    rates = {"v100": (0.0, 10.0), "p100": (0.0, 4.0)}
    jobs = [
        replace(typed_job("a", rates, work=2000), deadline_us=int(1e9)),
        replace(typed_job("b", rates, work=720), weight=5.0),
    ]
    result = with_fairness(
        fixed_cluster("v100=1,p100=1"), jobs, gavel_policy("isolated")(GavelOptions(round_s=60.0)), until_done=True
    )
    text = render(result)
    told = result.summary["scheduling"]
    assert "Policy      gavel.isolated, rounds of 60 s" in text
    assert "Cluster     v100=1,p100=1 (2 nodes) for " in text
    assert "JCT         2 measured, 2 completed, " in text
    assert [table.lines() for table in scheduling_tables(result)] == [
        text.split("\n\n")[position].splitlines() for position in (3, 4)
    ]
    assert f"Utilisation {percent(told['utilisation'])} of the node-hours" in text
    assert " dollars of the held node-hours" in text
    assert "a job took 1 times as long as under gavel.isolated on average, 1 times at most" in text
    assert f"Rounds      {result.summary['policy']['n_rounds']}, shares computed" in text
    assert "Deadlines   1 met" in text
    assert "1970" not in text
    assert "dedicated" not in text


def test_the_summary_of_a_run_on_idle_nodes_has_no_such_lines():
    text = render(replay_log(log(2, [], 10, [0]), JobSet([job(work=20)]), EqualSharePolicy()))
    assert not any(word in text for word in ("JCT", "Cost", "Cluster"))
    assert "Window      1970-01-01T00:00:00Z to 1970-01-01T00:00:10Z (10 s), 2 nodes" in text


@pytest.mark.parametrize(
    ("scenario", "names"),
    [
        ("static8_single", ("fifo", "max_min_fairness_perf", "allox")),
        ("cont12_single", ("finish_time_fairness_perf", "min_total_duration")),
        ("cont10_prio", ("max_min_fairness_perf",)),
    ],
)
def test_metrics_are_those_of_the_recorded_simulations(scenario, names, shared: Path, tmp_path):
    record = record_of(shared, scenario)
    for name in names:
        there = record["results"][name]
        policy = RecordedPolicy(name, RecordedShares(name, there["allocation_events"]), record["seed"])
        here = replay_scenario(record, tmp_path, policy, fairness=True).summary["scheduling"]
        assert here["makespan_s"] == pytest.approx(there["total_duration_from_t0"], abs=1e-3)
        assert here["utilisation"] == pytest.approx(there["cluster_utilization"], rel=1e-7)
        busy_s = dict.fromkeys(here["node_hours_by_type"], 0.0)
        workers = [kind for kind, n in sorted(record["cluster_spec"].items()) for _ in range(n)]
        for worker, seconds in there["per_worker_busy_seconds"].items():
            busy_s[workers[int(worker)]] += seconds
        for kind, hours in here["node_hours_by_type"].items():
            assert hours * HOUR == pytest.approx(busy_s[kind], abs=1.0 + 1e-3 * busy_s[kind])  # ends of rounds are held
        if "isolated" not in record["results"]:
            continue
        rhos = [each["ftf_vs_isolated_run"] for each in there["jobs"].values()]
        fairness = here["finish_time_fairness"]
        assert fairness["average_rho"] == pytest.approx(sum(rhos) / len(rhos), rel=1e-7)
        assert fairness["largest_rho"] == pytest.approx(max(rhos), rel=1e-7)
