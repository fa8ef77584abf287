"""Scores of trials without training: made-up learning curves, or a function of the user's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bfreplay import checks
from bfreplay.campaigns.parts import Params, Purpose, stream
from bfreplay.campaigns.search_space import Choice, SearchSpace
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.registry import import_code, one_line

_SHARPNESS = 3.0
"""Factor of the loss: random hyper-parameters have a mean quality between 1/4 and 1/2, however many there are."""
_MARGIN = 0.25
"""Least distance of the optimum from the ends of each scale."""
_SHIFT = 0.15
"""Largest shift of the optimum of another hyper-parameter by a choice."""
_COUPLING = 0.6
"""Largest coupling of a pair; below 1 the optimum is unique."""


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
        generator = np.random.default_rng(seed)
        names = sorted(space.dimensions)
        numeric = [param_name for param_name in names if not isinstance(space.dimensions[param_name], Choice)]
        importance = np.exp(generator.normal(size=len(names)))
        self._weight = dict(zip(names, (importance / importance.sum()).tolist(), strict=True))
        self._unit: dict[str, Callable[[Any], float]] = {}
        best: dict[str, Json] = {}
        self._optimum: dict[str, float] = {}
        self._loss: dict[str, NDArray[np.float64]] = {}
        self._shift: dict[str, tuple[str, NDArray[np.float64]]] = {}
        self._choices: dict[str, tuple[Any, ...]] = {}
        for param_name in names:
            dimension = space.dimensions[param_name]
            if not isinstance(dimension, Choice):
                # a whole number's optimum is one of its values: the best can be reached
                best[param_name] = dimension.at(generator.uniform(_MARGIN, 1 - _MARGIN))
                self._unit[param_name] = dimension.unit
                self._optimum[param_name] = dimension.unit(best[param_name])
                continue
            n_choices = len(dimension.choices)
            best_index = int(generator.integers(n_choices))
            losses, shifts = generator.uniform(0.1, 1.0, n_choices), generator.uniform(-_SHIFT, _SHIFT, n_choices)
            losses[best_index] = shifts[best_index] = 0.0
            best[param_name] = dimension.choices[best_index]
            self._choices[param_name], self._loss[param_name] = dimension.choices, losses
            if numeric:
                self._shift[param_name] = (numeric[int(generator.integers(len(numeric)))], shifts)
        self.best: dict[str, Json] = {param_name: best[param_name] for param_name in space.dimensions}
        """The best hyper-parameters; their quality is 1."""
        order = generator.permutation(len(numeric)).tolist()
        self._pairs = [
            (numeric[first], numeric[second], float(generator.uniform(-_COUPLING, _COUPLING)))
            for first, second in zip(order[0::2], order[1::2], strict=False)
        ]

    def quality(self, params: Params) -> float:
        """Return the quality of ``params``, in [0, 1]; deterministic."""
        total_loss = 0.0
        optimum = dict(self._optimum)
        for name, choices in self._choices.items():
            choice = choices.index(params[name])
            total_loss += self._weight[name] * float(self._loss[name][choice])
            if name in self._shift:
                other_name, shifts = self._shift[name]
                optimum[other_name] += float(shifts[choice])
        distances = {
            name: math.sqrt(self._weight[name]) * 2 * (self._unit[name](params[name]) - place_of_optimum)
            for name, place_of_optimum in optimum.items()
        }
        total_loss += sum(distance * distance for distance in distances.values())
        total_loss += 2 * sum(coupling * distances[one] * distances[other] for one, other, coupling in self._pairs)
        return math.exp(-_SHARPNESS * max(total_loss, 0.0))


_FORM = "package.module:function"
_EPOCH_PARTS = 1_000_000
"""Parts of an epoch; noise is drawn anew in each."""


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """Scores of the made-up learning curves.

    Parameters
    ----------
    start
        Score before training.
    worst, best
        Scores that the worst and the best trial would reach with training without end; ``start`` is no better than
        ``worst``, and ``worst`` no better than ``best``.
    pace
        Exponents of the power law lie between these two, > 0: the larger, the sooner a trial is near its final score.
    noise
        Standard deviation of the noise added to each score, >= 0.

    Raises
    ------
    InputError
        Scores or exponents are out of order.
    """

    start: float
    worst: float
    best: float
    pace: tuple[float, float] = (0.5, 1.5)
    noise: float = 0.005

    def __post_init__(self) -> None:
        if not (self.start <= self.worst <= self.best or self.start >= self.worst >= self.best):
            raise InputError(
                "worst does not lie between start and best",
                column="worst",
                value=self.worst,
                expected=f"a score from start ({self.start:g}) to best ({self.best:g})",
                fix="start is the score before training, worst and best are those after it",
            )
        checks.number("pace", self.pace[1], least=self.pace[0])

    @classmethod
    def usual(cls, higher_is_better: bool) -> ScoreRange:
        """Return a range like that of an accuracy, or of a loss."""
        return cls(0.1, 0.5, 0.95) if higher_is_better else cls(2.3, 1.5, 0.3)


class LearningCurves:
    """Seeded, made-up learning curves: a power law towards a final score.

    With final score ``f`` and pace ``c`` of a trial, its score after ``e`` epochs is

        f + (start - f) * (1 + e)**-c + noise

    the "pow3" of T. Domhan et al., Speeding up Automatic Hyperparameter Optimization of Deep Neural Networks by
    Extrapolation of Learning Curves, IJCAI 2015, with its start at ``start``. ``f`` lies between ``worst`` and
    ``best`` at the trial's quality; curves of different pace cross, which is what makes early pruning err. Quality
    (without ``surface``), pace and noise come from (seed, trial number) alone, the noise from the epoch too.

    Parameters
    ----------
    scores
        Range of the scores.
    seed
        The same seed gives the same curves.
    surface
        Quality of hyper-parameters; without it a trial's quality is random, uniform from 0 to 1.
    """

    def __init__(self, scores: ScoreRange, seed: int, surface: ResponseSurface | None = None) -> None:
        self._scores = scores
        self._seed = seed
        self._surface = surface

    def score(self, number: int, params: Params, epoch: float) -> float:
        """Return the score after ``epoch`` epochs."""
        scores = self._scores
        if self._surface is None:
            quality = float(stream(self._seed, Purpose.QUALITY, number).random())
        else:
            quality = self._surface.quality(params)
        final_score = scores.worst + quality * (scores.best - scores.worst)
        pace = float(stream(self._seed, Purpose.PACE, number).uniform(*scores.pace))
        score = final_score + (scores.start - final_score) * (1.0 + epoch) ** -pace
        if scores.noise:
            noise_stream = stream(self._seed, Purpose.NOISE, number, round(epoch * _EPOCH_PARTS))
            score += scores.noise * float(noise_stream.standard_normal())
        return float(score)

    def describe(self) -> dict[str, object]:
        """Return its parameters."""
        scores = self._scores
        return {
            "kind": "made-up learning curves",
            **asdict(scores),
            "pace": list(scores.pace),
            "quality": "drawn" if self._surface is None else "of the hyper-parameters",
        }


class ScoreFunction:
    """A user's own ``score(number, params, epoch)``.

    Parameters
    ----------
    location
        ``"package.module:function"``.
    allow_code
        True if it may be imported; false for a name from a file.

    Raises
    ------
    InputError
        The function may not or cannot be imported, or is not callable.
    """

    def __init__(self, location: str, *, allow_code: bool = True) -> None:
        self._location = location
        self._function: Callable[[int, Params, float], float] = import_code(
            location, "the score function", _FORM, "function", allow_code=allow_code
        )
        if not callable(self._function):
            raise InputError("the score function is no function", column="function", value=location, expected=_FORM)

    def score(self, number: int, params: Params, epoch: float) -> float:
        """Return the score that the function gives.

        Raises
        ------
        InputError
            The function fails, or gives no finite number.
        """
        arguments = {"number": number, "params": dict(params), "epoch": epoch}
        try:
            score = float(self._function(number, params, epoch))
        except Exception as error:  # the user's code may raise anything
            problem = f"the score function {self._location!r} failed: {one_line(error)}"
            raise InputError(problem, value=arguments) from error
        if not math.isfinite(score):
            problem = f"the score function {self._location!r} gave {score} for a trial"
            raise InputError(problem, value=arguments, expected="a finite number")
        return score

    def describe(self) -> dict[str, object]:
        """Return its name."""
        return {"kind": "function", "function": self._location}
