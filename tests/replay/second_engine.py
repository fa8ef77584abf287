"""A second replay engine, in plain Python, that a run is checked against. It shares no code with bfreplay's.

``check`` walks through a run's log and jobs by the rules of docs/runs.md and is told by the run only the counts of each
decision and when each job finished; everything else (times and triggers of decisions, rates, costs, node names, node
time by label, statuses, batch starts, totals) is computed again and compared. Of a policy that chooses nodes, decides
in rounds, limits jobs or declines them it is also given the answers as they were recorded. Decisions of BFTrainer's own
objective are solved again by a dynamic program.

What a job makes, pays and loses stands in second_jobs.py, what is compared at the end in second_checks.py, whose
``check_tables`` holds for any policy.

Times are microseconds, node time is node-microseconds.
"""

from __future__ import annotations

import math

from tests.replay.second_checks import check_end, check_tables, close, near, rows_of, same
from tests.replay.second_jobs import RELATIVE, US, Job, Log, Rules


def check(log: Log, jobs: list[Job], rules: Rules, result, answers=None) -> None:
    """Raise AssertionError where a run differs from the second engine.

    ``answers`` are what the policy said, (time, decision) each, needed if it does more than decide on counts.
    """
    engine = SecondEngine(log, jobs, rules, result, answers)
    engine.walk()
    check_end(engine)
    check_tables(log, jobs, result)


class SecondEngine:
    """One run, walked through again."""

    def __init__(self, log: Log, jobs: list[Job], rules: Rules, result, answers=None) -> None:
        self.log, self.jobs, self.rules, self.result = log, jobs, rules, result
        self.answers = None if answers is None else list(answers)  # of the policy: (time, decision)
        self.rows = rows_of(result.table("decisions"))
        self.finish_us = {row["job"]: row["finished"] for row in rows_of(result.table("jobs"))}
        self.now = log.start_us
        # jobs
        self.queue = sorted(jobs, key=lambda job: job.submit_us)  # stable: order of the file
        self.active: list[Job] = []
        self.statuses: dict[str, str] = {}  # at the end
        self.rounding = 0.0  # samples of the last microseconds of jobs
        # nodes
        self.idle: set[int] = set()
        self.young: dict[int, int] = {}  # nodes that are idle for too short a time, and until when
        self.reserved: set[int] = set()
        self.node_open: dict[int, tuple[str, int]] = {}
        self.node_spans: list[tuple[str, str, int, int]] = []
        self.free_us = self.idle_us = 0
        self.pool: list[tuple[int, int]] = []
        self.most_idle = 0
        self.n_pool_events = 0
        self.busy_since = {k: log.start_us for k in range(len(log.nodes)) if k not in log.first_idle}
        self.started = dict.fromkeys(
            ("n_starts", "n_starts_met", "n_nodes_started", "n_nodes_met", "delay_node_us", "busy_node_us"), 0
        )
        # decisions
        self.round_us = math.inf
        self.n_rows = 0
        self.logged = 0.0  # samples before the last one
        self.last_rate = 0.0
        self._forget_waiting()

    def _forget_waiting(self) -> None:
        self.waiting: set[str] = set()  # triggers of the decision that waits
        self.waiting_changes = [0, 0, 0, 0.0]
        self.since_us = self.settled_us = math.inf

    @property
    def total(self) -> float:
        """Samples that all jobs have made."""
        return sum(job.progress for job in self.jobs)

    @property
    def usable(self) -> set[int]:
        """Idle nodes that jobs may have."""
        return self.idle - set(self.young) - self.reserved

    @property
    def free(self) -> list[int]:
        """Usable nodes that no job has, in order."""
        return sorted(self.usable - {node for job in self.active for node in job.nodes})

    # -- the walk -----------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Go through the window, and compare each decision."""
        by_time: dict[int, list[tuple[int, str]]] = {self.log.start_us: [(k, "idle") for k in self.log.first_idle]}
        for (time_us, node, idle), state in zip(self.log.changes, self.log.states, strict=True):
            assert idle == (state == "idle")
            by_time.setdefault(time_us, []).append((node, state))
        instants = sorted(by_time)
        while (now := min([*instants[:1], *self._own_instants()], default=math.inf)) <= self.log.end_us:
            self._pass_time(now)
            events = by_time[instants.pop(0)] if instants[:1] == [now] else None
            self._instant(now, events)
        self._pass_time(self.log.end_us)
        if self.rules.is_published:
            self._complete_published()
        self._end()

    def _own_instants(self) -> list[float]:
        """Times at which something is due besides the changes of nodes."""
        if self.rules.is_published:
            return []
        times = [self.finish_us[job.name] for job in self.active if self.finish_us[job.name] is not None]
        if len(self.active) < self.rules.max_parallel and self.queue:
            arrival = max(self.queue[0].submit_us, self.now)
            times += [arrival] if arrival < self.log.end_us else []
        times += [until for until in self.young.values() if until < self.log.end_us]
        return [*times, self.round_us, self.settled_us]

    def _pass_time(self, now: int) -> None:
        dt = now - self.now
        assert dt >= 0, f"a job finishes at {now}, before {self.now}, when it was admitted or last decided on"
        if dt == 0:
            return
        self.most_idle = max(self.most_idle, len(self.idle))
        self.idle_us += len(self.idle) * dt
        self.free_us += (len(self.idle) - sum(job.count for job in self.active)) * dt
        for job in self.active:
            job.pass_time(self.now, now, is_published=self.rules.is_published)
        self.now = now

    def _end(self) -> None:
        end = self.log.end_us
        self.statuses = {job.name: "queued" if job.submit_us <= end else "not_submitted" for job in self.queue}
        for job in self.active:
            self.statuses[job.name] = "running" if job.rate > 0 else "waiting"
            job.nodes = []
            self._note_interval(job, end)
        self.active = []
        self._close_intervals(end)
        self.started["busy_node_us"] += sum(end - since for since in self.busy_since.values())

    def _note_interval(self, job: Job, now: int) -> None:
        count, since = job.open
        if job.count != count:
            if count and since < now:
                job.intervals.append((count, since, now))
            job.open = (job.count, now)

    def _close_intervals(self, now: int) -> None:
        for job in self.active:
            self._note_interval(job, now)
        holder = {node: job.name for job in self.active for node in job.nodes}
        for node, (name, since) in list(self.node_open.items()):
            if holder.get(node) != name:
                if since < now:
                    self.node_spans.append((self.log.nodes[node], name, since, now))
                del self.node_open[node]
        for node, name in holder.items():
            self.node_open.setdefault(node, (name, now))

    # -- an instant ---------------------------------------------------------------------------------------

    def _instant(self, now: int, events: list[tuple[int, str]] | None) -> None:
        usable = self._usable_by_type()
        triggers = set()
        changes = [0, 0, 0, 0.0]
        if not self.rules.is_published and self._complete(now):
            triggers.add("completion")
        if events is not None:
            words, changes = self._change_pool(now, events)
            triggers |= words
        if self.rules.leaves_alone:  # only nodes that jobs may have are news
            self._leave_alone(now)
            triggers.discard("pool")
            is_hit = changes[2] > 0
            triggers |= {"pool"} if is_hit or self._usable_by_type() != usable else set()
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
        triggers, changes = self._settle(now, triggers, changes)
        if (triggers or not self.n_rows) and (self.active or self.queue or "completion" in triggers):
            self._decision(now, triggers, *changes)
        if triggers or not self.n_rows:
            self._forget_waiting()
        self._close_intervals(now)

    def _change_pool(self, now: int, events: list[tuple[int, str]]) -> tuple[set[str], list]:
        """Let nodes come and go; return triggers, and how many came, went and were jobs', and the samples charged."""
        triggers = set()
        before = len(self.idle)
        taken = {node for node, state in events if state != "idle" and node in self.idle}
        self.idle -= taken
        self.reserved -= taken
        self._count_batch_starts(now, events, taken)
        hit = [job for job in self.active if taken & set(job.nodes)]
        cost = sum([job.lose_nodes(taken, now, self.rules) for job in hit])
        if self.rules.is_published and self._complete_published():
            triggers.add("completion")
        new = {node for node, state in events if state == "idle"} - self.idle
        self.idle |= new
        self.young = {node: until for node, until in self.young.items() if node not in taken}
        if self.rules.min_age_us:
            self.young |= dict.fromkeys(new, now + self.rules.min_age_us)
        if len(self.idle) != before or not self.pool:
            self.pool.append((now, len(self.idle)))
        if new or taken:
            triggers.add("pool")
            self.n_pool_events += now > self.log.start_us
        return triggers, [len(new), len(taken), len(hit), cost]

    def _count_batch_starts(self, now: int, events: list[tuple[int, str]], taken: set[int]) -> None:
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

    def _usable_by_type(self) -> dict[str, int]:
        types = self.log.types or ["any"] * len(self.log.nodes)
        return {name: sum(types[node] == name for node in self.usable) for name in set(types)}

    def _leave_alone(self, now: int) -> None:
        """Free the nodes that are old enough, then fill the reserve from above, or lower it from below."""
        self.young = {node: until for node, until in self.young.items() if until > now}
        missing = self.rules.reserve - len(self.young) - len(self.reserved)
        if missing > 0:
            self.reserved |= set(self.free[-missing:])
        else:
            self.reserved -= set(sorted(self.reserved)[: -missing or None] if missing else [])

    def _settle(self, now: int, triggers: set[str], changes: list) -> tuple[set[str], list]:
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

    def _complete(self, now: int) -> bool:
        leaving = [job for job in self.active if self.finish_us[job.name] == now]
        for job in leaving:
            owed = job.work - job.progress + job.preempt_debt + job.rescale_debt
            allowed = job.pace * 2 / US + RELATIVE * job.work
            assert job.not_before_us <= now, f"{job.name} leaves at {now}, before {job.not_before_us}"
            assert abs(owed) <= allowed, f"{job.name} finishes at {now} with {owed} samples to go at {job.rate}/s"
            self.rounding += job.pace * 2 / US  # its last microsecond
            self._leave(job, now)
        return bool(leaving)

    def _complete_published(self) -> bool:
        leaving = [
            job
            for job in self.active
            if job.progress >= job.work * (1 + RELATIVE)
            or (self.finish_us[job.name] == self.now and near(job.progress, job.work, job.work))
        ]
        for job in leaving:
            same(f"finish of {job.name}", self.finish_us[job.name], self.now)
            self._leave(job, self.now)
        return bool(leaving)

    def _leave(self, job: Job, now: int, ending: str = "") -> None:
        if ending:
            job.left_as = (ending, now)
        else:
            job.progress = job.work
            job.finished_us = now
        job.nodes = []
        self.active.remove(job)
        self._note_interval(job, now)

    # -- a decision ---------------------------------------------------------------------------------------

    def _decision(self, now: int, triggers: set[str], came: int, left: int, hit: int, preemption_cost: float) -> None:
        assert self.n_rows < len(self.rows), f"the run has no decision at {now} ({triggers}), nor after it"
        row, k = self.rows[self.n_rows], self.n_rows
        same(f"time of decision {k}", row["time"], now)
        same(f"trigger of decision {k}", set(row["trigger"].split("+")), triggers or {"window_begin"})
        counts = row["counts"]
        same(f"jobs of decision {k}", len(counts), len(self.active))
        before = [job.count for job in self.active]
        n_usable = len(self.usable)
        assert sum(counts) <= n_usable, f"decision {k} gives {counts} of {n_usable} nodes"
        for job, count, was in zip(self.active, counts, before, strict=True):
            assert count == was or count == 0 or job.min_nodes <= count <= job.max_nodes, (job.name, was, count)
        between_rounds = "round" in self.rules.wakes and self.round_us == math.inf
        is_due = bool(triggers & self.rules.wakes) or between_rounds or not k
        is_asked = is_due and bool(counts) and n_usable > 0
        answer = None
        if self.answers is not None:
            if is_asked:
                assert self.answers, f"the policy was not asked for decision {k}"
                asked_us, answer = self.answers.pop(0)
                same(f"time of the answer for decision {k}", asked_us, now)
            same(f"counts of decision {k}", counts, before if answer is None else answer.counts.tolist())
        is_seeded = self.rules.is_published and not k
        if not is_due:
            same(f"counts of decision {k}, which nobody asked for", counts, before)
        elif self.rules.solves_own_objective and is_asked and not is_seeded:
            self._check_optimum(k, row, before, counts)
        if self.rules.on_runs and is_asked and (answer is None or answer.placement is None):
            self._place_on_runs(counts)  # nothing is left to place below
        if is_asked:
            for job in self.active:
                job.lost_nodes = 0
        rates_before = [self._rate_charged(job, was) for job, was in zip(self.active, before, strict=True)]
        if answer is not None:
            self._follow(answer)
        self._place(counts, is_seeded=is_seeded)
        cost = 0.0
        for j, (job, was, rate) in enumerate(zip(self.active, before, rates_before, strict=True)):
            cost += self._pay(j, job, was, rate, answer, is_seeded=is_seeded)
        rate = sum(job.rate for job in self.active)
        if self.rules.is_published and not self.active and not self.queue:
            rate = self.last_rate
        self.last_rate = rate
        expected = {
            "n_idle": n_usable,
            "n_joined": came,
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
        scale = sum(job.gross for job in self.jobs) + rate
        close(f"samples before decision {k}", row["samples_since_last"], self.total - self.logged, scale)
        self.logged = self.total
        self.n_rows += 1
        if answer is not None and answer.round is not None:
            failed = answer.round.failed
            ending = {j: "failed" for j in range(len(counts)) if failed is not None and failed[j]}
            ending = dict.fromkeys(answer.round.declined, "declined") | ending
            for job, how in [(self.active[j], how) for j, how in ending.items()]:
                self._leave(job, now, how)

    def _check_optimum(self, k: int, row: dict, before: list[int], counts: list[int]) -> None:
        """Solve the decision again by a dynamic program."""
        capacity = row["n_idle"]
        horizon_s = row["t_fwd_s"] + max(job.longest_s(len(self.log.nodes)) for job in self.active)
        best = [0.0] + [-math.inf] * capacity
        worth = 0.0
        size = 1.0
        for job, was, chosen in zip(self.active, before, counts, strict=True):
            values = {
                n: job.weight * (horizon_s * job.rate_at(n) - job.gives_up(was, n, self.now))
                for n in job.choices(was, capacity)
            }
            assert chosen in values, f"decision {k}: {job.name} on {chosen} nodes, which it cannot use"
            worth += values[chosen]
            size += max(abs(value) for value in values.values())
            best = [max(best[c - n] + value for n, value in values.items() if n <= c) for c in range(capacity + 1)]
        close(f"objective of decision {k}", row["objective"], worth, size)
        if row["quality"] == "proven":
            close(f"optimum of decision {k}", worth, max(best), size)
        else:
            assert row["solver_status"] is None or row["quality"] in ("feasible", "none"), row

    def _follow(self, answer) -> None:
        """Give the jobs the nodes that a policy chose, and set its limits."""
        if answer.placement is not None:
            assigned = [nodes.tolist() for nodes in answer.placement.assigned]
            together = sorted(node for nodes in assigned for node in nodes)
            assert together == sorted(set(together) & self.usable), f"{together} are not all of {self.usable}"
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
                job.progress += float(until.credit[j])
                job.saved += float(until.credit[j])
            if until.samples is not None and until.samples[j] < job.work - job.progress:
                job.halt = job.progress + float(until.samples[j])
            if until.not_before_us is not None and until.not_before_us[j] > self.now:
                job.not_before_us = int(until.not_before_us[j])

    def _place_on_runs(self, counts: list[int]) -> None:
        """Give out free nodes, and all those of jobs that were hit, on runs of numbers at most 18 apart."""
        had = {job.name: list(job.nodes) for job in self.active}
        for job, count in zip(self.active, counts, strict=True):
            job.nodes = [] if job.lost_nodes else job.nodes[:count]
        runs: list[list[int]] = []
        for node in self.free:
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

    def _place(self, counts: list[int], *, is_seeded: bool) -> None:
        """Take nodes off those gained last, then give the lowest free ones; the first map of all is read off."""
        if is_seeded:
            rows = rows_of(self.result.table("nodes"))
            for job, count in zip(self.active, counts, strict=True):
                names = [row["node"] for row in rows if row["job"] == job.name and row["from"] == self.now]
                job.nodes = sorted(self.log.nodes.index(name) for name in names)
                same(f"nodes of {job.name} in the first map", len(job.nodes), count)
            return
        for job, count in zip(self.active, counts, strict=True):
            del job.nodes[count:]
        free = self.free
        for job, count in zip(self.active, counts, strict=True):
            more = count - job.count
            job.nodes += free[:more]
            free = free[more:]

    def _rate_charged(self, job: Job, was: int) -> float:
        """Samples/s by which a change from ``was`` nodes is charged; the published clock does not look at the least."""
        return next(iter(job.rates.values()))[was] if self.rules.is_published else job.rate_at(was)

    def _pay(self, j: int, job: Job, was: int, rate_before: float, answer, *, is_seeded: bool) -> float:
        """Charge the change of a job that now has other nodes, or a restart; return the samples."""
        if job.count > was:
            job.grown += 1
            if was == 0:
                job.starts += 1
                job.first_start_us = self.now if job.first_start_us is None else job.first_start_us
        elif job.count < was:
            job.shrunk += 1
        if self.rules.is_published:
            is_changed = is_seeded or job.count != was
            job.rescale_cost = (job.rate if is_seeded else rate_before) * job.rescale_s(was) if is_changed else 0.0
            return job.rescale_cost
        placement = None if answer is None else answer.placement
        restart_s = 0.0
        for part in (answer, placement):
            if part is not None and part.restart_s is not None:
                restart_s = float(part.restart_s[j])
        is_hit = job.hit_us is not None and job.hit_us >= min(self.now, self.since_us)
        label = "preempted" if is_hit else "rescaling"
        is_charged = placement is None or placement.charges_rescales
        return job.pay_for_change(was, rate_before, self.now, restart_s, is_charged=is_charged, label=label)
