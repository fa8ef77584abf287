"""A decision as JSON is the decision, to the last bit; anything else is refused with what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from bfreplay.errors import InputError
from bfreplay.milp.files.decision_json import SCHEMA, read_decision, write_decision
from bfreplay.milp.problem import AllocationProblem
from tests.milp.small_problems import by_count_problems, left_on_seven, problem_of_two, problems

_IN_A_FOLDER = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_REAL = st.floats(allow_nan=False, allow_infinity=False)


def again(problem: AllocationProblem, folder: Path) -> AllocationProblem:
    write_decision(problem, folder / "decision.json", {"any": ["thing", None, 1.5]})
    assert [file.name for file in folder.iterdir()] == ["decision.json"]
    return read_decision(folder / "decision.json")


def assert_same(first: AllocationProblem, second: AllocationProblem) -> None:
    assert [*first.arrays()] == [*second.arrays()]
    for name, array in first.arrays().items():
        other = second.arrays()[name]
        assert array.dtype == other.dtype
        if array.ndim == 1:
            assert array.tobytes() == other.tobytes()
            continue
        for a, b, most in zip(array, other, first.max_nodes.tolist(), strict=True):
            assert a[: most + 1].tobytes() == b[: most + 1].tobytes()
    assert (first.capacity, first.change_limit) == (second.capacity, second.change_limit)


@_IN_A_FOLDER
@given(problem=problems() | by_count_problems())
@example(problem=left_on_seven())
def test_a_decision_comes_back(tmp_path, problem):
    assert_same(problem, again(problem, tmp_path))


def test_a_file_has_the_losses_of_its_decision_and_null_for_counts_that_they_forbid(tmp_path):
    constant = ["current", "min_nodes", "max_nodes", "scale_up_loss", "scale_down_loss", "gain"]
    write_decision(problem_of_two(), tmp_path / "constant.json")
    first = ["schema", "about", "capacity", "change_limit"]
    assert [*json.loads((tmp_path / "constant.json").read_text())] == [*first, *constant]
    write_decision(left_on_seven(), tmp_path / "by-count.json")
    document = json.loads((tmp_path / "by-count.json").read_text())
    assert [*document] == [*first, "current", "min_nodes", "max_nodes", "gain", "loss"]
    assert document["loss"] == [[5.0, 6.0, 6.0, None, 6.0, None, None, 1.0, 50.0], [0.0, 2.0, 2.0, 2.0, 9.0, 9.0]]


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        ([[5.0], [0.0] * 6], "loss of job 0 has the wrong length"),
        ([[None, *[0.0] * 8], [0.0] * 6], "loss of job 0 at 0 nodes is out of range"),
        ([[0.0, -1.0, *[0.0] * 7], [0.0] * 6], "loss of job 0 at 1 nodes is out of range"),
        ([[0.0, float("nan"), *[0.0] * 7], [0.0] * 6], "loss of job 0 at 1 nodes is out of range"),
        ([[0.0] * 9], "loss has the wrong shape"),
        (["000000000", [0.0] * 6], "loss is no list of lists of numbers"),
        (None, "cannot be read"),
    ],
)
def test_losses_by_count_that_cannot_be_are_refused(tmp_path, loss, says):
    write_decision(left_on_seven(), tmp_path / "decision.json")
    document = json.loads((tmp_path / "decision.json").read_text()) | {"loss": loss}
    (tmp_path / "decision.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=says):
        read_decision(tmp_path / "decision.json")


@_IN_A_FOLDER
@given(
    gain=stn.arrays(np.float64, (2, 5), elements=_REAL),
    losses=stn.arrays(np.float64, 4, elements=st.floats(0, allow_infinity=False)),
)
def test_every_float_comes_back_bit_for_bit(tmp_path, gain, losses):
    problem = problem_of_two(gain=gain, scale_up_loss=losses[:2], scale_down_loss=losses[2:])
    assert_same(problem, again(problem, tmp_path))


def test_columns_that_are_never_read_are_left_out(tmp_path):
    problem = problem_of_two(max_nodes=np.array([4, 2]))
    write_decision(problem, tmp_path / "decision.json")
    document = json.loads((tmp_path / "decision.json").read_text())
    assert document["gain"] == [[0.0, 2.0, 4.0, 8.0, 8.5], [0.0, 1.0, 5.0]]
    assert document["schema"] == SCHEMA
    assert_same(problem, read_decision(tmp_path / "decision.json"))


def test_whatever_is_told_about_it_is_kept(tmp_path):
    about = {"jobs": ['größe "1"', "b\nc"], "counts": [1, 2], "nothing": None, "config": {"policy": {"name": "x"}}}
    write_decision(problem_of_two(), tmp_path / "decision.json", about)
    assert json.loads((tmp_path / "decision.json").read_text(encoding="utf-8"))["about"] == about


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[1, 2]", "is no decision"),
        ("{}", "is no decision"),
        ('{"schema": "bfreplay decision, version 99"}', "version 99"),
        (json.dumps({"schema": SCHEMA}), "it has no 'gain'"),
    ],
)
def test_what_is_no_decision_is_refused(tmp_path, text, says):
    (tmp_path / "decision.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_decision(tmp_path / "decision.json")
    assert says in str(caught.value)
    assert "decision.json" in str(caught.value)


def test_a_file_that_is_not_text_or_not_there_is_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("binary", "nowhere"):
        with pytest.raises(InputError, match=name):
            read_decision(tmp_path / name)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("capacity", -1, "capacity"),
        ("capacity", 2.5, "capacity is 2.5"),
        ("capacity", None, "capacity is None"),
        ("capacity", 2, "more nodes than there are"),
        ("change_limit", -1, "change_limit"),
        ("current", [1.5, 2], "current is no list of whole numbers"),
        ("current", [1], "wrong shape"),
        ("current", ["a", 2], "cannot be read"),
        ("current", [10**30, 2], "cannot be read"),
        ("min_nodes", [0, 2], "min_nodes of job 0"),
        ("max_nodes", [4, 3], "gain of job 1 has the wrong length"),
        ("max_nodes", [4, 9], "gain of job 1 has the wrong length"),
        ("gain", [[0.0, 2.0, 4.0, 8.0, 8.5]], "gain has the wrong shape"),
        ("gain", [[0.0, 2.0, 4.0, 8.0, 8.5], [0, 1, 2, 3, float("nan")]], "not finite"),
        ("gain", [[0.0, 2.0, 4.0, 8.0, 8.5], [0, 1, 2, 3, "many"]], "cannot be read"),
        ("gain", [[0.0, 2.0, 4.0, 8.0, None], [0.0, 1.0, 5.0, 5.5, 5.75]], "not finite"),
        ("gain", 7, "cannot be read"),
        ("scale_up_loss", [0.0, -1.0], "scale_up_loss of job 1 is out of range"),
        ("scale_down_loss", [0.0], "wrong shape"),
    ],
)
def test_a_decision_that_cannot_be_is_refused_with_what_is_wrong(tmp_path, field, value, says):
    write_decision(problem_of_two(), tmp_path / "decision.json")
    document: dict[str, Any] = json.loads((tmp_path / "decision.json").read_text())
    document[field] = value
    (tmp_path / "decision.json").write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_decision(tmp_path / "decision.json")
    assert says in str(caught.value)
    assert "decision.json" in str(caught.value)
