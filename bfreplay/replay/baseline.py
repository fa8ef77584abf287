"""What the same jobs would make on dedicated nodes: the yardstick of BFTrainer's efficiency U."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from bfreplay.datasets import EventsMetadata, NodeEvents, NodeState
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay.accounting import Semantics
from bfreplay.replay.engine import Engine
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.settings import ReplaySettings
from bfreplay.workload import JobSet


@dataclass(frozen=True, slots=True)
class Efficiency:
    """U of a run: samples on idle nodes over samples on as many dedicated nodes (arXiv:2106.12091, section IV).

    Parameters
    ----------
    equivalent_nodes
        Integral of the number of idle nodes over time, divided by the window's length.
    dedicated_nodes
        Whole number of dedicated nodes compared with: the nearest to ``equivalent_nodes``, at least 1.
    samples, dedicated_samples
        Processed in the window on the idle nodes, and on the dedicated ones.
    last_finish_us, dedicated_last_finish_us
        When the last job finished, ``None`` when not all did; when both finished everything, U is 1 by
        construction and these tell the difference.
    """

    equivalent_nodes: float
    dedicated_nodes: int
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
    jobs: JobSet,
    settings: ReplaySettings,
    t_fwd_s: float,
) -> Efficiency:
    """Replay ``jobs`` on dedicated nodes with exact decisions and compare.

    The dedicated nodes always run in continuous time with BFTrainer's exact decisions, so that U of different
    policies, solvers and semantics has one denominator.
    """
    duration_us = events.window_end_us - events.window_start_us
    equivalent = ledger.idle_node_us / duration_us
    n_nodes = max(1, math.floor(equivalent + 0.5))
    recorder = Recorder.nowhere([job.name for job in jobs], settings.max_parallel)
    engine = Engine(
        dedicated_events(n_nodes, events.window_start_us, events.window_end_us),
        jobs,
        BFTrainerPolicy(t_fwd_s),
        replace(settings, semantics=Semantics.CONTINUOUS, record_nodes=False),
        recorder,
    )
    dedicated = engine.run()
    return Efficiency(
        equivalent_nodes=equivalent,
        dedicated_nodes=n_nodes,
        samples=ledger.samples,
        dedicated_samples=dedicated.samples,
        last_finish_us=last_finish_us,
        dedicated_last_finish_us=engine.book.all_finished_us,
    )
