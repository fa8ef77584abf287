"""A policy's shares applied as a fluid, without rounds: the ideal of Gavel (OSDI'20)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.errors import InputError
from bfreplay.policies import Policy
from bfreplay.replay.settings import ReplaySettings
from bfreplay.systems.gavel.gavel_policy import GavelPolicy
from bfreplay.systems.gavel.options import GavelOptions, gangs
from bfreplay.systems.gavel.shares.share_problem import NO_PAIRS, SharePolicy, ShareProblem
from bfreplay.workload import ElasticJob, JobSet, JobSource

_TOGETHER = 1e-12
"""Jobs whose remaining times differ by less than this fraction end at the same instant."""


class IdealReplay:
    """Replay in which every job makes progress all the time, in proportion to its shares, on a constant set of nodes.

    Shares are computed at every arrival and completion, which are at their exact instants. Between two of them a job
    makes ``sum_j T_ij X_ij`` steps a second, alone and in pairs; on a type with fewer nodes than its gang it
    makes none, whatever its share. Restarts cost nothing, and the rates of pairs are known.

    Shares need not use all nodes: max-min fairness gives every job the same level, and the rest idles here, while
    rounds give it to jobs beyond their shares. So a run with rounds may be faster where nodes are plenty.

    Parameters
    ----------
    jobs
        Numbered in this order. A job submitted before ``start_us`` waits until then.
    n_nodes
        Number of nodes by type.
    shares
        The policy; its memory is cleared first.
    options
        Width of elastic jobs, and prices.
    max_parallel
        Most jobs at once; the others wait in order of submission.
    start_us
        Time from which the nodes are available.
    """

    def __init__(
        self,
        jobs: JobSet,
        n_nodes: Mapping[str, int],
        shares: SharePolicy,
        options: GavelOptions,
        *,
        max_parallel: int | None = None,
        start_us: int = 0,
    ) -> None:
        self._shares = shares
        self._most = len(jobs) if max_parallel is None else max_parallel
        types = tuple(sorted(n_nodes))
        n_of_type = np.array([n_nodes[type_name] for type_name in types], np.int64)
        min_nodes, max_nodes = (
            np.array([getattr(job, type_name) for job in jobs]) for type_name in ("min_nodes", "max_nodes")
        )
        gang = gangs(min_nodes, max_nodes, options.gang, int(n_of_type.max()))
        with_gang = list(zip(jobs, gang.tolist(), strict=True))
        deadline_us = [np.inf if job.deadline_us is None else job.deadline_us for job in jobs]
        self._submit_s = np.array([(job.submit_us - start_us) / 1e6 for job in jobs])
        self._deadline_s = (np.array(deadline_us) - start_us) / 1e6
        self._problem = ShareProblem(
            job=np.arange(len(jobs)),
            type_names=types,
            n_nodes=n_of_type,
            gang=gang,
            rate=np.array([[_rate(job, gang_size, type_name) for type_name in types] for job, gang_size in with_gang]),
            weight=np.array([job.weight for job in jobs], np.float64),
            steps_left=np.array([job.work_samples for job in jobs], np.float64),
            age_s=-self._submit_s,
            to_deadline_s=self._deadline_s,
            price_per_hour=options.price_per_hour(types),
        )
        self._fits = gang[:, None] <= n_of_type  # (J, n): the type has nodes for a whole gang
        kinds: dict[tuple[str, int], int] = {}
        self._kind = np.array([_kind(kinds, job, gang_size) for job, gang_size in with_gang], np.int64)
        self._together = _together(jobs, kinds, types) if shares.uses_pairs else np.zeros(0)

    def jct_s(self, jobs_of_interest: Collection[int] | None = None) -> dict[int, float]:
        """Return the completion times (JCT) of the jobs that finish, by number.

        Parameters
        ----------
        jobs_of_interest
            Numbers of the jobs of interest: the replay ends when these are done. ``None``: all.
        """
        submit_s = self._submit_s
        self._shares.forget()
        queue = sorted(range(submit_s.size), key=lambda job: (submit_s[job], job))[::-1]
        unfinished = set(queue if jobs_of_interest is None else jobs_of_interest)
        steps_left = self._problem.steps_left.copy()
        active_jobs: list[int] = []
        jct_of_job: dict[int, float] = {}
        now_s = 0.0
        while unfinished and (queue or active_jobs):
            while queue and submit_s[queue[-1]] <= now_s and len(active_jobs) < self._most:
                active_jobs.append(queue.pop())
            next_s = submit_s[queue[-1]] if queue and len(active_jobs) < self._most else np.inf
            if not active_jobs:
                now_s = next_s
                continue
            job_rows = np.array(active_jobs)
            speed = self._speed(job_rows, steps_left[job_rows], now_s)
            takes_s = np.divide(steps_left[job_rows], speed, out=np.full(job_rows.size, np.inf), where=speed > 0)
            first_s = float(takes_s.min())
            if next_s == first_s == np.inf:
                break  # no job makes progress any more
            if now_s + first_s > next_s:
                steps_left[job_rows] = np.maximum(steps_left[job_rows] - speed * (next_s - now_s), 0.0)
                now_s = next_s
                continue
            now_s += first_s
            steps_left[job_rows] = np.maximum(steps_left[job_rows] - speed * first_s, 0.0)
            for job in job_rows[takes_s <= first_s * (1 + _TOGETHER)].tolist():
                jct_of_job[job] = now_s - float(submit_s[job])
                active_jobs.remove(job)
                unfinished.discard(job)
        return jct_of_job

    def _speed(self, job_rows: NDArray[np.int64], steps_left: NDArray[np.float64], now_s: float) -> NDArray[np.float64]:
        """Return the steps/s of the active jobs, (m,)."""
        pairs, pair_rate = self._pairs(job_rows)
        problem = replace(
            self._problem.of_jobs(job_rows),
            steps_left=steps_left,
            age_s=now_s - self._submit_s[job_rows],
            to_deadline_s=self._deadline_s[job_rows] - now_s,
            pair=pairs,
            pair_rate=pair_rate,
        )
        fits = self._fits[job_rows]
        with_real_nodes = replace(problem, rate=problem.rate * fits, pair_rate=pair_rate * fits[pairs[:, 0], :, None])
        return self._shares.shares(problem).throughput(with_real_nodes)

    def _pairs(self, job_rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return positions in ``job_rows`` of jobs that may share nodes, (p, 2), and their rates then, (p, n, 2)."""
        if not self._shares.uses_pairs or not self._together.size:
            return NO_PAIRS, np.zeros((0, self._problem.n_types, 2))
        gang, job_kind = self._problem.gang[job_rows], self._kind[job_rows]
        first_row, second_row = np.triu_indices(job_rows.size, 1)
        may_share = (gang[first_row] == gang[second_row]) & (job_kind[first_row] >= 0) & (job_kind[second_row] >= 0)
        pairs = np.column_stack([first_row, second_row])[may_share]
        return pairs, self._together[job_kind[pairs[:, 0]], job_kind[pairs[:, 1]]]


def _kind(kinds: dict[tuple[str, int], int], job: ElasticJob, gang_size: int) -> int:
    return kinds.setdefault((job.model, gang_size), len(kinds)) if job.model else -1


def _rate(job: ElasticJob, gang_size: int, node_type: str) -> float:
    curve = job.throughput_on(node_type)
    return 0.0 if curve is None else float(curve.table(gang_size)[gang_size])


def _together(jobs: JobSet, kinds: Mapping[tuple[str, int], int], types: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the rates of pairs by the kinds of both jobs, (k, k, n, 2)."""
    pair_rates = np.zeros((len(kinds), len(kinds), len(types), 2))
    if jobs.colocation is None:
        return np.zeros(0)
    for (model, gang_size), first_kind in kinds.items():
        for (other_model, other_width), second_kind in kinds.items():
            if gang_size == other_width:
                pair_rates[first_kind, second_kind] = [
                    jobs.colocation.rates(model, other_model, gang_size, type_name) for type_name in types
                ]
    return pair_rates


def ideal_jct_s(
    events: NodeEvents, jobs: JobSet | JobSource, policy: Policy, settings: ReplaySettings
) -> dict[int, float]:
    """Seconds from submission to finish of the jobs that finish with shares of time applied without rounds.

    Parameters
    ----------
    events, jobs, policy, settings
        Inputs of the run to measure; the rates of pairs are known, whatever the policy has to learn.

    Raises
    ------
    InputError
        As ``check_ideal``.
    """
    check_ideal(events, jobs, policy)
    assert isinstance(jobs, JobSet)
    assert isinstance(policy, GavelPolicy)
    n_of_type = np.bincount(events.node_types.of_node, minlength=len(events.node_types.names)).tolist()
    replay = IdealReplay(
        jobs,
        dict(zip(events.node_types.names, n_of_type, strict=True)),
        policy.make_shares(policy.options),
        policy.options,
        max_parallel=settings.max_parallel,
        start_us=events.window_start_us,
    )
    return replay.jct_s(None if settings.measured is None else range(*settings.measured))


def check_ideal(events: NodeEvents, jobs: JobSet | JobSource, policy: Policy) -> None:
    """Raise ``InputError`` without shares of time to apply, a fixed cluster and a set of jobs."""
    if not isinstance(policy, GavelPolicy) or not policy.follows_gavel_alone:
        problem = f"the policy {policy.name!r} has no shares of time to apply without rounds"
        raise _refusal(problem, policy.name, "one of Gavel's policies, such as gavel.max_min_fairness_perf")
    changing = next((job for job in jobs if job.adaptation is not None), None) if isinstance(jobs, JobSet) else None
    if changing is not None:
        problem = f"the job {changing.name!r} changes its batch size: shares without rounds do not support that"
        raise _refusal(problem, changing.model or changing.name, "jobs with a fixed batch size")
    source_format = events.metadata.source_format
    if source_format != SOURCE_FORMAT or not isinstance(jobs, JobSet):
        problem = "shares without rounds need a fixed cluster and a set of jobs"
        raise _refusal(problem, source_format, "a cluster (--cluster) and a set of jobs")


def _refusal(problem: str, value: str, expected: str) -> InputError:
    return InputError(problem, column="ideal", value=value, expected=expected, fix="omit --ideal (Python: ideal)")
