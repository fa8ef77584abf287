"""Random streams of a campaign: one for each purpose and trial, so that no draw depends on the order of the others."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for. The numbers are part of every saved result: never change one."""

    ARRIVAL = 0
    MODEL = 1
    QUALITY = 2
    PACE = 3
    NOISE = 4
    FAILURE = 5
    PARAMS = 6
    MADE_UP = 7


def stream(seed: int, purpose: Purpose, *keys: int) -> np.random.Generator:
    """Return a new generator for ``(seed, purpose, *keys)``: the same for the same numbers, independent otherwise."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, *keys))))
