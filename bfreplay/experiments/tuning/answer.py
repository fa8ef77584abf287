"""The recommendation in two sentences."""

from __future__ import annotations

from bfreplay.experiments.tuning.grid import Grid
from bfreplay.experiments.tuning.recommendation import FLAT, Recommendation
from bfreplay.experiments.tuning.surface import SAMPLES, Surface
from bfreplay.experiments.tuning.words import percent, seconds
from bfreplay.result_folders.tuning import Validation
from bfreplay.wording import count, duration

_NOTHING = 5e-5


def answer_of(
    grid: Grid, found: Recommendation, validation: Validation | None, surfaces: tuple[Surface, Surface]
) -> list[str]:
    """What to use and what that gave on the validation part; then how much it matters."""
    t_fwd = found.t_fwd if isinstance(found.t_fwd, str) else f"{found.t_fwd:g}"
    options = f"Use --t-fwd {t_fwd} --max-parallel {found.max_parallel}"
    return [
        f"{options}: {_worth(found, validation, surfaces[1])}.",
        f"{_flatness(found)}{_number(grid, found)}.",
    ]


def _worth(found: Recommendation, validation: Validation | None, surface: Surface) -> str:
    where = "on the part of the log that it was not tuned on"
    if validation is None:
        return f"{where} no job processed anything, so nothing tells what this is worth"
    beside = _beside(found, validation, surface.measure)
    if surface.measure != SAMPLES:
        return f"{where} all work is then done after {duration(float(surface.value[found.at]))}, {beside}"
    if validation.share_of_bound is None:
        return f"{where} this gives {surface.value[found.at]:.4g} samples, {beside}"
    return f"{where} this gives {percent(validation.share_of_bound)} % of the upper bound, {beside}"


def _beside(found: Recommendation, validation: Validation, measure: str) -> str:
    if validation.best_t_fwd == found.t_fwd:
        return "and no other T_fwd that was tried would have been better there"
    best = f"the best value there ({seconds(validation.best_t_fwd)})"
    lost = percent(validation.loss)
    if measure != SAMPLES:
        return f"as soon as with {best}" if validation.loss < _NOTHING else f"at {lost} % less speed than with {best}"
    would = f"the best value there would have given ({seconds(validation.best_t_fwd)})"
    return f"as much as {would}" if validation.loss < _NOTHING else f"{lost} % less than {would}"


def _flatness(found: Recommendation) -> str:
    column = next(each for each in found.columns if each.max_parallel == found.max_parallel)
    flat = column.flat[0]
    near = percent(FLAT[0])
    if flat is None:
        return "No fixed T_fwd was tried"
    if flat[0] == flat[1]:
        return f"T_fwd matters: of the fixed values only {flat[0]:g} s comes within {near} % of the best of them"
    return f"Any T_fwd from {flat[0]:g} to {flat[1]:g} s comes within {near} % of the best fixed one"


def _number(grid: Grid, found: Recommendation) -> str:
    numbers = grid.max_parallel
    if len(numbers) == 1:
        return ""
    at = found.at[1]
    below, above = numbers[:at], numbers[at + 1 :]
    best = max(found.columns, key=lambda column: column.share)
    words = []
    if below:
        lost = 1 - found.columns[at - 1].share / best.share
        words.append(f"{count(below[-1], 'job')} at once {'loses' if below[-1] == 1 else 'lose'} {percent(lost)} %")
    if above:
        mine = found.columns[at].share / best.share
        nothing = 1 - mine <= _NOTHING
        words.append("more gain nothing" if nothing else f"more gain {percent(1 / mine - 1)} % at most")
    return "; " + ", and ".join(words) if words else ""
