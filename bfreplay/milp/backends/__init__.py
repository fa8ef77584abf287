"""Solvers of linear models, by name."""

from __future__ import annotations

from typing import Any, cast

from bfreplay.milp.backends.backend import Backend, BackendAnswer, Capabilities, ModelRefusedError, SolveOptions
from bfreplay.milp.model import LinearModel
from bfreplay.milp.names import BACKENDS
from bfreplay.registry import one_line

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendAnswer",
    "Capabilities",
    "ModelRefusedError",
    "SolveOptions",
    "backend_of",
    "try_to_solve",
    "version_of",
    "why_not",
]


def backend_of(name: str | Backend) -> Backend:
    """Make the back end called ``name``, or at ``package.module:Class``; a back end is returned as it is.

    Raises
    ------
    InputError
        There is no such back end (the message lists those there are), or it cannot be imported or made; or an object
        is no back end.
    """
    return cast(Backend, BACKENDS.make(name, allow_code=True))


def try_to_solve(backend: Backend, model: LinearModel, options: SolveOptions) -> tuple[str, Any]:
    """Return ``("answer", BackendAnswer)``, or ``"refused"`` or ``"failed"`` with the reason; raise nothing."""
    try:
        answer = backend.solve(model, options)
    except ModelRefusedError as error:
        return "refused", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    if not isinstance(answer, BackendAnswer):
        return "failed", f"the back end returned a {type(answer).__name__}, not a BackendAnswer"
    return "answer", answer


def why_not(backend: Backend) -> str:
    """Return why ``backend`` does not work here; empty when it does, also where ``available`` raises."""
    try:
        return str(backend.available())
    except Exception as error:  # whatever it is, it does not work here
        return f"available() failed: {one_line(error)}"


def version_of(backend: Backend) -> str:
    """Return solver and package version, as ``"HiGHS 1.15.1 (highspy 1.15.1)"``; empty where it has no ``version``."""
    tell = getattr(backend, "version", None)
    if not callable(tell):
        return ""
    try:
        return str(tell())
    except Exception as error:  # a stranger's may raise, and a table of solvers is still wanted
        return f"version() failed: {one_line(error)}"
