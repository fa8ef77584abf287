"""Stratified samples of the decisions of a replay, small and large ones alike."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay import defaults
from bfreplay.datasets import NodeEvents
from bfreplay.errors import BfreplayError, InputError
from bfreplay.experiments.study_options import SampleOptions
from bfreplay.milp.isolation import GRACE_S
from bfreplay.milp.problem import AllocationProblem
from bfreplay.policies import BFTrainerPolicy, Decision, PolicyState
from bfreplay.policies.bftrainer import problem_of
from bfreplay.replay import ReplaySettings
from bfreplay.result_folders.lab import Sampling, Stratum
from bfreplay.runs import Output, RunSettings, run_replay
from bfreplay.runs.run_record import RunRecord
from bfreplay.workload import JobSet, JobSource

Sizes = NDArray[np.int64]

CLASSES = 4
"""Number of quantile classes of idle nodes, and of jobs."""

LabProgress = Callable[[str, int, int, str], None]
"""Called with (stage, done, to do, next pair). Stages: ``count`` and ``capture``, the two replays, in microseconds;
``warm-up`` in pairs; ``solve`` in answers. It must be quick."""


def no_progress(stage: str, n_done: int, n_total: int, pair: str) -> None:
    """``LabProgress`` that tells nobody."""


@dataclass(frozen=True, slots=True)
class LabSettings(SampleOptions):
    """Options of one comparison.

    Parameters
    ----------
    sample
        Number of decisions to sample.
    seed
        Seed of the sample.
    t_fwd_s, max_parallel, unlimited_work
        Options of the replay, as in ``replay_log`` with BFTrainer's policy.
    time_limit_s, relative_gap, threads, solver_seed, warm_start, reformulate_sets
        Options of every pair, as in ``MilpSolver``.
    memory_limit_bytes, grace_s
        Options of the workers, as in ``IsolatedBackend``.

    Raises
    ------
    InputError
        A number is out of range. The solvers check their own options.
    """

    t_fwd_s: float | str = defaults.T_FWD_S
    max_parallel: int = defaults.MAX_PARALLEL
    unlimited_work: bool = False
    time_limit_s: float = defaults.TIME_LIMIT_S
    relative_gap: float = 0.0
    threads: int = 1
    solver_seed: int = 0
    warm_start: bool = True
    reformulate_sets: bool = False
    memory_limit_bytes: int | None = None
    grace_s: float = GRACE_S


@dataclass(frozen=True, slots=True, eq=False)
class SampledDecision:
    """One decision of the replay.

    Parameters
    ----------
    index
        Its number among the decisions that need a solver, from 0, in order of time.
    time_us
        Time in microseconds since 1970-01-01 UTC.
    stratum
        Label of its stratum: the range of idle nodes and of jobs.
    problem
        Problem of the decision, with its own arrays.
    """

    index: int
    time_us: int
    stratum: str
    problem: AllocationProblem


@dataclass(frozen=True, slots=True, eq=False)
class DecisionSample:
    """Sample of the decisions of a replay.

    Parameters
    ----------
    decisions
        Decisions in order of time.
    sampling
        Number of decisions requested, of those that need a solver, and of the sample.
    record
        The replay's own record: inputs with SHA-256, versions, configuration.
    """

    decisions: tuple[SampledDecision, ...]
    sampling: Sampling
    record: RunRecord


def sample_decisions(
    events: NodeEvents, jobs: JobSet | JobSource, settings: LabSettings, progress: LabProgress = no_progress
) -> DecisionSample:
    """Replay ``jobs`` on ``events`` twice with BFTrainer's policy and exact decisions, and sample these.

    The first pass notes the size of every decision that needs a solver (at least one job and one idle node), the
    second keeps the problems of the chosen ones: memory grows with the sample, not with the log.

    The choice is stratified. Idle nodes fall into up to 4 classes between their quartiles over all decisions, jobs
    likewise; a pair of classes with decisions is a stratum. Every stratum gives the same number, or all its decisions
    if it has fewer; the rest is spread evenly over larger strata, and a remainder, one each, over those with most left.
    Within a stratum decisions are drawn uniformly without replacement. The same log, jobs, options and ``seed`` give
    the same decisions.

    Raises
    ------
    InputError
        No decision of the replay needs a solver, or an option of the replay is invalid.
    """

    def replay_pass(stage: str, labels_to_keep: frozenset[int]) -> tuple[_Watch, RunRecord]:
        watch = _Watch(settings.t_fwd_s, labels_to_keep)
        start_us, length_us = events.window_start_us, events.window_end_us - events.window_start_us
        result = run_replay(
            events,
            jobs,
            watch,
            ReplaySettings(settings.max_parallel),
            RunSettings(unlimited_work=settings.unlimited_work, efficiency=False, bound=False, tables=False),
            Output(progress=lambda now_us, _: progress(stage, now_us - start_us, length_us, "")),
        )
        return watch, result.record

    first, record = replay_pass("count", frozenset())
    if not first.time_us:
        raise InputError(
            "no decision of this replay needs a solver: no job was active while a node was idle",
            value=f"{f'{len(jobs)} jobs' if isinstance(jobs, JobSet) else jobs.name}, {len(events.nodes)} nodes",
            fix="choose another window, or jobs that are submitted while nodes are idle",
        )
    labels, n_taken, strata = choose(np.array(first.n_idle), np.array(first.n_jobs), settings.sample, settings.seed)
    second, _ = replay_pass("capture", frozenset(n_taken.tolist()))
    if second.fingerprint() != first.fingerprint():
        raise BfreplayError(
            f"two replays of the same log differ: {len(first.time_us)} decisions in the first pass, "
            f"{len(second.time_us)} in the second, or other ones; did a file change?"
        )
    decisions = tuple(
        SampledDecision(decision_index, first.time_us[decision_index], labels[decision_index], problem)
        for decision_index, problem in zip(n_taken.tolist(), second.problems, strict=True)
    )
    sampling = Sampling(asked=settings.sample, available=len(first.time_us), taken=len(decisions), strata=strata)
    return DecisionSample(decisions, sampling, record)


def choose(n_idle: Sizes, n_jobs: Sizes, sample: int, seed: int) -> tuple[list[str], Sizes, list[Stratum]]:
    """Choose among D decisions of the given sizes, as described in ``sample_decisions``.

    Parameters
    ----------
    n_idle, n_jobs : (D,) int64
        Number of idle nodes and of jobs of each; D >= 1.
    sample
        Number of decisions to choose; all if D is smaller.
    seed
        Seed of the draw.

    Returns
    -------
    labels
        Stratum of each of the D decisions.
    taken : (min(sample, D),) int64
        Positions of the chosen decisions, ascending.
    strata
        Strata in order of idle nodes, then of jobs.
    """
    idle_class, job_class = quantile_class(n_idle), quantile_class(n_jobs)
    cells, cell_of = np.unique(idle_class * CLASSES + job_class, return_inverse=True)
    available = np.bincount(cell_of, minlength=len(cells))
    n_taken = distribute(available, sample)
    rng = np.random.Generator(np.random.PCG64(seed))
    names, selection = [], []
    for cell, (of_idle, of_jobs) in enumerate(zip(cells // CLASSES, cells % CLASSES, strict=True)):
        idle = _range(n_idle[idle_class == of_idle])
        names.append(f"{idle} idle, {_range(n_jobs[job_class == of_jobs])} jobs")
        selection.append(rng.choice(np.flatnonzero(cell_of == cell), size=n_taken[cell], replace=False))
    strata = [Stratum(*stratum) for stratum in zip(names, available.tolist(), n_taken.tolist(), strict=True)]
    return [names[cell] for cell in cell_of], np.sort(np.concatenate(selection)), strata


def quantile_class(size: Sizes) -> Sizes:
    """Return the class of each value, 0 to at most ``CLASSES - 1``, split at quantiles; equal values share a class."""
    splits = np.unique(np.quantile(size, np.arange(1, CLASSES) / CLASSES, method="lower"))
    return np.searchsorted(splits, size, side="left").astype(np.int64)


def distribute(available: Sizes, sample: int) -> Sizes:
    """Return the number to take from each cell: equal numbers where possible, the rest from larger cells."""
    n_taken = np.zeros_like(available)
    n_left = min(sample, int(available.sum()))
    while n_left:
        open_cells = np.flatnonzero(n_taken < available)
        remaining = (available - n_taken)[open_cells]
        if n_left < len(open_cells):
            n_taken[open_cells[np.argsort(-remaining, kind="stable")[:n_left]]] += 1
            break
        addition = np.minimum(n_left // len(open_cells), remaining)
        n_taken[open_cells] += addition
        n_left -= int(addition.sum())
    return n_taken


def _range(sizes: Sizes) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low}" if low == high else f"{low}-{high}"


class _Watch(BFTrainerPolicy):
    """BFTrainer's policy that notes every decision's size, and keeps the problems of the chosen decisions."""

    def __init__(self, t_fwd_s: float | str, labels_to_keep: frozenset[int]) -> None:
        super().__init__(t_fwd_s)
        self._chosen = labels_to_keep
        self._digest = hashlib.blake2b()
        self.time_us = array("q")
        self.n_idle = array("q")
        self.n_jobs = array("q")
        self.problems: list[AllocationProblem] = []

    def decide(self, state: PolicyState) -> Decision:
        """Decide as BFTrainer's policy does."""
        decision = super().decide(state)
        if len(self.time_us) in self._chosen:
            assert decision.t_fwd_s is not None
            self.problems.append(_own_arrays(problem_of(state, decision.t_fwd_s)))
        self.time_us.append(state.time_us)
        self.n_idle.append(state.n_idle)
        self.n_jobs.append(state.n_jobs)
        for state_array in (np.array([state.time_us, state.n_idle]), state.job, state.current):
            self._digest.update(state_array.tobytes())
        return decision

    def fingerprint(self) -> bytes:
        """Return a digest, equal for two replays with the same decisions."""
        return self._digest.digest()


def _own_arrays(problem: AllocationProblem) -> AllocationProblem:
    """Copy arrays that belong to the replay, without the unused counts above every job's maximum."""
    width = int(problem.max_nodes.max()) + 1
    arrays = problem.arrays().items()
    copies: dict[str, Any] = {name: (array[:, :width] if array.ndim == 2 else array).copy() for name, array in arrays}
    return replace(problem, capacity=int(problem.capacity), **copies)
