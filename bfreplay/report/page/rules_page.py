"""The page of ``bfreplay compare rules``: one self-contained file with the answer, pictures and tables."""

from __future__ import annotations

import json
from pathlib import Path

from bfreplay.report.figures.node_hours import NODE_HOURS, page
from bfreplay.report.figures.rules import RULES, hours_by_label, shown_runs
from bfreplay.report.page.sections import Section, result_page, section_of
from bfreplay.report.page.templates import check_report, write_page
from bfreplay.result_folders.rules import RuleComparison
from bfreplay.runs.rule_text import rule_table


def write_rules_report(folder: Path | str, out: Path | str, *, overwrite: bool = False) -> Path:
    """Write the page of a folder of ``bfreplay compare rules``; arguments and errors as ``write_report``."""
    file = check_report(out, overwrite=overwrite)
    record = RuleComparison.load(folder).record
    runs = shown_runs(record)
    words = "For every setting that was tried: bfreplay report FOLDER/sweep, of the folder of this comparison."
    text = result_page(
        command="compare rules",
        title=", ".join(["What elasticity rules reach on idle nodes", *(log.name for log in record.inputs.events)]),
        answer=record.answer,
        cards=[],
        cautions=[*record.warnings, *record.notes],
        sections=[
            section_of(RULES, runs, [rule_table(record)]),
            Section(NODE_HOURS.name, NODE_HOURS.title, words, page(hours_by_label(runs))),
        ],
        files=[*record.inputs.events, *record.inputs.jobs],
        config=json.dumps(record.config.to_json(), indent=2, sort_keys=True),
        versions=record.versions,
    )
    return write_page(text, file, overwrite=overwrite)
