"""Rows of the picture of jobs over time: a row a job, or jobs one after another where there are many."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.runs.explain.saved_tables import Allocations, SavedAllocations
from bfreplay.runs.step_functions import StepParts, StepSeries

MOST_ROWS = 100
"""More jobs than that share rows."""
COLUMNS = 480
"""Of a picture."""
MOST_STEPS = 160_000
"""That a page holds of all rows together; beyond, rows with more than their part are given in columns."""
FEWEST_COLUMNS = 400
_LONGEST_LABEL = 30
_Places = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class JobRow:
    """One row.

    Parameters
    ----------
    label
        Name of the job; number of a row that jobs share.
    jobs : (K,)
        Names of its jobs, one after another.
    since_us : (K,) int64
        First time at which each held a node.
    nodes
        Nodes held by the jobs of the row.
    at_once
        Most jobs that may hold nodes in this row at once.
    places
        Start time and words of each change of node type or sharing; empty for nodes that are all alike and not shared,
        and in rows of several jobs at once.
    """

    label: str
    jobs: tuple[str, ...]
    since_us: NDArray[np.int64]
    nodes: StepSeries
    at_once: int = 1
    places: tuple[tuple[int, str], ...] = ()


def rows_of(
    allocations: Allocations | SavedAllocations,
    models: Sequence[tuple[str, str | None]],
    start_us: int,
    end_us: int,
    most_rows: int = MOST_ROWS,
) -> tuple[JobRow, ...]:
    """Rows of the jobs that held nodes.

    Parameters
    ----------
    allocations
        Allocations.
    models
        Jobs and their models in order of admission, which is that of the rows.
    start_us, end_us
        Span of the rows, in microseconds since the epoch.
    most_rows
        Up to this number, each job has its own row. More jobs share rows: each takes the first row that is free from
        its first to its last node. If these rows are too many as well, neighbouring rows are added up.
    """
    first_us, last_us = np.full(len(allocations.names), end_us), np.full(len(allocations.names), start_us)
    for _, _, allocations_of_part in allocations.parts(start_us, end_us):
        np.minimum.at(first_us, allocations_of_part.job, allocations_of_part.from_us)
        np.maximum.at(last_us, allocations_of_part.job, allocations_of_part.to_us)
    number = {name: row_number for row_number, name in enumerate(allocations.names)}
    shown_jobs = [(job, model) for job, model in models if job in number and first_us[number[job]] < end_us]
    numbers = np.array([number[name] for name, _ in shown_jobs], dtype=np.int64)
    shares = len(shown_jobs) > most_rows
    places = _lanes(first_us[numbers], last_us[numbers]) if shares else np.arange(len(shown_jobs))
    n_lanes = int(places.max(initial=-1)) + 1
    at_once = max(1, -(-n_lanes // most_rows))
    places = places // at_once
    row_of_job = np.full(len(allocations.names), -1)
    row_of_job[numbers] = places
    n_rows = -(-n_lanes // at_once)
    nodes, places_of_row = _nodes_of_rows(allocations, row_of_job, n_rows, at_once, start_us, end_us)
    row_labels = [f"row {row_number + 1}" for row_number in range(n_rows)] if shares else labels_of_jobs(shown_jobs)
    rows = []
    for row_number, label in enumerate(row_labels):
        members = numbers[places == row_number]
        members = members[np.argsort(first_us[members], kind="stable")]
        names = tuple(allocations.names[member] for member in members)
        lanes = min(at_once, n_lanes - row_number * at_once)
        rows.append(
            JobRow(label, names, first_us[members], nodes[row_number].series(), lanes, places_of_row[row_number])
        )
    return tuple(rows)


def _nodes_of_rows(
    allocations: Allocations | SavedAllocations,
    row_of_job: NDArray[np.int64],
    n_rows: int,
    at_once: int,
    start_us: int,
    end_us: int,
) -> tuple[list[StepParts], list[_Places]]:
    """Return the nodes of each row, and where they are if it has one job at a time."""
    columns = COLUMNS, max(FEWEST_COLUMNS, MOST_STEPS // max(1, n_rows))
    nodes = [StepParts(start_us, end_us, *columns) for _ in range(n_rows)]
    places: list[_Places] = [()] * n_rows
    with_places = at_once == 1 and has_places(allocations)
    for since_us, until_us, allocations_of_part in allocations.parts(start_us, end_us):
        rows_of_intervals = row_of_job[allocations_of_part.job]
        for row_number in range(n_rows):
            row_allocations = allocations_of_part.where(rows_of_intervals == row_number)
            nodes[row_number].add(*row_allocations.nodes_over_time(since_us, until_us))
            if with_places:
                places[row_number] = _changes((*_places(row_allocations), *places[row_number]))
        if sum(of_row.n_steps for of_row in nodes) > MOST_STEPS:
            for of_row in nodes:
                of_row.shrink()
    return nodes, places


def has_places(allocations: Allocations | SavedAllocations) -> bool:
    """Return whether nodes have types, or are shared."""
    return allocations.type_names not in ((), (ANY_TYPE,)) or allocations.is_shared


def _places(allocations: Allocations) -> _Places:
    """Start of each interval, in order, with type of its nodes, and sharing."""
    place_words: list[tuple[int, str]] = []
    for index in np.argsort(allocations.from_us, kind="stable").tolist():
        type_name = allocations.type_names[allocations.node_type[index]]
        kind = "nodes" if type_name == ANY_TYPE else type_name
        place_words.append((int(allocations.from_us[index]), f"{kind}, shared" if allocations.sharing[index] else kind))
    return tuple(place_words)


def _changes(places: _Places) -> _Places:
    """Return the places whose words differ from those before."""
    words_before = (None, *(place_words for _, place_words in places))
    return tuple(place for place, place_words in zip(places, words_before, strict=False) if place[1] != place_words)


def most_of_a_job(allocations: Allocations) -> int:
    """Most nodes that one job held at once."""
    count_changes = np.concatenate([allocations.count, -allocations.count])
    time_us = np.concatenate([allocations.from_us, allocations.to_us])
    # job by job, what is given back before what is taken; each job ends with none
    time_order = np.lexsort((count_changes, time_us, np.concatenate([allocations.job, allocations.job])))
    return int(np.cumsum(count_changes[time_order]).max(initial=0))


def labels_of_jobs(jobs: Iterable[tuple[str, str | None]]) -> list[str]:
    """``job (model)`` of each, short and unique; without the model if it is part of the job's name."""
    labels: list[str] = []
    n_of_label: dict[str, int] = {}
    for job_name, model in jobs:
        job_label = shorten(job_name if not model or model.lower() in job_name.lower() else f"{job_name} ({model})")
        n_of_label[job_label] = n_of_label.get(job_label, 0) + 1
        labels.append(job_label if n_of_label[job_label] == 1 else f"{job_label} #{n_of_label[job_label]}")
    return labels


def shorten(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Shorten to at most ``longest`` characters in the middle, as names differ at their ends."""
    if len(text) <= longest:
        return text
    n_first = (longest - 1) // 2
    return f"{text[:n_first]}…{text[len(text) - (longest - 1 - n_first) :]}"


def _lanes(first_us: NDArray[np.int64], last_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of each job (J,): the lowest one that is free at its start."""
    lane_of_job = np.zeros(first_us.size, dtype=np.int64)
    free_lanes: list[int] = []
    busy_lanes: list[tuple[int, int]] = []  # until when, lane
    for job_index in np.argsort(first_us, kind="stable").tolist():
        while busy_lanes and busy_lanes[0][0] <= first_us[job_index]:
            heapq.heappush(free_lanes, heapq.heappop(busy_lanes)[1])
        lane_of_job[job_index] = heapq.heappop(free_lanes) if free_lanes else len(busy_lanes)
        heapq.heappush(busy_lanes, (int(last_us[job_index]), int(lane_of_job[job_index])))
    return lane_of_job
