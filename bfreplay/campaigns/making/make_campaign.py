"""HPO and NAS campaigns from a few numbers, as the text of a campaign file that was read back and found right."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bfreplay.campaigns.campaign import HPO, NAS
from bfreplay.campaigns.load import campaign_of
from bfreplay.campaigns.making.campaign_text import CampaignFile, Table
from bfreplay.campaigns.parts import Purpose, stream
from bfreplay.campaigns.rules import AT_ONCE, EVERY, PATTERNS, POISSON, Arrival
from bfreplay.checks import length_of_time, near_name, nearest, whole
from bfreplay.datasets.jobs.curve_points import CurveShelf, inline_text, law_cells, points_of
from bfreplay.datasets.jobs.tables import read_curves_file
from bfreplay.datasets.synthetic.elastic_jobs import FAMILIES, rate_samples_per_s
from bfreplay.documents import Cell, parse_toml
from bfreplay.errors import InputError
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve
from bfreplay.scalability.laws import UniversalScalability


@dataclass(frozen=True, slots=True)
class NamedCurve:
    """A curve with its name, and a line on where it comes from."""

    name: str
    curve: Curve
    origin: str


def node_counts(max_nodes: int) -> Sequence[int]:
    """Return the node counts of a made-up curve's points: 1, 2, 4, ... and ``max_nodes``."""
    return [*(1 << k for k in range((max_nodes - 1).bit_length())), max_nodes]


def family_curves(max_nodes: int) -> list[NamedCurve]:
    """Return curves of the model families of the synthetic jobs, up to ``max_nodes`` nodes."""
    counts = node_counts(max_nodes)
    curves = []
    for family in FAMILIES:
        rates = [round(rate_samples_per_s(family, n), 1) for n in counts]
        curve = TabulatedCurve([0, *counts], [0.0, *rates], family.name)
        curves.append(NamedCurve(family.name, curve, "made up, not measured"))
    return curves


def drawn_curves(n_models: int, seed: int) -> list[NamedCurve]:
    """Return curves by the universal scalability law with random parameters, the same for the same seed.

    Drawn on logarithmic scales: the rate of one node from 100 to 5,000 samples/s, contention from 0.001 to 0.1,
    coherency from 1e-6 to 1e-3, so that some models scale to hundreds of nodes and others fall beyond thirty.
    """
    curves = []
    for i in range(n_models):
        draws = stream(seed, Purpose.MADE_UP, i).random(3)
        law = UniversalScalability(
            rate_1=round(float(100 * 50 ** draws[0]), 1),
            serial=float(f"{0.001 * 100 ** draws[1]:.3g}"),
            kappa=float(f"{1e-6 * 1_000 ** draws[2]:.3g}"),
        )
        name = f"model-{i:0{max(2, len(str(n_models - 1)))}d}"
        curves.append(NamedCurve(name, law, f"made up, not measured: drawn with seed {seed}"))
    return curves


_SEARCH: Mapping[str, Table] = {
    "learning_rate": {"low": 1e-5, "high": 1e-1, "log": True},
    "batch_size": {"choices": [32, 64, 128, 256]},
}


def curves_of_file(file: Path, *, allow_code: bool = False) -> dict[str, Curve]:
    """Return the curves of a file of curves by name; InputError if it cannot be used, or names code not allowed."""
    return dict(read_curves_file(file, CurveShelf(allow_code=allow_code)))


def chosen_curve(name: str, known: Mapping[str, Curve], option: str = "--curve") -> Curve:
    """Return a curve by the name that ``option`` gave.

    Raises
    ------
    InputError
        There is no such curve.
    """
    if name not in known:
        raise InputError(
            f"no curve is called {name!r}",
            column=option,
            value=name,
            expected="one of " + ", ".join(known),
            fix=nearest(name, known, "choose one of them, or give a file of curves: --curves FILE"),
        )
    return known[name]


def arrival_of(text: str) -> Arrival:
    """Return the arrival spelt ``at-once``, ``every:TIME`` or ``poisson:PER_HOUR``.

    Raises
    ------
    InputError
        It is none of these, or its number is out of range.
    """
    pattern, _, number = text.partition(":")
    if pattern == AT_ONCE and not number:
        return Arrival()
    with suppress(ValueError, InputError):  # the error below has the valid forms
        if pattern == EVERY:
            return Arrival(EVERY, every_s=plain(length_of_time("arrival", number, 0.0)))
        if pattern == POISSON:
            return Arrival(POISSON, per_hour=plain(float(number)))
    near = near_name(pattern, PATTERNS)
    raise InputError(
        f"this is no pattern of arrival: {text!r}",
        column="--arrival",
        value=text,
        expected="at-once, every:TIME or poisson:PER_HOUR",
        fix=f"write it like {'every:60' if near == EVERY else 'poisson:12' if near == POISSON else 'at-once'}",
    )


def pruner_table(kind: str, options: Sequence[str]) -> dict[str, Cell]:
    """Return ``[pruner]`` for a kind and ``KEY=VALUE`` options; InputError for one that is not of this form."""
    table: dict[str, Cell] = {"kind": kind}
    for option in options:
        key, equals, value = option.partition("=")
        if not key.strip() or not equals or not value.strip():
            raise InputError(
                "this is no option of a pruner",
                column="--pruner-option",
                value=option,
                expected="KEY=VALUE",
                fix="write it like eta=4",
            )
        try:
            table[key.strip()] = parse_toml(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            table[key.strip()] = value.strip()
    return table


def hpo_text(tables: Mapping[str, Table], curve: str | None, known: Mapping[str, Curve] | None, file: Path) -> str:
    """Return the text of an HPO campaign.

    Parameters
    ----------
    tables
        The file's tables, without curve and kind.
    curve
        Name of a curve; points or a law; ``None``: a made-up one, or the only one of ``known``.
    known
        Curves of a file; ``None`` for no file.
    file
        Output file, for messages and its default name.

    Raises
    ------
    InputError
        A number or the curve is invalid.
    """
    trial = dict(tables["trial"])
    made = _campaign_file({**tables, "trial": trial}, HPO, file)
    if known is None and curve is not None:
        trial["curve"] = curve
    else:
        _put_curve(_one_curve(curve, known, whole("max_nodes", trial["max_nodes"], 1)), trial, made)
    if tables["campaign"].get("proposer") == "optuna":
        made.search = _SEARCH
        made.head.append("The hyper-parameters in [search] are an example: put in your own.")
    return _checked_text(made, file)


def nas_text(
    tables: Mapping[str, Table], names: Sequence[str], known: Mapping[str, Curve] | None, n_models: int, file: Path
) -> str:
    """Return the text of a NAS campaign: a model for each curve.

    Parameters
    ----------
    tables
        The file's tables, without models and kind. ``max_nodes`` of the trial is an upper bound: a model whose curve
        ends below has its own.
    names
        Curves of ``known`` to take; empty for all.
    known
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
    max_nodes = whole("max_nodes", tables["trial"]["max_nodes"], 1)
    if known is None:
        chosen = drawn_curves(n_models, whole("seed", tables["campaign"]["seed"], 0))
    else:
        chosen = [NamedCurve(name, chosen_curve(name, known), "") for name in names or known]
    made = _campaign_file(tables, NAS, file)
    for each in chosen:
        model: dict[str, Cell] = {"name": each.name}
        _put_curve(each, model, made)
        if each.curve.last_nodes < max_nodes:
            model["max_nodes"] = each.curve.last_nodes
        made.models.append(model)
    return _checked_text(made, file)


def _campaign_file(tables: Mapping[str, Table], kind: str, file: Path) -> CampaignFile:
    campaign = {"name": file.stem, "proposer": "random", **tables["campaign"], "kind": kind}
    replay = f"bfreplay replay sample --jobs {shlex.quote(' '.join(file.name.split()))}"
    head = f"{'An HPO' if kind == HPO else 'A NAS'} campaign. Replay it: {replay}"
    return CampaignFile({**tables, "campaign": campaign}, [head])


def _one_curve(name: str | None, known: Mapping[str, Curve] | None, max_nodes: int) -> NamedCurve:
    if known is None:
        return family_curves(max_nodes)[0]
    if name is None and len(known) > 1:
        raise InputError(
            "the file has several curves, and an HPO campaign trains one model",
            column="--curve",
            value=None,
            expected="--curve with one of " + ", ".join(known),
            fix="name one; or make a NAS campaign of all: bfreplay jobs make nas",
        )
    name = next(iter(known)) if name is None else name
    return NamedCurve(name, chosen_curve(name, known), "")


def _put_curve(each: NamedCurve, cells: dict[str, Cell], made: CampaignFile) -> None:
    """Put a curve into the file and its name into ``cells``."""
    cells["curve"] = each.name
    if isinstance(each.curve, Law | MeasuredLaw):
        made.curves[each.name] = law_cells(each.curve)
    else:
        nodes, values = points_of(inline_text(each.curve))
        made.curves[each.name] = {"nodes": [int(n) for n in nodes], "values": values}
    if each.origin:
        made.origins[each.name] = each.origin


def _checked_text(made: CampaignFile, file: Path) -> str:
    text = made.text()
    try:
        campaign_of(tomllib.loads(text), file, allow_code=True)  # what the user typed, or allowed a file
    except InputError as error:  # the file is not there: the table and the key say which option it is
        raise error.with_changes(file=None) from error
    return text


def plain(number: float) -> float:
    """Return a whole number as ``int``, so that files say 20 and not 20.0."""
    return int(number) if isinstance(number, int) or number.is_integer() else number
