"""Header of a log and its machine: nodes of a job from its processors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.ingest.hostlists import MOST_NODES
from bfreplay.datasets.ingest.occupancy.spool import OPEN_END, JobSpool, first_of_each
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from bfreplay.wording import count

NOT_WHOLE = (
    "MaxProcs / MaxNodes is not whole, so there are nodes of several sizes: a job was given its share of all "
    "processors as nodes, rounded up"
)
PARTLY_FILLED = "jobs share nodes or fill them in part: processors were rounded up to whole nodes"

START, NODES, PROCESSORS, ZONE = "UnixStartTime", "MaxNodes", "MaxProcs", "TimeZoneString"
SHOWN = ("Computer", "Installation", "Acknowledge", "Conversion", "StartTime", "EndTime", "Preemption")
"""Keys that describe the origin of a log."""

KEYS = frozenset(
    f"{START} {NODES} {PROCESSORS} {ZONE} {' '.join(SHOWN)} Version Information MaxJobs MaxRecords TimeZone MaxRuntime "
    "MaxMemory AllowOveruse MaxQueues Queues Queue MaxPartitions Partitions Partition Note".split()
)
"""Keys of the standard, version 2.2."""

_DECIDING = (START, NODES, PROCESSORS)
_PAIR = re.compile(r"\s*;\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
_NUMBER = re.compile(r"(-?\d{1,12})(?:[ \t(][ -~]*)?", re.ASCII)
_CLEANED = re.compile(r"\bcleaned version", re.IGNORECASE)
_SUBMIT_IS_START = re.compile(
    r"\bsubmi(t|ttal|ssion)( times?| field| column)?( (is|are|was|were|equals?|holds?|contains?)"
    r"( (actually|really|in fact|in reality|simply|all|the|same as|equal to|identical to|set to|taken as))*| ?=)"
    r" ?start(ing)?( times?)?(?= of (the |each |every )?jobs?\b| ?[.,;:()]|$)"
    r"|\bstart(ing)? times? (is|are|was|were) (used|given|taken) (as|for|instead of) (the )?submi",
    re.IGNORECASE,
)
_REMOVED = re.compile(r"\((\d{1,12}) jobs? removed\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine of ``n_nodes``, of which ``nodes`` have ``processors`` processors together.

    Nodes of one size: ``nodes`` is 1. Of several sizes: the mean size as a fraction in lowest terms. A job then gets
    ``ceil(p * nodes / processors)`` nodes, so that all processors are all nodes and the share of the machine that jobs
    hold stays right; with the mean rounded down instead, the nodes of CEA Curie (MaxProcs / MaxNodes = 16.83) would be
    overbooked for 4 % of its time, though its processors never are.
    """

    n_nodes: int
    processors: int
    nodes: int
    source: str

    def nodes_of(self, processors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nodes of jobs with these positive numbers of processors, ``(J,)``."""
        return -(-processors * self.nodes // self.processors)

    def shares_of(self, processors: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the nodes that these processors are, not rounded up, ``(J,)``."""
        return processors.astype(np.float64) * self.nodes / self.processors

    @property
    def rounding_warning(self) -> str:
        """Warning about jobs that do not fill whole nodes."""
        return NOT_WHOLE if self.nodes > 1 else PARTLY_FILLED

    def has_partial_node(self, processors: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for jobs that do not fill whole nodes, ``(J,)``."""
        remainder: NDArray[np.bool_] = processors * self.nodes % self.processors != 0
        return remainder


def machine_of(header: Header, options: ReadOptions, file_name: str, usage: Callable[[], tuple[int, float]]) -> Machine:
    """Return the machine of the options, else of the header.

    Parameters
    ----------
    header, options, file_name
        Inputs of the log.
    usage
        Returns the most processors in use at once and their idle share, for the message.

    Raises
    ------
    InputError
        Neither has the number or the size of the nodes.
    """
    per_node = options.procs_per_node
    processors = header.number(PROCESSORS)
    n_nodes = header.number(NODES) if options.n_nodes is None else options.n_nodes
    if n_nodes is None and per_node is not None and processors is not None:
        n_nodes = -(-processors // per_node)
    if n_nodes is None or (per_node is None and processors is None):
        raise _unknown(header, file_name, *usage())
    if not 0 < n_nodes <= MOST_NODES or (per_node is None and not n_nodes <= (processors or 0)):
        raise InputError(
            "the number of nodes cannot be right",
            file=file_name,
            column=NODES,
            value=f"{n_nodes} nodes, MaxProcs {processors}",
            expected=f"1 to {MOST_NODES:,} nodes, and at least one processor in each",
            fix="give the machine: --nodes N --procs-per-node P",
        )
    if per_node is not None:
        return Machine(n_nodes, per_node, 1, f"{per_node}, as given")
    assert processors is not None
    common = gcd(processors, n_nodes)
    source = f"{processors / n_nodes:.4g} (MaxProcs {processors:,} / {n_nodes:,} nodes)"
    return Machine(n_nodes, processors // common, n_nodes // common, source)


def _unknown(header: Header, file_name: str, peak: int, idle: float) -> InputError:
    header_texts = [f"{key} {header.values[key]}" for key in (NODES, PROCESSORS) if key in header.values]
    return InputError(
        "the log does not have the number of nodes and of processors per node",
        file=file_name,
        value=", ".join(header_texts) or "no MaxNodes, no MaxProcs",
        expected=f"the machine; its log has at most {count(peak, 'processor')} in use at once (a machine of just these "
        f"would be {100 * idle:.0f} % idle over the whole log; it may be smaller, if the log shows too many in use)",
        fix="give it as its site describes it: --nodes N --procs-per-node P",
    )


def idle_share(jobs: JobSpool, number: int) -> float:
    """Return the share of ``number`` processors that is idle, from the first start to the last end of the jobs."""
    node_time_us, first_us, last_us = 0.0, OPEN_END, -OPEN_END
    for job_rows, _ in jobs.slices():
        node_time_us += float((job_rows.count * (job_rows.end_us - job_rows.start_us).astype(np.float64)).sum())
        first_us, last_us = min(first_us, int(job_rows.start_us[0])), max(last_us, int(job_rows.end_us.max()))
    return 1 - node_time_us / (number * (last_us - first_us)) if number and last_us > first_us else 0.0


def most_at_once(jobs: JobSpool) -> int:
    """Return the largest sum of counts of jobs that run at the same time."""
    peak = 0
    end_times_us = node_counts = np.empty(0, np.int64)
    for job_rows, following in jobs.slices():
        end_order = np.argsort(end_times_us := np.concatenate([end_times_us, job_rows.end_us]), kind="stable")
        end_times_us, node_counts = end_times_us[end_order], np.concatenate([node_counts, job_rows.count])[end_order]
        cumulative_ends = first_of_each(node_counts)
        n_running = int(cumulative_ends[-1] - job_rows.count.sum())
        cumulative_starts = n_running + np.cumsum(job_rows.count)
        # of several with one start, the last one sees all of them
        running = cumulative_starts - cumulative_ends[np.searchsorted(end_times_us, job_rows.start_us, side="right")]
        peak = max(peak, int(running.max()))
        end_times_us, node_counts = end_times_us[end_times_us > following], node_counts[end_times_us > following]
    return peak


def most_in_use(jobs: JobSpool) -> tuple[int, float]:
    """Return the most processors in use at once by jobs of so many each, and their mean idle share."""
    peak = most_at_once(jobs)
    return peak, idle_share(jobs, peak)


def key_and_value(comment: str) -> tuple[str, str] | None:
    """Return the pair in a comment, ``None`` if the comment has none of the standard's keys."""
    pair_match = _PAIR.fullmatch(comment)
    return (pair_match[1], pair_match[2]) if pair_match is not None and pair_match[1] in KEYS else None


class Header:
    """Header of a file, from its comments.

    Parameters
    ----------
    file_name
        Name for messages.

    Attributes
    ----------
    values
        Texts by key; the first of several.
    is_cleaned, removed_jobs
        True for a cleaned version according to the comments, and the number of removed jobs.
    """

    def __init__(self, file_name: str) -> None:
        self._file = file_name
        self._lines: dict[str, int] = {}
        self.values: dict[str, str] = {}
        self.is_cleaned = False
        self.removed_jobs = 0
        self._notes: list[str] = []

    def add(self, line_number: int, comment: bytes, after_jobs: bool) -> None:
        """Add a comment.

        Raises
        ------
        InputError
            A value that the times or nodes of jobs depend on appears, or changes, after the first job.
        """
        comment_text = comment.decode("utf-8", "surrogateescape")
        for removal in _REMOVED.findall(comment_text):
            self.removed_jobs += int(removal)
        self.is_cleaned |= _CLEANED.search(comment_text) is not None
        pair = key_and_value(comment_text)
        note_words = " ".join(comment_text.partition(":" if pair else ";")[2].split())
        if not after_jobs and (pair or not self._notes):
            self._notes.append(note_words)
        elif not after_jobs:  # a note may be over several lines
            self._notes[-1] += f" {note_words}"
        if pair is None:
            return
        key, key_value = pair
        if key in _DECIDING and after_jobs and self.values.get(key) != key_value:
            raise InputError(
                f"{key} comes after the first job with another value than before",
                file=self._file,
                row=f"line {line_number}",
                column=key,
                value=key_value,
                expected=f"one {key}, before the jobs"
                + (f" (line {self._lines[key]} has {self.values[key]!r})" if key in self.values else ""),
                fix="if two logs were joined, give them as two files; otherwise move the comment to the top",
            )
        if key not in self.values:
            self.values[key], self._lines[key] = key_value, line_number

    @property
    def submit_is_start(self) -> str:
        """Note that submit times are times of start; empty without one."""
        return next((note.strip() for note in self._notes if _SUBMIT_IS_START.search(note)), "")

    def number(self, key: str) -> int | None:
        """Return the number at the start of a value (``338 (batch partition; 512 total)``), ``None`` without the key.

        Raises
        ------
        InputError
            The value does not begin with a whole number.
        """
        value_text = self.values.get(key)
        if value_text is None:
            return None
        number_match = _NUMBER.fullmatch(value_text)
        if number_match is None:
            raise InputError(
                f"{key} is not a whole number",
                file=self._file,
                row=f"line {self._lines[key]}",
                column=key,
                value=value_text,
                expected="a whole number, such as 144 or 338 (batch partition; 512 total)",
                fix="correct the comment, or delete it",
            )
        return int(number_match[1])
