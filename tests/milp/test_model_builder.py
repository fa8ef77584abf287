"""``ModelBuilder``: expressions are what numpy would make of the values, and models have the right optimum."""

from __future__ import annotations

import runpy
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from bfreplay import InputError, ModelBuilder
from bfreplay.milp import MilpSolver, model_builder
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.model import model_fault
from bfreplay.testing.decisions import random_decisions
from bfreplay.testing.milp import FormulationContract

_EXAMPLE = Path(__file__).parents[2] / "examples" / "gallery" / "own_formulation.py"
Choices = runpy.run_path(str(_EXAMPLE))["Choices"]


class TestChoicesWrittenWithTheBuilder(FormulationContract):
    formulation = Choices
    backend = "highs"


def test_choices_written_with_the_builder_has_the_optima_of_choices():
    with (
        closing(MilpSolver(Choices(), "highs", fallback="none")) as own,
        closing(MilpSolver("choices", "highs", fallback="none")) as published,
    ):
        for problem in random_decisions(40, seed=7):
            exact, one, other = (solver.solve(problem) for solver in (ExactSolver(), own, published))
            assert (one.counts is None) == (other.counts is None)
            if other.counts is not None:
                assert one.objective == pytest.approx(other.objective)
                assert one.objective == pytest.approx(exact.objective)


def test_expressions_are_what_numpy_makes_of_the_values():
    m = ModelBuilder()
    x, y, z = m.variable("x", (2, 3)), m.binary("y", 3), m.variable("z")
    values = np.random.default_rng(0).normal(size=10)
    of_x, of_y, of_z = values[:6].reshape(2, 3), values[6:9], values[9]
    weights = np.arange(3.0)
    for made, expected in (
        (x + y, of_x + of_y),
        (weights * x - z * 0.25 + 1, weights * of_x - of_z / 4 + 1),
        (5 - x.sum(axis=0) * 2, 5 - of_x.sum(axis=0) * 2),
        ((x + y[:, None].sum(axis=1)).sum(), (of_x + of_y).sum()),
        (x[1, ::-1] + x[0] + x[0], of_x[1, ::-1] + 2 * of_x[0]),
        (sum(y[k] for k in range(3)), of_y.sum()),
        (m.sum(2 * y[k] + 1 for k in range(3)), 2 * of_y.sum() + 3),
        (m.sum([x, y[0], 1.5]), of_x + of_y[0] + 1.5),
        (m.sum([]), np.zeros(())),
        (-(x + 3) * weights, -(of_x + 3) * weights),
    ):
        assert made.shape == expected.shape
        np.testing.assert_allclose(made.value(values), expected)


def test_a_model_has_the_bounds_names_and_entries_that_were_written():
    m = ModelBuilder()
    x = m.variable("x", 2, lower=[-1.0, 0.0], upper=5.0, integer=True)
    y = m.variable("y")
    m.add(x + 2 <= y + x[0], "up")
    m.add(np.array([1.0, 2.0]) <= x, "least")
    m.add(y.sum() == 4)
    m.maximise(3 * x - y + 1)
    model = m.build()
    assert model.column_names == ("x[0]", "x[1]", "y[0]")
    assert model.row_names == ("up[0]", "up[1]", "least[0]", "least[1]", "row[0]")
    assert model.column_lower.tolist() == [-1.0, 0.0, 0.0]
    assert model.column_upper.tolist() == [5.0, 5.0, np.inf]
    assert model.is_integer.tolist() == [True, True, False]
    assert model.objective.tolist() == [3.0, 3.0, -2.0]
    assert model.objective_constant == 2.0
    dense = np.zeros((5, 3))
    dense[model.entry_row, model.entry_column] = model.entry_value
    assert dense.tolist() == [[0, 0, -1], [-1, 1, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert model.row_lower.tolist() == [-np.inf, -np.inf, 1.0, 2.0, 4.0]
    assert model.row_upper.tolist() == [-2.0, -2.0, np.inf, np.inf, 4.0]
    assert repr(m) == "<ModelBuilder: 3 columns, 5 rows>"
    assert repr(x + y) == "<Expression: shape (2,), 4 terms>"


def test_sums_change_none_of_their_summands():
    m = ModelBuilder()
    x = m.variable("x", 2)
    summand = x[0] + 1
    total = summand + x[1]
    total += x[1]
    assert m.sum([summand, total]).value([2.0, 3.0]) == 12.0
    assert (summand.value([2.0, 3.0]), total.value([2.0, 3.0])) == (3.0, 9.0)


def test_rows_of_one_name_are_numbered_on():
    m = ModelBuilder()
    x = m.variable("x", 2)
    for j in range(2):
        m.add(x[j] <= 1)
    m.add(x <= 2)
    m.add(x.sum() <= 3, "other")
    m.add(x[0] <= 3)
    m.maximise(x)
    assert m.build().row_names == ("row[0]", "row[1]", "row[2]", "row[3]", "other[0]", "row[4]")


def test_a_misspelt_attribute_of_an_expression_is_named_with_what_has_it():
    x = ModelBuilder().variable("x", 2)
    for expression in (x, x[0]):
        with pytest.raises(AttributeError, match="'Expression' object has no attribute 'summ'") as failure:
            expression.summ()
        assert (failure.value.name, failure.value.obj) == ("summ", expression)  # from these Python suggests 'sum'


def test_what_is_no_linear_constraint_is_refused():
    x = ModelBuilder().variable("x", 2)
    with pytest.raises(InputError, match="two expressions are multiplied"):
        x * x
    with pytest.raises(InputError, match="neither true nor false"):
        assert 0 <= x <= 1
    with pytest.raises(InputError, match="this is no linear constraint"):
        assert x != 1


def test_division_products_transposes_and_numpy_sums_are_what_numpy_makes_of_the_values():
    m = ModelBuilder()
    x, y = m.variable("x", (2, 3)), m.variable("y", 3)
    values = np.random.default_rng(0).normal(size=9)
    of_x, of_y = values[:6].reshape(2, 3), values[6:]
    a, b = np.arange(1.0, 4.0), np.arange(6.0).reshape(3, 2)
    for made, expected in (
        (x / a, of_x / a),
        (x @ a, of_x @ a),
        (x @ b, of_x @ b),
        (b @ x, b @ of_x),
        (a @ y, a @ of_y),
        (a @ x.T, a @ of_x.T),
        (np.sum(x), of_x.sum()),
        (np.sum(x, axis=0), of_x.sum(axis=0)),
        (x.sum((0, 1)), of_x.sum()),
    ):
        assert made.shape == expected.shape
        np.testing.assert_allclose(made.value(values), expected)
    with pytest.raises(InputError, match="do not fit"):
        x @ np.ones(2)


def test_expressions_of_two_builders_do_not_mix():
    a, b = ModelBuilder(), ModelBuilder()
    x, z = a.variable("x", 3), b.variable("z", 3)
    in_models = (lambda: b.add(x <= 1), lambda: b.maximise(2 * x), lambda: b.sum([x[0]]))
    for mixed in (lambda: z <= x, lambda: z.sum() + x, *in_models):
        with pytest.raises(InputError, match="x belongs to another ModelBuilder"):
            mixed()


def test_mistakes_are_refused_at_the_call():
    m = ModelBuilder()
    x = m.variable("x", 3)
    for call, message in (
        (lambda: m.variable("x", 2), "'x' exists already"),
        (lambda: m.variable("y", 2, lower=[0, 0], upper=[1, -1]), "no value lies within the bounds of 'y'"),
        (lambda: x * np.array([1.0, -np.inf, 2.0]), r"not finite[\s\S]*np.where\(allowed, value, 0\)"),
        (lambda: x / 0, "divided by 0"),
        (lambda: x <= np.nan, "not finite"),
        (lambda: m.add(x), "this is no constraint"),
        (m.build, "no objective"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_a_model_may_have_no_row_and_a_constant_objective():
    m = ModelBuilder()
    m.variable("x", 2, upper=5)
    m.maximize(3)
    model = m.build()
    assert (model.n_rows, model.n_columns, model.objective_constant) == (0, 2, 3.0)
    assert model_fault(model) == ""


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda m, y: m.maximise(None), "neither an expression nor numbers"),
        (lambda m, y: m.maximise(y <= 1), "neither an expression nor numbers"),
        (lambda m, y: y / 0, "divided by 0"),
        (lambda m, y: y * [1, 2], r"the shapes \(4, 3\) and \(2,\) do not fit"),
        (lambda m, y: y + np.ones(7), r"the shapes \(4, 3\) and \(7,\) do not fit"),
        (lambda m, y: m.variable("q", 3, upper=[1, 2]), "the variable 'q' cannot be made"),
        (lambda m, y: m.binary("q", -1), "the variable 'q' cannot be made"),
        (lambda m, y: m.binary("q", 2, upper=[1, 4]), "the upper bound of the binary 'q'"),
        (lambda m, y: y.value([0] * 3), "not the values of the columns"),
        (lambda m, y: m.add("cap", y.sum() <= 1), "give the constraint first"),
        (lambda m, y: y < 1, "no linear constraint"),
    ],
)
def test_every_mistake_is_one_error_in_words(mistake, says):
    model = ModelBuilder()
    with pytest.raises(InputError, match=says):
        mistake(model, model.binary("y", (4, 3)))


def test_minimise_is_maximise_of_the_negative():
    models = []
    for sense in ("minimise", "maximise"):
        builder = ModelBuilder()
        x = builder.variable("x", 2, upper=3.0)
        getattr(builder, sense)(2 * x + 1 if sense == "minimise" else -2 * x - 1)
        models.append(builder.build())
    assert models[0].objective.tolist() == models[1].objective.tolist() == [-2.0, -2.0]
    assert models[0].objective_constant == models[1].objective_constant == -2.0


def _model(in_loops: bool):
    m = ModelBuilder()
    x, y, t = m.variable("x", (3, 4), upper=9), m.binary("y", 4), m.variable("t")
    weights = np.arange(1.0, 5.0)
    if in_loops:
        for j in range(3):
            for k in range(1, 4):
                m.add(x[j, k] - x[j, k - 1] <= weights[k] * y[k] + 1, f"up_{j}_{k}")
        m.add(x[0, 1] + x[0, 1] - 3 * y[0] - x[0, 1] <= y[0], "twice")
        m.add(x.sum() >= x[0, 0], "sum")  # the row keeps its sign, whatever is compared with what
        for k in range(-1, 3):
            m.add(2 - y[k] / 4 + t >= np.int64(3) * x[-1, k] + t, f"of_{k}")
        m.add(sum(x[j, 0] for j in range(3)) == 5 + t - x[0, 0], "all")
    else:
        for j in range(3):
            for k in range(1, 4):
                m.add((x[j, k : k + 1] - x[j, k - 1 : k] <= weights[k] * y[k : k + 1] + 1), f"up_{j}_{k}")
        m.add(x[0, 1:2] <= 4 * y[:1], "twice")
        m.add(x.sum() >= x[0, :1], "sum")
        for k in (3, 0, 1, 2):
            m.add(2 - y[k : k + 1] / 4 + t >= 3 * x[2, k : k + 1] + t, f"of_{k if k < 3 else -1}")
        m.add(x[:, 0].sum() == 5 + t - x[0, :1], "all")
    m.maximise(x.sum() + y[2] - t)
    return m.build()


def test_rows_added_in_loops_over_elements_are_those_of_arrays():
    loops, arrays = _model(in_loops=True), _model(in_loops=False)
    assert loops.row_names == arrays.row_names
    orders = [np.lexsort((model.entry_column, model.entry_row)) for model in (loops, arrays)]
    for name in ("row_lower", "row_upper", "objective", "entry_row", "entry_column", "entry_value"):
        ours, theirs = getattr(loops, name), getattr(arrays, name)
        if name.startswith("entry"):
            ours, theirs = ours[orders[0]], theirs[orders[1]]
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert model_fault(loops) == ""


def test_an_element_is_what_an_array_gives_at_its_place():
    m = ModelBuilder()
    x = m.variable("x", (2, 3))
    values = np.arange(1.0, 7.0)
    assert (x[1, 2] * 2 + x - 1).value(values).tolist() == (values.reshape(2, 3) + 11).tolist()
    assert (x + 3)[np.int64(-1), 0].value(values) == 7.0
    assert x[True].shape == (1, 2, 3)  # a mask, as in numpy
    assert repr(x[0, 1] - x[0, 1] + x[1, 1]) == "<Expression: shape (), 1 terms>"
    with pytest.raises(IndexError):
        x[0, 3]
    for mistake, message in ((lambda: x[0, 0] * np.inf, "not finite"), (lambda: x[0, 0] * x[0, 1], "multiplied")):
        with pytest.raises(InputError, match=message):
            mistake()


def test_a_loop_over_elements_makes_no_sparse_matrix_for_each_row(monkeypatch):
    made = []
    csr_array = model_builder.csr_array
    monkeypatch.setattr(model_builder, "csr_array", lambda *given: made.append(1) or csr_array(*given))
    m = ModelBuilder()
    x = m.binary("x", 50)
    before = len(made)
    for k in range(1, 50):
        m.add(2 * x[k] - x[k - 1] <= 1)
    assert len(made) == before


def test_one_expression_is_neither_several_nor_true_nor_false():
    model = ModelBuilder()
    y = model.binary("y", (2, 2))
    with pytest.raises(InputError, match="one expression, not several"):
        model.sum(y[0, 0])
    for truth in (lambda: not y, lambda: y[0, 0] and y[0, 1] <= 1):
        with pytest.raises(InputError, match="an expression is neither true nor false"):
            truth()
    assert [row.shape for row in y] == [(2,), (2,)]
