"""Policy without scalability curves, which it learns while the jobs run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets import NodeEvents
from bfreplay.errors import InputError
from bfreplay.policies.learning.belief import BelievedTables, Share
from bfreplay.policies.learning.holds import HoldTracker
from bfreplay.policies.policy import Decision, Policy, not_a_policy
from bfreplay.policies.state import LONG_AGO_US, PolicyState
from bfreplay.workload import ElasticJob


class LearningPolicy(Policy):
    """Policy that lets another decide on measured instead of true curves.

    The state of a replay holds the true rate of each job at each count. This one shows its inner policy what can be
    known: the rate at counts on which the job (or one of its model) has run for ``measure_s`` without a change, and
    elsewhere what a law fitted to those says. Nothing else of the true tables is used.

    It is asked when the inner policy wants to be asked, since of other changes nothing is learnt, and declares what
    that one declares, except that it decides on nodes of one type only.

    It may be used for one replay after the other: ``close``, or a clock that goes back, makes it forget all.

    Parameters
    ----------
    inner
        Decides.
    share
        Who learns from whom: ``"job"``, every job from itself alone; ``"model"``, jobs of one model from one another.
    noise
        Standard deviation of one measurement relative to the true rate, 0 to 1.
    seed
        Of the noise, >= 0.
    measure_s
        How long a job must run on a count to give one measurement, seconds > 0.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    def __init__(
        self, inner: Policy, share: str = Share.JOB, noise: float = 0.0, seed: int = 0, measure_s: float = 30.0
    ) -> None:
        self.share = Share(checks.one_of("share", share, [word.value for word in Share]))
        self.noise = checks.number("noise", noise, least=0, most=1)
        self.measure_s = checks.number("measure_s", measure_s, least=1e-6)
        self.seed = checks.whole("seed", seed, 0, math.inf)
        if not isinstance(inner, Policy):
            raise not_a_policy("this is not a policy", inner)
        self.inner = inner
        self.name, self.wakes_on, self.objective = inner.name, inner.wakes_on, inner.objective
        self.capabilities = replace(inner.capabilities, node_types=False)
        self._forget()

    @property
    def knows_costs(self) -> bool:
        """Whether the inner policy does."""
        return self.inner.knows_costs

    def _forget(self) -> None:
        self._holds = HoldTracker(self.measure_s, self.wakes_on)
        self._beliefs = BelievedTables(self.share, self.noise, self.seed)
        self._last_us = LONG_AGO_US

    def believed_state(self, state: PolicyState) -> PolicyState:
        """Learn from ``state``, and return it with the believed tables of throughput and objective."""
        if state.time_us < self._last_us:
            self._forget()
        self._last_us = state.time_us
        self._beliefs.learn(self._holds.observe(state))
        throughput, objective = self._beliefs.tables(state)
        return replace(state, throughput=throughput, objective=objective)

    def note_decision(self, state: PolicyState, counts: NDArray[np.int64]) -> None:
        """Note that the jobs of ``state``, the argument of ``believed_state``, hold ``counts`` (J,) from now on."""
        self._holds.note_decision(state, np.asarray(counts))

    def decide(self, state: PolicyState) -> Decision:
        """Return the inner policy's decision on the believed state."""
        decision = self.inner.decide(self.believed_state(state))
        if _can_hold(decision, state):
            self.note_decision(state, decision.counts)
        return decision

    def check_jobs(self, jobs: Sequence[ElasticJob], most_nodes: int) -> None:
        """Refuse the jobs that the inner policy refuses, and those whose curves change while they are learnt."""
        for job in jobs:
            if job.adaptation is not None:
                raise InputError(
                    f"the job {job.name!r} changes its batch size while it trains: its curve cannot be learnt",
                    column="adaptation",
                    value=job.adaptation.rule,
                    expected="jobs that stay as they are",
                    fix="leave --learn-curves out",
                )
        self.inner.check_jobs(jobs, most_nodes)

    def seconds_alone(self, job: ElasticJob, n_nodes: int) -> float:
        """Seconds alone as the inner policy counts them."""
        return self.inner.seconds_alone(job, n_nodes)

    def foresee(self, events: NodeEvents) -> None:
        """Show the inner policy the log."""
        self.inner.foresee(events)

    def add_nodes(self, n_nodes: int) -> None:
        """Tell the inner policy."""
        self.inner.add_nodes(n_nodes)

    def with_known_curves(self) -> Policy:
        """The inner policy."""
        return self.inner

    def summary(self) -> Mapping[str, object] | None:
        """Return the counts of the inner policy."""
        return self.inner.summary()

    def describe(self) -> dict[str, object]:
        """The inner policy's parameters, and under ``learning`` those of this one."""
        return {
            **self.inner.describe(),
            "learning": {
                "share": self.share.value,
                "noise": self.noise,
                "seed": self.seed,
                "measure_s": self.measure_s,
            },
        }

    def close(self) -> None:
        """Close the inner policy, and forget what was learnt."""
        self.inner.close()
        self._forget()


def _can_hold(decision: Decision, state: PolicyState) -> bool:
    """Return whether the counts can be looked up; if not, the replay refuses the decision with the reason."""
    if not isinstance(decision, Decision):
        return False
    counts = np.asarray(decision.counts)
    if counts.shape != state.job.shape or not np.issubdtype(counts.dtype, np.integer):
        return False
    return bool((counts >= 0).all() and (counts < state.throughput.shape[1]).all())


def learning_from_record(policy: Mapping[str, Any]) -> dict[str, Any] | None:
    """Options of ``LearningPolicy`` with which a run was made; ``None`` for one with known curves.

    To pose its decisions again, make a ``LearningPolicy`` with them. At each decision that the policy of the run was
    asked for call ``believed_state`` with the state, and ``note_decision`` with the counts that were recorded.

    Parameters
    ----------
    policy
        The policy's description of itself in the run's record.
    """
    learning = policy.get("learning")
    return None if learning is None else {name: learning[name] for name in ("share", "noise", "seed", "measure_s")}
