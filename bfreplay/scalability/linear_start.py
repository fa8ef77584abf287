"""Rough parameters from a linear form of a law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def factors(target: Floats, columns: Sequence[Floats]) -> Floats:
    """Factors of the first column 1 that make ``target`` of ``columns``, none negative: shape ``(len(columns) - 1,)``.

    Relative errors are squared and added: rates scatter in proportion to their size. Where the first column is not
    needed at all, it gets a hundredth of what all columns together get.
    """
    from scipy.optimize import nnls

    scaled = np.stack(columns, axis=1) / target[:, None]
    size = np.linalg.norm(scaled, axis=0)
    size[size == 0] = 1.0
    found = nnls(scaled / size, np.ones(len(target)))[0] / size
    first = max(float(found[0]), 0.01 * float(found.sum()))
    return np.asarray(found[1:] / first, dtype=np.float64)
