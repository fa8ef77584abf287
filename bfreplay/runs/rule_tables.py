"""Tables of a comparison of rules, shared by its text and its page."""

from __future__ import annotations

from typing import Any

from bfreplay.replay.ledger import HELD
from bfreplay.result_folders.rules import RuleRun, RulesRecord, best_of, best_of_first_half
from bfreplay.wording import Column, ShownTable, amount

_LOSSES = (
    Column("lost", "lost work", "percent"),
    Column("changes", "changes per job-hour", "amount"),
    Column("delay", "batch delay, node-hours", "amount"),
    Column("reserved", "held in vain, node-hours", "amount"),
)


def rule_table(record: RulesRecord) -> ShownTable:
    """A row a rule, with the losses of its defaults; then the policies to compare with, and the bound."""
    columns = (
        Column("rule", "rule"),
        Column("defaults", "defaults", "percent"),
        Column("best", "best", "percent"),
        Column("gain", "gain on the 2nd half, points", "signed"),
        *_LOSSES,
        Column("tried", "tried", "count"),
        Column("best_setting", "best"),
        Column("first_half", "best on the 1st half"),
    )
    rows: list[list[Any]] = []
    for rule, runs in record.by_rule.items():
        best, chosen = best_of(runs), best_of_first_half(runs)
        names = (best.setting or "defaults", "the same" if chosen is best else chosen.setting or "defaults")
        shares = (runs[0].share, best.share, points_gained(chosen, runs[0]))
        rows.append([rule, *shares, *_losses(runs[0], record), len(runs), *names])
    for name, share, losses in [
        *((run.rule, run.share, _losses(run, record)) for run in record.yardsticks),
        ("upper bound", 1.0, [None] * len(_LOSSES)),
    ]:
        rows.append([name, share, None, None, *losses, None, None, None])
    caption = (
        f"Shares of the upper bound with free rescaling ({amount(sum(record.bound_samples))} samples). Gain: of the "
        "setting that is best on the first half of the log, over the defaults, on the second. The columns after it are "
        "of the defaults: lost work as a share of the idle node-hours; starts, rescales and preemptions of a job an "
        "hour."
    )
    return _without_empty(ShownTable(caption, columns, rows))


def settings_table(record: RulesRecord) -> ShownTable:
    """A row a run."""
    columns = (
        Column("policy", "policy"),
        Column("share", "of the bound", "percent"),
        Column("first", "first half", "percent"),
        Column("second", "second half", "percent"),
        *(Column(label, f"{label}, node-hours", "amount") for label in (*HELD, "unallocated")),
        *_LOSSES[1:],
        Column("run", "run in sweep/runs/"),
    )
    rows = [
        [
            *(run.policy, run.share, *run.half_shares),
            *(run.node_hours[label] for label in (*HELD, "unallocated")),
            *(*_losses(run, record)[1:], run.run),
        ]
        for run in [*record.rules, *record.yardsticks]
    ]
    return _without_empty(ShownTable("Every setting that was tried", columns, rows))


def points_gained(run: RuleRun, other: RuleRun) -> float:
    """Return by how many points of the bound a run exceeds another on the second half of the log."""
    return 100 * (run.half_shares[1] - other.half_shares[1])


def _losses(run: RuleRun, record: RulesRecord) -> list[Any]:
    lost = run.node_hours["repeated"] / run.node_hours["idle"]
    return [lost, run.n_changes / record.job_hours, run.delay_node_hours, run.reserved_unused_node_hours]


def _without_empty(table: ShownTable) -> ShownTable:
    """Return the table without what was held in vain, if no rule says so."""
    position = [column.key for column in table.columns].index("reserved")
    return table if any(row[position] is not None for row in table.rows) else table.without("reserved")
