"""``load_campaign``: a campaign from its TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from bfreplay.campaigns.campaign import HPO, IN_TURN, MODEL_PARAM, SEARCHED, Campaign
from bfreplay.campaigns.models_of_file import TRIAL_KEYS, ModelsOfFile
from bfreplay.campaigns.parts_of_file import OPTUNA, RANDOM, SCORE_KEYS, PartsOfFile
from bfreplay.campaigns.rules import CHECKPOINT, Arrival, Budget, Retries
from bfreplay.campaigns.search_space import Choice, SearchSpace
from bfreplay.campaigns.source import CampaignSource
from bfreplay.campaigns.toml_table import TomlTable, with_place
from bfreplay.checks import nearest
from bfreplay.datasets.jobs.curve_points import CurveShelf
from bfreplay.datasets.jobs.tables import JobTable, named_curves, read_curves_file, read_toml
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.documents import Cell, check_toml_size, refuse_other_toml
from bfreplay.errors import InputError
from bfreplay.scalability import Curve

_OPTUNA_PARALLEL = 10
"""Trials in flight where the file does not say: a sampler learns only from trials that have reported."""
_TABLES = ("campaign", "trial", "model", "retries", "scores", "pruner", "proposer", "search", "optuna", "curves")
_CAMPAIGN_KEYS = (
    "name",
    "kind",
    "trials",
    "seed",
    "parallel",
    "arrival",
    "every_s",
    "per_hour",
    "start_after_s",
    "higher_is_better",
    "proposer",
    "budget",
)
_BUDGET_KEYS = ("node_hours", "samples", "hours", "failed_trials")
_RETRY_KEYS = ("failures_per_epoch", "most", "from")
_IS_CAMPAIGN = re.compile(r"^[ \t]*\[[ \t]*campaign[ \t]*[\].]", re.MULTILINE)


def is_campaign(path: str | PathLike[str]) -> bool:
    """Return whether a file is a campaign: a ``.toml`` with a ``[campaign]`` table. TOML is not parsed."""
    file = Path(path)
    if file.suffix.lower() != ".toml" or not file.is_file():
        return False
    check_toml_size(file)
    return _IS_CAMPAIGN.search(file.read_text(encoding="utf-8", errors="replace")) is not None


def load_campaign(
    path: str | PathLike[str], curves: str | PathLike[str] | None = None, *, allow_code: bool = False
) -> CampaignSource:
    """Read a campaign of trials.

    Parameters
    ----------
    path
        A TOML file with the tables ``[campaign]`` and ``[trial]``; docs/campaigns.md lists every key.
    curves
        Named curves, as for ``load_jobs``; the file may hold its own in ``[curves.NAME]``.
    allow_code
        Import code that the files name, ``package.module:thing``; only for trusted files.

    Raises
    ------
    InputError
        A value in the files is invalid; the message names file, table, key and value.
    """
    file = Path(path)
    curves_file = None if curves is None else Path(curves)
    tables = read_toml(file)
    refuse_other_toml(tables, file, "a campaign")
    shelf = CurveShelf(allow_code=allow_code)
    if curves_file is not None:
        check_is_file(curves_file)
    known = {} if curves_file is None else read_curves_file(curves_file, shelf)
    sources = [SourceFile.of(source) for source in (file, curves_file) if source is not None]
    return campaign_of(
        tables, file, known, shelf, [(source.name, source.sha256) for source in sources], allow_code=allow_code
    )


def campaign_of(
    tables: Mapping[str, Cell],
    file: Path,
    known: Mapping[str, Curve] | None = None,
    shelf: CurveShelf | None = None,
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
    known
        Curves besides those of the tables.
    shelf
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
    shelf = shelf or CurveShelf(allow_code=allow_code)
    return _Reader(file, tables, dict(known or {}), shelf).source(sources, allow_code=allow_code)


class _Reader:
    """Reads the tables of one file."""

    def __init__(self, file: Path, tables: Mapping[str, Cell], known: dict[str, Curve], shelf: CurveShelf) -> None:
        self._file = file
        self._tables = tables
        for key in tables:
            if key not in _TABLES:
                raise self._unknown_table(key)
        self._known = known
        self._shelf = shelf
        self._add_curves()

    def source(self, sources: Sequence[tuple[str, str]], *, allow_code: bool) -> CampaignSource:
        campaign, proposer_name = self._campaign()
        search = self._table("search").cells
        space = SearchSpace.from_table(search, self._file) if "search" in self._tables else None
        if campaign.model_choice == SEARCHED:
            self._check_searched_models(campaign, space)
        parts = PartsOfFile(self._table, campaign, space, allow_code)
        proposer = parts.proposer(proposer_name)
        return CampaignSource(campaign, proposer, parts.pruner(proposer, proposer_name), parts.scores(), sources)

    def _table(self, name: str, known: Sequence[str] | None = None, *, required: bool = False) -> TomlTable:
        if required and name not in self._tables:
            raise InputError(
                f"the table [{name}] is missing",
                file=self._file,
                row=f"[{name}]",
                expected="the tables [campaign] and [trial] at least",
                fix=f"add [{name}]; a file to start from: bfreplay jobs make hpo -o campaign.toml",
            )
        return TomlTable.of(self._file, f"[{name}]", self._tables.get(name, {}), known)

    def _add_curves(self) -> None:
        own = self._tables.get("curves", {})
        if not isinstance(own, dict) or not all(isinstance(curve, dict) for curve in own.values()):
            expected = "[curves.NAME] with nodes and values"
            fix = "write [curves.NAME] in a line of its own, its keys below"
            raise self._error("curves is no table of tables", None, "curves", own, expected, fix)
        for name, curve in named_curves(JobTable(self._file, (), (), own), self._shelf).items():
            if name in self._known:
                raise InputError(
                    f"curve {name!r} stands in the campaign and in the curves file",
                    file=self._file,
                    row=f"[curves.{name}]",
                    value=name,
                    fix="keep one of them",
                )
            self._known[name] = curve

    def _campaign(self) -> tuple[Campaign, str]:
        """Return the campaign, and the name of its proposer."""
        table = self._table("campaign", _CAMPAIGN_KEYS, required=True)
        trial = self._table("trial", TRIAL_KEYS, required=True)
        scores = self._table("scores", SCORE_KEYS)
        name = table.text("name", self._file.stem)
        kind = table.text("kind", HPO)
        epochs = trial.whole("epochs", 1)
        models = with_place(table, lambda: ModelsOfFile(kind, name, self._known, self._shelf)).read(
            trial, self._tables.get("model")
        )
        trials = table.whole("trials", 1)
        arrival = with_place(
            table, lambda: Arrival(table.text("arrival", "at-once"), **table.arguments("every_s", "per_hour"))
        )
        limits = TomlTable.of(self._file, "[campaign.budget]", table.cells.get("budget", {}), _BUDGET_KEYS)
        budget = with_place(limits, lambda: Budget(**limits.arguments(*_BUDGET_KEYS)))
        retries = self._retries()
        report_every = scores.whole("report_every_epochs", 1) if scores.has("report_every_epochs") else None
        choice = trial.text("model_choice", IN_TURN)
        others = table.arguments("seed", "parallel", "start_after_s", "higher_is_better")
        proposer = self._proposer_name(table)
        if proposer == OPTUNA and not table.has("parallel"):
            others["parallel"] = _OPTUNA_PARALLEL
        campaign = with_place(
            table,
            lambda: Campaign(
                name,
                models,
                epochs,
                trials,
                kind,
                arrival=arrival,
                budget=budget,
                retries=retries,
                report_every_epochs=report_every,
                **others,
            ),
        )
        if choice != IN_TURN:
            campaign = with_place(trial, lambda: replace(campaign, model_choice=choice))
        return campaign, proposer

    def _proposer_name(self, table: TomlTable) -> str:
        name = table.text("proposer", OPTUNA if "optuna" in self._tables else RANDOM)
        if "optuna" in self._tables and name != OPTUNA:
            raise table.error(
                "[optuna] has no effect with another proposer",
                "proposer",
                repr(OPTUNA),
                f'write proposer = "{OPTUNA}", or drop [optuna]',
            )
        return name

    def _retries(self) -> Retries:
        table = self._table("retries", _RETRY_KEYS)
        if table.cells and not table.has("failures_per_epoch"):
            table.take("failures_per_epoch")
        return with_place(
            table,
            lambda: Retries(origin=table.text("from", CHECKPOINT), **table.arguments("failures_per_epoch", "most")),
        )

    def _check_searched_models(self, campaign: Campaign, space: SearchSpace | None) -> None:
        names = [model.name for model in campaign.models]
        dimension = None if space is None else space.dimensions.get(MODEL_PARAM)
        choices = dimension.choices if isinstance(dimension, Choice) else ()
        if not choices or any(choice not in names for choice in choices):
            label, expected = f"[search.{MODEL_PARAM}]", "names of models: " + ", ".join(names)
            problem = f"the models are to be searched, and {label} does not choose among them"
            fix = f"add {label} with choices = {names}"
            raise self._error(problem, label, "choices", list(choices), expected, fix)

    def _unknown_table(self, key: str) -> InputError:
        fix = nearest(key, _TABLES, "drop it, or move its keys to the table that has them")
        if key == "job":
            fix = "jobs stand in a file of their own: a campaign makes its jobs from [trial]"
        known = ", ".join(f"[{name}]" for name in _TABLES)
        return self._error(f"the file has an unknown key {key!r} at its top level", None, key, key, known, fix)

    def _error(self, problem: str, row: str | None, column: str, value: object, expected: str, fix: str) -> InputError:
        return InputError(problem, file=self._file, row=row, column=column, value=value, expected=expected, fix=fix)
