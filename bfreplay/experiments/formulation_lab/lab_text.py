"""Text about a comparison of formulations."""

from __future__ import annotations

from collections.abc import Iterator

from bfreplay.datasets.times import iso_utc
from bfreplay.experiments.formulation_lab.pairs import EXACT
from bfreplay.experiments.formulation_lab.trials import SOLVED
from bfreplay.milp.verify import RELATIVE_TOLERANCE
from bfreplay.result_folders.lab import LabRecord, LabResult
from bfreplay.runs.run_warnings import warning_lines
from bfreplay.wording import aligned_lines, count, duration, labelled_lines, paragraphs, percent

_OUTCOMES = (
    ("wrong", "wrong"),
    ("crashed", "crash"),
    ("timed_out", "killed"),
    ("refused", "refused"),
    ("error", "error"),
    ("no_answer", "none"),
)


def render(result: LabResult) -> str:
    """Return the text: options, a table of the pairs by time, the winner, failures, paths."""
    record = result.record
    paragraphs_by_title = [("Winner", _winner(record)), *_failures(record), *_examples(result), *_losses(record)]
    parts = [
        warning_lines(record.warnings),
        labelled_lines(_header(record)),
        _table(record),
        labelled_lines(paragraphs_by_title),
        [*_not_compared(record)],
        labelled_lines(_files(result)),
    ]
    return paragraphs(parts)


def milliseconds(seconds: float | None) -> str:
    """Return seconds in ms: ``0.042``, ``0.71``, ``7.31``, ``15.2``, ``10,000``; ``-`` for unknown."""
    if seconds is None:
        return "-"
    value_ms = seconds * 1e3
    decimals = 0 if value_ms >= 100 else 1 if value_ms >= 10 else 2 if value_ms >= 0.1 else 3
    return f"{value_ms:,.{decimals}f}"


def _header(record: LabRecord) -> Iterator[tuple[str, str]]:
    config, sampling = record.config, record.sampling
    window = f"{iso_utc(config.window_start_us)} to {iso_utc(config.window_end_us)}"
    n_taken, n_available = sampling.taken, sampling.available
    n_strata = sum(stratum.taken > 0 for stratum in sampling.strata)
    strata = "1 stratum" if n_strata == 1 else f"{n_strata} strata"
    selection = f"{n_taken:,} of the {n_available:,} that need a solver, from {strata} (seed {config.seed})"
    if n_taken == n_available:
        selection = f"all {n_available:,} that need a solver ({sampling.asked:,} requested)"
    limit = f"{config.time_limit_s:g} s a decision, {count(config.threads, 'thread')}"
    yield "Window", f"{window} ({duration((config.window_end_us - config.window_start_us) / 1e6)})"
    yield "Decisions", selection
    yield "Solvers", f"{count(len(record.pairs), 'pair')}, {limit}, relative gap {config.relative_gap:g}"


def _table(record: LabRecord) -> list[str]:
    rows = sorted(record.summary, key=lambda row: (row.pair != EXACT, row.sgm_s, row.pair))
    outcomes = [(key, word) for key, word in _OUTCOMES if any(row[key] for row in rows)]
    head = ["", "proven", "feasible", *(word for _, word in outcomes), "fastest"]
    head += ["build", "solve", "total", "95 %", "mean", "columns", "rows"]
    cells = [head]
    for row in rows:
        line = [row.pair, f"{row.proven:,}", f"{row.feasible:,}", *(f"{row[key]:,}" for key, _ in outcomes)]
        line.append("" if row.pair == EXACT else f"{row.fastest:,}")
        keys = ("build_median_s", "solve_median_s", "total_median_s", "total_p95_s", "sgm_s")
        line += [milliseconds(row[key]) for key in keys]
        line += ["" if row[key] is None else f"{row[key]:,.0f}" for key in ("columns_median", "rows_median")]
        cells.append(line)
    note = (
        "Answers by outcome; milliseconds of solved decisions: medians of build, solve and total, 95th percentile of "
        "total;\nmean: shifted geometric mean over all decisions, one without a proof counting as the time limit; "
        "medians of columns and rows."
    )
    return [*aligned_lines(cells), note]


def _winner(record: LabRecord) -> str:
    best = record.winner
    if best is None:
        return "none: no pair proved an optimum"
    text = f"fastest proof on {percent(best.fastest / best.decisions)} of the decisions: {best.pair}"
    if len(record.pairs) == 1:
        text = f"{best.pair}, the only pair"
    ratio = best.times_exact
    if ratio is None:
        return text
    return f"{text}; exact " + (
        f"is {_times(ratio)} times faster" if ratio >= 1 else f"takes {_times(1 / ratio)} x its time"
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _failures(record: LabRecord) -> Iterator[tuple[str, str]]:
    if not any(row.wrong for row in record.summary):
        yield "Wrong", "none"
    words = {
        "wrong": "wrong (infeasible, a wrong objective, or falsely called optimal)",
        "crashed": "crashed",
        "timed_out": "killed at the deadline",
    }
    for key, word in words.items():
        total = sum(row[key] for row in record.summary)
        by_pair = ", ".join(f"{row[key]:,} of {row.pair}" for row in record.summary if row[key])
        if total:
            yield key.replace("_", " ").capitalize(), f"{count(total, 'answer')} {word}: {by_pair}"


def _examples(result: LabResult) -> Iterator[tuple[str, str]]:
    """Yield the first message of each pair and outcome without a verified answer."""
    messages: dict[tuple[str, str], str] = {}
    for row in result.table("answers").select(["pair", "outcome", "message"]).to_pylist():
        if row["outcome"] not in SOLVED and row["message"]:
            messages.setdefault((row["pair"], row["outcome"]), " ".join(row["message"].split()))
    for (pair, outcome), message in messages.items():
        yield "Example", f"{pair}, {outcome.replace('_', ' ')}: {message}"
    if messages and result.folder is None:
        yield "", "--out keeps models and decisions of such answers"


def _losses(record: LabRecord) -> Iterator[tuple[str, str]]:
    """Yield lines on formulations that lose by their limit on changes, and on impossible answers above the optimum."""
    limited_formulations = dict.fromkeys(pair.formulation for pair in record.pairs if pair.change_limited)
    for formulation in limited_formulations:
        worst = max(row.loss_proven_worst or 0.0 for row in record.summary if row.formulation == formulation)
        if worst > RELATIVE_TOLERANCE:
            costs = f"costs up to {percent(worst)} of the true optimum in one decision"
            yield "Loss", f"the limit on changes in {formulation} {costs}"
    for row in record.summary:
        if row.better_than_exact:
            many = count(row.better_than_exact, "answer")
            yield "Defect", f"{many} of {row.pair} better than the exact optimum: please report it"


def _not_compared(record: LabRecord) -> Iterator[str]:
    if record.left_out:
        yield "Not compared"
    for omission in record.left_out:
        if omission.formulation and omission.backend:  # the table shows the others
            yield f"  {omission.formulation} on {omission.backend}: {omission.reason.split(';')[0]}"
        else:
            yield f"  {omission.formulation or omission.backend}: {omission.reason}"
    if any("special ordered sets" in omission.reason for omission in record.left_out):
        yield "  (--reformulate-sets replaces special ordered sets by binaries on back ends without them)"


def _files(result: LabResult) -> Iterator[tuple[str, str]]:
    seconds = result.record.session["seconds"]
    parts = f"sample {seconds['sample_s']:.1f}, warm-up {seconds['warm_up_s']:.1f}, solve {seconds['solve_s']:.1f}"
    yield "Seconds", parts
    if result.folder is not None:
        yield "Lab folder", str(result.folder)
        failures = result.folder / "failures"
        if failures.is_dir():
            yield "Failures", f"{failures} (models as MPS, decisions as JSON)"
