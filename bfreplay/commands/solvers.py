"""``bfreplay solvers``."""

from __future__ import annotations

import json

import rich_click as click

from bfreplay.commands.inputs import say


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def solvers(as_json: bool) -> None:
    """List the solvers with their formulations, and the reasons for those that do not work on this machine.

    Each solver is tested on a small decision.

    \b
    Example:
      bfreplay solvers
    """
    from dataclasses import asdict

    from bfreplay.milp.named_solvers import solver_entries

    entries = solver_entries()
    if as_json:
        say(json.dumps([asdict(entry) for entry in entries], indent=1))
        return
    for entry in entries:
        state = "works" if not entry.problem else f"does not work here: {entry.problem}"
        say(f"{entry.name:<10} {state}")
        details = [entry.version, f"licence: {entry.licence}" if entry.licence else ""]
        details.append("starts from the current counts" if entry.warm_start else "")
        _line("; ".join(filter(None, details)))
        _line(f"formulations: {', '.join(entry.formulations)}" if entry.formulations else "")
        _line(f"with --reformulate-sets: {', '.join(entry.reformulated)}" if entry.reformulated else "")


def _line(text: str) -> None:
    if text:
        say(f"{'':<10} {text}")
