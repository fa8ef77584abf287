"""Pools for the rules of products, small enough to follow by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from bfreplay.policies.state import NEVER_US, ChangeCosts, PolicyState
from tests.policies.small_states import NOW_US, SECOND, state_of


def pool(n_idle, held, bounds, *, weight=None, at_s=0, lists=None, numbers=None) -> PolicyState:
    """``n_idle`` nodes, of which jobs hold ``held``; ``bounds`` of each job, and its ``lists`` of counts."""
    n_jobs, width = len(held), max(most for _, most in bounds) + 1
    state = state_of(
        [[0.0] * width] * n_jobs,
        n_idle,
        job=numbers or list(range(n_jobs)),
        current=held,
        min_nodes=[least for least, _ in bounds],
        max_nodes=[most for _, most in bounds],
        weight=weight or [1.0] * n_jobs,
        time_us=NOW_US + at_s * SECOND,
    )
    if lists is None:
        return state
    allowed = np.array([np.isin(np.arange(width), [0, *counts]) for counts in lists])
    zeros = np.zeros(n_jobs)
    costs = ChangeCosts(np.zeros((n_jobs, 4, 1)), zeros.astype(np.int64), zeros, zeros, allowed, zeros, 0.0)
    return replace(state, costs=costs)


def ask(policy, *arguments, **keywords) -> SimpleNamespace:
    """Counts that a rule gives in a ``pool``, seconds after which it asks again, and its reasons."""
    state = pool(*arguments, **keywords)
    decision = policy.decide(state)
    until_us = decision.round.until_us
    until_s = None if until_us == NEVER_US else (until_us - NOW_US) / SECOND
    why = [policy.why(state, row) for row in range(state.n_jobs)]
    return SimpleNamespace(counts=decision.counts.tolist(), until_s=until_s, why=why)
