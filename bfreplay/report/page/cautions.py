"""What a reader of a run's numbers has to bear in mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import Markup

from bfreplay import __version__
from bfreplay.report.shown_values import counted, is_one, number, number_of, shown
from bfreplay.runs.explain.saved_tables import allocations_of, jobs_frame
from bfreplay.runs.metrics import KeyFigure
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of

_UNPROVEN = {
    "feasible": ("decision", "{} feasible, but not proven optimal"),
    "wrong": ("time", "nodes were kept as they were although that breaks a bound"),
    "none": ("time", "there was no answer, so that all stayed as it was"),
    "unproven_by_design": ("decision", "{} by a rule that proves nothing"),
}
"""What is counted, and what to say of it, with the verb for one or for several."""
_SOON = 0.5
"""Share of the window after which jobs that are all done leave a large part of it without work."""


def cautions(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """One entry a caution: the warnings, then about the log, the window, the jobs, and the decisions."""
    warnings = [Markup("<span data-verbatim>{}</span>").format(each) for each in run.warnings]
    return [*warnings, *_of_log(run), *_of_window(run), *_of_jobs(run, facts), *_of_decisions(run), *_of_version(run)]


def books(run: RunResult) -> Markup:
    """That the ledger closes and no file has changed; InputError where one has."""
    run.summary.ledger.close()
    run.check()
    unchanged = " By their checksums the run's record and its tables are as they were written." if run.digests else ""
    return Markup("The ledger closes: every idle node-microsecond has one label.{}").format(unchanged)


def _of_log(run: RunResult) -> Iterator[Markup]:
    metadata = run.record.inputs.events.metadata
    if metadata.node_inventory == "seen":
        yield Markup("The log does not list the nodes of the machine: a node that never changed is not in it.")
    dropped = {reason: n for reason, n in metadata.dropped.items() if n}
    for reason, n in sorted(dropped.items()):
        yield Markup("Rows of the source left out ({}): {}.").format(reason, number(f"dropped.{reason}", n, "count"))


def _of_window(run: RunResult) -> Iterator[Markup]:
    if cluster_of(run.record) is None:
        holes = run.table("holes")
        cut, all_of_them = (sum(holes[name].to_pylist()) for name in ("n_cut", "n_holes"))
        if cut:
            are, they = ("is", "it") if is_one(cut, "count") else ("are", "they")
            yield Markup(
                "{} of {} {} cut by an edge of the window: {} may have been longer than the window shows."
            ).format(number("holes.cut", cut, "count"), number_of("holes", all_of_them, "count", "hole"), are, they)
    if run.record.config.unlimited_work:
        yield Markup("Work never ended in this run (--unlimited-work): it tells what nodes can do, not when jobs end.")
    elif parts := list(_cut_off(run)):
        yield Markup("The window ended before these jobs did, so that their times are cut: {}.").format(
            Markup(", ").join(parts)
        )


def _cut_off(run: RunResult) -> Iterator[Markup]:
    """Jobs that were there at the end of the window and could have gone on, by status.

    Neither those that were submitted later, nor those that need more nodes than were ever idle at once. Which ones
    these are is not recorded, only how many of all jobs: they are among those that never started.
    """
    jobs = jobs_frame(run)
    has_started, status = jobs["first_start"].notna(), jobs["status"]
    for name in ("running", "paused", "waiting"):
        n = int((has_started & (status == name)).sum())
        if n:
            yield Markup("{} {}").format(number(f"cut.{name}", n, "count"), name)
    there = status.isin(("waiting", "queued"))
    n_wide = run.summary.n_jobs_wider_than_the_pool
    n = int((~has_started & there).sum()) - n_wide
    if n > 0:
        # a job that is too wide may have been submitted later, or taken back by its source
        is_known = not n_wide or not (~has_started & ~there).any()
        yield Markup("{}{} not started").format("" if is_known else "at least ", number("cut.not_started", n, "count"))


def _of_jobs(run: RunResult, facts: Mapping[str, KeyFigure]) -> Iterator[Markup]:
    if run.record.config.measured:
        yield Markup(
            "Means, makespan and fairness are of {} of {}; the others only kept the machine busy, and the run ended "
            "when these were done."
        ).format(shown(facts["measured.jobs"]), counted(facts["jobs"], "job"))
    if allocations_of(run).sharing.any():
        yield Markup("Two jobs had the same nodes at times: of their node time each has half.")
    if reason := run.summary.reason_without_baselines:
        yield Markup("Neither U nor an upper bound is told: {}.").format(reason)
    done_s, duration_s = facts["done_s"].value, facts["window.duration_s"].value
    if done_s is not None and done_s < _SOON * duration_s and not run.record.inputs.jobs.of_source:
        yield Markup(
            "All jobs had left after {} of {}: from then on nothing was there to train. More jobs, or "
            "--unlimited-work, would tell more."
        ).format(shown(facts["done_s"]), shown(facts["window.duration_s"]))
    if run.record.inputs.jobs.of_source:
        yield Markup(
            "The jobs were made as the replay went on. In another replay others may be pruned, so that no U "
            "and no bound are given."
        )


def _of_decisions(run: RunResult) -> Iterator[Markup]:
    for kind, (noun, words) in _UNPROVEN.items():
        n = run.summary.decisions.get(kind, 0)
        if n:
            yield Markup("{} {}.").format(
                number_of(f"decisions.{kind}", n, "count", noun), words.format("is" if is_one(n, "count") else "are")
            )
    for reason, n in run.summary.fallbacks.items():
        example = run.summary.fallback_examples.get(reason, "")
        yield Markup("{} fell back ({}). The first message: <span data-verbatim>{}</span>").format(
            number_of(f"fallbacks.{reason}", n, "count", "decision"), reason.replace("_", " "), example
        )
    if run.record.config.semantics == "published":
        yield Markup("Time and accounting are the published program's: progress is looked at only when nodes change.")


def _of_version(run: RunResult) -> Iterator[Markup]:
    made_by = run.record.versions.get("bfreplay")
    if made_by != __version__:
        yield Markup("The run was made by bfreplay <span data-verbatim>{}</span>, this page by {}.").format(
            made_by, Markup("<span data-verbatim>{}</span>").format(__version__)
        )
