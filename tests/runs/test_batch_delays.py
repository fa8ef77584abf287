"""Delays of batch jobs against a second implementation, written from the rule alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfreplay.datasets.batch_jobs import BatchJobs
from bfreplay.errors import InputError
from bfreplay.runs import batch_delays
from bfreplay.runs.batch_delays import propagated_delays
from tests.examples import examples

N_NODES = 5
MINUTE = 60_000_000


def jobs_of(rows):
    """Batch jobs of (start, end, nodes), named by their rows."""
    lengths = [len(nodes) for _, _, nodes in rows]
    return BatchJobs(
        [f"job {row}" for row in range(len(rows))],
        np.array([start for start, _, _ in rows], np.int64),
        np.array([end for _, end, _ in rows], np.int64),
        np.cumsum([0, *lengths]).astype(np.int64),
        np.array([node for _, _, nodes in rows for node in nodes], np.int32),
    )


def delays_of(rows, held, clear_us):
    return propagated_delays(
        jobs_of(rows),
        np.array([time for time, _ in held], np.int64),
        np.array([node for _, node in held], np.int32),
        clear_us,
    )


def plain_delays(rows, held, clear):
    """The rule word by word: each job looks at every earlier one."""
    delayed_end = []
    delays, counts = [], []
    met = set()
    for row, (start, end, nodes) in enumerate(rows):
        taken = {(start, node) for node in nodes} & set(held)
        met |= taken
        candidates = [start] + ([start + clear] if taken else [])
        for earlier in range(row):
            _, its_end, its_nodes = rows[earlier]
            if its_end <= start and set(its_nodes) & set(nodes):
                candidates.append(delayed_end[earlier])
        begin = max(candidates)
        delayed_end.append(begin + (end - start))
        delays.append(begin - start)
        counts.append(len(taken))
    return delays, counts, len(set(held) - met)


@st.composite
def schedules(draw):
    """Few nodes and few times, so that jobs share nodes, overlap, have no length, and begin and end at one time."""
    longest = draw(st.sampled_from([3, 8, 40]))
    one = st.tuples(
        st.integers(-3, 20),
        st.integers(0, longest),
        st.lists(st.integers(0, N_NODES - 1), unique=True, max_size=N_NODES),
    )
    rows = [(start, start + length, nodes) for start, length, nodes in draw(st.lists(one, max_size=25))]
    rows.sort(key=lambda row: row[0])
    starts = sorted({(start, node) for start, _, nodes in rows for node in nodes})
    held = draw(st.sets(st.sampled_from(starts))) if starts else set()
    held |= draw(st.sets(st.tuples(st.integers(-5, 25), st.integers(0, N_NODES)), max_size=3))
    return rows, sorted(held)


@given(schedules(), st.integers(0, 12))
@settings(max_examples=examples(400), deadline=None)
def test_delays_are_those_of_the_rule_word_by_word(schedule, clear):
    rows, held = schedule
    found = delays_of(rows, held, clear)
    delays, counts, n_unmatched = plain_delays(rows, held, clear)
    assert found.delay_us.tolist() == delays
    assert found.n_held.tolist() == counts
    assert found.n_unmatched == n_unmatched
    assert found.node_us == sum(delay * len(nodes) for delay, (_, _, nodes) in zip(delays, rows, strict=True))
    met = [len(nodes) for count, (_, _, nodes) in zip(counts, rows, strict=True) if count]
    assert (found.direct_us, found.direct_node_us) == (clear * len(met), clear * sum(met))


@given(schedules(), st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=examples(200), deadline=None)
def test_no_delay_is_negative_none_is_without_clearing_and_none_exceeds_or_shrinks_with_clearing(schedule, clear, more):
    shorter, longer = (delays_of(*schedule, each) for each in (clear, clear + more))
    assert (shorter.delay_us >= 0).all()
    assert (shorter.delay_us <= clear).all()
    assert not delays_of(*schedule, 0).delay_us.any()
    assert (longer.delay_us >= shorter.delay_us).all()
    assert (shorter.delay_us >= clear * (shorter.n_held > 0)).all()


@pytest.mark.parametrize("seed", range(3))
def test_delays_on_many_nodes_are_those_of_the_rule(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for start in np.sort(rng.integers(0, 2_000, 300)).tolist():
        nodes = rng.choice(2_000, int(rng.integers(1, 200)), replace=False).tolist()
        rows.append((start, start + int(rng.integers(0, 300)), nodes))
    starts = sorted({(start, node) for start, _, nodes in rows for node in nodes})
    held = [each for each in starts if rng.random() < 0.02]
    found = delays_of(rows, held, 50)
    assert (found.delay_us.tolist(), found.n_held.tolist(), found.n_unmatched) == plain_delays(rows, held, 50)
    assert len(set(found.delay_us.tolist())) > 10


def test_a_delay_goes_on_to_later_jobs_until_a_gap_takes_it_up():
    """Worked by hand, in minutes; nodes 0 and 1 are held when B starts."""
    rows = [
        (0, 10 * MINUTE, [0, 1]),  # A
        (10 * MINUTE, 20 * MINUTE, [0, 1, 2]),  # B: clearing takes 5 minutes, so from 15 to 25
        (20 * MINUTE, 30 * MINUTE, [2, 3]),  # C: waits for B until 25, ends at 35
        (22 * MINUTE, 24 * MINUTE, [1]),  # D: waits for B until 25, so 3 minutes late
        (33 * MINUTE, 40 * MINUTE, [3]),  # E: waits for C until 35
        (36 * MINUTE, 37 * MINUTE, [2]),  # F: C has left
    ]
    found = delays_of(rows, [(10 * MINUTE, 0), (10 * MINUTE, 1), (12 * MINUTE, 4)], 5 * MINUTE)
    assert found.delay_us.tolist() == [0, 5 * MINUTE, 5 * MINUTE, 3 * MINUTE, 2 * MINUTE, 0]
    assert found.n_held.tolist() == [0, 2, 0, 0, 0, 0]
    assert (found.n_unmatched, found.n_jobs_held, found.n_jobs_delayed) == (1, 1, 4)
    assert (found.total_us, found.node_us) == (15 * MINUTE, (15 + 10 + 3 + 2) * MINUTE)
    assert (found.direct_us, found.direct_node_us) == (5 * MINUTE, 15 * MINUTE)
    assert found.quantiles_us == {50: 3 * MINUTE, 90: 5 * MINUTE, 99: 5 * MINUTE}
    assert found.worst == ("job 1", 5 * MINUTE)


def test_jobs_that_overlap_on_a_node_do_not_wait_for_each_other():
    rows = [(0, 10, [0]), (9, 30, [0]), (10, 12, [0])]  # the third waits for the first, not for the second
    assert delays_of(rows, [(0, 0)], 4).delay_us.tolist() == [4, 0, 4]
    assert delays_of(rows, [(9, 0)], 4).delay_us.tolist() == [0, 4, 0]


def test_a_job_of_no_length_delays_jobs_of_later_rows_only():
    assert delays_of([(5, 5, [0, 1]), (5, 9, [1])], [(5, 0)], 4).delay_us.tolist() == [4, 4]
    assert delays_of([(5, 9, [1]), (5, 5, [0, 1])], [(5, 0)], 4).delay_us.tolist() == [0, 4]


def test_there_are_no_figures_without_jobs_or_without_delays():
    none = delays_of([], [(3, 7)], 4)
    assert (none.n_unmatched, none.total_us, none.node_us, none.quantiles_us, none.worst) == (1, 0, 0, {}, None)
    idle = delays_of([(0, 3, [0])], [], 4)
    assert (idle.n_unmatched, idle.n_jobs_held, idle.quantiles_us, idle.worst) == (0, 0, {}, None)


def test_a_node_that_was_taken_may_be_one_that_no_job_has(monkeypatch):
    plain = getattr(batch_delays._propagate, "py_func", batch_delays._propagate)  # checks what it indexes
    monkeypatch.setattr(batch_delays, "_propagate", plain)
    assert delays_of([(0, 3, [0])], [(0, 7)], 4).n_unmatched == 1


def test_quantiles_are_rounded_up_to_a_job():
    found = delays_of([(k, k + 1, [k]) for k in range(1, 16)], [(k, k) for k in range(1, 11)], 0)
    found = replace(found, delay_us=np.array([0] * 5 + list(range(1, 11))))
    assert found.quantiles_us == {50: 5, 90: 9, 99: 10}


def test_sums_are_exact_beyond_64_bits():
    century = 100 * 365 * 86_400 * 10**6
    rows = [(0, 1, list(range(100)))] + [(0, 1, list(range(100 * k, 100 * k + 100))) for k in range(1, 30)]
    found = delays_of(rows, [(0, 100 * k) for k in range(30)], century)
    assert found.total_us == 30 * century
    assert found.node_us == 3_000 * century > 2**63


def test_a_negative_time_to_clear_is_refused():
    with pytest.raises(InputError, match="negative"):
        delays_of([], [], -1)
