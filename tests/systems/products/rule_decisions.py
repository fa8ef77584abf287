"""Decisions of a rule in a replay."""

from typing import NamedTuple

from bfreplay import replay_log
from bfreplay.runs.explain.saved_tables import nodes_over_time
from tests.replay.tiny import SECOND


class RuleDecision(NamedTuple):
    """A decision: its second, and of each job the nodes, the seconds of its restart, the hosts chosen, and why."""

    second: float
    counts: list
    restarts_s: list
    hosts: list
    reasons: list


def decisions_of(policy, events, jobs):
    """Return the run, and its decisions."""
    decide, decisions = policy.decide, []

    def note(state):
        answer = decide(state)
        restarts_s = [0.0] * state.n_jobs if answer.restart_s is None else answer.restart_s.tolist()
        hosts = [] if answer.placement is None else [chosen.tolist() for chosen in answer.placement.assigned]
        reasons = [policy.why(state, row) for row in range(state.n_jobs)]
        decisions.append(RuleDecision(state.time_us / SECOND, answer.counts.tolist(), restarts_s, hosts, reasons))
        return answer

    policy.decide = note
    return replay_log(events, jobs, policy, efficiency=False, bound=False), decisions


def nodes_of(result, name="job"):
    """(second, nodes) from which a job has so many."""
    nodes = nodes_over_time(result, name)
    return list(zip((nodes.edge_us[:-1] / SECOND).tolist(), nodes.counts.tolist(), strict=True))
