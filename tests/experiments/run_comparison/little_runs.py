"""Runs small enough to follow by hand, and a day of random ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from bfreplay import replay_log
from bfreplay.datasets import NodeEvents
from bfreplay.policies import BFTrainerPolicy, EqualSharePolicy, Policy
from bfreplay.replay import ReplaySettings, Semantics
from bfreplay.runs import RunResult
from bfreplay.workload import JobSet
from tests.replay.tiny import job, log

HOUR = 3_600.0


def run(events: NodeEvents, jobs: object, policy: Policy | None = None, *, t_fwd: float = 120.0, **more) -> RunResult:
    """A run in memory; ``more`` are those of ``replay_log``, and ``settings``' fields."""
    fields = {name: more.pop(name) for name in ("max_parallel", "semantics", "seed") if name in more}
    settings = ReplaySettings(**fields)
    return replay_log(events, jobs, policy or BFTrainerPolicy(t_fwd), settings, efficiency=False, bound=False, **more)


def two_hours() -> NodeEvents:
    """Two nodes for two hours; the second one away from 0:30 to 1:30."""
    return log(2, [(1_800, 1, False), (5_400, 1, True)], 2 * HOUR, idle_first=[0, 1])


def busy_days(days: float = 2.0, seed: int = 0, n_nodes: int = 6) -> NodeEvents:
    """Nodes that come and go every few minutes, more of them by night."""
    rng = np.random.default_rng(seed)
    changes, first = [], []
    for node in range(n_nodes):
        idle = bool(rng.random() < 0.5)
        if idle:
            first.append(node)
        t = 0.0
        while True:
            t += float(rng.exponential(900.0 if idle else 1_500.0)) + 1.0
            if t >= days * 24 * HOUR:
                break
            idle = not idle
            changes.append((round(t, 3), node, idle))
    return log(n_nodes, changes, days * 24 * HOUR, first)


def endless_jobs(n: int = 3, up_s: float = 30.0, down_s: float = 10.0) -> JobSet:
    """Jobs that saturate at different widths and never end."""
    curves = [(0.0, 10.0, 20.0, 30.0, 40.0), (0.0, 12.0, 18.0, 20.0), (0.0, 8.0, 16.0, 24.0, 32.0, 40.0)]
    return JobSet([job(f"j{k}", rates=curves[k % 3], up_s=up_s, down_s=down_s) for k in range(n)])


def ending_jobs(n: int = 12) -> JobSet:
    """Jobs that come over a day, each of some hours' work."""
    return JobSet(
        [
            job(f"j{k}", work=40_000.0 + 9_000.0 * k, submit_s=1_500.0 * k, up_s=20.0, down_s=15.0, min_nodes=1 + k % 2)
            for k in range(n)
        ]
    )


_PUBLISHED = {"semantics": Semantics.PUBLISHED}
_PAIRS: dict[str, tuple[tuple[Callable[[], JobSet], dict[str, object]], ...]] = {
    "t_fwd": ((endless_jobs, {}), (endless_jobs, {"t_fwd": 20.0})),
    "policy": ((ending_jobs, {}), (ending_jobs, {"policy": EqualSharePolicy})),
    "max_parallel": ((ending_jobs, {}), (ending_jobs, {"max_parallel": 2})),
    "published": ((ending_jobs, _PUBLISHED), (ending_jobs, {"t_fwd": 20.0, **_PUBLISHED})),
    "semantics": ((ending_jobs, {}), (ending_jobs, _PUBLISHED)),
    "seed": ((endless_jobs, {"seed": 1, **_PUBLISHED}), (endless_jobs, {"seed": 2, **_PUBLISHED})),
}
PAIRS = tuple(_PAIRS)
"""Names of pairs that differ in T_fwd, policy, number of jobs at once, clock and seed, in both semantics."""


@cache
def _busy_run(jobs: Callable[[], JobSet], policy: type[Policy] | None = None, **options) -> RunResult:
    return run(busy_days(), jobs(), policy and policy(), **options)


def pair_of_runs(name: str) -> tuple[RunResult, RunResult]:
    """Both runs of a pair, replayed when first asked for."""
    first, second = (_busy_run(jobs, **options) for jobs, options in _PAIRS[name])
    return first, second
