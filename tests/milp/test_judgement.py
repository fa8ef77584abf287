"""A claimed optimum against an exact solver's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bfreplay.milp import ExactSolver
from bfreplay.milp.judgement import Judgement, against_referee
from bfreplay.milp.solution import Quality
from tests.milp.small_problems import problem_of_two

BEST = np.array([3, 2])


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
