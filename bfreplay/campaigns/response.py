"""A made-up answer to "how good are these hyper-parameters": for campaigns where nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay.campaigns.parts import Params
from bfreplay.campaigns.search_space import Choice, SearchSpace
from bfreplay.documents import Json

_SHARPNESS = 3.0
"""Random hyper-parameters then have a mean quality between a quarter and a half, however many there are."""
_MARGIN = 0.25
"""How far the optimum stays from the ends of each scale."""
_SHIFT = 0.15
"""How far a choice moves the optimum of another hyper-parameter, at most."""
_COUPLING = 0.6
"""Coupling of a pair, at most; below 1 the optimum stays the only one."""


class ResponseSurface:
    """Quality of hyper-parameters, 1 at the best and towards 0 far from it.

    It is **made up**: it resembles what is found in practice in form only. Few hyper-parameters matter much and most
    matter little (Bergstra and Bengio, Random Search for Hyper-Parameter Optimization, JMLR 13, 2012, section 4);
    the best is inside the space; some pairs interact. With ``z_d`` the distance of hyper-parameter ``d`` from its
    optimum on its own scale, in halves of the scale,

        loss = sum over d of w_d z_d^2 + 2 * sum over pairs of r_ab sqrt(w_a w_b) z_a z_b + sum over choices of w_d e_dc
        quality = exp(-3 * loss)

    where the importances ``w`` (sum 1), the couplings ``|r| <= 0.6`` of disjoint pairs and the losses ``e_dc`` of the
    choices (0 for the best, 0.1 to 1 for others) are drawn. A choice that is not the best also moves the optimum of
    one numeric hyper-parameter by up to 0.15 of its scale. It is smooth in every numeric hyper-parameter, and nothing
    is as good as ``best``.

    Parameters
    ----------
    space
        The hyper-parameters. The order of their tables does not matter.
    seed
        The same space and seed give the same surface.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        rng = np.random.default_rng(seed)
        names = sorted(space.dimensions)
        numeric = [name for name in names if not isinstance(space.dimensions[name], Choice)]
        importance = np.exp(rng.normal(size=len(names)))
        self._weight = dict(zip(names, (importance / importance.sum()).tolist(), strict=True))
        self._unit: dict[str, Callable[[Any], float]] = {name: space.dimensions[name].unit for name in names}
        best: dict[str, Json] = {}
        self._optimum: dict[str, float] = {}
        self._loss: dict[str, NDArray[np.float64]] = {}
        self._shift: dict[str, tuple[str, NDArray[np.float64]]] = {}
        self._choices: dict[str, tuple[Any, ...]] = {}
        for name in names:
            dimension = space.dimensions[name]
            if not isinstance(dimension, Choice):
                # a whole number's optimum is one of its values: the best can be reached
                best[name] = dimension.at(rng.uniform(_MARGIN, 1 - _MARGIN))
                self._optimum[name] = dimension.unit(best[name])
                continue
            n = len(dimension.choices)
            right = int(rng.integers(n))
            loss, shift = rng.uniform(0.1, 1.0, n), rng.uniform(-_SHIFT, _SHIFT, n)
            loss[right] = shift[right] = 0.0
            best[name] = dimension.choices[right]
            self._choices[name], self._loss[name] = dimension.choices, loss
            if numeric:
                self._shift[name] = (numeric[int(rng.integers(len(numeric)))], shift)
        self.best: dict[str, Json] = {name: best[name] for name in space.dimensions}
        """The best hyper-parameters; their quality is 1."""
        order = rng.permutation(len(numeric)).tolist()
        self._pairs = [
            (numeric[a], numeric[b], float(rng.uniform(-_COUPLING, _COUPLING)))
            for a, b in zip(order[0::2], order[1::2], strict=False)
        ]

    def quality(self, params: Params) -> float:
        """Quality of ``params``, in [0, 1]; deterministic."""
        loss = 0.0
        optimum = dict(self._optimum)
        for name, choices in self._choices.items():
            choice = choices.index(params[name])
            loss += self._weight[name] * float(self._loss[name][choice])
            if name in self._shift:
                moved, by = self._shift[name]
                optimum[moved] += float(by[choice])
        z = {
            name: math.sqrt(self._weight[name]) * 2 * (self._unit[name](params[name]) - where)
            for name, where in optimum.items()
        }
        loss += sum(distance * distance for distance in z.values())
        loss += 2 * sum(coupling * z[a] * z[b] for a, b, coupling in self._pairs)
        return math.exp(-_SHARPNESS * max(loss, 0.0))
