"""``bfreplay solvers``."""

from __future__ import annotations

import json

import rich_click as click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def solvers(as_json: bool) -> None:
    """Which solvers work on this machine, with which formulations, and why the others do not.

    \b
    Example:
      bfreplay solvers
    """
    from dataclasses import asdict

    from bfreplay.milp.catalogue import solver_entries

    entries = solver_entries()
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries], indent=1))
        return
    for entry in entries:
        click.echo(f"{entry.name:<10} {'works' if not entry.problem else 'does not work here: ' + entry.problem}")
        click.echo(f"{'':<10} formulations: {', '.join(entry.formulations)}; licence: {entry.licence}")
