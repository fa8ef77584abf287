"""Occupancy computed second by second with plain Python: slow, and easy to check."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay.datasets.log.states import NodeState

STRENGTH = (NodeState.DOWN, NodeState.OFF, NodeState.BUSY, NodeState.DRAIN, NodeState.RESERVED, NodeState.UNKNOWN)


@dataclass(frozen=True)
class Held:
    """Nodes in a state from start to end, in whole seconds."""

    start: int
    end: int
    nodes: tuple[str, ...]
    state: NodeState = NodeState.BUSY


def states_by_the_second(
    intervals: list[Held], nodes: list[str], window: tuple[int, int], empty_after: int | None = None, log_end: int = 0
) -> dict[str, list[NodeState]]:
    """State of each node in each second of the window; a machine without jobs for long is down."""
    jobs = [held for held in intervals if held.state == NodeState.BUSY]
    assumed = set()
    if empty_after is not None:
        busy = {t for job in jobs for t in range(job.start, job.end)}
        first = min(window[0], *(held.start for held in intervals))
        t = first
        while t < log_end:
            if t in busy:
                t += 1
                continue
            begin = t
            while t < log_end and t not in busy:
                t += 1
            if t - begin > empty_after:
                assumed.update(range(begin, t))
    found: dict[str, list[NodeState]] = {}
    for node in nodes:
        found[node] = []
        for t in range(*window):
            here = {held.state for held in intervals if node in held.nodes and held.start <= t < held.end}
            strongest = next((state for state in STRENGTH if state in here), None)
            if strongest is None:
                strongest = NodeState.DOWN if t in assumed else NodeState.IDLE
            found[node].append(strongest)
    return found


def without_short_intervals(states: list[NodeState], least: int) -> list[NodeState]:
    """Close complete idle intervals shorter than ``least``: the node stays in the state that it had."""
    result = list(states)
    t = 0
    while t < len(result):
        if result[t] != NodeState.IDLE or t == 0:
            t += 1
            continue
        end = t
        while end < len(result) and result[end] == NodeState.IDLE:
            end += 1
        if end < len(result) and end - t < least and result[t - 1] != NodeState.IDLE:
            result[t:end] = [result[t - 1]] * (end - t)
        t = end
    return result


def events_by_the_second(events) -> dict[str, list[NodeState]]:
    """The states that a log of events tells, second by second."""
    start, end = events.window_start_us // 10**6, events.window_end_us // 10**6
    found = {node: [NodeState.IDLE] * (end - start) for node in events.nodes}
    for batch in events.batches():
        for time_us, node, state in zip(batch.time_us, batch.node, batch.state, strict=True):
            at = int(time_us) // 10**6 - start
            line = found[events.nodes[node]]
            line[at:] = [NodeState(int(state))] * (len(line) - at)
    return found
