"""What the rules found and did, as facts and doubts of the report."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.occupancy import machine
from bfreplay.datasets.occupancy.inventory import ABSENT_DOUBT, HOUR_US, Absence, free_again_us
from bfreplay.datasets.occupancy.lint import Lint
from bfreplay.datasets.occupancy.machine import CLIP, DELAY, DROP, NEVER, sift_down, sift_up
from bfreplay.datasets.occupancy.record import ScheduleRecord
from bfreplay.datasets.occupancy.rules import IDLE_BY_RULE, OVER_CAPACITY, microseconds
from bfreplay.datasets.occupancy.source import Survey
from bfreplay.datasets.occupancy.sweep import Plan
from bfreplay.errors import InputError

NODES, NODE_HOURS, ROWS = "nodes", "node_hours", "rows of events"
CENSORED = "jobs cut by the window's edges"
SHORT_HOLES, EMPTY_MACHINE = "holes too short to be events", "no job on the whole machine"
LEFT_IDLE = (
    "the whole machine had no job for long, and no outage was recorded then: it counts as idle, since the log has "
    "records of other outages (--empty-machine down takes it away, --empty-machine idle confirms it)"
)
LASTING = (
    "a job without an end and without a time limit has run longer than any finished job: is its end missing? Its nodes "
    "count as busy to the end of the log"
)
RUNAWAY = "jobs without an end are long over their time limit; they are ended there (runaway jobs)"
OVER_LIMIT = "jobs ran for more than twice their time limit: is their end wrong? Their nodes count as busy until then"
CLIPPED = "jobs needed more nodes than were free; they got the nodes that were free, and the others as they became free"
DROPPED = "jobs needed more nodes than were free; they were left out"
DELAYED = "jobs needed more nodes than were free; they were delayed"
NEVER_BEGAN = "delayed jobs never found enough nodes; they were left out"
CONTRADICTING = (
    "the same run of a job (same job, same start) was read twice, with other nodes or another end; the later end counts"
)

NOW, DEMAND, ACTIVE, ENDS, QUEUE_FIRST, QUEUE_END, N_STATE = range(7)


def report_survey(lint: Lint, record: ScheduleRecord, plan: Plan, survey: Survey, absence: Absence | None) -> None:
    """Add to ``lint`` what a first pass found.

    Raises
    ------
    InputError
        Jobs share nodes, and the rules refuse that.
    """
    tallies = survey.sweep.tallies
    hours = tallies / HOUR_US
    facts = lint.facts
    facts[NODES] = len(survey.start)
    facts[NODE_HOURS] = {
        word: node_us / HOUR_US for word, node_us in zip(STATE_WORDS, survey.node_us.tolist(), strict=True) if node_us
    }
    facts[ROWS] = survey.n_rows
    if survey.holes.n_closed:
        facts[SHORT_HOLES] = {
            "count": survey.holes.n_closed,
            "node_hours": survey.holes.closed_us / HOUR_US,
            "shorter_than_s": plan.rules.min_gap_s,
        }
    if not plan.states_seen:
        _report_empty(lint, plan, survey)
    sweep = survey.sweep
    if absence is not None:
        idle_hours = float(survey.node_us[NodeState.IDLE]) / HOUR_US
        both = f"idle {idle_hours:,.1f} node-hours, {idle_hours + absence.node_hours:,.1f} if they were there"
        lint.doubt(ABSENT_DOUBT, value=f"{absence.examples}: {both}", n=absence.nodes, node_hours=absence.node_hours)
    facts[CENSORED] = {
        "jobs": sweep.n_cut,
        "share_of_job_node_time": sweep.cut_us / sweep.held_us if sweep.held_us else 0.0,
        "share_without_an_end": sweep.open_us / sweep.held_us if sweep.held_us else 0.0,
    }
    if survey.n_repeated:
        facts["runs that were read twice and count once"] = survey.n_repeated
        lint.keep("job intervals", -survey.n_repeated)
    lint.doubt(CONTRADICTING, n=survey.n_contradicting)
    if sweep.n_lasting:
        _doubt_hours(lint, LASTING, sweep.lasting_us, sweep.n_lasting)
    running, runaway = survey.sweep.ended_open
    if running:
        facts["jobs running at the end of the log"] = running
    if runaway:
        _doubt_hours(lint, RUNAWAY, sweep.runaway_us, runaway)
    if sweep.n_over:
        _doubt_hours(lint, OVER_LIMIT, sweep.over_us, sweep.n_over)
    if tallies[machine.OVERLAPS] and plan.rules.shared_nodes == "refuse":
        raise InputError(
            "jobs share nodes: some start on a node that another job still holds",
            value=f"{int(tallies[machine.OVERLAPS]):,} starts within the window",
            expected="nodes that one job holds at a time (--shared-nodes refuse)",
            fix="leave --shared-nodes at 'count': a node is then idle when no job is left on it",
        )
    if tallies[machine.OVERLAPS]:
        facts["starts on a node that is in use (shared nodes)"] = int(tallies[machine.OVERLAPS])
    for sentence, jobs, amount in (
        (CLIPPED, machine.CLIPPED, machine.CLIPPED_NODE_US),
        (DROPPED, machine.LEFT_OUT, machine.LEFT_OUT_NODE_US),
    ):
        if tallies[jobs]:
            _doubt_hours(lint, sentence, tallies[amount], int(tallies[jobs]), "node-hours missing")
    if tallies[machine.DELAYED]:
        lint.doubt(
            DELAYED,
            value=f"{hours[machine.DELAY_US] / int(tallies[machine.DELAYED]):,.2f} hours on average",
            n=int(tallies[machine.DELAYED]),
            node_hours=float(hours[machine.DELAY_NODE_US]),
        )
    if sweep.never_began:
        _doubt_hours(lint, NEVER_BEGAN, sweep.never_began_us, sweep.never_began)
    if sweep.never_began or tallies[[machine.CLIPPED, machine.LEFT_OUT, machine.DELAYED]].any():
        by_rule = idle_hours_by_rule(record, plan, float(survey.node_us[NodeState.IDLE]) / HOUR_US)
        facts.update({} if by_rule is None else {IDLE_BY_RULE: by_rule})


def _doubt_hours(lint: Lint, sentence: str, node_us: float, n: int, what: str = "node-hours") -> None:
    """Doubt ``n`` cases of which the node-time that may be wrongly idle or busy is known, in node-microseconds."""
    hours = float(node_us) / HOUR_US
    lint.doubt(sentence, value=f"{hours:,.1f} {what}", n=n, node_hours=hours)


def _report_empty(lint: Lint, plan: Plan, survey: Survey) -> None:
    """How long there was no job on the whole machine, and what that was taken for."""
    tallies, facts = survey.sweep.tallies, lint.facts
    hours = tallies / HOUR_US
    span_us = plan.window_us[1] - plan.window_us[0]
    long_ones, long_hours = int(tallies[machine.LONG_EMPTY]), float(hours[machine.LONG_EMPTY_US])
    is_down = plan.empty_is_down
    facts[EMPTY_MACHINE] = {
        "share_of_window": int(tallies[machine.EMPTY_US]) / span_us,
        "assumed_down_periods": long_ones if is_down else 0,
        "assumed_down_hours": long_hours if is_down else 0.0,
        "left_idle_periods": 0 if is_down else long_ones,
        "left_idle_hours": 0.0 if is_down else long_hours,
        "longer_than_min": plan.rules.empty_after_s / 60,
    }
    left_idle = tallies[machine.LEFT_IDLE_NODE_US]
    if left_idle and plan.rules.empty_machine == "auto" and not plan.outages_known:
        _doubt_hours(lint, LEFT_IDLE, left_idle, int(tallies[machine.LONG_EMPTY]))


@compiled
def _start(
    end_us: int, count: int, state: NDArray[np.int64], heap_end: NDArray[np.int64], heap_count: NDArray[np.int32]
) -> None:
    at = state[ENDS]
    heap_end[at], heap_count[at] = end_us, count
    state[DEMAND] += count
    state[ACTIVE] += 1
    state[ENDS] += 1
    sift_up(heap_end, heap_count, at)


@compiled
def _advance(
    rule: int, n_nodes: int, until_us: int, log_end_us: int, down_after_us: int, window_start_us: int,
    window_end_us: int, start_us: NDArray[np.int64], end_us: NDArray[np.int64], count: NDArray[np.int64],
    queue: NDArray[np.int64], state: NDArray[np.int64], heap_end: NDArray[np.int64], heap_count: NDArray[np.int32],
) -> float:  # fmt: skip
    """Idle node-microseconds from ``state[NOW]`` to the last instant before ``until_us``, as ``machine.advance``."""
    idle_us, j = 0.0, 0
    while True:
        now = heap_end[0] if state[ENDS] > 0 else NEVER
        if j < len(start_us):
            now = min(now, start_us[j])
        if now >= until_us and until_us != NEVER:
            return idle_us
        upto_us = max(min(now, log_end_us), state[NOW])
        inside_us = max(min(upto_us, window_end_us) - max(state[NOW], window_start_us), 0)
        if state[ACTIVE] > 0 or upto_us - state[NOW] <= down_after_us:
            idle_us += float(inside_us) * max(n_nodes - state[DEMAND], 0)
        if now >= until_us:
            return idle_us
        state[NOW] = now
        while state[ENDS] > 0 and heap_end[0] == now:
            state[DEMAND] -= heap_count[0]
            state[ACTIVE] -= 1
            state[ENDS] -= 1
            heap_end[0], heap_count[0] = heap_end[state[ENDS]], heap_count[state[ENDS]]
            sift_down(heap_end, heap_count, state[ENDS])
        while state[QUEUE_FIRST] < state[QUEUE_END] and queue[2, state[QUEUE_FIRST]] <= n_nodes - state[DEMAND]:
            q = state[QUEUE_FIRST]
            state[QUEUE_FIRST] += 1
            end = NEVER if queue[1, q] == NEVER else queue[1, q] + now - queue[0, q]
            _start(end, queue[2, q], state, heap_end, heap_count)
        while j < len(start_us) and start_us[j] == now:
            is_too_wide = count[j] > n_nodes - state[DEMAND]
            if rule == DELAY and count[j] <= n_nodes and (is_too_wide or state[QUEUE_FIRST] < state[QUEUE_END]):
                q = state[QUEUE_END]
                state[QUEUE_END] += 1
                queue[0, q], queue[1, q], queue[2, q] = now, end_us[j], count[j]
            elif rule == CLIP or not is_too_wide:
                _start(end_us[j], count[j], state, heap_end, heap_count)
            j += 1


def idle_hours_by_rule(record: ScheduleRecord, plan: Plan, idle_hours: float) -> dict[str, float] | None:
    """Return the idle node-hours of the window under each rule of ``OVER_CAPACITY``.

    Parameters
    ----------
    record, plan
        What a sweep depends on.
    idle_hours
        What the sweep under ``plan.rules`` found. It may be less than the count, by holes too short to be events; the
        figures of the other rules are lowered by as much.

    Returns
    -------
    dict or None
        ``None`` for a log of which more is known than counts (nodes of jobs, outages): then a figure of another rule
        takes an import under that rule.
    """
    if len(plan.outages.start_us):
        return None
    window_start_us, window_end_us = plan.window_us
    down_after_us = microseconds(plan.rules.empty_after_s) if plan.empty_is_down else NEVER
    states = {rule: np.zeros(N_STATE, np.int64) for rule in (CLIP, DROP, DELAY)}
    queue = {rule: np.zeros((3, 0), np.int64) for rule in states}
    ends = {rule: (np.zeros(0, np.int64), np.zeros(0, np.int32)) for rule in states}
    idle_us = dict.fromkeys(states, 0.0)
    for state in states.values():
        state[NOW] = min(record.first_start_us, window_start_us)
    for jobs, until_us in record.jobs.slices():
        if len(jobs.nodes):
            return None
        end_us = free_again_us(jobs, plan.rules, plan.log_end_us)
        for rule, state in states.items():
            first, end = state[QUEUE_FIRST], state[QUEUE_END]
            more = len(jobs)
            queue[rule] = np.concatenate([queue[rule][:, first:end], np.zeros((3, more), np.int64)], axis=1)
            state[QUEUE_FIRST], state[QUEUE_END] = 0, end - first
            more += end - first
            heap_end, heap_count = (
                np.concatenate([each[: state[ENDS]], np.zeros(more, each.dtype)]) for each in ends[rule]
            )
            ends[rule] = heap_end, heap_count
            idle_us[rule] += _advance(
                rule, plan.n_kept, until_us, plan.log_end_us, down_after_us, window_start_us, window_end_us,
                jobs.start_us, end_us, jobs.count, queue[rule], state, heap_end, heap_count,
            )  # fmt: skip
    chosen = OVER_CAPACITY.index(plan.rules.over_capacity)
    short_hours = idle_us[chosen] / HOUR_US - idle_hours
    return {name: max(idle_us[rule] / HOUR_US - short_hours, 0.0) for rule, name in enumerate(OVER_CAPACITY)}
