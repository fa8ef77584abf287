"""Pairs against each other: performance profiles, and time against the size of a decision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bfreplay.experiments.formulation_lab.answers import Answer
from bfreplay.experiments.formulation_lab.pairs import EXACT
from bfreplay.experiments.formulation_lab.summary import by_pair
from bfreplay.experiments.formulation_lab.tables import ProfileStep, SizeBin

FIELDS = ("all", "milp")
"""Who competes: everybody, or the pairs without the exact solver."""


def performance_profile(answers: Sequence[Answer], pairs: Sequence[str]) -> list[ProfileStep]:
    """Performance profiles of both fields, as the steps of their curves.

    For decision d and pair p let ``r[d, p]`` be p's seconds (build and solve) over those of the fastest pair of the
    field; a pair without a proof has ``r = inf``. The profile ``rho_p(tau)`` is the share of decisions with
    ``r[d, p] <= tau`` (Dolan and More, Benchmarking optimization software with performance profiles, Math. Program.
    91, 2002, 201-213, equations 2.1 and 2.2). Decisions that nobody proved count as not solved by all.

    Returns
    -------
    list
        Every pair has a step at ``tau = 1``.
    """
    rows = []
    for field in FIELDS:
        entrants = [name for name in pairs if field == "all" or name != EXACT]
        for name, ratios in _ratios(answers, entrants).items():
            finite = np.sort([ratio for ratio in ratios if np.isfinite(ratio)])
            for tau in np.unique(np.append(finite, 1.0)).tolist():
                share = float(np.searchsorted(finite, tau, side="right")) / len(ratios)
                rows.append(ProfileStep(field=field, pair=name, tau=tau, share=share))
    return rows


def _ratios(answers: Sequence[Answer], entrants: Sequence[str]) -> dict[str, list[float]]:
    """For each entrant one ratio a decision."""
    best: dict[int, float] = defaultdict(lambda: np.inf)
    for answer in answers:
        if answer.pair in entrants and answer.is_proven:
            best[answer.decision] = min(best[answer.decision], answer.total_s)
    grouped = by_pair(answers)
    return {
        name: [_over(answer.total_s, best[answer.decision]) if answer.is_proven else np.inf for answer in grouped[name]]
        for name in entrants
    }


def _over(seconds: float, best: float) -> float:
    return 1.0 if seconds <= best else seconds / best if best > 0 else np.inf


def time_by_size(
    answers: Iterable[Answer], sizes: Mapping[int, tuple[int, int]], pairs: Sequence[str]
) -> list[SizeBin]:
    """Median seconds of each pair by the size of the decision, jobs x idle nodes in powers of two.

    Parameters
    ----------
    sizes
        Jobs and idle nodes of each decision, by its index.

    Returns
    -------
    list
        For each pair the bins with decisions, by size; ``total_median_s`` is over the proven answers.
    """
    rows = []
    grouped = by_pair(answers)
    for name in pairs:
        bins: dict[int, list[Answer]] = defaultdict(list)
        for answer in grouped[name]:
            n_jobs, n_idle = sizes[answer.decision]
            bins[(n_jobs * n_idle).bit_length() - 1].append(answer)
        for power, inside in sorted(bins.items()):
            proven = [answer.total_s for answer in inside if answer.is_proven]
            columns = [answer.columns for answer in inside if answer.columns is not None]
            rows.append(
                SizeBin(
                    pair=name,
                    size_from=2**power,
                    size_to=2 ** (power + 1),
                    decisions=len(inside),
                    proven=len(proven),
                    n_jobs_median=float(np.median([sizes[answer.decision][0] for answer in inside])),
                    n_idle_median=float(np.median([sizes[answer.decision][1] for answer in inside])),
                    columns_median=float(np.median(columns)) if columns else None,
                    total_median_s=float(np.median(proven)) if proven else None,
                )
            )
    return rows
