"""What the formulation lab needs to know beside its log, its jobs and its pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bfreplay import checks, defaults
from bfreplay.milp.isolation import GRACE_S


@dataclass(frozen=True, slots=True)
class LabSettings:
    """Options of one comparison.

    Parameters
    ----------
    sample
        Decisions to take from the replay.
    seed
        Of their choice.
    t_fwd_s, max_parallel, unlimited_work
        Of the replay, as in ``replay_log`` with BFTrainer's policy.
    time_limit_s, relative_gap, threads, solver_seed, warm_start, reformulate_sets
        Of every pair, as in ``MilpSolver``.
    memory_limit_bytes, grace_s
        Of the workers, as in ``IsolatedBackend``.

    Raises
    ------
    InputError
        A number that makes no sense. The solvers' own options are checked where the solvers are made.
    """

    sample: int = 50
    seed: int = 0
    t_fwd_s: float | str = defaults.T_FWD_S
    max_parallel: int = defaults.MAX_PARALLEL
    unlimited_work: bool = False
    time_limit_s: float = defaults.TIME_LIMIT_S
    relative_gap: float = 0.0
    threads: int = 1
    solver_seed: int = 0
    warm_start: bool = True
    reformulate_sets: bool = False
    memory_limit_bytes: int | None = None
    grace_s: float = GRACE_S

    def __post_init__(self) -> None:
        for column, least in (("sample", 1), ("seed", 0)):
            checks.whole(column, getattr(self, column), least, math.inf)
