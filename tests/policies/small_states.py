"""Small states for policies and objectives, and every allocation that they allow."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from bfreplay.policies import NO_DEADLINE_US, PolicyState

NOW_US = 1_700_000_000_000_000
SECOND = 1_000_000


def state_of(rates: list[list[float]], n_idle: int, **changes: object) -> PolicyState:
    """New jobs with these ``rates`` at 0, 1, ... nodes, weight 1 and no deadline, that hold nothing and rescale free.

    ``changes`` replace fields; lists become arrays, and ``age_s`` and ``due_s`` give ``admitted_us`` and
    ``deadline_us`` in seconds before and after now.
    """
    throughput = np.array(rates, dtype=np.float64)
    n_jobs, width = throughput.shape
    now_us = int(changes.pop("time_us", NOW_US))
    age_s = np.array(changes.pop("age_s", [0.0] * n_jobs))
    due_s = changes.pop("due_s", [None] * n_jobs)
    fields: dict = {
        "time_us": now_us,
        "n_idle": n_idle,
        "job": np.arange(n_jobs),
        "current": [0] * n_jobs,
        "min_nodes": [1] * n_jobs,
        "max_nodes": [width - 1] * n_jobs,
        "scale_up_cost_s": [0.0] * n_jobs,
        "scale_down_cost_s": [0.0] * n_jobs,
        "throughput": throughput,
        "objective": throughput.copy(),
        "progress": [0.0] * n_jobs,
        "work": [1e6] * n_jobs,
        "weight": [1.0] * n_jobs,
        "submit_us": [now_us] * n_jobs,
        "admitted_us": now_us - (age_s * SECOND).astype(np.int64),
        "deadline_us": [NO_DEADLINE_US if due is None else now_us + int(due * SECOND) for due in due_s],
        "model": [-1] * n_jobs,
    }
    fields |= changes
    whole = {"job", "current", "min_nodes", "max_nodes", "submit_us", "admitted_us", "deadline_us", "model"}
    for name, value in fields.items():
        if name not in ("time_us", "n_idle"):
            fields[name] = np.asarray(value, dtype=np.int64 if name in whole else np.float64)
            fields[name].setflags(write=False)
    return PolicyState(**fields)


def allocations(state: PolicyState) -> list[tuple[int, ...]]:
    """Every vector of counts that the state allows."""
    choices = [
        [0, *range(low, min(high, state.n_idle) + 1)]
        for low, high in zip(state.min_nodes.tolist(), state.max_nodes.tolist(), strict=True)
    ]
    return [counts for counts in itertools.product(*choices) if sum(counts) <= state.n_idle]


@st.composite
def states(draw: st.DrawFn) -> PolicyState:
    """Up to three jobs and five idle nodes: curves with dents, stuck and late jobs, some that hold too few nodes."""
    n_jobs, n_idle, width = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(2, 6))

    def numbers(of: st.SearchStrategy) -> list:
        return draw(st.lists(of, min_size=n_jobs, max_size=n_jobs))

    rate = st.sampled_from([0.0, 1.0, 2.0, 2.5, 4.0, 7.0, 40.0])
    rates = [[0.0, *draw(st.lists(rate, min_size=width - 1, max_size=width - 1))] for _ in range(n_jobs)]
    min_nodes = numbers(st.integers(1, width - 1))
    max_nodes = [draw(st.integers(low, width - 1)) for low in min_nodes]
    current, left = [], n_idle
    for high in max_nodes:
        current.append(draw(st.integers(0, min(left, high))))
        left -= current[-1]
    age_s = numbers(st.sampled_from([0.0, 1.0, 300.0, 86_400.0]))
    dedicated = [max(row) * age for row, age in zip(rates, age_s, strict=True)]
    share = numbers(st.sampled_from([0.0, 0.01, 0.5, 1.0]))
    seconds = st.sampled_from([0.0, 5.0, 30.0])
    return state_of(
        rates,
        n_idle,
        current=current,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        age_s=age_s,
        progress=[part * most for part, most in zip(share, dedicated, strict=True)],
        work=numbers(st.sampled_from([1e5, 1e7, np.inf])),
        weight=numbers(st.sampled_from([1.0, 1.0, 0.5, 3.0])),
        scale_up_cost_s=numbers(seconds),
        scale_down_cost_s=numbers(seconds),
        due_s=numbers(st.sampled_from([None, -10.0, 60.0, 4_000.0, 1e6])),
    )
