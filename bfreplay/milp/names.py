"""Back ends and formulations by name, without what they import: completion on the command line needs no more."""

from __future__ import annotations

from bfreplay.registry import Registry

BACKENDS = Registry(
    kind="back end",
    group="bfreplay.backends",
    needs=("name", "capabilities", "available", "solve"),
    built_in={
        "cbc": "bfreplay.milp.backends.cbc:CbcMip",
        "pulp-cbc": "bfreplay.milp.backends.cbc:CbcPulp",
        "highs": "bfreplay.milp.backends.highs:Highs",
        "gurobi": "bfreplay.milp.backends.gurobi:Gurobi",
        "scip": "bfreplay.milp.backends.scip:Scip",
        "cp-sat": "bfreplay.milp.backends.cp_sat:CpSat",
    },
)
"""One line here (or an entry point elsewhere) makes a back end known everywhere."""

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
