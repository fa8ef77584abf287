"""The log of a pilot's run: read and checked, with the comings and goings of its workers and the runs of its jobs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from bfreplay import InputError, JobSet
from bfreplay.workload import ElasticJob
from bfreplay.workload.change_costs import seconds_at

NUMBER = (int, float)
FIELDS: dict[str, dict[str, Any]] = {
    "begin": {"nodes": list, "jobs": list, "t_fwd_s": NUMBER, "settle_s": NUMBER},
    "join": {"node": str},
    "leaving": {"node": str},
    "gone": {"node": str},
    "decision": {"time_us": int, "counts": dict, "nodes": dict},
    "start": {"job": str, "run": int, "nodes": list},
    "stop": {"job": str, "run": int},
    "samples": {"job": str, "run": int, "samples": NUMBER, "at": NUMBER},
    "closing": {},
    "end": {"samples": dict},
}
"""What the analysis needs of each kind of line; other lines may be there and are not read."""


class Taken(NamedTuple):
    """A decision of the session: when it was to hold, when it was carried out, what was decided, what it got."""

    session_us: int
    carried_out_us: int
    counts: dict[str, int]
    nodes: dict[str, list[str]]


@dataclass(slots=True)
class Run:
    """A run of a job: from its start on some nodes to its end, with its progress.

    Parameters
    ----------
    kind
        Of its start: ``start`` from no nodes, ``up`` or ``down`` from others.
    start_s
        When the pilot started its ranks.
    since_s
        Since when the job made nothing: its last progress before, or the decision that gave it nodes where it had none.
    highest, resumed
        Samples before: the highest that were reported, and those of the last checkpoint.
    reports
        Time and samples of each report that shows progress.
    """

    job: str
    number: int
    n_nodes: int
    kind: str
    start_s: float
    since_s: float
    highest: float
    resumed: float
    reports: list[tuple[float, float]] = field(default_factory=list)

    def stood_still_s(self, rate: float) -> float:
        """Time without progress before the work of its first report began, at this rate."""
        at_s, samples = self.reports[0]
        return at_s - (samples - self.resumed) / rate - self.since_s

    @property
    def cost_of_start(self) -> str:
        """Name of the cost of its start, in a file of jobs."""
        return {"start": "start_cost_s", "up": "scale_up_cost_s", "down": "scale_down_cost_s"}[self.kind]


class Back(NamedTuple):
    """A start at which progress went back: by how many samples, and by how many it may."""

    job: str
    number: int
    samples: float
    allowed: float


class PilotLog:
    """The lines of ``log.jsonl``, in the order in which the pilot wrote them.

    Raises
    ------
    InputError
        A line cannot be read, or misses a field; or the log does not begin with ``begin`` and end with ``end``.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        with file.open(encoding="utf-8", errors="replace") as lines:
            self.entries = [self._entry(number, line) for number, line in enumerate(lines, 1)]
        for place, entry in (("first", self.entries[:1]), ("last", self.entries[-1:])):
            wanted = "begin" if place == "first" else "end"
            if not entry or entry[0]["ev"] != wanted:
                raise InputError(
                    f"the {place} line of the log is another one",
                    file=file,
                    expected=f'a line with "ev": "{wanted}"',
                    fix="use the log of a pilot that has ended by itself, not one that was killed or still runs",
                )
        self.begin, self.end = self.entries[0], self.entries[-1]
        self.jobs: list[str] = self.begin["jobs"]
        for number, entry in enumerate(self.entries, 1):
            for key, names in (("job", self.jobs), ("node", self.begin["nodes"])):
                if key in entry and entry[key] not in names:
                    raise self._broken(number, key, entry[key], f"one of those in the first line: {', '.join(names)}")
        for job in self.jobs:
            if not isinstance(self.end["samples"].get(job), NUMBER):
                raise self._broken(len(self.entries), "samples", self.end["samples"], f"a number for {job}")

    def _broken(self, number: int, key: str | None, value: object, expected: str) -> InputError:
        problem = "a line of the pilot's log cannot be used"
        return InputError(problem, file=self.file, row=f"line {number}", column=key, value=value, expected=expected)

    def _entry(self, number: int, line: str) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            raise self._broken(number, None, line.rstrip("\n"), 'JSON with the keys "t" and "ev"')
        for key, kind in ({"t": NUMBER, "ev": str} | FIELDS.get(str(entry.get("ev")), {})).items():
            value = entry.get(key)
            is_number = not isinstance(value, float) or math.isfinite(value)
            if not isinstance(value, kind) or isinstance(value, bool) or not is_number:
                word = "a number" if kind == NUMBER else f"a value of type {kind.__name__}"
                raise self._broken(number, key, value, word)
        return entry

    def of(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of some kinds."""
        return (entry for entry in self.entries if entry["ev"] in kinds)

    @property
    def window_us(self) -> tuple[int, int]:
        """Begin, and the time at which the pilot let its jobs stop for good."""
        return round(self.begin["t"] * 1e6), round(next(self.of("closing", "end"))["t"] * 1e6)

    @property
    def trained(self) -> dict[str, float]:
        """Samples of each job that were made in this time."""
        before = self.begin.get("samples", {})
        return {job: self.end["samples"][job] - before.get(job, 0) for job in self.jobs}

    def presence(self) -> list[tuple[int, str, bool]]:
        """Return when each worker came and went: time in microseconds, node, and whether it is there now.

        A worker goes when it is told (`leaving`), or else when its connection closes (`gone`).
        """
        there: set[str] = set()
        rows = []
        for entry in self.of("join", "leaving", "gone"):
            node, comes = entry["node"], entry["ev"] == "join"
            if comes == (node in there):
                continue
            (there.add if comes else there.discard)(node)
            rows.append((round(entry["t"] * 1e6), node, comes))
        return sorted(rows, key=lambda row: row[0])

    def decisions(self) -> list[Taken]:
        """Return the decisions."""
        taken = (
            Taken(entry["time_us"], round(entry["t"] * 1e6), entry["counts"], entry["nodes"])
            for entry in self.of("decision")
        )
        return [decision for decision in taken if decision.carried_out_us < self.window_us[1]]

    def told_before_the_end(self) -> tuple[int, int]:
        """Return how many workers had been told before they were gone, and how many were gone before the closing."""
        told: dict[str, float] = {}
        n_told = n_gone = 0
        for entry in self.of("join", "leaving", "gone", "closing"):
            if entry["ev"] == "closing":
                break
            node = entry["node"]
            if entry["ev"] == "leaving":
                told[node] = entry["t"]
                continue
            told_at = told.pop(node, math.inf)
            if entry["ev"] == "gone":
                n_gone += 1
                n_told += told_at <= entry["t"]
        return n_told, n_gone

    def runs(self) -> list[Run]:
        """Return the runs of all jobs that made progress, in the order of their starts."""
        runs: list[Run] = []
        latest: dict[str, Run] = {}
        held: dict[str, set[str]] = {job: set() for job in self.jobs}
        given_s = dict.fromkeys(self.jobs, 0.0)  # latest decision that gave it nodes when it had none
        stopped_s = dict.fromkeys(self.jobs, 0.0)  # last progress; stop of a run that made none
        samples = self.begin.get("samples", {})
        highest = {job: samples.get(job, 0) for job in self.jobs}
        saved = dict(highest)
        had_none = dict.fromkeys(self.jobs, True)
        for entry in self.entries:
            kind, job = entry["ev"], entry.get("job", "")
            if kind in ("leaving", "gone", "decision"):
                for name, nodes in held.items():
                    nodes.discard(entry.get("node", ""))
                    if kind == "decision":
                        given_s[name] = given_s[name] if nodes else entry["t"]
                        held[name] = set(entry["nodes"].get(name, ()))
                    had_none[name] |= not held[name]
            elif kind == "start":
                before, n_nodes = latest.get(job), len(entry["nodes"])
                word = "start" if had_none[job] or not before else "up" if n_nodes > before.n_nodes else "down"
                since_s = given_s[job] or entry["t"] if word == "start" else stopped_s[job]
                latest[job] = Run(job, entry["run"], n_nodes, word, entry["t"], since_s, highest[job], saved[job])
                runs.append(latest[job])
                had_none[job] = False
            elif kind == "stop" and job in latest and not latest[job].reports:
                stopped_s[job] = entry["t"]
            elif kind == "samples":
                highest[job] = max(highest[job], entry["samples"])
                saved[job] = entry["samples"] if entry.get("saved") else saved[job]
                run = next((run for run in runs if (run.job, run.number) == (job, entry["run"])), None)
                if run and entry["samples"] > (run.reports[-1][1] if run.reports else run.resumed):
                    stopped_s[job] = entry["at"]
                    run.reports.append((stopped_s[job], entry["samples"]))
        return [run for run in runs if run.reports]

    def went_back(self, jobs: JobSet) -> list[Back]:
        """Return the starts at which progress went back.

        Allowed is what the nodes before make in the checkpoint interval of the job, and a step.
        """
        found = []
        before: dict[str, Run] = {}
        for run in self.runs():
            lost = run.highest - run.reports[0][1]
            if run.job in before and lost > 0:
                job, last = job_of(jobs, run.job), before[run.job]
                step = reduce(math.gcd, (round(samples) for _, samples in (*last.reports, *run.reports)))
                allowed = rate_of(job, last.n_nodes) * job.work_saved_every_s + step
                found.append(Back(run.job, run.number, lost, allowed))
            before[run.job] = run
        return found


def job_of(jobs: JobSet, name: str) -> ElasticJob:
    """Return the job of this name."""
    return next(job for job in jobs if job.name == name)


def rate_of(job: ElasticJob, n_nodes: int) -> float:
    """Return the samples/s of a job on so many nodes, by its curve."""
    return float(job.throughput.table(job.max_nodes)[n_nodes])


def cost_s(job: ElasticJob, run: Run) -> float:
    """Return what the start of a run costs, as it was measured."""
    return seconds_at(getattr(job, run.cost_of_start), run.n_nodes)
