"""Number of nodes of a job, or of all jobs of a model, over the time of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.runs.explain.saved_allocations import SavedAllocations, allocations_of
from bfreplay.runs.explain.saved_tables import model_label, refuse_unknown_job
from bfreplay.runs.run_result import RunResult


@dataclass(frozen=True, slots=True, eq=False)
class NodesOverTime:
    """A step function over the window of a run.

    Parameters
    ----------
    edge_us : (T + 1,) int64
        Microseconds since the epoch, strictly increasing, from the start to the end of the window.
    count : (T,) int64
        Nodes held from ``edge_us[t]`` to ``edge_us[t + 1]``; neighbours differ.
    """

    edge_us: NDArray[np.int64]
    count: NDArray[np.int64]

    def node_us(self) -> int:
        """Return the node time in node-microseconds, that of shared nodes in full."""
        return int((self.count * np.diff(self.edge_us)).sum())

    def mean_in(self, edge_us: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean count in each column between neighbours of ``edge_us (C + 1,)``: shape ``(C,)``."""
        held_us = np.concatenate([[0], np.cumsum(self.count * np.diff(self.edge_us))])
        # piecewise linear, so that interpolation is exact at any time
        at_edge = np.interp(edge_us, self.edge_us, held_us)
        means: NDArray[np.float64] = np.diff(at_edge) / np.diff(edge_us)
        return means


def nodes_over_time(run: RunResult, job: str) -> NodesOverTime:
    """Return the nodes of ``job`` over the window, its own and shared ones.

    Raises
    ------
    InputError
        The run has no such job.
    """
    refuse_unknown_job(run, job)
    saved = SavedAllocations.of(run)
    number = saved.names.index(job) if job in saved.names else -1
    first, *others = (rows.where(rows.job == number) for rows in saved.batches())
    held = first.and_of(others)
    return sum_intervals(held.count, held.from_us, held.to_us, *_window(run))


def nodes_over_time_by_model(run: RunResult) -> Mapping[str, NodesOverTime]:
    """Return the nodes of all jobs of each model, by the model's label in order of its first job.

    Nodes that two jobs share count once, for the model of the first of the two, so that the models add up to all
    allocated nodes.
    """
    jobs = run.table("jobs")
    label_of = dict(zip(jobs["job"].to_pylist(), map(model_label, jobs["model"].to_pylist()), strict=True))
    labels = list(dict.fromkeys(label_of.values()))
    held = allocations_of(run).of_nodes
    number = np.array([labels.index(label_of[name]) for name in held.names], dtype=np.int64)
    model = number[held.job] if held.names else held.job
    window = _window(run)
    return {
        label: sum_intervals(held.count[model == k], held.from_us[model == k], held.to_us[model == k], *window)
        for k, label in enumerate(labels)
    }


def _window(run: RunResult) -> tuple[int, int]:
    config = run.record.config
    return config.window_start_us, config.window_end_us


def sum_intervals(
    count: NDArray[np.int64], since: NDArray[np.int64], until: NDArray[np.int64], start_us: int, end_us: int
) -> NodesOverTime:
    """Return the nodes of A intervals together over time.

    Parameters
    ----------
    count, since, until : (A,) int64
        Nodes, start and end of each interval, in microseconds since the epoch, inside the window.
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
