"""The question answered: what training on the idle nodes of this log would have been worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bfreplay.replay.result import RunResult
from bfreplay.replay.summary_text import BOUND_WORDS, policy_words
from bfreplay.report.page.facts import Fact
from bfreplay.report.page.numbers import number, shown

if TYPE_CHECKING:
    from markupsafe import Markup


def answer(run: RunResult, facts: Mapping[str, Fact]) -> list[Markup]:
    """Three sentences: how much was used, what that was worth, and how sure the decisions are."""
    return [_used(run, facts), _worth(run, facts), _decided(run, facts)]


def _used(run: RunResult, facts: Mapping[str, Fact]) -> Markup:
    from markupsafe import Markup

    told = _told(facts)
    nodes = Markup("{nodes} nodes").format(**told)
    if run.record["inputs"]["events"]["metadata"]["node_inventory"] == "seen":
        nodes = Markup("{} nodes seen in it").format(told["nodes"])
    if not facts["idle.node_hours"].value:
        return Markup("In the {window_duration_s} of the log none of the {} was ever idle.").format(nodes, **told)
    return Markup(
        "In the {window_duration_s} of the log, with {}, {idle_node_hours} node-hours were idle, as much as "
        "{idle_mean_nodes} nodes would give that are idle all the time: on {share_useful} of them training made "
        "progress, {share_rescaling} went into rescaling, {share_lost_to_preemption} were lost to preemption, and "
        "{share_unused} stayed unused."
    ).format(nodes, **told)


def _worth(run: RunResult, facts: Mapping[str, Fact]) -> Markup:
    from markupsafe import Markup

    told = _told(facts)
    if not facts["jobs"].value:
        return Markup("There was no job to train ({jobs} jobs).").format(**told)
    summary = run.summary
    jobs = Markup("The only job" if facts["jobs"].value == 1 else "The {jobs} jobs").format(**told)
    sentence = jobs + Markup(" processed {samples} samples").format(**told)
    efficiency, bound = summary.get("efficiency") or {}, summary.get("bound") or {}
    yardsticks = []
    if facts["u"].value is not None:
        yardsticks.append(
            Markup("{u} of what as many dedicated nodes would have processed in this window (U)").format(**told)
        )
    if bound.get("share") is not None and bound.get("earliest_finish_us") is None:
        yardsticks.append(Markup("at least {bound_share} of {}").format(BOUND_WORDS[bound["kind"]], **told))
    if yardsticks:
        sentence += Markup(": ") + Markup(", and ").join(yardsticks)
    if facts["done_s"].value is None:
        return sentence + Markup("; at the end {}.").format(_statuses(facts))
    left = "it had left" if facts["jobs"].value == 1 else "all had left"
    sentence += Markup("; {} after {done_s}").format(left, **told)
    start_us = run.record["config"]["window_start_us"]
    compared = (
        ("dedicated.done_s", "on the dedicated nodes after {}", efficiency.get("dedicated_last_finish_us")),
        ("bound.done_s", "and nobody could have been done before {}", bound.get("earliest_finish_us")),
    )
    for key, words, time_us in compared:
        if time_us is not None:
            sentence += Markup(", ") + Markup(words).format(number(key, (time_us - start_us) / 1e6, "seconds"))
    return sentence + Markup(".")


def _decided(run: RunResult, facts: Mapping[str, Fact]) -> Markup:
    from markupsafe import Markup

    told = _told(facts)
    sentence = Markup("Node counts were decided {decisions} times (<span data-verbatim>{}</span>)").format(
        policy_words(run.record["config"]["policy"]), **told
    )
    proven, trivial = facts["decisions.proven"].value, facts["decisions.proven_trivially"].value
    if proven:
        sentence += Markup(", {decisions_proven} times with a proof that no decision was better").format(**told)
    if trivial:
        sentence += Markup(
            "{} {decisions_proven_trivially} times there was no job or no idle node to decide on"
        ).format(" and" if proven else ",", **told)
    sentence += Markup("; {fallbacks} decisions fell back on another solver").format(**told)
    if facts["decisions.slowest_s"].value is not None:
        sentence += Markup("; the slowest took {decisions_slowest_s}").format(**told)
    if facts["seconds"].value is not None:
        sentence += Markup(", the whole replay {seconds}").format(**told)
    return sentence + Markup(".")


def _statuses(facts: Mapping[str, Fact]) -> Markup:
    from markupsafe import Markup

    parts = [
        Markup("{} {}").format(shown(fact), fact.key.removeprefix("jobs.").replace("_", " "))
        for fact in facts.values()
        if fact.key.startswith("jobs.") and fact.value
    ]
    return Markup(", ").join(parts)


def _told(facts: Mapping[str, Fact]) -> dict[str, Markup]:
    """Facts as names that a format can have."""
    return {key.replace(".", "_"): shown(fact) for key, fact in facts.items()}
