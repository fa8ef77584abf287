"""``bfreplay jobs``."""

from __future__ import annotations

import rich_click as click

from bfreplay.commands.jobs_fit import fit
from bfreplay.commands.jobs_make import make


@click.group()
def jobs() -> None:
    """Jobs to replay: fit curves to measurements, make campaigns and job sets.

    \b
    Measured rates to a curve:  bfreplay jobs fit MEASUREMENTS
    A search to replay:         bfreplay jobs make hpo -o campaign.toml
    """


jobs.add_command(fit)
jobs.add_command(make)
