"""Slurm's preemptible partition on hand-made pools, and what all rules have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay import explain, replay_log
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies.catalogue import policy_of, policy_of_record
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log
from tests.systems.products.rule_decisions import nodes_of

EIGHT = tuple(10.0 * n for n in range(9))


def run(spec, events, jobs, **options):
    return replay_log(events, JobSet(jobs), policy=f"products.{spec}", efficiency=False, bound=False, **options)


def reason(result, events, jobs, name, at):
    """First note on the nodes of a job."""
    return explain(result, job=name, at=at, events=events, jobs=JobSet(jobs)).notes[0]


def test_a_job_that_loses_one_node_gives_up_all_and_starts_again_on_its_whole_size():
    # three of five idle nodes; one is reclaimed at 10 s, a free one is left: two are too few until 30 s
    events = log(4, [(10, 0, False), (30, 0, True)], 60, [0, 1, 2])
    result = run("scavenger(size=3)", events, [job()])
    assert nodes_of(result) == [(0, 3), (10, 0), (30, 3)]
    assert result.jobs["done_samples"].tolist() == [30 * (10 + 30)]


def test_the_size_is_that_which_the_user_asked_for_within_the_bounds_of_the_job():
    events = log(8, [], 60, range(8))
    elastic = job(rates=EIGHT, min_nodes=2)
    for spec, asked, size in [
        ("scavenger", 3, 3),
        ("scavenger", None, 8),
        ("scavenger(size=1)", 3, 2),
        ("scavenger(size=99)", 3, 8),
        ("scavenger(size=6,max_nodes=4)", 3, 4),
        ("scavenger(max_nodes=1)", None, 2),
    ]:
        result = run(spec, events, [replace(elastic, requested_nodes=asked)])
        assert nodes_of(result) == [(0, size)], spec


def test_the_size_is_one_that_the_job_can_use():
    events = log(8, [], 60, range(8))
    assert nodes_of(run("scavenger(size=7)", events, [replace(job(rates=EIGHT), counts=(1, 4, 8))])) == [(0, 4)]


@pytest.mark.parametrize(("backfill", "last"), [("true", [(0, 0), (0, 1)]), ("false", [(20, 3), (0, 0)])])
def test_whoever_fits_starts_before_the_head_of_the_queue_only_with_backfill(backfill, last):
    events = log(3, [(20, 2, True)], 60, [0, 1])
    jobs = [job("large", rates=EIGHT[:4]), job("small", rates=EIGHT[:2])]
    jobs[0] = replace(jobs[0], requested_nodes=3)
    result = run(f"scavenger(backfill={backfill})", events, jobs)
    assert [nodes_of(result, name)[-1] for name in ("large", "small")] == last


def test_the_queue_is_by_weight_and_then_by_submission():
    events = log(1, [], 60, [0])
    jobs = [job("first", rates=EIGHT[:2]), job("heavy", rates=EIGHT[:2]), job("last", rates=EIGHT[:2])]
    jobs[1] = replace(jobs[1], weight=2.0)
    assert nodes_of(run("scavenger", events, jobs), "heavy") == [(0, 1)]
    assert nodes_of(run("scavenger", events, jobs[::2]), "first") == [(0, 1)]


def test_a_requeued_job_waits_before_it_may_start_again():
    events = log(4, [(10, 0, False)], 90, range(4))
    result = run("scavenger(size=2,requeue_s=25)", events, [job()])
    assert nodes_of(result) == [(0, 2), (10, 0), (35, 2)]
    assert reason(result, events, [job()], "job", "+20") == ("the rule: it was preempted, and may start again in 25 s")


def test_a_restart_of_the_rule_is_paid_besides_what_the_job_pays_itself():
    events = log(3, [(30, 0, False)], 90, range(3))
    rule = "scavenger(size=2,restart_s=5)"
    with_own = run(rule, events, [job()], restart_cost=10.0)
    # 15 s of the first 30, and of the 60 after the restart
    assert with_own.jobs["done_samples"].tolist() == [20 * (30 - 15 + 60 - 15)]
    assert run(rule, events, [job()]).jobs["done_samples"].tolist() == [20 * (30 - 5 + 60 - 5)]


def test_explain_says_why_a_job_waits():
    events = log(3, [], 60, range(3))
    jobs = [
        replace(job("runs"), counts=(1, 2, 4)),
        replace(job("waits"), counts=(1, 2, 4)),
        job("behind", rates=EIGHT[:2]),
    ]
    result = run("scavenger(size=3,backfill=false)", events, jobs)
    assert [reason(result, events, jobs, name, "+5") for name in ("runs", "waits", "behind")] == [
        "the rule: it runs on its fixed size, 2 nodes, or not at all",
        "the rule: its size is 2 nodes, with 1 free at its turn",
        "the rule: the queue waits with a job before it (no backfill)",
    ]


def test_a_rule_describes_its_product_and_what_was_read_into_it_and_is_made_again_from_that():
    policy = policy_of("products.scavenger(size=8, requeue_s=120)", t_fwd_s=60.0, solver=ExactSolver())
    described = policy.describe()
    assert described["product"].startswith("Slurm 22.05.8")
    assert all(isinstance(reading, str) for reading in described["readings"])
    again = policy_of_record(described)
    assert again.describe() == described
    assert policy_of_record({"name": "bftrainer"}) is None
    assert policy_of_record({"name": f"{__name__}:Mine"}) is None
    with pytest.raises(InputError, match="size"):
        policy_of_record(described | {"size": -3})


def test_a_rule_has_no_place_under_the_published_clock():
    with pytest.raises(InputError, match="decides in rounds"):
        run("scavenger", log(1, [], 60, [0]), [job()], semantics="published")
