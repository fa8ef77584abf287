"""How many nodes a job, or all jobs of a model, held at any time of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.runs.explain.saved_tables import allocations_of, model_label, refuse_unknown_job
from bfreplay.runs.run_result import RunResult


@dataclass(frozen=True, slots=True, eq=False)
class NodesOverTime:
    """A step function over the window of a run.

    Parameters
    ----------
    edge_us : (T + 1,) int64
        Microseconds since the epoch, strictly increasing; the first and last are the window's.
    count : (T,) int64
        Nodes held from ``edge_us[t]`` to ``edge_us[t + 1]``; neighbours differ.
    """

    edge_us: NDArray[np.int64]
    count: NDArray[np.int64]

    def node_us(self) -> int:
        """Node time held, in node-microseconds; of nodes shared with another job all of it."""
        return int((self.count * np.diff(self.edge_us)).sum())

    def mean_in(self, edge_us: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean count in each column between neighbours of ``edge_us (C + 1,)``: shape ``(C,)``."""
        held_us = np.concatenate([[0], np.cumsum(self.count * np.diff(self.edge_us))])
        # piecewise linear, so that interpolation is exact at any time
        at_edge = np.interp(edge_us, self.edge_us, held_us)
        means: NDArray[np.float64] = np.diff(at_edge) / np.diff(edge_us)
        return means


def nodes_over_time(run: RunResult, job: str) -> NodesOverTime:
    """Nodes held by ``job`` at any time of the window, alone or shared with another job.

    Raises
    ------
    InputError
        The run has no such job.
    """
    refuse_unknown_job(run, job)
    held = allocations_of(run)
    mine = held.job == held.names.index(job) if job in held.names else np.zeros(held.job.size, dtype=bool)
    return nodes_held(held.count[mine], held.from_us[mine], held.to_us[mine], *_window(run))


def nodes_over_time_by_model(run: RunResult) -> Mapping[str, NodesOverTime]:
    """Nodes held by all jobs of each model, by the model's label in order of its first job.

    Nodes that two jobs share are counted once, with the model of the first of the two, so that all models together are
    all nodes held.
    """
    jobs = run.table("jobs")
    label_of = dict(zip(jobs["job"].to_pylist(), map(model_label, jobs["model"].to_pylist()), strict=True))
    labels = list(dict.fromkeys(label_of.values()))
    held = allocations_of(run).of_nodes
    number = np.array([labels.index(label_of[name]) for name in held.names], dtype=np.int64)
    model = number[held.job] if held.names else held.job
    window = _window(run)
    return {
        label: nodes_held(held.count[model == k], held.from_us[model == k], held.to_us[model == k], *window)
        for k, label in enumerate(labels)
    }


def _window(run: RunResult) -> tuple[int, int]:
    config = run.record.config
    return config.window_start_us, config.window_end_us


def nodes_held(
    count: NDArray[np.int64], since: NDArray[np.int64], until: NDArray[np.int64], start_us: int, end_us: int
) -> NodesOverTime:
    """Nodes held in all of A intervals together.

    Parameters
    ----------
    count, since, until : (A,) int64
        Nodes of each, and from when to when, in microseconds since the epoch, inside the window.
    start_us, end_us
        The window.
    """
    times = np.concatenate([[start_us, end_us], since, until])
    change = np.concatenate([[0, 0], count, -count])
    edge, place = np.unique(times, return_inverse=True)
    at_edge = np.zeros(edge.size, dtype=np.int64)
    np.add.at(at_edge, place, change)
    height = np.cumsum(at_edge)[:-1]
    is_new = np.append(True, height[1:] != height[:-1])
    return NodesOverTime(np.append(edge[:-1][is_new], edge[-1]), height[is_new])
