"""Facts and warnings of the report about the effects of the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, zero_records
from bfreplay.datasets.ingest.occupancy.advance import Terms
from bfreplay.datasets.ingest.occupancy.import_report import ImportReport
from bfreplay.datasets.ingest.occupancy.inventory import ABSENT_WARNING, Absence, free_again_us
from bfreplay.datasets.ingest.occupancy.machine import CLIP, DELAY, NEVER, DelayedJob, longer, pop_end, push_end
from bfreplay.datasets.ingest.occupancy.rules import DAY_S, OVERSUBSCRIPTION, OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.source import Survey
from bfreplay.datasets.ingest.occupancy.state_changes import Plan, terms_of
from bfreplay.datasets.ingest.occupancy.units import OVER
from bfreplay.datasets.log.log_warnings import IDLE_BY_RULE
from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.times import HOUR_US
from bfreplay.errors import InputError


class State:
    """Instant, nodes wanted by running jobs, and the used parts of heap and queue."""

    now: int
    demand: int
    n_active: int
    queue_first: int
    queue_end: int


class Demand(NamedTuple):
    """Machine without nodes: ends and wanted nodes of the running jobs, and the delayed jobs."""

    state: State
    end_us: NDArray[np.int64]
    end_count: NDArray[np.int32]
    queue: Sequence[DelayedJob]


@compiled
def _begin(end_us: int, count: int, demand: Demand) -> None:
    push_end(end_us, count, demand.state.n_active, demand.end_us, demand.end_count)
    demand.state.demand += count
    demand.state.n_active += 1


@compiled
def _advance(
    until_us: int,
    start_us: NDArray[np.int64],
    end_us: NDArray[np.int64],
    count: NDArray[np.int64],
    terms: Terms,
    demand: Demand,
) -> float:
    """Return idle node-time from ``state.now`` to the last instant before ``until_us``, as ``advance.advance``."""
    state, queue = demand.state, demand.queue
    idle_us, j = 0.0, 0
    while True:
        instant_us = demand.end_us[0] if state.n_active > 0 else NEVER
        if j < len(start_us):
            instant_us = min(instant_us, start_us[j])
        if instant_us >= until_us and until_us != NEVER:
            return idle_us
        upto_us = max(min(instant_us, terms.log_end_us), state.now)
        inside_us = max(min(upto_us, terms.window_end_us) - max(state.now, terms.window_start_us), 0)
        if state.n_active > 0 or not terms.empty_is_down or upto_us - state.now <= terms.empty_after_us:
            idle_us += float(inside_us) * max(terms.n_kept - state.demand, 0)
        if instant_us >= until_us:
            return idle_us
        state.now = instant_us
        while state.n_active > 0 and demand.end_us[0] == instant_us:
            state.demand -= pop_end(state.n_active, demand.end_us, demand.end_count)
            state.n_active -= 1
        while state.queue_first < state.queue_end and queue[state.queue_first].count <= terms.n_kept - state.demand:
            job = queue[state.queue_first]
            state.queue_first += 1
            _begin(NEVER if job.end_us == NEVER else job.end_us + instant_us - job.start_us, job.count, demand)
        while j < len(start_us) and start_us[j] == instant_us:
            is_too_wide = count[j] > terms.n_kept - state.demand
            is_queue = state.queue_first < state.queue_end
            if terms.oversubscription == DELAY and count[j] <= terms.n_kept and (is_too_wide or is_queue):
                job = queue[state.queue_end]
                state.queue_end += 1
                job.start_us, job.end_us, job.count = instant_us, end_us[j], count[j]
            elif terms.oversubscription == CLIP or not is_too_wide:
                _begin(end_us[j], count[j], demand)
            j += 1


def idle_hours_by_rule(record: ScheduleRecord, plan: Plan, idle_hours: float) -> dict[str, float] | None:
    """Return the idle node-hours of the window under each rule of ``OVERSUBSCRIPTION``.

    Parameters
    ----------
    record, plan
        Input of a sweep.
    idle_hours
        Result of the sweep under ``plan.rules``. It may be below the count, by idle intervals too short to be events;
        the figures of the other rules are lowered as much.

    Returns
    -------
    dict or None
        ``None`` for a log with more than counts (nodes of jobs, outages): the figure of another rule then needs an
        import under that rule.
    """
    if len(plan.outages.start_us):
        return None
    rules = [terms_of(plan)._replace(oversubscription=rule) for rule in range(len(OVERSUBSCRIPTION))]
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int32), zero_records(DelayedJob, 0)
    demands = [Demand(zero_records(State, 1)[0], *nothing) for _ in rules]
    idle_us = [0.0 for _ in rules]
    for demand in demands:
        demand.state.now = min(record.first_start_us, plan.window_us[0])
    for jobs, until_us in record.jobs.slices():
        if len(jobs.nodes):
            return None
        end_us = free_again_us(jobs, plan.rules, plan.log_end_us)
        for rule, terms in enumerate(rules):
            demands[rule] = _with_room(demands[rule], len(jobs))
            idle_us[rule] += _advance(until_us, jobs.start_us, end_us, jobs.count, terms, demands[rule])
    rule_index = OVERSUBSCRIPTION.index(plan.rules.oversubscription)
    short_hours = idle_us[rule_index] / HOUR_US - idle_hours
    hours = [max(time_us / HOUR_US - short_hours, 0.0) for time_us in idle_us]
    return dict(zip(OVERSUBSCRIPTION, hours, strict=True))


def _with_room(demand: Demand, n_jobs: int) -> Demand:
    """Return a machine with room for ``n_jobs`` more running or delayed jobs."""
    state = demand.state
    waiting_jobs = np.asarray(demand.queue)[state.queue_first : state.queue_end]
    state.queue_first, state.queue_end = 0, len(waiting_jobs)
    n_most = n_jobs + len(waiting_jobs)
    n_active, n_ends = state.n_active, state.n_active + n_most
    end_us, end_count = (longer(ends[:n_active], n_ends) for ends in (demand.end_us, demand.end_count))
    return Demand(state, end_us, end_count, longer(waiting_jobs, n_most))


NODES, NODE_HOURS, ROWS = "nodes", "node_hours", "rows of events"
CENSORED = "jobs cut by the window's edges"
SHORT_INTERVALS, EMPTY_MACHINE = "idle intervals too short to be events", "no job on the whole machine"
LEFT_IDLE = (
    "the whole machine had no job for long, and no outage was recorded then: it counts as idle, since the log has "
    "records of other outages (--empty-machine down takes it away, --empty-machine idle confirms it)"
)
LASTING = (
    "a job without an end and without a time limit has run longer than any finished job: is its end missing? Its nodes "
    "count as busy to the end of the log"
)
MOST_TO_THE_END = 0.25
NO_RUNNING_JOBS = (
    "nodes are idle to the end of the window, and the log has no job that runs at its end: where the export has "
    "finished jobs only, nodes of running ones look idle (--window ends the log earlier)"
)
"""Where more than this part of the idle time lasts to the end of a window of a day or more."""
RUNAWAY = "jobs without an end are long over their time limit; they are ended there (runaway jobs)"
OVER_LIMIT = "jobs ran for more than twice their time limit: is their end wrong? Their nodes count as busy until then"
CLIPPED = "jobs needed more nodes than were free; they got the nodes that were free, and the others as they became free"
DROPPED = "jobs needed more nodes than were free; they were skipped"
DELAYED = "jobs needed more nodes than were free; they were delayed"
NEVER_BEGAN = "delayed jobs never found enough nodes; they were skipped"
CONTRADICTING = (
    "the same run of a job (same job, same start) was read twice, with other nodes or another end; the later end counts"
)


def report_survey(
    report: ImportReport, record: ScheduleRecord, plan: Plan, survey: Survey, absence: Absence | None
) -> None:
    """Add the results of a first pass to ``report``.

    Raises
    ------
    InputError
        Jobs share nodes, which the rules refuse.
    """
    sweep, tallies, facts = survey.sweep, survey.sweep.tallies, report.facts
    facts[NODES] = len(survey.start)
    hours_by_state = zip(STATE_WORDS, (survey.node_us / HOUR_US).tolist(), strict=True)
    facts[NODE_HOURS] = {state_word: node_hours for state_word, node_hours in hours_by_state if node_hours}
    facts[ROWS] = survey.n_rows
    if survey.idle_intervals.n_closed:
        facts[SHORT_INTERVALS] = {
            "count": survey.idle_intervals.n_closed,
            "node_hours": survey.idle_intervals.closed_us / HOUR_US,
            "shorter_than_s": plan.rules.min_gap_s,
        }
    if not plan.states_seen:
        _report_empty(report, plan, survey)
    if absence is not None:
        idle_hours = float(survey.node_us[NodeState.IDLE]) / HOUR_US
        hours_text = f"idle {idle_hours:,.1f} node-hours, {idle_hours + absence.node_hours:,.1f} if they were there"
        warning_text = f"{absence.examples}: {hours_text}"
        report.warn(ABSENT_WARNING, value=warning_text, count=absence.nodes, node_hours=absence.node_hours)
    facts[CENSORED] = {
        "jobs": sweep.n_cut,
        "share_of_job_node_time": sweep.cut_us / sweep.held_us if sweep.held_us else 0.0,
        "share_without_an_end": sweep.open_us / sweep.held_us if sweep.held_us else 0.0,
    }
    if survey.n_repeated:
        facts["runs that were read twice and count once"] = survey.n_repeated
        report.keep("job intervals", -survey.n_repeated)
    report.warn(CONTRADICTING, count=survey.n_contradicting)
    _warning_hours(report, LASTING, sweep.lasting_us, sweep.n_lasting)
    running, runaway = sweep.ended_open
    if running:
        facts["jobs running at the end of the log"] = running
    elif not plan.states_seen and plan.window_us[1] - plan.window_us[0] >= DAY_S * 1e6:
        idle_us = survey.idle_to_the_end_us
        if idle_us > MOST_TO_THE_END * survey.node_us[NodeState.IDLE]:
            _warning_hours(report, NO_RUNNING_JOBS, idle_us, int(np.count_nonzero(survey.idle_to_the_end)))
    _warning_hours(report, RUNAWAY, sweep.runaway_us, runaway)
    _warning_hours(report, OVER_LIMIT, sweep.over_us, sweep.n_over)
    overlaps = int(tallies.overlaps)
    if overlaps and plan.rules.shared_nodes == "refuse":
        raise InputError(
            "jobs share nodes: some start on a node that another job still holds",
            value=f"{overlaps:,} starts within the window",
            expected="nodes that one job holds at a time (--shared-nodes refuse)",
            fix="leave --shared-nodes at 'count': a node is then idle when no job is left on it",
        )
    if overlaps:
        facts["starts on a node that is in use (shared nodes)"] = overlaps
    sentence = CLIPPED if record.units is None else OVER
    _warning_hours(report, sentence, tallies.clipped_node_us, int(tallies.clipped), "node-hours missing")
    _warning_hours(report, DROPPED, tallies.left_out_node_us, int(tallies.left_out), "node-hours missing")
    if tallies.delayed:
        n_delayed = int(tallies.delayed)
        warning_text = f"{tallies.delay_us / HOUR_US / n_delayed:,.2f} hours on average"
        report.warn(DELAYED, value=warning_text, count=n_delayed, node_hours=float(tallies.delay_node_us) / HOUR_US)
    _warning_hours(report, NEVER_BEGAN, sweep.never_began_us, sweep.never_began)
    if sweep.never_began or tallies.clipped or tallies.left_out or tallies.delayed:
        by_rule = idle_hours_by_rule(record, plan, float(survey.node_us[NodeState.IDLE]) / HOUR_US)
        facts.update({} if by_rule is None else {IDLE_BY_RULE: by_rule})


def note_rules_without_effect(record: ScheduleRecord, plan: Plan, report: ImportReport) -> None:
    """Note each rule other than the default that this log has no use for."""
    rules, default = plan.rules, OccupancyRules()
    names_text = "" if record.n_counted else "the log names the nodes of every job"
    reason_of_rule = {
        "assignment": names_text,
        "oversubscription": names_text,
        "seed": names_text or ("" if rules.assignment == "random" else "only --assignment random draws by it"),
        "empty_machine": "the log has samples of node states" if record.states_seen else "",
        "empty_after_s": "" if plan.empty_is_down else "an empty machine counts as idle",
        "release_delay_s": "" if record.jobs.n_rows else "the log has no jobs",
        "absent_after_s": "" if record.machine_size is None else "the size of the machine is known",
    }
    for rule_name, why_unused in reason_of_rule.items():
        is_unused = why_unused and getattr(rules, rule_name) != getattr(default, rule_name)
        report.note_no_effect(f"--{rule_name.removesuffix('_s').replace('_', '-')}", why_unused, is_unused)


def _warning_hours(report: ImportReport, sentence: str, node_us: float, count: int, unit: str = "node-hours") -> None:
    """Warn of ``count`` cases (0: none) with the node-microseconds that may be wrongly idle or busy."""
    node_hours = float(node_us) / HOUR_US
    report.warn(sentence, value=f"{node_hours:,.1f} {unit}", count=count, node_hours=node_hours)


def _report_empty(report: ImportReport, plan: Plan, survey: Survey) -> None:
    """Report the time without any job on the whole machine, and its assumed state."""
    tallies = survey.sweep.tallies
    span_us = plan.window_us[1] - plan.window_us[0]
    long_ones, long_hours = int(tallies.long_empty), float(tallies.long_empty_us) / HOUR_US
    is_down = plan.empty_is_down
    report.facts[EMPTY_MACHINE] = {
        "share_of_window": int(tallies.empty_us) / span_us,
        "assumed_down_periods": long_ones if is_down else 0,
        "assumed_down_hours": long_hours if is_down else 0.0,
        "left_idle_periods": 0 if is_down else long_ones,
        "left_idle_hours": 0.0 if is_down else long_hours,
        "longer_than_min": plan.rules.empty_after_s / 60,
    }
    if tallies.left_idle_node_us and plan.rules.empty_machine == "auto" and not plan.outages_known:
        _warning_hours(report, LEFT_IDLE, tallies.left_idle_node_us, long_ones)
