"""The policies that look ahead: into the log itself, or along what followed earlier pools of this size."""

from __future__ import annotations

import numpy as np

from bfreplay import checks, defaults
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.pool import PoolSizes
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solver import Solver
from bfreplay.policies.look_ahead.decider import Decider, Futures, last_pool_s
from bfreplay.policies.policy import LONG_AGO_US, Decision, Policy, PolicyCapabilities, PolicyState


class ForesightPolicy(Policy):
    """Knows when the next ``events`` pool events come, and how many nodes are idle after each; not which nodes.

    It is no policy for a machine: it measures what a perfect forecast of so many events would be worth. After the last
    event that it sees it expects the pool to stay as it is for ``t_fwd_s``, or to the end of the window when no other
    event comes. Without a log, or with ``events`` 0, it decides as BFTrainer.

    Parameters
    ----------
    events
        Pool events that it knows, >= 0.
    t_fwd_s
        How long the last pool in sight is expected to last, seconds > 0.
    solver
        Answers each decision; the exact solver by default.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    name = "foresight"
    capabilities = PolicyCapabilities(warm_up="look-ahead(events=1, futures=1)")

    def __init__(self, events: int = 10, t_fwd_s: float | str = defaults.T_FWD_S, solver: Solver | None = None) -> None:
        checks.whole("events", events, 0, 100_000)
        self.events = int(events)
        self.t_fwd_s = last_pool_s(self.name, t_fwd_s)
        self.solver: Solver = ExactSolver() if solver is None else solver
        self._decider = Decider(self.solver)
        self._known: PoolSizes | None = None

    @classmethod
    def from_options(cls, *, t_fwd_s: float | str, solver: Solver, events: int = 10) -> ForesightPolicy:
        """All options matter."""
        return cls(events, t_fwd_s, solver)

    def foresee(self, events: NodeEvents) -> None:
        """Learn the log that is about to be replayed."""
        self._known = PoolSizes.of(events)

    def decide(self, state: PolicyState) -> Decision:
        """Counts that are best for the events in sight."""
        return self._decider.decide(state, self._in_sight(state.time_us))

    def _in_sight(self, now_us: int) -> Futures:
        known = self._known
        if known is None or self.events == 0:
            return Futures.none(self.t_fwd_s)
        first = int(np.searchsorted(known.time_us, now_us, side="right"))
        begins = np.append(now_us, known.time_us[first : first + self.events])
        is_all = first + self.events >= known.time_us.size
        last_us = known.end_us if is_all else int(begins[-1]) + round(self.t_fwd_s * 1e6)
        seconds = np.diff(begins, append=last_us) * 1e-6
        idle = np.append(0, known.idle[first : first + self.events])
        return Futures(idle[None, :], seconds[None, :])

    def describe(self) -> dict[str, object]:
        """How far it sees, and its solver."""
        return {
            "name": self.name, "events": self.events, "t_fwd_s": self.t_fwd_s, "solver": self.solver.describe()
        }  # fmt: skip

    def close(self) -> None:
        """Close the solver, forget the log."""
        self._known = None
        self._decider.close()


class LookAheadPolicy(Policy):
    """Looks ahead along what followed earlier pools of about the present size.

    Parameters
    ----------
    events
        How many events ahead, >= 1.
    futures
        How many earlier moments to follow, >= 1: those whose pool was nearest in size, the latest of equals.
    memory
        How many pool changes are remembered, >= ``futures + events``.
    t_fwd_s
        How long the last pool of a future is expected to last, seconds > 0; and the forward-looking time as long as too
        little has been seen.
    solver
        Answers each decision; the exact solver by default.

    Raises
    ------
    InputError
        A parameter makes no sense.
    """

    name = "look-ahead"
    capabilities = PolicyCapabilities(warm_up="look-ahead(events=1, futures=1)")

    def __init__(
        self,
        events: int = 5,
        futures: int = 20,
        memory: int = 500,
        t_fwd_s: float | str = defaults.T_FWD_S,
        solver: Solver | None = None,
    ) -> None:
        checks.whole("events", events, 1, 1000)
        checks.whole("futures", futures, 1, 1000)
        checks.whole("memory", memory, events + futures, 1_000_000)
        self.events, self.futures, self.memory = int(events), int(futures), int(memory)
        self.t_fwd_s = last_pool_s(self.name, t_fwd_s)
        self.solver: Solver = ExactSolver() if solver is None else solver
        self._decider = Decider(self.solver)
        self._forget()

    def _forget(self) -> None:
        # twice the memory, so that old entries are moved out now and then instead of at every event
        self._time_us = np.zeros(2 * self.memory, np.int64)
        self._idle = np.zeros(2 * self.memory, np.int64)
        self._n = 0
        self._last_us = LONG_AGO_US

    @classmethod
    def from_options(
        cls, *, t_fwd_s: float | str, solver: Solver, events: int = 5, futures: int = 20, memory: int = 500
    ) -> LookAheadPolicy:
        """All options matter."""
        return cls(events, futures, memory, t_fwd_s, solver)

    def decide(self, state: PolicyState) -> Decision:
        """Counts that are best on average over what followed before."""
        self._remember(state)
        return self._decider.decide(state, self._expected(state))

    def _remember(self, state: PolicyState) -> None:
        if state.time_us < self._last_us:
            self._forget()  # another replay
        self._last_us = state.time_us
        if self._n and self._idle[self._n - 1] == state.n_idle:
            return  # jobs came or went, or as many nodes were reclaimed as became idle
        if self._n == self._idle.size:
            for kept in (self._time_us, self._idle):
                kept[: self.memory] = kept[self.memory :]
            self._n = self.memory
        self._time_us[self._n], self._idle[self._n] = state.time_us, state.n_idle
        self._n += 1

    def _expected(self, state: PolicyState) -> Futures:
        first = max(self._n - self.memory, 0)
        # a moment counts when all that follows it has been seen; the last entry is now
        last = self._n - 1 - self.events
        if last - first + 1 < self.futures:
            return Futures.none(self.t_fwd_s)
        earlier = np.arange(last, first - 1, -1)
        away = np.abs(self._idle[earlier] - state.n_idle)
        chosen = earlier[np.argsort(away, kind="stable")[: self.futures]]
        path = chosen[:, None] + np.arange(self.events + 1)
        idle = np.maximum(self._idle[path] - self._idle[chosen][:, None] + state.n_idle, 0)
        begins = self._time_us[path]
        tail = np.full((chosen.size, 1), self.t_fwd_s)
        return Futures(idle, np.concatenate([np.diff(begins, axis=1) * 1e-6, tail], axis=1))

    def describe(self) -> dict[str, object]:
        """Its parameters and solver."""
        return {
            "name": self.name, "events": self.events, "futures": self.futures, "memory": self.memory,
            "t_fwd_s": self.t_fwd_s, "solver": self.solver.describe(),
        }  # fmt: skip

    def close(self) -> None:
        """Close the solver, forget what was seen."""
        self._forget()
        self._decider.close()
