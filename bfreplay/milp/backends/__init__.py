"""Solvers of linear models, by name."""

from __future__ import annotations

from typing import cast

from bfreplay.milp.backends.backend import Backend, BackendAnswer, Capabilities, ModelRefusedError, SolveOptions
from bfreplay.registry import Registry

BACKENDS = Registry(
    kind="back end",
    group="bfreplay.backends",
    needs=("name", "capabilities", "available", "solve"),
    built_in={
        "cbc-mip": "bfreplay.milp.backends.cbc_mip:CbcMip",
    },
)
"""One line here (or an entry point elsewhere) makes a back end known everywhere."""

__all__ = ["BACKENDS", "Backend", "BackendAnswer", "Capabilities", "ModelRefusedError", "SolveOptions", "backend_of"]


def backend_of(name: str) -> Backend:
    """Make the back end called ``name``, or at ``package.module:Class``.

    Raises
    ------
    InputError
        There is no such back end; the message lists those there are.
    """
    return cast(Backend, BACKENDS.load(name)())
