"""How many nodes a job held, from how many processors it held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets.occupancy.spool import OPEN_END, JobSpool
from bfreplay.datasets.scheduler_logs.hostlists import MOST_NODES
from bfreplay.datasets.scheduler_logs.options import ReadOptions
from bfreplay.datasets.scheduler_logs.swf.header import NODES, PROCESSORS, Header
from bfreplay.errors import InputError
from bfreplay.wording import count

NOT_WHOLE = (
    "MaxProcs / MaxNodes is not whole, so there are nodes of several sizes: a job was given its share of all "
    "processors as nodes, rounded up"
)
PARTLY_FILLED = "jobs share nodes or fill them in part: processors were rounded up to whole nodes"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of ``n_nodes``, of which ``nodes`` have ``processors`` processors together.

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
        held: NDArray[np.int64] = -(-processors * self.nodes // self.processors)
        return held

    def part_filled(self, processors: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the jobs do not fill whole nodes, ``(J,)``."""
        rest: NDArray[np.bool_] = processors * self.nodes % self.processors != 0
        return rest


def machine_of(header: Header, options: ReadOptions, file: str, use: Callable[[], tuple[int, float]]) -> Machine:
    """Return the machine that the options or else the header tell of.

    Parameters
    ----------
    header, options, file
        Of the log.
    use
        Gives the most processors that were in use at once, and the share of these that is idle, for the message.

    Raises
    ------
    InputError
        Neither says how many nodes there are, or how large they are.
    """
    for name, value in (("n_nodes", options.n_nodes), ("procs_per_node", options.procs_per_node)):
        if value is not None:
            checks.whole(name, value, 1)
    per_node = options.procs_per_node
    processors = header.number(PROCESSORS)
    n_nodes = header.number(NODES) if options.n_nodes is None else options.n_nodes
    if n_nodes is None and per_node is not None and processors is not None:
        n_nodes = -(-processors // per_node)
    if n_nodes is None or (per_node is None and processors is None):
        raise _unknown(header, file, *use())
    if not 0 < n_nodes <= MOST_NODES or (per_node is None and not n_nodes <= (processors or 0)):
        raise InputError(
            "the number of nodes cannot be right",
            file=file,
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


def _unknown(header: Header, file: str, peak: int, idle: float) -> InputError:
    found = [f"{key} {header.values[key]}" for key in (NODES, PROCESSORS) if key in header.values]
    return InputError(
        "the log does not say how many nodes the machine has and how many processors each has",
        file=file,
        value=", ".join(found) or "no MaxNodes, no MaxProcs",
        expected=f"the machine; its log has at most {count(peak, 'processor')} in use at once (a machine of just these "
        f"would be {idle:.0%} idle over the whole log; it may be smaller, where logs show more in use than there is)",
        fix="give it as its site describes it: --nodes N --procs-per-node P",
    )


def idle_share(jobs: JobSpool, n: int) -> float:
    """Return the share of ``n`` processors that is idle, from the first start to the last end of the jobs."""
    used_us, first_us, last_us = 0.0, OPEN_END, -OPEN_END
    for rows, _ in jobs.slices():
        used_us += float((rows.count * (rows.end_us - rows.start_us).astype(np.float64)).sum())
        first_us, last_us = min(first_us, int(rows.start_us[0])), max(last_us, int(rows.end_us.max()))
    return 1 - used_us / (n * (last_us - first_us)) if n and last_us > first_us else 0.0


def most_at_once(jobs: JobSpool) -> int:
    """Return the largest sum of counts of jobs that run at the same time."""
    most = 0
    end = count = np.empty(0, np.int64)
    for rows, following in jobs.slices():
        order = np.argsort(end := np.concatenate([end, rows.end_us]), kind="stable")
        end, count = end[order], np.concatenate([count, rows.count])[order]
        ended = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        before = int(ended[-1] - rows.count.sum())
        started = before + np.cumsum(rows.count)
        # several of one start: the last of them sees all, and those before it see less
        running = started - ended[np.searchsorted(end, rows.start_us, side="right")]
        most = max(most, int(running.max()))
        end, count = end[end > following], count[end > following]
    return most
