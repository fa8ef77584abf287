"""State of objects as data, JSON and arrays, and back: what a checkpoint holds.

An object's state is its attributes, except those that its class and its bases name in ``not_saved``: what its
constructor makes anew, such as a solver. Restoring goes into an object that was made as the first one was: the objects
that its constructor made are filled in place. A state makes others only of classes that declare themselves
``restorable``, found by their whole name in one table: nothing that a file names is looked up anywhere else.

A class whose state is not its attributes has ``save_state()``, which returns data, and ``restore_state(data)``.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from enum import Enum
from functools import partial
from io import BytesIO
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bfreplay.errors import BfreplayError, InputError
from bfreplay.outputs import written_whole
from bfreplay.registry import one_line

_MAGIC = b"bfreplay state 3\n"
_CHECKSUM_SIZE = 32
_HEAP_TYPE = 1 << 9  # of type.__flags__: a class that was made by a class statement
_PLAIN = (type(None), bool, int, str)
_IMMUTABLE: dict[str, type] = {"tuple": tuple, "frozenset": frozenset}  # nobody can tell one from its equal
_SEQUENCES: dict[str, type] = {"list": list, "set": set, "deque": deque}
_MAPPINGS: dict[str, type] = {kind.__name__: kind for kind in (dict, Counter, OrderedDict, defaultdict)}
_FACTORIES: dict[str, type] = {kind.__name__: kind for kind in (list, dict, set, int, float)}
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_Kind = TypeVar("_Kind", bound=type)
_RESTORABLE: dict[str, type] = {}
_NO_FIT = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


def restorable(kind: _Kind) -> _Kind:
    """Declare a class of which a state may make objects, without its constructor: a class decorator.

    Needed for what is made while a replay runs; what a constructor makes is filled in place.

    Raises
    ------
    TypeError
        The class has attributes that are not saved: they need the constructor.
    """
    if _not_saved(kind):
        raise TypeError(f"{kind.__qualname__} needs its constructor for {', '.join(sorted(_not_saved(kind)))}")
    _RESTORABLE[_name(kind)] = kind
    return kind


class UnsavedError(BfreplayError):
    """Something holds what is no data, so that its state cannot be saved."""


class State(NamedTuple):
    """State as JSON-ready data, with its arrays apart: ``{"is": "array", "at": k}`` stands for ``arrays[k]``."""

    tree: Any
    arrays: list[NDArray[Any]]


def classes_inside(thing: object) -> dict[str, str]:
    """Return the class of every object that a new one holds, by the attributes that lead to it, for ``save_state``."""
    classes: dict[str, str] = {}
    visited: set[int] = set()
    waiting = [(type(thing).__name__, thing)]
    while waiting:
        path, holder = waiting.pop()
        classes[path] = _name(type(holder))
        if id(holder) not in visited and _is_transparent(type(holder)):
            visited.add(id(holder))
            waiting += [(f"{path}.{name}", inner) for name, inner in reversed(_attributes(holder).items())]
    return classes


def save_state(thing: object, in_place: Mapping[str, str]) -> State:
    """Return the state of an object and of all that it holds.

    What occurs twice is saved once, and is one again when restored.

    Parameters
    ----------
    in_place
        What ``classes_inside`` returned of ``thing`` when it was new, or returns of another new one: where objects of
        classes that are not ``restorable`` can be restored.

    Raises
    ------
    UnsavedError
        Something in it is no data; the message names the attribute.
    """
    saver = _Saver(in_place)
    return State(saver.node(thing, type(thing).__name__), saver.arrays)


def restore_state(thing: object, state: State) -> None:
    """Give an object, made as the saved one was, the state.

    Raises
    ------
    InputError
        The state is that of another kind of object, or names what no state may make. ``thing`` is of no use any more.
    """
    try:
        _Restorer(state.arrays).value(state.tree, thing)
    except _NO_FIT as error:
        raise InputError(
            f"the state does not fit: {one_line(error)}",
            expected="one that this version saved of equal things",
            fix="replay from the start",
        ) from error


class _Saver:
    def __init__(self, in_place: Mapping[str, str]) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._in_place = in_place
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
            return {"is": "enum", "class": _restorable_name(kind, path), "of": value.value}
        if kind is bytes:
            return {"is": "bytes", "at": self._keep(np.frombuffer(value, np.uint8))}
        if kind is range:
            return {"is": "range", "of": [value.start, value.stop, value.step]}
        if kind in _IMMUTABLE.values():
            return {"is": kind.__name__, "of": self._items(value, path)}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            nodes = [self.node(item, f"{path}.{name}") for name, item in zip(value._fields, value, strict=True)]
            return {"is": "fields", "class": _restorable_name(kind, path), "of": nodes}
        if id(value) in self._number:
            return {"no": self._number[id(value)]}
        number = self._number[id(value)] = len(self._alive)
        self._alive.append(value)
        return {"no": number, **self._new(value, path, kind)}

    def _new(self, value: Any, path: str, kind: type) -> dict[str, Any]:
        """Return what may occur a second time, as data without its number."""
        if kind is np.ndarray and not value.dtype.hasobject:
            return {"is": "array", "at": self._keep(value), **({} if value.flags.writeable else {"frozen": True})}
        if kind in _SEQUENCES.values():
            most = {"most": value.maxlen} if kind is deque else {}
            return {"is": kind.__name__, "of": self._items(value, path), **most}
        if kind in _MAPPINGS.values():
            items = [[self.node(key, f"{path}[]"), self.node(item, f"{path}[{key!r}]")] for key, item in value.items()]
            if kind is not defaultdict:
                return {"is": kind.__name__, "of": items}
            factory = getattr(value.default_factory, "__name__", "")
            if _FACTORIES.get(factory) is not value.default_factory:
                raise _unsaved(path, value)
            return {"is": "defaultdict", "of": items, "factory": factory}
        for name, (generator_type, state_of, _) in _GENERATORS.items():
            if kind is generator_type:
                return {"is": name, "of": self.node(state_of(value), path)}
        has_own = hasattr(kind, "save_state")
        if not (has_own or _is_transparent(kind)):
            raise _unsaved(path, value)
        name = _name(kind)
        if self._in_place.get(path) != name:
            name = _restorable_name(kind, path)
        if has_own:
            return {"is": "own", "class": name, "of": self.node(value.save_state(), f"{path}.save_state()")}
        nodes = {label: self.node(part, f"{path}.{label}") for label, part in _attributes(value).items()}
        return {"is": "object", "class": name, "of": nodes}

    def _items(self, values: Iterable[Any], attribute_path: str) -> list[Any]:
        return [self.node(element, f"{attribute_path}[{position}]") for position, element in enumerate(values)]

    def _keep(self, array: NDArray[Any]) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


class _Restorer:
    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = arrays
        self._made: dict[int, Any] = {}

    def value(self, node: Any, present: Any) -> Any:
        """Return the value of a node; ``present`` is what stands at its place in the object that is restored into."""
        if not isinstance(node, dict):
            return node
        if "is" not in node:
            return self._made[node["no"]]
        kind: str = node["is"]
        content: Any = node.get("of")
        if kind == "float":
            return float(content)
        if kind == "scalar":
            return self._arrays[node["at"]].copy()[()]
        if kind == "bytes":
            return self._arrays[node["at"]].tobytes()
        if kind == "range":
            return range(*content)
        if kind == "enum":
            return _restorable(node["class"], Enum)(content)
        if kind == "fields":
            return _restorable(node["class"], tuple)(*(self.value(item, None) for item in content))
        if kind in _IMMUTABLE:
            return _IMMUTABLE[kind](self.value(item, None) for item in content)
        if kind == "array":
            array = self._note(node, self._arrays[node["at"]].copy(order="K"))
            array.flags.writeable = "frozen" not in node
            return array
        if kind in _SEQUENCES:
            sequence = self._note(node, deque(maxlen=node["most"]) if kind == "deque" else _SEQUENCES[kind]())
            add = sequence.add if kind == "set" else sequence.append
            for item in content:
                add(self.value(item, None))
            return sequence
        if kind in _MAPPINGS:
            mapping = self._note(
                node, defaultdict(_FACTORIES[node["factory"]]) if "factory" in node else _MAPPINGS[kind]()
            )
            for key, item in content:
                mapping[self.value(key, None)] = self.value(item, None)
            return mapping
        if kind in _GENERATORS:
            return self._note(node, _GENERATORS[kind][2](self.value(content, None)))
        return self._thing(node, present)

    def _thing(self, node: Any, target: Any) -> Any:
        """Restore an object in place, or make it where there is none of its class."""
        if target is None or node["class"] != _name(type(target)):
            kind = _restorable(node["class"], object)
            target = kind.__new__(kind)
        elif getattr(getattr(target, "__dataclass_params__", None), "frozen", False):  # a constant may be others' too
            target = copy(target)
        self._note(node, target)
        if (node["is"] == "own") != hasattr(target, "save_state"):
            raise ValueError(f"{node['class']} is saved in another way")
        if node["is"] == "own":
            target.restore_state(self.value(node["of"], None))
            return target
        attributes, not_saved = _attributes(target), _not_saved(type(target))
        for name in attributes.keys() - node["of"].keys():
            delattr(target, name)
        for name, member in node["of"].items():
            if name.startswith("__") or name in not_saved:
                raise ValueError(f"{name} is no attribute that is saved")
            object.__setattr__(target, name, self.value(member, attributes.get(name)))  # also where it is frozen
        return target

    def _note(self, node: Any, restored: Any) -> Any:
        self._made[node["no"]] = restored
        return restored


def _attributes(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object that are saved, by name."""
    kind = type(thing)
    names = [*(name for base in kind.__mro__ for name in _slots(base)), *getattr(thing, "__dict__", ())]
    excluded_names = {"__dict__", "__weakref__"} | _not_saved(kind)
    return {name: getattr(thing, name) for name in names if name not in excluded_names and hasattr(thing, name)}


def _not_saved(class_type: type) -> set[str]:
    return {attribute for base_class in class_type.__mro__ for attribute in vars(base_class).get("not_saved", ())}


def _is_transparent(kind: type) -> bool:
    """Return whether attributes are all that an object of the class holds: it is made in Python, of no other kind."""
    bases = [base for base in kind.__mro__ if base is not object]
    words = 2 + sum(len(_slots(base)) for base in bases)  # attributes and references besides
    return bool(bases) and all(base.__flags__ & _HEAP_TYPE for base in bases) and kind.__basicsize__ <= 16 + 8 * words


def _slots(class_type: type) -> Sequence[str]:
    slots: str | Sequence[str] = vars(class_type).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _name(class_type: type) -> str:
    return f"{class_type.__module__}:{class_type.__qualname__}"


def _restorable_name(kind: type, path: str) -> str:
    """Return the name of a class of which the state makes an object."""
    name = _name(kind)
    if _RESTORABLE.get(name) is not kind:
        raise UnsavedError(
            f"the state of {path.partition('.')[0]} cannot be saved: {path} is {kind.__name__}, of which a state may "
            "make no objects\n  expected: what the constructor has made, or objects of declared classes\n"
            "  fix:      declare the class where it is defined: @bfreplay.restorable"
        )
    return name


def _restorable(name: Any, base_kind: type) -> Any:
    """Return a class that a state may make objects of: an enumeration, a named tuple, or any other."""
    kind = _RESTORABLE.get(name)
    base = Enum if kind and issubclass(kind, Enum) else tuple if kind and issubclass(kind, tuple) else object
    if kind is None or base is not base_kind:
        raise InputError(
            "the state names a class of which it may make no objects",
            value=name,
            expected="a class that is declared with @bfreplay.restorable",
            fix="replay from the start",
        )
    return kind


def _unsaved(path: str, value: object) -> UnsavedError:
    return UnsavedError(
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
    generator: Any = getattr(np.random, name)()
    generator.state = state
    return np.random.Generator(generator)


def _generator_in_state(generator_type: Callable[[], Any], set_state: Callable[[Any, Any], None], state: Any) -> Any:
    generator = generator_type()
    set_state(generator, state)
    return generator


_LEGACY, _PYTHONS = np.random.RandomState, random.Random
_GENERATORS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "Generator": (np.random.Generator, lambda generator: generator.bit_generator.state, _generator_of),
    "RandomState": (
        _LEGACY,
        methodcaller("get_state", legacy=False),
        partial(_generator_in_state, _LEGACY, _LEGACY.set_state),
    ),
    "Random": (_PYTHONS, _PYTHONS.getstate, partial(_generator_in_state, _PYTHONS, _PYTHONS.setstate)),
}
"""Type, function that returns the state, and function that makes a generator of it, by name."""


def write_state(file: Path, state: State) -> None:
    """Write a state to a file, in place of an earlier one, whole or not at all.

    It has a line, the length of the JSON text, the text, the arrays as numpy writes them, and the SHA-256 of all this.
    """
    json_text = json.dumps([state.tree, len(state.arrays)], allow_nan=False).encode()
    stream = BytesIO()
    stream.write(_MAGIC + len(json_text).to_bytes(8, "little") + json_text)
    for array in state.arrays:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    with written_whole([file], overwrite=True) as (temporary_file,):
        temporary_file.write_bytes(stream.getvalue() + hashlib.sha256(stream.getbuffer()).digest())


def read_state(file: Path) -> State:
    """Read a state from a file.

    Raises
    ------
    InputError
        The file is no state, or is damaged.
    """
    try:
        content = file.read_bytes()
        state_bytes, checksum = content[:-_CHECKSUM_SIZE], content[-_CHECKSUM_SIZE:]
        stream = BytesIO(state_bytes)
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it begins otherwise")
        if hashlib.sha256(state_bytes).digest() != checksum:
            raise ValueError("its checksum does not agree, so that it was cut or changed")
        tree, n_arrays = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        arrays = [np.lib.format.read_array(stream, allow_pickle=False) for _ in range(n_arrays)]
    except (OSError, MemoryError, *_NO_FIT) as error:
        raise InputError(
            f"this is no state of a replay: {one_line(error)}",
            file=file,
            expected="a file that this version wrote, whole",
            fix="replay from the start",
        ) from error
    return State(tree, arrays)
