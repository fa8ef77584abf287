"""Synthetic machine for trials, teaching and tests, without data of any site."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.events import NodeEvents
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.synthetic.elastic_jobs import RACK_NODES
from bfreplay.datasets.synthetic.scheduler import MachineModel, Scheduler
from bfreplay.datasets.times import US
from bfreplay.errors import InputError

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

    A day of simulated scheduling (`bfreplay.datasets.synthetic.scheduler`) goes by before the window starts. The log
    then shows what a poll each 10 s sees, without idle intervals below 70 s, as the published Summit log does. The
    model was fitted at 256 nodes to the statistics of that log (4,734 nodes, 14.9 days of February 2021); none of its
    rows is used. Below, seed 0 over 14.9 days at Summit's size and over 56 days at 256 nodes. Statistics that count
    nodes one by one do not carry over: 256 nodes have fewer, relatively coarser bursts, and more time with none idle.

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
    rng = np.random.Generator(np.random.PCG64(seed))
    down = np.sort(rng.permutation(n_nodes)[: int(model.down_share * n_nodes)])
    up = np.setdiff1d(np.arange(n_nodes), down)
    window_s = int(days * _DAY_S) // model.poll_s * model.poll_s
    start = start.astimezone(UTC)
    hour_at_0 = start.hour + start.minute / 60 - _WARM_UP_S / 3_600
    changes = Scheduler(len(up), model, rng).run(_WARM_UP_S + window_s, hour_at_0)
    since_s, until_s, node = _idle_intervals(*changes, model)
    since_s -= _WARM_UP_S
    until_s -= _WARM_UP_S

    initial = np.full(n_nodes, int(NodeState.BUSY), np.int8)
    initial[down] = NodeState.DOWN
    initial[up[node[(since_s <= 0) & (until_s > 0)]]] = NodeState.IDLE
    joins = (since_s > 0) & (since_s <= window_s)
    leaves = (until_s > 0) & (until_s <= window_s)
    time_s = np.concatenate([since_s[joins], until_s[leaves]])
    row_node = up[np.concatenate([node[joins], node[leaves]])]
    state = np.repeat([int(NodeState.IDLE), int(NodeState.BUSY)], [joins.sum(), leaves.sum()])
    order = np.lexsort((row_node, time_s))
    start_us = (start - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return NodeEvents.from_arrays(
        nodes=_names(n_nodes),
        initial_state=initial,
        time_us=start_us + time_s[order] * US,
        node=row_node[order].astype(np.int32),
        state=state[order].astype(np.int8),
        window_start_us=start_us,
        window_end_us=start_us + window_s * US,
        metadata=EventsMetadata(
            cluster=f"synthetic-{n_nodes}",
            source_format="synthetic",
            notes={
                "generator": "bfreplay.datasets.synthetic.synthetic_machine",
                "seed": seed,
                "days": days,
                "model": json.loads(json.dumps(asdict(model))),  # tuples as lists
            },
        ),
    )


def _idle_intervals(
    time_s: NDArray[np.int64], node: NDArray[np.int64], freed: NDArray[np.bool_], model: MachineModel
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return begin, end and node of each idle interval as polls see it; an interval open at the end never ends."""
    order = np.argsort(node, kind="stable")
    seen_s, node, freed = -(-time_s[order] // model.poll_s) * model.poll_s, node[order], freed[order]
    begins = np.flatnonzero(freed)
    follows = np.minimum(begins + 1, len(node) - 1)
    never = np.iinfo(np.int64).max // 2
    closed = (follows > begins) & (node[follows] == node[begins])
    since_s, until_s = seen_s[begins], np.where(closed, seen_s[follows], never)
    shown = until_s - since_s >= model.shortest_idle_interval_s
    return since_s[shown], until_s[shown], node[begins[shown]]


def _names(n_nodes: int) -> tuple[str, ...]:
    digits = max(2, len(str((n_nodes - 1) // RACK_NODES + 1)))
    return tuple(f"r{i // RACK_NODES + 1:0{digits}d}n{i % RACK_NODES + 1:02d}" for i in range(n_nodes))
