"""Text of ``compare_rules``: the answer, notes, and the table of rules."""

from __future__ import annotations

from bfreplay.result_folders.records import JsonObject
from bfreplay.result_folders.rules import RuleComparison, RulesRecord, best_of, best_of_first_half
from bfreplay.runs.rule_tables import points_gained, rule_table
from bfreplay.wording import amount, count, paragraphs, percent


def render(result: RuleComparison) -> str:
    """Return the result as text: answer, warnings, a row a rule, and notes."""
    record = result.record
    return paragraphs(
        [
            [record.answer],
            [f"Warning: {warning}" for warning in record.warnings],
            rule_table(record).lines(),
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
        answer += f"; none of the {count(len(tried) - 1, 'other setting')} tried on this log reaches more."
    else:
        settings = count(len(tried), "setting")
        answer += f"; {best_name} (the best of {settings} tried on this log) reaches {percent(best.share)}."
    if chosen is subject:
        return f"{answer} The first half of the log alone leads to the same choice."
    gain = points_gained(chosen, subject)
    verb = "gains" if gain >= 0 else "loses"
    return f"{answer} Chosen on the first half, {chosen_name} {verb} {amount(abs(gain))} points on the second."


def notes(record: RulesRecord) -> list[str]:
    """Return notes: costs, what a best setting is, what the policies to compare with know, and open readings."""
    costs = record.config.costs
    general = costs[record.yardsticks[0].rule]
    sentences = [
        f"A start, rescale or reclaim pauses a job for {_pause(general)}, and the work since its last checkpoint, one "
        f"every {general['work_saved_every']:g} s, is lost (saves: {general['saves']}). No product publishes a restart "
        "time or has a default checkpoint interval: give yours with --restart-cost and --work-saved-every."
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
    if all(run.delay_node_hours is None for run in record.rules):
        sentences.append("The delay of batch jobs is unknown: none starts in this log.")
    return sentences


def _pause(costs: JsonObject) -> str:
    cost = costs["restart_cost"]
    return f"{cost:g} s" if isinstance(cost, float) else f"{cost} (seconds by count)"
