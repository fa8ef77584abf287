"""Decorators for hot loops: compiled by numba where it is installed, otherwise plain Python.

The source is the same, and numba neither reorders nor fuses floating-point operations, so both give the same bits.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import local
from time import monotonic
from types import FunctionType
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bfreplay import _compiling

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def _numba() -> Any:
    """Return the numba module, or ``None`` on platforms without llvmlite wheels, such as ppc64le login nodes."""
    try:
        return importlib.import_module("numba")
    except ImportError:
        return None


_NUMBA = _numba()
IS_COMPILED = _NUMBA is not None and not _NUMBA.config.DISABLE_JIT


def sources_digest(folder: Path) -> str:
    """Return a hash of every module below ``folder`` with compiled functions."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        if b"@compiled" in content:
            digest.update(content)
    return digest.hexdigest()


_DIGEST = sources_digest(Path(__file__).parent) if IS_COMPILED else ""


def compiled(function: F, is_inlined: bool = False) -> F:
    """Compile ``function`` when it is first called, or interpret it while another process does (see ``_compiling``).

    Machine code is kept on disk. It includes the functions it calls, but numba checks only the caller's own file. So
    all compiled sources are part of the version that it compares before it unpickles the rest, which may name classes
    that have moved.
    """
    if _NUMBA is None:
        return function
    compile_with = partial(_NUMBA.njit, fastmath=False, forceinline=is_inlined)
    dispatcher: Any
    try:
        dispatcher = compile_with(cache=True)(function)
    except RuntimeError:  # no writable folder: compile in each process
        dispatcher = compile_with(cache=False)(function)
    cache: Any = getattr(dispatcher, "_cache", None)
    cache_file: Any = getattr(cache, "_cache_file", None)
    if hasattr(cache_file, "_version"):
        cache_file._version = (cache_file._version, _DIGEST)
    is_kept = hasattr(cache, "_load_overload") and hasattr(_RUNTIME, "initialize")
    if is_kept:
        cache.load_overload = partial(_load_from_disk, cache.load_overload, cache._load_overload)
    if hasattr(dispatcher, "_compile_for_args"):
        dispatcher._compile_for_args = _FirstCalls(dispatcher, dispatcher._compile_for_args, is_kept)
    if hasattr(dispatcher, "get_call_template"):
        dispatcher.get_call_template = partial(_template_of_common_types, dispatcher.get_call_template)
    return dispatcher  # type: ignore[no-any-return]


def _template_of_common_types(find: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """Compile a loop that compiled loops call once for all integers; numba would again for each literal and width."""
    types = importlib.import_module("numba").types

    def common(given: Any) -> Any:
        plain = types.unliteral(given)
        is_narrow = isinstance(plain, types.Integer) and plain.signed and plain.bitwidth < types.int64.bitwidth
        return types.int64 if is_narrow else plain

    return find(tuple(map(common, arguments)), {name: common(given) for name, given in keywords.items()})


class _NotOnDisk(Exception):  # noqa: N818  # no error: the loop is interpreted, or compiled
    """A loop has no machine code on disk for these types of arguments."""

    def __init__(self, signature: tuple[Any, ...]) -> None:
        super().__init__(signature)
        self.signature = signature


@dataclass(slots=True)
class _FirstCalls:
    """Called by numba for argument types without machine code; returns the function that numba then calls with them.

    Looks for machine code on disk, at growing intervals up to a second. Without any, returns the interpreted function,
    and asks for its machine code; or compiles it.
    """

    dispatcher: Any
    compile_for: Callable[..., Any]
    is_kept: bool
    look_again_s: float = 0.0
    interval_s: float = 0.001

    def __call__(self, *arguments: Any, **keywords: Any) -> Callable[..., Any]:
        if monotonic() < self.look_again_s and _compiling.is_interpreted():
            return _interpreted(self.dispatcher)
        signature = None
        if self.is_kept:
            _this_thread.is_reading = True
            try:
                return self.compile_for(*arguments, **keywords)  # type: ignore[no-any-return]
            except _NotOnDisk as missing:
                signature = missing.signature
            finally:
                _this_thread.is_reading = False
        is_interpreted = _compiling.is_interpreted()
        _compiling.tell(is_interpreted)
        folder = _cache_folder()
        if not is_interpreted:
            with _compiling.sole_compiler(folder):
                return self.compile_for(*arguments, **keywords)  # type: ignore[no-any-return]
        self.interval_s = min(1.0, 2 * self.interval_s)
        self.look_again_s = monotonic() + self.interval_s
        if folder is not None and signature is not None:
            function = self.dispatcher.py_func
            _compiling.request(folder, function.__module__, function.__qualname__, signature)
        return _interpreted(self.dispatcher)


class _ThisThread(local):
    is_reading = False
    """Whether a loop that is not on disk raises ``_NotOnDisk`` instead of being compiled."""


_this_thread = _ThisThread()


@cache
def _cache_folder() -> Path | None:
    """Return the folder with this module's machine code, which holds the lock of all; ``None`` where none is kept."""
    path = getattr(getattr(copy_into, "_cache", None), "cache_path", None)
    return None if path is None else Path(path)


@cache
def _interpreted(dispatcher: Any) -> Callable[..., Any]:
    """Return the plain Python function of ``dispatcher``, for arguments as numba passes them on."""
    function, omitted = _plain(dispatcher), importlib.import_module("numba.core.dispatcher").OmittedArg

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # as in machine code
            return function(*(value.value if type(value) is omitted else value for value in arguments))

    return run


@cache
def _plain(dispatcher: Any) -> FunctionType:
    """Return the function of ``dispatcher`` with plain functions in place of the compiled ones that it calls."""
    function: FunctionType = dispatcher.py_func
    names = _plain_names(function.__globals__, type(dispatcher))
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


_names_by_module: dict[int, dict[str, Any]] = {}


def _plain_names(names: dict[str, Any], compiled_type: type) -> dict[str, Any]:
    """Return the global names of a module with plain functions in place of compiled ones."""
    if id(names) not in _names_by_module:
        plain_names = _names_by_module[id(names)] = dict(names)  # kept before it is filled: functions call each other
        plain_names.update((name, _plain(value)) for name, value in names.items() if type(value) is compiled_type)
    return _names_by_module[id(names)]


_RUNTIME: Any = getattr(importlib.import_module("numba.core.runtime"), "rtsys", None) if IS_COMPILED else None


_UNREADABLE = (
    OSError,
    EOFError,
    pickle.UnpicklingError,
    ImportError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
)
"""Failures to load machine code: a damaged file, a class that has moved, a symbol that only all of numba defines."""


def _load_from_disk(load: Callable[..., Any], load_only: Callable[..., Any], signature: Any, target: Any) -> Any:
    """Load machine code. numba first imports all that it could compile, scipy's linear algebra included: 0.3 s.

    Loading needs only the runtime. If that fails, or if there is nothing to load, ``load`` does as numba does; where
    it cannot read the file either, the loop is compiled anew.
    """
    try:
        _RUNTIME.initialize(target)
        machine_code = load_only(signature, target)
        if machine_code is None and _this_thread.is_reading:
            raise _NotOnDisk(signature)
        return load(signature, target) if machine_code is None else machine_code
    except _UNREADABLE as error:
        _warn_unreadable(f"{type(error).__name__}: {error}")
    try:
        machine_code = load(signature, target)
    except _UNREADABLE:
        machine_code = None
    if machine_code is None and _this_thread.is_reading:
        raise _NotOnDisk(signature)
    return machine_code


@cache  # once for each reason
def _warn_unreadable(reason: str) -> None:
    warnings.warn(
        f"a compiled loop on disk cannot be read ({reason}); it is read by numba's own way, or compiled anew. "
        "If this repeats, delete the folder NUMBA_CACHE_DIR, or the __pycache__ folders of bfreplay",
        RuntimeWarning,
        stacklevel=2,
    )


def compiled_inline(function: F) -> F:
    """Compile ``function`` inline into compiled callers, for small steps of hot loops on many arrays."""
    return compiled(function, is_inlined=True)


@compiled
def copy_into(target: Any, values: Any) -> None:
    """Write ``values (N,)`` to the first N places of ``target``; ``ValueError`` where it has fewer.

    For compiled functions: numba compiles an assignment to a slice, with its message of sizes that differ, for 3 s.
    """
    if values.shape[0] > target.shape[0]:
        raise ValueError("more values than places")
    for place in range(values.shape[0]):
        target[place] = values[place]


_RUN = 8
"""Keys that are sorted faster by insertion."""


@compiled
def ascending(key: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order of ascending keys; stable, so the same everywhere.

    For compiled functions: numba compiles ``np.argsort`` more than twice as long. Runs of ``_RUN`` keys are sorted by
    insertion, then merged.
    """
    n_keys = key.shape[0]
    order, merged = np.arange(n_keys), np.empty(n_keys, np.int64)
    for first in range(0, n_keys, _RUN):
        for i in range(first + 1, min(first + _RUN, n_keys)):
            k = order[i]
            while i > first and key[order[i - 1]] > key[k]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = k
    width = _RUN
    while width < n_keys:
        for first in range(0, n_keys, 2 * width):
            left, right = first, min(first + width, n_keys)
            middle, end = right, min(first + 2 * width, n_keys)
            for position in range(first, end):
                if right == end or (left < middle and key[order[left]] <= key[order[right]]):
                    merged[position] = order[left]
                    left += 1
                else:
                    merged[position] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


def callable_when_compiled(function: F) -> F:
    """Let compiled functions call ``function``, which stays plain Python for every other caller.

    Meant for small rules that compiled loops apply to numbers and other code to whole arrays.
    """
    if _NUMBA is None:
        return function
    return importlib.import_module("numba.extending").register_jitable(function)  # type: ignore[no-any-return]


def zero_records(kind: type[T], n: int) -> Sequence[T]:
    """Return an array of ``n`` records, all zero, with the fields that class ``kind`` annotates (int, float or bool).

    Fields are read and written as ``records[i].field``, also in compiled functions.
    """
    record = _record_of(kind)  # type: ignore[arg-type]  # mypy does not know that all types are hashable
    return np.zeros(n, record)  # type: ignore[return-value]  # an array is no Sequence


@cache  # reading type hints is slow
def _record_of(record_class: type[Any]) -> np.dtype[Any]:
    fields = [(field_name, np.dtype(field_type)) for field_name, field_type in get_type_hints(record_class).items()]
    return np.dtype((np.record, fields))
