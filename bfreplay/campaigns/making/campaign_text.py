"""Tables of a campaign as a TOML file that people read: every key with a comment, unused ones commented out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bfreplay.documents import Cell

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_COLUMN = 36

Table = Mapping[str, Cell]
Line = tuple[str, str, object]
"""Key, comment, and an example for a file without the key; ``None``: the line is then left out."""

_CAMPAIGN: Sequence[Line] = (
    ("name", "trials are called NAME-0000, NAME-0001, ...", None),
    ("kind", "hpo: one model; nas: several", None),
    ("trials", "at most", None),
    ("seed", "of everything that is drawn", None),
    ("parallel", "trials in flight, at most", 10),
    ("arrival", "at-once, every (with every_s) or poisson (with per_hour)", None),
    ("every_s", "seconds from one trial to the next", None),
    ("per_hour", "trials an hour on average", None),
    ("start_after_s", "seconds from the window's start to the campaign's", 3600),
    ("higher_is_better", "of scores: true for an accuracy, false for a loss", None),
    ("proposer", "random, optuna, or package.module:Class", None),
)
_BUDGET: Sequence[Line] = (
    ("node_hours", "of all trials together", 500),
    ("samples", "of all trials together", 1_000_000_000),
    ("hours", "of wall time: finish by", 48),
    ("failed_trials", "that failed for good", 10),
)
_TRIAL: Sequence[Line] = (
    ("epochs", "of a trial that is not stopped early", None),
    ("samples_per_epoch", "", None),
    ("min_nodes", "", None),
    ("max_nodes", "", None),
    ("scale_up_cost_s", "training time lost when a running trial gains nodes", None),
    ("scale_down_cost_s", "and when it loses some, or all by preemption; a start is free", None),
    ("curve", "throughput; see [curves] below", None),
    ("model", "label in the tables", None),
    ("weight", "on the objective; above 0", None),
    ("deadline_after_s", "seconds from a trial's submit time", None),
    ("model_choice", "in-turn, by-seed, or searched (by a hyper-parameter called model)", None),
)
_RETRIES: Sequence[Line] = (
    ("failures_per_epoch", "mean number of crashes in an epoch", 0.01),
    ("most", "retries of a trial; then it has failed", 2),
    ("from", "checkpoint: the last whole epoch; or start", "checkpoint"),
)
_SCORES: Sequence[Line] = (
    ("start", "score before training", 0.1),
    ("worst", "score that the worst trial would reach", 0.5),
    ("best", "score that the best trial would reach", 0.95),
    ("noise", "standard deviation of what is added to each score", 0.005),
    ("report_every_epochs", "scores also for the record, whatever the pruner wants", 1),
)
_LOSSES = {"start": 2.3, "worst": 1.5, "best": 0.3}
"""Examples of ``_SCORES`` where lower is better."""
_OPTUNA: Sequence[Line] = (
    ("sampler", "tpe, random, qmc, or package.module:factory", "tpe"),
    ("pruner", "median, percentile, asha, hyperband, none; only if [pruner] kind is optuna", "median"),
    ("report_every", "epochs from one report to the pruner to the next", 1),
)
_PRUNER: Sequence[Line] = (
    ("kind", "none, asha, successive-halving, median; optuna; package.module:Class", None),
    ("eta", "of asha, successive-halving: a rung keeps 1 of so many trials", 3),
    ("first_epochs", "of these: epochs of the first rung; each further one has eta times as many", 1),
)
_KNOWN: Mapping[str, Sequence[Line]] = {
    "campaign": _CAMPAIGN,
    "campaign.budget": _BUDGET,
    "trial": _TRIAL,
    "retries": _RETRIES,
    "scores": _SCORES,
    "optuna": _OPTUNA,
    "pruner": _PRUNER,
}
_UNUSED = ("retries", "scores", "optuna")
"""Tables that a file shows commented out where it has none."""
_ABOVE = {
    "campaign.budget": "When one of these is used up, all unfinished trials are stopped and no more are made.",
    "scores": "Scores are simulated: made-up learning curves, drawn from the seed.",
    "retries": "Crashes of trials, drawn from the seed.",
    "optuna": 'Asked with proposer = "optuna".',
}


@dataclass(slots=True)
class CampaignFile:
    """Contents of a campaign file.

    Parameters
    ----------
    tables
        ``campaign``, ``trial``, and those of ``pruner``, ``retries`` and ``scores`` that there are: name to keys.
    head
        Comment lines at the top.
    models
        The tables ``[[model]]``.
    search, curves
        The tables ``[search.NAME]`` and ``[curves.NAME]``.
    origins
        Where curves come from, by name: a comment for each.
    """

    tables: Mapping[str, Table]
    head: list[str]
    models: list[Table] = field(default_factory=list)
    search: Mapping[str, Table] = field(default_factory=dict)
    curves: dict[str, Table] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the text of the file."""
        tables = self.tables
        campaign = dict(tables["campaign"])
        budget = campaign.pop("budget", {})
        parts = ["".join(f"# {line}\n" for line in self.head), _table("campaign", campaign)]
        parts.append(_table("campaign.budget", budget if isinstance(budget, Mapping) else {}))
        parts.append(_table("trial", tables["trial"]))
        parts += ["[[model]]\n" + _lines(model, ()) for model in self.models]
        parts.append(_table("pruner", tables.get("pruner", {"kind": "none"})))
        parts += [_table(name, tables[name]) for name in ("retries", "scores") if name in tables]
        parts += [_table(f"search.{_key(name)}", cells) for name, cells in self.search.items()]
        for name, cells in self.curves.items():
            origin = f"# {self.origins[name]}\n" if name in self.origins else ""
            parts.append(origin + _table(f"curves.{_key(name)}", cells))
        is_loss = campaign.get("higher_is_better") is False
        parts += [_unused_table(name, _LOSSES if is_loss else {}) for name in _UNUSED if name not in tables]
        return "\n".join(parts)


def toml_value(value: object) -> str:
    """Return a value as TOML writes it: text, truth value, number, or a list of these."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(each) for each in value) + "]"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _table(name: str, cells: Table) -> str:
    above = f"# {_ABOVE[name]}\n" if name in _ABOVE else ""
    return f"{above}[{name}]\n{_lines(cells, _KNOWN.get(name, ()))}"


def _unused_table(name: str, examples: Mapping[str, float]) -> str:
    """Return a table as comments, with ``examples`` in place of those of ``_KNOWN``."""
    known = _KNOWN[name]
    lines = [_line(f"# {key} = {toml_value(examples.get(key, value))}", comment) for key, comment, value in known]
    return f"# {_ABOVE[name]}\n# [{name}]\n{''.join(lines)}"


def _lines(cells: Table, known: Sequence[Line]) -> str:
    order = [key for key, _, _ in known]
    lines = []
    for key, comment, example in known:
        if key in cells:
            lines.append(_line(f"{key} = {toml_value(cells[key])}", comment))
        elif example is not None:
            lines.append(_line(f"# {key} = {toml_value(example)}", comment))
    lines += [f"{_key(key)} = {toml_value(value)}\n" for key, value in cells.items() if key not in order]
    return "".join(lines)


def _line(text: str, comment: str) -> str:
    return f"{text:<{_COLUMN}}  # {comment}\n" if comment else f"{text}\n"
