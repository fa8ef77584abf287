"""``load_campaign``: a campaign from its TOML file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import asdict

from bfreplay import checks
from bfreplay.campaigns.campaign import MODEL_PARAM, NAS, SEARCHED, Arrival, Campaign, Retries, TrialModel
from bfreplay.campaigns.campaign_file import CampaignFile, RetriesTable
from bfreplay.campaigns.parts_of_file import OPTUNA, RANDOM, PartsOfFile, proposer_name
from bfreplay.campaigns.recorded_study import RecordedStudy, kind_of_study
from bfreplay.campaigns.search_space import Choice, SearchSpace
from bfreplay.campaigns.source import CampaignSource
from bfreplay.datasets.jobs.curve_points import CurveCache
from bfreplay.datasets.jobs.measurements import read_curves_file
from bfreplay.datasets.jobs.rows import JobRows
from bfreplay.datasets.jobs.tables import JobTable, read_toml, with_own_curves
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.defaults import MAX_PARALLEL
from bfreplay.documents import Cell, check_toml_size, refuse_other_toml
from bfreplay.errors import InputError
from bfreplay.scalability import Curve
from bfreplay.typed_tables import missing_key, typed_table

_REQUIRED_OF_MODELS = ("samples_per_epoch", "max_nodes", "scale_up_cost_s", "scale_down_cost_s", "curve")
_NOT_BESIDE_STUDY = ("retries", "pruner", "proposer", "scores", "search", "optuna")
_ASSUMED: Mapping[str, Cell] = {
    "samples_per_epoch": 1_000_000,
    "min_nodes": 1,
    "max_nodes": 16,
    "scale_up_cost_s": 20,
    "scale_down_cost_s": 10,
    "curve": "amdahl(rate_1=400, serial=0.02)",
}
_ASSUMED_DIRECTION: Mapping[str, Cell] = {"higher_is_better": True}
"""Keys of ``[trial]``, and of ``[campaign]``, that a study does not say, nor the file; a warning repeats them."""
_START = "a file to start from: bfreplay jobs make hpo -o campaign.toml"
_FIXES: Mapping[tuple[int | str | None, str | None], str] = {
    ("[campaign]", None): f"add [campaign]; {_START}",
    ("[trial]", None): f"add [trial]; {_START}",
    (None, "job"): "jobs stand in a file of their own: a campaign makes its jobs from [trial]",
}
"""By table and key of an error."""
_NO_FILE = "<campaign>.toml"
"""In messages, and without the brackets for its name, the file of a campaign that is given as a mapping."""
_DATES = (date, datetime, time)
_IS_CAMPAIGN = re.compile(r"^[ \t]*\[[ \t]*(campaign|study)[ \t]*[\].]", re.MULTILINE)


def is_campaign(path: str | PathLike[str]) -> bool:
    """Return whether a file is a campaign: a ``.toml`` with ``[campaign]`` or ``[study]``, not parsed; or a study."""
    file = Path(path)
    if not file.is_file():
        return False
    if file.suffix.lower() != ".toml":
        return kind_of_study(file) is not None
    check_toml_size(file)
    return _IS_CAMPAIGN.search(file.read_text(encoding="utf-8", errors="replace")) is not None


def load_campaign(
    path: str | PathLike[str] | Mapping[str, Any],
    curves: str | PathLike[str] | None = None,
    *,
    allow_code: bool = False,
) -> CampaignSource:
    """Read a campaign of trials.

    Parameters
    ----------
    path
        A TOML file with the tables ``[campaign]`` and ``[trial]``, or its content as a mapping: ``{"campaign":
        {"trials": 8}, "trial": {...}}``; docs/campaigns.md lists every key. Or a study of Optuna: its storage
        (SQLite or journal), or the CSV of ``study.trials_dataframe()``.
    curves
        Named curves, as for ``load_jobs``; the file may hold its own in ``[curves.NAME]``.
    allow_code
        Import code that the files name, ``package.module:thing``; only for trusted files.

    Raises
    ------
    InputError
        A value in the files is invalid; the message names file, table, key and value.
    """
    curves_file = None if curves is None else Path(curves)
    if isinstance(path, Mapping):
        campaign_file, tables = Path(_NO_FILE), msgspec.to_builtins(path, builtin_types=_DATES, enc_hook=_builtin)
        origin = SourceFile(f"<{type(path).__name__}>", hashlib.sha256(repr(tables).encode()).hexdigest())
    else:
        campaign_file = Path(checks.local_path("path", fspath(path)))
        is_study = campaign_file.suffix.lower() != ".toml" and is_campaign(campaign_file)
        tables = {"campaign": {}, "study": {"file": campaign_file.name}} if is_study else read_toml(campaign_file)
        origin = SourceFile.of(campaign_file)
    refuse_other_toml(tables, campaign_file, "a campaign")
    curve_cache = CurveCache(allow_code=allow_code)
    curves_of_file = {} if curves_file is None else read_curves_file(curves_file, curve_cache)
    files = [origin] if curves_file is None else [origin, SourceFile.of(curves_file)]
    sources = [(source.name, source.sha256) for source in files]
    return campaign_of(tables, campaign_file, curves_of_file, curve_cache, sources, allow_code=allow_code)


def _builtin(value: object) -> object:
    """Return a number or an array of numpy as TOML has it; InputError for anything else."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    expected = "tables (dict), lists, texts, numbers, dates, true and false, as in a campaign file"
    raise InputError(f"a campaign has no {type(value).__name__}", value=value, expected=expected)


def campaign_of(
    tables: Mapping[str, Cell],
    file: Path,
    curves: Mapping[str, Curve] | None = None,
    curve_cache: CurveCache | None = None,
    sources: Sequence[tuple[str, str]] = (),
    *,
    allow_code: bool = False,
) -> CampaignSource:
    """Make a campaign of the tables of a file, as TOML is parsed.

    Parameters
    ----------
    tables
        Name of a table to its keys.
    file
        File of the tables, for messages.
    curves
        Curves besides those of the tables.
    curve_cache
        Curves made so far.
    sources
        Files with their SHA-256, for the run's record.
    allow_code
        As for ``load_campaign``.

    Raises
    ------
    InputError
        As ``load_campaign``.
    """
    curve_cache = curve_cache or CurveCache(allow_code=allow_code)
    study = RecordedStudy(tables["study"], file) if "study" in tables else None
    all_tables = tables if study is None else _with_study(tables, study, file, curves or {})
    try:
        contents = typed_table(all_tables, CampaignFile, file)
    except InputError as error:
        raise error.with_changes(fix=_FIXES.get((error.row, error.column), error.fix)) from error
    job_table = JobTable(file, (), (), contents.curves)
    all_curves = with_own_curves(curves or {}, job_table, curve_cache, "stands in the campaign")
    models = tuple(_models(contents, file, all_curves, curve_cache))
    search_space = None if contents.search is None else SearchSpace.from_table(contents.search, file)
    campaign = _campaign(contents, file, models)
    if study is not None:
        numbers = tuple(trial.number for trial in study.trials)
        campaign = replace(campaign, numbers=numbers, retries=Retries(most=0))
        source = CampaignSource(campaign, study, study, study, dict.fromkeys([*sources, *study.sources]))
    else:
        if campaign.model_choice == SEARCHED:
            _check_searched_models(campaign, search_space, file)
        swappable = PartsOfFile(file, contents, campaign, search_space, allow_code)
        proposer = swappable.proposer()
        source = CampaignSource(campaign, proposer, swappable.pruner(proposer), swappable.scores(), sources)
    source.tables = tables
    source.remake = partial(campaign_of, tables, file, curves, sources=sources, allow_code=allow_code)
    return source


def _with_study(
    tables: Mapping[str, Cell], study: RecordedStudy, file: Path, curves: Mapping[str, Curve]
) -> dict[str, Cell]:
    """Return the tables with what the study says, and what is assumed; InputError for a key that the study says too."""
    direction: dict[str, Cell] = {} if study.higher_is_better is None else {"higher_is_better": study.higher_is_better}
    of_campaign = {"trials": len(study.trials), "proposer": RANDOM, **direction}
    completed = dict(tables)
    twice = [(name, "") for name in _NOT_BESIDE_STUDY if name in tables]
    of_trial: dict[str, Cell] = {"epochs": study.epochs}
    for name, of_study, assumable in (
        ("campaign", of_campaign, {} if direction else _ASSUMED_DIRECTION),
        ("trial", of_trial, _assumed_of_trial(tables, curves, file)),
    ):
        given = tables.get(name, {})
        if isinstance(given, Mapping):
            twice += [(name, key) for key in of_study if key in given]
            study.assume(name, {key: value for key, value in assumable.items() if key not in given})
            completed[name] = {**assumable, **given, **of_study}
    for name, key in twice:
        raise InputError("the study itself says this", file=file, row=f"[{name}]", column=key or None, fix="drop it")
    return completed


def _assumed_of_trial(tables: Mapping[str, Cell], curves: Mapping[str, Curve], file: Path) -> Mapping[str, Cell]:
    """Return what is assumed of trials, with the only curve that is given; InputError if it is one of several."""
    own_curves, trial = tables.get("curves"), tables.get("trial")
    names = [*curves, *(own_curves if isinstance(own_curves, Mapping) else ())]
    if not names or "model" in tables or (isinstance(trial, Mapping) and "curve" in trial):
        return _ASSUMED
    if len(names) == 1:
        return {**_ASSUMED, "curve": names[0]}
    place: dict[str, Any] = {"file": file, "row": "[trial]", "column": "curve"}
    fix = f'curve = "{names[0]}", say, in [trial] of a campaign file: docs/optuna.md'
    problem = "it is not plain which curve the trials have"
    raise InputError(problem, **place, expected="one of " + ", ".join(names), fix=fix)


def _campaign(tables: CampaignFile, campaign_file: Path, models: tuple[TrialModel, ...]) -> Campaign:
    table = tables.campaign
    parallel = table.parallel
    if parallel is None and (tables.study is not None or proposer_name(tables, campaign_file) == OPTUNA):
        parallel = MAX_PARALLEL  # a sampler learns only from trials that have reported
    with locate_errors(campaign_file, "[campaign]"):
        return Campaign(
            _campaign_name(tables, campaign_file),
            models,
            tables.trial.epochs,
            table.trials,
            table.kind,
            seed=table.seed,
            parallel=parallel,
            arrival=Arrival(table.arrival, table.every_s, table.per_hour),
            start_after_s=table.start_after_s,
            higher_is_better=table.higher_is_better,
            budget=table.budget,
            retries=_retries(tables.retries, campaign_file),
            model_choice=tables.trial.model_choice,
            report_every_epochs=tables.scores.report_every_epochs,
        )


def _campaign_name(tables: CampaignFile, campaign_file: Path) -> str:
    with locate_errors(campaign_file, "[campaign]"):
        name = tables.campaign.name
        return checks.text("name", campaign_file.stem.strip("<>") if name is None else name)


def _retries(table: RetriesTable, campaign_file: Path) -> Retries:
    values = {key: key_value for key, key_value in asdict(table).items() if key_value is not None}
    if values and table.failures_per_epoch is None:
        with locate_errors(campaign_file, "[retries]"):
            raise missing_key("failures_per_epoch", values, "[retries]")
    return Retries(**values)


def _models(
    tables: CampaignFile, file: Path, curves: Mapping[str, Curve], curve_cache: CurveCache
) -> Iterator[TrialModel]:
    """Yield the models of ``[trial]``, and of ``[[model]]`` for each model that differs."""
    for label, model_name, cells in _model_cells(tables, file, curves):
        with locate_errors(file, label):
            for required_key in _REQUIRED_OF_MODELS:
                if required_key not in cells:
                    raise missing_key(required_key, cells, label)
            samples_per_epoch = float(cells.pop("samples_per_epoch"))
            work_samples = samples_per_epoch * tables.trial.epochs
            cells_of_job = {**cells, "name": model_name, "model": model_name, "work_samples": work_samples}
            (job,) = JobRows(JobTable(file, ((label, cells_of_job),), tuple(cells_of_job)), curves, curve_cache).jobs()
        yield TrialModel(job, samples_per_epoch)


def _model_cells(
    tables: CampaignFile, file: Path, curves: Mapping[str, Curve]
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the label for messages, name and keys of each model."""
    trial, curve = tables.trial, tables.trial.curve
    is_list = isinstance(curve, list) and bool(curve) and all(isinstance(name, str) for name in curve)
    if tables.model is None and not is_list:
        is_name = isinstance(curve, str) and curve.strip() in curves
        name = (curve.strip() if is_name else _campaign_name(tables, file)) if trial.model is None else trial.model
        with locate_errors(file, "[trial]"):
            return [("[trial]", checks.text("model", name), trial.cells())]
    if tables.campaign.kind != NAS:
        row, column = ("[trial]", "curve") if tables.model is None else ("[[model]] 1", None)
        problem, expected = "a campaign of kind 'hpo' has one model", "one model, in [trial], with one curve"
        fix = 'move its keys to [trial], or write kind = "nas"'
        raise InputError(problem, file=file, row=row, column=column, expected=expected, fix=fix)
    with locate_errors(file, "[trial]"):
        if trial.model is not None:
            fault, expected = "names a model, and there are several", "names of curves, or a name in each [[model]]"
            raise checks.refusal("model", trial.model, fault, expected, "drop it")
        if tables.model is None:
            _check_names(curve, "curve", ["[trial]"] * len(curve), file)
            for name in curve:
                if name not in curves:
                    expected = "a list of names of curves: " + (", ".join(sorted(curves)) or "(no curves given)")
                    fix = "add [curves.NAME], give the file of curves, or write a [[model]] for each model"
                    raise checks.refusal("curve", name, f"has {name!r}, which no curve is called", expected, fix)
            return [("[trial]", name, {**trial.cells(), "curve": name}) for name in curve]
    labels = [f"[[model]] {model_number}" for model_number in range(1, len(tables.model) + 1)]
    _check_names([model.name for model in tables.model], "name", labels, file)
    return [
        (f"{label} ({model.name})", model.name, {**trial.cells(), **model.cells()})
        for label, model in zip(labels, tables.model, strict=True)
    ]


def _check_names(names: Sequence[str], key_name: str, labels: Sequence[str], campaign_file: Path) -> None:
    for model_index, (model_name, label) in enumerate(zip(names, labels, strict=True)):
        with locate_errors(campaign_file, label):
            if model_name in names[:model_index]:
                problem, fix = f"two models are called {model_name!r}", "rename or drop one of them"
                raise InputError(problem, column=key_name, value=model_name, expected="unique names", fix=fix)
            checks.text(key_name, model_name)


def _check_searched_models(campaign: Campaign, space: SearchSpace | None, campaign_file: Path) -> None:
    names = [model.name for model in campaign.models]
    dimension = None if space is None else space.dimensions.get(MODEL_PARAM)
    choices = dimension.choices if isinstance(dimension, Choice) else ()
    if not choices or any(choice not in names for choice in choices):
        label = f"[search.{MODEL_PARAM}]"
        problem, fix = f"{label} does not choose among the models", f"add {label} with choices = {names}"
        place: dict[str, Any] = {"file": campaign_file, "row": label, "column": "choices", "value": list(choices)}
        raise InputError(problem, **place, expected="names of models: " + ", ".join(names), fix=fix)
