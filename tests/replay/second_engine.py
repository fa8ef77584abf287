"""A second replay engine, in plain Python, that a run is checked against. It shares no code with bfreplay's.

``check`` walks through a run's log and jobs by the rules of docs/runs.md and is told by the run only the counts of each
decision and when each job finished; everything else (times and triggers of decisions, rates, costs, node names, node
time by label, statuses, batch starts, totals) is computed again and compared. Of a policy that chooses nodes, decides
in rounds, limits jobs or declines them it is also given the answers as they were recorded. Decisions of BFTrainer's own
objective are solved again by a dynamic program. ``check_tables`` holds for any policy.

Times are microseconds, node time is node-microseconds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

US = 1e6
RELATIVE = 1e-8  # of sums of floating-point numbers in another order


@dataclass
class Job:
    """A job as it is submitted, and what has become of it."""

    name: str
    submit_us: int
    min_nodes: int
    max_nodes: int
    up_s: float | dict[int, float]  # by the new count: from each count on
    down_s: float | dict[int, float]
    work: float
    rates: dict[str, list[float]]  # samples/s by node type at 0, 1, ... max_nodes nodes
    weight: float = 1.0
    nodes: list[int] = field(default_factory=list)  # last gained last
    progress: float = 0.0
    preempt_debt: float = 0.0
    rescale_debt: float = 0.0
    rescale_cost: float = 0.0  # published clock: subtracted at the next instant
    admitted_us: int | None = None
    first_start_us: int | None = None
    finished_us: int | None = None
    starts: int = 0
    lost_nodes: int = 0  # since the policy last decided
    grown: int = 0
    shrunk: int = 0
    preempted: int = 0
    label_us: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    slack_us: float = 1.0  # rounding of labels to whole microseconds
    open: tuple[int, int] = (0, 0)  # count and since when
    intervals: list[tuple[int, int, int]] = field(default_factory=list)
    node_type: str = ""
    hit_us: int | None = None
    halt: float = math.inf  # progress at which it waits for the next decision
    not_before_us: float = -math.inf  # a job that is done leaves then
    waits: bool = False
    left_as: tuple[str, int] | None = None  # declined or given up, and when
    start_s: float | dict[int, float] = 0.0
    pauses: bool = False
    every_us: int = 0
    saves: str = "never"
    counts: tuple[int, ...] = ()  # that it can use; empty: all
    pause: tuple[float, str] = (-math.inf, "")  # until when, and its label
    run_since_us: int = 0
    saved: float = 0.0
    risk_us: float = 0.0  # useful node time since the last checkpoint
    lost: list[tuple[int, float, float]] = field(default_factory=list)  # when, samples, node time

    @property
    def is_published(self) -> bool:
        """Whether BFTrainer's model knows all that its changes cost."""
        is_plain = not any(isinstance(cost, dict) for cost in (self.start_s, self.up_s, self.down_s))
        return is_plain and not (self.start_s or self.pauses or self.every_us or self.counts)

    def longest_s(self, n_nodes: int) -> float:
        """The longest start, or pause, on a count that it may have on so many nodes."""
        kinds = [self.start_s, *((self.up_s, self.down_s) if self.pauses else ())]
        most = max(self.min_nodes, min(self.max_nodes, n_nodes))
        return max(at(cost, n) for cost in kinds for n in range(most + 1))

    def restart(self, now: int, *, is_saved: bool) -> float:
        """Begin a run; return the samples that are lost."""
        lost = 0.0
        if self.every_us and is_saved:
            self.saved, self.risk_us = self.progress, 0.0
        elif self.every_us:
            lost = self.progress - self.saved
            if lost or self.risk_us:
                self.lost.append((now, lost, self.risk_us))
            self.label_us["useful"] -= self.risk_us
            self.label_us["repeated"] += self.risk_us
            self.risk_us = 0.0
        self.run_since_us = now
        return lost

    @property
    def count(self) -> int:
        return len(self.nodes)

    def rate_at(self, n: int) -> float:
        """Samples/s on n nodes of its type; nothing below min_nodes."""
        curve = self.rates[self.node_type] if self.node_type in self.rates else next(iter(self.rates.values()))
        return curve[self.usable(n)] if n >= self.min_nodes else 0.0

    def usable(self, n: int) -> int:
        """Nodes of n that it can use, if it runs."""
        return max(count for count in self.counts if count <= n) if self.counts else n

    @property
    def pace(self) -> float:
        """Samples/s, if it does not wait."""
        return self.rate_at(self.count)

    @property
    def rate(self) -> float:
        return 0.0 if self.waits else self.pace

    @property
    def stop(self) -> float:
        """Progress at which it waits; infinite where it leaves instead."""
        if self.halt < self.work:
            return self.halt
        return self.work if self.not_before_us > -math.inf else math.inf


@dataclass
class Log:
    """Nodes in order of their names, who is idle at the start (rows of that instant included), and what changes."""

    nodes: list[str]
    start_us: int
    end_us: int
    first_idle: set[int]
    changes: list[tuple[int, int, bool]]  # (time, node, idle afterwards), sorted; times above start_us
    types: list[str] | None = None
    states: list[str] = field(default_factory=list)  # what the node is after each change: idle, busy, ...

    def idle_spans(self) -> dict[int, list[tuple[int, int]]]:
        """When each node was idle."""
        spans: dict[int, list[tuple[int, int]]] = {k: [] for k in range(len(self.nodes))}
        since = dict.fromkeys(self.first_idle, self.start_us)
        for time_us, node, idle in self.changes:
            if idle:
                since.setdefault(node, time_us)
            elif node in since:
                spans[node].append((since.pop(node), time_us))
        for node, from_us in since.items():
            if from_us < self.end_us:
                spans[node].append((from_us, self.end_us))
        return spans


@dataclass(frozen=True)
class Rules:
    """Options of the run that change what happens."""

    max_parallel: int
    is_published: bool = False
    solves_own_objective: bool = False
    wakes: frozenset[str] = frozenset({"pool", "arrival", "completion"})
    reserve: int = 0
    min_age_us: int = 0
    clear_us: int = 30_000_000
    notice_us: int | None = None
    on_runs: bool = False
    settle_us: int = 0

    @property
    def leaves_alone(self) -> bool:
        return self.reserve > 0 or self.min_age_us > 0


def at(cost: float | dict[int, float], n: int) -> float:
    """Seconds of a change to n nodes."""
    return cost[max(k for k in cost if k <= n)] if isinstance(cost, dict) else cost


def rows_of(table) -> list[dict]:
    """Rows of an Arrow table; times as whole microseconds."""
    columns = {
        name: (table[name].cast("int64") if str(table.schema.field(name).type).startswith("timestamp") else table[name])
        for name in table.column_names
    }
    lists = {name: column.to_pylist() for name, column in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def near(found: float, expected: float, scale: float = 1.0) -> bool:
    """Whether two floating-point sums agree."""
    return math.isclose(found, expected, rel_tol=RELATIVE, abs_tol=RELATIVE * max(1.0, abs(scale)))


def same(what: str, found: object, expected: object) -> None:
    """Raise AssertionError unless both are equal."""
    assert found == expected, f"{what}: the run has {found!r}, the second engine {expected!r}"


def close(what: str, found: float, expected: float, scale: float = 1.0) -> None:
    """Raise AssertionError unless both agree up to rounding."""
    assert near(found, expected, scale), f"{what}: the run has {found!r}, the second engine {expected!r}"


def joined(intervals) -> list[tuple]:
    """Sorted (job, count, from, to); a job that loses and regains nodes at one instant may have two rows or one."""
    found: list[tuple] = []
    for name, count, start, stop in sorted(intervals, key=lambda each: (each[0], each[2])):
        if found and found[-1][:2] == (name, count) and found[-1][3] == start:
            start = found.pop()[2]
        found.append((name, count, start, stop))
    return found


class SecondEngine:
    """One run, walked through again."""

    def __init__(self, log: Log, jobs: list[Job], rules: Rules, result, answers=None) -> None:
        self.log, self.jobs, self.rules, self.result = log, jobs, rules, result
        self.answers = None if answers is None else list(answers)  # of the policy: (time, decision)
        self.rows = rows_of(result.table("decisions"))
        recorded = {row["job"]: row for row in rows_of(result.table("jobs"))}
        self.finish_us = {name: row["finished"] for name, row in recorded.items()}
        self.queue = sorted(jobs, key=lambda job: job.submit_us)  # stable: order of the file
        self.active: list[Job] = []
        self.idle: set[int] = set()
        self.young: dict[int, int] = {}  # nodes that are idle for too short a time, and until when
        self.reserved: set[int] = set()
        self.round_us = math.inf
        self.forget_waiting()
        self.started = dict.fromkeys(
            ("n_starts", "n_starts_met", "n_nodes_started", "n_nodes_met", "delay_node_us", "busy_node_us"), 0
        )
        self.busy_since = {k: log.start_us for k in range(len(log.nodes)) if k not in log.first_idle}
        self.now = log.start_us
        self.n_rows = 0
        self.unlogged = 0.0
        self.total = 0.0
        self.last_rate = 0.0
        self.free_us = self.idle_us = 0
        self.pool: list[tuple[int, int]] = []
        self.most_idle = 0
        self.n_pool_events = 0
        self.node_open: dict[int, tuple[str, int]] = {}
        self.node_spans: list[tuple[str, str, int, int]] = []
        self.gross = self.rounding = self.trimmed = self.rescale_paid = self.preempt_paid = 0.0

    def forget_waiting(self) -> None:
        self.waiting: set[str] = set()  # triggers of the decision that waits
        self.waiting_changes = [0, 0, 0, 0.0]
        self.since_us = self.settled_us = math.inf

    # -- the walk -----------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Go through the window and compare."""
        by_time: dict[int, list[tuple[int, str]]] = {self.log.start_us: [(k, "idle") for k in self.log.first_idle]}
        for (time_us, node, idle), state in zip(self.log.changes, self.log.states, strict=True):
            assert idle == (state == "idle")
            by_time.setdefault(time_us, []).append((node, state))
        instants = sorted(by_time)
        position = 0
        while True:
            times = [instants[position]] if position < len(instants) else []
            if not self.rules.is_published:
                times += [self.finish_us[job.name] for job in self.active if self.finish_us[job.name] is not None]
                if len(self.active) < self.rules.max_parallel and self.queue:
                    arrival = max(self.queue[0].submit_us, self.now)
                    times += [arrival] if arrival < self.log.end_us else []
                times += [self.round_us, self.settled_us]
                times += [until for until in self.young.values() if until < self.log.end_us]
            if not times or min(times) > self.log.end_us:
                break
            now = min(times)
            self.pass_time(now)
            events = None
            if position < len(instants) and instants[position] == now:
                events = by_time[now]
                position += 1
            self.instant(now, events)
        self.pass_time(self.log.end_us)
        if self.rules.is_published:
            self.complete_published()
        self.finish()

    def pass_time(self, now: int) -> None:
        dt = now - self.now
        assert dt >= 0, f"a job finishes at {now}, before {self.now}, when it was admitted or last decided on"
        if dt == 0:
            return
        self.most_idle = max(self.most_idle, len(self.idle))
        self.idle_us += len(self.idle) * dt
        self.free_us += (len(self.idle) - sum(job.count for job in self.active)) * dt
        for job in self.active:
            if job.waits and job.progress >= job.work:
                assert job.not_before_us >= now - 2, f"{job.name} is done, may leave at {job.not_before_us} and goes on"
            if self.rules.is_published:
                self.gain(job, job.rate * dt / US - job.rescale_cost)
                job.rescale_cost = 0.0
                continue
            since = self.now
            while since < now:  # from checkpoint to checkpoint, and to the end of a pause
                until = min(now, job.pause[0]) if job.pause[0] > since else now
                saves_at = math.inf
                if job.every_us and job.count >= job.min_nodes:
                    saves_at = since + job.every_us - (since - job.run_since_us) % job.every_us
                    until = min(until, saves_at)
                self.work(job, since, until)
                if until == saves_at:
                    job.saved, job.risk_us = job.progress, 0.0
                since = until
        self.now = now

    def work(self, job: Job, since: int, now: int) -> None:
        """Let a job work without a checkpoint from ``since`` until now."""
        dt = now - since
        rate, held = job.rate, job.count
        made = rate * dt / US
        if rate <= 0:
            job.label_us["stalled"] += held * dt
            return
        self.gross += made
        left = made
        if job.pause[0] > since:
            self.pay(job, job.pause[1], left, held * dt)
            return
        for debt, label in (("preempt_debt", "preempted"), ("rescale_debt", "rescaling")):
            paid = min(getattr(job, debt), left)
            if paid > 0:
                setattr(job, debt, getattr(job, debt) - paid)
                self.pay(job, label, paid, held * paid / rate * US)
                left -= paid
        beyond = job.progress + left - job.stop
        if job.stop < math.inf and beyond >= -1e-11 * job.stop:
            job.waits = True
            self.gross -= beyond
            job.label_us["stalled"] += held * max(beyond, 0.0) / rate * US
            left -= beyond
        job.label_us["useful"] += held * left / rate * US
        job.risk_us += held * left / rate * US
        job.slack_us += held
        self.gain(job, left)
        if job.waits:
            job.progress = job.stop
        if job.progress >= job.work:
            late_us = now - max(now - max(job.progress - job.work, beyond) / rate * US, job.not_before_us)
            assert late_us <= 2 + RELATIVE * dt, f"{job.name} was done {late_us} us before {now} and goes on"

    def pay(self, job: Job, label: str, samples: float, node_us: float) -> None:
        job.label_us[label] += node_us
        job.slack_us += job.count
        if label == "preempted":
            self.preempt_paid += samples
        else:
            self.rescale_paid += samples

    def gain(self, job: Job, samples: float) -> None:
        job.progress += samples
        self.total += samples
        self.unlogged += samples

    def instant(self, now: int, events: list[tuple[int, str]] | None) -> None:
        self.now = now
        usable = self.usable_by_type()
        triggers = set()
        if not self.rules.is_published and self.complete(now):
            triggers.add("completion")
        joined = left = hit = 0
        preemption_cost = 0.0
        if events is not None:
            before = len(self.idle)
            taken = {node for node, state in events if state != "idle" and node in self.idle}
            left = len(taken)
            self.idle -= taken
            self.reserved -= taken
            self.count_batch_starts(now, events, taken)
            for job in self.active:
                if taken & set(job.nodes):
                    rate = job.rate
                    job.lost_nodes += len(taken & set(job.nodes))
                    job.nodes = [node for node in job.nodes if node not in taken]
                    job.waits = False
                    seconds = max(0.0, at(job.down_s, job.count) - (self.rules.notice_us or 0) / US)
                    self.gain(job, -job.restart(now, is_saved=job.saves != "never" and self.rules.notice_us is not None))
                    is_of_burst = job.hit_us is not None and 0 < now - job.hit_us <= self.rules.settle_us
                    job.hit_us = now
                    if job.pauses:
                        cost = job.rate * seconds
                        job.pause = (-math.inf, "")
                        if job.count >= job.min_nodes:
                            job.pause = (now + int(seconds * US + 0.5), "preempted")
                    else:
                        cost = 0.0 if is_of_burst else rate * seconds
                    job.preempted += 1
                    hit += 1
                    preemption_cost += cost
                    if self.rules.is_published:
                        self.gain(job, -cost)
                    elif not job.pauses:
                        job.preempt_debt += cost
            if self.rules.is_published and self.complete_published():
                triggers.add("completion")
            new = {node for node, state in events if state == "idle"} - self.idle
            joined = len(new)
            self.idle |= new
            self.young = {node: until for node, until in self.young.items() if node not in taken}
            if self.rules.min_age_us:
                self.young |= dict.fromkeys(new, now + self.rules.min_age_us)
            if len(self.idle) != before or not self.pool:
                self.pool.append((now, len(self.idle)))
            if joined or left:
                triggers.add("pool")
                self.n_pool_events += now > self.log.start_us
        if self.rules.leaves_alone:  # only nodes that jobs may have are news
            self.leave_alone(now)
            triggers.discard("pool")
            triggers |= {"pool"} if hit or self.usable_by_type() != usable else set()
        if self.round_us <= now:
            self.round_us = math.inf
            triggers.add("round")
        while (
            now < self.log.end_us
            and len(self.active) < self.rules.max_parallel
            and self.queue
            and self.queue[0].submit_us <= now
        ):
            job = self.queue.pop(0)
            job.admitted_us = now
            self.active.append(job)
            triggers.add("arrival")
        triggers, changes = self.settle(now, triggers, [joined, left, hit, preemption_cost])
        if (triggers or not self.n_rows) and (self.active or self.queue or "completion" in triggers):
            self.row(now, triggers, *changes)
        if triggers or not self.n_rows:
            self.forget_waiting()
        self.close_intervals(now)

    def settle(self, now: int, triggers: set[str], changes: list) -> tuple[set[str], list]:
        """Return what is decided on now: all that waits, or nothing."""
        settle_us = self.rules.settle_us
        if not settle_us:
            return triggers, changes
        is_over = not (self.active or self.queue)
        if triggers:
            self.waiting |= triggers
            self.since_us = min(self.since_us, now)
            self.settled_us = min(now + settle_us, self.since_us + 10 * settle_us)
        sums = [one + more for one, more in zip(self.waiting_changes, changes, strict=True)]
        if now >= self.settled_us or triggers & {"round", "batch_size"} or not self.n_rows or is_over:
            return self.waiting, sums
        if triggers:
            self.waiting_changes = sums
        return set(), changes

    def count_batch_starts(self, now: int, events: list[tuple[int, str]], taken: set[int]) -> None:
        """Count those of an instant at which idle nodes become busy."""
        busy = {node for node, state in events if state == "busy"}
        for node, _ in events:
            since = self.busy_since.pop(node, now)
            self.started["busy_node_us"] += now - since
        self.busy_since |= dict.fromkeys(busy, now)
        started = busy & taken
        met = started & {node for job in self.active for node in job.nodes}
        self.started["n_starts"] += bool(started)
        self.started["n_nodes_started"] += len(started)
        self.started["n_starts_met"] += bool(met)
        self.started["n_nodes_met"] += len(met)
        self.started["delay_node_us"] += len(started) * self.rules.clear_us if met else 0

    def held(self) -> set[int]:
        return {node for job in self.active for node in job.nodes}

    def usable_by_type(self) -> dict[str, int]:
        """Idle nodes that jobs may have, by type."""
        nodes = self.idle - set(self.young) - self.reserved
        types = self.log.types or ["any"] * len(self.log.nodes)
        return {name: sum(types[node] == name for node in nodes) for name in set(types)}

    def leave_alone(self, now: int) -> None:
        """Free the nodes that are old enough, then fill the reserve from above, or lower it from below."""
        self.young = {node: until for node, until in self.young.items() if until > now}
        free = sorted(self.idle - self.held() - set(self.young) - self.reserved)
        missing = self.rules.reserve - len(self.young) - len(self.reserved)
        if missing > 0:
            self.reserved |= set(free[-missing:])
        else:
            self.reserved -= set(sorted(self.reserved)[: -missing or None] if missing else [])

    def complete(self, now: int) -> bool:
        leaving = [job for job in self.active if self.finish_us[job.name] == now]
        for job in leaving:
            owed = job.work - job.progress + job.preempt_debt + job.rescale_debt
            allowed = job.pace * 2 / US + RELATIVE * job.work
            assert job.not_before_us <= now, f"{job.name} leaves at {now}, before {job.not_before_us}"
            assert abs(owed) <= allowed, f"{job.name} finishes at {now} with {owed} samples to go at {job.rate}/s"
            self.trimmed += job.progress - job.work
            self.rounding += job.pace * 2 / US  # its last microsecond
            self.leave(job, now)
        return bool(leaving)

    def complete_published(self) -> bool:
        leaving = [
            job
            for job in self.active
            if job.progress >= job.work * (1 + RELATIVE)
            or (self.finish_us[job.name] == self.now and near(job.progress, job.work, job.work))
        ]
        for job in leaving:
            same(f"finish of {job.name}", self.finish_us[job.name], self.now)
            self.leave(job, self.now)
        return bool(leaving)

    def leave(self, job: Job, now: int, ending: str = "") -> None:
        if ending:
            job.left_as = (ending, now)
        else:
            self.gain(job, job.work - job.progress)
            job.finished_us = now
        job.nodes = []
        self.active.remove(job)
        self.note_interval(job, now)

    # -- a decision ---------------------------------------------------------------------------------------

    def row(self, now: int, triggers: set[str], joined: int, left: int, hit: int, preemption_cost: float) -> None:
        assert self.n_rows < len(self.rows), f"the run has no decision at {now} ({triggers}), nor after it"
        row, k = self.rows[self.n_rows], self.n_rows
        same(f"time of decision {k}", row["time"], now)
        same(f"trigger of decision {k}", set(row["trigger"].split("+")), triggers or {"window_begin"})
        counts = row["counts"]
        same(f"jobs of decision {k}", len(counts), len(self.active))
        before = [job.count for job in self.active]
        n_usable = len(self.idle) - len(self.young) - len(self.reserved)
        assert sum(counts) <= n_usable, f"decision {k} gives {counts} of {n_usable} nodes"
        for job, count, was in zip(self.active, counts, before, strict=True):
            assert count == was or count == 0 or job.min_nodes <= count <= job.max_nodes, (job.name, was, count)
        between_rounds = "round" in self.rules.wakes and self.round_us == math.inf
        is_asked = bool(triggers & self.rules.wakes) or between_rounds or not k
        answer = None
        if self.answers is not None:
            if is_asked and counts and n_usable:
                assert self.answers, f"the policy was not asked for decision {k}"
                asked_us, answer = self.answers.pop(0)
                same(f"time of the answer for decision {k}", asked_us, now)
            same(f"counts of decision {k}", counts, before if answer is None else answer.counts.tolist())
        if not is_asked:
            same(f"counts of decision {k}, which nobody asked for", counts, before)
        elif self.rules.solves_own_objective and counts and n_usable and not (self.rules.is_published and not k):
            self.check_optimum(k, row, before, counts)
        if self.rules.on_runs and is_asked and counts and n_usable and (answer is None or answer.placement is None):
            self.place_on_runs(counts)  # nothing is left to place below
        if is_asked and counts and n_usable:
            for job in self.active:
                job.lost_nodes = 0
        cost = self.place(counts, before, now, answer, is_first=not k)
        rate = sum(job.rate for job in self.active)
        if self.rules.is_published and not self.active and not self.queue:
            rate = self.last_rate
        self.last_rate = rate
        expected = {
            "n_idle": n_usable,
            "n_joined": joined,
            "n_reclaimed": left,
            "n_jobs": len(counts),
            "n_jobs_running": sum(job.rate > 0 for job in self.active),
            "n_jobs_preempted": hit,
            "n_jobs_scaled_up": sum(n > m for n, m in zip(counts, before, strict=True)),
            "n_jobs_scaled_down": sum(n < m for n, m in zip(counts, before, strict=True)),
            "n_nodes_used": sum(counts),
        }
        for name, value in expected.items():
            same(f"{name} of decision {k}", row[name], value)
        close(f"rate of decision {k}", row["rate_samples_per_s"], rate, rate)
        close(f"rescale cost of decision {k}", row["rescale_cost_samples"], cost, cost)
        close(f"preemption cost of decision {k}", row["preemption_cost_samples"], preemption_cost, preemption_cost)
        # a job that finishes within the tolerance of its finish time may have been trimmed by a little more or less
        scale = sum(job.work for job in self.jobs if job.work < math.inf) + abs(self.total) + rate
        close(f"samples before decision {k}", row["samples_since_last"], self.unlogged, scale)
        self.unlogged = 0.0
        self.n_rows += 1
        if answer is not None and answer.round is not None:
            failed = answer.round.failed
            ending = {j: "failed" for j in range(len(counts)) if failed is not None and failed[j]}
            ending = dict.fromkeys(answer.round.declined, "declined") | ending
            for job, how in [(self.active[j], how) for j, how in ending.items()]:
                self.leave(job, now, how)

    def place(self, counts: list[int], before: list[int], now: int, answer, *, is_first: bool) -> float:
        was = [
            job.rate_at(count) if not self.rules.is_published else next(iter(job.rates.values()))[count]
            for job, count in zip(self.active, before, strict=True)
        ]
        if answer is not None:
            self.follow(answer)
        seeded = is_first and self.rules.is_published
        for job, count in zip(self.active, counts, strict=True):
            if seeded:
                continue  # random nodes: read from the run below
            del job.nodes[count:]
        free = sorted(self.idle - self.held() - set(self.young) - self.reserved)
        for job, count in zip(self.active, counts, strict=True):
            if seeded:
                job.nodes = self.seeded_nodes(job, now)
                same(f"nodes of {job.name} in the first map", len(job.nodes), count)
                continue
            more = count - job.count
            job.nodes += free[:more]
            free = free[more:]
        total = 0.0
        for job, count, m, rate in zip(self.active, counts, before, was, strict=True):
            cost = 0.0
            begins = m < job.min_nodes <= count
            placement = None if answer is None else answer.placement
            restart_s = 0.0
            for part in (answer, placement):
                if part is not None and part.restart_s is not None:
                    restart_s = float(part.restart_s[self.active.index(job)])
            if count != m or restart_s > 0:
                self.gain(job, -job.restart(now, is_saved=job.saves == "on-resize"))
            if count > m:
                job.grown += 1
                cost = rate * at(job.up_s, count)
                if m == 0:
                    job.starts += 1
                    job.first_start_us = now if job.first_start_us is None else job.first_start_us
            elif count < m:
                job.shrunk += 1
                cost = rate * at(job.down_s, count)
            if seeded:
                cost = job.rate * at(job.up_s, count)
            if self.rules.is_published:
                job.rescale_cost = cost
                total += cost
                continue
            is_charged = placement is None or placement.charges_rescales
            if job.pauses or not is_charged:
                cost = 0.0
            job.rescale_debt += cost
            is_done = job.progress >= job.work and job.preempt_debt + job.rescale_debt == 0
            job.waits = (is_done and job.not_before_us > now) or (job.progress >= job.halt and job.halt < job.work)
            if is_charged and begins:
                restart_s += at(job.start_s, count)
            elif is_charged and job.pauses and count != m:
                restart_s += at(job.up_s if count > m else job.down_s, count)
            cost += job.rate * restart_s
            if not job.pauses:
                job.rescale_debt += job.rate * restart_s
            elif count < job.min_nodes:
                job.pause = (-math.inf, "")
            elif count != m or restart_s > 0:
                is_hit = job.hit_us is not None and job.hit_us >= min(now, self.since_us)
                label = "preempted" if is_hit else "rescaling"
                job.pause = (now + int(restart_s * US + 0.5), label)
            total += cost
        return total

    def place_on_runs(self, counts: list[int]) -> None:
        """Give out free nodes, and all those of jobs that were hit, on runs of numbers at most 18 apart."""
        had = {job.name: list(job.nodes) for job in self.active}
        for job, count in zip(self.active, counts, strict=True):
            job.nodes = [] if job.lost_nodes else job.nodes[:count]
        runs: list[list[int]] = []
        for node in sorted(self.idle - self.held() - set(self.young) - self.reserved):
            if runs and node - runs[-1][-1] <= 18:
                runs[-1].append(node)
            else:
                runs.append([node])
        spans = [(run[0] - 18, run[-1] + 18) for run in runs]
        needs = [(count - job.count, job) for job, count in zip(self.active, counts, strict=True)]
        for need, job in sorted(needs, key=lambda each: -each[0]):  # stable: order of admission
            beside = [any(low <= node <= high for node in had[job.name]) for low, high in spans]
            while need > 0:
                ranks = [(bool(run) and beside[r], len(run), -r) for r, run in enumerate(runs)]
                best = runs[-max(ranks)[2]]
                taken = best[:need]
                del best[: len(taken)]
                job.nodes += taken
                need -= len(taken)
        assert [job.count for job in self.active] == counts

    def follow(self, answer) -> None:
        """Give the jobs the nodes that a policy chose, and set its limits."""
        if answer.placement is not None:
            free = self.idle - set(self.young) - self.reserved
            assigned = [nodes.tolist() for nodes in answer.placement.assigned]
            together = sorted(node for nodes in assigned for node in nodes)
            assert together == sorted(set(together) & free), f"{together} are not all free: {sorted(free)}"
            for job, nodes in zip(self.active, assigned, strict=True):
                job.nodes = nodes
                if nodes and self.log.types is not None:
                    (job.node_type,) = {self.log.types[node] for node in nodes}
        until = answer.round
        if until is not None and until.until_us is not None:
            self.round_us = int(until.until_us)
        for j, job in enumerate(self.active):
            job.halt, job.not_before_us = math.inf, -math.inf
            if until is None:
                continue
            if until.credit is not None:
                self.gain(job, float(until.credit[j]))
                job.saved += float(until.credit[j])
            if until.samples is not None and until.samples[j] < job.work - job.progress:
                job.halt = job.progress + float(until.samples[j])
            if until.not_before_us is not None and until.not_before_us[j] > self.now:
                job.not_before_us = int(until.not_before_us[j])

    def seeded_nodes(self, job: Job, now: int) -> list[int]:
        rows = rows_of(self.result.table("nodes"))
        names = [row["node"] for row in rows if row["job"] == job.name and row["from"] == now]
        return sorted(self.log.nodes.index(name) for name in names)

    def check_optimum(self, k: int, row: dict, before: list[int], counts: list[int]) -> None:
        capacity = row["n_idle"]
        horizon_s = row["t_fwd_s"] + max(job.longest_s(len(self.log.nodes)) for job in self.active)
        best = [0.0] + [-math.inf] * capacity
        worth = 0.0
        size = 1.0
        for job, was, chosen in zip(self.active, before, counts, strict=True):

            def value(n: int, job=job, was=was) -> float:
                return job.weight * (horizon_s * job.rate_at(n) - self.samples_given_up(job, was, n))

            allowed = job.counts or range(job.min_nodes, job.max_nodes + 1)
            choices = {n: value(n) for n in (0, *allowed, *([was] if was >= job.min_nodes else [])) if n <= capacity}
            assert chosen in choices, f"decision {k}: {job.name} on {chosen} nodes, below its least"
            worth += choices[chosen]
            size += max(abs(v) for v in choices.values())
            best = [max(best[c - n] + v for n, v in choices.items() if n <= c) for c in range(capacity + 1)]
        optimum = max(best)
        close(f"objective of decision {k}", row["objective"], worth, size)
        if row["quality"] == "proven":
            close(f"optimum of decision {k}", worth, optimum, size)
        else:
            assert row["solver_status"] is None or row["quality"] in ("feasible", "none"), row

    def samples_given_up(self, job: Job, was: int, n: int) -> float:
        """Return what a job on ``was`` nodes loses by a decision for ``n``."""
        rate = job.rate_at(was)
        if n == was:
            return rate * max(0.0, (job.pause[0] - self.now) / US)
        unsaved = job.progress - job.saved if job.every_us and job.saves != "on-resize" and rate > 0 else 0.0
        begins = was < job.min_nodes <= n
        seconds = at(job.up_s if n > was else job.down_s, n)
        if job.pauses:
            return unsaved + job.rate_at(n) * (at(job.start_s, n) if begins else seconds)
        return unsaved + rate * seconds + (job.rate_at(n) * at(job.start_s, n) if begins else 0.0)

    # -- what is recorded ---------------------------------------------------------------------------------

    def note_interval(self, job: Job, now: int) -> None:
        count, since = job.open
        if job.count != count:
            if count and since < now:
                job.intervals.append((count, since, now))
            job.open = (job.count, now)

    def close_intervals(self, now: int) -> None:
        for job in self.active:
            self.note_interval(job, now)
        holder = {node: job.name for job in self.active for node in job.nodes}
        for node, (name, since) in list(self.node_open.items()):
            if holder.get(node) != name:
                if since < now:
                    self.node_spans.append((self.log.nodes[node], name, since, now))
                del self.node_open[node]
        for node, name in holder.items():
            self.node_open.setdefault(node, (name, now))

    def finish(self) -> None:
        end, log = self.log.end_us, self.log
        same("number of decisions", len(self.rows), self.n_rows)
        still = list(self.active)
        statuses = {job.name: "running" if job.rate > 0 else "waiting" for job in still}
        for job in still:
            job.nodes = []
            self.note_interval(job, end)
        self.active = []
        self.close_intervals(end)
        statuses |= {job.name: "queued" if job.submit_us <= end else "not_submitted" for job in self.queue}
        jobs = {job.name: job for job in self.jobs}
        for row in rows_of(self.result.table("jobs")):
            job = jobs[row["job"]]
            how, ended_us = job.left_as or ("finished", job.finished_us)
            status = how if ended_us is not None else statuses[job.name]
            expected = {
                "status": status,
                "submitted": job.submit_us,
                "admitted": job.admitted_us,
                "first_start": job.first_start_us,
                "finished": job.finished_us,
                "ended": ended_us,
                "n_starts": job.starts,
                "n_scale_ups": job.grown,
                "n_scale_downs": job.shrunk,
                "n_preemptions": job.preempted,
            }
            for name, value in expected.items():
                same(f"{name} of {job.name}", row[name], value)
            scale = job.work if job.work < math.inf else abs(job.progress)
            close(f"samples of {job.name}", row["done_samples"], job.progress, scale)
            if not self.rules.is_published:
                for label in ("useful", "rescaling", "preempted", "repeated", "stalled"):
                    found, expected_us = row[f"{label}_node_us"], job.label_us[label]
                    allowed = job.slack_us + RELATIVE * expected_us
                    assert abs(found - expected_us) <= allowed, (job.name, label, found, expected_us, allowed)
        self.check_losses()
        found = joined(
            (row["job"], row["count"], row["from"], row["to"]) for row in rows_of(self.result.table("allocations"))
        )
        same("allocations", found, joined((job.name, *span) for job in self.jobs for span in job.intervals))
        found = sorted((row["node"], row["job"], row["from"], row["to"]) for row in rows_of(self.result.table("nodes")))
        same("nodes", found, sorted(self.node_spans))
        same("pool", [(row["time"], row["n_idle"]) for row in rows_of(self.result.table("pool"))], self.pool)
        summary = self.result.summary
        ledger = summary["ledger"]
        same("idle node time", ledger["idle_node_us"], self.idle_us)
        same("unallocated node time", ledger["unallocated_node_us"], self.free_us)
        same("pool events", summary["n_pool_events"], self.n_pool_events)
        same("most idle nodes", summary["most_idle_nodes"], self.most_idle)
        close("equivalent nodes", summary["equivalent_nodes"], self.idle_us / (end - log.start_us))
        for name, key in (("preempted", "n_preemptions"), ("grown", "n_scale_ups"), ("shrunk", "n_scale_downs")):
            same(key, summary[key], sum(getattr(job, name) for job in self.jobs))
        lost = sum(samples for job in self.jobs for _, samples, _ in job.lost)  # a large part may be taken off again
        close("samples", ledger["samples"], self.total, self.total + lost)
        if not self.rules.is_published:
            close("gross samples", ledger["gross_samples"], self.gross, self.gross + self.rounding / RELATIVE)
            close("repeated samples", ledger["repeated_samples"], lost, self.gross)
            for name, key in (("rescale", "rescale"), ("preempt", "preemption")):
                value = getattr(self, f"{name}_paid")
                close(f"{name} samples", ledger[f"{key}_samples"], value, self.gross)
        for since in self.busy_since.values():
            self.started["busy_node_us"] += end - since
        same("batch starts", summary["batch_starts"].to_json(), self.started)
        same("answers of the policy that nobody asked for", self.answers or [], [])
        finished = [job for job in self.jobs if job.finished_us is not None]
        if finished:
            jct = sum(job.finished_us - job.submit_us for job in finished) / len(finished) / US
            close("average JCT", summary["scheduling"]["average_jct_s"], jct, jct)

    def check_losses(self) -> None:
        found = rows_of(self.result.table("losses")) if self.result.has_table("losses") else []
        jobs = {job.name: job for job in self.jobs}
        lost = {(time_us, job.name): (samples, us) for job in self.jobs for time_us, samples, us in job.lost}
        recorded = {(row["time"], row["job"]): (row["samples"], row["node_us"]) for row in found}
        same("number of losses", len(recorded), len(found))
        for key in lost.keys() | recorded.keys():
            slack_us = jobs[key[1]].slack_us
            for what, one, other, slack in zip(
                ("samples", "node time"), recorded.get(key, (0, 0)), lost.get(key, (0, 0)), (0, slack_us), strict=True
            ):
                allowed = slack + RELATIVE * (abs(other) + (self.total if what == "samples" else 0.0)) + 1e-6
                assert abs(one - other) <= allowed, f"{what} lost at {key}: the run has {one}, expected {other}"


def check(log: Log, jobs: list[Job], rules: Rules, result, answers=None) -> None:
    """Raise AssertionError where a run differs from the second engine.

    ``answers`` are what the policy said, (time, decision) each, needed if it does more than decide on counts.
    """
    SecondEngine(log, jobs, rules, result, answers).walk()
    check_tables(log, jobs, result)


def check_tables(log: Log, jobs: list[Job], result) -> None:
    """Raise AssertionError where the tables of any run contradict its log, its jobs or one another."""
    by_name = {job.name: job for job in jobs}
    position = {name: k for k, name in enumerate(log.nodes)}
    idle = log.idle_spans()
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    holders: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows_of(result.table("nodes")):
        start, stop = row["from"], row["to"]
        assert any(a <= start < stop <= b for a, b in idle[position[row["node"]]]), f"held while not idle: {row}"
        holders[row["node"]].append((start, stop))
        spans[row["job"]].append((start, stop))
    for node, held in holders.items():
        held.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(held)), f"two holders of {node}"
    held_us: dict[str, int] = defaultdict(int)
    could: dict[str, float] = defaultdict(float)
    intervals: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in rows_of(result.table("allocations")):
        job = by_name[row["job"]]
        dt = row["to"] - row["from"]
        assert dt > 0, row
        assert 1 <= row["count"] <= job.max_nodes, row
        held_us[job.name] += row["count"] * dt
        curve = job.rates[row["node_type"]] if row["node_type"] in job.rates else next(iter(job.rates.values()))
        could[job.name] += (curve[job.usable(row["count"])] if row["count"] >= job.min_nodes else 0.0) * dt / US
        intervals[job.name].append((row["from"], row["to"]))
    for name, taken in intervals.items():
        taken.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(taken)), f"two counts of {name} at once"
        same(f"node time of {name} by node", sum(b - a for a, b in spans[name]), held_us[name])
    ledger = result.summary["ledger"]
    idle_us = sum(b - a for each in idle.values() for a, b in each)
    same("idle node time of the log", ledger["idle_node_us"], idle_us)
    labels = ("useful", "rescaling", "preempted", "repeated", "stalled")
    for row in rows_of(result.table("jobs")):
        name, job = row["job"], by_name[row["job"]]
        node_us = [row[f"{label}_node_us"] for label in labels]
        assert min(node_us) >= 0, row
        same(f"labels of {name}", sum(node_us), held_us[name])
        most = could[name] * (1 + RELATIVE) + RELATIVE
        assert row["done_samples"] <= most, f"{row}: {most} samples could be made"
        if row["status"] == "finished":
            same(f"work of {name}", row["done_samples"], job.work)
            assert row["finished"] >= row["first_start"] >= row["admitted"] >= row["submitted"] or (
                row["submitted"] < log.start_us or row["first_start"] is None
            ), row
    same("all labels", sum(held_us.values()) + ledger["unallocated_node_us"], idle_us)
    paid = ledger["rescale_samples"] + ledger["preemption_samples"] + ledger["repeated_samples"]
    made = ledger["samples"] + paid + ledger["trimmed_samples"]
    close("gross samples", ledger["gross_samples"], made, abs(ledger["gross_samples"]) + abs(made))
    idle_intervals = rows_of(result.table("idle_intervals"))
    same("idle intervals", sum(row["n_intervals"] for row in idle_intervals), sum(len(each) for each in idle.values()))
    same("idle node time of intervals", sum(row["idle_node_us"] for row in idle_intervals), idle_us)
    same("held node time of intervals", sum(row["allocated_node_us"] for row in idle_intervals), sum(held_us.values()))
    bound = result.summary["bound"]
    if bound is not None and bound["share"] is not None:
        assert bound["share"] <= 1 + 1e-9, f"the run processed {bound['share']} of what no policy can exceed"
