"""What the same jobs would make on dedicated nodes: the yardstick of BFTrainer's efficiency U."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bfreplay.datasets import EventsMetadata, NodeEvents, NodeState
from bfreplay.policies import BFTrainerPolicy, Policy
from bfreplay.policies.objectives.objective import Objective
from bfreplay.replay.accounting import Semantics
from bfreplay.replay.engine import Engine
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.settings import ReplaySettings
from bfreplay.workload import JobSet, JobSource


@dataclass(frozen=True, slots=True)
class Efficiency:
    """U of a run: samples on idle nodes over samples on as many dedicated nodes (arXiv:2106.12091, section IV).

    Parameters
    ----------
    equivalent_nodes
        Integral of the number of idle nodes over time, divided by the window's length.
    t_fwd_s
        Forward-looking time of the decisions on the dedicated nodes.
    samples, dedicated_samples
        Processed in the window on the idle nodes, and on ``equivalent_nodes`` dedicated ones: interpolated between
        the whole numbers of nodes below and above.
    last_finish_us, dedicated_last_finish_us
        When the last job finished (on the nearest whole number of dedicated nodes), ``None`` when not all did; when
        both finished everything, U is 1 by construction and these tell the difference.
    """

    equivalent_nodes: float
    t_fwd_s: float
    samples: float
    dedicated_samples: float
    last_finish_us: int | None
    dedicated_last_finish_us: int | None

    @property
    def u(self) -> float | None:
        """``samples / dedicated_samples``; ``None`` when the dedicated nodes make nothing."""
        return self.samples / self.dedicated_samples if self.dedicated_samples > 0 else None


def dedicated_events(n_nodes: int, start_us: int, end_us: int) -> NodeEvents:
    """A log of ``n_nodes`` nodes that are idle from ``start_us`` to ``end_us``."""
    width = len(str(n_nodes - 1))
    return NodeEvents.from_arrays(
        [f"dedicated{k:0{width}d}" for k in range(n_nodes)],
        np.full(n_nodes, NodeState.IDLE, dtype=np.int8),
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0, dtype=np.int8),
        start_us,
        end_us,
        EventsMetadata(source_format="dedicated nodes"),
    )


def efficiency(
    ledger: Ledger,
    last_finish_us: int | None,
    events: NodeEvents,
    jobs: JobSet | JobSource,
    settings: ReplaySettings,
    t_fwd_s: float,
    objective: Objective | str = "own",
) -> Efficiency:
    """Replay ``jobs`` on dedicated nodes with exact decisions and compare.

    The dedicated nodes always run in continuous time with BFTrainer's exact decisions, so that U of different
    policies, solvers and semantics has one denominator. They follow the run's own ``objective``: what is compared
    is the nodes, not the goal.
    """
    equivalent = ledger.idle_node_us / (events.window_end_us - events.window_start_us)
    below = math.floor(equivalent)
    part = equivalent - below
    window = (events.window_start_us, events.window_end_us)
    policy = BFTrainerPolicy(t_fwd_s, objective=objective)
    low, low_finish = _dedicated(below, window, jobs, settings, policy)
    high, high_finish = _dedicated(below + 1, window, jobs, settings, policy) if part else (low, low_finish)
    return Efficiency(
        equivalent_nodes=equivalent,
        t_fwd_s=t_fwd_s,
        samples=ledger.samples,
        dedicated_samples=(1 - part) * low + part * high,
        last_finish_us=last_finish_us,
        dedicated_last_finish_us=low_finish if part < 0.5 else high_finish,
    )


def _dedicated(
    n_nodes: int, window_us: tuple[int, int], jobs: JobSet | JobSource, settings: ReplaySettings, policy: Policy
) -> tuple[float, int | None]:
    """Samples in the window on ``n_nodes`` dedicated nodes, and when the last job finished."""
    if n_nodes == 0:
        return 0.0, None
    engine = Engine(
        dedicated_events(n_nodes, *window_us),
        jobs,
        policy,
        replace(settings, semantics=Semantics.CONTINUOUS, record_nodes=False),
        Recorder.nowhere(),
    )
    return engine.run().samples, engine.outcomes.all_finished_us
