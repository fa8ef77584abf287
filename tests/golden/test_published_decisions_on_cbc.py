"""The 800 recorded decisions of the published program, by MILP: same optimum, defect included, and put right."""

from __future__ import annotations

import pytest

from bfreplay.milp.backends import SolveOptions
from bfreplay.milp.formulations import formulation_of
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.judgement import judge
from bfreplay.milp.solution import Quality
from tests.golden.records import decision_records, problem_of

CHUNKS = 16
WANTED = {"published": "published_objective", "node_level": "optimal_objective", "choices": "optimal_objective"}


@pytest.mark.parametrize("formulation", list(WANTED))
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_optimum_is_the_recorded_one(shared, formulation, chunk):
    """Chunk c holds every 16th record from c on."""
    made = formulation_of(formulation)
    records = decision_records(shared)[chunk::CHUNKS]
    assert len(records) == 50
    with IsolatedBackend("cbc") as cbc:
        for record in records:
            problem = problem_of(record)
            model = made.build(problem)
            ran = cbc.solve(model, SolveOptions(time_limit_s=120.0))
            assert ran.answer is not None, (record["id"], ran.message)
            posed = problem.held_to_published_limit() if made.change_limited else problem
            verdict = judge(posed, made, model, ran.answer)
            assert verdict.quality is Quality.PROVEN, (record["id"], verdict.message)
            assert verdict.objective == pytest.approx(record[WANTED[formulation]], rel=1e-6, abs=1e-9), record["id"]
