"""The state of an object comes back as it was, or is refused by the name of the attribute."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import random
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bfreplay
from bfreplay import saved_state
from bfreplay.errors import InputError
from bfreplay.replay.active import ACTIVE_JOB
from bfreplay.saved_state import (
    State,
    UnsavedError,
    classes_inside,
    read_state,
    restorable,
    restore_state,
    save_state,
    write_state,
)
from bfreplay.scalability.laws import Amdahl, PowerLaw
from tests.examples import examples


class Holder:
    """An object with attributes of any kind."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


@restorable
class Colour(Enum):
    RED = 1


@restorable
class Point(NamedTuple):
    x: float
    y: tuple[int, ...]


@restorable
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


def saved(thing):
    return save_state(thing, classes_inside(thing))


def again(thing, into, tmp_path):
    write_state(tmp_path / "state", save_state(thing, classes_inside(into)))
    restore_state(into, read_state(tmp_path / "state"))
    return into


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text(), inner)
        | st.lists(inner).map(deque)
    ),
    max_leaves=10,
)


@given(plain)
@settings(max_examples=examples(100))
def test_plain_values_come_back_with_their_types(value):
    restored = Holder()
    restore_state(restored, saved(Holder(value=value)))
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
        counter=counter,
        by_default=by_default,
        ordered=OrderedDict([(2, 1), (1, 2)]),
        ring=deque([1, 2], maxlen=2),
        numbers=range(1, 9, 2),
        unequal=float("inf"),
        no_number=float("nan"),
        word=Colour.RED,
        point=Point(1.5, (1, 2)),
        frozen=Frozen((1, 2), [3]),
        row=np.zeros(1, ACTIVE_JOB)[0],
        few=frozenset({4}),
        exact=np.float64(0.1),
        upright=np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        fixed=np.arange(2),
    )
    thing.row["job"] = 7
    thing.fixed.flags.writeable = False
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
    assert (restored.upright.flags.writeable, restored.fixed.flags.writeable) == (True, False)


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


class WithSet(WithOwn):
    def save_state(self):
        return {self.count}

    def restore_state(self, state):
        (self.count,) = state


def test_states_of_several_objects_are_not_taken_for_one(tmp_path):
    """Each is a set that is gone, and its place free, when the next one is made."""
    thing, into = (Holder(**{f"own{k}": WithSet() for k in range(5)}) for _ in range(2))
    for k in range(5):
        getattr(thing, f"own{k}").count = k
    again(thing, into, tmp_path)
    assert [getattr(into, f"own{k}").count for k in range(5)] == list(range(5))


def test_attributes_that_were_not_there_go(tmp_path):
    assert not hasattr(again(Holder(), Holder(late=1), tmp_path), "late")


class Process(dict):
    """A container of its own kind: what else it does is not known."""


@pytest.mark.parametrize(
    "value",
    [
        lambda: 1,
        open,
        Holder,
        random,
        np.array([object()]),
        object(),
        Process(),
        defaultdict(lambda: 1),
        iter([]),
        partial(int),
    ],
    ids=["lambda", "function", "class", "module", "objects", "object", "subclass", "factory", "iterator", "partial"],
)
def test_what_is_no_data_is_refused_by_its_name(value):
    with pytest.raises(UnsavedError, match=r"Holder\.inner\.deep\[1\]") as refusal:
        saved(Holder(inner=Holder(deep=[0, value])))
    assert "not_saved" in str(refusal.value)


def test_an_object_that_no_constructor_made_and_no_class_declares_is_refused_when_it_is_saved():
    new = classes_inside(Holder(inner=None, other=Frozen(1)))
    for late in (Holder(inner=Holder()), Holder(inner=[Holder()]), Holder(inner=None, other=Holder())):
        with pytest.raises(UnsavedError, match=r"Holder\.(inner|other)(\[0\])? is Holder") as refusal:
            save_state(late, new)
        assert "@bfreplay.restorable" in str(refusal.value)
    assert save_state(Holder(inner=Frozen(2), other=Frozen(3)), new)


def test_a_constant_is_not_changed_for_all_who_hold_it(tmp_path):
    constant = Frozen(1)
    restored = again(Holder(value=Frozen(2)), Holder(value=constant), tmp_path)
    assert (restored.value.value, constant.value) == (2, 1)


def test_jobs_that_a_policy_keeps_come_back(tmp_path):
    jobs = list(bfreplay.load_jobs("sample"))
    curves = [law(*(0.5 for _ in fields(law))) for law in (Amdahl, PowerLaw)]
    restored = again(Holder(jobs=jobs, curves=curves), Holder(), tmp_path)
    assert restored.jobs == jobs
    assert restored.curves == curves


def test_two_classes_of_one_name_are_not_taken_for_each_other():
    def make():
        @dataclass
        class Twin:
            x: int = 0

        return Twin

    first, second = restorable(make()), make()
    assert saved(Holder(inner=[first()]))
    with pytest.raises(UnsavedError, match="Twin"):
        saved(Holder(inner=[second()]))


def test_a_class_that_needs_its_constructor_cannot_be_declared():
    with pytest.raises(TypeError, match="needs its constructor for solver"):
        restorable(WithSolver)


class Trap:
    """Must not be made, by any name."""

    def __new__(cls, *arguments):
        raise AssertionError("a state has run code")

    __init__ = save_state = restore_state = run = classmethod(__new__)


HOSTILE = [
    f"{__name__}:Trap", f"{__name__}:Trap.run", f"{__name__}:subprocess.Popen", "subprocess:Popen", "builtins:eval",
    "bfreplay.milp.isolation:subprocess.Popen", "bfreplay.saved_state:importlib", "bfreplay.runs:ReplaySession",
    "bfreplay.replay.checkpoint:ChunkSink", f"{__name__}:Frozen.__class__", f"{__name__}:Frozen.__init__",
    f"{__name__}:Holder", "", ":", "Frozen", None, 1, ["subprocess:Popen"], {"is": "range", "of": [3]},
]  # fmt: skip
"""Names of classes, none of which is declared."""
PLACES = {
    "an attribute": lambda node: node,
    "a list": lambda node: {"is": "list", "no": 90, "of": [node]},
    "a tuple": lambda node: {"is": "tuple", "of": [1, node]},
    "a key": lambda node: {"is": "dict", "no": 90, "of": [[node, 1]]},
    "a value": lambda node: {"is": "OrderedDict", "no": 90, "of": [[1, node]]},
    "a set": lambda node: {"is": "set", "no": 90, "of": [node]},
    "a declared object": lambda node: {"is": "object", "no": 90, "class": f"{__name__}:Frozen", "of": {"value": node}},
    "fields": lambda node: {"is": "fields", "class": f"{__name__}:Point", "of": [1.0, node]},
    "a generator": lambda node: {"is": "Random", "no": 90, "of": node},
    "a class's name": lambda node: {"is": "object", "no": 90, "class": node, "of": {}},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["object", "own", "fields", "enum", "no such kind"])
def test_nothing_is_made_of_a_class_that_is_not_declared(kind, place):
    of = {"object": {}, "fields": ["touch"], "own": ["touch"]}.get(kind, "touch")
    for name in HOSTILE:
        state = saved(Holder(inner=1))
        state.tree["of"]["inner"] = PLACES[place]({"is": kind, "no": 91, "class": name, "of": of})
        with pytest.raises(InputError, match=r"may make no objects|does not fit"):
            restore_state(Holder(), state)


@pytest.mark.parametrize(
    "node",
    [
        {"is": "fields", "class": f"{__name__}:Frozen", "of": [1]},
        {"is": "enum", "class": f"{__name__}:Frozen", "of": 1},
        {"is": "object", "no": 9, "class": f"{__name__}:Colour", "of": {}},
        {"is": "enum", "class": f"{__name__}:Colour", "of": 2},
        {"is": "fields", "class": f"{__name__}:Point", "of": []},
        {"is": "object", "no": 9, "class": f"{__name__}:Frozen", "of": {"__class__": 1}},
        {"is": "object", "no": 9, "class": f"{__name__}:Frozen", "of": {"__dict__": {}}},
        {"is": "object", "no": 9, "class": f"{__name__}:WithSolver", "of": {"solver": "mine"}},
        {
            "is": "object",
            "no": 9,
            "class": f"{__name__}:WithSolver",
            "of": {"__dict__": {"is": "dict", "no": 10, "of": [["solver", "mine"]]}},
        },
        {"is": "object", "no": 9, "class": f"{__name__}:WithOwn", "of": {"handle": "mine"}},
        {"is": "own", "no": 9, "class": f"{__name__}:Frozen", "of": {}},
        {"is": "defaultdict", "no": 9, "of": [], "factory": "exec"},
        {"is": "array", "no": 9, "at": 7},
        {"no": 77},
        {"is": "scalar", "at": -9},
        {"is": "range", "of": [1, 2, 0]},
        {"is": "deque", "no": 9, "of": [], "most": "x"},
        {"is": "float", "of": "touch"},
        {"is": "Generator", "no": 9, "of": {"bit_generator": "__class__"}},
        {"is": "RandomState", "no": 9, "of": 3},
        {"is": "dict", "no": 9, "of": [1]},
        {"is": ["list"], "of": []},
    ],
    ids=str,
)
def test_a_node_that_is_not_what_it_says_is_refused(node):
    thing = Holder(inner=1, solver=WithSolver(), own=WithOwn())
    for place in ("inner", "solver", "own"):
        state = saved(thing)
        state.tree["of"][place] = node
        with pytest.raises(InputError, match=r"may make no objects|does not fit|unknown generator"):
            restore_state(Holder(solver=WithSolver(), own=WithOwn()), state)


def test_only_these_classes_are_made_by_a_state():
    names = {
        "bfreplay.milp.solution": "SolverStatus",
        "bfreplay.policies.policy": "Trigger",
        "bfreplay.policies.deadlines.plan": "Plan Steps",
        "bfreplay.policies.learning.belief": "Assumed Belief Shape Share",
        "bfreplay.policies.learning.holds": "_Hold",
        "bfreplay.replay.decision_log": "PoolChanges",
        "bfreplay.runs.live_reports": "_Report",
        "bfreplay.scalability.law": "MeasuredLaw",
        "bfreplay.scalability.stepped": "SteppedCurve",
        "bfreplay.scalability.tabulated": "TabulatedCurve",
        "bfreplay.scalability.laws": "Amdahl Gustafson PowerLaw UniversalScalability "
        "CommunicationStrong CommunicationWeak",
        "bfreplay.workload.change_costs": "CostByCount",
        "bfreplay.workload.elastic_job": "Adaptation ElasticJob",
        "bfreplay.systems.gavel.pair_estimates": "BelievedPairs PairEstimator RelativeRates",
        "bfreplay.systems.gavel.quirks": "Quirks",
        "bfreplay.systems.gavel.rounds_in_replay": "PairRates",
        "bfreplay.systems.gavel.rounds.state": "Assignment Entries Jobs RoundRules RoundState",
        "bfreplay.systems.gavel.shares.finish_time_fairness": "_Before",
        "bfreplay.systems.products.ray": "ElasticRun",
        "bfreplay.systems.shockwave.planner.options": "PlannerQuirks",
        "bfreplay.systems.shockwave.planner.planned_rounds": "JobPrediction",
        "bfreplay.systems.shockwave.planner.solve": "CallReport Plan",
        "bfreplay.systems.shockwave.profile": "Profile",
        "bfreplay.systems.shockwave.published_jobs": "PublishedJob",
    }
    for module in pkgutil.walk_packages(bfreplay.__path__, "bfreplay."):
        if module.name != "bfreplay.__main__":
            importlib.import_module(module.name)
    declared = {name for name in saved_state._RESTORABLE if name.startswith("bfreplay.")}
    assert declared == {f"{module}:{name}" for module, named in names.items() for name in named.split()}


@pytest.mark.parametrize("cut", [0, 10, 30, 60, -1])
def test_a_file_that_is_cut_or_of_another_kind_is_refused(cut, tmp_path):
    file = tmp_path / "state"
    write_state(file, saved(Holder(array=np.arange(100.0))))
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(InputError, match="no state of a replay"):
        read_state(file)


def test_any_flipped_bit_is_refused(tmp_path):
    file = tmp_path / "state"
    write_state(file, saved(Holder(array=np.arange(3.0), text="x")))
    content = file.read_bytes()
    for k in range(len(content)):
        file.write_bytes(content[:k] + bytes([content[k] ^ 1 << k % 8]) + content[k + 1 :])
        with pytest.raises(InputError, match="no state of a replay"):
            read_state(file)


def test_a_state_that_cannot_be_written_leaves_the_last_one(tmp_path, monkeypatch):
    file = tmp_path / "state"
    write_state(file, saved(Holder(text="first")))
    monkeypatch.setattr(Path, "replace", lambda *_: exec("raise OSError(28, 'No space left on device')"))
    with pytest.raises(OSError, match="No space"):
        write_state(file, saved(Holder(text="second")))
    assert [each.name for each in tmp_path.iterdir()] == ["state"]
    assert read_state(file).tree["of"] == {"text": "first"}


def test_a_nested_text_is_refused(tmp_path):
    file = tmp_path / "state"
    state = saved(Holder(value=1))
    deep = state.tree["of"]
    for _ in range(300):
        deep["value"] = {"is": "list", "no": 1, "of": [{}]}
        deep = deep["value"]["of"][0]
    with pytest.raises(InputError, match="does not fit"):
        restore_state(Holder(), state)
    write_state(file, saved(Holder(value=1)))
    text = b"[" * 100_000
    content = file.read_bytes()[:17] + len(text).to_bytes(8, "little") + text
    file.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.raises(InputError, match="no state of a replay"):
        read_state(file)


def test_equal_objects_have_equal_bytes(tmp_path):
    for name in ("one", "other"):
        write_state(tmp_path / name, saved(Holder(a=np.arange(3), b={"x": [1, 2.5]})))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_state_is_json_and_arrays():
    state = saved(Holder(a=np.arange(3), b="text"))
    assert isinstance(state, State)
    assert [array.tolist() for array in state.arrays] == [[0, 1, 2]]
