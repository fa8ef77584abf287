"""Families of models with made-up scalability curves, for campaigns and for the bundled sample.

No rate was measured: all come from the small model of `rate_samples_per_s`, with round numbers of the right order for
four-accelerator nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

RACK_NODES = 16
"""Nodes that share a fast switch; a job on more than these pays the slower links between racks."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Duration of one training step of a model.

    Parameters
    ----------
    name
        Name of the model.
    node_samples_per_s
        Rate of one node.
    samples_per_step
        Samples in one step: of each node if ``grows_with_nodes``, of the whole job if not.
    grows_with_nodes
        Weak scaling (each node keeps its batch) or strong scaling (the batch is split).
    serial_s
        Part of a step that more nodes do not shorten (Amdahl).
    exchange_s
        Seconds to all-reduce the gradients over the links inside a rack.
    cross_rack
        Factor on ``exchange_s`` if the job spans racks: above 1 the curve dips there and is not concave.
    """

    name: str
    node_samples_per_s: float
    samples_per_step: int
    grows_with_nodes: bool
    serial_s: float
    exchange_s: float
    cross_rack: float


FAMILIES = (
    ModelFamily("image-classifier", 2_400.0, 512, True, 0.004, 0.030, 3.0),
    ModelFamily("image-classifier-large", 620.0, 256, True, 0.006, 0.090, 3.5),
    ModelFamily("segmentation", 95.0, 32, True, 0.010, 0.060, 1.5),
    ModelFamily("language-model", 310.0, 2_048, False, 0.020, 0.050, 2.5),
    ModelFamily("molecule-graph", 5_200.0, 16_384, False, 0.015, 0.008, 4.0),
)


def rate_samples_per_s(family: ModelFamily, nodes: int) -> float:
    """Return samples/s on ``nodes`` nodes: samples of a step / (computing + serial part + ring all-reduce).

    A ring all-reduce moves ``2 (n - 1) / n`` of the gradients over each link, and takes a little longer with each
    node of latency; both are slower by ``cross_rack`` beyond `RACK_NODES` nodes.
    """
    samples = family.samples_per_step * (nodes if family.grows_with_nodes else 1)
    computing_s = samples / nodes / family.node_samples_per_s
    link_factor = family.cross_rack if nodes > RACK_NODES else 1.0
    exchange_s = family.exchange_s * link_factor * ((nodes - 1) / nodes + 0.004 * (nodes - 1))
    return samples / (computing_s + family.serial_s + exchange_s)
