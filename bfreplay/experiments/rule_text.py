"""Text of ``compare_rules``: the answer, notes, and the table of rules."""

from __future__ import annotations

from dataclasses import replace

from bfreplay.result_folders.records import JsonObject
from bfreplay.result_folders.rules import RuleComparison, RulesRecord, best_of, best_of_first_half
from bfreplay.runs.rule_tables import points_gained, rule_table
from bfreplay.wording import amount, paragraphs, percent


def render(result: RuleComparison) -> str:
    """Return the result as text: answer, warnings, a row a rule, and notes."""
    record = result.record
    table, n_rules, chosen = rule_table(record), len(record.by_rule), ("tried", "best_setting", "first_half")
    measured = [column.key for column in table.columns if column.key not in ("rule", *chosen)]
    return paragraphs(
        [
            [record.answer],
            [f"Warning: {warning}" for warning in record.warnings],
            table.without(*chosen).lines(),
            replace(table, caption="Settings", rows=table.rows[:n_rules]).without(*measured).lines(),
            [f"Note: {note}" for note in record.notes],
            [] if result.folder is None else [f"Folder       {result.folder}"],
        ]
    )


def answer_of(record: RulesRecord) -> str:
    """Return the answer: the user's setting, or the best rule at its defaults, beside the best that was tried."""
    by_rule, yardstick, yours = record.by_rule, best_of(record.yardsticks), record.config.yours
    if yours is None:
        subject = best_of([runs[0] for runs in by_rule.values()])
        words = f"{subject.rule} at its defaults"
        words += f", the best of {len(by_rule)} rules there," if len(by_rule) > 1 else ""
    else:
        subject = next(run for run in record.rules if run.policy == yours)
        words = f"{subject.policy}, your setting," if subject.setting else f"{subject.rule} at its defaults"
    is_one_rule = yours is not None or len(by_rule) == 1
    tried = by_rule[subject.rule] if is_one_rule else record.rules
    best, chosen = best_of(tried), best_of_first_half(tried)
    best_name, chosen_name = (run.setting or "defaults" if is_one_rule else run.policy for run in (best, chosen))
    answer = f"On this log {words} reaches {percent(subject.share)} of the upper bound where {yardstick.rule} reaches "
    answer += percent(yardstick.share)
    if len(tried) == 1:
        return f"{answer}."
    if best is subject:
        answer += f"; no other of the {len(tried)} settings tried on this log reaches more."
    else:
        answer += f"; {best_name} (the best of {len(tried)} settings tried on this log) reaches {percent(best.share)}."
    if chosen is subject:
        return f"{answer} On the first half of the log alone nothing else is better."
    gain = points_gained(chosen, subject)
    words = f"{'gains' if gain >= 0 else 'loses'} {amount(abs(gain))} points on the second"
    if chosen is best:
        return f"{answer} It is also the best on the first half of the log, and {words}."
    return f"{answer} Chosen on the first half, {chosen_name} {words}."


def notes(record: RulesRecord) -> list[str]:
    """Return notes: costs, what a best setting is, what the policies to compare with know, and open readings."""
    costs = record.config.costs
    general = costs[record.yardsticks[0].rule]
    every_s = general["work_saved_every"]
    lost = f"the work since its last checkpoint, one every {every_s:g} s, is" if every_s else "no work is"
    saves = f" (saves: {general['saves']})" if every_s else ""
    sentences = [
        f"A start, rescale or reclaim pauses a job for {_pause(general)}, and {lost} lost{saves}. "
        "No product publishes a restart time or has a default checkpoint interval: give yours with --restart-cost and "
        "--work-saved-every."
    ]
    sentences += [
        f"{rule} changes cheaply by design: {_pause(own)}, saves: {own['saves']}."
        for rule, own in costs.items()
        if own != general
    ]
    yardsticks = " and ".join(run.rule for run in record.yardsticks)
    sentences += [
        "The best setting is the best of those tried on this log, not a forecast.",
        f"{yardsticks} know curves and costs, which no rule does. Their shares were reached on this log by policies, "
        "and are no optimum; the bound takes rescaling as free, and may be out of reach.",
        "What the products leave open, and how it is read here: docs/products.md.",
    ]
    is_unknown = all(run.delay_node_hours is None for run in record.rules)
    return [*sentences, "The delay of batch jobs is unknown: none starts in this log."] if is_unknown else sentences


def _pause(costs: JsonObject) -> str:
    cost = costs["restart_cost"]
    return f"{cost:g} s" if isinstance(cost, float) else f"{cost} (seconds by count)"
