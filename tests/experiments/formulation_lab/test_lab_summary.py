"""Sums, percentiles, profiles and bins, by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bfreplay.experiments.formulation_lab.summary import (
    performance_profile,
    shifted_geometric_mean,
    summarise,
    time_by_size,
    winner,
)
from bfreplay.experiments.formulation_lab.trials import Outcome, outcome_of, relative_loss
from bfreplay.milp.solution import ProcessStatus, Quality, Solution, SolverStatus
from bfreplay.result_folders.lab import Winner
from tests.experiments.formulation_lab.worked import ANSWERS, PAIRS, answer


def _rows(answers=ANSWERS, pairs=PAIRS, limit=1.0):
    return {row["pair"]: row for row in summarise(answers, pairs, limit)}


def test_a_row_counts_each_outcome_once():
    rows = _rows()
    for row in rows.values():
        assert sum(row[outcome.value] for outcome in Outcome) == row["decisions"] == 3
    a, b = rows["a on x"], rows["b on x"]
    assert (a["proven"], a["feasible"], a["solved"], a["crashed"], a["workers_lost"]) == (2, 1, 3, 0, 0)
    assert (b["proven"], b["feasible"], b["solved"], b["crashed"], b["workers_lost"]) == (2, 0, 2, 1, 1)


def test_medians_and_percentiles_are_over_solved_answers():
    rows = _rows()
    a, b = rows["a on x"], rows["b on x"]
    assert a["total_median_s"] == 0.012  # of 2, 12 and 50 ms
    assert a["total_p95_s"] == pytest.approx(0.012 + 0.9 * 0.038)  # position 1.9 of 0 to 2
    assert (a["build_median_s"], a["solve_median_s"]) == pytest.approx((0.003, 0.009))
    assert b["total_median_s"] == pytest.approx(0.006)  # of 4 and 8: the crash has no time
    assert b["total_p95_s"] == pytest.approx(0.004 + 0.95 * 0.004)
    assert (a["columns_median"], a["rows_median"], a["entries_median"]) == (20, 6, 40)
    assert (b["columns_median"], b["entries_median"]) == (40, 100)  # the crashed one built no model here
    assert rows["exact"]["columns_median"] is None


def test_the_mean_counts_an_answer_without_proof_as_the_time_limit():
    rows = _rows(limit=1.0)
    assert rows["a on x"]["sgm_s"] == pytest.approx((0.003 * 0.013 * 1.001) ** (1 / 3) - 0.001)
    assert rows["b on x"]["sgm_s"] == pytest.approx((0.009 * 0.005 * 1.001) ** (1 / 3) - 0.001)
    # one that took longer than the limit counts for what it took
    assert _rows(limit=0.01)["a on x"]["sgm_s"] == pytest.approx((0.003 * 0.013 * 0.051) ** (1 / 3) - 0.001)


def test_the_shifted_geometric_mean_of_equal_times_is_that_time():
    assert shifted_geometric_mean([0.25] * 5) == pytest.approx(0.25)
    assert shifted_geometric_mean([0.0, 8.0], shift=1.0) == pytest.approx(2.0)  # sqrt(1 x 9) - 1


def test_gaps_and_losses_keep_what_is_unknown_apart_from_zero():
    a = _rows()["a on x"]
    assert (a["gap_median"], a["gap_worst"], a["loss_worst"]) == (0.0, 0.5, 0.25)
    assert a["loss_proven_worst"] == 0.0  # the quarter was lost by an answer without proof
    unknown = [answer(0, "exact"), answer(0, "a on x", gap=None, outcome=Outcome.FEASIBLE)]
    row = _rows(unknown, ["exact", "a on x"])["a on x"]
    assert (row["gap_median"], row["gap_worst"]) == (None, None)
    better = [answer(0, "a on x", relative_loss=-0.01), answer(1, "a on x", relative_loss=-1e-9)]
    assert _rows(better, ["a on x"])["a on x"]["better_than_exact"] == 1


def test_the_fastest_proof_wins_and_exact_does_not_compete():
    rows = _rows()
    assert (rows["exact"]["fastest"], rows["a on x"]["fastest"], rows["b on x"]["fastest"]) == (0, 1, 1)
    assert rows["a on x"]["times_exact"] == 7.0  # 2 and 12 times
    assert rows["b on x"]["times_exact"] == 6.0  # 8 and 4 times
    # both won once; a's mean is smaller: 3 x 13 against 9 x 5 ms2 (and it comes first by name: see below)
    assert winner(list(rows.values())) == Winner(pair="a on x", fastest=1, decisions=3, times_exact=7.0)


def test_without_a_proof_there_is_no_winner():
    failed = [answer(0, "exact"), answer(0, "a on x", 1.0, Outcome.WRONG)]
    assert winner(summarise(failed, ["exact", "a on x"], 1.0)) is None


def _steps(field, pair, rows):
    return [(row["tau"], row["share"]) for row in rows if row["field"] == field and row["pair"] == pair]


def test_performance_profiles_by_hand():
    rows = performance_profile(ANSWERS, PAIRS)
    third = pytest.approx(1 / 3)
    # of the pairs alone: a is best on decision 0 and 3 times the best on 1; b 4 times on 0 and best on 1
    assert _steps("milp", "a on x", rows) == [(1.0, third), (3.0, pytest.approx(2 / 3))]
    assert _steps("milp", "b on x", rows) == [(1.0, third), (4.0, pytest.approx(2 / 3))]
    assert _steps("milp", "exact", rows) == []
    # against exact: ratios of a are 2 and 12, of b 8 and 4
    assert _steps("all", "exact", rows) == [(1.0, 1.0)]
    assert _steps("all", "a on x", rows) == [(1.0, 0.0), (2.0, third), (12.0, pytest.approx(2 / 3))]
    assert _steps("all", "b on x", rows) == [(1.0, 0.0), (4.0, third), (8.0, pytest.approx(2 / 3))]


def test_a_pair_that_proves_nothing_has_a_profile_of_zero():
    rows = performance_profile([answer(0, "a on x", 1.0, Outcome.TIMED_OUT)], ["a on x"])
    assert _steps("milp", "a on x", rows) == [(1.0, 0.0)]


def test_time_is_binned_by_jobs_times_nodes_in_powers_of_two():
    sizes = {0: (3, 5), 1: (2, 4), 2: (4, 4)}  # 15 and 8 lie in 8 to 16, 16 in 16 to 32
    rows = time_by_size(ANSWERS, sizes, PAIRS)
    a = [row for row in rows if row["pair"] == "a on x"]
    assert [(row["size_from"], row["size_to"], row["decisions"], row["proven"]) for row in a] == [
        (8, 16, 2, 2),
        (16, 32, 1, 0),
    ]
    assert a[0]["total_median_s"] == pytest.approx(0.007)
    assert (a[0]["n_jobs_median"], a[0]["n_idle_median"], a[0]["columns_median"]) == (2.5, 4.5, 15)
    assert (a[1]["total_median_s"], a[1]["columns_median"]) == (None, 40)
    assert [row["columns_median"] for row in rows if row["pair"] == "exact"] == [None, None]


@pytest.mark.parametrize(
    ("process", "status", "quality", "has_optimum", "outcome"),
    [
        (ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.PROVEN, True, Outcome.PROVEN),
        (ProcessStatus.OK, SolverStatus.FEASIBLE, Quality.FEASIBLE, True, Outcome.FEASIBLE),
        (ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, True, Outcome.WRONG),
        (ProcessStatus.CRASHED, SolverStatus.UNKNOWN, Quality.NONE, True, Outcome.CRASHED),
        (ProcessStatus.TIMED_OUT, SolverStatus.UNKNOWN, Quality.NONE, True, Outcome.TIMED_OUT),
        (ProcessStatus.REFUSED, SolverStatus.UNKNOWN, Quality.NONE, True, Outcome.REFUSED),
        (ProcessStatus.OK, SolverStatus.ERROR, Quality.NONE, True, Outcome.ERROR),
        (ProcessStatus.OK, SolverStatus.NO_SOLUTION, Quality.NONE, True, Outcome.NO_ANSWER),
        (ProcessStatus.OK, SolverStatus.UNKNOWN, Quality.NONE, True, Outcome.NO_ANSWER),
        (ProcessStatus.OK, SolverStatus.INFEASIBLE, Quality.NONE, True, Outcome.WRONG),
        (ProcessStatus.OK, SolverStatus.UNBOUNDED, Quality.NONE, True, Outcome.WRONG),
        (ProcessStatus.OK, SolverStatus.INFEASIBLE, Quality.NONE, False, Outcome.NO_ANSWER),
    ],
)
def test_every_end_has_one_word(process, status, quality, has_optimum, outcome):
    solution = Solution(None, float("nan"), float("inf"), process, status, quality, "some solver")
    assert outcome_of(solution, has_optimum=has_optimum) is outcome


@pytest.mark.parametrize(("bound", "outcome"), [(5.0, Outcome.PROVEN), (float("inf"), Outcome.FEASIBLE)])
def test_within_a_gap_counts_as_proven_only_with_a_bound(bound, outcome):
    """Without one the exact solver could not check it."""
    solution = Solution(None, 4.0, bound, ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.FEASIBLE, "some solver")
    assert outcome_of(solution, has_optimum=True) is outcome


def test_of_two_that_won_as_often_the_one_of_smaller_mean_wins():
    (row,) = summarise([answer(0, "a on x")], ["a on x"], 1.0)
    rows = [replace(row, pair=pair, fastest=1, sgm_s=mean) for pair, mean in (("a", 2.0), ("b", 1.0))]
    assert winner(rows).pair == "b"


@pytest.mark.parametrize(("objective", "optimum", "loss"), [(9.0, 10.0, 0.1), (0.1, 0.2, 0.1), (-30.0, -20.0, 0.5)])
def test_losses_are_relative_to_the_optimum_or_to_1(objective, optimum, loss):
    assert relative_loss(objective, optimum) == pytest.approx(loss)
