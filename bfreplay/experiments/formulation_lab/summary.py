"""Tables of the lab: summary of each pair, performance profiles, and time by size of a decision."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bfreplay.experiments.formulation_lab.pairs import EXACT
from bfreplay.experiments.formulation_lab.trials import SOLVED, Answer, Outcome, relative_loss
from bfreplay.milp.verify import RELATIVE_TOLERANCE
from bfreplay.result_folders.lab import SummaryRow, Winner
from bfreplay.result_folders.records import JsonObject, RecordPart, TimeUs


class DecisionRow(RecordPart, frozen=True, kw_only=True):
    """One sampled decision."""

    index: int
    time: TimeUs
    n_idle: int
    n_jobs: int
    n_held: int
    optimum: float | None
    published_optimum: float | None
    stratum: str


class ProfileStep(RecordPart, frozen=True, kw_only=True):
    """One step of a profile: ``share`` of the decisions from ``tau`` up to the pair's next row."""

    field: str
    pair: str
    tau: float
    share: float


class SizeBin(RecordPart, frozen=True, kw_only=True):
    """One pair on decisions of ``size_from`` to ``size_to`` (excluded) jobs x idle nodes."""

    pair: str
    size_from: int
    size_to: int
    decisions: int
    proven: int
    n_jobs_median: float
    n_idle_median: float
    columns_median: float | None
    total_median_s: float | None


ROWS: dict[str, type] = {
    "decisions": DecisionRow,
    "answers": Answer,
    "summary": SummaryRow,
    "profile": ProfileStep,
    "time_by_size": SizeBin,
}
"""Row class by name of the table."""


SHIFT_S = 1e-3
"""Shift of the geometric mean."""


def by_pair(answers: Iterable[Answer]) -> defaultdict[str, list[Answer]]:
    """Group answers by pair."""
    answers_of_pair = defaultdict(list)
    for answer in answers:
        answers_of_pair[answer.pair].append(answer)
    return answers_of_pair


def summarise(answers: Sequence[Answer], pairs: Sequence[str], time_limit_s: float) -> list[SummaryRow]:
    """Sum up the answers of each of ``pairs``; columns are explained in docs/formulation-lab.md.

    Medians and percentiles of seconds, gap and loss are over solved answers (proven or feasible), those of model
    sizes over all models that were built; ``None`` without values. ``sgm_s`` is over all decisions.
    """
    answers_of_pair = by_pair(answers)
    exact_s = {answer.decision: answer.total_s for answer in answers_of_pair[EXACT] if answer.is_proven}
    wins = fastest(answers)
    return [_row(pair_name, answers_of_pair[pair_name], exact_s, wins[pair_name], time_limit_s) for pair_name in pairs]


def fastest(answers: Iterable[Answer]) -> Counter[str]:
    """Count the decisions on which each pair had the fastest proof; the exact solver does not compete."""
    proofs = [answer for answer in answers if answer.is_proven and answer.pair != EXACT]
    proofs.sort(key=lambda answer: (answer.total_s, answer.pair), reverse=True)
    return Counter({answer.decision: answer.pair for answer in proofs}.values())  # the last is the fastest


def shifted_geometric_mean(seconds: Sequence[float], shift: float = SHIFT_S) -> float:
    """Return ``(prod (t_i + s))^(1/n) - s``, which no single slow or tiny solve dominates.

    As in Achterberg, Constraint Integer Programming (2007), appendix A.3, and in Mittelmann's benchmarks; they shift
    by seconds because their solves take minutes.
    """
    return math.exp(math.fsum(math.log(duration_s + shift) for duration_s in seconds) / len(seconds)) - shift


def winner(rows: Sequence[SummaryRow]) -> Winner | None:
    """Return the pair with most of the fastest proofs (then least ``sgm_s``); ``None`` if no pair proved anything."""
    rows_with_proofs = [summary_row for summary_row in rows if summary_row.pair != EXACT and summary_row.proven]
    if not rows_with_proofs:
        return None
    best = min(rows_with_proofs, key=lambda summary_row: (-summary_row.fastest, summary_row.sgm_s, summary_row.pair))
    return Winner(pair=best.pair, fastest=best.fastest, decisions=best.decisions, times_exact=best.times_exact)


def _row(name: str, answers: Sequence[Answer], exact_s: dict[int, float], wins: int, time_limit_s: float) -> SummaryRow:
    outcomes = Counter(answer.outcome for answer in answers)
    solved_answers = [answer for answer in answers if answer.outcome in SOLVED]
    answers_with_model = [answer for answer in answers if answer.columns is not None]
    ratios = [
        answer.total_s / exact_s[answer.decision]
        for answer in answers
        if answer.is_proven and exact_s.get(answer.decision, 0.0) > 0
    ]
    penalised_s = [answer.total_s if answer.is_proven else max(answer.total_s, time_limit_s) for answer in answers]
    medians: JsonObject = {}
    for measure in ("build", "solve", "total"):
        seconds = [getattr(answer, f"{measure}_s") for answer in solved_answers]
        medians |= {f"{measure}_median_s": _percentile(seconds, 50), f"{measure}_p95_s": _percentile(seconds, 95)}
    for measure in ("columns", "rows", "entries"):
        medians[f"{measure}_median"] = _percentile([getattr(answer, measure) for answer in answers_with_model], 50)
    gaps = [math.inf if answer.gap is None else answer.gap for answer in solved_answers]
    losses = [math.inf if answer.relative_loss is None else answer.relative_loss for answer in solved_answers]
    # of the two exact optima: with --gap an answer that counts as proven may lose more than the formulation costs
    relative_losses = [
        relative_loss(answer.posed_optimum, answer.optimum)
        for answer in answers
        if answer.is_proven and answer.posed_optimum is not None and answer.optimum is not None
    ]
    return SummaryRow(
        pair=name,
        formulation=answers[0].formulation,
        backend=answers[0].backend,
        decisions=len(answers),
        solved=len(solved_answers),
        **{outcome.value: outcomes[outcome] for outcome in Outcome},
        fastest=wins,
        **medians,
        sgm_s=shifted_geometric_mean(penalised_s),
        times_exact=_percentile(ratios, 50),
        gap_median=_percentile(gaps, 50),
        gap_worst=_percentile(gaps, 100),
        loss_median=_percentile(losses, 50),
        loss_worst=_percentile(losses, 100),
        loss_proven_worst=_percentile(relative_losses, 100),
        better_than_exact=sum(loss < -RELATIVE_TOLERANCE for loss in losses),
        workers_lost=sum(answer.worker_lost for answer in answers),
    )


def _percentile(values: Sequence[float], percent: float) -> float | None:
    """Return a percentile, linear between neighbours; ``None`` without values, and if it is infinite."""
    if not values:
        return None
    ascending = np.sort(np.asarray(values, dtype=np.float64))
    position = percent / 100 * (len(ascending) - 1)
    low, high = math.floor(position), math.ceil(position)
    if math.isinf(ascending[high]):
        return None
    return float(ascending[low] + (position - low) * (ascending[high] - ascending[low]))


FIELDS = ("all", "milp")
"""Competitors: all, or the pairs without the exact solver."""


def performance_profile(answers: Sequence[Answer], pairs: Sequence[str]) -> list[ProfileStep]:
    """Return the performance profiles of both fields, as steps of their curves.

    For decision d and pair p let ``r[d, p]`` be p's seconds (build and solve) over those of the fastest pair of the
    field; a pair without a proof has ``r = inf``. The profile ``rho_p(tau)`` is the share of decisions with
    ``r[d, p] <= tau`` (Dolan and More, Benchmarking optimization software with performance profiles, Math. Program.
    91, 2002, 201-213, equations 2.1 and 2.2). Decisions that no pair proved count as unsolved by all.

    Returns
    -------
    list
        Every pair has a step at ``tau = 1``.
    """
    rows = []
    for field in FIELDS:
        entrants = [pair_name for pair_name in pairs if field == "all" or pair_name != EXACT]
        for pair_name, ratios in _ratios(answers, entrants).items():
            finite = np.sort([ratio for ratio in ratios if np.isfinite(ratio)])
            for tau in np.unique(np.append(finite, 1.0)).tolist():
                share = float(np.searchsorted(finite, tau, side="right")) / len(ratios)
                rows.append(ProfileStep(field=field, pair=pair_name, tau=tau, share=share))
    return rows


def _ratios(answers: Sequence[Answer], entrants: Sequence[str]) -> dict[str, list[float]]:
    """Return for each entrant one ratio per decision."""
    fastest_s: dict[int, float] = defaultdict(lambda: np.inf)
    for answer in answers:
        if answer.pair in entrants and answer.is_proven:
            fastest_s[answer.decision] = min(fastest_s[answer.decision], answer.total_s)
    answers_of_pair = by_pair(answers)
    return {
        pair_name: [
            _over(answer.total_s, fastest_s[answer.decision]) if answer.is_proven else np.inf
            for answer in answers_of_pair[pair_name]
        ]
        for pair_name in entrants
    }


def _over(seconds: float, fastest_s: float) -> float:
    return 1.0 if seconds <= fastest_s else seconds / fastest_s if fastest_s > 0 else np.inf


def time_by_size(
    answers: Iterable[Answer], sizes: Mapping[int, tuple[int, int]], pairs: Sequence[str]
) -> list[SizeBin]:
    """Return the median seconds of each pair by size of the decision: jobs x idle nodes in powers of two.

    Parameters
    ----------
    sizes
        Number of jobs and idle nodes of each decision, by index.

    Returns
    -------
    list
        Nonempty bins of each pair, by size; ``total_median_s`` is over the proven answers.
    """
    rows = []
    answers_of_pair = by_pair(answers)
    for pair_name in pairs:
        bins: dict[int, list[Answer]] = defaultdict(list)
        for answer in answers_of_pair[pair_name]:
            n_jobs, n_idle = sizes[answer.decision]
            bins[(n_jobs * n_idle).bit_length() - 1].append(answer)
        for power, inside in sorted(bins.items()):
            proven = [answer.total_s for answer in inside if answer.is_proven]
            columns = [answer.columns for answer in inside if answer.columns is not None]
            rows.append(
                SizeBin(
                    pair=pair_name,
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
