"""Replays of the minutes of a pilot's run, by each way of feeding and charging, and the parts of what remains."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pilot_log import PilotLog, cost_s, job_of, rate_of

from bfreplay import (
    InputError,
    JobSet,
    NodeEvents,
    OccupancyRules,
    ReadOptions,
    RunResult,
    ingest,
    load_events,
    load_jobs,
    replay_log,
)
from bfreplay.datasets import NodeState
from bfreplay.policies import NEVER_US, Decision, Policy, PolicyCapabilities, PolicyState, Round, Trigger
from bfreplay.workload import Restart, Saves

PARTITION = "idle"
FEEDINGS = {
    "accounting": "accounting",
    "followed": "followed",
    "workers": "workers as they joined and left",
    "decisions": "decisions as they were taken",
}
CHARGINGS = {
    "published": "published: charge, starts are free",
    "charge": "charge + start",
    "pause": "pause + start",
    "settle": "pause + start + settle",
    "min-age": "pause + start + settle + joining",
}
PARTS = (
    "events that differ",
    "decisions that differ",
    "late decisions",
    "work lost at failures",
    "restarts longer than measured",
    "rate below the curve",
    "not explained",
)
TOLERANCE_US = 1_000  # a pilot's times are floats of seconds


class AsTaken(Policy):
    """Repeats decisions that were taken, at their times.

    Parameters
    ----------
    names
        The jobs, in their order.
    decisions
        When, in microseconds, and the count of each job, in order of time.
    restart_s
        Seconds that a job restarts for where it was hit, and the decision leaves it the rest.
    """

    name = "as taken"
    wakes_on = Trigger.ROUND
    capabilities = PolicyCapabilities(restarts_jobs=True)

    def __init__(
        self, names: Sequence[str], decisions: Sequence[tuple[int, dict[str, int]]], restart_s: float = 0.0
    ) -> None:
        self._names, self._left, self._restart_s = list(names), list(decisions), restart_s

    def decide(self, state: PolicyState) -> Decision:
        """Return the counts of the latest decision that has come by now."""
        assert state.lost_nodes is not None
        counts, is_hit = state.current.copy(), np.zeros(state.n_jobs, np.bool_)
        while self._left and self._left[0][0] <= state.time_us:
            taken = self._left.pop(0)[1]
            counts = np.array([taken.get(self._names[job], 0) for job in state.job])
            is_hit = (state.lost_nodes > 0) & (counts == state.current)
        until_us = self._left[0][0] if self._left else NEVER_US
        return Decision(counts, round=Round(until_us), restart_s=np.where(is_hit, self._restart_s, 0.0))


def presence_log(
    nodes: Sequence[str], presence: Sequence[tuple[int, str, bool]], window_us: tuple[int, int]
) -> NodeEvents:
    """Return the log of workers that came and went: time, node, whether it is there; in order of time."""
    start_us, end_us = window_us
    words = {True: NodeState.IDLE, False: NodeState.BUSY}
    first = dict.fromkeys(nodes, False) | {node: there for time_us, node, there in presence if time_us <= start_us}
    rows = {(time_us, node): there for time_us, node, there in presence if start_us < time_us < end_us}
    order = sorted(rows, key=lambda row: (row[0], nodes.index(row[1])))
    return NodeEvents.from_arrays(
        nodes,
        [words[first[node]] for node in nodes],
        [time_us for time_us, _ in order],
        [nodes.index(node) for _, node in order],
        [words[rows[row]] for row in order],
        start_us,
        end_us,
    )


def accounted(folder: Path, nodes: Sequence[str], window_us: tuple[int, int], batch_jobs: Path | None) -> NodeEvents:
    """Return the log by the accounting that `load.export` wrote, without the jobs of the partition that lends.

    The rows that are read, and the inventory, are written beside them.
    """
    with (folder / "jobs.psv").open(newline="") as table:
        rows = list(csv.reader(table, delimiter="|"))
    column = rows[0].index("Partition")
    kept = [row for row in rows if row[column] != PARTITION]
    (folder / "batch-jobs.psv").write_text("".join("|".join(row) + "\n" for row in kept))
    (folder / "nodes").write_text("".join(f"{node}\n" for node in nodes))
    files = [folder / name for name in ("batch-jobs.psv", "outages.psv", "resv.psv")]
    absent_s = 1e9 - 1  # a node without a job is idle, not absent
    rules = OccupancyRules(
        window=window_us, log_end_us=window_us[1], min_gap_s=0.0, empty_machine="idle", absent_after_s=absent_s
    )
    options = ReadOptions(timezone="UTC")
    return ingest(files, "slurm", options, rules, inventory=folder / "nodes", batch_jobs=batch_jobs)[0]


def n_decisions_met(
    run: RunResult, names: Sequence[str], decisions: Sequence[tuple[int, dict[str, int]]], wait_us: int
) -> int:
    """Return how many decisions, each at most so long after its time, a replay has taken, too."""
    table = run.table("decisions")
    times_us, counts = np.asarray(table["time"].cast("int64")), table["counts"].to_pylist()
    latest = np.searchsorted(times_us, [time_us + wait_us for time_us, _ in decisions], side="right") - 1
    taken = [[count.get(name, 0) for name in names] for _, count in decisions]
    return sum(k >= 0 and counts[k] == count for k, count in zip(latest.tolist(), taken, strict=True))


class Prediction(NamedTuple):
    """Samples of each job by a replay, and those of all jobs that were lost in it."""

    samples: dict[str, float]
    lost: float

    @property
    def total(self) -> float:
        """Samples of all jobs."""
        return sum(self.samples.values())


class Repetition:
    """A repetition that `fidelity.py run` made: its pilot's log, jobs as measured, and what its nodes did.

    Parameters
    ----------
    folder
        Where it was made.
    join_s
        Time from a node's becoming idle to its worker's joining, measured in a run of its own.
    pool
        Which nodes of the followed log count as idle, as of `bfreplay replay`.
    """

    def __init__(self, folder: Path, join_s: float = 0.0, pool: str = "startable") -> None:
        self.folder, self.join_s, self.pool = folder, join_s, pool
        self.log = PilotLog(folder / "pilot" / "log.jsonl")
        file = next(iter(sorted(folder.glob("measured.*"))), folder / "measured.csv")
        measured = {job.name: job for job in load_jobs(file)}
        for name in self.log.jobs:
            if name not in measured:
                expected = f"the jobs of the pilot: {', '.join(self.log.jobs)}"
                problem = "a job of the pilot was not measured"
                raise InputError(problem, file=file, value=name, expected=expected)
        self.jobs = JobSet([measured[name] for name in self.log.jobs], submit_is_relative=True)

    @cached_property
    def by_workers(self) -> NodeEvents:
        """The nodes as workers joined and left."""
        return presence_log(self.log.begin["nodes"], self.log.presence(), self.log.window_us)

    def events(self, feeding: str) -> NodeEvents:
        """Return the log of the nodes by a way of feeding."""
        if feeding == "accounting":
            return accounted(self.folder / "accounting", self.log.begin["nodes"], self.log.window_us, None)
        if feeding == "followed":
            return load_events(self.folder / "followed" / "log.csv").between(*self.log.window_us)
        return self.by_workers

    def join_delays_s(self) -> list[float]:
        """Return how long after a node became idle, by the followed log, its worker joined: the value of `join_s`."""
        idle_us: dict[str, int] = {}
        rows = self.events("followed").to_frame()
        freed = [
            (round(row.time.timestamp() * 1e6), row.node, None) for row in rows.itertuples() if row.state == "idle"
        ]
        joined = [row for row in self.log.presence() if row[2]]
        delays = []
        for time_us, node, is_join in sorted([*freed, *joined], key=lambda row: row[0]):
            if is_join is None:
                idle_us[node] = time_us
            elif idle_us.get(node, 0) > self.log.window_us[0]:  # the first worker since; not those at the beginning
                delays.append((time_us - idle_us.pop(node)) / 1e6)
        return delays

    def decisions(self, *, at_session: bool) -> list[tuple[int, dict[str, int]]]:
        """Return when each decision was carried out, or was to hold, and the nodes that it then really gave."""
        presence, there, place = self.log.presence(), set(), 0
        least = {job.name: job.min_nodes for job in self.jobs}
        given = []
        for taken in self.log.decisions():
            time_us = taken.session_us if at_session else taken.carried_out_us
            while place < len(presence) and presence[place][0] <= time_us:
                (there.add if presence[place][2] else there.discard)(presence[place][1])
                place += 1
            counts = {job: len(there.intersection(nodes)) for job, nodes in taken.nodes.items()}
            given.append((time_us, {job: n if n >= least[job] else 0 for job, n in counts.items()}))
        return given

    def predict(self, feeding: str, charging: str, **more: Any) -> Prediction:
        """Return what a replay predicts; more options as of `replay`."""
        rows = self.replay(feeding, charging, **more).table("jobs").to_pylist()
        lost = sum(row["repeated_samples"] or 0.0 for row in rows)
        return Prediction({row["job"]: row["done_samples"] for row in rows}, lost)

    def replay(self, feeding: str, charging: str, *, at_session: bool = False, until_us: int = 0) -> RunResult:
        """Replay the minutes, or their part until a time."""
        published: dict[str, Any] = (
            {"start_cost_s": 0.0, "work_saved_every_s": 0.0, "saves": Saves.NEVER} if charging == "published" else {}
        )
        restart = Restart.CHARGE if charging in ("published", "charge") else Restart.PAUSE
        jobs = JobSet([replace(job, restart=restart, **published) for job in self.jobs], submit_is_relative=True)
        options: dict[str, Any] = {"policy": self.log.begin.get("policy", "bftrainer"), "pool": self.pool}
        if feeding == "decisions":
            options["policy"] = AsTaken(self.log.jobs, self.decisions(at_session=at_session))
        elif charging in ("settle", "min-age"):
            options["settle"] = self.log.begin["settle_s"]
        if charging == "min-age":
            options["min_age"] = self.join_s
        start_us, end_us = self.log.window_us
        return replay_log(
            self.events(feeding).between(start_us, until_us or end_us),
            jobs,
            t_fwd=self.log.begin["t_fwd_s"],
            max_parallel=len(jobs),
            notice=charging != "published",  # SIGTERM: a trainer saves, and then restarts in full
            clear=0.0,
            efficiency=False,
            bound=False,
            **options,
        )

    def decisions_met(self) -> tuple[int, int]:
        """Return how many decisions of the run a replay of the workers takes, and how many there are."""
        start_us = self.log.window_us[0]  # the session was open before, and had decided on no nodes
        taken = [(decision.session_us, decision.counts) for decision in self.log.decisions()]
        taken = [decision for decision in taken if decision[0] >= start_us]
        run = self.replay("workers", "settle")
        return n_decisions_met(run, self.log.jobs, taken, TOLERANCE_US), len(taken)

    def parts(self, recommended: Prediction) -> dict[str, float]:
        """Return what the difference of a prediction from what was trained consists of, in samples.

        The first three are differences of replays; then come what was really lost, stood still and made beyond what
        the replay of the decisions as they were carried out knows; then what is left. They add up.
        """
        workers = self.predict("workers", "settle")
        decided = self.predict("decisions", "pause", at_session=True)
        carried_out = self.predict("decisions", "pause")
        parts = dict.fromkeys(PARTS, 0.0)
        parts["events that differ"] = recommended.total - workers.total
        parts["decisions that differ"] = workers.total - decided.total
        parts["late decisions"] = decided.total - carried_out.total
        parts["work lost at failures"] = -carried_out.lost
        for run in self.log.runs():
            job = job_of(self.jobs, run.job)
            rate = rate_of(job, run.n_nodes)
            (first_s, first), (last_s, last) = run.reports[0], run.reports[-1]
            parts["work lost at failures"] += run.highest - run.resumed
            parts["restarts longer than measured"] += (run.stood_still_s(rate) - cost_s(job, run)) * rate
            parts["rate below the curve"] += (last_s - first_s) * rate - (last - first)
        parts["not explained"] = recommended.total - sum(self.log.trained.values()) - sum(parts.values())
        return parts
