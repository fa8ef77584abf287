"""Decisions taken from a replay: spread over sizes, the same twice, and really those of the replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bfreplay
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.formulation_lab import sampling
from bfreplay.experiments.formulation_lab.sampling import (
    LabSettings,
    choose,
    distribute,
    quantile_class,
    sample_decisions,
)
from bfreplay.milp import ExactSolver
from bfreplay.policies.bftrainer import problem_of
from bfreplay.workload import JobSet
from tests.milp.small_problems import by_count
from tests.replay.tiny import job, log
from tests.runs.explain.little_source import LittleHalving

EVENTS = log(4, [(10, 1, True), (20, 2, True), (30, 1, False), (40, 3, True)], 60, idle_first=[0])
JOBS = JobSet([job("a", up_s=3, down_s=2), job("b", rates=(0.0, 4.0, 20.0, 21.0), up_s=1)])
OPTIONS = {"t_fwd_s": 120.0, "max_parallel": 10}


@pytest.fixture(scope="module")
def bundled():
    return bfreplay.load_events(bfreplay.sample_events_path()), bfreplay.load_jobs(bfreplay.sample_jobs_path())


def _fields(problem):
    return [problem.capacity] + [
        getattr(problem, name).tolist()
        for name in ("current", "min_nodes", "max_nodes", "gain", "scale_up_loss", "scale_down_loss")
    ]


def test_cells_give_equal_numbers_as_far_as_they_reach_and_the_rest_comes_from_those_with_more():
    assert distribute(np.array([10, 10, 10]), 6).tolist() == [2, 2, 2]
    assert distribute(np.array([1, 10, 10]), 7).tolist() == [1, 3, 3]
    assert distribute(np.array([1, 2, 10]), 9).tolist() == [1, 2, 6]
    assert distribute(np.array([5, 9, 7]), 4).tolist() == [1, 2, 1]  # the odd one goes where most are left
    assert distribute(np.array([5, 9, 7]), 2).tolist() == [0, 1, 1]
    assert distribute(np.array([2, 3]), 100).tolist() == [2, 3]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=16), st.integers(1, 400))
def test_as_many_as_asked_are_taken_and_no_cell_gives_more_than_it_has(available, sample):
    cells = np.array(available)
    taken = distribute(cells, sample)
    assert taken.sum() == min(sample, cells.sum())
    assert (taken <= cells).all()
    open_cells = taken < cells
    if open_cells.any():  # nobody gives more than one above what another, who has more to give, gives
        assert taken.max() <= taken[open_cells].min() + 1


def test_classes_split_at_quartiles_and_equal_sizes_stay_together():
    assert quantile_class(np.arange(1, 9)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert quantile_class(np.full(5, 7)).tolist() == [0] * 5
    assert quantile_class(np.array([1, 1, 1, 1, 1, 1, 1, 9])).tolist() == [0] * 7 + [1]


def test_every_stratum_is_in_the_sample():
    n_idle, n_jobs = np.repeat([1, 5, 50, 500], 100), np.tile([2, 10], 200)
    labels, taken, strata = choose(n_idle, n_jobs, 16, seed=0)
    assert [stratum.taken for stratum in strata] == [2] * 8
    assert sum(stratum.available for stratum in strata) == 400
    assert {labels[index] for index in taken} == {stratum.label for stratum in strata}
    assert labels[0] == "1 idle, 2 jobs"
    assert (np.diff(taken) > 0).all()


def test_another_seed_draws_others_and_the_same_seed_the_same():
    n_idle, n_jobs = np.arange(1000), np.full(1000, 10)
    draws = [choose(n_idle, n_jobs, 50, seed)[1].tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_the_sample_holds_the_decisions_of_the_replay(bundled):
    seen = []

    class Notes(bfreplay.BFTrainerPolicy):
        def decide(self, state):
            seen.append((state.time_us, _fields(problem_of(state, self.t_fwd_s))))
            return super().decide(state)

    bfreplay.replay_log(*bundled, Notes(120.0), efficiency=False, bound=False)
    sample = sample_decisions(*bundled, LabSettings(sample=12, seed=3, **OPTIONS))
    assert sample.sampling.available == len(seen)
    assert len(sample.decisions) == 12
    for each in sample.decisions:
        time_us, fields = seen[each.index]
        assert each.time_us == time_us
        width = int(each.problem.max_nodes.max()) + 1
        fields[4] = [row[:width] for row in fields[4]]  # counts above every maximum are read by nobody
        assert _fields(each.problem) == fields
        each.problem.validate()


def test_the_same_seed_takes_the_same_decisions_twice(bundled):
    events, jobs = bundled
    day = events.between(events.window_start_us, events.window_start_us + 86_400_000_000)
    first, again, other = (
        sample_decisions(day, jobs, LabSettings(sample=9, seed=seed, **OPTIONS)) for seed in (5, 5, 6)
    )
    assert [d.index for d in first.decisions] == [d.index for d in again.decisions]
    assert [_fields(d.problem) for d in first.decisions] == [_fields(d.problem) for d in again.decisions]
    assert [d.index for d in first.decisions] != [d.index for d in other.decisions]


def test_fewer_than_asked_are_all_taken():
    sample = sample_decisions(EVENTS, JOBS, LabSettings(sample=1000, **OPTIONS))
    sampling = sample.sampling
    assert len(sample.decisions) == sampling.available == sum(stratum.taken for stratum in sampling.strata)
    assert [each.index for each in sample.decisions] == list(range(sampling.available))
    assert sampling.asked == 1000


def test_sampled_problems_are_not_touched_by_the_replay_that_goes_on():
    early, *_ = sample_decisions(EVENTS, JOBS, LabSettings(sample=1000, **OPTIONS)).decisions
    assert early.problem.current.tolist() == [0, 0]  # later both hold nodes
    assert ExactSolver().solve(early.problem).counts is not None


def test_sampled_problems_have_arrays_of_their_own_up_to_the_most_nodes(monkeypatch):
    posed = []

    def by_count_and_wider(state, t_fwd_s):
        problem = problem_of(state, t_fwd_s)
        gain = np.pad(problem.gain, ((0, 0), (0, 3)))
        posed.append(by_count(replace(problem, gain=gain), np.zeros(gain.shape)))
        return posed[-1]

    monkeypatch.setattr(sampling, "problem_of", by_count_and_wider)
    early, *_ = sample_decisions(EVENTS, JOBS, LabSettings(sample=1000, **OPTIONS)).decisions
    assert early.problem.gain.shape == early.problem.loss.shape == (2, int(posed[0].max_nodes.max()) + 1)
    for name, array in early.problem.arrays().items():
        assert not np.shares_memory(array, posed[0].arrays()[name])


def test_both_passes_report_their_progress():
    calls = []
    sample_decisions(EVENTS, JOBS, LabSettings(sample=2, **OPTIONS), progress=lambda *call: calls.append(call))
    assert {stage for stage, *_ in calls} == {"count", "capture"}
    assert all(0 <= done <= total == 60_000_000 for _, done, total, _ in calls)


def test_a_log_that_changes_between_the_passes_is_noticed(monkeypatch):
    original, replays = sampling.run_replay, []

    def changing(events, jobs, policy, *arguments, **options):
        replays.append(policy)
        longer = log(4, [(10, 1, True), (20, 2, True), (30, 1, False)], 60, idle_first=[0])
        return original(events if len(replays) == 1 else longer, jobs, policy, *arguments, **options)

    monkeypatch.setattr(sampling, "run_replay", changing)
    with pytest.raises(BfreplayError, match="two replays of the same log differ"):
        sample_decisions(EVENTS, JOBS, LabSettings(sample=1, **OPTIONS))


def test_a_replay_without_decisions_is_refused():
    with pytest.raises(InputError, match="no decision of this replay needs a solver"):
        sample_decisions(log(1, [], 60), JOBS, LabSettings(sample=1, **OPTIONS))


def test_unlimited_work_reaches_the_replay():
    short = JobSet([job("a", work=50.0), job("b", work=50.0)])
    limited, endless = (
        sample_decisions(EVENTS, short, LabSettings(sample=1, unlimited_work=unlimited, **OPTIONS)).sampling.available
        for unlimited in (False, True)
    )
    assert limited < endless


def test_decisions_are_taken_from_a_campaign_as_well():
    sample = sample_decisions(EVENTS, LittleHalving(), LabSettings(sample=3, **OPTIONS))
    assert len(sample.decisions) == 3
    assert sample.record["inputs"]["jobs"]["source"]["name"] == "little halving"


def test_a_campaign_without_a_decision_is_told_by_its_name():
    with pytest.raises(InputError, match="no decision of this replay needs a solver") as caught:
        sample_decisions(log(1, [], 60), LittleHalving(), LabSettings(sample=3, **OPTIONS))
    assert caught.value.value == "little halving, 1 nodes"
