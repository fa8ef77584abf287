"""What holds for every rule: explain asks it again, a snooze stops growth alone, costs are the jobs'."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import InputError, explain, list_runs, replay_log
from bfreplay.options import options_of
from bfreplay.policies.names import POLICIES
from bfreplay.runs.saved_decisions import recorded_decisions
from bfreplay.runs.summary_text import render
from bfreplay.systems.products import RULES
from bfreplay.testing.replays import toggling_log
from bfreplay.workload import JobSet
from tests.conftest import REPOSITORY
from tests.replay.tiny import job, log
from tests.systems.products.rule_decisions import nodes_of

OPTIONS = {
    "ray": ["", "share=one-cluster-each"],
    "torchrun": ["", "max_restarts=1"],
    "gang": ["", "order=kai"],
    "kueue": ["", "growth=partial", "reading=evict"],
    "horovod": ["", "cooldown='60:600'"],
}
SPECS = [f"products.{name}{options and f'({options})'}" for name in RULES for options in OPTIONS.get(name, [""])]
COSTS = {"restart_cost": 20.0, "work_saved_every": 100.0}


@pytest.mark.parametrize("spec", SPECS)
def test_explain_asks_the_rule_again_and_says_why_each_job_has_its_nodes(spec, tmp_path):
    events = toggling_log(8, 80, 7_200)
    jobs = JobSet([job("a", min_nodes=2), job("b", min_nodes=3, submit_s=30), job("c", work=9_000.0, submit_s=60)])
    result = replay_log(events, jobs, policy=spec, efficiency=False, bound=False, **COSTS, out=tmp_path / "run")
    table = result.columns("decisions", "n_jobs", "n_idle").to_pandas()
    asked = table.index[(table["n_jobs"] > 0) & (table["n_idle"] > 0)]
    decisions = recorded_decisions(result, asked.tolist(), events=events, jobs=jobs)
    reasons = {reason for decision in decisions for reason in decision.whys}
    assert len(decisions) == len(asked)
    assert len(reasons) > 2
    assert all(reason[0].islower() and not reason.endswith(".") for reason in reasons)
    story = explain(result, job="a", events=events, jobs=jobs).story
    assert sum(step.cost_samples for step in story.steps) > 0


@pytest.mark.parametrize("name", [name for name in RULES if name != "scavenger"])
def test_a_snoozed_job_grows_when_its_time_is_over_and_shrinks_at_once(name):
    # at 100 s a second node; at 250 s one is reclaimed, and comes back at 260 s
    changes = [(100, 1, True), (250, 0, False), (260, 0, True)]
    policy = f"products.{name}(snooze_s=200{',reclaims=orderly' if name == 'horovod' else ''})"
    result = replay_log(log(2, changes, 600, [0]), JobSet([job()]), policy=policy, efficiency=False, bound=False)
    # Ray looks every 60 s only, and starts its group anew on what is reserved
    grows_with = {"ray": [(0, 1), (240, 2), (250, 0), (260, 2)]}
    assert nodes_of(result) == grows_with.get(name, [(0, 1), (200, 2), (250, 1), (450, 2)])


@pytest.mark.parametrize(
    "rule", ["torchrun(", "horovod(", "ray(share=one-cluster-each,", "gang(", "kueue(growth=partial,"]
)
def test_nodes_that_a_snoozing_job_may_not_have_go_to_the_next(rule):
    events, policy = log(8, [(10, 1, True), (10, 2, True)], 600, [0]), f"products.{rule}snooze_s=200)"
    result = replay_log(events, JobSet([job("a"), job("b")]), policy=policy, efficiency=False, bound=False)
    assert (nodes_of(result, "a"), nodes_of(result, "b")) == ([(0, 1)], [(0, 0), (10, 2)])


def test_a_job_that_snoozes_takes_nodes_of_others_only_when_its_time_is_over():
    events, jobs = log(8, [(10, 1, True), (10, 2, True)], 600, [0]), [job("low"), replace(job("high"), weight=2.0)]
    policy = "products.gang(order=kai,snooze_s=200)"
    result = replay_log(events, JobSet(jobs), policy=policy, efficiency=False, bound=False)
    assert nodes_of(result, "low") == [(0, 0), (10, 2), (200, 0)]
    assert nodes_of(result, "high") == [(0, 1), (200, 3)]


@pytest.mark.parametrize("spec", ["gang", "kueue", "horovod(reclaims=orderly"])
def test_a_job_that_goes_on_with_fewer_nodes_restarts_after_the_pause_of_the_reclaim_and_that_of_the_rule(spec):
    policy = f"products.{spec}{',' if '(' in spec else '('}restart_s=5)"
    events = log(3, [(30, 0, False)], 90, range(3))
    jobs = JobSet([job()])
    result = replay_log(events, jobs, policy=policy, efficiency=False, bound=False, restart_cost=10.0)
    assert result.jobs["done_samples"].tolist() == [30 * (30 - 15) + 20 * (60 - 15)]


@pytest.mark.parametrize("name", RULES)
def test_the_page_of_the_rules_has_every_reading_and_option_of_a_rule(name):
    page = (REPOSITORY / "docs/products.md").read_text()
    rule = POLICIES.load(f"products.{name}", allow_code=False)
    assert [reading for reading in rule.readings if f"- {reading}\n" not in page] == []
    assert [option for option in options_of(rule.options_type) if f"`{option}`" not in page] == []


@pytest.mark.parametrize("spec", ["ray(snooze_s={})", "ray(interval_s={})", "torchrun(last_call_s={})"])
def test_a_time_of_centuries_is_refused_and_one_of_decades_is_none_too_long(spec):
    inputs = log(2, [(100, 1, True), (250, 0, False)], 600, [0]), JobSet([job()])
    keywords = {"efficiency": False, "bound": False}
    with pytest.raises(InputError, match="out of range"):
        replay_log(*inputs, policy="products." + spec.format("2e9"), **keywords)
    replay_log(*inputs, policy="products." + spec.format("1e9"), **keywords)


def test_runs_are_listed_without_readings_and_their_text_has_options_of_0_and_false(tmp_path):
    for spec in ("products.torchrun(last_call_s=0)", "products.scavenger(backfill=false)"):
        options = {"policy": spec, "efficiency": False, "bound": False, "out": tmp_path / spec}
        replay_log(log(2, [], 600, [0]), JobSet([job()]), **options)
    assert [*list_runs(tmp_path).options] == ["policy.name"]
    summaries = [render(run.run) for run in list_runs(tmp_path)]
    assert "backfill False" in summaries[0]
    assert "last_call_s 0, restart_s 0" in summaries[1]
