"""What formulations build: well formed, as large as documented, and with a start that is feasible."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings

from bfreplay.milp.formulations import Formulation, formulation_of
from bfreplay.milp.formulations.choices import reduction
from bfreplay.milp.formulations.counts import segments
from bfreplay.milp.formulations.curves import kinks
from bfreplay.milp.formulations.formulation import start_counts
from bfreplay.milp.model import model_fault
from bfreplay.milp.verify import agrees, objective_of
from tests.examples import examples
from tests.milp.formulations.checking import ALL, BY_COUNT, broken, forbidding, posed_by, rugged, worth
from tests.milp.small_problems import by_count_problems, left_on_seven, one_hungry_job, problem_of_two, problems


@pytest.mark.parametrize("name", ALL)
@given(problem=problems() | by_count_problems())
@settings(max_examples=examples(100), deadline=None)
@example(problem=replace(one_hungry_job(), min_nodes=np.array([6]), current=np.array([3]), change_limit=1))
@example(problem=left_on_seven())
def test_models_are_well_formed(name, problem):
    assume(name in BY_COUNT or problem.has_constant_losses)
    formulation = formulation_of(name)
    model = formulation.build(problem)
    assert model_fault(model) == ""
    entries = set(zip(model.entry_row.tolist(), model.entry_column.tolist(), strict=True))
    assert len(entries) == len(model.entry_value)
    assert (model.entry_value != 0).all()
    assert (model.column_lower <= model.column_upper).all()
    assert (model.row_lower <= model.row_upper).all()
    assert len(model.column_names) == len(set(model.column_names))
    assert len(model.row_names) == len(set(model.row_names))
    assert model.n_columns > 0
    assert bool(model.sets) <= formulation.needs_sos
    assert formulation.needs_continuous == (not model.is_integer.all())
    assert isinstance(formulation, Formulation)


@pytest.mark.parametrize("name", ALL)
@given(problem=problems() | by_count_problems())
@settings(max_examples=examples(200), deadline=None)
@example(problem=problem_of_two())
@example(problem=left_on_seven())
@example(problem=problem_of_two(min_nodes=np.array([2, 3])))
@example(problem=problem_of_two(current=np.array([0, 5]), max_nodes=np.array([4, 3])))
def test_a_start_is_feasible_and_worth_its_counts(name, problem):
    assume(name in BY_COUNT or problem.has_constant_losses)
    formulation, posed = formulation_of(name), posed_by(name, problem)
    model = formulation.build(problem)
    expected = reduction(posed).incumbent if name == "choices_reduced" else start_counts(posed)
    if expected is None:
        assert model.start is None
        return
    assert broken(model, model.start) == []
    counts, _ = formulation.read(problem, model.start)
    assert counts.tolist() == expected.tolist()
    scale = float(np.abs(model.objective).max(initial=0.0))
    assert agrees(worth(model, model.start), objective_of(posed, counts), scale)


def test_a_start_keeps_what_jobs_hold_and_stops_those_below_their_minimum():
    assert start_counts(problem_of_two()).tolist() == [1, 2]
    assert start_counts(problem_of_two(min_nodes=np.array([1, 3]))).tolist() == [1, 0]
    assert start_counts(problem_of_two(current=np.array([0, 5]))).tolist() == [0, 0]
    assert start_counts(problem_of_two(min_nodes=np.array([1, 3]), change_limit=1)) is None


CASES = [
    problem_of_two(),
    problem_of_two(current=np.array([0, 2])),
    problem_of_two(capacity=3),
    rugged(np.random.default_rng(0), 7, 30, 12),
]
CASES_BY_COUNT = [*CASES, left_on_seven(), forbidding(rugged(np.random.default_rng(1), 7, 30, 12), 1)]


def breakpoints(problem, most) -> int:
    """B, where job j's curve is read from 0 to ``most[j]``."""
    return sum(len(kinks(problem.gain[j, : int(most[j]) + 1])) for j in range(problem.n_jobs))


def value_breakpoints(problem) -> tuple[int, int]:
    """B and T where the values' curves are read, one stretch for each run of allowed counts."""
    points = stretches = 0
    for j in range(problem.n_jobs):
        text = "".join("x" if worth > -np.inf else " " for worth in problem.value[j])
        for run in re.finditer("x+", text):
            bends = {run.start() + bend for bend in kinks(problem.value[j, run.start() : run.end()])}
            points += len(bends | ({int(problem.current[j])} & {*range(run.start(), run.end())}))
            stretches += 1
    return points, stretches


@pytest.mark.parametrize("problem", CASES)
def test_the_published_size_is_as_documented(problem):
    jobs, nodes, points = problem.n_jobs, problem.capacity, breakpoints(problem, problem.max_nodes)
    size = formulation_of("published").build(problem).size
    assert size.columns == jobs * (2 * nodes + 5) + points
    assert size.integer_columns == jobs * (2 * nodes + 5)
    assert size.rows == nodes + jobs * (4 * nodes + 12)
    assert size.entries == 22 * jobs * nodes + 9 * jobs + 2 * points - np.count_nonzero(problem.current == 0)
    assert size.sets == jobs


@pytest.mark.parametrize("problem", CASES_BY_COUNT)
def test_the_node_level_size_is_as_documented(problem):
    jobs, nodes, points, stretches = problem.n_jobs, problem.capacity, *value_breakpoints(problem)
    size = formulation_of("node_level").build(problem).size
    assert (size.columns, size.integer_columns) == (jobs * nodes + points + stretches, jobs * nodes + stretches)
    assert size.rows == nodes + 3 * jobs + stretches
    assert size.entries <= 3 * jobs * nodes - problem.current.sum() + 4 * points + stretches
    assert size.sets == jobs


@pytest.mark.parametrize("problem", CASES_BY_COUNT)
def test_the_size_with_counts_and_sets_is_as_documented(problem):
    jobs, points, stretches = problem.n_jobs, *value_breakpoints(problem)
    size = formulation_of("counts_sos2").build(problem).size
    assert (size.columns, size.integer_columns) == (jobs + points + stretches, jobs + stretches)
    assert size.rows == 2 * jobs + stretches + 1
    assert size.entries <= 2 * jobs + 3 * points + stretches
    assert size.sets == jobs


@pytest.mark.parametrize("problem", CASES_BY_COUNT)
def test_the_size_with_segments_is_as_documented(problem):
    parts, jobs = segments(problem), problem.n_jobs
    wide = np.count_nonzero(parts.last > parts.first)
    size = formulation_of("counts_segments").build(problem).size
    assert (size.columns, size.integer_columns) == (len(parts.job) + wide, len(parts.job) + wide)
    assert size.rows == jobs + wide + 1
    assert size.entries <= 2 * len(parts.job) + 3 * wide
    assert len(parts.job) <= jobs * (min(problem.gain.shape[1] - 1, problem.capacity) / 2 + 3)


def test_the_choices_size_is_as_documented():
    model = formulation_of("choices").build(problem_of_two())
    assert (model.n_columns, model.n_rows) == (5 + 4, 3)


@given(problem=problems() | by_count_problems())
@settings(max_examples=examples(200), deadline=None)
@example(problem=left_on_seven())
def test_segments_hold_every_allowed_count_once_and_are_straight(problem):
    parts = segments(problem)
    seen = np.zeros(problem.value.shape, dtype=int)
    for j, a, b in zip(parts.job, parts.first, parts.last, strict=True):
        seen[j, a : b + 1] += 1
        inside = np.maximum(problem.value[j, a : b + 1], -1e300)
        np.testing.assert_allclose(inside, np.linspace(inside[0], inside[-1], b - a + 1), rtol=1e-9, atol=1e-9)
    expected = problem.value > -np.inf
    expected[:, 0] |= ~expected.any(axis=1)  # nothing is allowed: a column that may only be 0
    np.testing.assert_array_equal(seen, expected)


def test_segments_are_as_long_as_they_can_be():
    """Job 0 holds 1, is straight from 0 to 2, steep to 3 and flat to 4; job 1 holds 2 and may have 2 to 4."""
    parts = segments(problem_of_two())
    assert list(zip(parts.job.tolist(), parts.first.tolist(), parts.last.tolist(), strict=True)) == [
        (0, 0, 0),
        (0, 1, 1),  # what it holds
        (0, 2, 3),
        (0, 4, 4),
        (1, 0, 0),
        (1, 2, 2),
        (1, 3, 4),
    ]


def test_segments_end_where_counts_are_forbidden_and_the_value_jumps():
    """Job 0 may have 1, 2, 4, 7 (held) and 8; job 1 makes 7 a node, and loses 7 more from 4 nodes on."""
    parts = segments(left_on_seven())
    assert list(zip(parts.job.tolist(), parts.first.tolist(), parts.last.tolist(), strict=True)) == [
        *((0, 0, 0), (0, 1, 2), (0, 4, 4), (0, 7, 7), (0, 8, 8)),
        *((1, 0, 0), (1, 1, 3), (1, 4, 5)),
    ]


def test_counts_that_all_bend_go_in_pairs():
    zigzag = replace(one_hungry_job(4), gain=np.array([[0.0, 1.0, 5.0, 6.0, 9.0]]))
    parts = segments(zigzag)
    assert list(zip(parts.first.tolist(), parts.last.tolist(), strict=True)) == [(0, 0), (1, 2), (3, 4)]
