"""Gavel's policies that follow a rule: FIFO, Gandiva and AlloX."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bfreplay.errors import InputError
from bfreplay.systems.gavel.shares.rule_shares import Gandiva
from bfreplay.systems.gavel.shares.share_problem import SharePolicy, ShareProblem, TimeShares
from bfreplay.systems.gavel.shares.slot_policies import AlloX, Fifo, FifoPacked, FifoPerf, first_on_each_node
from tests.parity.gavel_records import SCENARIOS, problem_of, record_of, shares_of
from tests.systems.gavel.shares.feasible_shares import assert_feasible

NAMES = ("fifo", "fifo_perf", "fifo_packed", "gandiva", "allox")


def policy_named(name: str, seed: int) -> SharePolicy:
    """As the original is, with its defects."""
    made: dict[str, SharePolicy] = {
        "fifo": Fifo(seed=seed, over_allocates=True),
        "fifo_perf": FifoPerf(),
        "fifo_packed": FifoPacked(),
        "gandiva": Gandiva(seed=seed),
        "allox": AlloX(counts_zero_rates=True),
    }
    return made[name]


def problem(
    rate: Sequence[Sequence[float]],
    n_nodes: Sequence[int],
    *,
    job: Sequence[int] | None = None,
    gang: Sequence[int] | None = None,
    steps: Sequence[float] | None = None,
    pairs: dict[tuple[int, int], Sequence[Sequence[float]]] | None = None,
) -> ShareProblem:
    """Types a, b, ...; jobs numbered from 0, with gangs of 1 and 1,000 steps left if nothing else is said."""
    m, n = len(rate), len(n_nodes)
    numbers = list(range(m)) if job is None else list(job)
    rows = sorted(pairs or {})
    return ShareProblem(
        job=np.array(numbers, dtype=np.int64),
        type_names=tuple("abcdef"[:n]),
        n_nodes=np.array(n_nodes, dtype=np.int64),
        gang=np.array([1] * m if gang is None else gang, dtype=np.int64),
        rate=np.array(rate, dtype=np.float64).reshape(m, n),
        weight=np.ones(m),
        steps_left=np.array([1000.0] * m if steps is None else steps, dtype=np.float64),
        age_s=-np.array(numbers, dtype=np.float64),
        to_deadline_s=np.full(m, np.inf),
        price_per_hour=np.ones(n),
        pair=np.array([[numbers.index(a), numbers.index(b)] for a, b in rows], dtype=np.int64).reshape(-1, 2),
        pair_rate=np.array([(pairs or {})[row] for row in rows], dtype=np.float64).reshape(-1, n, 2),
    )


def types_of(shares: TimeShares, of: ShareProblem) -> dict[int, str]:
    """Type by job number, of jobs that are alone there for all their time."""
    assert set(np.unique(shares.share)) <= {0.0, 1.0}
    return {int(of.job[i]): of.type_names[j] for i, j in np.argwhere(shares.share)}


def running_pairs(shares: TimeShares, of: ShareProblem) -> list[tuple[int, ...]]:
    """Numbers of the jobs of each pair with a share."""
    return [tuple(of.job[of.pair[row]].tolist()) for row in np.flatnonzero(shares.pair_share.any(axis=1))]


# ---- the original's own answers ----


def recomputations(record: dict[str, Any], name: str) -> Iterator[tuple[ShareProblem, TimeShares]]:
    """Problems of a recorded simulation, from its trace and rounds, and the shares that it wrote down."""
    lines = [line.split("\t") for line in record["trace"].splitlines()]
    key = [f"('{line[0]}', {line[6]})" for line in lines]
    tables = {name: table for name, table in record["throughputs"].items() if record["cluster_spec"][name]}
    result = record["results"][name]
    steps_left = np.array([float(line[5]) for line in lines])
    rounds = iter(result["rounds"])
    n_rounds = 0
    for event in result["allocation_events"]:
        for done in itertools.islice(rounds, event["round"] - n_rounds):
            for jobs, run in done["run"].items():
                for job, steps in zip(jobs.split(","), run["steps"], strict=True):
                    steps_left[int(job)] -= steps
        n_rounds = event["round"]
        jobs = sorted(int(job) for job in event["allocation"] if "," not in job)
        if not jobs:
            continue
        per_job = {
            "throughputs": {str(i): {t: table[key[i]]["null"] for t, table in tables.items()} for i in jobs},
            "scale_factors": {str(i): int(lines[i][6]) for i in jobs},
            "num_steps_remaining": {str(i): steps_left[i] for i in jobs},
            "times_since_start": {str(i): event["t"] - float(lines[i][9]) for i in jobs},
            "pair_throughputs": {
                f"{a},{b}": {t: table[key[a]][key[b]] for t, table in tables.items()}
                for a, b in itertools.combinations(jobs, 2)
                if lines[a][6] == lines[b][6]
            },
        }
        at_event = problem_of({"cluster_spec": {t: record["cluster_spec"][t] for t in tables}, **per_job})
        yield at_event, shares_of(event["allocation"], at_event)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_simulations_have_the_same_shares_at_every_recomputation(shared: Path, name: str) -> None:
    n_checked = 0
    for scenario in SCENARIOS:
        record = record_of(shared, scenario)
        if name not in record["results"]:
            continue
        policy = policy_named(name, record["seed"])
        for at_event, recorded in recomputations(record, name):
            answer = policy.shares(at_event)
            np.testing.assert_array_equal(answer.share, recorded.share, scenario)
            # a rule for jobs alone has no shares of pairs
            pair_share = answer.pair_share if answer.pair_share.size else np.zeros_like(recorded.pair_share)
            np.testing.assert_array_equal(pair_share, recorded.pair_share, scenario)
            n_checked += 1
    assert n_checked > 10


# ---- FIFO ----


def test_a_gang_without_room_holds_up_all_behind_it() -> None:
    given_problem = problem([[2, 1]] * 3, [1, 1], gang=[1, 2, 1])
    assert types_of(FifoPerf().shares(given_problem), given_problem) == {0: "a"}


def test_a_job_that_runs_on_nothing_with_room_is_passed_over() -> None:
    given_problem = problem([[2, 1], [3, 0], [1, 1]], [1, 1])
    assert types_of(FifoPerf().shares(given_problem), given_problem) == {0: "a", 2: "b"}
    assert types_of(Fifo().shares(problem([[1, 0], [1, 0], [0, 1]], [1, 1])), given_problem) == {0: "a", 2: "b"}


def test_the_fastest_type_with_room_is_taken_and_the_first_by_name_of_equal_ones() -> None:
    given_problem = problem([[1, 4, 4], [1, 4, 2], [1, 4, 1]], [1, 1, 1])
    assert types_of(FifoPerf().shares(given_problem), given_problem) == {0: "b", 1: "c", 2: "a"}


def test_fifo_keeps_a_slot_that_fifo_perf_would_leave_for_a_faster_one() -> None:
    before = problem([[5, 5], [5, 1]], [1, 1])
    after = problem([[5, 1]], [1, 1], job=[1])
    for seed in range(8):
        policy = Fifo(seed=seed)
        first = types_of(policy.shares(before), before)
        assert types_of(policy.shares(after), after) == {1: first[1]}
    assert types_of(FifoPerf().shares(after), after) == {1: "a"}


def test_fifo_draws_among_all_types_with_room() -> None:
    given_problem = problem([[1, 2, 3]], [1, 1, 1])
    drawn = [types_of(Fifo(seed=seed).shares(given_problem), given_problem)[0] for seed in range(30)]
    assert set(drawn) == {"a", "b", "c"}


def test_the_slot_of_a_job_that_ended_goes_to_the_head_of_the_queue_without_a_draw() -> None:
    full = problem([[1, 1]] * 4, [1, 1])
    for seed in range(8):
        policy = Fifo(seed=seed)
        first = types_of(policy.shares(full), full)
        # two nodes of the other type appear as well; the head takes what job 0 left, whatever a draw would say
        n_more = [1 if first[0] == "a" else 3, 1 if first[0] == "b" else 3]
        later = problem([[1, 1]] * 2, n_more, job=[1, 2])
        assert types_of(policy.shares(later), later) == {1: first[1], 2: first[0]}


def test_a_head_whose_gang_does_not_fit_leaves_the_slot_of_a_job_that_ended_empty() -> None:
    policy = Fifo()
    policy.shares(problem([[1]] * 4, [2], gang=[1, 1, 2, 1]))
    later = problem([[1]] * 3, [2], job=[1, 2, 3], gang=[1, 2, 1])
    assert types_of(policy.shares(later), later) == {1: "a"}


def test_the_defect_gives_away_more_nodes_than_there_are_only_where_it_is_asked_for() -> None:
    given_problem = problem([[1, 1, 1]] * 6, [1, 1, 1])
    n_given = {
        over: max(Fifo(seed=seed, over_allocates=over).shares(given_problem).share.sum() for seed in range(10))
        for over in (False, True)
    }
    assert n_given == {False: 3.0, True: 6.0}


@pytest.mark.parametrize("policy", [Fifo(), AlloX()], ids=["fifo", "allox"])
def test_when_nodes_go_away_the_latest_arrivals_lose_their_slots_and_queue_in_order(policy: SharePolicy) -> None:
    jobs = [3, 5, 8, 9]
    full = problem([[1]] * 4, [4], job=jobs, steps=[9, 8, 7, 6])
    assert types_of(policy.shares(full), full) == dict.fromkeys(jobs, "a")
    fewer = problem([[1]] * 4, [2], job=jobs, steps=[9, 8, 7, 6])
    assert types_of(policy.shares(fewer), fewer) == {3: "a", 5: "a"}
    back = problem([[1]] * 3, [2], job=[3, 8, 9], steps=[9, 6, 7])
    assert types_of(policy.shares(back), back) == {3: "a", 8: "a"}
    policy.forget()


@pytest.mark.parametrize("policy", [Fifo(), Fifo(over_allocates=True), AlloX()], ids=["fifo", "as_published", "allox"])
def test_the_slot_of_a_job_that_left_is_forgotten_even_if_its_number_comes_back(policy: SharePolicy) -> None:
    both, one = problem([[1]] * 2, [1], steps=[1, 2]), problem([[1]], [1], job=[1])
    assert types_of(policy.shares(both), both) == {0: "a"}
    assert types_of(policy.shares(one), one) == {1: "a"}
    assert types_of(policy.shares(both), both) == {1: "a"}


def test_a_gang_that_lost_its_slot_does_not_leave_the_rest_of_it_to_later_jobs() -> None:
    policy = Fifo()
    policy.shares(problem([[1]] * 3, [5], gang=[2, 2, 1]))
    fewer = problem([[1]] * 3, [3], gang=[2, 2, 1])
    assert types_of(policy.shares(fewer), fewer) == {0: "a"}


@given(
    seed=st.integers(0, 99),
    steps=st.lists(
        st.tuples(st.sets(st.integers(0, 11), min_size=1), st.lists(st.integers(0, 4), min_size=3, max_size=3)),
        min_size=1,
        max_size=5,
    ),
)
def test_fifo_never_gives_more_than_there_is_and_moves_no_one_while_nodes_stay(
    seed: int, steps: list[tuple[set[int], list[int]]]
) -> None:
    random = np.random.default_rng(seed)
    rate, gang = random.integers(0, 3, (12, 3)), random.integers(1, 4, 12)
    policy = Fifo(seed=seed)
    before: dict[int, str] = {}
    nodes_before = [0, 0, 0]
    for present, n_nodes in steps:
        jobs = sorted(present)
        given_problem = problem(rate[jobs], n_nodes, job=jobs, gang=gang[jobs])
        answer = policy.shares(given_problem)
        assert_feasible(answer, given_problem)
        assert not answer.share[given_problem.rate == 0].any()
        now = types_of(answer, given_problem)
        if all(more >= less for more, less in zip(n_nodes, nodes_before, strict=True)):
            assert now.items() >= {job: name for job, name in before.items() if job in present}.items()
        before, nodes_before = now, n_nodes


# ---- FIFO with pairs ----


def test_a_waiting_job_joins_the_running_one_with_which_both_gain_most() -> None:
    pairs = {(0, 2): [[8, 8]], (1, 2): [[9, 9]], (0, 1): [[10, 10]], (0, 3): [[8, 8]], (1, 3): [[9, 9]]}
    given_problem = problem([[10]] * 4, [2], pairs=pairs)
    answer = FifoPacked().shares(given_problem)
    assert running_pairs(answer, given_problem) == [(0, 3), (1, 2)]
    assert not answer.share.any()


def test_a_pair_must_gain_more_than_the_threshold_and_the_first_that_finds_none_ends_the_pass() -> None:
    pairs = {(0, 1): [[7.5, 7.5]], (0, 2): [[9, 9]]}
    given_problem = problem([[10]] * 3, [1], pairs=pairs)
    answer = FifoPacked().shares(given_problem)
    assert running_pairs(answer, given_problem) == []
    assert types_of(answer, given_problem) == {0: "a"}
    assert running_pairs(FifoPacked(threshold=1.4).shares(given_problem), given_problem) == [(0, 1)]


def test_a_job_that_found_too_little_room_joins_no_one_but_those_behind_it_may() -> None:
    pairs = {(0, 3): [[9, 9]], (1, 2): [[9, 9]]}
    given_problem = problem([[10]] * 4, [4], gang=[1, 2, 2, 1], pairs=pairs)
    assert running_pairs(FifoPacked().shares(given_problem), given_problem) == [(0, 3)]


def test_jobs_wait_when_no_pair_is_known_or_nothing_runs() -> None:
    without_pairs = problem([[1]] * 2, [1])
    assert types_of(FifoPacked().shares(without_pairs), without_pairs) == {0: "a"}
    without_nodes = problem([[1]] * 2, [0], pairs={(0, 1): [[1, 1]]})
    assert not FifoPacked().shares(without_nodes).pair_share.any()


# ---- Gandiva ----


def all_pairs(numbers: Sequence[int], rates: Sequence[float]) -> dict[tuple[int, int], list[list[float]]]:
    """Every pair at the same rates, on one type."""
    return {pair: [list(rates)] for pair in itertools.combinations(numbers, 2)}


def test_jobs_that_all_have_room_share_nothing_and_split_the_cluster() -> None:
    given_problem = problem([[1, 1]] * 2, [3, 1], gang=[1, 2], pairs={(0, 1): [[1, 1], [1, 1]]})
    answer = Gandiva().shares(given_problem)
    # 3/2 and 1/2 of a node for each job, more than job 0 has time for; 3/4 and 1/4 of the time of the gang of 2
    np.testing.assert_allclose(answer.share, [[0.75, 0.25], [0.75, 0.25]])
    assert not answer.pair_share.any()


def test_a_pair_that_does_well_stays_until_one_of_the_two_leaves() -> None:
    for seed in range(6):
        policy = Gandiva(seed=seed)
        four = problem([[1]] * 4, [1], pairs=all_pairs(range(4), [0.9, 0.9]))
        drawn = running_pairs(policy.shares(four), four)
        assert sorted(number for pair in drawn for number in pair) == [0, 1, 2, 3]
        for _ in range(3):
            assert running_pairs(policy.shares(four), four) == drawn
        kept = next(pair for pair in drawn if 0 not in pair)
        three = problem([[1]] * 3, [1], job=[1, 2, 3], pairs=all_pairs([1, 2, 3], [0.9, 0.9]))
        answer = policy.shares(three)
        assert running_pairs(answer, three) == [kept]
        np.testing.assert_allclose(answer.share.sum(), 0.5)


@pytest.mark.parametrize("rates", [[0.6, 0.3], [2.0, 0.0]])
def test_a_pair_that_does_badly_runs_once_and_parts(rates: list[float]) -> None:
    policy = Gandiva()
    drawn = set()
    for _ in range(30):
        three = problem([[1]] * 3, [1], pairs=all_pairs(range(3), rates))
        drawn.add(running_pairs(policy.shares(three), three)[0])
    assert drawn == {(0, 1), (0, 2), (1, 2)}


def test_types_without_a_node_do_not_part_a_pair() -> None:
    pairs = {pair: [[0.9, 0.9], [0.0, 0.0]] for pair in itertools.combinations(range(3), 2)}

    def drawn(n_nodes: list[int]) -> set[tuple[int, ...]]:
        policy = Gandiva()
        three = problem([[1, 1]] * 3, n_nodes, pairs=pairs)
        return {running_pairs(policy.shares(three), three)[0] for _ in range(30)}

    assert len(drawn([1, 0])) == 1
    assert len(drawn([1, 1])) == 3


def test_pairs_outlast_a_time_without_nodes() -> None:
    pairs = all_pairs(range(6), [0.9, 0.9])
    policy = Gandiva()
    before = problem([[1]] * 6, [1], pairs=pairs)
    drawn = running_pairs(policy.shares(before), before)
    assert len(drawn) == 3
    assert not policy.shares(problem([[1]] * 6, [0], pairs=pairs)).pair_share.any()
    assert running_pairs(policy.shares(before), before) == drawn


def test_gangs_of_different_sizes_and_pairs_that_are_not_given_run_alone() -> None:
    different = problem([[1]] * 2, [1], gang=[1, 2])
    np.testing.assert_allclose(Gandiva().shares(different).share, [[0.5], [0.25]])
    not_given = problem([[1]] * 3, [1], pairs={(0, 1): [[1, 1]]})
    for seed in range(10):
        answer = Gandiva(seed=seed).shares(not_given)
        assert set(running_pairs(answer, not_given)) <= {(0, 1)}
        assert_feasible(answer, not_given)


# ---- AlloX ----


def test_the_shortest_job_goes_first_and_keeps_its_node_when_a_shorter_one_comes() -> None:
    policy = AlloX()
    first = problem([[1]] * 3, [1], steps=[30, 10, 20])
    assert types_of(policy.shares(first), first) == {1: "a"}
    later = problem([[1]] * 4, [1], steps=[30, 9, 20, 1])
    assert types_of(policy.shares(later), later) == {1: "a"}
    when_left = problem([[1]] * 3, [1], job=[0, 2, 3], steps=[30, 20, 1])
    assert types_of(policy.shares(when_left), when_left) == {3: "a"}


def test_a_slow_node_stays_empty_when_it_is_sooner_to_wait_for_the_fast_one() -> None:
    given_problem = problem([[10, 1], [10, 1]], [1, 1], steps=[100, 200])
    assert types_of(AlloX().shares(given_problem), given_problem) == {0: "a"}


def test_a_job_is_not_put_on_a_node_where_it_cannot_run() -> None:
    policy = AlloX()
    given_problem = problem([[1, 0], [2, 0], [1, 0]], [1, 2])
    assert types_of(policy.shares(given_problem), given_problem) == {1: "a"}
    # with a taken, nothing is left on which jobs 0 and 2 run
    assert types_of(policy.shares(given_problem), given_problem) == {1: "a"}
    without_nodes = problem([[1, 0]], [0, 0])
    assert types_of(policy.shares(without_nodes), without_nodes) == {}


def test_only_the_oldest_jobs_are_looked_at_when_alpha_is_small() -> None:
    given_problem = problem([[1]] * 4, [1], steps=[40, 30, 20, 10])
    first = [types_of(AlloX(alpha=alpha).shares(given_problem), given_problem) for alpha in (0.01, 0.5, 1.0)]
    assert first == [{0: "a"}, {1: "a"}, {3: "a"}]
    with pytest.raises(InputError, match="alpha is out of range"):
        AlloX(alpha=0)


def test_a_gang_is_refused_by_name_and_with_another_choice() -> None:
    with pytest.raises(InputError, match=r"job 7, which needs 4 nodes at once[\s\S]*choose fifo_perf"):
        AlloX().shares(problem([[1]] * 2, [4], job=[3, 7], gang=[1, 4]))


@given(
    free=st.lists(st.integers(0, 2), min_size=2, max_size=2).filter(any),
    minutes=st.lists(st.lists(st.integers(1, 30), min_size=2, max_size=2), min_size=1, max_size=5),
)
def test_who_is_first_on_each_node_is_as_in_one_of_the_best_of_all_orders(
    free: list[int], minutes: list[list[int]]
) -> None:
    time = np.array(minutes, dtype=np.float64)
    node_type = np.repeat([0, 1], free)
    best, firsts = np.inf, []
    for node_of in itertools.product(range(len(node_type)), repeat=len(time)):
        total, first = 0.0, []
        for node, j in enumerate(node_type):
            queue = sorted((time[i, j], i) for i in range(len(time)) if node_of[i] == node)
            total += sum((len(queue) - k) * seconds for k, (seconds, _) in enumerate(queue))
            first.append([(i, j) for seconds, i in queue if seconds == queue[0][0]])
        if total <= best:
            firsts = (firsts if total == best else []) + [first]
            best = total
    job, type_of = first_on_each_node(time, np.zeros(len(time)), np.array(free))
    mine = sorted(zip(job.tolist(), type_of.tolist(), strict=True))
    assert any(
        mine == sorted((int(i), int(j)) for i, j in choice)
        for first in firsts
        for choice in itertools.product(*[ties for ties in first if ties])
    )


# ---- all of them ----


@pytest.mark.parametrize("name", NAMES)
def test_a_new_replay_gives_the_same(name: str) -> None:
    random = np.random.default_rng(4)
    policy = policy_named(name, seed=3)
    if isinstance(policy, Fifo):
        policy = Fifo(seed=3)
    rate = random.uniform(1, 2, (30, 2))

    def replay() -> list[tuple[bytes, bytes]]:
        answers = []
        for start in range(0, 20, 2):
            jobs = list(range(start, start + 8))
            pairs = {(a, b): [[0.8, 0.8]] * 2 for a, b in itertools.combinations(jobs, 2)}
            given_problem = problem(rate[jobs], [2, 2], job=jobs, pairs=pairs if policy.uses_pairs else None)
            answer = policy.shares(given_problem)
            assert_feasible(answer, given_problem)
            answers.append((answer.share.tobytes(), answer.pair_share.tobytes()))
        return answers

    first = replay()
    policy.forget()
    assert replay() == first


def test_policies_say_what_rounds_must_know_about_them() -> None:
    flags = {
        type(policy).__name__: (policy.uses_pairs, policy.runs_only_its_own, policy.shuffles_types)
        for policy in (policy_named(name, seed=0) for name in NAMES)
    }
    assert flags == {
        "Fifo": (False, True, True),
        "FifoPerf": (False, True, False),
        "FifoPacked": (True, True, False),
        "Gandiva": (True, False, False),
        "AlloX": (False, False, False),
    }


def test_a_job_is_put_where_it_cannot_run_only_as_the_original_does():
    given = problem([[0.0, 0.0], [1.0, 2.0]], [1, 1])
    assert AlloX().shares(given).share.tolist() == [[0, 0], [0, 1]]
    assert AlloX(counts_zero_rates=True).shares(given).share.tolist() == [[1, 0], [0, 1]]
