"""State of objects as data, JSON and arrays, and back: what a checkpoint holds.

An object's state is its attributes, except those that its class and its bases name in ``not_saved``: what its
constructor makes anew, such as a solver. Restoring goes into an object that was made as the first one was: objects that
it holds are restored in place, others are made without their constructor. No code is named that would be run: classes
are taken only from bfreplay and from the packages of the objects that are restored into.

A class whose state is not its attributes has ``save_state()``, which returns data, and ``restore_state(data)``.
"""

from __future__ import annotations

import importlib
import json
import math
import random
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import BfreplayError, InputError

_MAGIC = b"bfreplay state 1\n"
_ALIGNMENT = 16
_HEAP_TYPE = 1 << 9  # of type.__flags__: a class that was made by a class statement
_PLAIN = (type(None), bool, int, str)
_SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque,
}  # fmt: skip
_MAPPINGS: dict[str, type] = {"dict": dict, "Counter": Counter, "OrderedDict": OrderedDict}
_FACTORIES: dict[str, type] = {each.__name__: each for each in (list, dict, set, int, float)}
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class UnsavedError(BfreplayError):
    """Something holds what is no data, so that its state cannot be saved."""


class State(NamedTuple):
    """State as JSON-ready data, with its arrays apart: ``{"is": "array", "at": k}`` stands for ``arrays[k]``."""

    tree: Any
    arrays: list[NDArray[Any]]


def save_state(thing: object) -> State:
    """Return the state of an object and of all that it holds.

    What occurs twice is saved once, and is one again when restored.

    Raises
    ------
    UnsavedError
        Something in it is no data; the message names the attribute.
    """
    saver = _Saver()
    return State(saver.thing(thing, type(thing).__name__), saver.arrays)


def restore_state(thing: object, state: State) -> None:
    """Give an object, made as the saved one was, the state.

    Raises
    ------
    InputError
        The state is that of another kind of object.
    """
    _Restorer(state.arrays).thing(state.tree, thing, frozenset({"bfreplay"}))


class _Saver:
    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._number: dict[int, int] = {}
        self._alive: list[object] = []  # so that no id is used twice

    def node(self, value: Any, path: str) -> Any:
        """Return a value as data."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"is": "float", "of": repr(value)}
        if isinstance(value, np.generic):
            return {"is": "scalar", "at": self._keep(np.asarray(value))}
        if isinstance(value, Enum):
            return {"is": "enum", "class": _name(kind), "of": value.value}
        if kind is bytes:
            return {"is": "bytes", "at": self._keep(np.frombuffer(value, np.uint8))}
        if kind is range:
            return {"is": "range", "of": [value.start, value.stop, value.step]}
        if kind in (tuple, frozenset):  # immutable: nobody can tell one from its equal
            return {"is": kind.__name__, "of": [self.node(each, f"{path}[{k}]") for k, each in enumerate(value)]}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = zip(value._fields, value, strict=True)
            return {
                "is": "fields", "class": _name(kind), "of": [self.node(each, f"{path}.{name}") for name, each in fields]
            }  # fmt: skip
        number = self._number.get(id(value))
        if number is not None:
            return {"no": number}
        return self._new(value, path, kind)

    def _new(self, value: Any, path: str, kind: type) -> Any:
        if kind is np.ndarray:
            if value.dtype.hasobject:
                raise UnsavedError(_refusal(path, value))
            frozen = {} if value.flags.writeable else {"frozen": True}
            return {"is": "array", "no": self._count(value), "at": self._keep(value), **frozen}
        if kind.__name__ in _SEQUENCES and kind is _SEQUENCES[kind.__name__]:
            no = self._count(value)
            items = [self.node(each, f"{path}[{k}]") for k, each in enumerate(value)]
            return {"is": kind.__name__, "no": no, "of": items} | ({"most": value.maxlen} if kind is deque else {})
        if kind is defaultdict or kind in _MAPPINGS.values():
            no = self._count(value)
            items = [[self.node(key, path), self.node(each, f"{path}[{key!r}]")] for key, each in value.items()]
            if kind is not defaultdict:
                return {"is": kind.__name__, "no": no, "of": items}
            factory = getattr(value.default_factory, "__name__", "")
            if _FACTORIES.get(factory) is not value.default_factory:
                raise UnsavedError(_refusal(path, value))
            return {"is": "defaultdict", "no": no, "of": items, "factory": factory}
        for name, known, get, _ in _GENERATORS:
            if kind is known:
                return {"is": name, "no": self._count(value), "of": self.node(get(value), path)}
        return self.thing(value, path)

    def thing(self, value: Any, path: str) -> Any:
        """Return an object as data: its attributes, or what its own ``save_state`` returns."""
        kind = type(value)
        no = self._count(value)
        if hasattr(kind, "save_state"):
            return {"is": "own", "no": no, "class": _name(kind), "of": self.node(value.save_state(), path)}
        if not _is_transparent(kind):
            raise UnsavedError(_refusal(path, value))
        of = {name: self.node(each, f"{path}.{name}") for name, each in _attributes(value).items()}
        return {"is": "object", "no": no, "class": _name(kind), "of": of}

    def _count(self, value: object) -> int:
        self._number[id(value)] = len(self._alive)
        self._alive.append(value)
        return len(self._alive) - 1

    def _keep(self, array: NDArray[Any]) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


class _Restorer:
    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = arrays
        self._made: dict[int, Any] = {}

    def value(self, node: Any, here: Any, packages: frozenset[str]) -> Any:
        """Return the value of a node; ``here`` is what stands at its place in the object that is restored into."""
        if not isinstance(node, dict):
            return node
        if "is" not in node:
            return self._made[node["no"]]
        kind: str = node["is"]
        of: Any = node.get("of")
        if kind == "float":
            return float(of)
        if kind == "scalar":
            return self._arrays[node["at"]].copy()[()]
        if kind == "bytes":
            return self._arrays[node["at"]].tobytes()
        if kind == "range":
            return range(*of)
        if kind == "enum":
            return _class_of(node["class"], packages)(of)
        if kind == "fields":
            return _class_of(node["class"], packages)(*(self.value(each, None, packages) for each in of))
        if kind == "array":
            array = self._arrays[node["at"]].copy(order="K")
            array.flags.writeable = "frozen" not in node
            return self._note(node, array)
        if kind in _SEQUENCES:
            return self._sequence(node, packages)
        if kind in _MAPPINGS or kind == "defaultdict":
            made = self._note(
                node, defaultdict(_FACTORIES[node["factory"]]) if "factory" in node else _MAPPINGS[kind]()
            )
            for key, each in of:
                made[self.value(key, None, packages)] = self.value(each, None, packages)
            return made
        for name, _, _, make in _GENERATORS:
            if kind == name:
                return self._note(node, make(self.value(of, None, packages)))
        return self.thing(node, here, packages)

    def _sequence(self, node: Any, packages: frozenset[str]) -> Any:
        items = (self.value(each, None, packages) for each in node["of"])
        if node["is"] in ("tuple", "frozenset"):
            return _SEQUENCES[node["is"]](items)
        made = self._note(node, deque(maxlen=node["most"]) if node["is"] == "deque" else _SEQUENCES[node["is"]](()))
        made.update(items) if node["is"] == "set" else made.extend(items)
        return made

    def thing(self, node: Any, here: Any, packages: frozenset[str]) -> Any:
        """Restore an object in place, or make it where there is none of its class."""
        if here is None or node["class"] != _name(type(here)):
            kind = _class_of(node["class"], packages)
            if getattr(kind, "not_saved", ()):
                raise InputError(
                    "the state holds an object that cannot be made from it alone", value=node["class"],
                    expected="one that the constructor makes as well", fix="replay from the start",
                )  # fmt: skip
            here = kind.__new__(kind)
        packages |= {_package(type(here))}
        self._note(node, here)
        if node["is"] == "own":
            here.restore_state(self.value(node["of"], None, packages))
            return here
        present = _attributes(here)
        for name in present.keys() - node["of"].keys():
            delattr(here, name)
        for name, each in node["of"].items():
            object.__setattr__(here, name, self.value(each, present.get(name), packages))  # also where it is frozen
        return here

    def _note(self, node: Any, made: Any) -> Any:
        self._made[node["no"]] = made
        return made


def _attributes(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object that are saved, by name."""
    kind = type(thing)
    names: list[str] = []
    for each in kind.__mro__:
        slots = vars(each).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    names += vars(thing) if hasattr(thing, "__dict__") else ()
    left_out = {"__dict__", "__weakref__"}.union(*(vars(each).get("not_saved", ()) for each in kind.__mro__))
    return {name: getattr(thing, name) for name in names if name not in left_out and hasattr(thing, name)}


def _is_transparent(kind: type) -> bool:
    """Return whether attributes are all that an object of the class holds: it is made in Python, of no other kind."""
    own = [each for each in kind.__mro__ if each is not object]
    words = 2 + sum(_n_slots(each) for each in own)  # attributes and references besides
    return bool(own) and all(each.__flags__ & _HEAP_TYPE for each in own) and kind.__basicsize__ <= 16 + 8 * words


def _n_slots(kind: type) -> int:
    slots = vars(kind).get("__slots__", ())
    return 1 if isinstance(slots, str) else len(slots)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _class_of(name: str, packages: frozenset[str]) -> Any:
    module, _, place = name.partition(":")
    if module.partition(".")[0] not in packages:
        raise InputError(
            "the state names a class of a package that nothing here belongs to", value=name,
            expected=f"classes of {', '.join(sorted(packages))}", fix="replay from the start",
        )  # fmt: skip
    found: Any = sys.modules.get(module)
    if found is None and module.startswith("bfreplay."):
        found = importlib.import_module(module)
    for part in place.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise InputError(
            "the state names a class that is not here", value=name, expected="a class of this version",
            fix="replay from the start",
        )  # fmt: skip
    return found


def _refusal(path: str, value: object) -> str:
    return (
        f"the state of {path.partition('.')[0]} cannot be saved: {path} is {type(value).__name__}, which is no data\n"
        "  expected: numbers, texts, arrays, containers of them, generators of random numbers, and objects of classes "
        "written in Python\n"
        "  fix:      if the constructor makes it anew, name it in the class: not_saved = ("
        f"{path.rpartition('.')[2]!r},); else write save_state() and restore_state()"
    )


def _generator_of(state: Mapping[str, Any]) -> np.random.Generator:
    name = state["bit_generator"]
    if name not in _BIT_GENERATORS:
        raise InputError("the state has an unknown generator", value=name, expected=", ".join(_BIT_GENERATORS))
    made: Any = getattr(np.random, name)()
    made.state = state
    return np.random.Generator(made)


def _legacy_generator_of(state: dict[str, Any]) -> np.random.RandomState:
    made = np.random.RandomState()
    made.set_state(state)
    return made


def _python_generator_of(state: Any) -> random.Random:
    made = random.Random()
    made.setstate(state)
    return made


_GENERATORS: tuple[tuple[str, type, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    ("Generator", np.random.Generator, lambda each: each.bit_generator.state, _generator_of),
    ("RandomState", np.random.RandomState, lambda each: each.get_state(legacy=False), _legacy_generator_of),
    ("Random", random.Random, random.Random.getstate, _python_generator_of),
)


def write_state(file: Path, state: State) -> None:
    """Write a state to a file: a line, the length of the JSON text, the text, then the arrays one after the other."""
    described, offset, parts = [], 0, []
    for array in state.arrays:
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        data = array.tobytes(order)
        padding = -len(data) % _ALIGNMENT
        described.append([np.lib.format.dtype_to_descr(array.dtype), list(array.shape), order, offset])
        parts += [data, bytes(padding)]
        offset += len(data) + padding
    text = json.dumps([state.tree, described], allow_nan=False).encode()
    with file.open("wb") as out:
        out.write(_MAGIC + len(text).to_bytes(8, "little") + text)
        out.writelines(parts)


def read_state(file: Path) -> State:
    """Read a state from a file.

    Raises
    ------
    InputError
        The file is no state, or is cut.
    """
    try:
        data = file.read_bytes()
        begin = len(_MAGIC) + 8
        if not data.startswith(_MAGIC):
            raise ValueError("it begins otherwise")
        after = begin + int.from_bytes(data[len(_MAGIC) : begin], "little")
        tree, described = json.loads(data[begin:after])
        arrays = []
        for descr, shape, order, offset in described:
            dtype = np.lib.format.descr_to_dtype(_as_descr(descr))
            if dtype.hasobject:
                raise ValueError("an array of objects")
            count = math.prod(shape)
            array = np.frombuffer(data, dtype, count, after + offset) if count else np.zeros(0, dtype)
            arrays.append(array.reshape(shape, order=order))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"this is no state of a replay: {error}", file=file, expected="a file that a checkpoint wrote, whole",
            fix="replay from the start",
        ) from error  # fmt: skip
    return State(tree, arrays)


def _as_descr(descr: Any) -> Any:
    """Return the description of a type as numpy has it: with tuples, where JSON has lists."""
    if isinstance(descr, list):
        return [tuple(_as_descr(each) if isinstance(each, list) else each for each in field) for field in descr]
    return descr
