"""The loop: from instant to instant, nodes and jobs come and go, the policy decides, the books are kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets import NodeEvents
from bfreplay.errors import BfreplayError
from bfreplay.milp.solution import ProcessStatus, Quality, Solution
from bfreplay.policies import Decision, Policy, PolicyState, Trigger
from bfreplay.replay.accounting import Semantics, advance, charge_preemption, predict_finish, settle, trim
from bfreplay.replay.active import NEVER_US, ActiveJobs
from bfreplay.replay.jobbook import JobBook
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.pool import FREE, NodePool
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.settings import ReplaySettings
from bfreplay.replay.timeline import Timeline
from bfreplay.workload import JobSet

_TRIGGER_WORDS = [
    "+".join(t.name.lower() for t in Trigger if t & mask and t.name) or "window_begin" for mask in range(8)
]

ProgressCallback = Callable[[int, int], None]
"""Called after every instant with (time reached in us, decisions so far); it must be quick."""


@dataclass(slots=True)
class Tally:
    """What the loop counts as it goes."""

    decisions: Counter[str] = field(default_factory=Counter)  # by what stands behind the answer
    fallbacks: Counter[str] = field(default_factory=Counter)  # by reason
    n_pool_events: int = 0
    n_preemptions: int = 0
    n_grown: int = 0
    n_shrunk: int = 0
    decide_s: float = 0.0
    slowest: dict[str, float | int] | None = None


class Engine:
    """One replay. Build it, ``run()`` it once, read ``tally`` and ``ledger``."""

    def __init__(
        self,
        events: NodeEvents,
        jobs: JobSet,
        policy: Policy,
        settings: ReplaySettings,
        recorder: Recorder,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.events = events
        self.jobs = jobs
        self.policy = policy
        self.settings = settings
        self.recorder = recorder
        self.progress = progress
        self.is_published = settings.semantics is Semantics.PUBLISHED
        self.timeline = Timeline(events)
        self.active = ActiveJobs(jobs, min(settings.max_parallel, len(jobs)))
        self.pool = NodePool(len(events.nodes), self.active)
        self.book = JobBook(jobs, recorder.jobs)
        self.rng = np.random.Generator(np.random.PCG64(settings.seed))
        self.tally = Tally()
        self.ledger: Ledger | None = None
        self._submit_us = [job.submit_us for job in jobs]
        self._next_job = 0
        self._next_finish_us = NEVER_US
        self._now_us = events.window_start_us
        self._is_first = True
        self._free_node_us = 0
        self._gross = self._samples = self._trimmed = 0.0
        self._last_rate = 0.0
        self._since_last = 0.0  # samples since the last row of the decision table

    # -- time ---------------------------------------------------------------------------------------------

    def run(self) -> Ledger:
        """Replay the whole window.

        Raises
        ------
        LedgerError
            The books do not close.
        """
        end_us = self.events.window_end_us
        while (now_us := self._next_instant()) <= end_us:
            self._pass_time(now_us)
            self._instant(now_us)
            if self.progress is not None:
                self.progress(now_us, self.recorder.decisions.n_rows)
        self._pass_time(end_us)
        if self.is_published:
            self._complete(end_us)  # the end of the window is a last look: nobody works past its work unnoticed
        return self._finish()

    def _next_instant(self) -> int:
        next_us = self.timeline.next_us
        if self.is_published:
            return next_us
        if self._next_job < len(self._submit_us) and not self.active.is_full:
            next_us = min(next_us, max(self._submit_us[self._next_job], self._now_us))
        return min(next_us, self._next_finish_us)

    def _pass_time(self, now_us: int) -> None:
        dt_us = now_us - self._now_us
        if dt_us == 0:
            return
        active = self.active
        held = int(active.records["count"][: active.n].sum())
        self._free_node_us += (self.pool.n_idle - held) * dt_us
        gained, gross = advance(active.records, active.n, dt_us, self.is_published)
        self._gross += gross
        self._samples += gained
        self._since_last += gained
        self._now_us = now_us

    def _instant(self, now_us: int) -> None:
        """Everything that happens at ``now_us``, in the order completion, leave, join, arrival, decision."""
        trigger = Trigger.NONE
        left = joined = preempted = 0
        preempt_cost = 0.0
        has_events = self.timeline.next_us == now_us
        if not self.is_published:
            trigger |= self._complete(now_us)
        if has_events:
            node, state = self.timeline.take()
            left, taken = self.pool.leave(node, state, now_us)
            if taken:
                preempted, preempt_cost = charge_preemption(
                    self.active.records, self.active.n, self.active.throughput, self.is_published
                )
                self.tally.n_preemptions += preempted
                if self.is_published:
                    self._samples -= preempt_cost
                    self._since_last -= preempt_cost
            if self.is_published:  # the published program looks at progress only now
                trigger |= self._complete(now_us)
            joined = self.pool.join(node, state, now_us)
        if left or joined:
            trigger |= Trigger.POOL
            self.tally.n_pool_events += not self._is_first
        trigger |= self._admit(now_us)
        if not (trigger or self._is_first):
            return  # nothing that matters here: a busy node went down, say
        if not (self._jobs_remain or trigger & Trigger.COMPLETION):
            return  # all jobs are done: only the books go on
        self._decide(now_us, trigger, (joined, left, preempted, preempt_cost))
        self._is_first = False

    @property
    def _jobs_remain(self) -> bool:
        return self.active.n > 0 or self._next_job < len(self.jobs)

    # -- jobs ---------------------------------------------------------------------------------------------

    def _complete(self, now_us: int) -> Trigger:
        active = self.active
        records = active.records[: active.n]
        if self.is_published:
            done = np.flatnonzero(records["progress"] >= records["work"])
        elif now_us < self._next_finish_us:
            return Trigger.NONE
        else:
            done = np.flatnonzero(records["finish_us"] <= now_us)
        for row in reversed(done.tolist()):
            excess = trim(active.records[row], self.is_published)
            self._trimmed += excess
            self._samples -= excess
            self._since_last -= excess
            self.pool.release(row)
            self.recorder.allocations.close_intervals(active.records, active.n, now_us)
            self.book.finish(active.records[row], now_us)
            active.remove(row)
        return Trigger.COMPLETION if done.size else Trigger.NONE

    def _admit(self, now_us: int) -> Trigger:
        admitted = Trigger.NONE
        while self._next_job < len(self.jobs) and not self.active.is_full and self._submit_us[self._next_job] <= now_us:
            self.active.admit(self._next_job, now_us)
            self._next_job += 1
            admitted = Trigger.ARRIVAL
        return admitted

    # -- decisions ----------------------------------------------------------------------------------------

    def _state(self, now_us: int) -> PolicyState:
        active = self.active
        n = active.n
        records = active.records[:n]
        return PolicyState(
            time_us=now_us,
            n_idle=self.pool.n_idle,
            job=records["job"],
            current=records["count"],
            min_nodes=records["min_nodes"],
            max_nodes=records["max_nodes"],
            scale_up_cost_s=records["scale_up_cost_s"],
            scale_down_cost_s=records["scale_down_cost_s"],
            throughput=active.throughput[:n],
            objective=active.objective[:n],
            progress=records["progress"],
            work=records["work"],
        )

    def _decide(self, now_us: int, trigger: Trigger, happened: tuple[int, int, int, float]) -> None:
        active = self.active
        records = active.records
        before = records["count"][: active.n].copy()
        decision: Decision | None = None
        decide_s = 0.0
        if active.n and self.pool.n_idle:
            if self._is_first and self.is_published:
                free = np.flatnonzero(self.pool.holder == FREE)
                decision = self.settings.seed_map(self._state(now_us), free, self.rng)
            elif trigger & self.policy.wakes_on:
                started = perf_counter()
                decision = self.policy.decide(self._state(now_us))
                decide_s = perf_counter() - started
                self._time(decide_s)
            if decision is not None:
                self._realise(decision, before)
        rate, rescale_cost, grown, shrunk, running, used = settle(records, before, active.throughput, now_us)
        self.tally.n_grown += grown
        self.tally.n_shrunk += shrunk
        if self._is_first and self.is_published:  # the published first map pays as if each job had grown to it
            rescale_cost = self._charge_first_map()
        if self.is_published and not self._jobs_remain:
            rate = self._last_rate  # the published log repeats the rate before on the row that ends it
        self._last_rate = rate
        self._next_finish_us = predict_finish(records, active.n, now_us)
        self.recorder.allocations.close_intervals(records, active.n, now_us)
        if self.recorder.nodes is not None:
            self.recorder.nodes.close_intervals(self.pool.holder, now_us)
        self._write_row(
            now_us, trigger, happened, decision, decide_s, (rate, rescale_cost, grown, shrunk, running, used)
        )

    def _realise(self, decision: Decision, before: NDArray[np.int64]) -> None:
        counts = decision.counts
        active = self.active
        if counts.shape != before.shape:
            raise BfreplayError(f"the policy gave {counts.shape} counts for {before.shape} jobs")
        too_many = int(counts.sum()) > self.pool.n_idle
        out_of_range = (counts < 0) | ((counts > active.records["max_nodes"][: active.n]) & (counts > before))
        if too_many or out_of_range.any():
            raise BfreplayError(
                f"the policy {self.policy.name!r} gave counts {counts.tolist()} at {self._now_us} us: "
                f"{self.pool.n_idle} nodes are idle, and no job may exceed its max_nodes "
                f"{active.records['max_nodes'][: active.n].tolist()}"
            )
        if decision.assigned is None:
            self.pool.place(np.ascontiguousarray(counts, dtype=np.int64))
        else:
            self.pool.assign(decision.assigned)

    def _time(self, decide_s: float) -> None:
        tally = self.tally
        tally.decide_s += decide_s
        if tally.slowest is None or decide_s > tally.slowest["decide_s"]:
            tally.slowest = {
                "decide_s": decide_s,
                "time_us": self._now_us,
                "n_idle": self.pool.n_idle,
                "n_jobs": self.active.n,
            }

    def _charge_first_map(self) -> float:
        records = self.active.records[: self.active.n]
        cost = records["rate"] * records["scale_up_cost_s"]
        records["rescale_cost"] = cost
        records["rescale_debt"] = cost
        return float(cost.sum())

    def _write_row(
        self,
        now_us: int,
        trigger: Trigger,
        happened: tuple[int, int, int, float],
        decision: Decision | None,
        decide_s: float,
        outcome: tuple[float, float, int, int, int, int],
    ) -> None:
        joined, left, preempted, preempt_cost = happened
        rate, rescale_cost, grown, shrunk, running, used = outcome
        solution = decision.solution if decision is not None else None
        if solution is not None:
            rejected = solution.rejected
            source = rejected if rejected is not None else solution
            verdict: tuple[float | str | None, ...] = (
                None if math.isnan(solution.objective) else solution.objective,
                None if math.isinf(solution.bound) else solution.bound,
                None if math.isinf(solution.gap) else solution.gap,
                solution.solver,
                source.process_status.value,
                source.solver_status.value,
                solution.quality.value,
                None if rejected is None else rejected.solver,
                solution.message or None,
            )
            self.tally.decisions[solution.quality.value] += 1
            if rejected is not None or solution.counts is None:
                self.tally.fallbacks[reason_of(source)] += 1
            build_s, solve_s = solution.build_s, solution.solve_s
        else:
            build_s = solve_s = 0.0
            if decision is not None:  # a policy without a solver, or the first map: nothing to prove
                quality, process = Quality.FEASIBLE.value, ProcessStatus.OK.value
                kind = "unproven_by_design"
            elif self.active.n and self.pool.n_idle:
                quality, process, kind = Quality.FEASIBLE.value, ProcessStatus.NOT_NEEDED.value, "not_asked"
            else:  # no job or no node: zero is the one feasible answer
                quality, process, kind = Quality.PROVEN.value, ProcessStatus.NOT_NEEDED.value, "proven_trivially"
            verdict = (None, None, None, self.policy.name, process, None, quality, None, None)
            self.tally.decisions[kind] += 1
        active = self.active
        self.recorder.decisions.append(
            (
                now_us, _TRIGGER_WORDS[trigger], self.pool.n_idle, joined, left, active.n, running, preempted,
                grown, shrunk, used, rate, self._since_last, rescale_cost, preempt_cost, *verdict,
            )
        )  # fmt: skip
        self.recorder.timings.append((now_us, build_s, solve_s, decide_s))
        self._since_last = 0.0

    # -- the end ------------------------------------------------------------------------------------------

    def _finish(self) -> Ledger:
        active = self.active
        end_us = self._now_us
        idle_node_us = self.pool.idle_node_us_until(end_us)
        records = active.records[: active.n].copy()
        for row in range(active.n):
            self.pool.release(row)
        self.recorder.allocations.close_intervals(active.records, active.n, end_us)
        if self.recorder.nodes is not None:
            self.recorder.nodes.close_intervals(self.pool.holder, end_us)
        for record in records:
            self.book.interrupt(record)
        for index in range(self._next_job, len(self.jobs)):
            self.book.never_admitted(index, end_us)
        totals = self.book.totals
        self.ledger = Ledger(
            idle_node_us=idle_node_us,
            useful_node_us=totals["useful"],
            rescaling_node_us=totals["rescaling"],
            preempted_node_us=totals["preempted"],
            stalled_node_us=totals["stalled"],
            free_node_us=self._free_node_us,
            allocated_node_us=self.recorder.allocations.node_us,
            gross_samples=self._gross,
            samples=self._samples,
            samples_by_job=self.book.samples,
            rescale_samples=self.book.rescale_samples,
            preempt_samples=self.book.preempt_samples,
            trimmed_samples=self._trimmed,
        )
        self.ledger.close()
        return self.ledger


def reason_of(failed: Solution) -> str:
    """Why an answer was not used, in a word for a table."""
    if failed.process_status is not ProcessStatus.OK:
        return failed.process_status.value
    if failed.quality is Quality.WRONG:
        return "wrong"
    return failed.solver_status.value
