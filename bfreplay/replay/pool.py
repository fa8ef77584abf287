"""Log as a sequence of instants, and pool of idle nodes with their holders.

Idle nodes may be left alone: those idle for less than a minimum time, and a reserve. Policies do not see them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.log.states import EventBatch
from bfreplay.policies.state import LONG_AGO_US, NEVER_US
from bfreplay.replay.active import ALONE, FIRST, SECOND, ActiveJobs
from bfreplay.replay.placement import FREE, NOT_IDLE, RESERVED, YOUNG, PlacementRule, place_lowest, place_on_runs
from bfreplay.replay.pool_tables import BatchStarts, count_interval, empty_bins


class Timeline:
    """Instants of a log, which comes in portions.

    Parameters
    ----------
    after_us
        Events up to this time are skipped: a replay that goes on from a saved state has had them.
    """

    def __init__(self, after_us: int = LONG_AGO_US) -> None:
        self._after_us = after_us
        self._waiting: deque[EventBatch] = deque()
        self._starts: list[int] = []
        self._position = 0
        self.next_us = NEVER_US

    def add(self, batch: EventBatch) -> None:
        """Append a portion: later than all before it, sorted by (time, node), no time stamp split over two."""
        if batch.time_us.size and batch.time_us[0] <= self._after_us:
            first = int(np.searchsorted(batch.time_us, self._after_us, side="right"))
            batch = EventBatch(batch.time_us[first:], batch.node[first:], batch.state[first:])
        if batch.time_us.size:
            self._waiting.append(batch)
            if self.next_us == NEVER_US:
                self._open()

    def _open(self) -> None:
        if not self._waiting:
            self.next_us = NEVER_US
            return
        batch = self._batch = self._waiting.popleft()
        breaks = np.flatnonzero(np.diff(batch.time_us)) + 1
        self._starts = [0, *breaks.tolist(), int(batch.time_us.size)]
        self._times: list[int] = batch.time_us[self._starts[:-1]].tolist()
        self._position = 0
        self.next_us = self._times[0]

    def take(self) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Return nodes and their states after the events at ``next_us``, and move on to the next instant."""
        rows = slice(self._starts[self._position], self._starts[self._position + 1])
        node, state = self._batch.node[rows], self._batch.state[rows]
        self._position += 1
        if self._position < len(self._times):
            self.next_us = self._times[self._position]
        else:
            self._open()
        return node, state


_IDLE_STATE, _BUSY_STATE = 0, 1  # datasets.NodeState.IDLE and BUSY, as plain numbers for compiled code
_NODE = np.dtype(
    [
        # of the idle interval that the node is in now, or was in last
        ("idle_since_us", np.int64),
        ("held_since_us", np.int64),  # by the job that holds it now
        ("held_us", np.int64),  # by the jobs that held it before
        ("is_busy", np.int64),  # 1 while a batch job has it
    ],
    align=True,
)


@compiled
def _lose(job_row: int, node_index: int, records: NDArray[np.void], nodes_of_job: NDArray[np.int32]) -> None:
    """Remove node ``node_index`` from the nodes of a job."""
    count = records[job_row]["count"]
    position = 0
    while nodes_of_job[job_row, position] != node_index:
        position += 1
    for slot in range(position, count - 1):
        nodes_of_job[job_row, slot] = nodes_of_job[job_row, slot + 1]
    records[job_row]["count"] = count - 1
    records[job_row]["lost"] += 1
    records[job_row]["lost_nodes"] += 1


@compiled
def _change(
    event_node: NDArray[np.int32],
    state: NDArray[np.int8],
    now_us: int,
    start_us: int,
    holder: NDArray[np.int32],
    nodes: NDArray[np.void],
    interval_bins: NDArray[np.void],
    records: NDArray[np.void],
    nodes_of_job: NDArray[np.int32],
    row_of_job: NDArray[np.int32],
    n_active: int,
    joins_as: int,
    met_now: NDArray[np.int32],
) -> tuple[int, int, int, int, int, int, int]:
    """Reclaim the nodes that leave idle, then add those that became idle, with the holder ``joins_as``.

    Returns (nodes that left, nodes of jobs among them, idle time of those that left, nodes that joined, nodes that
    became busy, of those the nodes of jobs, increase of the number of busy nodes). ``met_now (N,)`` begins with the
    last but one, by node.
    """
    for active_row in range(n_active):
        records[active_row]["lost"] = 0
    n_left = 0
    n_reclaimed = 0
    idle_time = 0
    n_started = 0
    n_met = 0
    n_busier = 0
    for event in range(event_node.shape[0]):
        node_index = event_node[event]
        is_busy = 1 if state[event] == _BUSY_STATE else 0
        n_busier += is_busy - nodes[node_index]["is_busy"]
        nodes[node_index]["is_busy"] = is_busy
        if state[event] == _IDLE_STATE or holder[node_index] == NOT_IDLE:
            continue
        n_left += 1
        n_started += is_busy
        since_us = nodes[node_index]["idle_since_us"]
        idle_time += now_us - since_us
        if holder[node_index] >= 0:
            if is_busy:
                met_now[n_met] = node_index
                n_met += 1
            job_row = row_of_job[holder[node_index]]
            _lose(job_row, node_index, records, nodes_of_job)
            if records[job_row]["partner"] >= 0:
                _lose(row_of_job[records[job_row]["partner"]], node_index, records, nodes_of_job)
            n_reclaimed += 1
            nodes[node_index]["held_us"] += now_us - nodes[node_index]["held_since_us"]
        holder[node_index] = NOT_IDLE
        count_interval(interval_bins, now_us - since_us, nodes[node_index]["held_us"], since_us == start_us)
    n_joined = 0
    for event in range(event_node.shape[0]):
        node_index = event_node[event]
        if state[event] == _IDLE_STATE and holder[node_index] == NOT_IDLE:
            holder[node_index] = joins_as
            nodes[node_index]["idle_since_us"] = now_us
            nodes[node_index]["held_us"] = 0
            n_joined += 1
    return n_left, n_reclaimed, idle_time, n_joined, n_started, n_met, n_busier


@compiled
def _leave_alone(
    holder: NDArray[np.int32], nodes: NDArray[np.void], now_us: int, min_age_us: int, reserve: int
) -> tuple[int, int]:
    """Free the nodes that have been idle for long enough, then fill the reserve, or free what it has too many.

    The reserve takes the highest free nodes, as jobs take the lowest. Young nodes count towards it. Returns (nodes left
    alone, when the next of them is old enough).
    """
    n_alone = 0
    n_reserved = 0
    next_us = NEVER_US
    for node_index in range(holder.shape[0]):
        if holder[node_index] == YOUNG:
            old_us = nodes[node_index]["idle_since_us"] + min_age_us
            if old_us <= now_us:
                holder[node_index] = FREE
            else:
                n_alone += 1
                next_us = min(next_us, old_us)
        elif holder[node_index] == RESERVED:
            n_reserved += 1
    n_alone += n_reserved
    node_index = holder.shape[0] - 1
    while n_alone < reserve and node_index >= 0:
        if holder[node_index] == FREE:
            holder[node_index] = RESERVED
            n_alone += 1
        node_index -= 1
    node_index = 0
    while n_alone > reserve and n_reserved > 0:
        if holder[node_index] == RESERVED:
            holder[node_index] = FREE
            n_alone -= 1
            n_reserved -= 1
        node_index += 1
    return n_alone, next_us


@compiled
def _count_open(holder: NDArray[np.int32], nodes: NDArray[np.void], now_us: int, bins: NDArray[np.void]) -> None:
    """Count the idle intervals that last until now and are censored."""
    for node_index in range(holder.shape[0]):
        if holder[node_index] == NOT_IDLE:
            continue
        allocated_us = nodes[node_index]["held_us"]
        if holder[node_index] >= 0:
            allocated_us += now_us - nodes[node_index]["held_since_us"]
        count_interval(bins, now_us - nodes[node_index]["idle_since_us"], allocated_us, True)


class NodePool:
    """Idle nodes and their holders. ``holder (N,)``: job index, ``FREE``, ``RESERVED``, ``YOUNG`` or ``NOT_IDLE``.

    Of two jobs that share nodes the first is the holder.

    Parameters
    ----------
    reserve, min_age_us
        Idle nodes to leave alone, and time that a node has to be idle before jobs may have it.
    placement
        Rule by which counts are placed.
    """

    def __init__(
        self,
        n_nodes: int,
        active: ActiveJobs,
        window_start_us: int,
        node_type: NDArray[np.int16] | None = None,
        *,
        reserve: int = 0,
        min_age_us: int = 0,
        placement: PlacementRule = PlacementRule.LOWEST_ID,
    ) -> None:
        self.active = active
        self.node_type = np.zeros(n_nodes, dtype=np.int16) if node_type is None else node_type.view()
        self.node_type.flags.writeable = False  # policies see it
        self.holder = np.full(n_nodes, NOT_IDLE, dtype=np.int32)
        self._nodes: NDArray[np.void] = np.zeros(n_nodes, dtype=_NODE)
        self._bins = empty_bins()
        self._window_start_us = window_start_us
        self._reserve, self._min_age_us = reserve, min_age_us
        self._is_on_runs = placement is PlacementRule.RUNS
        self._met = np.zeros(n_nodes, dtype=np.int32)
        self.batch_starts = BatchStarts()
        self.n_idle = 0
        self.n_alone = 0  # of them: left alone
        self.next_old_us = NEVER_US  # when the next of those is old enough
        self.idle_node_us = 0  # closed idle intervals, in node-microseconds

    def add_nodes(self, node_type: NDArray[np.int16]) -> None:
        """Add nodes after all others, not idle yet; ``node_type (N,)`` of all nodes."""
        n_more = len(node_type) - len(self.holder)
        self.node_type = node_type.view()
        self.node_type.flags.writeable = False
        self.holder = np.append(self.holder, np.full(n_more, NOT_IDLE, np.int32))
        self._nodes = np.append(self._nodes, np.zeros(n_more, _NODE))
        self._met = np.append(self._met, np.zeros(n_more, np.int32))

    def n_idle_of_type(self) -> NDArray[np.int64]:
        """(T,) idle nodes of each type."""
        n_types = len(self.active.type_names)
        if n_types == 1:
            return np.array([self.n_idle])
        return np.bincount(self.node_type[self.holder != NOT_IDLE], minlength=n_types)

    def change(self, node: NDArray[np.int32], state: NDArray[np.int8], now_us: int) -> tuple[int, int, int]:
        """Reclaim nodes (``records["lost"]`` says from whom), and add those that became idle, free.

        Returns (nodes that joined, nodes reclaimed, those of them that a job held).
        """
        active = self.active
        n_left, n_reclaimed, idle_time, n_joined, n_started, n_met, n_busier = _change(
            node,
            state,
            now_us,
            self._window_start_us,
            self.holder,
            self._nodes,
            self._bins,
            active.records,
            active.held,
            active.row_of_job,
            active.n,
            YOUNG if self._min_age_us else FREE,
            self._met,
        )
        self.batch_starts.note(now_us, int(n_started), self._met[: int(n_met)], int(n_busier))
        self.n_idle += int(n_joined) - int(n_left)
        self.idle_node_us += int(idle_time)
        return int(n_joined), int(n_left), int(n_reclaimed)

    @property
    def n_usable(self) -> int:
        """Idle nodes that jobs may have, held ones included."""
        return self.n_idle - self.n_alone

    @property
    def usable(self) -> list[int]:
        """Idle nodes of each type that jobs may have, held ones included; T numbers."""
        if not self.active.has_types:
            return [self.n_usable]
        of_type = np.bincount(self.node_type[self.holder >= FREE], minlength=len(self.active.type_names))
        return list(map(int, of_type))

    @property
    def leaves_alone(self) -> bool:
        """True with a reserve or a minimum age."""
        return self._reserve > 0 or self._min_age_us > 0

    def leave_alone(self, now_us: int) -> None:
        """Fill the reserve, and free the nodes that are old enough now."""
        alone, next_old_us = _leave_alone(self.holder, self._nodes, now_us, self._min_age_us, self._reserve)
        self.n_alone, self.next_old_us = int(alone), int(next_old_us)

    def place(self, counts: NDArray[np.int64], now_us: int) -> None:
        """Place ``counts`` by the placement rule."""
        place_counts = place_on_runs if self._is_on_runs else place_lowest
        place_counts(counts, now_us, self.active.records, self.active.held, self.holder, self._nodes)

    def assign(self, nodes_by_job: Sequence[NDArray[np.int64]], partner: NDArray[np.int64] | None, now_us: int) -> None:
        """Give every job exactly the nodes that a policy chose for it."""
        active = self.active
        records = active.records[: active.n]
        is_taken = self.holder >= 0
        self._nodes["held_us"][is_taken] += now_us - self._nodes["held_since_us"][is_taken]
        self.holder[is_taken] = FREE
        records["count"] = records["lost_nodes"] = 0
        records["partner"] = -1
        records["sharing"] = ALONE
        for job_row, nodes in enumerate(nodes_by_job):
            if not len(nodes):
                continue
            partner_row = -1 if partner is None else int(partner[job_row])
            if partner_row >= 0:
                records["partner"][job_row] = records["job"][partner_row]
                records["sharing"][job_row] = FIRST if job_row < partner_row else SECOND
            if not 0 <= partner_row < job_row:
                self.holder[nodes] = records["job"][job_row]
                self._nodes["held_since_us"][nodes] = now_us
            active.held[job_row, : len(nodes)] = nodes
            records["count"][job_row] = len(nodes)
            records["node_type"][job_row] = self.node_type[nodes[0]]

    def release(self, job_row: int, now_us: int) -> None:
        """Free all nodes of a job; a job that shared them then has them for itself."""
        records = self.active.records
        record = records[job_row]
        nodes = self.active.held[job_row, : record["count"]]
        record["count"] = 0
        if record["sharing"] != ALONE:
            partner = records[self.active.row_of_job[record["partner"]]]
            record["partner"] = partner["partner"] = -1
            record["sharing"] = partner["sharing"] = ALONE
            self.holder[nodes] = partner["job"]  # it goes on holding them
            return
        self.holder[nodes] = FREE
        self._nodes["held_us"][nodes] += now_us - self._nodes["held_since_us"][nodes]

    def idle_node_us_until(self, now_us: int) -> int:
        """Idle node time of the whole log up to ``now_us``, summed node by node."""
        since: list[int] = self._nodes["idle_since_us"][self.holder != NOT_IDLE].tolist()
        # whole numbers of Python: decades of many thousand nodes leave 64 bits
        return self.idle_node_us + len(since) * now_us - sum(since)

    def idle_intervals_until(self, now_us: int) -> NDArray[np.void]:
        """Idle intervals up to ``now_us`` by length, ``(B,)`` of ``IDLE_INTERVAL_BIN``; open ones are censored."""
        interval_bins = self._bins.copy()
        _count_open(self.holder, self._nodes, now_us, interval_bins)
        return interval_bins


class PoolView:
    """Read-only view of a pool for policies (``policies.NodesSeen``)."""

    __slots__ = ("_pool", "type_names")

    def __init__(self, pool: NodePool) -> None:
        self._pool = pool
        self.type_names = pool.active.type_names

    @property
    def node_type(self) -> NDArray[np.int16]:
        """(N,) position of each node's type in ``type_names``; read-only."""
        return self._pool.node_type

    @property
    def is_idle(self) -> NDArray[np.bool_]:
        """(N,) whether jobs may use the node now, held ones included."""
        idle: NDArray[np.bool_] = self._pool.holder >= FREE
        return idle

    def held(self, j: int) -> NDArray[np.int32]:
        """Numbers of the nodes that the active job in row j holds."""
        active = self._pool.active
        return active.held[j, : active.records[j]["count"]].copy()
