"""``bfreplay jobs fit --costs``: costs of changes from a log of restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bfreplay.commands.inputs import say
from bfreplay.documents import pick
from bfreplay.errors import InputError, printable
from bfreplay.wording import aligned_lines, count, digits

if TYPE_CHECKING:
    from bfreplay.workload.cost_fit import CostStep, FittedCosts

_OF_STEP = ("first_nodes", "last_nodes", "n_restarts", "median_s", "quartiles_s")
_HEAD = ("cost", "on nodes", "restarts", "median, s", "middle half, s")


def fit_costs_of(log: Path, out: Path | None, force: bool, as_json: bool) -> None:
    """Fit the costs of each model in a log of restarts; print them, and write them as TOML."""
    from bfreplay.datasets.jobs.measurements import load_restarts
    from bfreplay.outputs import written_whole
    from bfreplay.workload.cost_fit import fit_costs

    kind, restarts = load_restarts(log)
    fitted = {name: fit_costs(of_name) for name, of_name in restarts.items()}
    for name, costs in fitted.items():
        if not costs.steps:
            fix = "log starts (from 0 nodes), and changes to more and to fewer nodes"
            raise InputError(f"no restart of {name!r} tells a cost", file=log, value=list(costs.warnings), fix=fix)
    if out is not None:
        tables = (_table(kind, name, log, len(restarts[name]), costs) for name, costs in fitted.items())
        with written_whole([out], force) as (part_file,):
            part_file.write_text("\n".join(tables), encoding="utf-8")
    if as_json:
        say(json.dumps({name: _document(costs) for name, costs in fitted.items()}, indent=1))
    else:
        blocks = (_text(name, len(restarts[name]), costs) for name, costs in fitted.items())
        say("\n".join(blocks), nl=False)


def _rows(costs: FittedCosts) -> Iterator[tuple[str, str, str, str, str]]:
    for name, steps in costs.steps.items():
        for position, step in enumerate(steps):
            low_s, high_s = step.quartiles_s
            spread = f"{digits(low_s)} to {digits(high_s)}"
            yield name if position == 0 else "", _nodes(step), f"{step.n_restarts:,}", digits(step.median_s), spread


def _nodes(step: CostStep) -> str:
    return f"{step.first_nodes:,}" + (f" to {step.last_nodes:,}" if step.last_nodes > step.first_nodes else "")


def _keys(costs: FittedCosts) -> list[str]:
    """Return the lines for a job or a model in TOML."""
    lines = [
        f"{name} = {cost:.15g}" if isinstance(cost, float) else f'{name} = "{cost}"'
        for name, cost in costs.costs().items()
    ]
    return [*lines, 'restart = "pause"']


def _text(name: str, n_restarts: int, costs: FittedCosts) -> str:
    lines = [f"{name}: {count(n_restarts, 'restart')}", *(f"Warning: {warning}" for warning in costs.warnings), ""]
    lines += [*aligned_lines([_HEAD, *_rows(costs)], left=(0, 1)), "", *_keys(costs)]
    return "\n".join(lines) + "\n"


def _table(kind: str, name: str, log: Path, n_restarts: int, costs: FittedCosts) -> str:
    from bfreplay.datasets.jobs.curve_points import toml_value

    lines = [f"# {count(n_restarts, 'restart')} in {printable(log.name)}: the median pause, and the middle half"]
    lines += [f"# warning: {warning}" for warning in costs.warnings]
    lines += [f"# {line}" for line in aligned_lines([_HEAD, *_rows(costs)], left=(0, 1))]
    lines += [f"[[{kind}]]", f"name = {toml_value(name)}", *_keys(costs)]
    return "\n".join(lines) + "\n"


def _document(costs: FittedCosts) -> Mapping[str, object]:
    document: dict[str, object] = {}
    for name, cost in costs.costs().items():
        steps = [pick(step, *_OF_STEP) for step in costs.steps[name]]
        document[name] = {"cost": cost if isinstance(cost, float) else str(cost), "steps": steps}
    return {**document, "restart": "pause", "warnings": costs.warnings}
