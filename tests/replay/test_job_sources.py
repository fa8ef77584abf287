"""Jobs that a source makes while the replay runs: hand-worked instants, endings, pauses, and bad sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import fixed_cluster
from bfreplay.errors import InputError
from bfreplay.milp.exact import ExactSolver
from bfreplay.policies import Decision, EqualSharePolicy, PolicyState
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.replay.feed import Feed
from bfreplay.runs import RunResult
from bfreplay.runs.summary_text import render
from bfreplay.workload import ElasticJob, Ending, JobReport, JobSet, JobSource, Orders, Verdict
from tests.examples import examples
from tests.replay.tiny import SECOND, job, log, logs


class Scripted:
    """A source that does what a table says: orders by call, verdicts by (job, samples)."""

    name = "scripted"
    higher_is_better = True
    sources = ()

    def __init__(self, orders: list[Orders], verdicts: Mapping[tuple[str, float], Verdict] | None = None) -> None:
        self.orders, self.verdicts = orders, dict(verdicts or {})

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        self.asked: list[float] = []
        self.told: list[JobReport] = []

    def ask(self, now_us: int) -> Orders:
        self.asked.append(now_us / SECOND)
        call = len(self.asked) - 1
        return self.orders[call] if call < len(self.orders) else Orders()

    def tell(self, report: JobReport) -> Verdict:
        self.told.append(report)
        return self.verdicts.get((report.job, report.samples), Verdict(score=report.samples))

    def describe(self) -> dict[str, object]:
        return {"n_orders": len(self.orders)}


def reporting(name: str, *at: float, work: float = 400.0, **more: Any) -> ElasticJob:
    return replace(job(name, work=work, **more), report_at_samples=at)


def replayed(events: NodeEvents, source: JobSource, max_parallel: int = 10) -> RunResult:
    return replay_log(events, source, EqualSharePolicy(), ReplaySettings(max_parallel), efficiency=False, bound=False)


def idle_for(seconds: float, n_nodes: int = 4) -> NodeEvents:
    return log(n_nodes, [], seconds, range(n_nodes))


def by_name(run: RunResult) -> dict[str, dict[str, Any]]:
    return {row["job"]: row for row in run.jobs.to_dict("records")}


def reports(run: RunResult) -> list[tuple[float, str, float, str]]:
    rows = run.frame("reports").to_dict("records")
    return [(row["time"].timestamp(), row["job"], row["samples"], row["verdict"]) for row in rows]


def test_a_job_reports_at_the_exact_instant_and_its_end_is_told():
    source = Scripted([Orders(submit=(reporting("a", 100.0, 250.0),))])
    run = replayed(idle_for(60), source)  # 4 nodes, 40 samples/s
    assert reports(run) == [
        (2.5, "a", 100.0, "continue"),
        (6.25, "a", 250.0, "continue"),
        (10.0, "a", 400.0, "finished"),
    ]
    assert [(r.samples, r.is_finished, r.node_us) for r in source.told] == [
        (100.0, False, 10 * SECOND),
        (250.0, False, 25 * SECOND),
        (400.0, True, 40 * SECOND),
    ]
    assert source.asked == [0.0, 2.5, 6.25, 10.0]
    row = by_name(run)["a"]
    assert (row["status"], row["n_reports"], row["last_score"], row["best_score"]) == ("finished", 3, 400.0, 400.0)
    assert run.summary["scores"].to_json() == {
        "n_reports": 3,
        "best_score": 400.0,
        "best_job": "a",
        "best_params": {},
        "best_time_us": 10 * SECOND,
        "best_finished_score": 400.0,
        "best_finished_job": "a",
    }


def test_what_sets_a_job_apart_is_on_record():
    trial = replace(reporting("a"), params={"lr": 0.1, "layers": 3})
    run = replayed(idle_for(60), Scripted([Orders(submit=(trial, reporting("b")))]))
    assert run.tables["jobs"]["params"].to_pylist() == ['{"layers": 3, "lr": 0.1}', None]
    assert run.summary["scores"]["best_params"] == {"lr": 0.1, "layers": 3}
    assert "with layers 3, lr 0.1" in render(run)


def test_the_best_score_of_all_may_be_another_than_the_best_last_score_of_a_finished_job():
    verdicts = {
        ("a", 100.0): Verdict(0.9),
        ("a", 400.0): Verdict(0.5),
        ("b", 400.0): Verdict(0.7),
        ("c", 100.0): Verdict(0.8, Ending.PRUNED),
    }
    jobs = (reporting("a", 100.0), reporting("b"), reporting("c", 100.0))
    run = replayed(idle_for(90), Scripted([Orders(jobs)], verdicts))
    scores = run.summary["scores"]
    assert (scores["best_score"], scores["best_job"]) == (0.9, "a")
    assert (scores["best_finished_score"], scores["best_finished_job"]) == (0.7, "b")
    assert "Last score  0.7, the best of a finished job, by b" in render(run)


@pytest.mark.parametrize(
    ("is_higher", "best", "best_finished", "best_of_a"),
    [(True, (0.9, "a"), (0.7, "b"), 0.9), (False, (0.5, "a"), (0.5, "a"), 0.5)],
)
def test_the_best_score_is_the_highest_or_the_lowest_as_the_source_says(is_higher, best, best_finished, best_of_a):
    verdicts = {("a", 100.0): Verdict(0.9), ("a", 400.0): Verdict(0.5), ("b", 400.0): Verdict(0.7)}
    source = Scripted([Orders((reporting("a", 100.0), reporting("b")))], verdicts)
    source.higher_is_better = is_higher
    run = replayed(idle_for(60), source)
    scores, row = run.summary["scores"], by_name(run)["a"]
    assert (scores["best_score"], scores["best_job"]) == best
    assert (scores["best_finished_score"], scores["best_finished_job"]) == best_finished
    assert (row["best_score"], row["last_score"]) == (best_of_a, 0.5)


def test_a_sources_jobs_on_dedicated_nodes_are_told_and_not_divided_by():
    orders = [Orders((reporting("a", 100.0), reporting("b", 100.0)))]
    source = Scripted(orders, {("b", 100.0): Verdict(0.1, Ending.PRUNED), ("a", 400.0): Verdict(0.5)})
    run = replay_log(idle_for(60), source)
    efficiency = run.summary["efficiency"]
    assert run.u is None
    assert efficiency["dedicated_jobs"] == {"finished": 1, "pruned": 1}
    assert efficiency["dedicated_best_score"] == 100.0  # a's first report scores its samples
    text = render(run)
    assert all(told in text for told in (" 500 on 4 dedicated nodes", " 100 on 4 dedicated nodes"))
    assert not any(line.startswith("U ") for line in text.splitlines())


def test_a_campaign_without_a_job_says_so():
    assert "none submitted in the window" in render(replayed(idle_for(9), Scripted([])))


def test_params_that_no_record_can_hold_are_refused():
    with pytest.raises(InputError, match="params are not JSON-ready"):
        replace(job("a"), params={"lr": float("nan")})


def test_a_report_alone_is_no_decision():
    run = replayed(idle_for(60), Scripted([Orders(submit=(reporting("a", 100.0),))]))
    assert [time.timestamp() for time in run.decisions["time"]] == [0.0, 10.0]


def test_a_pruned_job_leaves_at_its_report_and_its_nodes_go_to_the_others():
    orders = Orders(submit=(reporting("bad", 40.0), reporting("good")))
    run = replayed(idle_for(60), Scripted([orders], {("bad", 40.0): Verdict(0.1, Ending.PRUNED)}))
    # two nodes each, 20 samples/s: bad goes at 2 s, good then has 360 samples to do at 40/s
    rows = by_name(run)
    assert (rows["bad"]["status"], rows["bad"]["ended"].timestamp(), rows["bad"]["done_samples"]) == ("pruned", 2, 40)
    assert pd.isna(rows["bad"]["finished"])
    assert rows["good"]["finished"].timestamp() == 11.0
    assert run.summary["jobs"]["pruned"] == 1
    assert run.summary["last_finish_us"] == 11 * SECOND


def test_a_paused_job_keeps_its_progress_and_what_it_has_paid():
    waits = reporting("waits", 40.0, work=80.0)
    source = Scripted(
        [Orders(submit=(waits, reporting("other", work=200.0))), Orders(), Orders(resume=("waits",))],
        {("waits", 40.0): Verdict(1.0, pause=True)},
    )
    run = replayed(idle_for(60), source)
    # 0-2 s: both at 20/s; 2-6 s: other alone at 40/s does its last 160; 6-7 s: waits does its last 40
    assert reports(run) == [(2, "waits", 40, "paused"), (6, "other", 200, "finished"), (7, "waits", 80, "finished")]
    row = by_name(run)["waits"]
    assert (row["useful_node_us"], row["n_starts"]) == ((2 * 2 + 4) * SECOND, 2)


def test_a_job_that_stays_paused_is_told_so_and_its_node_time_is_in_the_books():
    source = Scripted([Orders(submit=(reporting("waits", 40.0),))], {("waits", 40.0): Verdict(pause=True)})
    run = replayed(idle_for(60), source)
    row = by_name(run)["waits"]
    assert (row["status"], row["done_samples"], row["useful_node_us"]) == ("paused", 40, 4 * SECOND)
    assert run.summary["ledger"]["useful_node_us"] == 4 * SECOND


def test_a_job_that_is_resumed_and_still_waits_for_a_place_when_the_window_ends_is_paused_and_counted_once():
    submit = (reporting("waits", 40.0), reporting("other", work=1e9))
    source = Scripted([Orders(submit), Orders(resume=("waits",))], {("waits", 40.0): Verdict(pause=True)})
    run = replayed(idle_for(60), source, max_parallel=1)
    row = by_name(run)["waits"]
    assert (row["status"], row["done_samples"], row["useful_node_us"]) == ("paused", 40, 4 * SECOND)
    assert {status: n for status, n in run.summary["jobs"].items() if n} == {"paused": 1, "running": 1}


def test_a_source_stops_active_paused_queued_and_future_jobs():
    submit = (reporting("paused", 40.0), reporting("active"), reporting("queued"), reporting("future", submit_s=50))
    endings = {"paused": Ending.PRUNED, "active": Ending.STOPPED, "queued": Ending.FAILED, "future": Ending.STOPPED}
    source = Scripted(
        [Orders(submit), Orders(ask_again_us=3 * SECOND), Orders(stop=endings)], {("paused", 40.0): Verdict(pause=True)}
    )
    run = replayed(idle_for(60), source, max_parallel=1)  # one at a time at 40/s: paused to 1 s, then active
    assert {name: (row["status"], row["ended"].timestamp()) for name, row in by_name(run).items()} == {
        name: (ending.value, 3) for name, ending in endings.items()
    }
    assert reports(run)[1:] == [
        (3, "paused", 40, "pruned"),
        (3, "active", 80, "stopped"),
        (3, "queued", 0, "failed"),
        (3, "future", 0, "stopped"),
    ]


@pytest.mark.parametrize("pauses", [True, False])
def test_a_job_that_is_stopped_right_after_a_report_has_the_samples_of_it(pauses):
    mark = 1_000 / 7  # reached 3.57 s after the start, up to a microsecond: 40 samples/s
    source = Scripted(
        [Orders((reporting("one", mark),), ask_again_us=3_571_429), Orders(stop={"one": Ending.PRUNED})],
        {("one", mark): Verdict(pause=pauses)},
    )
    assert replayed(idle_for(60), source).table("reports")["samples"].to_pylist() == [mark, mark]


def test_a_job_that_was_stopped_in_the_queue_is_passed_over_when_its_turn_comes():
    # two at a time on two nodes each, 20 s: at 20 s both places are free, and c, d and e wait in the queue
    submit = tuple(reporting(name) for name in "abcde")
    orders = [Orders(submit, ask_again_us=3 * SECOND), Orders(stop={"d": Ending.STOPPED})]
    run = replayed(idle_for(60), Scripted(orders), max_parallel=2)
    assert {name: (row["status"], row["ended"].timestamp()) for name, row in by_name(run).items()} == {
        "a": ("finished", 20),
        "b": ("finished", 20),
        "c": ("finished", 40),
        "d": ("stopped", 3),
        "e": ("finished", 40),
    }


def test_a_job_cannot_be_resumed_twice():
    source = Scripted(
        [Orders((reporting("waits", 40.0),)), Orders(resume=("waits", "waits"))], {("waits", 40.0): Verdict(pause=True)}
    )
    with pytest.raises(InputError, match="resumes a job that is not paused"):
        replayed(idle_for(60), source)


def test_nothing_is_over_while_the_source_has_jobs_to_come():
    orders = [Orders((reporting("a"),)), Orders(ask_again_us=50 * SECOND), Orders((reporting("b", submit_s=70),))]
    assert replayed(idle_for(40), Scripted(orders)).summary["last_finish_us"] is None  # it wants to be asked at 50 s
    assert replayed(idle_for(60), Scripted(orders)).summary["last_finish_us"] is None  # b is to come at 70 s
    assert replayed(idle_for(90), Scripted(orders)).summary["last_finish_us"] == 80 * SECOND


def test_all_is_over_when_the_last_job_is_taken_out_of_the_queue():
    orders = [
        Orders((reporting("a"), reporting("b", submit_s=50))),
        Orders(ask_again_us=20 * SECOND),
        Orders(stop={"b": Ending.STOPPED}),
    ]
    assert replayed(idle_for(60), Scripted(orders)).summary["last_finish_us"] == 20 * SECOND


def test_the_deadline_of_a_job_that_its_source_ended_before_is_void():
    job_with_one = replace(reporting("a", 40.0), deadline_us=30 * SECOND)
    run = replayed(idle_for(60), Scripted([Orders((job_with_one,))], {("a", 40.0): Verdict(ending=Ending.PRUNED)}))
    assert run.summary["deadlines"] == {"met": 0, "missed": 0, "declined": 0, "open": 0, "void": 1}
    assert pd.isna(by_name(run)["a"]["deadline_met"])


class Watch(EqualSharePolicy):
    """Notes since when each job counts as admitted, in seconds."""

    def decide(self, state: PolicyState) -> Decision:
        self.seen = getattr(self, "seen", [])
        self.seen.append((state.time_us / SECOND, (state.admitted_us / SECOND).tolist()))
        return super().decide(state)


def test_a_job_does_not_age_while_its_source_pauses_it():
    waits = reporting("waits", 40.0, work=80.0)
    source = Scripted(
        [Orders(submit=(waits,)), Orders(ask_again_us=31 * SECOND), Orders(resume=("waits",))],
        {("waits", 40.0): Verdict(pause=True)},
    )  # admitted at 0 s, pauses at 1 s, goes on at 31 s
    policy = Watch()
    run = replay_log(idle_for(60), source, policy, efficiency=False, bound=False)
    assert policy.seen == [(0.0, [0.0]), (31.0, [30.0])]
    assert by_name(run)["waits"]["admitted"].timestamp() == 0


def test_the_pauses_of_a_job_add_up():
    waits = reporting("waits", 40.0, 80.0, work=120.0)  # 40 samples/s: pauses from 1 to 31 s and from 32 to 52 s
    resume = Orders(resume=("waits",))
    source = Scripted(
        [Orders(submit=(waits,)), Orders(ask_again_us=31 * SECOND), resume, Orders(ask_again_us=52 * SECOND), resume],
        {("waits", samples): Verdict(pause=True) for samples in (40.0, 80.0)},
    )
    policy = Watch()
    replay_log(idle_for(60), source, policy, efficiency=False, bound=False)
    assert policy.seen == [(0.0, [0.0]), (31.0, [30.0]), (52.0, [50.0])]


def test_what_a_source_tells_of_its_last_replay_is_of_the_run_and_not_of_its_yardsticks():
    source = Scripted([Orders(submit=(reporting("a", 100.0),))])
    run = replay_log(log(4, [(5, k, False) for k in range(4)], 60, range(4)), source)
    assert run.summary["efficiency"]["equivalent_nodes"] == pytest.approx(4 * 5 / 60)
    assert [(r.time_us, r.samples) for r in source.told] == [(2_500_000, 100.0)]  # on dedicated nodes: another time


def test_jobs_that_a_source_made_can_be_replayed_as_a_plain_set():
    run = replay_log(idle_for(60), JobSet([reporting("a", 100.0, 250.0)]), EqualSharePolicy())
    assert run.summary["jobs"]["finished"] == 1
    assert "reports" not in run.tables


def test_a_source_is_asked_when_it_wants_to_be_even_if_nothing_runs():
    source = Scripted([Orders(ask_again_us=7 * SECOND), Orders(submit=(reporting("a", submit_s=9),))])
    run = replayed(idle_for(60), source)
    assert source.asked == [0, 7, 19]
    assert by_name(run)["a"]["first_start"].timestamp() == 9


def test_jobs_wider_than_all_before_them_find_room():
    wide = reporting("wide", rates=tuple(10.0 * n for n in range(9)), work=800.0, submit_s=99)
    narrow = tuple(reporting(f"n{k}", work=40.0) for k in range(70))
    source = Scripted([Orders(submit=narrow), Orders(submit=(wide,))])
    run = replayed(idle_for(600, n_nodes=8), source, max_parallel=80)
    assert by_name(run)["wide"]["status"] == "finished"
    assert run.summary["jobs"]["finished"] == 71


def test_the_allocation_table_names_jobs_that_came_late():
    source = Scripted([Orders(ask_again_us=SECOND), Orders(submit=(reporting("late", submit_s=2),))])
    assert set(replayed(idle_for(30), source).allocations["job"]) == {"late"}


def test_a_source_does_not_go_with_the_published_clock_nor_with_unlimited_work():
    source = Scripted([])
    with pytest.raises(InputError, match="published"):
        replay_log(idle_for(9), source, settings=ReplaySettings(semantics=Semantics.PUBLISHED))
    with pytest.raises(InputError, match="unlimited_work"):
        replay_log(idle_for(9), source, unlimited_work=True)


def _raising(report: JobReport) -> Verdict:
    raise ZeroDivisionError("no epochs")


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        (Orders(submit=(job("a"), job("a"))), "second job called 'a'"),
        (Orders(stop={"nobody": Ending.STOPPED}), "stops job 'nobody', which the replay does not know"),
        (Orders(resume=("nobody",)), "resumes job 'nobody'"),
        (Orders(ask_again_us=0), "asked again"),
        (Orders(submit=("a",)), "submits str"),  # type: ignore[arg-type]  # the mistake that is tested
        (Orders(submit=(replace(job("a"), node_types=("gpu",)),)), "node types"),
        (None, "answered NoneType"),
        (Orders(stop=("a",)), "gives stop as tuple"),  # type: ignore[arg-type]
        (Orders(submit=job("a")), "gives submit as ElasticJob"),  # type: ignore[arg-type]
        (Orders(resume="a"), "gives resume as str"),  # type: ignore[arg-type]
        (Orders(submit=(job("a"),), stop={"a": "tired"}), "which the replay does not know"),  # type: ignore[dict-item]
    ],
)
def test_orders_that_cannot_be_followed_are_refused(orders: Any, message: str):
    with pytest.raises(InputError, match=message):
        replayed(idle_for(9), Scripted([orders]))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (_raising, r"failed in tell\(\) at 1970-01-01.*ZeroDivisionError: no epochs"),
        (lambda report: 0.5, "answered float"),
        (lambda report: Verdict(score=float("nan")), "no finite number"),
        (lambda report: Verdict(ending="tired"), "unknown way"),
        (lambda report: Verdict(ending=Ending.PRUNED, pause=True), "pauses job 'a' and ends it"),
    ],
)
def test_verdicts_that_make_no_sense_are_refused(answer: Callable[[JobReport], Any], message: str):
    source = Scripted([Orders(submit=(reporting("a", 10.0),))])
    source.tell = answer  # type: ignore[method-assign]
    with pytest.raises(InputError, match=message):
        replayed(idle_for(9), source)


def test_numbers_of_numpy_are_numbers():
    source = Scripted([Orders((reporting("a"),), ask_again_us=np.int64(5 * SECOND))])
    source.tell = lambda report: Verdict(score=np.float32(0.5))  # type: ignore[method-assign]
    run = replayed(idle_for(60), source)
    assert source.asked[:2] == [0, 5]
    assert run.summary["scores"]["best_score"] == 0.5


def test_a_class_or_a_source_without_a_description_is_refused():
    with pytest.raises(InputError, match="Scripted is a class"):
        replay_log(idle_for(9), Scripted)  # type: ignore[arg-type]
    source = Scripted([])
    source.sources = None  # type: ignore[assignment]  # the mistake that is tested
    with pytest.raises(InputError, match="has no list of files"):
        replay_log(idle_for(9), source)
    source = Scripted([])
    source.describe = lambda: None  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(InputError, match="describes itself by NoneType"):
        replay_log(idle_for(9), source)


@pytest.mark.parametrize(
    ("described", "part"),
    [
        (None, "got `null`"),
        ({"t_fwd_s": 3}, "field `name`"),
        ({"name": "mine", "t_fwd_s": "soon"}, r"t_fwd_s"),
        ({"name": "mine", "solver": "mine"}, r"solver"),
        ({"name": "mine", "objective": "throughput"}, r"objective"),
    ],
)
def test_a_policy_whose_description_nobody_can_read_is_refused_before_the_replay(described: Any, part: str):
    class Odd(EqualSharePolicy):
        def describe(self) -> dict[str, object]:
            return described

    with pytest.raises(InputError, match=f"the policy Odd describes itself in a way that cannot be read: .*{part}"):
        replay_log(idle_for(9), JobSet([job()]), Odd())


def test_half_a_source_is_told_what_it_lacks():
    class Half:
        name = "half"

        def ask(self, now_us: int) -> Orders:
            return Orders()

    with pytest.raises(InputError, match="Half is no job source: it has no higher_is_better, sources, begin, tell"):
        replay_log(idle_for(9), Half())  # type: ignore[arg-type]  # the mistake that is tested


def test_a_job_in_the_past_is_refused():
    source = Scripted([Orders(ask_again_us=5 * SECOND), Orders(submit=(job("a", submit_s=4),))])
    with pytest.raises(InputError, match="in the past"):
        replayed(idle_for(9), source)


def test_a_job_of_too_many_rounds_is_refused_on_a_cluster():
    policy = policy_of("gavel.fifo(round_s=1)", t_fwd_s=60.0, solver=ExactSolver())
    for work, said in ((2.1e7, "takes 24.3 days at its best rate"), (100.0, None)):
        source = Scripted([Orders(submit=(job("a", work=work, rates=(0.0, 10.0)),))])
        with pytest.raises(InputError, match=said) if said else nullcontext():
            run = replay_log(fixed_cluster("gpu=1"), source, policy, ReplaySettings(until_done=True))
    assert run.summary["duration_s"] == 10


def test_a_stopped_job_cannot_be_stopped_again():
    orders = [
        Orders(submit=(job("a"),), ask_again_us=SECOND),
        Orders(stop={"a": Ending.STOPPED}, ask_again_us=2 * SECOND),
        Orders(stop={"a": Ending.STOPPED}),
    ]
    with pytest.raises(InputError, match="is told has left"):
        replayed(idle_for(9), Scripted(orders))


class _Dice:
    """Submits, pauses, resumes and ends jobs by chance, from a seed."""

    name, higher_is_better, sources = "dice", False, ()

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def begin(self, window_start_us: int, window_end_us: int) -> None:
        import random

        self.random = random.Random(self.seed)
        self.made, self.paused = 0, []

    def ask(self, now_us: int) -> Orders:
        dice = self.random
        jobs = []
        for _ in range(dice.randint(0, 2) if self.made < 12 else 0):
            at = sorted({float(dice.randint(1, 499)) for _ in range(dice.randint(0, 4))})
            more = {"up_s": dice.uniform(0, 9), "down_s": dice.uniform(0, 9), "min_nodes": dice.randint(1, 3)}
            submit_s = (now_us + dice.randint(0, 30) * SECOND) / SECOND
            jobs.append(reporting(f"j{self.made}", *at, work=500.0, submit_s=submit_s, **more))
            self.made += 1
        resume = tuple(name for name in self.paused if dice.random() < 0.5)
        self.paused = [name for name in self.paused if name not in resume]
        stop = {name: dice.choice(list(Ending)) for name in self.paused if dice.random() < 0.2}
        self.paused = [name for name in self.paused if name not in stop]
        return Orders(tuple(jobs), resume, stop, now_us + dice.randint(1, 20) * SECOND)

    def tell(self, report: JobReport) -> Verdict:
        draw = self.random.random()
        if report.is_finished or draw > 0.5:
            return Verdict(score=draw)
        if draw < 0.25:
            self.paused.append(report.job)
            return Verdict(score=draw, pause=True)
        return Verdict(score=draw, ending=self.random.choice(list(Ending)))

    def describe(self) -> dict[str, object]:
        return {"seed": self.seed}


@settings(max_examples=examples(60), deadline=None)
@given(events=logs(), seed=st.integers(0, 10_000), max_parallel=st.integers(1, 5))
def test_the_books_close_and_repeat_whatever_a_source_does(events: NodeEvents, seed: int, max_parallel: int):
    one, other = (
        replay_log(events, _Dice(seed), settings=ReplaySettings(max_parallel), efficiency=False, bound=False)
        for _ in range(2)
    )  # a ledger that does not close has raised
    assert one.record == other.record
    assert one.tables["reports"].equals(other.tables["reports"])
    assert one.tables["jobs"].equals(other.tables["jobs"])
    jobs = one.jobs
    assert (jobs["done_samples"] <= jobs["work_samples"] * (1 + 1e-9)).all()
    assert (jobs["ended"].notna() == jobs["status"].isin(["finished", "pruned", "failed", "stopped", "declined"])).all()


class StopsOneThatWaits:
    """Submits two jobs, and stops the second while it waits behind the first."""

    name, higher_is_better, sources = "stops one", True, ()

    def begin(self, window_start_us, window_end_us):
        self.asked = 0

    def ask(self, now_us):
        self.asked += 1
        if self.asked == 1:
            return Orders(submit=(job("a"), job("b")), ask_again_us=now_us + 1)
        return Orders(stop={"b": Ending.STOPPED})

    def describe(self):
        return {}


def test_a_job_stopped_while_it_waited_does_not_come_back_with_a_restored_queue():
    first, restored = (Feed(StopsOneThatWaits(), []) for _ in range(2))
    first.keep_calls()
    first.begin(0, 100)
    first.ask(0)
    first.ask(1)
    restored.restore_state(first.save_state())
    assert [each.name for each in restored.jobs] == ["a", "b"]
    assert restored.pop_due(1) == (0, None)
    assert restored.pop_due(1) is None
