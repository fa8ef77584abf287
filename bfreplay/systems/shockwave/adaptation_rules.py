"""Batch-size changes of the published jobs: Accordion and the gradient noise scale (GNS), by model.

Two sets of rules were published, one for profiles and one in the simulator, which differ (``Rules``). The tables of
epochs are measurements of the published program (NSDI'23 artifact).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from bfreplay import checks
from bfreplay.errors import InputError
from bfreplay.systems.trace_lines import split_job_type


class Mode(StrEnum):
    """Rule that chooses the batch size of a job."""

    STATIC = "static"
    ACCORDION = "accordion"
    GNS = "gns"


MODES = tuple(mode.value for mode in Mode)


@dataclass(frozen=True, slots=True)
class Model:
    """Model to train.

    Parameters
    ----------
    samples_per_epoch
        Size of its data set.
    least, most
        Smallest and largest batch size.
    """

    samples_per_epoch: int
    least: int
    most: int


MODELS: Mapping[str, Model] = {
    "ResNet-18": Model(50_000, 16, 256),
    "ResNet-50": Model(100_000, 16, 128),
    "Transformer": Model(10_000, 16, 128),
    "LM": Model(59_675, 5, 80),
    "Recommendation": Model(117_907, 512, 8192),
}

_CRITICAL: Mapping[str, tuple[tuple[int, int], ...]] = {
    "ResNet-18": ((150, 160), (250, 260)),
    "ResNet-50": (),
    "LM": (),
    "Recommendation": ((60, 70), (80, 90)),
}
"""Epochs, from the first to before the second, in which Accordion keeps small batches, besides the first epochs."""

_FIRST_CRITICAL: Mapping[tuple[str, int], int] = {
    ("ResNet-18", 256): 20, ("Recommendation", 512): 30, ("Recommendation", 1024): 30, ("Recommendation", 2048): 40,
}  # fmt: skip
"""Number of critical epochs at the start, by model and first batch size, where it is not ten."""

_PERIOD = {"ResNet-50": 30}
"""Number of epochs after which the first ones are critical again."""

ACCORDION_STARTS = 0.3
"""Fraction of the epochs before which profiles have no large batches."""

_GNS: Mapping[tuple[str, int], Mapping[int, tuple[int, ...]]] = {
    # model, GPUs: first batch size -> epochs at which it is 2, 4, 8, 16 times as large
    ("ResNet-18", 1): {16: (31, 41, 51, 71), 32: (21, 31, 51), 64: (11, 31), 128: (11,)},
    ("ResNet-18", 2): {16: (21, 31, 91, 111), 32: (11, 21, 41), 64: (21, 41), 128: (41,)},
    ("ResNet-18", 4): {16: (11, 21, 81, 91), 32: (21, 31, 61), 64: (11, 61), 128: (11,)},
    ("ResNet-50", 1): {64: (101,)},
    ("ResNet-50", 2): {32: (101, 111), 64: (81,)},
    ("ResNet-50", 4): {32: (131, 221), 64: (191,)},
    ("LM", 1): {5: (31, 41, 61, 71), 10: (11, 21, 41), 20: (11, 41), 40: (11,)},
    ("LM", 2): {5: (31, 51, 61, 71), 10: (11, 31, 41), 20: (31, 41), 40: (11,)},
    ("LM", 4): {5: (11, 31, 71, 91), 10: (11, 31, 61), 20: (11, 61), 40: (61,)},
    ("Recommendation", 1): {512: (21, 41, 71, 91), 1024: (21, 51, 91), 2048: (21, 41), 4096: (41,)},
}


@dataclass(frozen=True, slots=True)
class Rules:
    """Choice among the published rules; by default one consistent set, that of profiles without its slip.

    Parameters
    ----------
    waits_for_30_percent
        Accordion has no large batches in the first 30 % of the epochs. Not in the published simulator.
    recommendation_windows
        Accordion keeps small batches of Recommendation in epochs 60 to 69 and 80 to 89. Not in the published simulator.
    last_epoch_keeps_first_size
        With GNS the last epoch of a job that has become at least four times as large counts with the first batch size:
        a slip of the published profiles.
    """

    waits_for_30_percent: bool = True
    recommendation_windows: bool = True
    last_epoch_keeps_first_size: bool = False


CONSISTENT = Rules()
PUBLISHED_PROFILE = Rules(last_epoch_keeps_first_size=True)
PUBLISHED_SIMULATOR = Rules(waits_for_30_percent=False, recommendation_windows=False)


def model_and_batch_size(job_type: str) -> tuple[str, int]:
    """``("ResNet-18", 32)`` of ``"ResNet-18 (batch size 32)"``.

    Raises
    ------
    InputError
        Invalid form, or an unknown model.
    """
    model, size = split_job_type(job_type)
    if model not in MODELS or size < 1:
        raise InputError(
            "this job type has no known data set and batch size",
            column="job type",
            value=job_type,
            expected=f"MODEL (batch size N), MODEL one of {', '.join(MODELS)}",
        )
    return model, size


def is_critical(model: str, first_size: int, epoch: int, rules: Rules) -> bool:
    """Return whether Accordion keeps the first batch size in an epoch, since gradients change fast there."""
    if model not in _CRITICAL:
        return True
    if epoch % _PERIOD.get(model, epoch + 1) < _FIRST_CRITICAL.get((model, first_size), 10):
        return True
    if model == "Recommendation" and not rules.recommendation_windows:
        return False
    return any(begin <= epoch < end for begin, end in _CRITICAL[model])


def batch_sizes(model: str, first_size: int, gang: int, mode: Mode, n_epochs: int, rules: Rules) -> list[int]:
    """Return the batch size of each of ``n_epochs`` epochs of a job.

    Parameters
    ----------
    model, first_size, gang
        Name in ``MODELS``, batch size at the start, GPUs.
    mode
        Rule that chooses the batch size.
    n_epochs
        Epochs of the job.
    rules
        Choice among the published rules.

    Raises
    ------
    InputError
        More epochs than ``checks.MOST_EPOCHS``.
    """
    checks.whole("epochs", n_epochs, 0, checks.MOST_EPOCHS)
    if mode is Mode.ACCORDION:
        starts = ACCORDION_STARTS * n_epochs if rules.waits_for_30_percent else -1.0
        return [
            first_size if is_critical(model, first_size, epoch, rules) or not epoch > starts else MODELS[model].most
            for epoch in range(n_epochs)
        ]
    growth_epochs = _GNS.get((model, gang), {}).get(first_size, ()) if mode is Mode.GNS else ()
    largest = MODELS[model].most
    sizes = [
        min(first_size * 2 ** sum(epoch >= growth for growth in growth_epochs), largest) for epoch in range(n_epochs)
    ]
    if rules.last_epoch_keeps_first_size and sum(n_epochs > growth for growth in growth_epochs) >= 2:
        sizes[-1] = first_size
    return sizes


_LONGEST_PATTERN = 760
"""Epochs for which the published simulator tabulates GNS."""


def wants_to_change(model: str, first_size: int, batch_size: int, gang: int, mode: Mode, n_epochs_begun: int) -> bool:
    """Return whether a job of the published simulator asks for ``asked_batch_size`` at a round's end.

    Parameters
    ----------
    model, first_size, gang, mode
        As for ``batch_sizes``.
    batch_size
        Batch size now.
    n_epochs_begun
        Epochs begun.
    """
    if mode is Mode.ACCORDION and model in _CRITICAL:
        critical = is_critical(model, first_size, n_epochs_begun, PUBLISHED_SIMULATOR)
        if batch_size == first_size:
            return not critical and batch_size != MODELS[model].most
        return critical and batch_size != MODELS[model].least
    if mode is Mode.GNS and batch_size < MODELS[model].most:
        n_epochs = max(_LONGEST_PATTERN, n_epochs_begun + 2)
        pattern = batch_sizes(model, first_size, gang, mode, n_epochs, PUBLISHED_PROFILE)
        return pattern[n_epochs_begun] > batch_size or pattern[n_epochs_begun + 1] > batch_size
    return False


def asked_batch_size(model: str, first_size: int, batch_size: int, mode: Mode) -> int:
    """Return the batch size that a job asks for: the double under GNS, the largest or the first under Accordion."""
    if mode is Mode.GNS:
        return 2 * batch_size
    return MODELS[model].most if batch_size == first_size else first_size


def steps_per_epoch(model: str, batch_size: int) -> int:
    """Return the steps of one epoch; the last is smaller where the batch size does not divide the data set."""
    return math.ceil(MODELS[model].samples_per_epoch / batch_size)
