"""Runs on nodes of several types, and of jobs that share nodes: what the answers make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bfreplay.errors import InputError
from bfreplay.policies import EqualSharePolicy
from bfreplay.runs.explain.answers import render_job, render_run
from bfreplay.runs.explain.campaign import campaign_answer
from bfreplay.runs.explain.job_story import job_story
from bfreplay.runs.explain.jobs_of_run import job_answers, model_answers
from bfreplay.runs.explain.saved_tables import allocations_of, nodes_over_time, nodes_over_time_by_model
from bfreplay.runs.explain.why_these_nodes import explain_decision
from bfreplay.runs.saved_decisions import is_placed_by_policy
from bfreplay.workload import Colocation
from tests.replay.placed import Scripted, Step, run, typed_job, typed_log
from tests.replay.tiny import SECOND, job, log

TOGETHER = Colocation({("a", "b", 1, "v100"): (6.0, 5.0), ("a", "b", 1, "p100"): (2.0, 2.0)})
ALONE, PAIR = Step({0: [0]}, until_s=10), Step({0: [0], 1: [0]}, pairs=((0, 1),), until_s=20)
MOVED = Step({0: [1], 1: [0]})


@pytest.fixture(scope="module")
def placed():
    """Job a on a v100: alone to 10 s, with b to 20 s; then on a p100 to 30 s. Job b keeps the v100. No calendar."""
    events = typed_log("v100 p100", 30)
    events.metadata = replace(events.metadata, time_origin="relative")
    return run(
        events, [typed_job("a"), typed_job("b", submit_s=5)], Scripted(ALONE, ALONE, PAIR, MOVED), colocation=TOGETHER
    )


def steps(nodes):
    return list(zip((nodes.edge_us[:-1] / SECOND).tolist(), nodes.counts.tolist(), strict=True))


def test_intervals_say_the_type_and_what_is_shared(placed):
    held = allocations_of(placed)
    assert placed.record.inputs.node_types == ("v100", "p100")
    names, types = ([texts[k] for k in of] for texts, of in ((held.names, held.job), (held.type_names, held.node_type)))
    rows = sorted(zip(names, types, held.sharing.tolist(), (held.charged_duration_us / SECOND).tolist(), strict=True))
    assert rows == [
        ("a", "p100", 0, 10.0),
        ("a", "v100", 0, 10.0),
        ("a", "v100", 1, 5.0),
        ("b", "v100", 0, 10.0),
        ("b", "v100", 2, 5.0),
    ]


def test_nodes_of_a_job_are_all_that_it_had_and_those_of_all_models_are_counted_once(placed):
    assert steps(nodes_over_time(placed, "a")) == [(0.0, 1)]
    assert steps(nodes_over_time(placed, "b")) == [(0.0, 0), (10.0, 1)]
    by_model = nodes_over_time_by_model(placed)
    assert steps(by_model["a"]) == [(0.0, 1)]
    assert steps(by_model["b"]) == [(0.0, 0), (20.0, 1)]
    assert sum(each.area_us for each in by_model.values()) == placed.summary["ledger"]["allocated_node_us"]


def test_answers_charge_half_of_a_shared_node_and_know_the_types(placed):
    jobs = {name: typed_job(name, submit_s=5.0 * (name == "b")) for name in "ab"}
    answers = job_answers(placed, jobs).set_index("job")
    assert answers["held_s"].tolist() == [30.0, 20.0]
    assert answers["mean_nodes"].tolist() == [25 / 30, 15 / 20]
    assert answers["held_node_hours"].tolist() == pytest.approx([25 / 3600, 15 / 3600])
    # a: 10 s x 10, 10 s x 6, 10 s x 4 of the 20 s x 10 and 10 s x 4 alone; b: 10 s x 5, 10 s x 10 of 20 s x 10
    assert answers["efficiency"].tolist() == pytest.approx([200 / 240, 150 / 200])


def test_the_slowdown_is_beside_the_best_type_that_there_is():
    jobs = {"a": typed_job("a", work=40)}
    on_p100 = run(typed_log("v100 p100", 30), list(jobs.values()), Scripted(Step({0: [1]})))
    assert job_answers(on_p100, jobs)["slowdown"].tolist() == pytest.approx([10 / 2])  # 20/s on two v100
    no_v100 = run(typed_log("p100 p100", 30), list(jobs.values()), Scripted(Step({0: [1]})))
    assert job_answers(no_v100, jobs)["slowdown"].tolist() == pytest.approx([10 / 5])


def test_a_story_of_placed_nodes_is_told_from_the_tables_in_seconds_from_the_start(placed):
    assert is_placed_by_policy(placed)
    story = job_story(placed, "b")
    assert [(step.time_us / SECOND, step.reason, step.after) for step in story.steps] == [
        (5.0, "submitted", 0),
        (5.0, "admitted", 0),
        (10.0, "started", 1),
        (30.0, "window end", 1),
    ]
    text = render_job(job_answers(placed).to_dict("records")[1], story, 60)
    assert "\n+10  " in text
    assert "1970" not in text


def test_a_run_without_a_calendar_is_told_without_one(placed):
    answers = job_answers(placed)
    text = render_run(placed, model_answers(answers), campaign_answer(placed, answers))
    assert text.startswith("2 jobs of 2 models from 0 to 30 s after the start of the log (30 s)")


def test_a_decision_that_chose_nodes_is_not_posed_again(placed):
    with pytest.raises(InputError, match="'scripted' chose the nodes of jobs itself"):
        explain_decision(placed, "a", 15 * SECOND)


def test_a_run_in_rounds_is_placed_and_one_by_counts_is_not():
    in_rounds = run(typed_log("v100", 30), [typed_job("a")], Scripted(ALONE, Step({0: [0]})))
    assert is_placed_by_policy(in_rounds)
    by_counts = run(log(1, [], 30, [0]), [job("a")], EqualSharePolicy())
    assert not is_placed_by_policy(by_counts)
