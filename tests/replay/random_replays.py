"""Random replays: cases made from one seed each, run by bfreplay, checked by the second engine.

Two families (random_cases.py): ``run_and_check`` replays logs as they are; ``run_and_check_portions`` has the policies
of published systems, and also replays each log in portions, saved and restored.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from bfreplay import open_session, replay_log
from bfreplay.datasets import NodeEvents, NodeState, load_events, load_jobs, write_events
from bfreplay.milp.named_solvers import solver_of
from bfreplay.policies import Decision, Policy, PolicyCapabilities, Trigger
from bfreplay.policies.catalogue import policy_of
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import ReplaySession, RunResult
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet
from tests.replay.random_cases import Case, case_of, portions_case_of
from tests.replay.second_checks import check_tables
from tests.replay.second_engine import check
from tests.replay.second_jobs import Cost, Job, Log


class RandomCounts(Policy):
    """A policy that gives random feasible counts, is woken by some triggers only, and may restart jobs."""

    name = "random counts"

    def __init__(self, seed: int, wakes_on: Trigger, *, restarts: bool = False) -> None:
        self.wakes_on = wakes_on
        self.capabilities = PolicyCapabilities(restarts_jobs=restarts)
        self._rng = np.random.default_rng(seed)
        self._restarts = np.random.default_rng([seed, 47]) if restarts else None

    def decide(self, state) -> Decision:
        """Counts drawn one by one; sometimes all stay as they are."""
        decision = self._decide(state)
        if self._restarts is None:
            return decision
        return replace(decision, restart_s=self._restarts.choice([0.0, 0.0, 7.0, 90.0], state.n_jobs))

    def _decide(self, state) -> Decision:
        counts = np.array(state.current, dtype=np.int64)
        if self._rng.random() < 0.2:
            return Decision(counts)
        left = state.n_idle
        for j in self._rng.permutation(state.n_jobs):
            most = min(left, int(state.max_nodes[j]))
            if self._rng.random() < 0.3 or most < state.min_nodes[j]:
                counts[j] = 0
            else:
                counts[j] = self._rng.integers(state.min_nodes[j], most + 1)
            left -= int(counts[j])
        return Decision(counts)


def _events(log: Log) -> NodeEvents:
    states = [NodeState[state.upper()] for state in log.states]
    times, nodes = [t for t, _, _ in log.changes], [k for _, k, _ in log.changes]
    return NodeEvents.from_arrays(
        log.nodes, _first(log), times, nodes, states, log.start_us, log.end_us, node_types=log.types
    )


def _first(log: Log) -> list[NodeState]:
    return [NodeState.IDLE if k in log.first_idle else NodeState.BUSY for k in range(len(log.nodes))]


def _settings(case: Case) -> ReplaySettings:
    rules = case.rules
    return ReplaySettings(
        rules.max_parallel,
        Semantics.PUBLISHED if rules.is_published else Semantics.CONTINUOUS,
        case.random_state,
        record_nodes=True,
        reserve=rules.reserve,
        min_age_s=rules.min_age_us / 1e6,
        settle_s=rules.settle_us / 1e6,
        placement="runs" if rules.on_runs else "lowest-id",
        clear_s=rules.clear_us / 1e6,
        notice=rules.notice_us is not None,
    )


def run(case: Case, folder: Path, policy: Policy | None = None) -> RunResult:
    """Replay a case; files, where it goes through any, are written to ``folder``."""
    log = case.log
    events = _events(log)
    if case.via_files:
        path = folder / ("log.csv" if case.random_state % 2 else "log.parquet")
        write_events(events, path, overwrite=True)
        events = load_events(path)
    jobs = JobSet([_elastic(job, case) for job in case.jobs])
    if case.via_files and log.types is None:
        path = folder / "jobs.csv"
        path.write_text(_csv(case), encoding="utf-8")
        jobs = load_jobs(path)
    return replay_log(
        events,
        jobs,
        policy or _policy(case),
        _settings(case),
        unlimited_work=case.unlimited_work,
        efficiency=case.bound,
        bound=case.bound,
    )


def run_in_portions(case: Case, state: Path) -> RunResult:
    """Replay a case whose log comes in portions, in sessions that save to ``state`` and go on in others."""
    log, rng = case.log, np.random.default_rng(case.random_state)
    rows = [(t, log.nodes[k], word) for (t, k, _), word in zip(log.changes, log.states, strict=True)]
    jobs = JobSet([_elastic(job, case) for job in case.jobs])
    cuts = sorted({0, *rng.integers(0, len(rows) + 1, 4).tolist(), len(rows)})
    whole = _events(log)
    events = NodeEvents.to_come(log.nodes, log.start_us, log.end_us, initial_state=_first(log), node_types=log.types)
    with ExitStack() as stack:

        def opened() -> ReplaySession:
            session = open_session(
                events, jobs, _policy(case), _settings(case), efficiency=case.bound, bound=case.bound
            )
            return stack.enter_context(session)

        session = opened()
        n_ahead = 0
        for first, last in pairwise(cuts):
            ahead = [row for row in rows[last:] if rng.random() < 0.1]  # known before their turn; they come again
            until = rows[last][0] if last < len(rows) else log.end_us
            n_ahead += len(ahead)
            if not n_ahead and rng.random() < 0.5:
                until = None
            session.advance([rows[k] for k in rng.permutation(range(first, last))] + ahead, until)
            if rng.random() < 0.5:
                session.save(state)
                session = opened()
                session.restore(state)
        return session.finish(log=whole)


def _policy(case: Case):
    if case.policy == "random counts":
        wakes_on = Trigger.NONE
        for word in case.rules.wakes:
            wakes_on |= Trigger[word.upper()]
        return RandomCounts(case.random_state, wakes_on, restarts="restarts" in case.options)
    name, _, extra = case.policy.partition(" ")
    return policy_of(
        name,
        t_fwd_s="auto" if extra == "auto" else case.t_fwd_s,
        solver=solver_of(case.solver),
        objective=case.objective,
        round_s=case.options.get("round_s"),
    )


def _elastic(job: Job, case: Case) -> ElasticJob:
    curves = {name: TabulatedCurve(range(len(rates)), rates) for name, rates in job.rates.items()}
    by_type = curves if case.log.types is not None else {}
    return ElasticJob(
        job.name,
        job.submit_us,
        job.min_nodes,
        job.max_nodes,
        job.up_s,
        job.down_s,
        job.work,
        next(iter(curves.values())),
        weight=job.weight,
        deadline_us=case.deadlines.get(job.name),
        throughput_by_type=by_type,
        start_cost_s=job.start_s,
        restart="pause" if job.pauses else "charge",
        work_saved_every_s=job.every_us / 1e6,
        saves=job.saves,
        counts=job.counts,
    )


def _csv(case: Case) -> str:
    rows = [_cells(job, case.deadlines.get(job.name)) for job in case.jobs]
    return "".join(",".join(line) + "\n" for line in (rows[0], *(row.values() for row in rows)))


def _cells(job: Job, due_us: int | None) -> dict[str, str]:
    (rates,) = job.rates.values()
    return {
        "name": job.name,
        "submit_time": _seconds(job.submit_us),
        "min_nodes": str(job.min_nodes),
        "max_nodes": str(job.max_nodes),
        "scale_up_cost_s": _cost(job.up_s),
        "scale_down_cost_s": _cost(job.down_s),
        "work_samples": repr(job.work),
        "weight": repr(job.weight),
        "deadline": "" if due_us is None else _seconds(due_us),
        "start_cost_s": _cost(job.start_s),
        "restart": "pause" if job.pauses else "charge",
        "work_saved_every_s": _seconds(job.every_us),
        "saves": job.saves,
        "counts": " ".join(map(str, job.counts)),
        "curve": " ".join(f"{n}:{rate!r}" for n, rate in enumerate(rates)),
    }


def _cost(cost: Cost) -> str:
    return " ".join(f"{n}:{seconds!r}" for n, seconds in cost.items()) if isinstance(cost, dict) else repr(cost)


def _seconds(time_us: int) -> str:
    sign, whole = "-" if time_us < 0 else "", abs(time_us)
    return f"{sign}{whole // 1_000_000}.{whole % 1_000_000:06d}"


def run_and_check_portions(seed: int, folder: Path, *, with_costs: bool = False) -> str:
    """As ``run_and_check``, for the family with policies of published systems; also replays the log in portions."""
    case = portions_case_of(seed, with_costs=with_costs)
    policy, answers = _policy(case), []
    decide = policy.decide

    def recording(state) -> Decision:
        answers.append((state.time_us, decide(state)))
        return answers[-1][1]

    policy.decide = recording
    result = run(case, folder, policy)
    in_portions = run_in_portions(case, folder / "state")
    assert in_portions.record == result.record, "the run in portions is another one"
    names = ["decisions", "jobs", "allocations", "nodes", "pool", "idle_intervals"]
    assert in_portions.has_table("losses") == result.has_table("losses")
    for name in names + ["losses"] * result.has_table("losses"):
        assert in_portions.table(name).equals(result.table(name)), f"{name} of the run in portions"
    check(case.log, case.jobs, case.rules, result, answers)
    return case.policy.partition("(")[0]


def run_and_check(seed: int, folder: Path, *, with_costs: bool = False) -> str:
    """Replay the case of ``seed`` and check it; returns the policy's name. Raises AssertionError where it is wrong."""
    case = case_of(seed, with_costs=with_costs)
    result = run(case, folder)
    jobs, log = case.jobs, case.log
    if case.unlimited_work:
        jobs = sorted(jobs, key=lambda job: job.submit_us)[: case.rules.max_parallel]
        for job in jobs:
            job.work, job.submit_us = math.inf, log.start_us
    if log.types is not None or case.policy.startswith("gavel."):
        check_tables(log, jobs, result)
    else:
        check(log, jobs, case.rules, result)
    return case.policy.partition("(")[0]
