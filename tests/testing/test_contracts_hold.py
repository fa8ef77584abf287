"""What bfreplay ships keeps the contracts that it asks strangers to keep."""

from __future__ import annotations

import pytest

from bfreplay.milp.formulations import FORMULATIONS
from bfreplay.policies.catalogue import POLICIES
from bfreplay.testing import FormulationContract, PolicyContract
from bfreplay.testing.policy import WIDEST


@pytest.mark.parametrize("name", FORMULATIONS.names())
class TestOurFormulations(FormulationContract):
    @pytest.fixture(autouse=True)
    def _choose(self, name):
        self.formulation = FORMULATIONS.load(name, allow_code=False)


OFTEN = {f"gavel.{name}" for name in ("allox", "fifo_packed", "gandiva", "hierarchical_perf", "isolated")}
"""Policies of Gavel that CI tries: one of each kind. The others differ in how shares of time are computed."""
SLOW = {f"shockwave.{name}" for name in ("gavel", "mst", "ossp", "shockwave", "themis")} | {
    "gavel.hierarchical_perf",
    "elasticflow.chronus",
    "elasticflow.themis",
}
"""Policies that solve programs at every instant; `make test` tries others of the same systems."""


def _marks_of(name: str) -> list[pytest.MarkDecorator]:
    if name.startswith("gavel.") and name not in OFTEN:
        return [pytest.mark.thorough]
    return [pytest.mark.slow] if name in SLOW else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks_of(name)) for name in POLICIES.names()])
class TestOurPolicies(PolicyContract):
    @pytest.fixture(autouse=True)
    def _choose(self, name):
        self.policy = POLICIES.load(name, allow_code=False)
        self.widest = 1 if name == "gavel.allox" else WIDEST  # AlloX orders jobs on single nodes
