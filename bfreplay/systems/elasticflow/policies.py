"""ElasticFlow's policies by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from bfreplay.registry import built_in

if TYPE_CHECKING:
    from bfreplay.systems.elasticflow.deadline_policies import ElasticFlowPolicy

_HERE = "bfreplay.systems.elasticflow"
_CLASSES = {
    "elasticflow": ("deadline_policies:ElasticFlow", "deadline_schedulers:elasticflow"),
    "elastic": ("deadline_policies:ElasticSharing", "deadline_schedulers:elastic_sharing"),
    "edf": ("deadline_policies:Edf", "deadline_schedulers:edf"),
    "edf_admission": ("deadline_policies:EdfWithAdmission", "deadline_schedulers:edf_with_admission"),
    "gandiva": ("fixed_policies:Gandiva", "gandiva:gandiva"),
    "tiresias": ("fixed_policies:Tiresias", "tiresias:tiresias"),
    "themis": ("fixed_policies:Themis", "themis:themis"),
    "chronus": ("fixed_policies:Chronus", "chronus:chronus"),
}
"""Class of each policy, and the published scheduler that it repeats with ``published=true``."""

POLICIES = tuple(_CLASSES)
"""ElasticFlow; without admission; EDF without and with admission; and baselines on the requested nodes."""


@cache
def elasticflow_policy(policy_name: str) -> type[ElasticFlowPolicy]:
    """Return the class of the policy ``elasticflow.<name>``."""
    location, program = _CLASSES[policy_name]
    attributes = {
        "name": f"elasticflow.{policy_name}",
        "program": staticmethod(built_in(f"{_HERE}.published.{program}")),
        "__module__": __name__,
    }
    return type(policy_name, (built_in(f"{_HERE}.{location}"),), attributes)


def __getattr__(policy_name: str) -> type[ElasticFlowPolicy]:
    """Return a class as an attribute of this module: the registry of policies imports ``policies:edf``."""
    if policy_name in POLICIES:
        return elasticflow_policy(policy_name)
    raise AttributeError(f"module {__name__!r} has no attribute {policy_name!r}")
