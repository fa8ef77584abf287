"""The state of an object comes back as it was, or is refused by the name of the attribute."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bfreplay.errors import InputError
from bfreplay.replay.active import ACTIVE_JOB
from bfreplay.saved_state import State, UnsavedError, read_state, restore_state, save_state, write_state
from tests.examples import examples


class Holder:
    """An object with attributes of any kind."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Colour(Enum):
    RED = 1


class Point(NamedTuple):
    x: float
    y: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Frozen:
    value: object
    others: list = field(default_factory=list)


class WithSolver:
    not_saved = ("solver",)

    def __init__(self):
        self.solver = lambda: None
        self.known = {}


class WithOwn:
    def __init__(self):
        self.handle = lambda: 7
        self.count = 0

    def save_state(self):
        return {"count": self.count}

    def restore_state(self, state):
        self.count = state["count"]


def again(thing, into, tmp_path):
    write_state(tmp_path / "state", save_state(thing))
    restore_state(into, read_state(tmp_path / "state"))
    return into


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers() | st.text(), inner)
        | st.lists(inner).map(deque)
    ),
    max_leaves=10,
)  # fmt: skip


@given(plain)
@settings(max_examples=examples(100))
def test_plain_values_come_back_with_their_types(value):
    restored = Holder()
    restore_state(restored, save_state(Holder(value=value)))
    assert restored.value == value
    assert repr(restored.value) == repr(value)


@given(hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, min_side=0)))
@settings(max_examples=examples(100))
def test_arrays_come_back_byte_for_byte(tmp_path_factory, value):
    restored = again(Holder(value=value), Holder(), tmp_path_factory.mktemp("state"))
    assert restored.value.dtype == value.dtype
    assert restored.value.shape == value.shape
    assert restored.value.tobytes() == value.tobytes()


def test_containers_and_objects_come_back_as_they_were(tmp_path):
    counter, by_default = Counter(a=3, b=1), defaultdict(list, {1: [2]})
    thing = Holder(
        counter=counter, by_default=by_default, ordered=OrderedDict([(2, 1), (1, 2)]), ring=deque([1, 2], maxlen=2),
        numbers=range(1, 9, 2), unequal=float("inf"), no_number=float("nan"), word=Colour.RED, point=Point(1.5, (1, 2)),
        frozen=Frozen((1, 2), [3]), row=np.zeros(1, ACTIVE_JOB)[0], few=frozenset({4}), exact=np.float64(0.1),
        upright=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    )  # fmt: skip
    thing.row["job"] = 7
    restored = again(thing, Holder(frozen=Frozen(None)), tmp_path)
    assert restored.counter == counter
    assert type(restored.counter) is Counter
    assert restored.by_default[5] == []
    assert list(restored.ordered) == [2, 1]
    restored.ring.append(3)
    assert list(restored.ring) == [2, 3]
    assert (restored.numbers, restored.unequal, restored.word) == (range(1, 9, 2), float("inf"), Colour.RED)
    assert restored.no_number != restored.no_number
    assert (restored.point, restored.frozen, restored.few) == (Point(1.5, (1, 2)), Frozen((1, 2), [3]), frozenset({4}))
    assert restored.row["job"] == 7
    assert type(restored.exact) is np.float64
    assert restored.upright.flags.f_contiguous


def test_what_occurs_twice_is_one_thing_again(tmp_path):
    shared = [1]
    thing = Holder(one=shared, other={"same": shared}, array=np.zeros(2))
    thing.same_array, thing.me = thing.array, thing
    restored = again(thing, Holder(), tmp_path)
    restored.one.append(2)
    restored.array[0] = 5.0
    assert restored.other["same"] == [1, 2]
    assert restored.same_array[0] == 5.0
    assert restored.me is restored


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: np.random.default_rng(3), lambda generator: generator.standard_normal()),
        (lambda: np.random.Generator(np.random.MT19937(3)), lambda generator: generator.standard_normal()),
        (lambda: np.random.RandomState(3), lambda generator: generator.randn()),
        (lambda: random.Random(3), lambda generator: generator.gauss(0, 1)),
    ],
)
def test_generators_go_on_with_the_same_numbers(make, draw, tmp_path):
    thing = Holder(generator=make())
    draw(thing.generator)
    restored = again(thing, Holder(), tmp_path)
    assert [draw(restored.generator) for _ in range(5)] == [draw(thing.generator) for _ in range(5)]


def test_what_the_constructor_makes_is_left_alone(tmp_path):
    thing, into = WithSolver(), WithSolver()
    thing.known[1] = 2
    solver = into.solver
    again(thing, into, tmp_path)
    assert (into.known, into.solver) == ({1: 2}, solver)


def test_an_object_with_a_state_of_its_own_is_asked_for_it(tmp_path):
    thing = Holder(own=WithOwn())
    thing.own.count = 5
    into = Holder(own=WithOwn())
    handle = into.own.handle
    again(thing, into, tmp_path)
    assert (into.own.count, into.own.handle) == (5, handle)


def test_attributes_that_were_not_there_go(tmp_path):
    assert not hasattr(again(Holder(), Holder(late=1), tmp_path), "late")


class Process(dict):
    """A container of its own kind: what else it does is not known."""


@pytest.mark.parametrize(
    "value",
    [lambda: 1, open, Holder, random, np.array([object()]), object(), Process(), defaultdict(lambda: 1), iter([])],
    ids=["lambda", "function", "class", "module", "objects", "object", "subclass", "factory", "iterator"],
)
def test_what_is_no_data_is_refused_by_its_name(value):
    with pytest.raises(UnsavedError, match=r"Holder\.inner\.deep\[1\]") as refusal:
        save_state(Holder(inner=Holder(deep=[0, value])))
    assert "not_saved" in str(refusal.value)


def test_no_class_of_another_package_is_made():
    state = save_state(Holder(inner=Holder()))
    state.tree["of"]["inner"]["class"] = "subprocess:Popen"
    with pytest.raises(InputError, match="nothing here belongs to"):
        restore_state(Holder(), state)


def test_no_module_is_imported_that_was_not(tmp_path):
    state = save_state(Holder(inner=Holder()))
    state.tree["of"]["inner"]["class"] = f"{__name__}.no_such_module:Thing"
    with pytest.raises(InputError, match="is not here"):
        restore_state(Holder(), state)


def test_an_object_that_needs_its_constructor_is_not_made_without():
    with pytest.raises(InputError, match="cannot be made from it alone"):
        restore_state(Holder(), save_state(Holder(inner=WithSolver())))


@pytest.mark.parametrize("cut", [0, 10, 30, 60, -1])
def test_a_file_that_is_cut_or_of_another_kind_is_refused(cut, tmp_path):
    file = tmp_path / "state"
    write_state(file, save_state(Holder(array=np.arange(100.0))))
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(InputError, match="no state of a replay"):
        read_state(file)


def test_equal_objects_have_equal_bytes(tmp_path):
    for name in ("one", "other"):
        write_state(tmp_path / name, save_state(Holder(a=np.arange(3), b={"x": [1, 2.5]})))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_state_is_json_and_arrays():
    state = save_state(Holder(a=np.arange(3), b="text"))
    assert isinstance(state, State)
    assert [array.tolist() for array in state.arrays] == [[0, 1, 2]]
