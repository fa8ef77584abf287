"""PyTorch's own rendezvous, recorded on a virtual clock, and the closed form that the policy has of it."""

import gzip
import json

import pytest

from bfreplay.systems.products.torchrun import NOT_BEGUN, Rendezvous, TorchrunOptions, round_after
from tests.replay.tiny import SECOND


def running(rendezvous, events, seconds):
    """Return [second, agents that run] at each change; ``events`` are (second, ``new`` or ``vanish``, agent)."""
    changes = []
    for second in range(seconds):
        new, lost = (
            [who for when, what, who in events if (when, what) == (second, kind)] for kind in ("new", "vanish")
        )
        agents = rendezvous.step(second, new, lost)
        if not changes or agents != changes[-1][1]:
            changes.append([second, agents])
    return changes


def test_recorded_groups_run_from_second_to_second(shared):
    with gzip.open(shared / "golden/products/torchrun.json.gz") as file:
        scenarios = json.load(file)["scenarios"]
    assert len(scenarios) == 80
    for scenario in scenarios:
        keep_alive_s = scenario["keep_alive_s"] * scenario["keep_alive_attempts"]
        rendezvous = Rendezvous(scenario["min"], scenario["max"], scenario["last_call_s"], keep_alive_s)
        assert running(rendezvous, scenario["events"], scenario["seconds"]) == scenario["running"]


def test_agents_that_are_lost_together_all_lose_their_seats():
    events = [(0, "new", agent) for agent in "abcd"] + [(60, "vanish", "a"), (60, "vanish", "b")]
    # complete at 31; heartbeats at 56, too old at 72; last call until 102
    assert running(Rendezvous(1, 5), events, 200) == [[0, []], [31, [*"abcd"]], [60, []], [103, ["c", "d"]]]


@pytest.mark.parametrize(
    "changes",
    [
        {0: +2},  # start
        {0: +5},  # start at the maximum
        {0: +2, 10: +1},  # joins an open round
        {0: +2, 10: +3},  # fills an open round
        {0: +2, 60: +1},  # one more
        {0: +4, 60: +1},  # one more, maximum reached
        {0: +4, 62: -1},  # lost
        {0: +4, 62: -1, 67: +2},  # lost, and replaced before its seat is free
        {0: +4, 62: -1, 90: -1},  # another lost during the last call
        {0: +4, 10: -1},  # lost during the first last call
        {0: +2, 62: -1, 200: +1},  # too few
        {0: +2, 62: -1, 66: +1},  # too few, and enough before the seat is free
    ],
)
def test_a_round_is_complete_when_the_machine_says_so(changes):
    # a group that is complete at 31 sends heartbeats at 36, 41, ... 61: the seat of who is lost at 62 is free after 77
    agents, events, times_us, n_nodes = 0, [], NOT_BEGUN, 0
    for second, change in changes.items():
        kind, first = ("new", agents) if change > 0 else ("vanish", n_nodes - 1)
        events += [(second, kind, f"{first + k}") for k in range(abs(change))]
        agents += max(change, 0)
        n_nodes += change
        times_us = round_after(TorchrunOptions(), times_us, second * SECOND, n_nodes, (2, 5), change < 0)
    last_s, group = running(Rendezvous(2, 5), events, 300)[-1]
    assert len(group) == n_nodes
    assert last_s == pytest.approx(times_us[1] / SECOND, abs=2)
