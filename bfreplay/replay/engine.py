"""Loop of a replay: from instant to instant, nodes and jobs come and go, the policy decides, the ledger is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT
from bfreplay.datasets.log.states import EventBatch
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import BfreplayError
from bfreplay.policies import Decision, Policy, PolicyState, Round, Trigger
from bfreplay.policies.state import LONG_AGO_US, NEVER_US
from bfreplay.replay.active import ActiveJobs
from bfreplay.replay.decision_checks import answer_of, decision_fault, restart_s_of
from bfreplay.replay.decision_log import NO_CHANGES, DecisionLog, DecisionPoint, Outcome, PoolChanges
from bfreplay.replay.feed import Feed
from bfreplay.replay.job_flow import JobFlow
from bfreplay.replay.job_outcomes import JobOutcomes
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.placement import FREE
from bfreplay.replay.pool import NodePool, PoolView, Timeline
from bfreplay.replay.pool_tables import node_time_of_bins, write_idle_intervals
from bfreplay.replay.progress import Semantics, advance, apply_decision
from bfreplay.replay.run_tables import RunTables
from bfreplay.replay.settings import ReplaySettings, charge_first_map
from bfreplay.replay.settling import Settling
from bfreplay.workload import JobSet, JobSource

ProgressCallback = Callable[[int, int], None]
"""Called after every instant with (time reached in us, decisions so far); it must be quick.

One with a method ``job_left`` is told the number of every job that leaves for good.
"""


# plain numbers: ten times as fast
_POOL, _COMPLETION, _ROUND = Trigger.POOL.value, Trigger.COMPLETION.value, Trigger.ROUND.value
_WAITING = _POOL | _COMPLETION | Trigger.ARRIVAL.value


class Engine:
    """One replay. Build it, ``run()`` it once for the ledger, then read ``log`` and ``outcomes``.

    Or feed it portions of the log: ``advance()`` as often as there are some, then ``finish()``. Between two instants
    its state can be saved, and restored into another one that was built alike (``saved_state``): it goes on as this.

    Attributes
    ----------
    reached_us
        Time of the last instant that was replayed.
    is_over
        True once the jobs are done in a run that ends with them.
    after_instant
        Called with this engine after every instant.
    """

    not_saved = ("events", "settings", "timeline", "progress", "after_instant", "read_s")

    def __init__(
        self,
        events: NodeEvents,
        jobs: JobSet | JobSource,
        policy: Policy,
        settings: ReplaySettings,
        run_tables: RunTables,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.events = events
        self._is_cluster = events.metadata.source_format == SOURCE_FORMAT
        round_s = policy.round_s if self._is_cluster else None
        longest_s = math.inf if round_s is None else checks.MOST_ROUNDS * round_s
        self.feed = Feed(jobs, run_tables.job_names, events.node_types.names, longest_s)
        self.policy = policy
        self.settings = settings
        self.run_tables = run_tables
        self.progress = progress
        self.after_instant: Callable[[Engine], None] | None = None
        self.is_published = settings.semantics is Semantics.PUBLISHED
        self.timeline = Timeline()
        self.active = ActiveJobs(
            settings.max_parallel,
            events.most_nodes,
            events.node_types.names,
            may_share=self.feed.colocation is not None,
            keeps_batch_sizes=policy.sets_batch_sizes,
            notice_s=settings.notice_s,
        )
        self.pool = NodePool(
            len(events.nodes),
            self.active,
            events.window_start_us,
            events.node_types.of_node,
            reserve=settings.reserve,
            min_age_us=round(settings.min_age_s * 1e6),
            placement=settings.placement,
        )
        self._pool_view = PoolView(self.pool)
        source = self.feed.source
        higher_is_better = None if source is None else bool(source.higher_is_better)
        self.outcomes = JobOutcomes(self.feed.jobs, run_tables.jobs, higher_is_better, settings.measured)
        self.log = DecisionLog(run_tables.decisions, run_tables.timings, policy.name)
        self.rng = np.random.Generator(np.random.PCG64(settings.seed))
        self.settling = Settling(settings.settle_s)
        self.job_flow = JobFlow(
            self.active,
            self.feed,
            self.pool,
            self.outcomes,
            run_tables,
            is_published=self.is_published,
            settle_us=self.settling.settle_us,
        )
        self.job_flow.note_departure = getattr(progress, "job_left", None)
        self.totals = self.job_flow.totals
        self.n_pool_events = 0
        self.most_idle = 0
        self.most_idle_of_type = np.zeros(len(events.node_types.names), dtype=np.int64)
        self.end_us = events.window_end_us
        self.reached_us = LONG_AGO_US
        self.is_over = False
        self.read_s = 0.0
        self._has_begun = False
        self._round_us = NEVER_US
        self._now_us = events.window_start_us
        self._is_first = True
        self._has_grown = False  # the pool, at the last instant
        self._n_idle_logged = -1  # in the last row of the pool's table
        self._samples_logged = 0.0  # up to the last row of the decision table
        self._last_rate = 0.0

    # -- time ---------------------------------------------------------------------------------------------

    def run(self) -> Ledger:
        """Replay the whole window, or until the jobs are done; return the closed ledger. ``end_us`` is when it ended.

        Raises
        ------
        LedgerError
            The ledger does not close.
        """
        self.replay_log()
        return self.finish()

    def replay_log(self) -> None:
        """Read the log and replay all its instants, or until the jobs are done."""
        for batch in self._batches():
            self.advance(batch, int(batch.time_us[-1]) + 1)
            if self.is_over:
                break

    def _batches(self) -> Iterator[EventBatch]:
        batches = self.events.batches()
        while True:
            start_s = perf_counter()
            batch = next((batch for batch in batches if batch.time_us.size), None)
            self.read_s += perf_counter() - start_s
            if batch is None:
                return
            yield batch

    def advance(self, events: EventBatch, until_us: int) -> None:
        """Take a portion of the log and replay all instants before ``until_us``, as no earlier event will follow.

        Portions are as those of ``NodeEvents.batches``. However a log is cut into portions, the run is the same.
        """
        self.timeline.add(events)
        self._replay_until(min(until_us - 1, self.end_us))

    def finish(self) -> Ledger:
        """Replay the rest, up to ``end_us``, and close the ledger; raises as ``run``."""
        self._replay_until(self.end_us)
        # the end of a cluster's window means nothing to jobs that wait; those that wait for nodes of a log wait until
        # the log's end, and endless work goes on until the end of either
        nothing_can_happen = self._is_cluster and self.settings.until_done and self._next_instant() == NEVER_US
        if self.is_over or (nothing_can_happen and not self.job_flow.makes_progress):
            self.end_us = max(self._now_us, self.events.window_start_us + 1)
        self._pass_time(self.end_us)
        if self.is_published:  # the end of the window is a last look: nobody works past its work unnoticed
            self.job_flow.complete(self.end_us)
        return self._finish()

    def _replay_until(self, last_us: int) -> None:
        """Replay the instants up to ``last_us``."""
        if not self._has_begun:
            self._has_begun = True
            self.feed.begin(self.events.window_start_us, self.end_us)
        while not self.is_over and (now_us := self._next_instant()) <= last_us:
            self._pass_time(now_us)
            self._instant(now_us)
            self._note_reached(now_us)

    def _note_reached(self, now_us: int) -> None:
        self.reached_us = now_us
        if self.settings.measured is not None:
            self.is_over = self.outcomes.n_measured_left == 0
        else:
            self.is_over = self.settings.until_done and not self.job_flow.jobs_remain
        if self.progress is not None:
            self.progress(now_us, self.log.n_rows)
        if self.after_instant is not None:
            self.after_instant(self)

    def correct(self, now_us: int, correction: Callable[[int], int]) -> None:
        """Correct the jobs after all instants up to ``now_us``, which were replayed; none if the run is over.

        ``correction`` is given the time, and returns the ``Trigger`` of a decision, or 0.
        """
        if self.is_over:
            return
        self._pass_time(now_us)
        if trigger := correction(now_us):
            self._react(now_us, trigger, NO_CHANGES)
        self._note_reached(now_us)

    def add_nodes(self, events: NodeEvents) -> None:
        """Add the nodes that ``events``, the same log, has more than before: after all others, not idle yet."""
        self.events = events
        self.pool.add_nodes(events.node_types.of_node)
        if self.run_tables.nodes is not None:
            self.run_tables.nodes.add_nodes(events.nodes)
        self.policy.add_nodes(len(events.nodes))

    def resume(self) -> None:
        """Go on from a state that was restored: what the log had until then is skipped when it is read again."""
        self.timeline = Timeline(self.reached_us)
        if self.job_flow.note_departure is not None:
            for number in sorted(self.feed.gone):
                self.job_flow.note_departure(number)

    def _next_instant(self) -> int:
        next_us = self.timeline.next_us
        if self.is_published:
            return next_us
        if not self.active.is_full:
            arrival_us = max(self.feed.next_us, self._now_us)
            if arrival_us < self.end_us:
                next_us = min(next_us, arrival_us)
        if self.pool.next_old_us < self.end_us:
            next_us = min(next_us, self.pool.next_old_us)
        return min(next_us, self.job_flow.next_finish_us, self.feed.ask_us, self._round_us, self.settling.due_us)

    def _pass_time(self, now_us: int) -> None:
        dt_us = now_us - self._now_us
        if dt_us == 0:
            return
        progress, gross, n_held = advance(self.active.records, self.active.n, now_us, dt_us, self.is_published)
        self.totals.unallocated_node_us += (self.pool.n_idle - int(n_held)) * dt_us
        self.totals.gross_samples += float(gross)
        self.totals.samples += float(progress)
        self._now_us = now_us
        if self._has_grown:  # nodes that leave at once, or come at the very end, were never idle
            self._has_grown = False
            if self.pool.n_idle > self.most_idle or self.active.has_types:
                self.most_idle = max(self.most_idle, self.pool.n_idle)
                self.most_idle_of_type = np.maximum(self.most_idle_of_type, self.pool.n_idle_of_type())

    def _instant(self, now_us: int) -> None:
        """Handle all events of ``now_us``, in the order report, completion, leave, join, orders, arrival, decision."""
        trigger, changes = 0, NO_CHANGES
        has_events = self.timeline.next_us == now_us
        usable = self.pool.usable if self.pool.leaves_alone else None
        if not self.is_published:
            trigger |= self.job_flow.complete(now_us)
        if has_events:
            pool_trigger, changes = self._change_pool(now_us)
            trigger |= pool_trigger
        if usable is not None:  # only nodes that jobs may have are news
            self.pool.leave_alone(now_us)
            trigger = trigger & ~_POOL | _POOL * (changes.preempted > 0 or self.pool.usable != usable)
        if self.feed.ask_us <= now_us:
            trigger |= self.job_flow.follow_orders(now_us)
        if self._round_us <= now_us:
            trigger |= _ROUND
            self._round_us = NEVER_US
        self._react(now_us, trigger, changes)

    def _react(self, now_us: int, trigger: int, changes: PoolChanges) -> None:
        """Admit jobs, and decide if anything that matters has happened."""
        waits_since_us = NEVER_US
        if now_us < self.end_us:  # else no time is left to run in
            trigger |= self.job_flow.admit(now_us)
        if self.settling.settle_us:
            trigger, changes, waits_since_us = self._settle(now_us, trigger, changes)
        if not (trigger or self._is_first):
            return  # nothing that matters here: a busy node went down, say
        if not (self.job_flow.jobs_remain or trigger & _COMPLETION):
            return  # all jobs are done: only the ledger goes on
        self._decide(now_us, trigger, changes, waits_since_us)
        self._is_first = False

    def _settle(self, now_us: int, trigger: int, changes: PoolChanges) -> tuple[int, PoolChanges, int]:
        """Return what is decided on now, and since when it waits; a trigger of 0 where nothing is."""
        at_once = trigger & ~_WAITING or self._is_first or not self.job_flow.jobs_remain
        settled = self.settling.settle(now_us, trigger, changes, at_once=bool(at_once))
        # until the decision that waits jobs go on with the nodes that they have left
        if trigger and not settled[0]:
            counts, _ = self.active.counts_and_debts()
            self._apply(counts, now_us)
        return settled

    def _apply(
        self,
        counts_before: NDArray[np.int64],
        now_us: int,
        charges_rescales: bool = True,
        lifts_limits: bool = False,
        waits_since_us: int = NEVER_US,
    ) -> Outcome:
        """Let the jobs go on with the nodes that they have now."""
        active = self.active
        of_jobs = active.records, counts_before, active.throughput, active.costs_s
        how = self.is_published, charges_rescales, lifts_limits, waits_since_us
        effects, next_finish_us = apply_decision(*of_jobs, now_us, *how)
        self.job_flow.next_finish_us = int(next_finish_us)
        self.run_tables.allocations.close_intervals(active.records, active.n, now_us)
        if self.run_tables.nodes is not None:
            self.run_tables.nodes.close_intervals(self.pool.holder, now_us)
        return Outcome(*effects)

    def _change_pool(self, now_us: int) -> tuple[int, PoolChanges]:
        """Let nodes leave and join as the log says; return the ``Trigger`` as well."""
        trigger = 0
        n_joined, n_left, n_reclaimed = self.pool.change(*self.timeline.take(), now_us)
        changes = PoolChanges(n_joined, n_left, *(self.job_flow.preempt(now_us) if n_reclaimed else (0, 0.0)))
        if self.is_published:  # the published program looks at progress only now
            trigger |= self.job_flow.complete(now_us)
        if self.run_tables.pool is not None and self.pool.n_idle != self._n_idle_logged:
            self._n_idle_logged = self.pool.n_idle
            self.run_tables.pool.append((now_us, self.pool.n_idle))
        if n_left or n_joined:
            trigger |= _POOL
            self._has_grown = n_joined > 0
            self.n_pool_events += now_us > self.events.window_start_us  # the snapshot at the start is no event
        return trigger, changes

    # -- decisions ----------------------------------------------------------------------------------------

    def _decide(self, now_us: int, trigger: int, changes: PoolChanges, waits_since_us: int) -> None:
        active = self.active
        is_seeding = self._is_first and self.is_published
        counts_before, debts = active.counts_and_debts()
        decision: Decision | None = None
        decide_s = 0.0
        if active.n and self.pool.n_usable and (is_seeding or self._asks_policy(trigger)):
            start_s = perf_counter()
            state = self._state(now_us, counts_before, debts)
            if is_seeding:
                decision = self.settings.seed_map(state, np.flatnonzero(self.pool.holder == FREE), self.rng)
            else:
                decision = answer_of(self.policy, state)
                decide_s = perf_counter() - start_s
            self._carry_out(decision, state)
        is_charged = decision is None or decision.placement is None or decision.placement.charges_rescales
        lifts_limits = decision is not None and decision.round is None
        outcome = self._apply(counts_before, now_us, is_charged, lifts_limits, waits_since_us)
        self.job_flow.note_losses(now_us)
        if is_seeding:
            outcome = outcome._replace(rescale_cost=charge_first_map(active.records[: active.n]))
        if self.is_published and not self.job_flow.jobs_remain:
            outcome = outcome._replace(rate=self._last_rate)  # the published log's last row repeats the rate before
        self._last_rate = outcome.rate
        counts = (counts_before if decision is None else np.asarray(decision.counts)).astype(np.int32)
        point = DecisionPoint(now_us, trigger, self.pool.n_usable, counts, self.totals.samples - self._samples_logged)
        self._samples_logged = self.totals.samples
        self.log.write(point, changes, decision, decide_s, outcome)
        if decision is not None and decision.round is not None:
            self.job_flow.dismiss(decision.round, now_us)

    def _asks_policy(self, trigger: int) -> bool:
        wakes_on = int(self.policy.wakes_on)
        between_rounds = wakes_on & _ROUND and self._round_us == NEVER_US
        return bool(trigger & wakes_on or between_rounds)

    def node_us_until(self, until_us: int) -> dict[str, int]:
        """Return the node time from the start up to a time before the next instant, by the labels of the ledger.

        What it would be if the run ended there; the run goes on as if nobody had asked.
        """
        until_us = self._now_us if self.is_over else min(max(until_us, self._now_us), self.end_us)
        records = self.active.records[: self.active.n].copy()
        dt_us = until_us - self._now_us
        unallocated = self.totals.unallocated_node_us
        if dt_us:
            _, _, n_held = advance(records, self.active.n, until_us, dt_us, self.is_published)
            unallocated += (self.pool.n_idle - int(n_held)) * dt_us
        all_records = [*records, *self.feed.paused.values()]
        held = {
            label: total + sum(int(record[label]) for record in all_records)
            for label, total in self.outcomes.totals.items()
        }
        return {"idle": self.pool.idle_node_us_until(until_us), **held, "unallocated": unallocated}

    def _state(self, now_us: int, current: NDArray[np.int64], debts: NDArray[np.float64]) -> PolicyState:
        return PolicyState.of(
            {
                **self.active.policy_arrays(),
                **self.active.risks(now_us),
                "current": current,
                "owed": debts,
                "time_us": now_us,
                "n_idle": self.pool.n_usable,
                "nodes": self._pool_view,
                "model_names": self.feed.model_names,
                "colocation": self.feed.colocation,
                "window_start_us": self.events.window_start_us,
                "waiting": self.feed.waiting_at(now_us) if self.policy.capabilities.sees_queue else None,
                "jobs_to_come": self.feed.may_go_on,
            }
        )

    def _carry_out(self, decision: Decision, state: PolicyState) -> None:
        """Give every job its nodes, after making sure that the policy's answer can be carried out."""
        problem = decision_fault(decision, state)
        counts = np.asarray(decision.counts)
        if problem:
            raise BfreplayError(
                f"the policy {self.policy.name!r} gave {problem} (counts {counts.tolist()}, at {iso_utc(self._now_us)})"
            )
        placement = decision.placement
        if placement is None:
            self.pool.place(np.array(counts, np.int64), self._now_us)  # of one kind, as in decision_fault
        else:
            self.pool.assign(placement.assigned, placement.partner, self._now_us)
            if self.active.is_placed:
                self.job_flow.update_curves()
        restart_s = decision.restart_s if placement is None else restart_s_of(decision)
        if restart_s is not None:
            self.active.records["restart_s"][: self.active.n] = restart_s
        if decision.round is not None:
            self._follow_rules(decision.round)

    def _follow_rules(self, until: Round) -> None:
        """Write into the records what the policy wants until it is asked again."""
        records = self.active.records[: self.active.n]
        if until.batch_size is not None:
            for job_row in np.flatnonzero(until.batch_size > 0).tolist():
                job, size = self.feed.jobs[int(records[job_row]["job"])], int(until.batch_size[job_row])
                if not self.policy.sets_batch_sizes or job.adaptation is None or size not in job.adaptation.throughput:
                    raise BfreplayError(
                        f"the policy {self.policy.name!r} gave job {job.name!r} the batch size {size}, which it may "
                        f"not have: at {iso_utc(self._now_us)}"
                    )
                self.active.set_batch_size(job_row, job, size)
        if until.credit is not None:
            records["progress"] += until.credit
            records["saved"] += until.credit
            credit = float(until.credit.sum())
            self.totals.credited_samples += credit
            self.totals.samples += credit
        records["halt"] = np.inf
        if until.samples is not None:
            rest = records["work"] - records["progress"]  # a limit of all of it is none: their sum may be rounded down
            records["halt"] = np.where(until.samples >= rest, np.inf, records["progress"] + until.samples)
        records["not_before_us"] = LONG_AGO_US
        if until.not_before_us is not None:
            is_later = until.not_before_us > self._now_us
            records["not_before_us"] = np.where(is_later, until.not_before_us, LONG_AGO_US)
        if until.until_us is not None:
            self._round_us = int(until.until_us)

    # -- the end ------------------------------------------------------------------------------------------

    def _finish(self) -> Ledger:
        active = self.active
        end_us = self._now_us
        idle_node_us = self.pool.idle_node_us_until(end_us)
        idle_intervals = self.pool.idle_intervals_until(end_us)
        records = active.records[: active.n].copy()
        for job_row in range(active.n):
            self.pool.release(job_row, end_us)
        self.run_tables.allocations.close_intervals(active.records, active.n, end_us)
        if self.run_tables.nodes is not None:
            self.run_tables.nodes.close_intervals(self.pool.holder, end_us)
        for record in records:
            self.outcomes.interrupt(record, end_us)
        self.outcomes.is_over = not self.feed.may_go_on
        for record in self.feed.paused.values():
            self.outcomes.interrupt(record, end_us, is_paused=True)
        for job_index in self.feed.waiting_jobs():
            self.outcomes.note_not_admitted(job_index, end_us)
        node_us: dict[str, Any] = {f"{label}_node_us": total for label, total in self.outcomes.totals.items()}
        ledger = Ledger(
            idle_node_us=idle_node_us,
            allocated_node_us=self.run_tables.allocations.node_us,
            samples_by_job=self.outcomes.samples,
            rescale_samples=self.outcomes.rescale_samples,
            preemption_samples=self.outcomes.preemption_samples,
            **node_us,
            **asdict(self.totals),
        )
        ledger.close()
        ledger.close_idle_intervals(*(sum(node_us) for node_us in node_time_of_bins(idle_intervals)))
        if self.run_tables.idle_intervals is not None:
            write_idle_intervals(idle_intervals, self.run_tables.idle_intervals)
        return ledger
