"""A policy that knows the next events of the log: what a forecast would be worth."""

from __future__ import annotations

import numpy as np

from bfreplay import checks, defaults
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.idleness.pool import PoolSizes
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.solver import Solver
from bfreplay.policies.look_ahead.decider import Decider, Futures, last_pool_s
from bfreplay.policies.policy import Decision, Policy, PolicyCapabilities, PolicyState


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
