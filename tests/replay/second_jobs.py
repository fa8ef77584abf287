"""What a job of the second engine makes, pays and loses, and the log and options of a run that it is part of."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

US = 1e6
RELATIVE = 1e-8  # of sums of floating-point numbers in another order
LABELS = "useful", "rescaling", "preempted", "repeated", "stalled"
Cost = float | dict[int, float]  # seconds; by the new count: from each count on
NO_PAUSE = -math.inf, ""


def at(cost: Cost, n: int) -> float:
    """Seconds of a change to n nodes."""
    return cost[max(k for k in cost if k <= n)] if isinstance(cost, dict) else cost


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


@dataclass
class Job:
    """A job as it is submitted, and what has become of it."""

    name: str
    submit_us: int
    min_nodes: int
    max_nodes: int
    up_s: Cost
    down_s: Cost
    work: float
    rates: dict[str, list[float]]  # samples/s by node type at 0, 1, ... max_nodes nodes
    weight: float = 1.0
    start_s: Cost = 0.0
    pauses: bool = False
    every_us: int = 0
    saves: str = "never"
    counts: tuple[int, ...] = ()  # that it can use; empty: all

    nodes: list[int] = field(default_factory=list)  # last gained last
    node_type: str = ""
    progress: float = 0.0
    preempt_debt: float = 0.0
    rescale_debt: float = 0.0
    rescale_cost: float = 0.0  # published clock: subtracted at the next instant
    pause: tuple[float, str] = NO_PAUSE  # until when, and its label
    run_since_us: int = 0
    saved: float = 0.0  # progress at the last checkpoint
    risk_us: float = 0.0  # useful node time since
    hit_us: int | None = None
    lost_nodes: int = 0  # since the policy last decided
    halt: float = math.inf  # progress at which it waits for the next decision
    not_before_us: float = -math.inf  # a job that is done leaves then
    waits: bool = False

    admitted_us: int | None = None
    first_start_us: int | None = None
    finished_us: int | None = None
    left_as: tuple[str, int] | None = None  # declined or given up, and when
    starts: int = 0
    grown: int = 0
    shrunk: int = 0
    preempted: int = 0
    gross: float = 0.0  # samples that its nodes could have made
    paid: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # samples by label
    lost: list[tuple[int, float, float]] = field(default_factory=list)  # when, samples, node time
    label_us: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    slack_us: float = 1.0  # rounding of labels to whole microseconds
    open: tuple[int, int] = (0, 0)  # count and since when
    intervals: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def is_published(self) -> bool:
        """Whether BFTrainer's model knows all that its changes cost."""
        is_plain = not any(isinstance(cost, dict) for cost in (self.start_s, self.up_s, self.down_s))
        return is_plain and not (self.start_s or self.pauses or self.every_us or self.counts)

    # -- rates --------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        return len(self.nodes)

    def rate_on(self, node_type: str, n: int) -> float:
        """Samples/s on n nodes of a type; nothing below min_nodes."""
        curve = self.rates[node_type] if node_type in self.rates else next(iter(self.rates.values()))
        if n < self.min_nodes:
            return 0.0
        return curve[max(count for count in self.counts if count <= n)] if self.counts else curve[n]

    def rate_at(self, n: int) -> float:
        """Samples/s on n nodes of the type that it is on."""
        return self.rate_on(self.node_type, n)

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

    # -- time that passes ---------------------------------------------------------------------------------

    def pass_time(self, since: int, now: int, *, is_published: bool) -> None:
        """Let it work from ``since`` until now."""
        if self.waits and self.progress >= self.work:
            left_late = self.not_before_us < now - 2
            assert not left_late, f"{self.name} is done, may leave at {self.not_before_us} and goes on"
        if is_published:
            made = self.rate * (now - since) / US
            self.gross += made
            self.progress += made - self.rescale_cost
            self.rescale_cost = 0.0
            return
        while since < now:  # from checkpoint to checkpoint, and to the end of a pause
            until = min(now, self.pause[0]) if self.pause[0] > since else now
            saves_at = math.inf
            if self.every_us and self.count >= self.min_nodes:
                saves_at = since + self.every_us - (since - self.run_since_us) % self.every_us
                until = min(until, saves_at)
            self._work(since, until)
            if until == saves_at:
                self.saved, self.risk_us = self.progress, 0.0
            since = until

    def _work(self, since: int, now: int) -> None:
        """Let it work without a checkpoint."""
        dt = now - since
        rate, held = self.rate, self.count
        if rate <= 0:
            self.label_us["stalled"] += held * dt
            return
        left = rate * dt / US
        self.gross += left
        if self.pause[0] > since:
            self._pay(self.pause[1], left, held * dt)
            return
        for debt, label in (("preempt_debt", "preempted"), ("rescale_debt", "rescaling")):
            paid = min(getattr(self, debt), left)
            if paid > 0:
                setattr(self, debt, getattr(self, debt) - paid)
                self._pay(label, paid, held * paid / rate * US)
                left -= paid
        beyond = self.progress + left - self.stop
        if self.stop < math.inf and beyond >= -1e-11 * self.stop:
            self.waits = True
            self.gross -= beyond
            self.label_us["stalled"] += held * max(beyond, 0.0) / rate * US
            left -= beyond
        self.label_us["useful"] += held * left / rate * US
        self.risk_us += held * left / rate * US
        self.slack_us += held
        self.progress = self.stop if self.waits else self.progress + left
        if self.progress >= self.work:
            late_us = now - max(now - max(self.progress - self.work, beyond) / rate * US, self.not_before_us)
            assert late_us <= 2 + RELATIVE * dt, f"{self.name} was done {late_us} us before {now} and goes on"

    def _pay(self, label: str, samples: float, node_us: float) -> None:
        self.paid[label] += samples
        self.label_us[label] += node_us
        self.slack_us += self.count

    # -- changes ------------------------------------------------------------------------------------------

    def lose_nodes(self, taken: set[int], now: int, rules: Rules) -> float:
        """Take nodes away, by a reclaim; return the samples that this is charged with."""
        rate_before = self.rate
        self.lost_nodes += len(taken & set(self.nodes))
        self.nodes = [node for node in self.nodes if node not in taken]
        self.preempted += 1
        is_of_burst = self.hit_us is not None and 0 < now - self.hit_us <= rules.settle_us
        self.hit_us = now
        self._begin_run(now, is_saved=self.saves != "never" and rules.notice_us is not None)
        seconds = max(0.0, at(self.down_s, self.count) - (rules.notice_us or 0) / US)
        cost = 0.0 if is_of_burst else rate_before * seconds
        if self.pauses:
            cost = self.pace * seconds
            self._pause(now, seconds, "preempted")
        elif rules.is_published:
            self.progress -= cost
        else:
            self.preempt_debt += cost
        self._go_on(now)
        return cost

    def pay_for_change(
        self, was: int, rate_before: float, now: int, restart_s: float, *, is_charged: bool, label: str
    ) -> float:
        """Charge a decision that has taken it from ``was`` nodes to those that it has; return the samples.

        ``restart_s`` are seconds of the policy's own; a policy that is not charged for rescales pays only these.
        """
        n = self.count
        restarts = n != was or restart_s > 0
        if restarts:
            self._begin_run(now, is_saved=self.saves == "on-resize")
        cost = 0.0
        if n != was and is_charged and not self.pauses:
            cost = rate_before * self.rescale_s(was)
        self.rescale_debt += cost
        self._go_on(now)
        if is_charged and was < self.min_nodes <= n:
            restart_s += at(self.start_s, n)
        elif is_charged and self.pauses and n != was:
            restart_s += self.rescale_s(was)
        if not self.pauses:
            self.rescale_debt += self.rate * restart_s
        elif restarts or n < self.min_nodes:
            self._pause(now, restart_s, label)
        return cost + self.rate * restart_s

    def rescale_s(self, was: int) -> float:
        """Seconds of the change from ``was`` nodes to those that it has."""
        return at(self.up_s if self.count > was else self.down_s, self.count)

    def _go_on(self, now: int) -> None:
        """Work, unless it has to wait for the next decision or is done: then nothing is paid either."""
        is_done = self.progress >= self.work and self.preempt_debt + self.rescale_debt == 0
        self.waits = (is_done and self.not_before_us > now) or (self.progress >= self.halt and self.halt < self.work)

    def _pause(self, now: int, seconds: float, label: str) -> None:
        """Pause, in place of what is left of another pause; a job that cannot run does not."""
        self.pause = (now + int(seconds * US + 0.5), label) if self.count >= self.min_nodes else NO_PAUSE

    def _begin_run(self, now: int, *, is_saved: bool) -> None:
        """Save the work at risk, or go back to the last checkpoint; checkpoints are counted from now on."""
        if self.every_us and not is_saved:
            if self.progress != self.saved or self.risk_us:
                self.lost.append((now, self.progress - self.saved, self.risk_us))
            self.progress = self.saved
            self.label_us["useful"] -= self.risk_us
            self.label_us["repeated"] += self.risk_us
        self.saved, self.risk_us = self.progress, 0.0
        self.run_since_us = now

    # -- what a decision knows ----------------------------------------------------------------------------

    def longest_s(self, n_nodes: int) -> float:
        """The longest start, or pause, on a count that it may have on so many nodes."""
        kinds = [self.start_s, *((self.up_s, self.down_s) if self.pauses else ())]
        most = max(self.min_nodes, min(self.max_nodes, n_nodes))
        return max(at(cost, n) for cost in kinds for n in range(most + 1))

    def choices(self, was: int, capacity: int) -> list[int]:
        """Counts that a decision may give it."""
        allowed = self.counts or range(self.min_nodes, self.max_nodes + 1)
        kept = [was] if was >= self.min_nodes else []
        return sorted({n for n in (0, *allowed, *kept) if n <= capacity})

    def gives_up(self, was: int, n: int, now: int) -> float:
        """Samples that it loses by a decision that takes it from ``was`` nodes to n."""
        rate = self.rate_at(was)
        if n == was:
            return rate * max(0.0, (self.pause[0] - now) / US)
        cost = self.progress - self.saved if self.every_us and self.saves != "on-resize" and rate > 0 else 0.0
        seconds = at(self.up_s if n > was else self.down_s, n)
        if not self.pauses:
            cost += rate * seconds
        if was < self.min_nodes <= n:
            cost += self.rate_at(n) * at(self.start_s, n)
        elif self.pauses:
            cost += self.rate_at(n) * seconds
        return cost
