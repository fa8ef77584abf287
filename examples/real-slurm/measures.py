"""Rates and pauses of a training, measured from the samples that its runs report."""

import math
from dataclasses import dataclass, field, replace
from statistics import mean

import numpy as np

from bfreplay import ElasticJob, TabulatedCurve

SHORTEST_S = 2.0  # of reports, to give a rate


@dataclass
class Run:
    """One run: the ranks of a training from a start to the next stop."""

    n_nodes: int
    began_at: float  # when it was decided: from then on its nodes are its own
    began_with: float  # samples then, those of a step that was under way included
    is_restart: bool  # else it had no nodes before
    first: tuple[float, float] | None = None  # time and samples after the first step
    last: tuple[float, float] | None = None  # at the last report before the stop
    is_measured: bool = False

    def rate(self) -> float:
        """Return the samples per second from the first step to the stop; NaN if that was too short."""
        if self.first is None or self.last is None or self.last[0] - self.first[0] < SHORTEST_S:
            return math.nan
        return (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])

    def pause_s(self, rate: float) -> float:
        """Return the seconds without progress at the beginning, for a rate that it has afterwards."""
        at, samples = self.first or (math.nan, math.nan)
        return at - self.began_at - (samples - self.began_with) / rate


@dataclass
class Meter:
    """Measured rates, starts and restarts of one training, by its number of nodes."""

    rates: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # samples, seconds
    starts: dict[int, list[float]] = field(default_factory=dict)
    restarts: dict[int, list[float]] = field(default_factory=dict)
    run: Run | None = None

    def begin(self, run: Run) -> None:
        """Note that a run begins."""
        self.run = run

    def report(self, at: float, samples: float) -> None:
        """Note the samples at a time of the run."""
        if self.run is not None:
            self.run.first = self.run.first or (at, samples)
            self.run.last = at, samples

    def end(self, *, goes_on: bool = False) -> bool:
        """Note that the run is to stop, or is measured as it goes on; return whether it gave a measurement."""
        run = self.run
        if not goes_on:
            self.run = None
        if run is None or not (rate := run.rate()) > 0:
            return False
        self.rates.setdefault(run.n_nodes, []).append((run.last[1] - run.first[1], run.last[0] - run.first[0]))
        if not run.is_measured:
            pauses = self.restarts if run.is_restart else self.starts
            pauses.setdefault(run.n_nodes, []).append(max(run.pause_s(rate), 0.0))
        run.is_measured, run.first = True, run.last
        return True

    def applied_to(self, job: ElasticJob) -> ElasticJob:
        """Return a job with what was measured; what was not is as it was, in proportion to the measured rates."""
        counts = np.arange(job.max_nodes + 1)
        rates = job.throughput.table(job.max_nodes).copy()
        measured = {n: sum(s for s, _ in parts) / sum(t for _, t in parts) for n, parts in sorted(self.rates.items())}
        if measured:
            ratios = [rate / rates[n] for n, rate in measured.items()]
            rates *= np.interp(counts, list(measured), ratios)
        restart = costs_after(self.restarts, job.scale_up_cost_s)
        return replace(
            job,
            throughput=TabulatedCurve(counts, rates),
            start_cost_s=costs_after(self.starts, job.start_cost_s),
            scale_up_cost_s=restart,
            scale_down_cost_s=restart,
        )


def costs_after(pauses: dict[int, list[float]], assumed: object) -> object:
    """Return seconds by the count after a change: the mean of those that were measured, down to the next lower one."""
    if not pauses:
        return assumed
    by_count = {n: round(mean(seconds), 3) for n, seconds in sorted(pauses.items())}
    return {0: next(iter(by_count.values())), **by_count}
