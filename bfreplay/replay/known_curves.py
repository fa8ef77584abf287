"""What learning the curves cost: the same replay once more, with curves that are known from the start."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bfreplay.datasets import NodeEvents
from bfreplay.policies import Policy
from bfreplay.replay.engine import Engine
from bfreplay.replay.recorder import Recorder
from bfreplay.workload import JobSet, JobSource


@dataclass(frozen=True, slots=True)
class KnownCurves:
    """A run with learned curves against the same run with known ones.

    Parameters
    ----------
    samples, known_samples
        Processed in the window with learned and with known curves. Equal where both finish everything: then the times
        tell the difference.
    last_finish_us, known_last_finish_us
        When the last job left, ``None`` when not all did.
    """

    samples: float
    known_samples: float
    last_finish_us: int | None
    known_last_finish_us: int | None

    @property
    def lost(self) -> float | None:
        """Share of the samples that learning cost; negative where it happened to help; ``None`` for none at all."""
        return 1 - self.samples / self.known_samples if self.known_samples > 0 else None


def known_curves(
    learned: Engine, samples: float, events: NodeEvents, jobs: JobSet | JobSource, policy: Policy
) -> KnownCurves:
    """Replay once more by ``policy``, which knows the curves."""
    settings = replace(learned.settings, record_nodes=False)
    engine = Engine(events, jobs, policy, settings, Recorder.nowhere())
    known = engine.run().samples
    return KnownCurves(samples, known, learned.outcomes.all_finished_us, engine.outcomes.all_finished_us)
