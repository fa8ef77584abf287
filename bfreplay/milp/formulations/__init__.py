"""MILP formulations of one decision, by name."""

from __future__ import annotations

from typing import cast

from bfreplay.milp.formulations.formulation import Formulation, NodeMap
from bfreplay.registry import Registry

FORMULATIONS = Registry(
    kind="formulation",
    group="bfreplay.formulations",
    needs=("name", "needs_sos", "needs_continuous", "change_limited", "build", "read"),
    built_in={
        "published": "bfreplay.milp.formulations.node_level:Published",
        "node_level": "bfreplay.milp.formulations.node_level:NodeLevel",
        "counts_sos2": "bfreplay.milp.formulations.counts:CountsSos2",
        "counts_segments": "bfreplay.milp.formulations.counts:CountsSegments",
        "choices": "bfreplay.milp.formulations.choices:Choices",
        "choices_reduced": "bfreplay.milp.formulations.choices:ChoicesReduced",
    },
)
"""One line here (or an entry point elsewhere) makes a formulation known everywhere."""

__all__ = ["FORMULATIONS", "Formulation", "NodeMap", "formulation_of"]


def formulation_of(name: str) -> Formulation:
    """Make the formulation called ``name``, or at ``package.module:Class``.

    Raises
    ------
    InputError
        There is no such formulation (the message lists those there are), or it cannot be imported or made.
    """
    return cast(Formulation, FORMULATIONS.make(name, allow_code=True))
