"""Decisions of a rule in a replay."""

from bfreplay import replay_log
from tests.replay.tiny import SECOND


def decisions_of(policy, events, jobs, **settings):
    """Return the run, and of each decision its second, the counts, the restarts in seconds, and the nodes chosen."""
    decide, decisions = policy.decide, []

    def note(state):
        answer = decide(state)
        restarts_s = [0.0] * state.n_jobs if answer.restart_s is None else answer.restart_s.tolist()
        nodes = [] if answer.placement is None else [chosen.tolist() for chosen in answer.placement.assigned]
        decisions.append((state.time_us / SECOND, answer.counts.tolist(), restarts_s, nodes))
        return answer

    policy.decide = note
    policy.not_saved = (*policy.not_saved, "decide")
    run = replay_log(events, jobs, policy, efficiency=False, bound=False, **settings)
    return run, decisions
