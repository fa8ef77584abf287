"""The job types of Gavel's workloads, in the order in which a generated workload draws from them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobType:
    """What is trained, and whether it can run on several nodes at once."""

    name: str
    is_distributed: bool


# model, batch sizes (none: the name has none), is it distributed; the order decides what a seed draws
_MODELS: tuple[tuple[str, tuple[int, ...], bool], ...] = (
    ("ResNet-18", (16, 32, 64, 128, 256), True),
    ("ResNet-50", (16, 32, 64, 128), True),
    ("Transformer", (16, 32, 64, 128, 256), True),
    ("LM", (5, 10, 20, 40, 80), True),
    ("Recommendation", (512, 1024, 2048, 4096, 8192), False),
    ("A3C", (), False),
    ("CycleGAN", (), False),
)

JOB_TYPES: tuple[JobType, ...] = tuple(
    JobType(f"{model} (batch size {batch_size})" if batch_size else model, is_distributed)
    for model, batch_sizes, is_distributed in _MODELS
    for batch_size in (batch_sizes or (0,))
)
"""All 26."""
