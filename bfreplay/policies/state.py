"""What a policy sees when it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bfreplay.workload import Colocation

NO_DEADLINE_US = np.iinfo(np.int64).max
"""Deadline of a job that has none."""

LONG_AGO_US: int = np.iinfo(np.int64).min
"""Before any time, also before 1970: stands for no time where later times matter."""


class NodesSeen(Protocol):
    """What a policy sees of the N nodes of the log and their T types."""

    @property
    def type_names(self) -> tuple[str, ...]:
        """T names."""
        ...

    @property
    def node_type(self) -> NDArray[np.int16]:
        """(N,) position of each node's type in ``type_names``."""
        ...

    @property
    def is_idle(self) -> NDArray[np.bool_]:
        """(N,) whether jobs may use the node now, held ones included."""
        ...

    def held(self, j: int) -> NDArray[np.int32]:
        """Numbers of the nodes that row j of the state holds, in no certain order."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PolicyState:
    """The J active jobs, first come first served, and the idle nodes, at one instant.

    Arrays belong to the replay and are read-only; copy what you want to keep. Where nodes are of several types, or jobs
    share nodes, ``throughput`` is what each job makes where it is now, and ``throughput_by_type`` what it would make
    on each type.
    """

    time_us: int
    n_idle: int  # idle nodes, held ones included
    job: NDArray[np.int64]  # (J,) its number, in order of submission
    current: NDArray[np.int64]  # (J,) nodes held now; may be below min_nodes after a reclaim
    min_nodes: NDArray[np.int64]  # (J,)
    max_nodes: NDArray[np.int64]  # (J,)
    scale_up_cost_s: NDArray[np.float64]  # (J,)
    scale_down_cost_s: NDArray[np.float64]  # (J,)
    throughput: NDArray[np.float64]  # (J, K + 1) samples/s at each count
    objective: NDArray[np.float64]  # (J, K + 1) weight x objective rate at each count
    progress: NDArray[np.float64]  # (J,) samples done
    work: NDArray[np.float64]  # (J,) samples to do, inf for a job that never ends
    weight: NDArray[np.float64]  # (J,) the user's; ``objective`` has it in already
    submit_us: NDArray[np.int64]  # (J,)
    admitted_us: NDArray[np.int64]  # (J,) moved on by the time that its source has paused it
    deadline_us: NDArray[np.int64]  # (J,) ``NO_DEADLINE_US`` for none
    model: NDArray[np.int64]  # (J,) number of its model's name, the same for jobs of one model; -1 for none
    # for policies that place jobs on nodes of several types, or together on the same ones
    throughput_by_type: NDArray[np.float64] | None = None  # (J, T, K + 1); None: as ``throughput``, on the one type
    nodes: NodesSeen | None = None  # None only in states that no replay made
    model_names: Sequence[str] = ()  # by number
    colocation: Colocation | None = None
    owed: NDArray[np.float64] | None = None  # (J,) samples to make up for rescales and reclaims before progress goes on
    window_start_us: int = 0
    batch_size: NDArray[np.int64] | None = None  # (J,) samples a step now, 1 where a step is a sample; None: all 1
    first_batch_size: NDArray[np.int64] | None = None  # (J,) the same at the start of each job
    change_at: NDArray[np.float64] | None = None  # (J,) progress at which the batch size changes next; None: never
    requested_nodes: NDArray[np.int64] | None = None  # (J,) of the user without rescaling; None: max_nodes of each
    jobs_to_come: bool = True  # only a simulator knows; here for policies that repeat one

    def __repr__(self) -> str:
        held = int(self.current.sum())
        return f"<PolicyState: {self.n_jobs:,} jobs hold {held:,} of {self.n_idle:,} idle nodes at {self.time_us:,} us>"

    @property
    def n_jobs(self) -> int:
        """J."""
        return int(self.job.shape[0])

    def only(self, rows: NDArray[np.int64]) -> PolicyState:
        """The same state with some of its jobs, in the order of ``rows (m,)``."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        chosen: Any = {name: part[rows] for name, part in parts.items() if isinstance(part, np.ndarray)}
        return replace(self, **chosen)

    @property
    def tables(self) -> JobTables:
        """What compiled loops look up."""
        costs = self.scale_up_cost_s, self.scale_down_cost_s
        return JobTables(self.objective, self.min_nodes, self.max_nodes, *costs)


class JobTables(NamedTuple):
    """What compiled loops look up of J jobs; as in a ``PolicyState``, whose ``objective`` the rate is."""

    rate: NDArray[np.float64]  # (J, K + 1)
    min_nodes: NDArray[np.int64]  # (J,)
    max_nodes: NDArray[np.int64]  # (J,)
    scale_up_cost_s: NDArray[np.float64]  # (J,)
    scale_down_cost_s: NDArray[np.float64]  # (J,)
