"""Which of the options that a user gave change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click
from click.core import ParameterSource

from bfreplay.commands.backend_options import OF_BACKENDS

if TYPE_CHECKING:
    from bfreplay.experiments.prepared_run import PreparedRun


def note_options_without_effect(context: click.Context) -> None:
    """Say on stderr which options of ``bfreplay replay`` have no effect beside the others."""
    from bfreplay.policies.catalogue import capabilities_of

    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    params = context.params
    policy = params["policy"]
    declared = capabilities_of(policy)
    has_no_end = params["cluster"] is not None or params["measure"] is not None
    no_yardstick = has_no_end or not params["with_efficiency"]
    ends_with_jobs = "with --cluster" if params["cluster"] is not None else "with --measure"
    without_effect = [
        (not declared.asks_solver, f"with --policy {policy}", ("solver", "formulation", "fallback", *OF_BACKENDS)),
        # U is told with decisions of BFTrainer's, which look ahead
        (declared.in_rounds and no_yardstick, f"with --policy {policy}", ("t_fwd_s",)),
        (params["solver"] == "exact", "with --solver exact", ("fallback", *OF_BACKENDS)),
        (
            params["semantics"] == "continuous" and not params["measurement_noise"],
            "with --semantics continuous and without --measurement-noise",
            ("seed",),
        ),
        (params["learn_curves"] is None, "without --learn-curves", ("measurement_noise",)),
        (has_no_end, f"{ends_with_jobs}: neither U nor the bound is told", ("with_efficiency", "with_bound")),
        (params["out"] is None, "without --out", ("force", "record_nodes")),
    ]
    for holds, when, names in without_effect:
        for name in names:
            if holds and name in given:
                given.discard(name)
                option = next(p for p in context.command.params if p.name == name)
                was_refused = params[name] is False and option.secondary_opts
                said = option.secondary_opts[0] if was_refused else option.opts[0]
                click.echo(f"Note: {said} has no effect {when}.", err=True)


def note_prices_of_no_node(run: PreparedRun) -> None:
    """Say on stderr which of the prices are of types that no node is of."""
    there = run.log.node_types.names
    others = [node_type for node_type in run.settings.prices if node_type not in there]
    if others:
        click.echo(
            f"Note: --prices has types that no node is of: {', '.join(others)}. There are: {', '.join(there)}.",
            err=True,
        )
