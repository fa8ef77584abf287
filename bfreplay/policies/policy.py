"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bfreplay.milp.solution import Solution
from bfreplay.workload import Colocation

NO_DEADLINE_US = np.iinfo(np.int64).max
"""Deadline of a job that has none."""

NO_TIME_US = np.iinfo(np.int64).min
"""No time, where an array of times has nothing to say: earlier than any; 0 and -1 are times about 1970."""


class Trigger(IntFlag):
    """What happened at a decision point; several may happen at once."""

    NONE = 0
    POOL = 1  # nodes became idle or were reclaimed
    ARRIVAL = 2  # a job was admitted
    COMPLETION = 4  # a job finished, was ended, or paused
    ROUND = 8  # the time has come that the last decision named: ``Decision.until_us``


ANY_TRIGGER = Trigger.POOL | Trigger.ARRIVAL | Trigger.COMPLETION


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
    jobs_to_come: bool = True  # only a simulator knows; here for policies that repeat one

    @property
    def n_jobs(self) -> int:
        """J."""
        return int(self.job.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Counts for the jobs of a ``PolicyState``, in its order.

    Parameters
    ----------
    counts : (J,) int64
        Nodes per job: 0, or ``min_nodes`` to ``max_nodes``, or what it holds; their sum at most ``n_idle``.
    solution
        What the solver said, when one was asked.
    assigned
        A policy that places nodes itself gives, for each job, the node numbers, all of one type; the replay's placement
        rule is used otherwise.
    t_fwd_s
        Forward-looking time that the question was posed with, where one was.
    partner : (J,) int64
        Row of the job that shares its nodes with this one, -1 for none; both rows then have the same ``assigned``.
        ``None``: nobody shares.
    samples : (J,) float64
        How many each job may process until the policy decides again, inf for no limit: it then holds its nodes and
        waits. ``None``: no limit.
    restart_s : (J,) float64
        Seconds of work that each job loses now, at the rate that it will have: reading its checkpoint on other nodes.
        ``None``: none.
    not_before_us : (J,) int64
        A job that is done earlier holds its nodes until then, and completes then; ``NO_TIME_US`` for a job that does
        not wait. ``None``: none waits.
    failed : (J,) bool
        Jobs that leave now, with a count of 0: the policy has given them up. ``None``: none.
    until_us
        When the policy wants to be asked next, where it decides in rounds: it wakes on ``Trigger.ROUND``.
    """

    counts: NDArray[np.int64]
    solution: Solution | None = None
    assigned: tuple[NDArray[np.int64], ...] | None = None
    t_fwd_s: float | None = None
    partner: NDArray[np.int64] | None = None
    samples: NDArray[np.float64] | None = None
    restart_s: NDArray[np.float64] | None = None
    not_before_us: NDArray[np.int64] | None = None
    failed: NDArray[np.bool_] | None = None
    until_us: int | None = None


class Policy(Protocol):
    """Decides what runs now: ``decide``, and data on when it wants to be asked.

    To be named on the command line a policy's class also has a ``from_options`` (see ``catalogue.PolicyFactory``). One
    that measures what a forecast would be worth may have ``foresee(events)``: it is shown the log before the replay.
    One that places jobs on nodes of several types has ``places_types = True``; others are not asked to. One that counts
    things of its own may have ``summary()``, JSON-ready, for the run's record.
    """

    @property
    def name(self) -> str:
        """Label for tables."""
        ...

    @property
    def wakes_on(self) -> Trigger:
        """Events after which ``decide`` is called; after others every job keeps what it has.

        One that wakes on ``Trigger.ROUND`` is asked at every event as long as it has named no time (``until_us``).
        """
        ...

    def decide(self, state: PolicyState) -> Decision:
        """Node counts for the jobs in ``state``; called only when there is at least one job and one idle node."""
        ...

    def describe(self) -> dict[str, object]:
        """Every parameter with its value, JSON-ready, for the run's record.

        ``name`` must be there. Where they are, ``t_fwd_s`` is a number, ``solver`` and ``forward_time`` (in place of a
        number) are mappings with ``name``, and ``objective`` is one with ``spec``.
        """
        ...

    def close(self) -> None:
        """Release what the policy holds (worker processes); harmless when called twice."""
        ...
