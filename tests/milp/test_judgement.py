"""What is left of a back end's claim: checked by itself, and against an exact solver's optimum."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp import ExactSolver
from bfreplay.milp.backends import BackendAnswer
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.judgement import Judgement, against_referee, apply_referee, judge
from bfreplay.milp.solution import Quality, SolverStatus
from tests.milp.small_problems import problem_of_two

BEST = np.array([3, 2])
PROBLEM = problem_of_two()
CHOICES = formulation_of("choices")
MODEL = CHOICES.build(PROBLEM)
RIGHT = ExactSolver().solve(PROBLEM)
OPTIMAL, FEASIBLE = SolverStatus.OPTIMAL, SolverStatus.FEASIBLE


def columns(*counts: int) -> np.ndarray:
    """Column values of these counts."""
    chosen = {f"y[{j},{n}]" for j, n in enumerate(counts)}
    return np.array([float(name in chosen) for name in MODEL.column_names])


def judged(status=OPTIMAL, x=None, objective=12.0, bound=12.0, gap=0.0, **more) -> Judgement:
    answer = BackendAnswer(status, columns(3, 2) if x is None else x, objective, bound, **more)
    return judge(PROBLEM, CHOICES, MODEL, answer, gap)


def test_an_optimum_that_is_what_it_claims_is_proven():
    found = judged(bound=12.5)
    assert (found.quality, found.counts.tolist(), found.objective, found.bound) == (Quality.PROVEN, [3, 2], 12.0, 12.0)


@pytest.mark.parametrize(
    ("bound", "kept"), [(12.5, 12.5), (12.0 - 1e-7, 12.0), (math.inf, math.inf), (math.nan, math.inf)]
)
def test_an_answer_that_is_not_proven_keeps_its_bound(bound, kept):
    assert judged(bound=bound, gap=0.1).bound == kept
    found = judged(FEASIBLE, bound=bound)
    assert (found.quality, found.objective, found.bound) == (Quality.FEASIBLE, 12.0, kept)


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_what_is_called_optimal_within_a_gap_is_feasible(gap):
    found = judged(x=columns(1, 2), objective=7.0, bound=12.0, gap=gap)
    assert found.quality is (Quality.FEASIBLE if gap else Quality.PROVEN)  # the referee sees that it is no optimum
    assert found.bound == (12.0 if gap else 7.0)


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"objective": 12.001}, "claims 12.001, is worth 12"),
        ({"objective": 11.999}, "claims 11.999, is worth 12"),
        ({"objective": math.nan}, "claims nan, is worth 12"),
        ({"status": FEASIBLE, "objective": 12.001}, "claims 12.001, is worth 12"),
        ({"bound": 11.9}, "its bound 11.9 is below its own answer's 12"),
        ({"x": columns(3, 2) + 2e-5}, "is not whole"),
        ({"x": columns(3, 4), "objective": 12.0}, "counts sum to 7 of 5 idle nodes"),
        ({"x": columns(3, 2)[:-1]}, r"\(\d+,\) column values for \d+ columns"),
        ({"x": np.where(columns(3, 2) > 0, np.inf, 0.0)}, "a column value is not finite"),
        ({"x": "111"}, "the back end's x is a str"),
        ({"objective": "12"}, "the back end's objective is '12', not a number"),
        ({"status": "optimal "}, "the back end's solver_status is 'optimal ', not a SolverStatus"),
        ({"message": 7}, "the back end's message is a int, not text"),
    ],
)
def test_a_claim_that_is_wrong_is_called_so_with_what_is_wrong(claim, says):
    found = judged(**claim)
    assert found.quality is Quality.WRONG
    assert re.search(says, found.message)


def test_an_unproven_answer_may_be_worth_more_than_it_claims_and_columns_may_be_off_by_a_little():
    assert judged(FEASIBLE, objective=11.0).quality is Quality.FEASIBLE
    assert judged(x=columns(3, 2) + 9e-6).quality is Quality.PROVEN
    continuous = replace(MODEL, is_integer=np.zeros(MODEL.n_columns, dtype=bool))
    found = judge(PROBLEM, CHOICES, continuous, BackendAnswer(OPTIMAL, columns(3, 2) + 1e-3, 12.0, 12.0))
    assert found.quality is Quality.PROVEN


@pytest.mark.parametrize("status", [SolverStatus.NO_SOLUTION, SolverStatus.INFEASIBLE, SolverStatus.UNKNOWN])
def test_no_answer_is_none_whatever_the_columns_hold(status):
    assert judged(status).quality is Quality.NONE
    missing = judge(PROBLEM, CHOICES, MODEL, BackendAnswer(OPTIMAL, None, 12.0, 12.0))
    assert missing.quality is Quality.WRONG
    assert "without an answer" in missing.message


def test_an_optimum_that_the_referee_beats_is_wrong():
    found = against_referee(PROBLEM, Judgement(Quality.PROVEN, BEST, None, 7.0, 7.0), RIGHT)
    assert (found.quality, found.bound) == (Quality.WRONG, math.inf)
    assert found.message == "called optimal at 7, but exact has 12"


def test_an_optimum_that_no_referee_could_check_is_not_proven():
    claimed = Judgement(Quality.PROVEN, BEST, None, 12.0, 12.0)
    silent = replace(RIGHT, counts=None, quality=Quality.NONE, objective=math.nan)
    failed = against_referee(PROBLEM, claimed, replace(silent, solver_status=SolverStatus.ERROR, message="too large"))
    assert (failed.quality, failed.bound) == (Quality.FEASIBLE, math.inf)
    assert failed.message == "called optimal, which exact could not check: too large"
    assert against_referee(PROBLEM, claimed, replace(silent, solver_status=SolverStatus.INFEASIBLE)) == claimed
    unproven = replace(claimed, quality=Quality.FEASIBLE, objective=7.0)
    assert against_referee(PROBLEM, unproven, RIGHT) == unproven
    beaten = replace(RIGHT, objective=11.0, quality=Quality.FEASIBLE)
    assert against_referee(PROBLEM, claimed, beaten) == claimed


@pytest.mark.parametrize(
    ("objective", "bound", "gap", "quality", "kept"),
    [
        (7.0, 20.0, None, Quality.FEASIBLE, 20.0),
        (7.0, 11.9, None, Quality.WRONG, math.inf),  # its bound is below the optimum, 12
        (7.0, 20.0, 5 / 12, Quality.FEASIBLE, 12.0),
        (7.0, 20.0, 4.9 / 12, Quality.WRONG, math.inf),
        (12.0 + 1e-7, 20.0, 0.1, Quality.FEASIBLE, 12.0 + 1e-7),
    ],
)
def test_an_unproven_answer_is_held_to_its_bound_and_its_gap(objective, bound, gap, quality, kept):
    found = apply_referee(PROBLEM, Judgement(Quality.FEASIBLE, BEST, None, objective, bound), RIGHT, gap)
    assert (found.quality, found.bound) == (quality, kept)


def test_a_referee_without_an_optimum_says_nothing_of_an_unproven_answer():
    claimed = Judgement(Quality.FEASIBLE, BEST, None, 7.0, 8.0)
    for silent in (replace(RIGHT, counts=None), replace(RIGHT, quality=Quality.FEASIBLE)):
        assert apply_referee(PROBLEM, claimed, silent, 0.0) == claimed


def test_a_denial_is_wrong_where_the_referee_has_an_answer():
    denied = Judgement(Quality.NONE, message="no answer: solver status infeasible")
    assert apply_referee(PROBLEM, denied, replace(RIGHT, counts=None), None) == denied
    found = apply_referee(PROBLEM, denied, RIGHT, None)
    assert found.quality is Quality.WRONG
    assert found.message == "no answer: solver status infeasible, but exact has an answer worth 12"


def test_one_that_beats_the_referee_is_a_defect_of_the_referee_and_not_proven():
    right = ExactSolver().solve(problem_of_two())
    referee = replace(right, objective=right.objective - 1, bound=right.bound - 1)
    judged = against_referee(problem_of_two(), Judgement(Quality.PROVEN, BEST, None, 12.0, 12.0), referee)
    assert judged.quality is Quality.FEASIBLE
    assert "a defect of exact, please report it" in judged.message
    assert judged.bound == np.inf


def test_one_that_is_worse_by_less_than_solvers_tolerate_stays_proven_with_the_referees_bound():
    claimed = Judgement(Quality.PROVEN, BEST, None, 12.0 - 1e-7, 12.0 - 1e-7)
    judged = against_referee(problem_of_two(), claimed, ExactSolver().solve(problem_of_two()))
    assert judged.quality is Quality.PROVEN
    assert judged.bound == pytest.approx(12.0, abs=1e-9)
