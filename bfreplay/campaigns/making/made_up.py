"""Made-up models with made-up curves, for those who have measured none yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bfreplay.campaigns.seeds import Purpose, stream
from bfreplay.datasets.synthetic.jobs import FAMILIES, rate_samples_per_s
from bfreplay.scalability import Curve, TabulatedCurve
from bfreplay.scalability.universal import UniversalScalability


@dataclass(frozen=True, slots=True)
class NamedCurve:
    """A curve with its name, and a line on where it comes from."""

    name: str
    curve: Curve
    origin: str


def node_counts(max_nodes: int) -> Sequence[int]:
    """Node counts of a made-up curve's points: 1, 2, 4, ... and ``max_nodes``."""
    counts = [1]
    while counts[-1] * 2 < max_nodes:
        counts.append(counts[-1] * 2)
    return counts if counts[-1] == max_nodes else [*counts, max_nodes]


def family_curves(max_nodes: int) -> list[NamedCurve]:
    """Curves of the model families of the synthetic jobs, up to ``max_nodes`` nodes."""
    counts = node_counts(max_nodes)
    return [
        NamedCurve(
            family.name,
            TabulatedCurve(
                [0, *counts], [0.0, *(round(rate_samples_per_s(family, n), 1) for n in counts)], family.name
            ),
            "made up, not measured",
        )
        for family in FAMILIES
    ]


def drawn_curves(n_models: int, seed: int) -> list[NamedCurve]:
    """Curves by the universal scalability law, its parameters drawn; the same for the same seed.

    Drawn on logarithmic scales: the rate of one node from 100 to 5,000 samples/s, contention from 0.001 to 0.1,
    coherency from 1e-6 to 1e-3, so that some models scale to hundreds of nodes and others fall beyond thirty.
    """
    curves = []
    for i in range(n_models):
        draws = stream(seed, Purpose.MADE_UP, i).random(3)
        law = UniversalScalability(
            rate_1=round(float(100 * 50 ** draws[0]), 1),
            serial=float(f"{0.001 * 100 ** draws[1]:.3g}"),
            kappa=float(f"{1e-6 * 1_000 ** draws[2]:.3g}"),
        )
        name = f"model-{i:0{max(2, len(str(n_models - 1)))}d}"
        curves.append(NamedCurve(name, law, f"made up, not measured: drawn with seed {seed}"))
    return curves
