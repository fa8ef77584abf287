"""``compare_rules``: what the elasticity rules of products, and their settings, reach on one log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
import numpy as np

from bfreplay import checks
from bfreplay.bounds import upper_bound
from bfreplay.datasets import NodeEvents
from bfreplay.defaults import RESTART_S, WORK_SAVED_EVERY_S
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FILE_OPTIONS, DeclaredOptions
from bfreplay.experiments.prepared_run import known_jobs, load_jobs_of, load_log, max_parallel_of
from bfreplay.experiments.resumable_folder import complete_sweep, resumable_folder, scheduler_needs
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import SweepProgress
from bfreplay.options import checked_keywords, option_name
from bfreplay.outputs import write_whole
from bfreplay.policies.catalogue import parse_policy, policy_settings
from bfreplay.policies.spec import TermSpec
from bfreplay.result_folders.records import RULES, JsonObject
from bfreplay.result_folders.rules import LABELS, RuleComparison, RuleRun, RulesConfig, RulesRecord
from bfreplay.result_folders.tuning import InputFile, TuningInputs
from bfreplay.result_folders.writing import record_json
from bfreplay.runs import RunResult
from bfreplay.runs.rule_text import answer_of, notes
from bfreplay.systems.products import SYSTEM
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, JobSet, JobSource

if TYPE_CHECKING:
    from bfreplay.experiments.keywords import RuleKeywords

_MAX_NODES: dict[str, tuple[Any, ...]] = {"max_nodes": (None, 8, 16, 64)}

GRIDS: dict[str, tuple[Mapping[str, tuple[Any, ...]], JsonObject]] = {
    "products.scavenger": ({"size": (None, 4, 8, 16, 64)}, {}),
    "products.ray": ({"share": (None, "one-cluster-each"), "interval_s": (None, 300, 600, 1800)} | _MAX_NODES, {}),
    "products.gang": ({"order": (None, "kai")} | _MAX_NODES, {}),
    "products.kueue": ({"growth": (None, "partial")} | _MAX_NODES, {}),
    "products.horovod": (_MAX_NODES, {"restart_cost": 10.0, "saves": "on-resize"}),
}
"""By rule: values of its parameters that a site could choose, ``None`` for the default, of which every combination is
tried; and options of its runs where changes cost less. A rule that is not here has ``_MAX_NODES`` only."""

COSTS: JsonObject = {"restart_cost": RESTART_S, "work_saved_every": WORK_SAVED_EVERY_S, "saves": "never"}
"""Options of the runs: what a change costs, unless ``GRIDS`` or the user says otherwise."""

SPEED_UP = "speed-up"
YARDSTICKS = ("bftrainer", "reclaim-aware")
"""Policies to compare with: they know curves and costs, which no rule does."""
_T_FWD_S = 150.0
_US_PER_HOUR = 3_600_000_000

FIXED_OPTIONS = (
    *("cluster", "measure", "unlimited_work", "until_done", "semantics", "seed", "policy", "objective", "round"),
    *("t_fwd", "learn_curves", "measurement_noise", "efficiency", "bound", "fairness", "ideal", "record_nodes"),
)
"""Options of a run that ``compare_rules`` sets."""

PICTURES = ("rules.png", "rules.svg")
"""Pictures that the command draws in its folder."""


@checked_keywords(DeclaredOptions, without=FIXED_OPTIONS)
def compare_rules(
    events: NodeEvents | str | PathLike[str],
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str],
    *,
    rules: Sequence[str] | None = None,
    yours: str | None = None,
    count: str = "speed-up",
    out: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    **options: Unpack[RuleKeywords],
) -> RuleComparison:
    """Replay endless jobs under the elasticity rules of products, with settings that a site could choose.

    Each is compared with policies that know curves and costs, and with the upper bound with free rescaling.

    Parameters
    ----------
    events, jobs
        Objects or files, as ``RunOptions`` takes them, but no campaign.
    rules
        Names such as ``"ray"`` or ``"products.ray"``; all by default.
    yours
        A rule with its settings, ``"products.ray(interval_s=30)"``, of which the answer speaks.
    count
        ``"speed-up"``: the rates of every job are divided by that on one node; or ``"samples"``.
    out
        Folder for the record and the runs; the same call again resumes it. ``None``: a temporary folder.
    processes, scheduler, progress, on_wait
        As for ``sweep``.
    **options
        Other fields of ``RunOptions``. By default a change costs ``COSTS``, or what ``GRIDS`` says of the rule:

    Raises
    ------
    InputError, OutputExistsError
        An input, an option or the folder cannot be used; the log has several node types; or no job can run there.
    BfreplayError
        A run failed.
    """
    checks.one_of("count", count, (SPEED_UP, "samples"))
    scheduler_needs(out, scheduler)
    other_options: dict[str, Any] = {**options}
    base = RunOptions(events=events, jobs=jobs, unlimited_work=True, efficiency=False, bound=False, **other_options)
    log = load_log(base)
    workload = known_jobs(load_jobs_of(base), "give a job set")
    base = replace(base, max_parallel=max_parallel_of(base, log, workload))
    endless = _endless(workload, log, base, count)
    base = replace(base, jobs=endless, curves=None)
    bound_samples = _bounds(log, endless)
    your_term = None if yours is None else parse_policy(yours)
    if your_term is not None:
        your_term = replace(your_term, name=_rule_name(your_term.name, "yours"))
    names = list(map(_rule_name, rules or SYSTEM.policies)) + ([] if your_term is None else [your_term.name])
    meanings = {name: settings_to_try(name, endless, your_term) for name in names}
    tried = [term for terms in meanings.values() for term in terms.values()]
    terms = [*tried, *map(TermSpec, YARDSTICKS)]
    costs = {term.name: _costs(term.name, base) for term in terms}
    runs = [replace(base, policy=str(term), t_fwd=_T_FWD_S, **costs[term.name]) for term in terms]
    keywords = {"processes": processes, "scheduler": scheduler, "progress": progress, "on_wait": on_wait}
    with resumable_folder(out, RULES, stale=PICTURES) as folder:
        sweep_result = complete_sweep(runs, folder / "sweep", **keywords)
        ids = sweep_result.results["id"].to_pylist()
        rule_runs = [
            _rule_run(term, run_id, sweep_result.runs[run_id], bound_samples)
            for term, run_id in zip(terms, ids, strict=True)
        ]
        # a rule's own is that it ignores costs, as all of them do
        yardstick_warnings = [text for run_id in ids[len(tried) :] for text in sweep_result.runs[run_id].warnings]
        record = RulesRecord(
            schema_version=RULES.schema_version,
            versions=versions(),
            config=RulesConfig(
                options={
                    name: value
                    for name, value in base.to_json().items()
                    if name not in (*FILE_OPTIONS, *map(option_name, (*FIXED_OPTIONS, *COSTS)))
                },
                count=count,
                yours=None if your_term is None else str(meanings[your_term.name][_meaning(your_term, endless)]),
                costs=costs,
            ),
            inputs=TuningInputs(
                events=[InputFile(name=source.name, sha256=source.sha256) for source in log.sources],
                jobs=[InputFile(name=name, sha256=digest) for name, digest in workload.sources],
                n_jobs=len(endless),
            ),
            job_hours=len(endless) * (log.window_end_us - log.window_start_us) / _US_PER_HOUR,
            bound_samples=bound_samples,
            rules=rule_runs[: len(tried)],
            yardsticks=rule_runs[len(tried) :],
            answer="",
            warnings=list(dict.fromkeys(yardstick_warnings)),
            notes=[],
        )
        record = msgspec.structs.replace(record, answer=answer_of(record), notes=notes(record))
        write_whole(folder / RULES.record_file, record_json(record, "the rules"))
    return RuleComparison(record, None if out is None else folder)


def settings_to_try(rule: str, jobs: JobSet, yours: TermSpec | None = None) -> dict[object, TermSpec]:
    """Return the settings of a rule to try on these jobs, the defaults first, by what they mean to them.

    Of several that cannot differ, such as a ``max_nodes`` that no job exceeds, the first is tried.
    """
    values = GRIDS.get(rule, (_MAX_NODES, {}))[0]
    chosen = (zip(values, combination, strict=True) for combination in product(*values.values()))
    terms = [TermSpec(rule, tuple(pair for pair in pairs if pair[1] is not None)) for pairs in chosen]
    if yours is not None and yours.name == rule:
        terms.append(yours)
    by_meaning: dict[object, TermSpec] = {}
    for term in terms:
        by_meaning.setdefault(_meaning(term, jobs), term)
    return by_meaning


def _meaning(term: TermSpec, jobs: JobSet) -> object:
    """Return the most nodes of each job under a rule, and its other settings."""
    settings = dict(policy_settings(str(term))[1])
    most_nodes: Any = settings.pop("max_nodes", None)
    most = [min(job.max_nodes, most_nodes or job.max_nodes) for job in jobs]
    if "size" in settings:
        size: Any = settings.pop("size")
        most = [min(n, size or job.requested_nodes or n) for n, job in zip(most, jobs, strict=True)]
    return tuple(max(n, job.min_nodes) for n, job in zip(most, jobs, strict=True)), tuple(sorted(settings.items()))


def _rule_name(name: str, option: str = "rule") -> str:
    rule = name.removeprefix(f"{SYSTEM.name}.")
    return f"{SYSTEM.name}.{checks.one_of(option, rule, list(SYSTEM.policies))}"


def _costs(rule: str, base: RunOptions) -> JsonObject:
    """Return the options of what changes cost: the user's, else the rule's, else ``COSTS``."""
    given = {name: value for name in COSTS if (value := getattr(base, name)) is not None}
    costs = COSTS | GRIDS.get(rule, (_MAX_NODES, {}))[1] | given
    return costs if costs["work_saved_every"] else costs | {"saves": "never"}  # nothing is ever at risk


def _endless(workload: JobSet, log: NodeEvents, base: RunOptions, counted: str) -> JobSet:
    """Return the jobs that are replayed, as they are counted."""
    assert base.max_parallel is not None
    jobs = workload.endless(base.max_parallel, log.window_start_us)
    if counted != SPEED_UP:
        return jobs
    if log.node_types.has_type_names:
        jobs = jobs.on_type(log.node_types.names[0])
    return JobSet(map(ElasticJob.in_speed_up, jobs), colocation=workload.colocation)


def _bounds(log: NodeEvents, jobs: JobSet) -> tuple[float, float]:
    """Return the upper bound with free rescaling in each half of the window."""
    middle_us = (log.window_start_us + log.window_end_us) // 2
    halves = log.between(log.window_start_us, middle_us), log.between(middle_us, log.window_end_us)
    first, second = (upper_bound(half, jobs, len(jobs)).free_rescaling_samples or 0.0 for half in halves)
    if not first + second:
        raise InputError(
            "no job can run on the idle nodes of the log",
            expected="idle nodes, and jobs that fit them",
            fix="look at the log with 'bfreplay describe'",
        )
    return first, second


def _rule_run(term: TermSpec, run_id: str, run: RunResult, bound: tuple[float, float]) -> RuleRun:
    summary = run.summary
    first = samples_of_first_half(run)
    halves = first, summary.ledger.samples - first
    first_share, second_share = (samples / most if most else 0.0 for samples, most in zip(halves, bound, strict=True))
    delays, starts = summary.batch_delays, summary.batch_starts
    delay_node_hours = None
    if starts is not None and starts.n_starts:
        delay_node_hours = starts.delay_node_hours if delays is None else delays.node_hours
    return RuleRun(
        rule=term.name,
        setting=str(replace(term, name="")).strip("()"),
        run=run_id,
        share=sum(halves) / sum(bound),
        half_shares=(first_share, second_share),
        node_us={name: summary.ledger[name] for name in (f"{label}_node_us" for label in ("idle", *LABELS))},
        n_restarts=run.n_rows("allocations"),
        delay_node_hours=delay_node_hours,
        reserved_unused_node_hours=(summary.policy or {}).get("reserved_unused_node_hours"),
    )


def samples_of_first_half(run: RunResult) -> float:
    """Return the samples processed in the first half of the window; between two decisions in proportion to time."""
    config, decisions = run.record.config, run.columns("decisions", "time", "samples_since_last")
    times = decisions["time"].cast("int64").to_numpy()
    samples = np.cumsum(decisions["samples_since_last"].to_numpy())
    edges_us = np.concatenate([[config.window_start_us], times, [config.window_end_us]])
    middle_us = (config.window_start_us + config.window_end_us) // 2
    return float(np.interp(middle_us, edges_us, [0.0, *samples, run.summary.ledger.samples]))
