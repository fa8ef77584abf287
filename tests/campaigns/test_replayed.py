"""Campaigns on nodes that come and go: the replay does what they order, and their outcomes do not depend on it."""

from collections import Counter

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from bfreplay import BFTrainerPolicy, EqualSharePolicy, NodeEvents, ReplaySettings, replay_log
from bfreplay.campaigns.campaign import Budget, Retries
from bfreplay.campaigns.load import load_campaign
from bfreplay.campaigns.parts import TrialState
from bfreplay.campaigns.pruners import Asha, Median, NoPruner, SuccessiveHalving
from bfreplay.datasets import NodeState
from bfreplay.result_folders.reading import digest
from bfreplay.runs.run_result import RunResult
from bfreplay.testing.job_source import drive
from tests.campaigns.small_campaigns import HOUR, SECOND, campaign, model, source

FINALS = [float(n * 7 % 24) for n in range(24)]


def log(seed, n_nodes=12, end_s=8_000):
    """Nodes that come and go every minute or so."""
    rng = np.random.Generator(np.random.PCG64(seed))
    times = np.sort(rng.choice(np.arange(1, end_s), 120, replace=False))
    node = rng.integers(0, n_nodes, 120)
    idle = np.ones(n_nodes, dtype=bool)
    states = []
    for n in node.tolist():
        idle[n] = not idle[n]
        states.append(NodeState.IDLE if idle[n] else NodeState.BUSY)
    opening = np.full(n_nodes, NodeState.IDLE, dtype=np.int8)
    names = [f"n{k:02d}" for k in range(n_nodes)]
    return NodeEvents.from_arrays(names, opening, (times * SECOND).tolist(), node.tolist(), states, 0, end_s * SECOND)


def replayed(made, seed=0, policy=None, max_parallel=6):
    run = replay_log(
        log(seed),
        made,
        policy or EqualSharePolicy(),
        ReplaySettings(max_parallel=max_parallel),
        efficiency=False,
        bound=False,
    )
    return run.summary, {name: table.to_pylist() for name, table in run.tables.items()}


PRUNERS = {
    "none": NoPruner,
    "asha": Asha,
    "successive-halving": lambda: SuccessiveHalving(eta=2),
    "median": lambda: Median(warmup_trials=2),
}


@pytest.mark.parametrize("kind", PRUNERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_record_of_a_run_tells_what_became_of_every_trial(kind, seed):
    made = source(campaign(24, retries=Retries(0.05), parallel=10), FINALS, PRUNERS[kind]())
    summary, tables = replayed(made, seed)
    jobs = {row["job"]: row for row in tables["jobs"]}
    assert summary["jobs"]["finished"] > 0
    for trial in made.trials:
        attempts = [row for name, row in jobs.items() if name.startswith(trial.name)]
        assert len(attempts) == trial.attempt.index + 1
        assert all(row["status"] == "failed" for row in attempts[:-1])
        if trial.state is not None:
            assert attempts[-1]["status"] == trial.state
            assert attempts[-1]["last_score"] == trial.score or trial.state is TrialState.FAILED
        else:
            assert attempts[-1]["status"] in ("running", "waiting", "paused", "queued")


def test_a_finished_trial_has_done_all_its_work_though_it_was_paused_twice():
    made = source(campaign(24, parallel=10), FINALS, SuccessiveHalving(eta=2))
    _, tables = replayed(made)
    finished = [row for row in tables["jobs"] if row["status"] == "finished"]
    assert finished
    for row in finished:
        verdicts = [r["verdict"] for r in tables["reports"] if r["job"] == row["job"]]
        assert verdicts == ["paused", "paused", "finished"]
        assert row["done_samples"] == pytest.approx(400.0)


def test_synchronous_halving_decides_alike_whatever_the_nodes_do():
    ends = []
    for seed, slots in ((0, 6), (1, 3), (2, 20)):
        made = source(campaign(24, parallel=10), FINALS, SuccessiveHalving(eta=3))
        replayed(made, seed, max_parallel=slots)
        ends.append({t.number: (t.state, t.epochs) for t in made.trials})
    best = sorted(range(24), key=lambda n: (-FINALS[n], n))
    assert ends[0] == ends[1] == ends[2]
    assert [n for n, end in ends[0].items() if end[0] is TrialState.FINISHED] == sorted(best[:2])
    assert Counter(epochs for _, epochs in ends[0].values()) == {1: 16, 3: 6, 4: 2}


def test_crashes_and_scores_are_the_same_under_every_policy_and_on_every_log():
    seen = []
    for seed, policy in ((0, EqualSharePolicy()), (1, EqualSharePolicy()), (1, BFTrainerPolicy(t_fwd_s=60.0))):
        made = source(campaign(24, retries=Retries(0.2), report_every_epochs=1), FINALS)
        _, tables = replayed(made, seed, policy, max_parallel=12)
        seen.append(sorted((r["job"], r["samples"], r["score"], r["verdict"]) for r in tables["reports"]))
    assert seen[0] == seen[1] == seen[2]
    assert {"continue", "failed", "finished"} == {verdict for *_, verdict in seen[0]}


def test_a_budget_of_hours_ends_the_campaign_on_the_second():
    made = source(campaign(24, budget=Budget(hours=0.1)), FINALS)
    summary, tables = replayed(made, max_parallel=4)
    assert summary["jobs"]["stopped"] > 0
    assert summary["jobs"]["finished"] + summary["jobs"]["stopped"] == 24
    stopped = [row for row in tables["reports"] if row["verdict"] == "stopped"]
    assert {row["time"].timestamp() for row in stopped} == {360.0}


def test_a_budget_of_node_hours_is_overshot_by_no_more_than_an_epoch_of_each():
    made = source(campaign(24, budget=Budget(node_hours=0.5)), FINALS)
    summary, _ = replayed(made, max_parallel=4)
    used = summary["ledger"]["idle_node_us"] - summary["ledger"]["unallocated_node_us"]
    # an epoch takes 100 node-seconds on this curve, and a job was preempted now and then
    assert 0.5 * HOUR <= used <= 0.5 * HOUR + 4 * 200 * SECOND


def test_a_small_campaign_in_the_driver_and_in_a_replay_on_still_nodes_are_one(tmp_path):
    (tmp_path / "c.toml").write_text(
        "[campaign]\ntrials = 30\nparallel = 4\n"
        "[trial]\nepochs = 9\nsamples_per_epoch = 1000\nmin_nodes = 1\nmax_nodes = 1\nscale_up_cost_s = 0\n"
        'scale_down_cost_s = 0\ncurve = "0:0 1:10"\n'
        '[pruner]\nkind = "asha"\n[retries]\nfailures_per_epoch = 0.05\n'
    )
    made = load_campaign(tmp_path / "c.toml")
    end_us = 100_000 * SECOND
    driven = drive(made, 0, end_us, slots=4)
    still = NodeEvents.from_arrays(
        [f"n{k}" for k in range(4)], np.full(4, NodeState.IDLE, dtype=np.int8), [], [], [], 0, end_us
    )
    run = replay_log(still, made, EqualSharePolicy(), ReplaySettings(max_parallel=4), efficiency=False, bound=False)
    rows = run.tables["reports"].to_pylist()
    answers = [(t.report.job, t.report.samples, t.verdict.score) for t in driven.answers]
    assert sorted(answers, key=str) == sorted([(r["job"], r["samples"], r["score"]) for r in rows], key=str)
    times = {(t.report.job, t.report.samples): t.report.time_us for t in driven.answers}
    for row in rows:
        assert row["time"].timestamp() * 1e6 == pytest.approx(times[row["job"], row["samples"]], abs=100)


@pytest.mark.parametrize("samples_per_epoch", [100.0, 100 / 3])
def test_reports_have_whole_epochs_whatever_an_epoch_is_and_count_those_before_a_retry(samples_per_epoch):
    models = (model(samples_per_epoch=samples_per_epoch),)
    retries = Retries(0.1, most=9)
    made = source(campaign(24, models=models, retries=retries), FINALS, SuccessiveHalving(eta=2))
    _, tables = replayed(made)
    of_verdict = {}
    for row in tables["reports"]:
        of_verdict.setdefault(row["verdict"], []).append(row["epoch"])
    assert set(of_verdict["paused"]) == set(of_verdict["pruned"]) == {1.0, 2.0}
    assert set(of_verdict["finished"]) == {4.0}
    assert all(epoch % 1 for epoch in of_verdict["failed"])
    assert any(row["job"].endswith("retry-1") and row["verdict"] == "finished" for row in tables["reports"])


def test_a_campaign_ends_with_so_many_finished_trials():
    made = source(campaign(24, parallel=4, budget=Budget(finished_trials=3)), FINALS)
    summary, tables = replayed(made)
    assert summary["jobs"]["finished"] >= 3
    assert made.used_up == "finished_trials"
    assert summary["jobs"]["finished"] + summary["jobs"]["stopped"] == len(tables["jobs"]) < 24


def test_a_run_folder_whose_reports_have_no_epochs_yet_can_be_read(tmp_path):
    run = replay_log(log(0), source(campaign(4), FINALS), EqualSharePolicy(), ReplaySettings(), out=tmp_path / "run")
    file = tmp_path / "run" / "reports.parquet"
    reports = pq.read_table(file)
    pq.write_table(reports.drop_columns("epoch"), file)
    record = msgspec.structs.replace(run.record, sha256={**run.record.sha256, file.name: digest(file)})
    assert RunResult(record, tmp_path / "run", session=run.session).table("reports").num_rows == reports.num_rows
