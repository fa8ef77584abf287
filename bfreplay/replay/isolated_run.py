"""The yardstick of finish-time fairness: the same jobs on the same nodes, each with an equal part of them."""

from __future__ import annotations

from dataclasses import replace

from bfreplay.datasets import NodeEvents
from bfreplay.errors import InputError
from bfreplay.policies import Policy
from bfreplay.policies.gavel.gavel_options import GavelOptions
from bfreplay.policies.gavel.gavel_policy import GavelPolicy
from bfreplay.policies.gavel.named import gavel_policy
from bfreplay.policies.learning import LearningPolicy
from bfreplay.replay.accounting import Semantics
from bfreplay.replay.engine import Engine
from bfreplay.replay.recorder import Recorder
from bfreplay.replay.settings import ReplaySettings
from bfreplay.workload import JobSet, JobSource


def isolated_jct_s(
    events: NodeEvents, jobs: JobSet | JobSource, policy: Policy, settings: ReplaySettings
) -> dict[int, float]:
    """Seconds from submission to finish of the jobs that finish under ``gavel.isolated``, by number.

    It has the options of ``policy`` where that is one of Gavel's, above all the length of its rounds, and the default
    ones otherwise; time is continuous, as rounds need it.

    Parameters
    ----------
    events, jobs, settings
        Of the run that is to be measured; a log without the end that the run gave it.
    policy
        Of that run.

    Raises
    ------
    InputError
        The jobs come from a source, which may make other ones here.
    """
    refuse_source(jobs)
    inner = policy.inner if isinstance(policy, LearningPolicy) else policy
    isolated = gavel_policy("isolated")(inner.options if isinstance(inner, GavelPolicy) else GavelOptions())
    settings = replace(settings, semantics=Semantics.CONTINUOUS, record_nodes=False)
    try:
        engine = Engine(events, jobs, isolated, settings, Recorder.nowhere(events.node_types.names))
        engine.run()
    finally:
        isolated.close()
    return engine.outcomes.jct_s


def refuse_source(jobs: JobSet | JobSource) -> None:
    """Raise ``InputError`` for jobs of a source: other ones may be made in another replay."""
    if not isinstance(jobs, JobSet):
        raise InputError(
            "a job source makes jobs as time goes on, and may make other ones under the isolated policy: there is no "
            "fairness to measure",
            value=jobs.name, expected="a set of jobs", fix="leave --fairness (Python: with_fairness) out",
        )  # fmt: skip
