"""Makes the bundled sample: a synthetic machine whose batch scheduler resembles Summit's, and jobs that fit it.

    python benchmarks/synthetic_sample.py [FOLDER]  # by default over the files of the package: 256 nodes, 4 days

Two streams of jobs meet on one machine. *Wide* jobs wait in a queue that never runs dry, served first come first
served: the machine drains for the one at the head, and that opens idle intervals. Jobs behind it, and a stream of
*small* jobs that follows the working day, start early where their requested time lets them (EASY backfill). Most jobs
end long before their requested time, so idle intervals remain although jobs are waiting.
"""

from __future__ import annotations

import heapq
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bfreplay.campaigns.model_families import FAMILIES, RACK_NODES, rate_samples_per_s
from bfreplay.datasets import NodeEvents, bundled, write_events, write_jobs
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import US, microseconds_of
from bfreplay.errors import InputError
from bfreplay.scalability import TabulatedCurve
from bfreplay.workload import ElasticJob, JobSet

_HOUR_S = 3_600
_ENDS, _SUBMITS, _PASS = range(3)


@dataclass(frozen=True, slots=True)
class JobStream:
    """Random jobs of one kind.

    Parameters
    ----------
    least_share, most_share, width_shape
        Width as a share of the machine: ``least * (most / least) ** (u ** width_shape)``, u uniform on [0, 1).
    requested_h
        Requested times in hours, equally likely.
    early_shape
        The job runs for its requested time x ``u ** early_shape``, 100 s at least.
    failing
        Share of jobs that fail within 60 to 288 s of their start.
    """

    least_share: float
    most_share: float
    width_shape: float
    requested_h: tuple[float, ...]
    early_shape: float
    failing: float


@dataclass(frozen=True, slots=True)
class MachineModel:
    """Parameters of the model.

    The defaults were fitted by random search to statistics of the Summit log of February 2021 (quantiles of idle
    interval lengths and of idle nodes over time, burst sizes, autocorrelation of idle nodes), for 256 nodes.

    Parameters
    ----------
    wide, small
        The two streams.
    waiting
        Wide jobs in the queue at any time.
    small_load
        Mean share of the machine that small jobs would keep busy.
    day_rhythm, peak_hour
        Small jobs arrive at ``1 + day_rhythm * cos(2 pi (hour - peak_hour) / 24)`` times their mean rate.
    backfill_depth
        Jobs of each stream that one pass of the scheduler looks at.
    pass_delay_s
        A pass comes 10 s after its cause, plus this on average (exponential).
    straggling, straggle_s
        Share of a job's nodes that are cleaned up after its end, and the longest time that takes.
    down_share
        Nodes that are down for the whole log. (Summit: 54 of 4,734 were never idle.)
    poll_s, shortest_idle_interval_s
        The log shows states at polls this far apart, without idle intervals shorter than
        ``shortest_idle_interval_s``, as Summit's.

    Raises
    ------
    InputError
        No wide job waiting, polls without distance, or no small jobs.
    """

    wide: JobStream = field(default=JobStream(0.0137, 0.94, 2.0, (0.55, 1.7, 3.4, 6.8), 0.58, 0.074))
    small: JobStream = field(default=JobStream(0.0002, 0.02, 2.4, (0.17, 0.34, 0.68), 0.58, 0.15))
    waiting: int = 35
    small_load: float = 0.0165
    day_rhythm: float = 0.45
    peak_hour: float = 15.5
    backfill_depth: int = 60
    pass_delay_s: float = 26.0
    straggling: float = 0.2
    straggle_s: float = 19.0
    down_share: float = 0.011
    poll_s: int = 10
    shortest_idle_interval_s: int = 70

    def __post_init__(self) -> None:
        for parameter, minimum in (("waiting", 1), ("poll_s", 1), ("small_load", 1e-6)):
            parameter_value = getattr(self, parameter)
            if not parameter_value >= minimum:
                problem = f"a machine cannot be simulated with {parameter} = {parameter_value}"
                raise InputError(problem, column=parameter, value=parameter_value, expected=f"{minimum} or more")


@dataclass(frozen=True, slots=True)
class _Job:
    width: int
    requested_s: int
    runs_s: int


class Scheduler:
    """Simulation of ``n_nodes`` nodes, from an empty machine at second 0 to ``end_s``.

    Parameters
    ----------
    n_nodes
        Nodes that are up, numbered from 0. Jobs get the free nodes of lowest number, so neighbours share a fate.
    model
        Parameters of the jobs.
    generator
        The only source of randomness.
    """

    def __init__(self, n_nodes: int, model: MachineModel, generator: Generator) -> None:
        self._n_nodes = n_nodes
        self._model = model
        self._rng = generator
        self._free = np.ones(n_nodes, np.bool_)
        self._n_free = n_nodes
        self._wide = [self._draw(model.wide) for _ in range(model.waiting)]
        self._small: list[_Job] = []
        self._running: dict[int, tuple[int, int]] = {}  # id -> latest end, nodes
        self._heap: list[tuple[int, int, int, _Job | NDArray[np.int64] | None]] = []
        self._ids = 0
        self._pass_due = False
        self._changes: list[tuple[int, NDArray[np.int64], bool]] = []

    def run(self, end_s: int, hour_at_0: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return every change of a node in time order: second ``(E,)``, node ``(E,)``, free afterwards ``(E,)``."""
        self._submit_small(end_s, hour_at_0)
        self._call_pass(0)
        while self._heap and self._heap[0][0] <= end_s:
            now_s, kind, event_id, payload = heapq.heappop(self._heap)
            if kind == _PASS:
                self._pass_due = False
                self._schedule(now_s)
                continue
            if isinstance(payload, _Job):
                self._small.append(payload)
            elif payload is not None:
                self._free[payload] = True
                self._n_free += len(payload)
                self._running.pop(event_id, None)
                self._changes.append((now_s, payload, True))
            self._call_pass(now_s)
        time_s = np.concatenate([np.full(len(nodes), now_s, np.int64) for now_s, nodes, _ in self._changes])
        becomes_free = np.concatenate([np.full(len(nodes), free, np.bool_) for _, nodes, free in self._changes])
        return time_s, np.concatenate([nodes for _, nodes, _ in self._changes]), becomes_free

    def _draw(self, stream: JobStream) -> _Job:
        u_width, u_time, u_early, u_fails = (float(uniform) for uniform in self._rng.random(4))
        spread = stream.most_share / stream.least_share
        share = stream.least_share * spread ** (u_width**stream.width_shape)
        limit_s = int(stream.requested_h[int(u_time * len(stream.requested_h))] * _HOUR_S)
        runs_s = max(100, int(limit_s * u_early**stream.early_shape))
        if u_fails < stream.failing:
            runs_s = 60 + int(228 * u_early**2)
        width = min(self._n_nodes, max(1, round(share * self._n_nodes)))
        return _Job(width, limit_s, min(runs_s, limit_s))

    def _submit_small(self, end_s: int, hour_at_0: float) -> None:
        """Submit small jobs: Poisson arrivals whose rate follows the day, by thinning."""
        model = self._model
        sample = [self._draw(model.small) for _ in range(4_000)]
        mean_node_s = sum(job.width * job.runs_s for job in sample) / len(sample)
        peak_rate = model.small_load * self._n_nodes / mean_node_s * (1 + model.day_rhythm)
        now_s = 0.0
        while True:
            now_s += float(self._rng.exponential(1 / peak_rate))
            if now_s >= end_s:
                return
            turn = 2 * math.pi * (hour_at_0 + now_s / _HOUR_S - model.peak_hour) / 24
            if self._rng.random() * (1 + model.day_rhythm) < 1 + model.day_rhythm * math.cos(turn):
                self._push(int(now_s), _SUBMITS, self._draw(model.small))

    def _push(self, when: int, kind: int, payload: _Job | NDArray[np.int64] | None) -> int:
        self._ids += 1
        heapq.heappush(self._heap, (when, kind, self._ids, payload))
        return self._ids

    def _call_pass(self, now_s: int) -> None:
        if not self._pass_due:
            self._pass_due = True
            self._push(now_s + 10 + int(self._rng.exponential(self._model.pass_delay_s)), _PASS, None)

    def _start(self, job: _Job, now_s: int) -> None:
        nodes = np.flatnonzero(self._free)[: job.width]
        self._free[nodes] = False
        self._n_free -= job.width
        self._changes.append((now_s, nodes, False))
        u_late, u_share = (float(uniform) for uniform in self._rng.random(2))
        on_time = job.width - int(2 * self._model.straggling * u_share * job.width)
        event_id = self._push(now_s + job.runs_s, _ENDS, nodes[:on_time])
        self._running[event_id] = (now_s + job.requested_s, job.width)
        if on_time < job.width:
            self._push(now_s + job.runs_s + 10 + int(u_late * self._model.straggle_s), _ENDS, nodes[on_time:])

    def _schedule(self, now_s: int) -> None:
        """Make one pass: the queue in order while its head fits, then EASY backfill behind the head's reservation."""
        while self._wide[0].width <= self._n_free:
            self._start(self._next_wide(0), now_s)
        if self._n_free == 0:
            return
        spare, reservation_s = self._n_free - self._wide[0].width, now_s
        for must_end, width in sorted(self._running.values()):
            if spare >= 0:
                break
            spare += width
            reservation_s = must_end
        for queue, first in ((self._wide, 1), (self._small, 0)):
            place = first
            for _ in range(min(self._model.backfill_depth, len(queue) - first)):
                job = queue[place]
                ends_in_time = now_s + job.requested_s <= reservation_s
                if job.width > self._n_free or not (ends_in_time or job.width <= spare):
                    place += 1
                    continue
                if not ends_in_time:
                    spare -= job.width
                self._start(self._next_wide(place) if queue is self._wide else queue.pop(place), now_s)

    def _next_wide(self, place: int) -> _Job:
        self._wide.append(self._draw(self._model.wide))
        return self._wide.pop(place)


DEFAULT_START = datetime(2024, 7, 1, tzinfo=UTC)
"""A Monday."""

_DAY_S = 86_400
_WARM_UP_S = _DAY_S


def synthetic_machine(
    n_nodes: int = 256,
    days: float = 4.0,
    seed: int = 0,
    start: datetime = DEFAULT_START,
    model: MachineModel | None = None,
) -> NodeEvents:
    """Return the log of a machine whose idle nodes behave like Summit's, scaled to ``n_nodes``.

    A day of simulated scheduling (see the module) goes by before the window starts. The log then shows what a poll each
    10 s sees, without idle intervals below 70 s, as the published Summit log does. The model was fitted at 256 nodes to
    the statistics of that log (4,734 nodes, 14.9 days of February 2021); none of its rows is used. Below, seed 0 over
    14.9 days at Summit's size and over 56 days at 256 nodes. Statistics that count nodes one by one do not carry over:
    256 nodes have fewer, relatively coarser bursts, and more time with none idle.

    =====================================================  ==================  ==================  ==================
    statistic                                              Summit              4,734 nodes         256 nodes
    =====================================================  ==================  ==================  ==================
    idle share of node-time, %                             8.3                 9.6                 8.7
    time without any idle node, %                          3.1                 2.5                 21.9
    idle nodes over time, 25 / 50 / 75 / 95 %, % of nodes  0.3 1.7 10.6 36.6   0.8 4.2 11.6 40.8   0.4 3.5 10.5 36.7
    idle intervals a node and day                          6.0                 6.1                 5.7
    idle interval length, 25 / 50 / 75 / 95 %, s           162 475 1397 4723   170 490 1480 5790   140 540 1680 5030
    node-hours in intervals up to 15 min / 1 h / 4 h, %    17 56 99            14 47 96            13 54 97
    events a day, 12-20 h over 0-8 h UTC                   1,603  1.9          1,350  1.7          595  1.5
    median burst, nodes joining, reclaimed                 4  3                4  4                1  1
    nodes joining in bursts above 5, 20 % of nodes, %      50 25               58 31               57 29
    nodes reclaimed in bursts above 5, 20 %, %             67 41               70 53               71 52
    neighbours within bursts, joining, reclaimed, %        91 92               96 96               87 86
    autocorrelation of idle nodes, 10 min, 1 h             0.78 0.34           0.64 0.18           0.67 0.14
    =====================================================  ==================  ==================  ==================

    Parameters
    ----------
    n_nodes
        Nodes, in racks of 16: ``r01n01``, ``r01n02``, ...
    days
        Length of the window, rounded down to whole polls.
    seed
        Same seed (and other arguments), same log, to the byte.
    start
        Start of the window, with a time zone.
    model
        Parameters of the model; ``None``: fitted to Summit.

    Raises
    ------
    InputError
        No node, no time, or a start without a time zone.
    """
    model = MachineModel() if model is None else model
    if n_nodes < 1 or days * _DAY_S < model.poll_s or start.tzinfo is None:
        raise InputError(
            "no machine can be made from these numbers",
            value={"n_nodes": n_nodes, "days": days, "start": start.isoformat()},
            expected=f"n_nodes >= 1, at least {model.poll_s} s, and a start with a time zone",
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    down = np.sort(generator.permutation(n_nodes)[: int(model.down_share * n_nodes)])
    up_nodes = np.setdiff1d(np.arange(n_nodes), down)
    window_s = int(days * _DAY_S) // model.poll_s * model.poll_s
    start = start.astimezone(UTC)
    hour_at_0 = start.hour + start.minute / 60 - _WARM_UP_S / 3_600
    changes = Scheduler(len(up_nodes), model, generator).run(_WARM_UP_S + window_s, hour_at_0)
    since_s, until_s, node = _idle_intervals(*changes, model)
    since_s -= _WARM_UP_S
    until_s -= _WARM_UP_S

    initial = np.full(n_nodes, int(NodeState.BUSY), np.int8)
    initial[down] = NodeState.DOWN
    initial[up_nodes[node[(since_s <= 0) & (until_s > 0)]]] = NodeState.IDLE
    joins = (since_s > 0) & (since_s <= window_s)
    leaves = (until_s > 0) & (until_s <= window_s)
    time_s = np.concatenate([since_s[joins], until_s[leaves]])
    row_node = up_nodes[np.concatenate([node[joins], node[leaves]])]
    state = np.repeat([int(NodeState.IDLE), int(NodeState.BUSY)], [joins.sum(), leaves.sum()])
    order = np.lexsort((row_node, time_s))
    start_us = microseconds_of(start)
    notes = {
        "generator": "bfreplay.datasets.synthetic.synthetic_machine",  # its earlier place, as in the bundled file
        "seed": seed,
        "days": days,
        "model": json.loads(json.dumps(asdict(model))),  # tuples as lists
    }
    return NodeEvents.from_arrays(
        nodes=_names(n_nodes),
        initial_state=initial,
        time_us=start_us + time_s[order] * US,
        node=row_node[order].astype(np.int32),
        state=state[order].astype(np.int8),
        window_start_us=start_us,
        window_end_us=start_us + window_s * US,
        metadata=EventsMetadata(cluster=f"synthetic-{n_nodes}", source_format="synthetic", notes=notes),
    )


def _idle_intervals(
    time_s: NDArray[np.int64], node: NDArray[np.int64], becomes_free: NDArray[np.bool_], model: MachineModel
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return begin, end and node of each idle interval as polls see it; an interval open at the end never ends."""
    order = np.argsort(node, kind="stable")
    poll_s, node, becomes_free = -(-time_s[order] // model.poll_s) * model.poll_s, node[order], becomes_free[order]
    begins = np.flatnonzero(becomes_free)
    follows = np.minimum(begins + 1, len(node) - 1)
    never = np.iinfo(np.int64).max // 2
    has_end = (follows > begins) & (node[follows] == node[begins])
    since_s, until_s = poll_s[begins], np.where(has_end, poll_s[follows], never)
    is_visible = until_s - since_s >= model.shortest_idle_interval_s
    return since_s[is_visible], until_s[is_visible], node[begins[is_visible]]


def _names(n_nodes: int) -> tuple[str, ...]:
    digits = max(2, len(str((n_nodes - 1) // RACK_NODES + 1)))
    return tuple(f"r{index // RACK_NODES + 1:0{digits}d}n{index % RACK_NODES + 1:02d}" for index in range(n_nodes))


_POINTS = (1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64)
_MAX_NODES = (8, 16, 32, 64)


def synthetic_jobs(n_jobs: int = 40, seed: int = 0, days: float = 4.0, node_hours: float = 30.0) -> JobSet:
    """Return elastic training jobs with partly non-concave curves, submitted over the first half of ``days``.

    Parameters
    ----------
    n_jobs
        Number of jobs; model families take turns.
    seed
        Same seed, same jobs.
    days
        Length of the log for which they are meant.
    node_hours
        Typical work of a job in hours of one node; each job draws 1/3 to 5/3 of it. The default 30 suits
        256 nodes with 8 % of them idle: 40 jobs need about 1,200 of 2,000 idle node-hours at perfect scaling.

    Returns
    -------
    JobSet
        Submit times relative to the start of the window, a quarter of them at the very start. Gaining nodes costs
        15-30 s, losing them 10-20 s. Each fifth job counts twice (weight 2), each eighth has a deadline.

    Raises
    ------
    InputError
        Fewer than one job, or a length or work that is not positive.
    """
    if n_jobs < 1 or not days > 0 or not node_hours > 0:
        raise InputError(
            "no jobs can be made from these numbers",
            value={"n_jobs": n_jobs, "days": days, "node_hours": node_hours},
            expected="n_jobs >= 1, days > 0 and node_hours > 0",
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    half_s = int(days * 86_400 / 2)
    at_start = n_jobs // 4
    submit_s = [0] * at_start + sorted(int(seconds) for seconds in generator.integers(0, half_s + 1, n_jobs - at_start))
    jobs = []
    for job_index in range(n_jobs):
        family = FAMILIES[job_index % len(FAMILIES)]
        max_nodes = _MAX_NODES[int(generator.integers(len(_MAX_NODES)))]
        min_nodes = int(generator.choice((1, 1, 2, 4)))
        pace = float(generator.uniform(0.7, 1.3))  # hyper-parameters change how long a step takes, not how it scales
        counts = [count for count in _POINTS if count <= max_nodes]
        rates = [round(pace * rate_samples_per_s(family, count), 1) for count in counts]
        hours = node_hours * float(generator.uniform(1 / 3, 5 / 3))
        slack = float(generator.uniform(0.3, 0.5))
        jobs.append(
            ElasticJob(
                name=f"{family.name}-{job_index:02d}",
                submit_us=submit_s[job_index] * US,
                min_nodes=min_nodes,
                max_nodes=max_nodes,
                scale_up_cost_s=float(generator.integers(15, 31)),
                scale_down_cost_s=float(generator.integers(10, 21)),
                work_samples=float(round(hours * _HOUR_S * rates[0])),
                throughput=TabulatedCurve([0, *counts], [0.0, *rates]),
                weight=2.0 if job_index % 5 == 4 else 1.0,
                deadline_us=(submit_s[job_index] + int(slack * 2 * half_s)) * US if job_index % 8 == 7 else None,
                model=family.name,
            )
        )
    return JobSet(jobs, submit_is_relative=True)


def make_sample_events() -> NodeEvents:
    """Generate the bundled log again."""
    return synthetic_machine(n_nodes=256, days=4.0, seed=0)


def make_sample_jobs() -> JobSet:
    """Generate the bundled jobs again."""
    return synthetic_jobs(n_jobs=40, seed=0, days=4.0)


def main(arguments: list[str]) -> None:
    """Write both files into the given folder, or over those of the package."""
    events_path, jobs_path = bundled.sample_events_path(), bundled.sample_jobs_path()
    if arguments:
        folder = Path(arguments[0])
        events_path, jobs_path = folder / events_path.name, folder / jobs_path.name
    write_events(make_sample_events(), events_path, overwrite=True)
    write_jobs(make_sample_jobs(), jobs_path, overwrite=True)
    for path in (events_path, jobs_path):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
