"""Choice of a law: the best fit to measurements, others as good, and the measurements that would tell them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from bfreplay import checks
from bfreplay.scalability.fitting import FittedLaw, fit_law, needs, too_few, why_not
from bfreplay.scalability.law import Curve, Floats, Law, MeasuredLaw, Scaling, laws_for, name_of
from bfreplay.scalability.measurements import Measurements
from bfreplay.scalability.tabulated import TabulatedCurve

FAR_TIMES = 8.0
"""A repeat is far off beyond this many times the scatter of repeats ..."""
FAR_AT_LEAST = 0.20
"""... and by at least this factor less 1: what is closer changes no curve much."""
_NORMAL = 1.4826
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Outlier:
    """A measurement far from its repeats.

    Parameters
    ----------
    row
        Its row, as in `Measurements.rows`.
    nodes, rate
        Node count and measured rate, samples/s.
    siblings
        The other rates measured at that count, in the order of the file. Of two that lie apart either may be wrong:
        both are reported, each as the sibling of the other.
    scatter
        Scatter of the repeats at all counts: a robust standard deviation of log rates.
    """

    row: int | str
    nodes: int
    rate: float
    siblings: tuple[float, ...]
    scatter: float

    @property
    def middle(self) -> float:
        """Median of the siblings."""
        return float(np.exp(np.median(np.log(self.siblings))))


def outliers(measurements: Measurements) -> tuple[Outlier, ...]:
    """Return the measurements far from the median of their count, in the order of counts.

    Far is a log rate that lies off by more than log 1.2, and by more than 8 times the scatter of repeats: 1.4826 times
    the (lower) median of such distances over all counts with repeats, which a few bad measurements do not move (P. J.
    Rousseeuw and C. Croux, JASA 88 (1993) 1273). A median that is itself a measurement has no distance to count. With
    normal scatter of log rates there is a false alarm in at most 2 of 100 tables with 3 repeats at 4 counts or more,
    4 of 100 with 2 at 4; and almost none where repeats agree to 10 %.
    """
    nodes, log_rates = np.asarray(measurements.nodes), np.log(measurements.rates)
    deviation = np.zeros(len(nodes))
    distances: list[float] = []
    for count in measurements.counts:
        is_at_count = nodes == count
        deviation[is_at_count] = log_rates[is_at_count] - np.median(log_rates[is_at_count])
        distances += np.sort(np.abs(deviation[is_at_count]))[int(is_at_count.sum()) % _PAIR :].tolist()
    if not distances:
        return ()
    scatter = _NORMAL * sorted(distances)[(len(distances) - 1) // 2]
    threshold = max(math.log1p(FAR_AT_LEAST), FAR_TIMES * scatter)
    return tuple(
        Outlier(
            measurements.rows[index],
            int(nodes[index]),
            measurements.rates[index],
            tuple(measurements.rates[sibling] for sibling in np.flatnonzero(nodes == nodes[index]) if sibling != index),
            float(scatter),
        )
        for index in np.flatnonzero(np.abs(deviation) > threshold)
    )


TIED_WITHIN = 2.0
"""Laws within this of the least AICc are as good (K. P. Burnham and D. R. Anderson, Model Selection, 2002)."""
_SAME_CURVE = 1e-3
_COUNTS_TO_TRY = 4096


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A law that was not fitted, with the reason.

    Parameters
    ----------
    law, reason
        Its name, and the reason in a clause.
    needs
        Node counts and measurements that it needs, if these are too few; else ``None``.
    """

    law: str
    reason: str
    needs: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Tie:
    """Laws that the measurements cannot tell from the best one.

    Parameters
    ----------
    laws
        Their names, the best one first.
    apart
        Largest difference from the best law at ``max_nodes``, over its rate there.
    max_nodes
        Node count of that difference.
    measure_at
        Node count, up to ``max_nodes``, whose measurement tells them apart best.
    apart_there
        Largest difference there.
    """

    laws: tuple[str, ...]
    apart: float
    max_nodes: int
    measure_at: int
    apart_there: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Every law that could be fitted, and the one to use.

    Parameters
    ----------
    measurements
        Measurements of the fits.
    fits
        Fitted laws by AICc, the least first; then laws without one, by number of parameters and by scatter.
    left_out
        Laws that were not fitted.
    best
        Law to use: the least AICc among the laws that fit; ``None`` if none does.
    same_curve
        Laws that are the same curve as the best one, to 0.1 % at every count up to ``max_nodes``: they need not be
        told apart.
    tie
        Other laws that are as good; ``None`` if there are none.
    max_nodes
        Largest node count at which the curve is to be used.
    outliers
        Measurements far from their repeats; the fits include them.
    """

    measurements: Measurements
    fits: tuple[FittedLaw, ...]
    left_out: tuple[LeftOut, ...]
    best: FittedLaw | None
    same_curve: tuple[str, ...]
    tie: Tie | None
    max_nodes: int
    outliers: tuple[Outlier, ...] = ()

    @property
    def least_needs(self) -> tuple[int, int] | None:
        """Node counts and measurements of the least demanding law, where these are too few for any; else ``None``."""
        requirements = [unfit.needs for unfit in self.left_out if unfit.needs is not None]
        return min(requirements) if requirements and len(requirements) == len(self.left_out) and not self.fits else None

    @property
    def curve(self) -> Curve:
        """The best law; where none fits, the means of the measurements as points."""
        return means_as_points(self.measurements) if self.best is None else self.best.curve

    @property
    def measured_curve(self) -> Curve:
        """The curve with the node counts that were measured, as files of curves hold it."""
        curve, counts = self.curve, self.measurements.counts
        return MeasuredLaw(curve, (self.min_nodes, int(counts[-1]))) if isinstance(curve, Law) else curve

    @property
    def min_nodes(self) -> int:
        """Smallest measured count: fewest nodes of a job that names no other."""
        return int(self.measurements.counts[0])

    def to_dict(self) -> dict[str, object]:
        """Return JSON-ready values; ``None`` for infinite values and for tests that were not possible."""
        return {
            "measurements": len(self.measurements.nodes),
            "counts": self.measurements.counts.tolist(),
            "means": self.measurements.means.tolist(),
            "repeats": self.measurements.repeats.tolist(),
            "min_nodes": self.min_nodes,
            "max_nodes": self.max_nodes,
            "outliers": [asdict(entry) | {"siblings": list(entry.siblings)} for entry in self.outliers],
            "best": None if self.best is None else name_of(type(self.best.curve)),
            "same_curve": list(self.same_curve),
            "tie": None if self.tie is None else asdict(self.tie) | {"laws": list(self.tie.laws)},
            "fits": [_fit_dict(entry) for entry in self.fits],
            "left_out": [asdict(entry) | {"needs": entry.needs and list(entry.needs)} for entry in self.left_out],
        }


def fit_all(
    nodes: Sequence[float] | Floats,
    rates: Sequence[float] | Floats,
    scaling: Scaling | str = Scaling.EITHER,
    max_nodes: int | None = None,
) -> Choice:
    """Fit every registered law to measured rates and choose one.

    Parameters
    ----------
    nodes, rates
        One measurement each, in samples/s.
    scaling
        Scaling of the measurements, ``weak`` or ``strong``: laws of the other scaling are not fitted.
    max_nodes
        Largest node count at which the curve is to be used; by default the largest measured count.

    Raises
    ------
    InputError
        Measurements out of range, or rates that fall over the whole range.
    """
    return choose(Measurements(nodes, rates), laws_for(Scaling(scaling)), max_nodes)


def choose(
    measurements: Measurements, laws: Sequence[type[Law]], max_nodes: int | None = None, insist: bool = False
) -> Choice:
    """Fit these laws and choose among them, as `fit_all` does; the first of laws that are one curve is preferred.

    With ``insist`` a law is chosen even if none fits.
    """
    last_count = int(measurements.counts[-1]) if max_nodes is None else max_nodes
    checks.whole("max_nodes", last_count, 1)
    left_out, results, distant = [], [], outliers(measurements)
    for law in laws:
        refusal = why_not(measurements, law)
        if refusal is None:
            results.append(fit_law(measurements, law))
        else:
            left_out.append(LeftOut(name_of(law), refusal.problem, needs(law) if too_few(measurements, law) else None))
    results.sort(key=_order)
    candidates = [candidate for candidate in results if candidate.fits] or (results if insist else [])
    if not candidates:
        return Choice(measurements, tuple(results), tuple(left_out), None, (), None, last_count, distant)
    best_fit = candidates[0]
    counts = _counts(last_count)
    equivalents = [
        candidate
        for candidate in candidates[1:]
        if candidate.aicc - best_fit.aicc <= TIED_WITHIN or math.isinf(best_fit.aicc)
    ]
    same_curve = [
        candidate for candidate in equivalents if np.abs(_apart(candidate, best_fit, counts)).max() <= _SAME_CURVE
    ]
    rivals = [candidate for candidate in equivalents if candidate not in same_curve]
    same_names = tuple(name_of(type(candidate.curve)) for candidate in same_curve)
    tie = _tie(best_fit, rivals, counts) if rivals else None
    return Choice(measurements, tuple(results), tuple(left_out), best_fit, same_names, tie, last_count, distant)


def means_as_points(measurements: Measurements) -> TabulatedCurve:
    """Return the geometric mean at each count as points, with a straight line from (0, 0) to the first."""
    return TabulatedCurve([0, *measurements.counts.tolist()], [0.0, *measurements.means.tolist()], measurements.name)


def _fit_dict(result: FittedLaw) -> dict[str, object]:
    law = result.curve
    return {
        "law": name_of(type(law)),
        "scaling": law.scaling.value,
        "formula": law.formula,
        "parameters": {
            parameter.name: {"value": value, "low": low, "high": finite_or_none(high)}
            for parameter, value, (low, high) in zip(law.parameters, law.values, result.intervals, strict=True)
        },
        "scatter": result.scatter,
        "aicc": finite_or_none(result.aicc),
        "lack_of_fit_p": result.lack_of_fit_p,
        "fits": result.fits,
    }


def finite_or_none(number: float) -> float | None:
    """Return the number, or ``None`` for ``nan`` and infinities."""
    return number if math.isfinite(number) else None


def _order(result: FittedLaw) -> tuple[float, int, float]:
    # rounded: laws that are one curve differ in the last digits, and the first registered shall lead
    if math.isinf(result.aicc):
        return result.aicc, len(result.intervals), round(result.scatter, 9)
    return round(result.aicc, 6), 0, 0.0


def _tie(best: FittedLaw, rivals: Sequence[FittedLaw], counts: Floats) -> Tie:
    # one more measurement at n raises the sum of squares of a wrong law, fitted anew, by d² / (1 + h): d the distance
    # of the two laws there, h the wrong one's leverage; which one is wrong is not known
    gains = np.zeros(len(counts))
    for rival in rivals:
        distance = np.log1p(_apart(rival, best, counts))
        gains += distance**2 / (1.0 + np.maximum(best.leverage(counts), rival.leverage(counts)))
    best_index = int(np.argmax(gains))
    differences = np.max([np.abs(_apart(rival, best, counts)) for rival in rivals], axis=0)
    names = tuple(name_of(type(result.curve)) for result in (best, *rivals))
    return Tie(names, float(differences[-1]), int(counts[-1]), int(counts[best_index]), float(differences[best_index]))


def _apart(result: FittedLaw, reference: FittedLaw, counts: Floats) -> Floats:
    return np.asarray(result.curve.rates(counts) / reference.curve.rates(counts) - 1.0, dtype=np.float64)


def _counts(last_count: int) -> Floats:
    """Return every count up to ``last_count``; beyond 4,096, as many of them evenly over logarithms."""
    if last_count <= _COUNTS_TO_TRY:
        return np.arange(1.0, last_count + 1)
    return np.unique(np.round(np.geomspace(1, last_count, _COUNTS_TO_TRY)))
