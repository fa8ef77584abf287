"""Ray Train, elastic: a run that looks and finds another number of nodes reserved for it restarts whole on these."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from bfreplay.options import Number, OneOf, option
from bfreplay.policies.state import NEVER_US, PolicyState
from bfreplay.saved_state import restorable
from bfreplay.systems.products.rule import MOST_S, US_PER_S, RuleJobs, RuleOptions, RulePolicy, Shares
from bfreplay.wording import count

_TICK_US = 20 * US_PER_S
_Query = Callable[[], Sequence[Sequence[float]] | None]


@restorable
@dataclass
class ElasticRun:
    """Decisions of one run: ``ElasticScalingPolicy`` of ``ray.train.v2``. All times are in one unit, of any origin.

    Parameters
    ----------
    least, most
        Fewest and most workers.
    interval, query_interval
        Time between two looks of a running group; time for which an answer is remembered, not asked for again.
    needs : (R,)
        Need of a worker for each resource.
    looked, queried, answer
        Memory: times of the last look and query, and the workers with room in the answer; ``None``: it failed.
    """

    least: int
    most: int
    interval: float
    query_interval: float = 1.0
    needs: tuple[float, ...] = (1.0,)
    looked: float = -math.inf
    queried: float = -math.inf
    answer: int | None = None

    def decide(self, now: float, query: _Query, size: int | None = None, started: float = -math.inf) -> int | None:
        """Return the size of the group to start, in place of one that runs; ``None``: all stays as it is.

        Parameters
        ----------
        query
            Function that returns what is reserved on each node, (R,); ``None``: it has failed.
        size, started
            Workers and start of the group that runs; ``None``: none runs.
        """
        if size is not None:
            if now - max(started, self.looked) < self.interval:
                return None
            self.looked = now
        if now - self.queried >= self.query_interval:
            nodes = query()
            self.queried, self.answer = now, None if nodes is None else self._count_workers(nodes)
        if self.answer is None or self.answer < self.least or self.answer == size:
            return None
        return self.answer

    def _count_workers(self, nodes: Sequence[Sequence[float]]) -> int:
        """Return the workers that there is room for; one without needs always has room."""
        if not any(self.needs):
            return self.most
        rooms = (min(room // need for room, need in zip(node, self.needs, strict=True) if need > 0) for node in nodes)
        return min(int(sum(rooms)), self.most)


class Reservations:
    """Workers reserved for each run of a Ray cluster: its coordinator, ``_AutoscalingCoordinatorActor``.

    Parameters
    ----------
    expires_after
        Time after which a request is dropped that was not renewed.

    Attributes
    ----------
    reserved
        Workers reserved for each run.
    rooms
        Room of each node as of the last tick, largest first.
    """

    def __init__(self, expires_after: float) -> None:
        self.expires_after = expires_after
        self.reserved: dict[Hashable, int] = {}
        self.rooms: Sequence[int] = ()
        self._requests: dict[Hashable, tuple[int, float, float, int, int]] = {}

    def ask(self, now: float, name: Hashable, n_workers: int, need: int = 1, priority: int = 0) -> None:
        """Ask for workers that take ``need`` of a node each, or renew that request, which keeps its place."""
        known = self._requests.get(name)
        request = -priority, now if known is None else known[1], now + self.expires_after, n_workers, need
        self._requests[name] = request
        if known is None or known[3:] != request[3:]:
            self._reserve(now)

    def cancel(self, now: float, name: Hashable) -> None:
        """Give up a request."""
        if self._requests.pop(name, None):
            self._reserve(now)

    def tick(self, now: float, rooms: Sequence[int]) -> None:
        """Look at the nodes: those that have come or gone since the last tick are seen only now."""
        self.rooms = rooms
        self._reserve(now)

    def _reserve(self, now: float) -> None:
        """Reserve anew: by priority, then by first request, as many workers as there is room for, node by node."""
        self._requests = {name: request for name, request in self._requests.items() if request[2] > now}
        self.reserved, rooms = {}, list(self.rooms)
        for name, (*_, n_workers, need) in sorted(self._requests.items(), key=lambda item: item[1][:2]):
            n_left = n_workers
            for node, room in enumerate(rooms):
                n_here = min(n_left, room // need)
                rooms[node] -= n_here * need
                n_left -= n_here
            self.reserved[name] = n_workers - n_left


@dataclass(frozen=True)
class RayOptions(RuleOptions):
    """Options of ``products.ray``.

    Parameters
    ----------
    interval_s
        Seconds between two looks of a running group: ``elastic_resize_monitor_interval_s``.
    share
        ``reserved``: all runs are in one Ray cluster, which reserves nodes for the earliest run first.
        ``one-cluster-each``: nobody takes from another, and free nodes go first come first served.
    start_timeout_s
        Seconds after which a start fails that does not find all its nodes free; it is tried again.

    Raises
    ------
    InputError
        A value that makes no sense.
    """

    interval_s: float = option(60.0, Number(least=1, most=MOST_S))
    share: str = option("reserved", OneOf(("reserved", "one-cluster-each")))
    start_timeout_s: float = option(60.0, Number(least=1, most=MOST_S))


class RayTrain(RulePolicy):
    """Each job is a run whose workers are nodes. It asks for its most nodes, and takes what it can get of them."""

    name = "products.ray"
    options_type = RayOptions
    options: RayOptions
    product = "Ray Train 2.60.0, elastic num_workers"
    readings = (
        "a worker is a node; a job asks for its most nodes when it is admitted, and its request never expires",
        "a reclaim is a preemption: the group ends, and its start is tried at once, without limit",
        "a start needs as many nodes as are reserved, those included that other runs hold or that are gone since the "
        "last tick; it waits for them, begins when so many are free, or fails after start_timeout_s",
        "ticks come every 20 s from the first decision on, and at once if there was no run or the pool was empty",
        "polls take no time, a start counts as a look, and a run that waits holds no nodes",
        "a cluster of its own sees a node at once",
    )

    def forget(self) -> None:
        """Forget runs and reservations."""
        self._runs: dict[int, ElasticRun] = {}  # in order of first request
        self._starts: dict[int, tuple[int, int]] = {}  # of runs that wait: nodes, and since when
        self._cluster = Reservations(expires_after=math.inf)
        self._first_us = self._tick_us = self._decided_us = NEVER_US
        self._counts: list[int] = []
        self._n_free = self._n_unused = self._unused_node_us = 0

    def __init__(self, options: RayOptions | None = None) -> None:
        super().__init__(options)
        self._interval_us = round(self.options.interval_s * US_PER_S)
        self._timeout_us = round(self.options.start_timeout_s * US_PER_S)
        self._reserves = self.options.share == "reserved"

    def shares(self, jobs: RuleJobs) -> Shares:
        """Return the nodes of each group, and 0 for runs that wait."""
        self._unused_node_us += self._n_unused * (jobs.now_us - self._decided_us)
        self._counts, self._decided_us = list(jobs.count), jobs.now_us
        rows = self._follow_requests(jobs)
        for row in rows:
            self._take_turn(jobs, row)
        self._n_free = jobs.n_free(self._counts)
        for row in rows:  # only now: groups that come later may have given up nodes
            number = jobs.number[row]
            n_nodes, _ = self._starts.get(number, (NEVER_US, 0))
            if n_nodes <= self._n_free:
                self._counts[row] = n_nodes
                self._n_free -= n_nodes
                self._runs[number].looked = jobs.now_us
                del self._starts[number]
        n_waiting = sum(self._cluster.reserved.get(jobs.number[row], 0) for row in rows if not self._counts[row])
        self._n_unused = min(n_waiting, self._n_free)
        return Shares(self._counts, min(self._tick_us, *(self._next_change_us(jobs, row) for row in rows)))

    def _follow_requests(self, jobs: RuleJobs) -> list[int]:
        """Drop runs that are gone, take up new ones, tick; return the rows in order of first request."""
        rows = {number: row for row, number in enumerate(jobs.number)}
        bounds = dict(zip(jobs.number, zip(jobs.least, jobs.most, strict=True), strict=True))
        for number, run in list(self._runs.items()):
            if bounds.get(number) != (run.least, run.most):
                self._cluster.cancel(jobs.now_us, number)
                self._starts.pop(number, None)
                del self._runs[number]
        is_news = not self._runs or (any(jobs.hit) and not any(jobs.count))
        for number in jobs.number:
            if number not in self._runs:
                run = ElasticRun(*bounds[number], self._interval_us, query_interval=US_PER_S)
                run.looked, run.queried = jobs.now_us, jobs.now_us - US_PER_S  # it may ask now
                self._runs[number] = run
                if self._reserves:
                    self._cluster.ask(jobs.now_us, number, run.most)
        if self._reserves:
            self._tick(jobs, is_news)
        return [rows[number] for number in self._runs]

    def _tick(self, jobs: RuleJobs, at_once: bool) -> None:
        """Let the cluster look at a pool that it does not know, if it is time to, or name the time."""
        self._first_us = min(self._first_us, jobs.now_us)
        next_us = jobs.now_us if at_once else jobs.now_us + (self._first_us - jobs.now_us) % _TICK_US
        pool = [jobs.n_idle]  # nodes are alike: one with room for all stands for them
        self._tick_us = NEVER_US if pool == self._cluster.rooms else min(self._tick_us, next_us)
        if self._tick_us <= jobs.now_us:
            self._cluster.tick(jobs.now_us, pool)
            self._tick_us = NEVER_US

    def _take_turn(self, jobs: RuleJobs, row: int) -> None:
        """Let a run look, or try to start, if it is time: a group that ends gives up its nodes."""
        number, now_us = jobs.number[row], jobs.now_us
        size = jobs.count[row] if jobs.runs(row) and not jobs.hit[row] else None
        if (size or number in self._starts) and self._next_turn_us(number, size, now_us - 1) > now_us:
            return  # nor did turns that were passed over change anything
        new_size = self._runs[number].decide(now_us, lambda: [(self._nodes_in_sight(jobs, row),)], size)
        if new_size is None and size:
            return
        self._counts[row] = 0
        self._starts.pop(number, None)
        if new_size:
            self._starts[number] = new_size, now_us

    def _next_turn_us(self, number: int, size: int | None, after_us: int) -> int:
        """Return when a run looks, tries to start, or asks next."""
        since_us, period_us = int(self._runs[number].queried), US_PER_S
        if size:
            since_us, period_us = int(self._runs[number].looked), self._interval_us
        elif number in self._starts:
            since_us, period_us = self._starts[number][1], self._timeout_us
        return after_us + period_us - (after_us - since_us) % period_us

    def _next_change_us(self, jobs: RuleJobs, row: int) -> int:
        """Return when a run changes next if nothing else does; ``NEVER_US``: it does not."""
        number, size, n_nodes = jobs.number[row], self._counts[row], self._nodes_in_sight(jobs, row)
        n_wanted, _ = self._starts.get(number, (size, 0))
        goes_on = n_nodes == n_wanted or (n_nodes == 0 and number not in self._starts)
        return NEVER_US if goes_on else self._next_turn_us(number, size, jobs.now_us)

    def _nodes_in_sight(self, jobs: RuleJobs, row: int) -> int:
        """Return the nodes that a run would want if it looked now; 0 below its minimum."""
        if self._reserves:
            return jobs.fit(row, self._cluster.reserved[jobs.number[row]])
        n_starting = sum(n_nodes for n_nodes, _ in self._starts.values())
        return jobs.fit(row, self._counts[row] + jobs.n_free(self._counts) - n_starting)

    def why(self, state: PolicyState, job_row: int) -> str:
        """Return what a run waits for, or when its group looks again."""
        number, size, least = int(state.job[job_row]), self._counts[job_row], int(state.min_nodes[job_row])
        left_s = (self._next_turn_us(number, size, state.time_us) - state.time_us) / US_PER_S
        if number in self._starts:
            return (
                f"its start waits for {self._starts[number][0]} reserved nodes, of which {self._n_free} are free: "
                f"other runs hold the others until they look again, or these are gone; it tries again in {left_s:g} s"
            )
        n_nodes = self._cluster.reserved.get(number, size + self._n_free)
        nodes = f"it has {count(n_nodes, 'node')} {'reserved' if self._reserves else 'in sight'}"
        if n_nodes < least:
            nodes += f", below its minimum of {least}" + ", and keeps what it holds" * (size > 0)
        return f"{nodes}; its group looks again in {left_s:g} s" if size else nodes

    def summary(self) -> dict[str, object]:
        """Return the node-hours that were idle, and reserved for a run that waited."""
        return {"reserved_unused_node_hours": self._unused_node_us / (3600 * US_PER_S)}
