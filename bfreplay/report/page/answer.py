"""The question answered: what training on the idle nodes of this log would have been worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from bfreplay.datasets.log.log_warnings import Verdict
from bfreplay.report.shown_values import counted, is_one, number, shown
from bfreplay.runs.metrics import KeyFigure
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.scheduling_metrics import cluster_of, is_about_scheduling
from bfreplay.runs.summary_text import BOUND_WORDS, policy_words


def answer(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """How much was used, what that was worth, what it was to those who wait for jobs, and how sure decisions are."""
    return [*not_credible([run]), _used(run, facts), _worth(run, facts), *_waited(run, facts), _decided(run, facts)]


def not_credible(runs: Sequence[RunResult]) -> list[Markup]:
    """Why the idle nodes cannot be believed, where that is so: whatever the page answers rests on them."""
    logs = [run.record.inputs.events.metadata.log_warnings for run in runs]
    wrong = dict.fromkeys(log.verdict_sentence() for log in logs if log.verdict is Verdict.NOT_CREDIBLE)
    return [Markup("<strong data-verbatim>{}</strong>").format(each) for each in wrong]


def _used(run: RunResult, facts: Mapping[str, KeyFigure]) -> Markup:
    told = _told(facts)
    nodes = counted(facts["nodes"], "node")
    if run.record.inputs.events.metadata.node_inventory == "seen":
        nodes += Markup(" seen in it")
    cluster = cluster_of(run.record)
    if cluster is not None:
        return Markup(
            "For {window_duration_s} the jobs had a cluster of {nodes} to themselves "
            "(<span data-verbatim>{cluster}</span>), {idle}: on {share_useful} of them training made progress, "
            "{share_rescaling} went into rescaling, and {share_unused} stayed unused."
        ).format(**told | {"nodes": nodes, "cluster": cluster, "idle": counted(facts["idle.node_hours"], "node-hour")})
    if not facts["idle.node_hours"].value:
        return Markup("In the {window_duration_s} of the log, with {}, none was ever idle.").format(nodes, **told)
    return Markup(
        "In the {window_duration_s} of the log, with {nodes}, {idle} {were} idle, as much as {dedicated} idle all the "
        "time would give: on {share_useful} of them training made progress, {share_rescaling} went into rescaling, "
        "{share_lost_to_preemption} were lost to preemption, and {share_unused} stayed unused."
    ).format(
        **told
        | {
            "nodes": nodes,
            "idle": counted(facts["idle.node_hours"], "node-hour"),
            "were": "was" if is_one(facts["idle.node_hours"].value, "amount") else "were",
            "dedicated": counted(facts["idle.mean_nodes"], "node"),
        }
    )


def _worth(run: RunResult, facts: Mapping[str, KeyFigure]) -> Markup:
    told = _told(facts)
    if not facts["jobs"].value:
        return Markup("There was no job to train ({jobs} jobs).").format(**told)
    jobs = Markup("The only job" if facts["jobs"].value == 1 else "The {jobs} jobs").format(**told)
    sentence = jobs + Markup(" processed {samples} samples").format(**told)
    if yardsticks := _yardsticks(run, facts):
        sentence += Markup(": ") + Markup(", and ").join(yardsticks)
    parts = [sentence, *_best(facts), *_learning(facts)]
    if facts["done_s"].value is None:
        parts.append(Markup("at the end {}").format(_statuses(facts)))
    else:
        parts.append(_done(run, facts))
    return Markup("; ").join(parts) + Markup(".")


def _yardsticks(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """What the samples are measured by, but where both sides are done with all jobs: they then made as many samples."""
    told = _told(facts)
    yardsticks = []
    if facts["u"].value is not None and not _are_done(facts, "dedicated"):
        yardsticks.append(
            Markup("{u} of what as many dedicated nodes would have processed in this window (U)").format(**told)
        )
    bound = run.summary.bound
    if bound is not None and bound.share is not None and not _are_done(facts, "bound"):
        words = BOUND_WORDS[bound.kind]
        yardsticks.append(Markup("at least {bound_share} of {}").format(words, **told))
    return yardsticks


def _waited(run: RunResult, facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """How long jobs took, what their nodes cost, and whether they had their fair part; of runs that are about that."""
    fairness = facts["rho.mean"].value
    if facts["jct.mean_s"].value is None or not (is_about_scheduling(run.record) or fairness is not None):
        return []
    told = _told(facts)
    parts = [
        Markup("On average a job took {jct_mean_s} from submission to finish ({measured_completed} of {} completed)")
        .format(counted(facts["measured.jobs"], "job"), **told)
    ]  # fmt: skip
    if facts["makespan_s"].value is not None:
        parts.append(Markup("the last was done after {makespan_s}").format(**told))
    if facts["cost"].value is not None:
        parts.append(Markup("the nodes that jobs held cost {cost} dollars").format(**told))
    if fairness is not None:
        parts.append(
            Markup(
                "a job took {rho_mean} times as long on average as with an equal part of the nodes, and {rho_most} "
                "times at most; {rho_above_1} of the jobs took longer"
            ).format(**told)
        )
    return [Markup("; ").join(parts) + Markup(".")]


def _best(facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """The best score of a campaign, and the one with known curves where they were learned."""
    if facts["best.score"].value is None:
        return []
    reports = counted(facts["reports"], "report")
    words = Markup("of {} the best score was {best_score}, by {best_job} after {best_after_s}")
    if facts["known.best_score"].value is not None:
        words += Markup(", with known curves {known_best_score}")
    return [words.format(reports, **_told(facts))]


def _learning(facts: Mapping[str, KeyFigure]) -> list[Markup]:
    """What it cost not to know the curves, in samples; where all jobs were done either way, times tell it."""
    lost = facts["learning.lost"]
    if lost.value is None or _are_done(facts, "known"):
        return []
    if lost.value < 0:
        more = number("learning.gained", -lost.value, "percent")
        return [Markup("learned curves happened to give {} more than known ones").format(more)]
    return [Markup("learning the curves cost {} of what known ones would have given").format(shown(lost))]


def _done(run: RunResult, facts: Mapping[str, KeyFigure]) -> Markup:
    """When all jobs had left, and what that is measured by."""
    told = _told(facts)
    left = "it had left" if facts["jobs"].value == 1 else "all had left"
    done = Markup("{} after {done_s}").format(left, **told)
    elsewhere = [
        Markup(", {} after {}").format(words, shown(facts[key]))
        for key, words in (
            ("known.done_s", "with known curves"),
            ("dedicated.done_s", "on as many dedicated nodes"),
        )
        if facts[key].value is not None
    ]
    done += Markup("").join(elsewhere)
    if elsewhere and run.record.inputs.jobs.of_source:
        done += Markup(", where the source may have made other jobs")
    if facts["bound.done_s"].value is not None:
        done += Markup(", and nobody could have been done before {bound_done_s}").format(**told)
    return done


def _decided(run: RunResult, facts: Mapping[str, KeyFigure]) -> Markup:
    told = _told(facts)
    sentence = Markup("Node counts were decided {} (<span data-verbatim>{}</span>)").format(
        counted(facts["decisions"], "time"), policy_words(run.record.config)
    )
    proven, trivial = facts["decisions.proven"], facts["decisions.proven_trivially"]
    if proven.value:
        sentence += Markup(", {} with a proof that no decision was better").format(counted(proven, "time"))
    if trivial.value:
        sentence += Markup("{} {} there was no job or no idle node to decide on").format(
            " and" if proven.value else ",", counted(trivial, "time")
        )
    sentence += Markup("; {} answered by the fallback").format(counted(facts["fallbacks"], "decision"))
    if facts["decisions.slowest_s"].value is not None:
        sentence += Markup("; the slowest took {decisions_slowest_s}").format(**told)
    if facts["seconds"].value is not None:
        sentence += Markup(", the whole replay {seconds}").format(**told)
    return sentence + Markup(".")


def _are_done(facts: Mapping[str, KeyFigure], yardstick: str) -> bool:
    return facts["done_s"].value is not None and facts[f"{yardstick}.done_s"].value is not None


def _statuses(facts: Mapping[str, KeyFigure]) -> Markup:
    parts = [
        Markup("{} {}").format(shown(fact), fact.key.removeprefix("jobs.").replace("_", " "))
        for fact in facts.values()
        if fact.key.startswith("jobs.") and fact.value
    ]
    return Markup(", ").join(parts)


def _told(facts: Mapping[str, KeyFigure]) -> dict[str, Markup]:
    """Facts as names that a format can have."""
    return {key.replace(".", "_"): shown(fact) for key, fact in facts.items()}
