"""MILP formulations of one decision, by name."""

from __future__ import annotations

from typing import cast

from bfreplay.milp.formulations.formulation import Formulation, NodeMap
from bfreplay.milp.names import FORMULATIONS

__all__ = ["FORMULATIONS", "Formulation", "NodeMap", "formulation_of"]


def formulation_of(name: str | Formulation) -> Formulation:
    """Make the formulation called ``name``, or at ``package.module:Class``; a formulation is returned as it is.

    Raises
    ------
    InputError
        There is no such formulation (the message lists those there are), or it cannot be imported or made; or an
        object is no formulation.
    """
    return cast(Formulation, FORMULATIONS.make(name, allow_code=True))
