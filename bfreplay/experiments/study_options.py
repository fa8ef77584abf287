"""Options of experiments beside those of their runs, declared once; nothing heavy is imported for ``--help``."""

from __future__ import annotations

from dataclasses import dataclass

from bfreplay.options import CheckedOptions, Number, Whole, option

N_STARTS = 48
"""Starts by default: the quartiles then rest on a dozen starts each."""

TRAIN = 0.67
TOLERANCE = 0.01
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishOptions(CheckedOptions):
    """Options of ``finish``."""

    dedicated: int | None = option(
        None, Whole(1), "Dedicated nodes", "Also say how long dedicated nodes take.", metavar="NODES"
    )
    starts: int = option(N_STARTS, Whole(1), "Starts", "Number of starts in the log.")
    seed: int = option(0, Whole(0), "Starts", "Seed of the random starts.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions(CheckedOptions):
    """Options of ``tune``."""

    train: float = option(TRAIN, Number(above=0, most=1), "Parts", "Share of the log to tune on; the rest validates.")
    tolerance: float = option(
        TOLERANCE,
        Number(least=0, below=1),
        "Recommendation",
        "Recommend the smallest number of jobs at once within this relative distance of the best.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap(CheckedOptions):
    """Options of the bootstrap of a comparison: the seed, and the number of series, and of sets of jobs, to draw."""

    seed: int = option(0, Whole(0), "Bootstrap", "Seed of the bootstrap.")
    resamples: int = option(RESAMPLES, Whole(100, 1_000_000), "Bootstrap", "Number of draws of the bootstrap.")


@dataclass(frozen=True, slots=True)
class SampleOptions(CheckedOptions):
    """Options of the sample of decisions on which formulations are compared."""

    sample: int = option(50, Whole(1), "Sample", "Number of decisions to sample from the replay.")
    seed: int = option(0, Whole(0), "Sample", "Seed of the sample.")
