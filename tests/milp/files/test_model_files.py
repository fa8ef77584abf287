"""MPS and LP files mean the same to every solver that can read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from bfreplay.milp.files.models import lp_text, mps_text, write_lp, write_mps
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from bfreplay.milp.model import LinearModel, SpecialOrderedSet
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.verify import agrees
from tests.examples import examples
from tests.milp.files.readers import READS_SETS, RefusedFileError, read_by
from tests.milp.small_problems import optimum_by_enumeration, problem_of_two, problems

FORMATS = ["lp", "mps"]
INF = np.inf


def written(model: LinearModel, folder: Path, form: str) -> Path:
    file = folder / f"model.{form}"
    (write_lp if form == "lp" else write_mps)(model, file)
    assert [each for each in folder.iterdir() if ".part-" in each.name] == []
    return file


def maximum(model: LinearModel, folder: Path, form: str, solver: str) -> float | None:
    """The maximum that ``solver`` finds in the file; what we write as MPS minimises the negative."""
    objective, _ = read_by(solver, written(model, folder, form))
    return -objective if form == "mps" and objective is not None else objective


def model_of(
    objective: list[float],
    lower: list[float],
    upper: list[float],
    whole: list[int],
    rows: list[tuple[float, list[float], float]],
    constant: float = 0.0,
    sets: tuple[SpecialOrderedSet, ...] = (),
    names: list[str] | None = None,
    row_names: list[str] | None = None,
) -> LinearModel:
    matrix = np.array([row for _, row, _ in rows]).reshape(len(rows), len(objective))
    entry_row, entry_column = np.nonzero(matrix)
    return LinearModel(
        np.array(objective),
        constant,
        np.array(lower),
        np.array(upper),
        np.array(whole, dtype=bool),
        tuple(names or [f"x[{c}]" for c in range(len(objective))]),
        np.array([low for low, _, _ in rows]),
        np.array([high for _, _, high in rows]),
        tuple(row_names or [f"row[{r}]" for r in range(len(rows))]),
        entry_row,
        entry_column,
        matrix[entry_row, entry_column],
        sets,
    )


SECOND_ORDER = SpecialOrderedSet(2, np.arange(3), np.array([1.0, 2.5, 4.0]))
BY_HAND = {
    # name: model, maximum worked out by hand
    "ranged rows": (model_of([1, 1], [0, 0], [9, 9], [0, 0], [(1, [1, 2], 3), (-2, [1, -1], 2)]), 3 - 1 / 3),
    "a ranged row that asks for its lower end": (model_of([-1], [0], [9], [0], [(2, [1], 5)]), -2),
    "an equation": (model_of([1, 0], [0, 0], [9, 9], [0, 0], [(4, [1, 1], 4)]), 4),
    "negative lower bounds": (model_of([-1, -1], [-2.5, -3], [4, 4], [0, 1], [(-INF, [1, 1], 8)]), 5.5),
    "a negative range": (model_of([1, 1], [-7, -5], [-2, -4], [0, 1], [(-INF, [1, 1], 8)]), -6),
    "no lower bound": (model_of([-1, -1], [-INF, -INF], [2, INF], [0, 0], [(-9, [1, 0], INF), (-4, [0, 1], INF)]), 13),
    "a column without rows": (model_of([0, 2, 1], [0, 0, 0], [1, 3, 1], [0, 0, 0], [(-INF, [0, 0, 1], 1)]), 7),
    "a column that is nowhere": (model_of([0, 1], [0, 0], [INF, 1], [0, 0], [(-INF, [0, 1], 1)]), 1),
    "whole numbers without an upper bound": (model_of([1, 2], [0, 0], [INF, INF], [1, 1], [(-INF, [1, 1], 7.5)]), 14),
    "whole numbers without any bound": (model_of([1, -1], [-INF, -INF], [INF, INF], [1, 1],
                                                 [(-INF, [2, 0], 7), (-7, [0, 2], INF)]), 6),
    "a large whole number": (model_of([1], [0], [INF], [1], [(-INF, [1], 123456789)]), 123456789),
    "a whole number of two values": (model_of([1, 1], [3, 0], [4, 1], [1, 1], [(-INF, [1, 1], 4.5)]), 4),
    "a fixed column": (model_of([1, 1], [2, 0], [2, 3], [0, 0], [(-INF, [1, 1], 4)]), 4),
    "a constant": (model_of([1], [0], [3], [0], [(-INF, [1], 2)], 1.5), 3.5),
    "a negative constant": (model_of([1], [0], [3], [1], [(-INF, [1], 2)], -1e6), 2 - 1e6),
    "a row that asks for nothing": (model_of([1], [0], [3], [0], [(-INF, [1], INF), (-INF, [1], 2)]), 2),
    "an empty row that holds": (model_of([1], [0], [3], [0], [(-1, [0], 1), (-INF, [1], 2)]), 2),
    "an empty row that cannot hold": (model_of([1], [0], [3], [0], [(1, [0], 1), (-INF, [1], 2)]), None),
    "small and large numbers": (model_of([1e-5, 1e8], [0, 0], [1e7, 1], [0, 1], [(-INF, [1e-3, 1e5], 1e5 + 1)]),
                                1e8 + 1e-2),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_HAND)
def test_the_older_cbc_of_pulp_reads_mps_files_without_sets(tmp_path, what):
    model, best = BY_HAND[what]
    found = maximum(model, tmp_path, "mps", "pulp-cbc")
    assert (found is None and best is None) or found == pytest.approx(best, rel=1e-9, abs=1e-7)


@pytest.mark.parametrize("solver", sorted(READS_SETS))
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("what", BY_HAND)
def test_every_solver_reads_the_same_model(tmp_path, what, form, solver):
    model, best = BY_HAND[what]
    found = maximum(model, tmp_path, form, solver)
    assert (found is None and best is None) or found == pytest.approx(best, rel=1e-9, abs=1e-7)


@pytest.mark.parametrize("solver", sorted(READS_SETS))
@pytest.mark.parametrize("form", FORMATS)
def test_special_ordered_sets_are_kept_or_the_file_is_refused(tmp_path, form, solver):
    """10 a + 4 b + 9 c with a + b + c <= 2: 19 without the set, 14 with neighbours alone, 10 with one alone."""
    rows = [(-INF, [1.0, 1.0, 1.0, 0.0, 0.0], 2.0)]
    for kind, best in ((2, 14.0), (1, 10.0)):
        sets = (
            replace(SECOND_ORDER, kind=kind),
            SpecialOrderedSet(1, np.array([3, 4]), np.array([1.0, 2.0])),  # 3 or 2, not 5
        )
        model = model_of([10, 4, 9, 3, 2], [0] * 5, [1] * 5, [0] * 5, rows, sets=sets)
        if READS_SETS[solver]:
            assert maximum(model, tmp_path, form, solver) == pytest.approx(best + 3)
        else:
            assert maximum(replace(model, sets=()), tmp_path, form, solver) == pytest.approx(19 + 5)
            with pytest.raises(RefusedFileError, match=f"model.{form}"):
                maximum(model, tmp_path, form, solver)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("formulation", "solver"),
    [
        (name, solver)
        for name in FORMULATIONS.names()
        for solver, reads_sets in sorted(READS_SETS.items())
        if reads_sets or not formulation_of(name).needs_sos
    ],
)
@settings(
    max_examples=examples(12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(problem=problems(max_jobs=3, max_nodes=5))
@example(problem=problem_of_two())
@example(problem=problem_of_two(change_limit=1, capacity=9, current=np.array([4, 1])))
def test_a_decision_read_by_another_solver_has_the_same_optimum(tmp_path, formulation, form, solver, problem):
    made = formulation_of(formulation)
    model = made.build(problem)
    posed: AllocationProblem = problem.within_published_limit() if made.change_limited else problem
    best, _ = optimum_by_enumeration(posed)
    found = maximum(model, tmp_path, form, solver)
    if best == -INF:
        assert found is None
    else:
        assert found is not None
        assert agrees(found, best, float(np.abs(model.objective).max(initial=0.0)))


@pytest.mark.parametrize("solver", sorted(READS_SETS))
def test_names_are_kept_in_round_brackets_in_lp_and_as_they_are_in_mps(tmp_path, solver):
    model = formulation_of("choices").build(problem_of_two())
    assert sorted(read_by(solver, written(model, tmp_path, "mps"))[1]) == ["y[0,3]", "y[1,2]"]
    assert sorted(read_by(solver, written(model, tmp_path, "lp"))[1]) == ["y(0,3)", "y(1,2)"]


@pytest.mark.parametrize("solver", sorted(READS_SETS))
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "names",
    [
        ["node count", "b"],
        ["1st", "2nd"],
        ["e1", "E2"],
        ["free", "x"],
        ["größe", "x"],
        ["a", "a"],
        ["", "x"],
        ["*x", "$y"],
        ["a" * 300, "b" * 300],
        ["x[0]", "x(0)"],
        ["st", "Bounds"],
        ["inf", "sos2"],
        ["a+b", "a:b"],
        ["objective_constant", "negative_objective"],
    ],
    ids=lambda names: names[0][:20] or "empty",
)
def test_names_that_a_format_cannot_hold_become_numbers(tmp_path, names, form, solver):
    """4 a + 3 b - 1 with 1 <= a + b <= 2, b at most 1: 7, and nobody but the file's reader sees the names."""
    model = model_of(
        [4, 3], [0, 0], [9, 1], [1, 0], [(1, [1, 1], 2), (-INF, [1, 0], 1)], -1.0, names=names, row_names=names
    )
    assert maximum(model, tmp_path, form, solver) == pytest.approx(6)


def test_lines_of_lp_files_are_short_enough_for_every_reader():
    problem = AllocationProblem(
        current=np.zeros(2, np.int64),
        min_nodes=np.ones(2, np.int64),
        max_nodes=np.full(2, 300),
        gain=np.cumsum(np.ones((2, 301)), axis=1) ** 0.5,
        scale_up_loss=np.zeros(2),
        scale_down_loss=np.zeros(2),
        capacity=400,
    )
    for name in FORMULATIONS.names():
        assert max(map(len, lp_text(formulation_of(name).build(problem)).splitlines())) <= 120


def test_an_lp_file_reads_like_the_model():
    text = lp_text(
        model_of(
            [1, -2],
            [0, -1],
            [1, INF],
            [1, 0],
            [(1, [1, 1], 2)],
            3.0,
            sets=(SpecialOrderedSet(2, np.array([0, 1]), np.array([1.0, 2.0])),),
        )
    )
    assert text.splitlines() == [
        "\\ one decision of bfreplay",
        "Maximize",
        " objective: + 1 x(0) - 2 x(1) + 3 objective_constant",
        "Subject To",
        " row(0): + 1 x(0) + 1 x(1) <= 2",
        " row(0)_least: + 1 x(0) + 1 x(1) >= 1",
        "Bounds",
        " objective_constant = 1",
        " x(1) >= -1",
        "Binaries",
        " x(0)",
        "SOS",
        " set0: S2:: x(0):1 x(1):2",
        "End",
    ]


@pytest.mark.parametrize("writer", [write_lp, write_mps])
def test_nothing_half_written_stays(tmp_path, writer):
    (tmp_path / "model").mkdir()
    with pytest.raises(OSError):
        writer(formulation_of("choices").build(problem_of_two()), tmp_path / "model")
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_numbers_are_written_to_the_last_bit():
    value = 0.1 + 0.2
    model = model_of([value], [0], [1 / 3], [0], [(-INF, [2 / 3], 1e-17)])
    for text in (lp_text(model), mps_text(model)):
        for number in (value, 1 / 3, 2 / 3, 1e-17):
            assert repr(number) in text
