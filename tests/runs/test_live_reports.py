"""A session takes reality back: measured progress, real ends, further jobs, measured curves and costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bfreplay
from bfreplay import InputError, NodeEvents, TabulatedCurve, open_session
from bfreplay.policies import BFTrainerPolicy, Round, Trigger
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs import ReplaySession
from bfreplay.runs.rerun import ComparedDecisions
from bfreplay.runs.run_settings import RunSettings
from bfreplay.workload import Adaptation, Ending
from tests.examples import examples
from tests.replay.tiny import SECOND, job, log
from tests.runs.test_resume import same

QUICK = {"efficiency": False, "bound": False}
ENDLESS = [job("a", work=math.inf), job("b", work=math.inf, submit_s=1)]
HALF = TabulatedCurve([0, 1, 2, 3, 4], [0.0, 5.0, 10.0, 15.0, 20.0])


def live(jobs=ENDLESS, **options):
    """Return a session with nodes n0 and n1, which are busy from 0 on."""
    return open_session(NodeEvents.to_come(["n0", "n1"], 0), jobs, **({"hold_back": "5s"} | QUICK | options))


def at(time_s, node, state):
    return round(time_s * SECOND), node, state


def run_of(session, end_s=22):
    """Finish a session, and return its run, which must not depend on where the ledger is read."""
    run = session.finish(end_s * SECOND)
    ledger, jobs = run.summary.ledger, run.table("jobs").to_pylist()
    assert sum(row["done_samples"] for row in jobs) == pytest.approx(ledger.samples)
    assert sum(row["useful_node_us"] for row in jobs) == ledger.useful_node_us
    return run


def row_of(run, name):
    return next(row for row in run.table("jobs").to_pylist() if row["job"] == name)


def alone(work=math.inf, **changes):
    return [replace(job("a", work=work), **changes)]


def test_measured_progress_replaces_that_of_the_replay_and_the_difference_is_credited():
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        session.report("a", 70, at=15 * SECOND)  # the replay has 130
        session.report("a", 80.5, at="1970-01-01T00:00:16Z")
        run = run_of(session)
    assert row_of(run, "a")["done_samples"] == 80.5 + 60
    ledger = run.summary.ledger
    assert (ledger.gross_samples, ledger.samples, ledger.credited_samples) == (200, 140.5, -59.5)
    assert run.record.inputs.jobs.corrected == "2 reports of progress"
    assert any("corrected by what was measured" in warning for warning in run.warnings)


def test_a_report_waits_for_its_time_and_counts_after_the_events_of_it():
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle")], 12 * SECOND)
        session.report("a", 50, at=12 * SECOND)
        session.report("a", 30, at=9 * SECOND)
        session.report("a", 60, at=12 * SECOND)
        session.advance([at(12, "n0", "busy"), at(12, "n1", "idle")], 17 * SECOND)
        assert session.engine.reached_us == 9 * SECOND
        session.advance(until=17 * SECOND + 1)
        assert session.engine.reached_us == 12 * SECOND
        run = run_of(session)
    assert row_of(run, "a")["done_samples"] == 60 + 100
    assert run.decisions.samples_since_last.tolist() == [0, 0, 30 + 30]


def test_a_time_that_is_final_means_the_earliest_that_is_not_and_none_means_it_too():
    for time in (None, 3 * SECOND, 15 * SECOND):
        with live(alone()) as session:
            session.advance([at(2, "n0", "idle")], 20 * SECOND)
            session.report("a", 70, at=time)
            assert row_of(run_of(session), "a")["done_samples"] == 70 + 7 * 10


def test_a_report_after_the_end_of_the_window_counts_at_its_end_where_it_has_one():
    events = NodeEvents.to_come(["n0"], 0, 22 * SECOND)
    with open_session(events, alone(), **QUICK) as session:
        session.advance([at(2, "n0", "idle")], 60 * SECOND)
        session.report("a", 7)
        assert row_of(run_of(session), "a")["done_samples"] == 7
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        session.report("a", 7, at=23 * SECOND)
        assert row_of(run_of(session), "a")["done_samples"] == 200


def test_a_job_that_has_ended_frees_its_nodes_and_a_decision_follows_at_that_instant():
    with live(max_parallel=1) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        assert session.holders() == {"a": ("n0",)}
        session.report("a", 110, at=16 * SECOND, ended="finished")
        decisions = session.advance(until=25 * SECOND).to_pylist()
        assert [(row["time"].timestamp(), row["trigger"]) for row in decisions] == [(16, "arrival+completion")]
        assert session.holders() == {"b": ("n0",)}
        with pytest.raises(InputError, match="'a' has left"):
            session.report("a", 120)
        run = run_of(session)
    ended, other = row_of(run, "a"), row_of(run, "b")
    assert (ended["status"], ended["work_samples"], ended["done_samples"]) == ("finished", 110, 110)
    assert (ended["finished"].timestamp(), other["done_samples"]) == (16, 60)
    assert run.summary.ledger.credited_samples == 110 - 140


def test_a_job_may_fail_before_it_was_admitted_and_a_run_ends_with_its_jobs():
    options = {"settings": ReplaySettings(max_parallel=1, until_done=True)}
    with live(**options) as session:
        session.report("b", 0, at=3 * SECOND, ended=Ending.FAILED)
        session.report("a", 30, at=6 * SECOND, ended="stopped")
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        assert session.is_over
        run = run_of(session)
    assert [(row["job"], row["status"], row["done_samples"]) for row in run.table("jobs").to_pylist()] == [
        ("a", "stopped", 30),
        ("b", "failed", 0),
    ]
    assert run.record.inputs.jobs.corrected == "2 ends of jobs"
    assert run.record.config.window_end_us == 6 * SECOND


@pytest.mark.parametrize(
    ("samples", "finished_s", "done"),
    [(50, 17, 100), (99, 12.1, 100), (100, 12, 100), (120, 12, 100), (0, None, 100)],
)
def test_a_job_with_an_end_is_predicted_anew_and_more_than_its_work_is_its_work(samples, finished_s, done):
    with live(alone(work=120.0)) as session:
        session.advance([at(2, "n0", "idle")], 13 * SECOND)
        session.report("a", samples + 20, at=12 * SECOND) if samples else session.report("a", 0, at=12 * SECOND)
        run = run_of(session)
    row = row_of(run, "a")
    assert (row["finished"] and row["finished"].timestamp()) == finished_s
    assert run.summary.ledger.trimmed_samples == pytest.approx(0)
    assert row["done_samples"] == done + 20 * bool(samples)


@pytest.mark.parametrize(("ending", "work"), [("finished", 150), ("failed", 120)])
def test_a_job_that_has_ended_may_have_done_more_than_its_work(ending, work):
    with live(alone(work=120.0)) as session:
        session.advance([at(2, "n0", "idle")], 13 * SECOND)
        session.report("a", 150, at=12 * SECOND, ended=ending)
        row = row_of(run_of(session), "a")
    assert (row["status"], row["work_samples"], row["done_samples"]) == (ending, work, 150)


@pytest.mark.parametrize(("samples", "lost"), [(100, 70), (200, 70), (20, 40)])
def test_work_at_risk_stays_at_risk_as_far_as_there_is_so_much(samples, lost):
    # saved at 10 s, 8 s after its start; reclaimed at 17 s
    with live(alone(work_saved_every_s=8.0, restart="pause")) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        session.report("a", samples, at=15 * SECOND)
        session.advance([at(17, "n0", "busy")], 25 * SECOND)
        run = run_of(session)
    assert row_of(run, "a")["repeated_samples"] == lost
    assert row_of(run, "a")["done_samples"] == samples + 20 - lost


def test_a_job_that_was_done_with_its_round_or_its_debt_goes_on_when_less_was_measured():
    with live(alone(work=120.0, scale_up_cost_s=4.0)) as session:
        session.advance([at(2, "n0", "idle"), at(7, "n1", "idle")], 13 * SECOND)  # owes 40 samples from 7 s on
        session.report("a", 120, at=8 * SECOND)
        row = row_of(run_of(session), "a")
    assert (row["finished"].timestamp(), row["done_samples"], row["rescale_cost_samples"]) == (9, 120, 40)


def test_a_job_that_has_ended_owes_nothing_any_more():
    with live(alone(scale_up_cost_s=4.0)) as session:
        session.advance([at(2, "n0", "idle"), at(7, "n1", "idle")], 13 * SECOND)  # owes 40 samples from 7 s on
        session.report("a", 45, at=8 * SECOND, ended="finished")
        row = row_of(run_of(session), "a")
    assert (row["finished"].timestamp(), row["done_samples"], row["rescale_cost_samples"]) == (8, 45, 20)


@pytest.mark.parametrize(("samples", "done"), [(150, 150 + 5 * 20), (90, 90 + 10 + 4 * 20), (10, 10 + 5 * 10)])
def test_the_batch_size_of_a_job_is_that_of_its_measured_progress(samples, done):
    curves = {32: job("a").throughput, 64: TabulatedCurve([0, 1, 2, 3, 4], [0.0, 20.0, 40.0, 60.0, 80.0])}
    with live(alone(adaptation=Adaptation("accordion", 50, curves, ((0.0, 32), (100.0, 64))))) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)  # the larger one from 12 s on
        session.report("a", samples, at=17 * SECOND)
        assert row_of(run_of(session), "a")["done_samples"] == pytest.approx(done)


class SixSecondsOfTen(bfreplay.Policy):
    """Gives the job all nodes, and lets it process 60 samples in each round of 10 s."""

    name = "six of ten"
    wakes_on = Trigger.POOL | Trigger.ROUND

    def decide(self, state):
        until = Round(until_us=state.time_us + 10 * SECOND, samples=np.full(state.n_jobs, 60.0))
        return bfreplay.Decision(np.array([state.n_idle]), round=until)


@pytest.mark.parametrize(("report_s", "samples"), [(9, 45), (9, 70), (5, 10)])
def test_what_a_job_may_process_in_a_round_stays(report_s, samples):
    with live(alone(), policy=SixSecondsOfTen()) as session:
        session.advance([at(2, "n0", "idle")], 6 * SECOND)
        session.report("a", samples, at=report_s * SECOND)
        assert row_of(run_of(session, 12), "a")["done_samples"] == samples + (30 if report_s == 5 else 0)


def test_a_job_has_its_curve_on_its_type_of_node_after_an_update():
    by_type = {"big": job("a").throughput, "small": HALF}
    events = NodeEvents.to_come(["n0", "n1"], 0, node_types=["big", "small"])
    with open_session(events, alone(throughput_by_type=by_type), hold_back=5, **QUICK) as session:
        session.advance([at(2, "n1", "idle")], 20 * SECOND)
        session.update_job("a", scale_up_cost_s=7)
        with pytest.raises(InputError, match="curves by node type"):
            session.update_job("a", throughput=HALF)
        assert row_of(run_of(session), "a")["done_samples"] == 100


def test_a_measured_curve_changes_the_rate_at_once_and_asks_nobody():
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        session.update_job("a", throughput=HALF, at=16 * SECOND)
        assert session.advance(until=25 * SECOND).num_rows == 0
        run = run_of(session)
    assert row_of(run, "a")["done_samples"] == 140 + 30
    assert run.summary.ledger.rescale_samples == run.summary.ledger.credited_samples == 0
    assert run.record.inputs.jobs.corrected == "1 update of curves or costs"


def test_a_measured_curve_moves_the_end_of_a_job():
    with live(alone(work=150.0)) as session:
        session.update_job("a", throughput=HALF, at=12 * SECOND)
        session.advance([at(2, "n0", "idle")], 13 * SECOND)
        assert row_of(run_of(session, 40), "a")["finished"].timestamp() == 12 + 10


@pytest.mark.parametrize("cost_s", [1e4, "0:1 2:10000"])
def test_measured_costs_count_in_the_next_decision(cost_s):
    for cost in (0.0, cost_s):
        with live(alone()) as session:
            session.advance([at(2, "n0", "idle")], 20 * SECOND)
            session.update_job("a", scale_up_cost_s=cost)
            session.advance([at(17, "n1", "idle")], 30 * SECOND)
            assert session.holders()["a"] == (("n0", "n1") if cost == 0 else ("n0",))
            run_of(session, 30)


def test_a_job_that_waits_begins_with_what_was_measured():
    with live(alone(submit_us=20 * SECOND)) as session:
        session.update_job("a", start_cost_s=3, throughput=HALF)
        session.advance([at(2, "n0", "idle")], 30 * SECOND)
        run = run_of(session, 30)
    assert row_of(run, "a")["done_samples"] == (30 - 23) * 5
    assert run.record.inputs.jobs.costs == "1 job: start 3 s"


class OwnCurve:
    """A curve of a class that no state may make."""

    last_nodes = 4

    def table(self, n_nodes):
        return HALF.table(n_nodes)


def test_jobs_are_submitted_while_it_runs_and_a_restored_session_has_them(tmp_path):
    new = [job("c", work=30.0), job("d", submit_s=18, work=math.inf)]
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle"), at(3, "n1", "idle")], 15 * SECOND)
        session.submit(new[:1])
        session.submit(iter(new[1:]), at=12 * SECOND)
        session.update_job("a", throughput=OwnCurve(), at=12 * SECOND)
        session.report("c", 11, at=14 * SECOND)
        session.advance(until=18 * SECOND)
        session.save(tmp_path / "state")
        unbroken = run_of(session, 30)
    for jobs in (alone(), [*alone(), *new], [*new[1:], *alone()]):
        with live(jobs) as session:
            session.restore(tmp_path / "state")
            with pytest.raises(InputError, match="two jobs have the name 'c'"):
                session.submit([job("e"), job("c")])
            run = run_of(session, 30)
        assert run.summary == unbroken.summary
        assert run.record.inputs.jobs == unbroken.record.inputs.jobs
        assert run.table("jobs").equals(unbroken.table("jobs"))
    submitted = {row["job"]: row["submitted"].timestamp() for row in run.table("jobs").to_pylist()}
    assert submitted == {"a": 0, "c": 10, "d": 18}
    assert run.record.inputs.jobs.n_jobs == 3
    assert run.record.inputs.jobs.added == "1 at 1970-01-01T00:00:10Z; 1 at 1970-01-01T00:00:12Z"


def test_jobs_of_a_run_with_endless_work_have_endless_work():
    with live(alone(), unlimited_work=True) as session:
        session.submit([job("c", work=30.0)], at=4 * SECOND)
        session.advance([at(2, "n0", "idle"), at(3, "n1", "idle")], 15 * SECOND)
        run = run_of(session)
    assert row_of(run, "c")["work_samples"] == math.inf
    assert row_of(run, "c")["submitted"].timestamp() == 4


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda session: session.report("z", 1), "no job 'z'"),
        (lambda session: session.report(["a"], 1), "no job"),
        (lambda session: session.report("a", math.nan), "samples is not finite"),
        (lambda session: session.report("a", math.inf), "samples is not finite"),
        (lambda session: session.report("a", -1), "samples is out of range"),
        (lambda session: session.report("a", 1e31), "samples is out of range"),
        (lambda session: session.report("a", "1"), "samples is no number"),
        (lambda session: session.report("a", 1, at=1.5), "at is not a time"),
        (lambda session: session.report("a", 1, ended="done"), "ended is unknown"),
        (lambda session: session.report("a", 1, ended="declined"), "ended is unknown"),
        (lambda session: session.update_job("a"), "nothing of job 'a'"),
        (lambda session: session.update_job("a", throughput=[0, 1]), "the throughput is no curve"),
        (lambda session: session.update_job("a", throughput=TabulatedCurve([0, 1], [0, 1])), "below max_nodes 4"),
        (lambda session: session.update_job("a", scale_up_cost_s=-1), "job 'a'"),
        (lambda session: session.update_job("a", start_cost_s=1, at="soon"), "at is not a time"),
        (lambda session: session.submit([]), "the job set is empty"),
        (lambda session: session.submit([7]), "these are no jobs"),
        (lambda session: session.submit([job("a")]), "two jobs have the name 'a'"),
        (lambda session: session.submit([replace(job("c"), node_types=("v100",))]), "certain node types only"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_changes(call, problem):
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        with pytest.raises(InputError, match=problem):
            call(session)
        run = run_of(session)
    assert run.record.inputs.jobs.corrected == run.record.inputs.jobs.added == ""
    assert row_of(run, "a")["done_samples"] == 200


def test_sessions_that_cannot_take_reports_or_jobs_say_so():
    with open_session(NodeEvents.to_come(["n0"], 0), alone(), **QUICK) as strict:
        with pytest.raises(InputError, match="hold-back"):
            strict.submit([job("c")])
        strict.report("a", 3)
        strict.advance([at(2, "n0", "idle")], 20 * SECOND)
        assert row_of(run_of(strict), "a")["done_samples"] == 3 + 200
    published = open_session(NodeEvents.to_come(["n0"], 0), alone(), semantics="published", **QUICK)
    with published, pytest.raises(InputError, match="published clock"):
        published.report("a", 3)
    settings_of_run = ReplaySettings(), RunSettings(efficiency=False, bound=False)
    with ReplaySession(log(1, [], 9), bfreplay.JobSet(alone()), BFTrainerPolicy(), *settings_of_run) as whole:
        for call in (whole.report, whole.update_job):
            with pytest.raises(InputError, match="reads its log itself"):
                call("a", **({"samples": 3} if call == whole.report else {"start_cost_s": 3}))
    with pytest.raises(InputError, match="left without finish"):
        whole.report("a", 3)


def test_a_report_of_a_job_that_is_not_active_is_not_used_and_the_run_says_so():
    with live(max_parallel=1) as session:
        session.report("b", 5, at=4 * SECOND)
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        assert run_of(session).record.inputs.jobs.corrected == "1 unused report of an inactive job"


def test_a_report_of_a_job_that_has_left_meanwhile_is_not_used():
    with live([job("a", work=120.0), *ENDLESS[1:]]) as session:
        session.report("a", 100, at=16 * SECOND)
        session.report("a", 100, at=16 * SECOND, ended="stopped")  # the session has ended it at 14 s
        session.report("b", 5, at=18 * SECOND, ended="failed")
        with pytest.raises(InputError, match="'b' has left"):
            session.report("b", 5, at=19 * SECOND)
        session.advance([at(2, "n0", "idle")], 20 * SECOND)
        run = run_of(session)
    assert (row_of(run, "a")["status"], row_of(run, "a")["done_samples"]) == ("finished", 120)
    corrected = "1 end of a job, 2 unused reports of inactive jobs"
    assert run.record.inputs.jobs.corrected == corrected


def test_the_policy_checks_what_is_submitted_or_updated(monkeypatch):
    def refuse(jobs, most_nodes):
        raise InputError(f"the policy refuses {len(jobs)} jobs on {most_nodes} nodes")

    with live(alone()) as session:
        monkeypatch.setattr(session.policy, "check_jobs", refuse)
        with pytest.raises(InputError, match="refuses 2 jobs on 2 nodes"):
            session.submit([job("c")])
        with pytest.raises(InputError, match="refuses 1 jobs on 2 nodes"):
            session.update_job("a", start_cost_s=3)


def test_a_run_about_some_jobs_takes_one_more():
    with live(settings=ReplaySettings(measured=(0, 2))) as session:
        session.submit([job("c")])
        assert [row["job"] for row in run_of(session).table("jobs").to_pylist()] == ["a", "b", "c"]


def test_absurd_reports_that_are_taken_back_leave_a_ledger_that_closes():
    with live(alone()) as session:
        session.advance([at(2, "n0", "idle")], 12 * SECOND)
        session.report("a", 1e30, at=13 * SECOND)
        session.report("a", 5, at=14 * SECOND)
        run = session.finish(22 * SECOND)
    assert row_of(run, "a")["done_samples"] == 85
    run.summary.ledger.close()


def test_a_rerun_that_differs_says_that_the_run_was_corrected(tmp_path):
    with live(alone(), out=tmp_path / "run") as session:
        session.advance([at(2, "n0", "idle"), at(17, "n1", "idle")], 20 * SECOND)
        session.report("a", 70, at=15 * SECOND)
        session.finish(30 * SECOND)
    run = bfreplay.RunResult.load(tmp_path / "run")
    assert run.record.inputs.jobs.corrected == "1 report of progress"
    difference = str(ComparedDecisions(run, 1).difference("1", "2"))
    assert "corrected by what was measured as it ran (1 report of progress): no replay has that" in difference


# -- whatever is reported, and wherever it is cut ---------------------------------------------------------

COSTLY = [replace(each, start_cost_s=2.0, restart="pause", work_saved_every_s=8.0) for each in ENDLESS]
MIXED = [job("a", work=900.0, up_s=3.0, down_s=2.0), *ENDLESS[1:]]
KINDS = {
    "bftrainer": {"jobs": MIXED},
    "reclaim-aware": {"jobs": COSTLY, "policy": "reclaim-aware"},
    "settled": {"jobs": COSTLY, "settle": 2},
    "learnt": {"jobs": MIXED, "learn_curves": "job"},
    "one at once": {"jobs": MIXED, "max_parallel": 1, "record_nodes": True},
}
TIMES = st.none() | st.integers(0, 130).map(lambda time_s: time_s * SECOND)
REPORTS = st.one_of(
    st.tuples(
        st.just("report"),
        st.sampled_from("abcd"),
        st.fixed_dictionaries(
            {
                "samples": st.floats(0, 2e3),
                "at": TIMES,
                "ended": st.sampled_from((None, None, None, "finished", "failed")),
            }
        ),
    ),
    st.tuples(
        st.just("update_job"),
        st.sampled_from("abcd"),
        st.fixed_dictionaries(
            {
                "at": TIMES,
                "throughput": st.sampled_from((None, HALF, OwnCurve())),
                "scale_up_cost_s": st.none() | st.floats(0, 9),
                "start_cost_s": st.sampled_from((None, 0, 4.0, "0:1 3:5")),
            }
        ),
    ),
    st.tuples(st.just("submit"), st.sampled_from("cd"), st.fixed_dictionaries({"at": TIMES})),
)
ROWS = st.tuples(st.integers(0, 110), st.sampled_from(("n0", "n1")), st.sampled_from(("idle", "idle", "busy")))
POLLS = st.lists(st.tuples(st.lists(ROWS, max_size=4), st.lists(REPORTS, max_size=3)), min_size=1, max_size=8)


def followed(polls, folder, cuts, jobs, **options):
    """Follow polls 15 s apart, and go on in another session after those in ``cuts``; return the run."""
    session = None
    for number, (rows, reports) in enumerate(polls):
        if session is None or number in cuts:
            if session is not None:
                with session:
                    pass
            resume = session is not None
            session = live(jobs, out=folder, checkpoint_every=0, resume=resume, **options)
        for method, name, arguments in reports:
            try:
                if method == "submit":
                    session.submit([job(name, work=400.0)], **arguments)
                else:
                    getattr(session, method)(name, **arguments)
            except InputError:
                pass
        session.advance([at(*row) for row in rows], 15 * (number + 1) * SECOND)
    with session:
        return run_of(session, 15 * len(polls))


@given(polls=POLLS, kind=st.sampled_from(sorted(KINDS)), cuts=st.sets(st.integers(1, 7), max_size=2))
@settings(max_examples=examples(60))
def test_whatever_is_reported_the_ledger_closes_and_a_run_that_is_cut_has_the_same_bytes(
    polls, kind, cuts, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("run")
    followed(polls, folder / "unbroken", (), **KINDS[kind])
    followed(polls, folder / "cut", cuts, **KINDS[kind])
    same(folder / "cut", folder / "unbroken")
