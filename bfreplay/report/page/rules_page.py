"""The page of ``bfreplay compare rules``: one self-contained file with the answer, pictures and tables."""

from __future__ import annotations

import json
from pathlib import Path

from bfreplay.report.figures import node_hours
from bfreplay.report.figures.rules import RULES, hours_by_label, shown_runs
from bfreplay.report.page.sections import Section, page_table, result_page, section_of
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.result_folders.rules import RuleComparison
from bfreplay.runs.rule_tables import rule_table, settings_table


def write_rules_report(folder: Path | str, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a folder of ``bfreplay compare rules``; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    record = RuleComparison.load(folder).record
    runs = shown_runs(record)
    losses, title = node_hours.page(hours_by_label(runs)), "Where the idle node-hours went"
    text = result_page(
        command="compare rules",
        title="What elasticity rules reach on the idle nodes"
        + "".join(f" of {log.name}" for log in record.inputs.events[:1]),
        answer=record.answer,
        cards=[],
        cautions=[*record.warnings, *record.notes],
        sections=[
            section_of(RULES, runs, [rule_table(record)]),
            Section("node-hours", title, "", losses, [page_table(settings_table(record))]),
        ],
        files=[*record.inputs.events, *record.inputs.jobs],
        config=json.dumps(record.config.to_json(), indent=2, sort_keys=True),
        versions=record.versions,
    )
    return write_page(text, file, overwrite=overwrite)
