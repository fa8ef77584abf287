"""Answer, notes and table of a comparison of rules, for its text and its page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bfreplay.result_folders.rules import RuleRun, RulesRecord, best_of, best_of_first_half
from bfreplay.wording import Column, ShownTable, amount, paragraphs, percent

_US_PER_HOUR = 3_600_000_000
_SETTINGS = (
    Column("tried", "tried", "count"),
    Column("best_setting", "best"),
    Column("first_half", "best on the 1st half"),
)
_FIGURES = (
    Column("defaults", "defaults", "percent"),
    Column("best", "best", "percent"),
    Column("gain", "gain on the 2nd half, points", "signed"),
    Column("lost", "lost work", "percent"),
    Column("restarts", "restarts per job-hour", "amount"),
    Column("delay", "batch delay, node-hours", "amount"),
    Column("in_vain", "held in vain, node-hours", "amount"),
)


def render(record: RulesRecord, folder: object) -> str:
    """Return the result as text: answer, warnings, figures and settings of each rule, and notes."""
    table = rule_table(record)
    settings = replace(table, caption="Settings", rows=table.rows[: len(record.by_rule)])
    return paragraphs(
        [
            [record.answer],
            [f"Warning: {warning}" for warning in record.warnings],
            table.without(*(column.key for column in _SETTINGS)).lines(),
            settings.without(*(column.key for column in _FIGURES)).lines(),
            [f"Note: {note}" for note in record.notes],
            [] if folder is None else [f"Folder       {folder}"],
        ]
    )


def rule_table(record: RulesRecord) -> ShownTable:
    """A row a rule, with the losses of its defaults; then the policies to compare with, and the bound."""

    def losses(run: RuleRun) -> list[Any]:
        lost = run.node_us["repeated_node_us"] / run.node_us["idle_node_us"]
        in_vain = run.node_us["stalled_node_us"] / _US_PER_HOUR + (run.reserved_unused_node_hours or 0.0)
        return [lost, run.n_restarts / record.job_hours, run.delay_node_hours, in_vain]

    rows: list[list[Any]] = []
    for rule, runs in record.by_rule.items():
        best, chosen = best_of(runs), best_of_first_half(runs)
        names = (best.setting or "defaults", "the same" if chosen is best else chosen.setting or "defaults")
        gain = _points_gained(chosen, runs[0])
        rows.append([rule, runs[0].share, best.share, gain, *losses(runs[0]), len(runs), *names])
    rows += [[run.rule, run.share, None, None, *losses(run), *[None] * 3] for run in record.yardsticks]
    rows.append(["upper bound", 1.0, *[None] * 9])
    caption = (
        f"Shares of the upper bound with free rescaling ({amount(sum(record.bound_samples))} samples). Gain: of the "
        "setting that is best on the first half of the log, over the defaults, on the second. The columns after it are "
        "of the defaults: lost work as a share of the idle node-hours; how often an hour a job starts or goes on with "
        "another number of nodes; nodes that a job holds below its minimum, or that are reserved for one that cannot "
        "use them."
    )
    return ShownTable(caption, (Column("rule", "rule"), *_FIGURES, *_SETTINGS), rows)


def answer_of(record: RulesRecord) -> str:
    """Return the answer: the user's setting, or the best rule at its defaults, beside the best that was tried.

    Rules whose changes cost something else than those of the others are not compared with these.
    """
    yardstick, yours, costs = best_of(record.yardsticks), record.config.yours, record.config.costs
    compared = [run for run in record.rules if costs[run.rule] == costs[yardstick.rule]] or record.rules
    if yours:
        compared = [run for run in record.rules if run.rule == yours.partition("(")[0]]
    n_rules = len({run.rule for run in compared})
    subject = best_of([run for run in compared if (run.policy == yours if yours else not run.setting)])
    words = f"{subject.policy}, your setting," if subject.setting else f"{subject.rule} at its defaults"
    if n_rules > 1:
        which = " and the same costs" if len(compared) < len(record.rules) else ""
        words = f"{subject.rule}, the best of {n_rules} rules at their defaults{which},"
    best, chosen = best_of(compared), best_of_first_half(compared)
    best_name, chosen_name = (run.policy if n_rules > 1 else run.setting or "defaults" for run in (best, chosen))
    answer = f"On this log {words} reaches {percent(subject.share)} of the upper bound where {yardstick.rule} reaches "
    answer += f"{percent(yardstick.share)}; "
    if best is subject:
        answer += f"no other of the {len(compared)} settings tried on this log reaches more."
    else:
        answer += f"{best_name} (the best of {len(compared)} settings tried on this log) reaches {percent(best.share)}."
    if chosen is subject:
        return f"{answer} On the first half of the log alone nothing else is better."
    gain = _points_gained(chosen, subject)
    other = "your setting" if yours else subject.rule if n_rules > 1 else "the defaults"
    words = f"{'gains' if gain >= 0 else 'loses'} {amount(abs(gain))} points against {other} on the second"
    if chosen is best:
        return f"{answer} It is also the best on the first half of the log, and {words}."
    return f"{answer} Chosen on the first half, {chosen_name} {words}."


def notes(record: RulesRecord) -> list[str]:
    """Return notes: costs, what a best setting is, what the policies to compare with know, and open readings."""
    costs, yardsticks = record.config.costs, " and ".join(run.rule for run in record.yardsticks)
    general = costs[record.yardsticks[0].rule]
    is_delay_unknown = all(run.delay_node_hours is None for run in record.rules)
    return [
        f"Starts, rescales and reclaims cost {_words_of(general)}. No product publishes a restart time or has a "
        "default checkpoint interval: give yours with --restart-cost and --work-saved-every.",
        *(f"{rule} changes cheaply by design: {_words_of(own)}." for rule, own in costs.items() if own != general),
        "The best setting is the best of those tried on this log, not a forecast.",
        f"{yardsticks} know curves and costs, which no rule does. Their shares were reached on this log by policies, "
        "and are no optimum; the bound takes rescaling as free, and may be out of reach.",
        "What the products leave open, and how it is read here: docs/products.md.",
        *(["The delay of batch jobs is unknown: none starts in this log."] if is_delay_unknown else []),
    ]


def _words_of(costs: dict[str, Any]) -> str:
    pause = str(costs["restart_cost"]).removesuffix(".0")
    if not costs["work_saved_every"]:
        return f"a pause of {pause} s, and no work is ever lost"
    return f"a pause of {pause} s, work saved every {costs['work_saved_every']:g} s, saves: {costs['saves']}"


def _points_gained(run: RuleRun, other: RuleRun) -> float:
    """Return by how many points of the bound a run exceeds another on the second half of the log."""
    return 100 * (run.half_shares[1] - other.half_shares[1])
