"""State of a replay as a policy sees it."""

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

NEVER_US: int = np.iinfo(np.int64).max
"""Time of what never happens."""


LARGEST_GAP = 18
"""Largest difference between the numbers of two neighbours in one run of nodes.

Measured on Summit, whose cabinets hold 18 nodes: direct neighbours leave the pool at one instant with a chance above
0.9, also if they joined it an hour apart; nodes whose numbers differ by 100 with one of 0.5 to 0.6.
"""


class NodesSeen(Protocol):
    """The N nodes of the log and their T types, as a policy sees them."""

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


@dataclass(frozen=True, eq=False)
class PolicyState:
    """The J active jobs, first come first served, and the idle nodes, at one instant.

    Arrays belong to the replay and are read-only; copy what you want to keep. Where nodes are of several types, or jobs
    share nodes, ``throughput`` is what each job makes where it is now, and ``throughput_by_type`` what it would make
    on each type. J jobs, K the most nodes that a job may have, T node types.

    Parameters
    ----------
    time_us, window_start_us
        Now, and the start of the replayed window: microseconds since 1970-01-01 UTC.
    n_idle
        Idle nodes, held ones included: the counts of a decision sum to at most this.
    job : (J,) int64
        Number of each job, in order of submission.
    current : (J,) int64
        Nodes held now; may be below ``min_nodes`` after a reclaim.
    min_nodes, max_nodes : (J,) int64
        Bounds of a running job, nodes.
    scale_up_cost_s, scale_down_cost_s : (J,) float64
        Seconds without progress when the job gains or loses nodes by a decision.
    throughput : (J, K + 1) float64
        Samples/s at each count.
    objective : (J, K + 1) float64
        ``weight`` times the objective rate per second at each count.
    progress, work : (J,) float64
        Samples done, and to do in all; inf for a job that never ends.
    weight : (J,) float64
        The user's; ``objective`` includes it.
    submit_us, admitted_us, deadline_us : (J,) int64
        Microseconds since 1970 UTC; ``admitted_us`` moves on by the time that its source has paused the job,
        ``deadline_us`` is ``NO_DEADLINE_US`` for none.
    model : (J,) int64
        Position of its model in ``model_names``, -1 for none.
    throughput_by_type : (J, T, K + 1) float64
        Samples/s on each node type; ``None``: as ``throughput``, on the one type.
    nodes
        Which nodes are idle, of which type, and held by which job; ``None`` only in states that no replay made.
    model_names
        Names of models, by number.
    colocation
        Rates of jobs that share nodes; ``None``: none may.
    owed : (J,) float64
        Samples to make up for rescales and reclaims before progress goes on.
    batch_size, first_batch_size : (J,) int64
        Samples a step, now and at the start of the job; 1 where a step is a sample. ``None``: all 1.
    change_at : (J,) float64
        Progress in samples at which the batch size changes next; ``None``: never.
    requested_nodes : (J,) int64
        Nodes that the user asks for without rescaling; ``None``: ``max_nodes``.
    started_us : (J,) int64
        Last start or restart of each job that runs; ``LONG_AGO_US`` for none. ``None``: not known.
    at_risk_samples : (J,) float64
        Made since the last checkpoint, and lost if the job loses a node or is rescaled. ``None``: nothing is ever.
    next_save_us : (J,) int64
        Next checkpoint of each job with work at risk; ``NO_DEADLINE_US`` for none. ``None``: all is saved at all times.
    costs
        What changes cost where the constant ``scale_up_cost_s`` and ``scale_down_cost_s`` are not all of it, or a job
        lists its counts; ``None``: they are. By count, those two are the highest of any count.
    lost_nodes : (J,) int64
        Nodes reclaimed from the job since the policy last decided; ``None`` only in states that no replay made.
    waiting
        Numbers of the submitted jobs that are not admitted yet, as ``--max-parallel`` jobs are active: first come first
        served, jobs that were paused and are to go on included. ``None`` but for policies that declare ``sees_queue``.
    jobs_to_come
        Whether more jobs will be submitted. Only a simulator knows; here for policies that repeat one.
    """

    time_us: int
    n_idle: int
    job: NDArray[np.int64]
    current: NDArray[np.int64]
    min_nodes: NDArray[np.int64]
    max_nodes: NDArray[np.int64]
    scale_up_cost_s: NDArray[np.float64]
    scale_down_cost_s: NDArray[np.float64]
    throughput: NDArray[np.float64]
    objective: NDArray[np.float64]
    progress: NDArray[np.float64]
    work: NDArray[np.float64]
    weight: NDArray[np.float64]
    submit_us: NDArray[np.int64]
    admitted_us: NDArray[np.int64]
    deadline_us: NDArray[np.int64]
    model: NDArray[np.int64]

    throughput_by_type: NDArray[np.float64] | None = None
    nodes: NodesSeen | None = None
    model_names: Sequence[str] = ()
    colocation: Colocation | None = None
    owed: NDArray[np.float64] | None = None
    window_start_us: int = 0
    batch_size: NDArray[np.int64] | None = None
    first_batch_size: NDArray[np.int64] | None = None
    change_at: NDArray[np.float64] | None = None
    requested_nodes: NDArray[np.int64] | None = None
    started_us: NDArray[np.int64] | None = None
    at_risk_samples: NDArray[np.float64] | None = None
    next_save_us: NDArray[np.int64] | None = None
    costs: ChangeCosts | None = None
    lost_nodes: NDArray[np.int64] | None = None
    waiting: tuple[int, ...] | None = None
    jobs_to_come: bool = True

    def __repr__(self) -> str:
        n_used = int(self.current.sum())
        return (
            f"<PolicyState: {self.n_jobs:,} jobs hold {n_used:,} of {self.n_idle:,} idle nodes at {self.time_us:,} us>"
        )

    @classmethod
    def of(cls, columns: dict[str, Any]) -> PolicyState:
        """Return the state with these fields, all there are; a replay makes many, and the constructor takes longer."""
        state = cls.__new__(cls)
        object.__setattr__(state, "__dict__", columns)
        return state

    @property
    def n_jobs(self) -> int:
        """J."""
        return int(self.job.shape[0])

    def only(self, job_rows: NDArray[np.int64]) -> PolicyState:
        """The same state with some of its jobs, in the order of ``job_rows (m,)``."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays: Any = {name: column[job_rows] for name, column in columns.items() if isinstance(column, np.ndarray)}
        for array in arrays.values():
            array.flags.writeable = False
        if self.costs is not None:
            arrays["costs"] = self.costs.only(job_rows)
        return replace(self, **arrays)

    @property
    def tables(self) -> JobTables:
        """Tables for compiled loops."""
        costs = self.scale_up_cost_s, self.scale_down_cost_s
        return JobTables(self.objective, self.min_nodes, self.max_nodes, *costs)


class ChangeCosts(NamedTuple):
    """Costs of a change for each of J jobs now, as ``milp.charge_rule`` has it.

    Policies that optimise subtract ``milp.charge_rule.losses`` from what counts are worth.

    Parameters
    ----------
    seconds : (J, 4, 1 or K + 1) float64
        Of a start, a scale-up, a scale-down and a reclaim, by the new count; one column stands for all counts.
    pauses : (J,) int64
        1: it pauses for that time; 0: it owes samples.
    pause_left_s : (J,) float64
        Rest of a pause.
    unsaved_samples : (J,) float64
        Lost by a change of this decision.
    allowed : (J, 1 or K + 1) bool
        Counts that it can use; one column stands for all.
    save_every_s : (J,) float64
        Checkpoint interval, 0 for none.
    longest_s
        The longest of their starts and pauses.
    """

    seconds: NDArray[np.float64]
    pauses: NDArray[np.int64]
    pause_left_s: NDArray[np.float64]
    unsaved_samples: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    save_every_s: NDArray[np.float64]
    longest_s: float

    def only(self, job_rows: NDArray[np.int64]) -> ChangeCosts:
        """Return the costs of some of the jobs."""
        columns: dict[str, Any] = self._asdict()
        del columns["longest_s"]
        return self._replace(**{name: column[job_rows] for name, column in columns.items()})


class JobTables(NamedTuple):
    """Tables of J jobs for compiled loops; as in a ``PolicyState``, whose ``objective`` is the rate."""

    rate: NDArray[np.float64]  # (J, K + 1)
    min_nodes: NDArray[np.int64]  # (J,)
    max_nodes: NDArray[np.int64]  # (J,)
    scale_up_cost_s: NDArray[np.float64]  # (J,)
    scale_down_cost_s: NDArray[np.float64]  # (J,)
