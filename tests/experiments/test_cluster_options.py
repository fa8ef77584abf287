"""Runs on a cluster of one's own, and the options that came with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.option_checks import parse_prices
from bfreplay.experiments.prepared_run import files_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.runs import RunResult
from tests.experiments.small_cluster import CLUSTER, options, write_files

EVENTS = """time,node,idle
2024-05-01T00:00:00,n1,true
2024-05-01T00:00:00,n2,true
2024-05-01T02:00:00,n2,false
"""


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def test_a_run_on_a_cluster_ends_with_its_jobs_and_is_read_again(files):
    result = options(files).run(files / "run")
    record = RunResult.load(files / "run").record
    assert record == result.record
    assert record["config"]["until_done"]
    assert record["config"]["max_parallel"] == 4
    assert record["config"]["policy"]["round_s"] == 60
    assert record["summary"]["jobs"]["finished"] == 4
    assert record["summary"]["duration_s"] == record["summary"]["scheduling"]["makespan_s"] < 7200
    assert record["summary"]["efficiency"] is None
    assert record["summary"]["bound"] is None
    assert record["inputs"]["events"]["metadata"].notes == {"cluster": CLUSTER}
    assert set(result.session["files"]) == {"jobs", "curves"}


def test_one_job_after_the_other_where_one_is_allowed_at_once(files):
    run = options(files)
    alone = replace(run, max_parallel=1)
    assert alone.run().record["config"]["max_parallel"] == 1
    assert alone.run().summary["scheduling"]["makespan_s"] > run.run().summary["scheduling"]["makespan_s"]


def test_a_log_keeps_ten_jobs_at_once(files):
    (files / "events.csv").write_text(EVENTS)
    run = options(files, cluster=None, events=files / "events.csv", node_type="fast", bound=False, efficiency=False)
    result = run.run()
    assert result.record["config"]["max_parallel"] == 10
    assert not result.record["config"]["until_done"]
    assert result.record["inputs"]["events"]["metadata"].node_types == {"fast": ["n1", "n2"]}
    assert result.summary["jobs"]["finished"] == 4
    assert files_of(run)["events"] == str(files / "events.csv")


def test_jobs_run_at_the_rate_of_the_type_that_a_log_is_said_to_have(files):
    (files / "events.csv").write_text(EVENTS)
    finish = {
        node_type: options(
            files, cluster=None, events=files / "events.csv", node_type=node_type, bound=False, efficiency=False
        )
        .run()
        .summary["last_finish_us"]
        for node_type in ("fast", "slow")
    }
    assert finish["fast"] < finish["slow"]


def test_a_run_about_some_jobs_ends_with_these(files):
    run = options(files, policy="gavel.fifo_perf", measure=(0, 1))
    result = run.run()
    assert result.record["config"]["measured"] == (0, 1)
    assert result.summary["scheduling"]["n_jobs"] == 1
    assert result.summary["jobs"]["finished"] < 4
    with pytest.raises(InputError, match="fewer jobs exist than are to be measured"):
        replace(run, measure=(3, 5)).prepare()


def test_costs_follow_the_prices(files):
    cheap, dear = (options(files, prices={"fast": 1, "slow": price}).run().summary["scheduling"] for price in (0.5, 2))
    hours = cheap["node_hours_by_type"]
    assert cheap["cost"] == pytest.approx(hours["fast"] + 0.5 * hours["slow"])
    assert dear["cost"] == pytest.approx(hours["fast"] + 2 * hours["slow"])
    assert options(files).run().summary["scheduling"]["cost"] is None


def test_policies_that_look_at_prices_are_told_them_and_others_are_left_alone(files):
    run = options(files, policy="gavel.max_sum_throughput_normalized_by_cost_perf", prices="slow=0.5,fast=2")
    described = run.run().record["config"]["policy"]
    assert described["prices"] == {"fast": 2.0, "slow": 0.5}
    share = replace(run, policy="equal-share", round=None, cluster="fast=2")
    assert share.run().record["config"]["prices"] == {"fast": 2.0}


def test_fairness_is_told_where_it_is_asked_for(files):
    assert options(files).run().summary["scheduling"]["finish_time_fairness"] is None
    told = options(files, policy="gavel.isolated", fairness=True).run().summary["scheduling"]["finish_time_fairness"]
    assert told["average_rho"] == 1


def test_what_is_written_is_read_back_in_one_form(files):
    run = options(files, cluster=" fast=2, slow=4 ", prices={"slow": 1, "fast": 0.25}, measure=(1, 3), fairness=True)
    assert (run.cluster, run.prices, run.measure) == (CLUSTER, "fast=0.25,slow=1", (1, 3))
    document = run.to_json()
    assert document["measure"] == [1, 3]
    assert "events" not in document
    assert "max-parallel" not in document
    assert RunOptions.from_mapping(document) == run
    assert RunOptions.from_mapping({**document, "measure": "1:3", "prices": "slow=1.0,fast=0.25"}) == run
    assert len({run, RunOptions.from_mapping(document)}) == 1


def test_prices_are_read_by_type():
    assert parse_prices("v100=0.74, k80=0.135") == {"v100": 0.74, "k80": 0.135}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"events": "sample"}, "a log and a cluster"),
        ({"cluster": None}, "neither a log nor a cluster"),
        ({"window": ("2024-07-01", "2024-07-02")}, "--window cannot be combined with --cluster"),
        ({"node_type": "v100"}, "--node-type cannot be combined with --cluster"),
        ({"unlimited_work": True}, "--unlimited-work cannot be combined with --cluster"),
        ({"semantics": "published"}, "--semantics cannot be combined with --cluster"),
        ({"cluster": None, "events": "sample", "unlimited_work": True, "measure": (0, 1)}, "unlimited work never ends"),
        ({"cluster": "v100"}, "has no number of nodes"),
        ({"cluster": "v100=0"}, "number of v100 nodes is unusable"),
        ({"cluster": None, "events": "sample", "node_type": "a=b"}, "name of a node type is unusable"),
        ({"round": 0}, "round is out of range"),
        ({"measure": (5, 5)}, "an empty range of jobs"),
        ({"measure": "5-6"}, "no range of jobs"),
        ({"measure": ("a", "b")}, "no range of jobs"),
        ({"prices": "v100"}, "v100 has no price"),
        ({"prices": "v100=1,v100=2"}, "v100 has two price"),
        ({"prices": "v100=0"}, "price of v100 is out of range"),
        ({"prices": {}}, "prices has no price"),
        ({"fairness": "yes"}, "neither true nor false"),
    ],
)
def test_options_that_no_run_could_have_are_refused(files, changed, says):
    with pytest.raises(InputError, match=says):
        options(files, **changed)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"policy": "bftrainer"}, "does not decide in rounds"),
        ({"policy": "gavel.fifo(round_s=30)"}, "the length of a round is set twice"),
        ({"policy": "gavel.fifo(prices=1)"}, "no parameter 'prices'"),
        ({"learn_curves": "job"}, "which --learn-curves hides"),
    ],
)
def test_what_a_policy_cannot_be_told_is_refused_before_the_replay(files, changed, says):
    with pytest.raises(InputError, match=says):
        options(files, **changed).prepare()


def test_a_policy_that_knows_one_type_is_refused_on_a_cluster_of_two(files):
    with pytest.raises(InputError, match="nodes of one type"):
        options(files, policy="equal-share", round=None).run()


def test_a_missing_log_is_said_with_the_place(files):
    with pytest.raises(InputError, match="neither a log nor a cluster") as caught:
        RunOptions.from_mapping({"jobs": "sample"}, file="sweep.toml", row="[run]")
    assert "sweep.toml" in str(caught.value)
