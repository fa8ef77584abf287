"""Decorators for hot loops: compiled by numba where it is installed, otherwise plain Python.

The source is the same, and numba neither reorders nor fuses floating-point operations, so both give the same bits.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

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
    """Compile ``function`` on first call and keep the machine code on disk for the next process.

    Machine code includes the functions it calls, but numba checks only the caller's own file. So all compiled sources
    are part of the version that it compares before it unpickles the rest, which may name classes that have moved.
    """
    if _NUMBA is None:
        return function
    dispatcher: Any
    try:
        dispatcher = _NUMBA.njit(cache=True, fastmath=False, forceinline=is_inlined)(function)
    except RuntimeError:  # no writable folder: compile in each process
        return _NUMBA.njit(cache=False, fastmath=False, forceinline=is_inlined)(function)  # type: ignore[no-any-return]
    cache: Any = getattr(dispatcher, "_cache", None)
    cache_file: Any = getattr(cache, "_cache_file", None)
    if hasattr(cache_file, "_version"):
        cache_file._version = (cache_file._version, _DIGEST)
    if hasattr(cache, "_load_overload") and hasattr(_RUNTIME, "initialize"):
        cache.load_overload = partial(_load_from_disk, cache.load_overload, cache._load_overload)
    return dispatcher  # type: ignore[no-any-return]


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
        dispatched = load(signature, target) if machine_code is None else machine_code
        while dispatched is None and _notice:
            _notice.pop()()
        return dispatched
    except _UNREADABLE as error:
        _warn_unreadable(f"{type(error).__name__}: {error}")
    try:
        return load(signature, target)
    except _UNREADABLE:
        return None


_notice: list[Callable[[], None]] = []


@contextmanager
def notice_of_compiling(show: Callable[[], None]) -> Iterator[None]:
    """Call ``show`` inside this context before the first loop that is not on disk yet is compiled, if there is one."""
    _notice.append(show)
    try:
        yield
    finally:
        _notice.clear()


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
