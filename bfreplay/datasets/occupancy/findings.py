"""What the rules found and did, as facts and doubts of the report."""

from __future__ import annotations

from bfreplay.datasets.log.states import STATE_WORDS
from bfreplay.datasets.occupancy import machine
from bfreplay.datasets.occupancy.inventory import HOUR_US
from bfreplay.datasets.occupancy.lint import Lint
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
CONTRADICTING = (
    "the same run of a job (same job, same start) was read twice, with other nodes or another end; the later end counts"
)


def report_survey(lint: Lint, plan: Plan, survey: Survey) -> None:
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
        lint.doubt(LASTING, value=f"{sweep.lasting_us / HOUR_US:,.1f} node-hours", n=sweep.n_lasting)
    running, runaway = survey.sweep.ended_open
    if running:
        facts["jobs running at the end of the log"] = running
    if runaway:
        lint.doubt("jobs without an end are long over their time limit; they are ended there (runaway jobs)", n=runaway)
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
        ("jobs needed more nodes than were free; they got those that were", machine.CLIPPED, machine.CLIPPED_NODE_US),
        ("jobs needed more nodes than were free; they were left out", machine.LEFT_OUT, machine.LEFT_OUT_NODE_US),
    ):
        if tallies[jobs]:
            missing = float(hours[amount])
            lint.doubt(sentence, value=f"{missing:,.1f} node-hours missing", n=int(tallies[jobs]), node_hours=missing)
    if tallies[machine.DELAYED]:
        lint.doubt(
            "jobs needed more nodes than were free; they were delayed",
            value=f"{hours[machine.DELAY_US] / int(tallies[machine.DELAYED]):,.2f} hours on average",
            n=int(tallies[machine.DELAYED]),
        )
    if survey.sweep.never_began:
        lint.doubt("delayed jobs never found enough nodes; they were left out", n=survey.sweep.never_began)


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
        lint.doubt(
            LEFT_IDLE, value=f"{hours[machine.LEFT_IDLE_NODE_US]:,.1f} node-hours", n=int(tallies[machine.LONG_EMPTY])
        )
