"""Made-up throughputs in Gavel's format, to try its policies without its files.

Nothing here was measured. All rates come from the small model below, with round numbers of the right order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.named_inputs import is_bundled
from bfreplay.errors import InputError
from bfreplay.systems.gavel.job_types import JOB_TYPES, JobType
from bfreplay.systems.gavel.throughputs import Measured, ThroughputTable, read_throughputs, throughputs_text
from bfreplay.systems.trace_lines import split_job_type

NAME = "made-up throughputs"
"""Name of this table in run records."""

SHARING_TOLL = 0.05
"""Fraction of their time that two jobs on the same nodes lose by taking turns."""

_GANGS = (1, 2, 4, 8)
_LATENCY_S = 0.0005  # for each further node in the ring
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class NodeModel:
    """Node type.

    Parameters
    ----------
    speed
        Speed of its device relative to a v100.
    memory_gb
        Memory of its device.
    link_gb_per_s
        Between two nodes of a gang.
    """

    speed: float
    memory_gb: float
    link_gb_per_s: float


NODE_MODELS = {"v100": NodeModel(1.0, 16.0, 6.0), "p100": NodeModel(0.55, 16.0, 6.0), "k80": NodeModel(0.1, 12.0, 4.0)}


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Time and memory of a training step.

    Parameters
    ----------
    host_s, host_s_per_sample
        Part of a step that does not depend on the device.
    device_s_per_sample
        Seconds of a v100 for one sample.
    least_samples
        Samples that each batch adds to its own as time on the device: small batches use it badly.
    memory_gb, memory_gb_per_sample
        Memory needed on the device.
    gradients_gb
        Data that the nodes of a gang exchange in a step.
    """

    host_s: float
    host_s_per_sample: float
    device_s_per_sample: float
    least_samples: float
    memory_gb: float
    memory_gb_per_sample: float
    gradients_gb: float


FAMILIES = {
    "ResNet-18": ModelFamily(0.008, 0.0, 0.0002, 24, 1.0, 0.01, 0.045),
    "ResNet-50": ModelFamily(0.01, 0.0, 0.003, 8, 1.5, 0.085, 0.1),
    "Transformer": ModelFamily(0.06, 0.0, 0.0008, 16, 3.0, 0.03, 0.25),
    "LM": ModelFamily(0.006, 0.0, 0.0003, 10, 2.0, 0.05, 0.03),
    "Recommendation": ModelFamily(0.02, 4e-5, 8e-6, 256, 1.5, 0.0007, 0.0),
    "A3C": ModelFamily(0.11, 0.0, 0.012, 0, 1.2, 0.0, 0.0),
    "CycleGAN": ModelFamily(0.01, 0.0, 0.22, 0, 7.5, 0.0, 0.0),
}


@dataclass(frozen=True, slots=True)
class _Run:
    """Job on a gang of one type: steps/s of all nodes, the part of time that devices are busy, memory of each."""

    rate: float
    utilisation: float
    memory_gb: float


def throughputs_of(curves: Path | None, needing_input: str, **where: Any) -> ThroughputTable:
    """Read a throughput file; the word ``sample`` stands for ``sample_throughputs``, unless a file is called that.

    Parameters
    ----------
    curves
        The file; ``None`` if not given.
    needing_input
        The input that needs it, for the error: ``"a trace of Gavel"``.
    **where
        File or value for the error, see ``InputError``.

    Raises
    ------
    InputError
        No file, or as ``read_throughputs``.
    """
    if curves is None:
        raise InputError(
            f"{needing_input} needs measured throughputs",
            expected="Gavel's throughput file (.json, .json.gz) as `curves`",
            fix="give it: --curves simulation_throughputs.json (curves=... in Python); --curves sample is made up",
            **where,
        )
    return sample_throughputs() if is_bundled(curves) else read_throughputs(curves)


@cache
def sample_throughputs() -> ThroughputTable:
    """Return a made-up table, complete in the published form: 26 job types on v100, p100 and k80, alone and in pairs.

    A step on one node takes ``host + device / speed`` seconds. In a gang each node has a batch of its own and they
    exchange gradients in a ring, ``2 (n - 1) / n`` of them over each link and some latency a node, so that rates grow
    less than the gang, least with the fastest devices. A type runs the jobs that fit into its memory.

    Two jobs that both fit share nodes. One waits while both want the device, which they do for ``u_one u_other`` of
    the time if ``u`` is the part of its steps that a job is on the device: both are slowed to ``1 / (1 + u_one
    u_other)`` of their rates, and by ``SHARING_TOLL``. So a device is never busy for more than all of the time.

    Returns
    -------
    ThroughputTable
        Rates have six significant digits. ``source`` has the digest of its text in the published form.
    """
    single_rates: dict[str, dict[Measured, float]] = {}
    pair_rates: dict[str, dict[tuple[str, str, int], tuple[float, float]]] = {}
    for node_type, node in NODE_MODELS.items():
        runs = {(job.name, gang): _run(job, gang, node) for job, gang in _jobs()}
        single_rates[node_type] = {job_and_gang: run_alone.rate for job_and_gang, run_alone in runs.items()}
        pair_rates[node_type] = {
            (first_job, second_job, gang): _sharing_rates(run_alone, runs[second_job, gang], node)
            for (first_job, gang), run_alone in runs.items()
            for second_job, other_gang in runs
            if other_gang == gang
        }
    text = throughputs_text(ThroughputTable(single_rates, pair_rates))
    source = SourceFile(NAME, hashlib.sha256(text.encode()).hexdigest())
    return ThroughputTable(single_rates, pair_rates, None, source)


def _jobs() -> Iterator[tuple[JobType, int]]:
    for job in JOB_TYPES:
        for gang in _GANGS if job.is_distributed else _GANGS[:1]:
            yield job, gang


def _run(job: JobType, gang: int, node: NodeModel) -> _Run:
    model, batch_size = split_job_type(job.name)
    family, batch = FAMILIES[model], batch_size or 1
    device_s = family.device_s_per_sample * (batch + family.least_samples) / node.speed
    host_s = family.host_s + family.host_s_per_sample * batch
    exchange_s = (gang - 1) * (2 / gang * family.gradients_gb / node.link_gb_per_s + _LATENCY_S)
    step_s = host_s + device_s + exchange_s
    memory_gb = family.memory_gb + family.memory_gb_per_sample * batch
    rate = _round(gang / step_s) if memory_gb <= node.memory_gb else 0.0
    return _Run(rate, device_s / step_s, memory_gb)


def _sharing_rates(first_run: _Run, second_run: _Run, node: NodeModel) -> tuple[float, float]:
    if first_run.memory_gb + second_run.memory_gb > node.memory_gb:
        return 0.0, 0.0
    slower = (1 + first_run.utilisation * second_run.utilisation) * (1 + SHARING_TOLL)
    return _round(first_run.rate / slower), _round(second_run.rate / slower)


def _round(rate: float) -> float:
    return float(f"{rate:.{_DIGITS}g}")
