"""What a reader of a run's numbers has to bear in mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfreplay import __version__
from bfreplay.datasets.log.metadata import simulated_nodes
from bfreplay.replay.result import RunResult
from bfreplay.report.page.facts import Fact
from bfreplay.report.page.numbers import number, shown
from bfreplay.report.page.soundness import Sum

if TYPE_CHECKING:
    from markupsafe import Markup

_UNPROVEN = {
    "feasible": "decisions are feasible, but not proven optimal",
    "wrong": "times nodes were kept as they were although that breaks a bound",
    "none": "times there was no answer, so that all stayed as it was",
    "unproven_by_design": "decisions are by a rule that proves nothing",
}
_AT_THE_END = ("running", "waiting", "paused", "queued", "not_submitted")
_SOON = 0.5
"""Share of the window after which jobs that are all done leave a large part of it without work."""


def cautions(run: RunResult, facts: Mapping[str, Fact]) -> list[Markup]:
    """One entry a caution: about the log, the window, the jobs, and the decisions."""
    return [*_of_log(run), *_of_window(run, facts), *_of_jobs(run, facts), *_of_decisions(run), *_of_version(run)]


def books(sums: list[Sum]) -> Markup:
    """That the books close, which making the page has checked."""
    from markupsafe import Markup

    return Markup(
        "The books close: every idle node-microsecond has one label. {} sums of the run's tables were added up again "
        "for this page, and are what its record says."
    ).format(number("books.sums", len(sums), "count"))


def _of_log(run: RunResult) -> Iterator[Markup]:
    from markupsafe import Markup

    metadata = run.record["inputs"]["events"]["metadata"]
    simulated = simulated_nodes(metadata)
    if simulated is not None:
        yield Markup("Which node a job had is <span data-verbatim>{}</span>.").format(simulated)
    if metadata["node_inventory"] == "seen":
        yield Markup("The log does not list the nodes of the machine: a node that never changed is not in it.")
    dropped = {reason: n for reason, n in (metadata.get("dropped") or {}).items() if n}
    for reason, n in dropped.items():
        yield Markup("Rows of the source left out ({}): {}.").format(reason, number(f"dropped.{reason}", n, "count"))


def _of_window(run: RunResult, facts: Mapping[str, Fact]) -> Iterator[Markup]:
    from markupsafe import Markup

    if run.has_table("holes"):
        holes = run.table("holes")
        cut, all_of_them = (sum(holes[name].to_pylist()) for name in ("n_cut", "n_holes"))
        if cut:
            yield Markup(
                "{} of {} holes are cut by an edge of the window: they were longer than the log shows."
            ).format(number("holes.cut", cut, "count"), number("holes", all_of_them, "count"))
    if run.record["config"].get("unlimited_work"):
        yield Markup("Work never ended in this run (--unlimited-work): it tells what nodes can do, not when jobs end.")
    else:
        left = [facts[f"jobs.{status}"] for status in _AT_THE_END if facts[f"jobs.{status}"].value]
        if left:
            parts = Markup(", ").join(
                Markup("{} {}").format(shown(fact), fact.key.removeprefix("jobs.").replace("_", " ")) for fact in left
            )
            yield Markup("The window ended before these jobs did, so that their times are cut: {}.").format(parts)


def _of_jobs(run: RunResult, facts: Mapping[str, Fact]) -> Iterator[Markup]:
    from markupsafe import Markup

    wide = run.summary.get("n_jobs_wider_than_the_pool")
    if wide:
        yield Markup("{} of the jobs could never run: they need more nodes than were ever idle at once.").format(
            number("jobs.too_wide", wide, "count")
        )
    done_s, duration_s = facts["done_s"].value, facts["window.duration_s"].value
    if done_s is not None and done_s < _SOON * duration_s and run.record["inputs"]["jobs"].get("source") is None:
        yield Markup(
            "All jobs had left after {} of {}: from then on nothing was there to train. More jobs, or "
            "--unlimited-work, would tell more."
        ).format(shown(facts["done_s"]), shown(facts["window.duration_s"]))
    if run.record["inputs"]["jobs"].get("source") is not None:
        yield Markup(
            "The jobs were made as the replay went on. In another replay others may be pruned, so that no U "
            "and no bound are given."
        )


def _of_decisions(run: RunResult) -> Iterator[Markup]:
    from markupsafe import Markup

    for kind, words in _UNPROVEN.items():
        n = run.summary["decisions"].get(kind, 0)
        if n:
            yield Markup("{} {}.").format(number(f"decisions.{kind}", n, "count"), words)
    for reason, n in run.summary["fallbacks"].items():
        example = run.summary.get("fallback_examples", {}).get(reason, "")
        yield Markup("{} decisions fell back ({}). The first message: <span data-verbatim>{}</span>").format(
            number(f"fallbacks.{reason}", n, "count"), reason.replace("_", " "), example
        )
    if run.record["config"]["semantics"] == "published":
        yield Markup("Time and accounting are the published program's: progress is looked at only when nodes change.")


def _of_version(run: RunResult) -> Iterator[Markup]:
    from markupsafe import Markup

    made_by = run.record["versions"].get("bfreplay")
    if made_by != __version__:
        yield Markup("The run was made by bfreplay <span data-verbatim>{}</span>, this page by {}.").format(
            made_by, Markup("<span data-verbatim>{}</span>").format(__version__)
        )
    if not run.has_table("pool"):
        yield Markup(
            "The run was made before idle nodes and holes were recorded: what needs them is left out. Replay again to "
            "have it."
        )
