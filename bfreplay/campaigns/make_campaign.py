"""HPO and NAS campaigns from a few numbers, as the text of a campaign file that was read back and found right."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bfreplay import checks
from bfreplay.campaigns.campaign import AT_ONCE, EVERY, HPO, NAS, PATTERNS, POISSON, Arrival
from bfreplay.campaigns.load import campaign_of
from bfreplay.campaigns.model_families import FAMILIES, rate_samples_per_s
from bfreplay.campaigns.parts import Purpose, stream
from bfreplay.checks import length_of_time, near_name, nearest, whole
from bfreplay.datasets.jobs.curve_points import CurveCache, inline_text, law_cells, points_of, toml_key, toml_value
from bfreplay.datasets.jobs.measurements import read_curves_file
from bfreplay.documents import Cell, parse_toml
from bfreplay.errors import InputError
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve, measured_counts
from bfreplay.scalability.laws import UniversalScalability

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
    ("finished_trials", "that finished", 20),
)
_TRIAL: Sequence[Line] = (
    ("epochs", "of a trial that is not stopped early", None),
    ("samples_per_epoch", "", None),
    ("min_nodes", "", None),
    ("max_nodes", "", None),
    ("scale_up_cost_s", "training time lost when a running trial gains nodes", None),
    ("scale_down_cost_s", "and when it loses some, or all by preemption", None),
    ("start_cost_s", "and when it begins to run, from fewer than min_nodes", 60),
    ("restart", "charge: worked off at the new rate; pause: no progress meanwhile", "pause"),
    ("work_saved_every_s", "seconds between checkpoints; a change loses the work since", 600),
    ("saves", "checkpoints besides: never, on-notice, on-resize", "on-notice"),
    ("counts", "node counts that a trial can use, from min_nodes to max_nodes", [1, 2, 4, 8, 16]),
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
_COMMENTS: Mapping[str, Sequence[Line]] = {
    "campaign": _CAMPAIGN,
    "campaign.budget": _BUDGET,
    "trial": _TRIAL,
    "retries": _RETRIES,
    "scores": _SCORES,
    "optuna": _OPTUNA,
    "pruner": _PRUNER,
}
_OPTIONAL = ("retries", "scores", "optuna")
"""Tables that a file shows commented out where it has none."""
_ABOVE = {
    "campaign.budget": "When one of these is used up, all unfinished trials are stopped and no more are made.",
    "scores": "Scores are simulated: made-up learning curves, drawn from the seed.",
    "retries": "Crashes of trials, drawn from the seed.",
    "optuna": 'Asked with proposer = "optuna".',
}


@dataclass(slots=True)
class CampaignText:
    """Contents of a campaign file.

    Parameters
    ----------
    tables
        ``campaign``, ``trial``, and those of ``pruner``, ``retries`` and ``scores`` that there are: name to keys.
    head
        Comment lines at the top.
    models
        The tables ``[[model]]``.
    search
        The tables ``[search.NAME]``.
    curves
        The tables ``[curves.NAME]``, each with its origin for a comment, empty for none.
    """

    tables: Mapping[str, Table]
    head: list[str]
    models: list[Table] = field(default_factory=list)
    search: Mapping[str, Table] = field(default_factory=dict)
    curves: dict[str, tuple[Table, str]] = field(default_factory=dict)

    def text(self) -> str:
        """Return the text of the file."""
        tables = self.tables
        campaign = dict(tables["campaign"])
        budget = campaign.pop("budget", {})
        sections = ["".join(f"# {line}\n" for line in self.head), _table("campaign", campaign)]
        sections.append(_table("campaign.budget", budget if isinstance(budget, Mapping) else {}))
        sections.append(_table("trial", tables["trial"]))
        sections += ["[[model]]\n" + _lines(model, ()) for model in self.models]
        sections.append(_table("pruner", tables.get("pruner", {"kind": "none"})))
        sections += [_table(name, tables[name]) for name in ("retries", "scores") if name in tables]
        sections += [_table(f"search.{toml_key(name)}", table_cells) for name, table_cells in self.search.items()]
        for name, (table_cells, origin) in self.curves.items():
            comment = f"# {origin}\n" if origin else ""
            sections.append(comment + _table(f"curves.{toml_key(name)}", table_cells))
        is_loss = campaign.get("higher_is_better") is False
        sections += [_comment_table(name, _LOSSES if is_loss else {}) for name in _OPTIONAL if name not in tables]
        return "\n".join(sections)


def _table(table_name: str, cells: Table) -> str:
    above = f"# {_ABOVE[table_name]}\n" if table_name in _ABOVE else ""
    return f"{above}[{table_name}]\n{_lines(cells, _COMMENTS.get(table_name, ()))}"


def _comment_table(table_name: str, examples: Mapping[str, float]) -> str:
    """Return a table as comments, with ``examples`` in place of those of ``_COMMENTS``."""
    keys = _COMMENTS[table_name]
    text_lines = [_line(f"# {key} = {toml_value(examples.get(key, value))}", comment) for key, comment, value in keys]
    return f"# {_ABOVE[table_name]}\n# [{table_name}]\n{''.join(text_lines)}"


def _lines(cells: Table, keys: Sequence[Line]) -> str:
    other_cells, text_lines = dict(cells), []
    for key, comment, example in keys:
        if key in cells:
            text_lines.append(_line(f"{key} = {toml_value(other_cells.pop(key))}", comment))
        elif example is not None:
            text_lines.append(_line(f"# {key} = {toml_value(example)}", comment))
    text_lines += [f"{toml_key(key)} = {toml_value(cell_value)}\n" for key, cell_value in other_cells.items()]
    return "".join(text_lines)


def _line(text: str, comment: str) -> str:
    return f"{text:<{_COLUMN}}  # {comment}\n" if comment else f"{text}\n"


@dataclass(frozen=True, slots=True)
class NamedCurve:
    """A curve with its name, and a line on where it comes from."""

    name: str
    curve: Curve
    origin: str


def node_counts(max_nodes: int) -> Sequence[int]:
    """Return the node counts of a made-up curve's points: 1, 2, 4, ... and ``max_nodes``."""
    return [*(1 << power for power in range((max_nodes - 1).bit_length())), max_nodes]


def family_curves(max_nodes: int) -> list[NamedCurve]:
    """Return curves of the made-up model families, up to ``max_nodes`` nodes."""
    counts = node_counts(max_nodes)
    curves = []
    for family in FAMILIES:
        rates = [round(rate_samples_per_s(family, count), 1) for count in counts]
        curve = TabulatedCurve([0, *counts], [0.0, *rates], family.name)
        curves.append(NamedCurve(family.name, curve, "made up, not measured"))
    return curves


def random_curves(n_models: int, seed: int) -> list[NamedCurve]:
    """Return curves by the universal scalability law with random parameters, the same for the same seed.

    Drawn on logarithmic scales: the rate of one node from 100 to 5,000 samples/s, contention from 0.001 to 0.1,
    coherency from 1e-6 to 1e-3, so that some models scale to hundreds of nodes and others fall beyond thirty.
    """
    curves = []
    for model_number in range(n_models):
        uniforms = stream(seed, Purpose.MADE_UP, model_number).random(3)
        scalability_law = UniversalScalability(
            rate_1=round(float(100 * 50 ** uniforms[0]), 1),
            serial=float(f"{0.001 * 100 ** uniforms[1]:.3g}"),
            kappa=float(f"{1e-6 * 1_000 ** uniforms[2]:.3g}"),
        )
        model_name = f"model-{model_number:0{max(2, len(str(n_models - 1)))}d}"
        curves.append(NamedCurve(model_name, scalability_law, f"made up, not measured: drawn with seed {seed}"))
    return curves


_SEARCH: Mapping[str, Table] = {
    "learning_rate": {"low": 1e-5, "high": 1e-1, "log": True},
    "batch_size": {"choices": [32, 64, 128, 256]},
}


def curves_of_file(file: Path, *, allow_code: bool = False) -> dict[str, Curve]:
    """Return the curves of a file of curves by name; InputError if it cannot be used, or names code not allowed."""
    return dict(read_curves_file(file, CurveCache(allow_code=allow_code)))


def find_curve(curve_name: str, curves: Mapping[str, Curve], option: str = "--curve") -> Curve:
    """Return a curve by the name that ``option`` gave.

    Raises
    ------
    InputError
        There is no such curve.
    """
    if curve_name not in curves:
        raise InputError(
            f"no curve is called {curve_name!r}",
            column=option,
            value=curve_name,
            expected="one of " + ", ".join(curves),
            fix=nearest(curve_name, curves, "choose one of them, or give a file of curves: --curves FILE"),
        )
    return curves[curve_name]


MIN_NODES, MAX_NODES = 1, 16
"""Bounds of jobs where none are given and the curve was not measured."""


def node_bounds(curve: Curve, min_nodes: Any, max_nodes: Any) -> dict[str, int]:
    """Return the given bounds of a job, within the curve's end; for ``None`` the counts that it was measured at."""
    first, last = measured_counts(curve) or (MIN_NODES, MAX_NODES)
    return {
        "min_nodes": first if min_nodes is None else min_nodes,
        "max_nodes": last if max_nodes is None else min(max_nodes, curve.last_nodes),
    }


def arrival_of(text: str) -> Arrival:
    """Return the arrival spelt ``at-once``, ``every:TIME`` or ``poisson:PER_HOUR``.

    Raises
    ------
    InputError
        It is none of these, or its number is out of range.
    """
    pattern, _, number_text = text.partition(":")
    if pattern == AT_ONCE and not number_text:
        return Arrival()
    with suppress(ValueError, InputError):  # the error below has the valid forms
        if pattern == EVERY:
            return Arrival(EVERY, every_s=plain(length_of_time("arrival", number_text, 0.0)))
        if pattern == POISSON:
            return Arrival(POISSON, per_hour=plain(checks.number("arrival", float(number_text), least=1e-6, most=1e9)))
    examples = {EVERY: "every:60", POISSON: "poisson:12"}
    example = examples.get(near_name(pattern, PATTERNS) or AT_ONCE, AT_ONCE)
    raise InputError(
        f"this is no pattern of arrival: {text!r}",
        column="--arrival",
        value=text,
        expected="at-once, every:TIME or poisson:PER_HOUR",
        fix=f"write it like {example}",
    )


def pruner_table(kind: str, options: Sequence[str]) -> dict[str, Cell]:
    """Return ``[pruner]`` for a kind and ``KEY=VALUE`` options; InputError for one that is not of this form."""
    table: dict[str, Cell] = {"kind": kind}
    for option in options:
        option_name, equals, value_text = option.partition("=")
        if not option_name.strip() or not equals or not value_text.strip():
            raise InputError(
                "this is no option of a pruner",
                column="--pruner-option",
                value=option,
                expected="KEY=VALUE",
                fix="write it like eta=4",
            )
        try:
            table[option_name.strip()] = parse_toml(f"value = {value_text}")["value"]
        except tomllib.TOMLDecodeError:
            table[option_name.strip()] = value_text.strip()
    return table


def hpo_text(tables: Mapping[str, Table], curve: str | None, curves: Mapping[str, Curve] | None, file: Path) -> str:
    """Return the text of an HPO campaign.

    Parameters
    ----------
    tables
        The file's tables, without curve and kind.
    curve
        Name of a curve; points or a law; ``None``: a made-up one, or the only one of ``curves``.
    curves
        Curves of a file; ``None`` for no file.
    file
        Output file, for messages and its default name.

    Raises
    ------
    InputError
        A number or the curve is invalid.
    """
    trial = dict(tables["trial"])
    campaign_text = _campaign_file({**tables, "trial": trial}, HPO, file)
    if curves is None and curve is not None:
        trial |= {"min_nodes": MIN_NODES, "max_nodes": MAX_NODES, **trial, "curve": curve}
    else:
        named_curve = _one_curve(curve, curves, whole("max_nodes", trial.get("max_nodes", MAX_NODES), 1))
        _put_curve(named_curve, trial, campaign_text)
        trial |= node_bounds(named_curve.curve, trial.get("min_nodes"), trial.get("max_nodes"))
    if tables["campaign"].get("proposer") == "optuna":
        campaign_text.search = _SEARCH
        campaign_text.head.append("The hyper-parameters in [search] are an example: put in your own.")
    return _check_text(campaign_text, file)


def nas_text(
    tables: Mapping[str, Table], names: Sequence[str], curves: Mapping[str, Curve] | None, n_models: int, file: Path
) -> str:
    """Return the text of a NAS campaign: a model for each curve.

    Parameters
    ----------
    tables
        The file's tables, without models and kind. A model has bounds of its own where its `node_bounds` differ from
        those of the trial.
    names
        Curves of ``curves`` to take; empty for all.
    curves
        Curves of a file; ``None``: made-up ones.
    n_models
        Number of made-up models.
    file
        Output file, for messages and its default name.

    Raises
    ------
    InputError
        A number or a curve is invalid.
    """
    given = tables["trial"].get("min_nodes"), tables["trial"].get("max_nodes")
    trial = {"min_nodes": MIN_NODES, "max_nodes": MAX_NODES, **tables["trial"]}
    whole("max_nodes", trial["max_nodes"], 1)
    if curves is None:
        selection = random_curves(n_models, whole("seed", tables["campaign"]["seed"], 0))
    else:
        selection = [NamedCurve(curve_name, find_curve(curve_name, curves), "") for curve_name in names or curves]
    campaign_text = _campaign_file({**tables, "trial": trial}, NAS, file)
    for named_curve in selection:
        model: dict[str, Cell] = {"name": named_curve.name}
        _put_curve(named_curve, model, campaign_text)
        model |= {key: bound for key, bound in node_bounds(named_curve.curve, *given).items() if bound != trial[key]}
        campaign_text.models.append(model)
    return _check_text(campaign_text, file)


def _campaign_file(tables: Mapping[str, Table], kind: str, campaign_file: Path) -> CampaignText:
    campaign = {"name": campaign_file.stem, "proposer": "random", **tables["campaign"], "kind": kind}
    replay_command = f"bfreplay replay sample --jobs {shlex.quote(' '.join(campaign_file.name.split()))}"
    headline = f"{'An HPO' if kind == HPO else 'A NAS'} campaign. Replay it: {replay_command}"
    return CampaignText({**tables, "campaign": campaign}, [headline])


def _one_curve(curve_name: str | None, curves: Mapping[str, Curve] | None, max_nodes: int) -> NamedCurve:
    if curves is None:
        return family_curves(max_nodes)[0]
    if curve_name is None and len(curves) > 1:
        raise InputError(
            "the file has several curves, and an HPO campaign trains one model",
            column="--curve",
            value=None,
            expected="--curve with one of " + ", ".join(curves),
            fix="name one; or make a NAS campaign of all: bfreplay jobs make nas",
        )
    curve_name = next(iter(curves)) if curve_name is None else curve_name
    return NamedCurve(curve_name, find_curve(curve_name, curves), "")


def _put_curve(named_curve: NamedCurve, cells: dict[str, Cell], campaign_text: CampaignText) -> None:
    """Put a curve into the file and its name into ``cells``."""
    cells["curve"] = named_curve.name
    if isinstance(named_curve.curve, Law | MeasuredLaw):
        table: Table = law_cells(named_curve.curve)
    else:
        nodes, values = points_of(inline_text(named_curve.curve))
        table = {"nodes": list(map(int, nodes)), "values": values}
    campaign_text.curves[named_curve.name] = table, named_curve.origin


def _check_text(campaign_text: CampaignText, campaign_file: Path) -> str:
    text = campaign_text.text()
    try:
        campaign_of(tomllib.loads(text), campaign_file, allow_code=True)  # what the user typed, or allowed a file
    except InputError as error:  # the file is not there: the table and the key say which option it is
        raise error.with_changes(file=None) from error
    return text


def plain(number: float) -> float:
    """Return a whole number as ``int``, so that files say 20 and not 20.0."""
    return int(number) if isinstance(number, int) or number.is_integer() else number
