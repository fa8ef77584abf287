"""Sentences of the page: the answer at its top, and the notes on limits of log, window, jobs and decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

from bfreplay import __version__
from bfreplay.datasets.log.log_warnings import Verdict
from bfreplay.report.page.templates import template
from bfreplay.runs.explain.saved_tables import SavedAllocations, jobs_frame
from bfreplay.runs.metric import BOUND_WORDS
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_warnings import labels_by_text
from bfreplay.runs.scheduling_metrics import cluster_of, is_about_scheduling
from bfreplay.runs.shown_values import KeyFigure, is_one, number, number_of, show, show_count
from bfreplay.runs.summary_text import policy_words

_SENTENCES = ("worth", "harmed", "waited", "decided")


def answer(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """Return the worth of the samples, the delay of batch jobs, the waiting, and the proofs, a sentence each."""
    functions = {
        function.__name__: function
        for function in (are_done, cluster_of, show_count, is_about_scheduling, is_one, number, show)
    }
    macros = template("answer.html.j2").make_module(
        {**functions, "BOUND_WORDS": BOUND_WORDS, "policy_words": policy_words}
    )
    sentences = (getattr(macros, name)(run, facts) for name in _SENTENCES)
    return [*filter(None, sentences)]


def not_credible(runs: Sequence[RunResult]) -> list[Markup]:
    """Return the verdicts of logs whose idle nodes are not credible: all figures of the page depend on them."""
    logs = [run.record.inputs.events.metadata.log_warnings for run in runs]
    verdicts = dict.fromkeys(log.verdict_sentence() for log in logs if log.verdict is Verdict.NOT_CREDIBLE)
    return [Markup("<strong data-verbatim>{}</strong>").format(verdict) for verdict in verdicts]


def are_done(facts: Mapping[str, KeyFigure], baseline: str) -> bool:
    """Return whether all jobs were done in the run and in the baseline, so that times are compared."""
    return facts["done_s"].value is not None and facts[f"{baseline}.done_s"].value is not None


def cautions(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """One entry a caution: the warnings, then about the log, the window, the jobs, and the decisions."""
    sentences: list[Markup] = []

    def caution(caller: Callable[[], Markup]) -> str:
        sentences.append(caller())
        return ""

    intervals = run.table("idle_intervals") if cluster_of(run.record) is None else None
    n_censored, n_intervals = (
        0 if intervals is None else sum(intervals[name].to_pylist()) for name in ("n_censored", "n_intervals")
    )
    template("cautions.html.j2").render(
        {function.__name__: function for function in (caution, show_count, is_one, number, number_of, show)},
        run=run,
        facts=facts,
        n_censored=n_censored,
        n_intervals=n_intervals,
        cut_off=[*_cut_off(run)],
        is_shared=SavedAllocations.of(run).is_shared,
        version=__version__,
    )
    return sentences


def ledger_check(run: RunResult) -> Markup:
    """State that the ledger closes and no file has changed; InputError where one has."""
    run.summary.ledger.close()
    run.check()
    check_words = " By their checksums the run's record and its tables are as they were written." if run.digests else ""
    return Markup("The ledger closes: every idle node-microsecond has one label.{}").format(check_words)


def _cut_off(run: RunResult) -> Iterator[tuple[str, str, int, str]]:
    """Jobs that could have gone on at the end of the window: "" or "at least ", key, number, status.

    Jobs submitted later, or that need more nodes than were ever idle at once, do not count. Of the latter only the
    number is recorded: they never started.
    """
    jobs = jobs_frame(run)
    has_started, status = jobs["first_start"].notna(), jobs["status"]
    for name in ("running", "paused", "waiting"):
        n_jobs = int((has_started & (status == name)).sum())
        if n_jobs:
            yield "", name, n_jobs, name
    is_present = status.isin(("waiting", "queued"))
    n_wide = run.summary.n_jobs_wider_than_the_pool
    n_jobs = int((~has_started & is_present).sum()) - n_wide
    if n_jobs > 0:
        # a job that is too wide may have been submitted later, or taken back by its source
        is_known = not n_wide or not (~has_started & ~is_present).any()
        yield "" if is_known else "at least ", "not_started", n_jobs, "not started"


def once_with_labels(sentences: Iterable[tuple[str, Markup]]) -> list[tuple[str, Markup]]:
    """Return each distinct sentence once, with the labels of its runs: ``A, B``."""
    return [(", ".join(labels), sentence) for sentence, labels in labels_by_text(sentences).items()]
