"""Whole replays by a policy that learns: what it may use, how it repeats, and how little it loses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bfreplay
from bfreplay import replay_log
from bfreplay.policies import BFTrainerPolicy, Decision, Policy, PolicyState
from bfreplay.policies.learning import LearningPolicy, learning_from_record
from bfreplay.replay import ReplaySettings
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet
from tests.examples import examples
from tests.replay.tiny import SECOND, job, log, logs

MEASURE_S = 20.0


class _Seen(Exception):
    """All that was to be seen has been seen: the replay need not go on."""


class _Watched(Policy):
    """Asks a policy, keeps what it decided, and which counts each job had held for ``MEASURE_S`` when.

    ``allowed`` replaces the true tables by NaN at all other (job, count); after ``until_us`` it stops the replay.
    """

    name = "watched"

    def __init__(self, inner: Policy, allowed: set[tuple[int, int]] | None = None, until_us: int = 0) -> None:
        self.inner = inner
        self.allowed = allowed
        self.until_us = until_us
        self.decided: list[tuple[int, list[int]]] = []
        self.ran: dict[tuple[int, int], int] = {}  # (job, count): when it had run long enough
        self._since: dict[int, tuple[int, int]] = {}  # job: (count, from when)

    def decide(self, state: PolicyState) -> Decision:
        for number, (count, since_us) in self._since.items():
            if state.time_us - since_us >= MEASURE_S * SECOND:
                self.ran.setdefault((number, count), state.time_us)
        if self.allowed is not None:
            if state.time_us > self.until_us:
                raise _Seen
            state = replace(
                state, throughput=self._hidden(state.throughput, state), objective=self._hidden(state.objective, state)
            )
        decision = self.inner.decide(state)
        counts = decision.counts.tolist()
        self.decided.append((state.time_us, counts))
        before, self._since = self._since, {}
        for number, count, current in zip(state.job.tolist(), counts, state.current.tolist(), strict=True):
            held, since_us = before.get(number, (-1, 0))
            is_kept = held == count == current
            self._since[number] = (count, since_us if is_kept else state.time_us)
        return decision

    def _hidden(self, table: np.ndarray, state: PolicyState) -> np.ndarray:
        assert self.allowed is not None
        hidden = np.full_like(table, np.nan)
        for row, number in enumerate(state.job.tolist()):
            for count in range(table.shape[1]):
                if (number, count) in self.allowed:
                    hidden[row, count] = table[row, count]
        return hidden

    def close(self) -> None:
        self.inner.close()


@st.composite
def _jobs(draw: st.DrawFn) -> JobSet:
    """Up to four jobs of two models, with any curves."""
    made = []
    rate = st.floats(0.5, 20.0)
    for k in range(draw(st.integers(1, 4))):
        rates = [0.0, *draw(st.lists(rate, min_size=4, max_size=4))]
        curve = TabulatedCurve(range(5), rates)
        work = draw(st.sampled_from([100.0, 500.0, 1e9]))
        submit_us = draw(st.integers(0, 100)) * SECOND
        low = draw(st.integers(1, 3))
        model = draw(st.sampled_from([None, "a", "b"]))
        made.append(ElasticJob(f"job{k}", submit_us, low, 4, 3.0, 2.0, work, curve, model=model))
    return JobSet(made)


def _learner(share: str, noise: float = 0.0, seed: int = 0) -> LearningPolicy:
    return LearningPolicy(BFTrainerPolicy(60.0), share, noise=noise, seed=seed, measure_s=MEASURE_S)


def _watch(events: bfreplay.NodeEvents, jobs: JobSet, policy: Policy, **options: object) -> _Watched:
    watched = _Watched(policy, **options)
    replay_log(events, jobs, watched, ReplaySettings(max_parallel=3), efficiency=False, bound=False, with_tables=False)
    return watched


@settings(max_examples=examples(40))
@given(events=logs(), jobs=_jobs(), share=st.sampled_from(["job", "model"]))
def test_decisions_rest_on_nothing_that_had_not_been_run_for_long_enough_by_then(events, jobs, share):
    free = _watch(events, jobs, _learner(share, 0.1))
    for until_us in sorted({time_us for time_us, _ in free.decided})[:: max(1, len(free.decided) // 4)]:
        allowed = {pair for pair, since_us in free.ran.items() if since_us <= until_us}
        blind = _Watched(_learner(share, 0.1), allowed, until_us)
        with suppress(_Seen):
            replay_log(
                events, jobs, blind, ReplaySettings(max_parallel=3), efficiency=False, bound=False, with_tables=False
            )
        assert blind.decided == [one for one in free.decided if one[0] <= until_us]


@settings(max_examples=examples(25))
@given(events=logs(), jobs=_jobs(), share=st.sampled_from(["job", "model"]))
def test_two_that_learn_alike_decide_alike_and_one_may_be_used_twice(events, jobs, share):
    learner = _learner(share, noise=0.3, seed=4)
    first = _watch(events, jobs, learner).decided
    assert _watch(events, jobs, learner).decided == first
    assert _watch(events, jobs, _learner(share, noise=0.3, seed=4)).decided == first


def test_nothing_is_learnt_from_shorter_runs():
    seen = []

    class Look(BFTrainerPolicy):
        def decide(self, state: PolicyState) -> Decision:
            seen.append(state.throughput.tolist())
            return super().decide(state)

    # the pool changes every 19 s, and the one job, as wide as the pool, with it
    changes = [(19.0 * k, k % 4, True) for k in range(1, 4)] + [(19.0 * k, k % 4, False) for k in range(4, 7)]
    rates = (0.0, 10.0, 18.0, 24.0, 28.0)
    for measure_s, n_known in ((19.1, 0), (19.0, 6)):
        seen.clear()
        policy = LearningPolicy(Look(1e6), measure_s=measure_s)
        replay_log(log(4, changes, 200, idle_first=[0]), [job(rates=rates)], policy, efficiency=False, bound=False)
        assert len(seen) == 7
        assert sum(table != [[0.0, 1.0, 2.0, 3.0, 4.0]] for table in seen) == n_known


@pytest.mark.slow
@pytest.mark.parametrize("share", ["job", pytest.param("model", marks=pytest.mark.thorough)])
def test_a_run_is_posed_again_by_its_record_and_its_counts(share):
    events, jobs = bfreplay.load_events(bfreplay.sample_events_path()), bfreplay.load_jobs(bfreplay.sample_jobs_path())
    beliefs, counts = [], []

    class Keep(LearningPolicy):
        def believed_state(self, state: PolicyState) -> PolicyState:
            believed = super().believed_state(state)
            beliefs.append(believed.objective.copy())
            return believed

        def decide(self, state: PolicyState) -> Decision:
            decision = super().decide(state)
            counts.append(decision.counts)
            return decision

    run = replay_log(events, jobs, Keep(BFTrainerPolicy(120.0), share, noise=0.05), efficiency=False, bound=False)
    made, decided = list(beliefs), iter(counts)
    options = learning_from_record(run.record.config.policy)
    assert options == {"share": share, "noise": 0.05, "seed": 0, "measure_s": 30.0}
    again = LearningPolicy(BFTrainerPolicy(), **options)
    believed = []

    class Repeat(BFTrainerPolicy):
        def decide(self, state: PolicyState) -> Decision:
            believed.append(again.believed_state(state).objective.copy())
            again.note_decision(state, answer := next(decided))
            return Decision(answer)

    replay_log(events, jobs, Repeat(), efficiency=False, bound=False)
    assert len(believed) == len(made) > 1000
    assert all(np.array_equal(one, other) for one, other in zip(made, believed, strict=True))


@pytest.mark.often("job-0.0-0.05")
@pytest.mark.parametrize(
    ("share", "noise", "most_lost"),
    [("job", 0.0, 0.05), pytest.param("model", 0.0, 0.03, marks=pytest.mark.thorough), ("model", 0.05, 0.05)],
)
def test_little_is_lost_on_the_sample(share, noise, most_lost):
    events, jobs = bfreplay.load_events(bfreplay.sample_events_path()), bfreplay.load_jobs(bfreplay.sample_jobs_path())
    known, learnt = (
        replay_log(events, jobs, policy, unlimited_work=True, efficiency=False, bound=False).summary["ledger"][
            "samples"
        ]
        for policy in (BFTrainerPolicy(120.0), LearningPolicy(BFTrainerPolicy(120.0), share, noise=noise))
    )
    assert 1 - learnt / known < most_lost


def test_what_is_learnt_is_used():
    """Of two jobs one does not scale: it had all nodes at first, and has one when both have been tried."""
    flat, steep = (0.0, *([12.0] * 8)), (0.0, *(10.0 * n for n in range(1, 9)))
    jobs = [job("flat", rates=flat), job("steep", rates=steep)]
    # eight idle nodes, and a ninth that comes and goes, so that there is something to decide
    changes = [(40.0 * k, 8, k % 2 == 1) for k in range(1, 20)]
    watched = _Watched(LearningPolicy(BFTrainerPolicy(120.0), measure_s=30.0))
    replay_log(log(9, changes, 800, idle_first=range(8)), jobs, watched, efficiency=False, bound=False)
    assert watched.decided[0][1] == [8, 0]
    assert [counts for _, counts in watched.decided[-2:]] == [[1, 7], [1, 8]]
