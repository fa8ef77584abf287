"""What is remembered of reclaims, and where it would be in a pool of another size."""

from __future__ import annotations

import numpy as np
import pytest

from bfreplay.policies.reclaims import memory as memory_module
from bfreplay.policies.reclaims.memory import MEMORY_S, ReclaimMemory, count_hits, frequency
from bfreplay.saved_state import classes_inside, restore_state, save_state

US = 1_000_000
HOUR_US = 3600 * US
N_NODES = 40


def idle_on(*nodes: int) -> np.ndarray:
    """Return which nodes are idle."""
    is_idle = np.zeros(N_NODES, np.bool_)
    is_idle[list(nodes)] = True
    return is_idle


def seen(*instants: tuple[float, range | list[int]]) -> ReclaimMemory:
    """Return a memory of (seconds, idle nodes)."""
    memory = ReclaimMemory()
    for time_s, nodes in instants:
        memory.note(idle_on(*nodes), round(time_s * US))
    return memory


def spans_of(memory: ReclaimMemory) -> list[tuple[int, int]]:
    """Return its stretches as (first place, last place)."""
    first, last, _ = memory.stretches()
    return list(zip(first.tolist(), last.tolist(), strict=True))


def test_a_reclaim_at_the_low_end_is_found_at_the_low_end_of_a_pool_of_another_size():
    memory = seen((0, range(10)), (60, range(3, 10)))
    assert spans_of(memory) == [(0, 2)]
    memory.note(idle_on(*range(3, 35)), 120 * US)
    assert spans_of(memory) == [(0, 2)]


def test_a_reclaim_at_the_high_end_is_found_at_the_high_end_of_a_pool_of_another_size():
    memory = seen((0, range(10)), (60, range(8)))  # places 8 and 9 of 10
    assert spans_of(memory) == [(6, 7)]
    memory.note(idle_on(*range(8), *range(20, 32)), 120 * US)
    assert spans_of(memory) == [(18, 19)]


def test_places_count_idle_nodes_only():
    memory = seen((0, [2, 11, 30, 39]), (60, [2, 30, 39]))
    assert spans_of(memory) == [(1, 1)]


def test_a_reclaim_in_the_very_middle_counts_from_below_where_nothing_is_known():
    memory = seen((0, range(5)), (60, [0, 1, 3, 4]))
    assert spans_of(memory) == [(2, 2)]  # the third from below, of four
    memory.note(idle_on(*range(10)), 120 * US)
    assert spans_of(memory) == [(2, 2)]


@pytest.mark.parametrize(("taken", "expected"), [([0], (0, 3)), ([9], (6, 9))])
def test_a_reclaim_of_all_nodes_counts_from_the_end_where_most_were_taken(taken, expected):
    """Nodes 0 to 9, of which one at an end is taken; then only four are idle, and all are taken."""
    left = [k for k in range(10) if k not in taken]
    memory = seen((0, range(10)), (60, left), (120, range(4)), (180, []), (240, range(10)))
    assert spans_of(memory)[-1] == expected


def test_a_stretch_beyond_the_other_end_of_a_small_pool_is_left_out():
    memory = seen((0, range(20)), (60, [k for k in range(20) if k not in (7, 8)]))
    assert spans_of(memory) == [(7, 8)]
    memory.note(idle_on(0, 1, 2), 120 * US)
    assert (7, 8) not in spans_of(memory)
    memory.note(idle_on(*range(12)), 180 * US)
    assert (7, 8) in spans_of(memory)


def test_places_at_most_three_apart_are_one_stretch():
    one = seen((0, range(30)), (60, [k for k in range(30) if k not in (2, 5, 8)]))
    assert spans_of(one) == [(2, 8)]
    two = seen((0, range(30)), (60, [k for k in range(30) if k not in (2, 6)]))
    assert spans_of(two) == [(2, 2), (6, 6)]


def test_nodes_that_become_idle_are_no_reclaims():
    assert spans_of(seen((0, range(5)), (60, range(20)))) == []


def test_a_reclaim_is_forgotten_after_12_hours():
    memory = seen((0, range(10)), (60, range(3, 10)))
    kept_us = 60 * US + round(MEMORY_S * US)
    memory.note(idle_on(*range(3, 10)), kept_us)
    assert spans_of(memory) == [(0, 2)]
    assert memory.stretches().seconds == MEMORY_S
    memory.note(idle_on(*range(3, 10)), kept_us + 1)
    assert spans_of(memory) == []
    assert memory.stretches().seconds == MEMORY_S


def test_an_hour_at_least_is_taken_for_observed():
    memory = seen((0, range(10)), (60, range(9)))
    assert memory.stretches().seconds == 3600.0
    memory.note(idle_on(*range(9)), 2 * HOUR_US)
    assert memory.stretches().seconds == 7200.0


def test_a_full_memory_has_the_latest_reclaims_and_the_time_since_the_first_of_them(monkeypatch):
    monkeypatch.setattr(memory_module, "_MOST", 4)
    memory = ReclaimMemory()
    memory._reclaims = np.zeros((8, 4), np.int64)
    for k in range(40):  # every half hour the lowest 1, 2, 3, 4 or 5 nodes, then they come back
        memory.note(idle_on(*range(20)), 2 * k * 900 * US)
        memory.note(idle_on(*range(k % 5 + 1, 20)), (2 * k + 1) * 900 * US)
        assert spans_of(memory) == [(0, n % 5) for n in range(max(0, k - 3), k + 1)]
    assert memory.stretches().seconds == 3 * 1800.0
    assert memory._reclaims.shape == (8, 4)


def test_more_stretches_at_once_than_are_remembered_are_cut(monkeypatch):
    monkeypatch.setattr(memory_module, "_MOST", 2)
    memory = ReclaimMemory()
    memory.note(idle_on(*range(40)), 0)
    memory.note(idle_on(*[k for k in range(40) if k % 8]), US)
    assert len(spans_of(memory)) == 2


@pytest.mark.parametrize(("n_nodes", "time_us"), [(N_NODES, 30 * US), (N_NODES + 1, 90 * US)])
def test_another_replay_begins_anew(n_nodes, time_us):
    """The clock goes back, or the log has other nodes."""
    used, new = seen((0, range(10)), (60, range(3, 10))), ReclaimMemory()
    for memory in (used, new):
        memory.note(np.arange(n_nodes) < 10, time_us)
        assert spans_of(memory) == []
        memory.note(np.arange(n_nodes) < 9, time_us + 2 * HOUR_US)
        assert spans_of(memory) == [(8, 8)]
        assert memory.stretches().seconds == 7200.0


def test_what_is_idle_may_be_overwritten_by_the_caller():
    memory, is_idle = ReclaimMemory(), idle_on(*range(10))
    memory.note(is_idle, 0)
    is_idle[:3] = False
    memory.note(is_idle, 60 * US)
    assert spans_of(memory) == [(0, 2)]


def test_a_memory_that_was_saved_and_restored_goes_on_as_it_would_have():
    rng = np.random.default_rng(45)
    instants = [(k * 300 * US, rng.random(N_NODES) < 0.6) for k in range(60)]
    whole, first = ReclaimMemory(), ReclaimMemory()
    for time_us, is_idle in instants[:30]:
        whole.note(is_idle, time_us)
        first.note(is_idle, time_us)
    second = ReclaimMemory()
    restore_state(second, save_state(first, classes_inside(ReclaimMemory())))
    for time_us, is_idle in instants[30:]:
        whole.note(is_idle, time_us)
        second.note(is_idle, time_us)
        assert spans_of(second) == spans_of(whole) != []
        assert second.stretches().seconds == whole.stretches().seconds


def test_hits_are_the_stretches_that_hold_a_place():
    first, last = np.array([0, 4, 9, -3]), np.array([2, 4, 30, 0])
    assert count_hits(first, last, np.array([3, 4, 8])).tolist() == [False, True, False, False]
    assert count_hits(first, last, np.array([0, 30])).tolist() == [True, False, True, True]
    assert count_hits(first, last, np.zeros(0, np.int64)).tolist() == [False] * 4


def test_half_a_reclaim_more_than_was_seen_so_that_nothing_is_safe_for_good():
    assert frequency(0, 3600.0) == 0.5 / 3600


def test_reclaims_within_two_minutes_of_another_count_once():
    assert frequency(3, 7000.0) == 3.5 / 7360
    assert frequency(10**9, 7000.0) == pytest.approx(1 / 120)


def test_a_node_that_appears_does_not_make_it_forget():
    memory = seen((0, range(10)), (60, range(3, 10)))
    memory.add_nodes(N_NODES + 2)
    is_idle = np.append(idle_on(*range(5, 10)), [True, False])
    memory.note(is_idle, 120 * US)
    assert spans_of(memory) == [(0, 2), (0, 1)]


def test_nodes_that_appear_before_the_first_decision_need_no_room():
    memory = ReclaimMemory()
    memory.add_nodes(N_NODES)
    memory.note(idle_on(1), 60 * US)
    assert spans_of(memory) == []
