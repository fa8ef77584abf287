"""A followed session that goes on with other nodes or more jobs: from a saved state, or as jobs are submitted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.portions import Portions
from bfreplay.errors import InputError
from bfreplay.replay.settings import ReplaySettings
from bfreplay.runs.run_checks import jobs_in_window
from bfreplay.workload import ElasticJob, JobSet

KnownJob: TypeAlias = tuple[str, str, int]
"""Name of a job, digest of all that it is as a session was given it, and when it was submitted there."""


def known_jobs(jobs: Sequence[ElasticJob], most_nodes: int) -> list[KnownJob]:
    """Return what a state keeps of the jobs; curves count up to ``most_nodes``."""
    digests = (hashlib.sha256(repr(_plain(job, min(job.max_nodes, most_nodes))).encode()).hexdigest() for job in jobs)
    return [(job.name, digest, job.submit_us) for job, digest in zip(jobs, digests, strict=True)]


def _plain(value: Any, most_nodes: int) -> object:
    if hasattr(value, "table"):
        return value.table(most_nodes).tolist()
    if isinstance(value, Mapping):
        return [(key, _plain(part, most_nodes)) for key, part in value.items()]
    if is_dataclass(value):
        return [_plain(getattr(value, field.name), most_nodes) for field in fields(value)]
    return repr(value)


def jobs_after(known: Sequence[KnownJob], given: Sequence[KnownJob], until_us: int) -> list[KnownJob]:
    """Return the jobs given now that a state does not have, submitted at ``until_us`` or later.

    Raises
    ------
    InputError
        A job of the state is missing, or is another one now.
    """
    digest_of = {name: digest for name, digest, _ in given}
    for name, digest, _ in known:
        if digest_of.pop(name, None) != digest:
            is_missing = all(name != other for other, _, _ in given)
            raise InputError(
                f"the job {name!r} of the state is {'missing' if is_missing else 'another one now'}",
                column="jobs",
                value=name,
                expected="all jobs of the state as they were; further ones may be added",
                fix="give the jobs of before, and the new ones besides",
            )
    return [(name, digest, max(submit_us, until_us)) for name, digest, submit_us in given if name in digest_of]


def jobs_to_submit(
    jobs: JobSet | Iterable[ElasticJob], events: NodeEvents, settings: ReplaySettings, since_us: int, *, endless: bool
) -> list[ElasticJob]:
    """Return further jobs as they are replayed, checked as those at the start."""
    new = jobs if isinstance(jobs, JobSet) else JobSet(jobs)
    anchored = jobs_in_window(new, events, replace(settings, measured=None), unlimited_work=False)
    assert isinstance(anchored, JobSet)
    return list(anchored.endless(len(anchored), since_us) if endless else anchored)


def in_order(known: Sequence[KnownJob], jobs: Iterable[ElasticJob]) -> list[ElasticJob]:
    """Return the jobs in the order and with the submit times of ``known``."""
    job_of = {job.name: job for job in jobs}
    return [replace(job_of[name], submit_us=submit_us) for name, _, submit_us in known]


def nodes_after(portions: Portions, log: NodeEvents) -> None:
    """Let restored portions go on with the nodes of ``log``, which may be others than those of the state.

    Nodes that the state does not know are added after all others, by name. Those that ``log`` lacks stay in the
    inventory, and are unknown from now on.

    Raises
    ------
    InputError
        The node types are others.
    """
    portions.take_inventory(log.with_inventory(portions.nodes, portions.n_at_start, portions.node_types))
    if portions.log.node_types.names != log.node_types.names:
        raise InputError(
            "the node types are others than in the state, or in another order",
            column="node_types",
            value=", ".join(log.node_types.names),
            expected=", ".join(portions.log.node_types.names),
            fix="give the nodes so that their types first appear in this order",
        )
    type_of = dict(zip(log.nodes, (log.node_types.names[number] for number in log.node_types.of_node), strict=True))
    known = frozenset(portions.nodes)
    portions.add_nodes([name for name in log.nodes if name not in known], type_of)
    portions.lose_nodes([name for name in portions.nodes if name not in type_of])
