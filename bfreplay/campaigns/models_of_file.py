"""Models that the trials of a campaign file train: ``[trial]``, and ``[[model]]`` for each model that differs."""

from __future__ import annotations

from collections.abc import Mapping

from bfreplay import checks
from bfreplay.campaigns.campaign import KINDS, NAS, TrialModel
from bfreplay.campaigns.toml_table import TomlTable, with_place
from bfreplay.datasets.jobs.curve_points import CurveShelf
from bfreplay.datasets.jobs.rows import JobRows
from bfreplay.datasets.jobs.tables import JobTable
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.scalability import Curve

_REQUIRED = ("max_nodes", "scale_up_cost_s", "scale_down_cost_s", "curve")
_OF_MODELS = ("samples_per_epoch", "min_nodes", *_REQUIRED, "objective_curve", "weight", "deadline_after_s")
TRIAL_KEYS = ("epochs", *_OF_MODELS, "model", "model_choice")
MODEL_KEYS = ("name", *_OF_MODELS)


class ModelsOfFile:
    """Reads models; ``known`` are the curves that they may name."""

    def __init__(self, kind: str, campaign: str, known: Mapping[str, Curve], shelf: CurveShelf) -> None:
        checks.one_of("kind", kind, KINDS)
        self._kind = kind
        self._campaign = campaign
        self._known = known
        self._shelf = shelf

    def read(self, trial: TomlTable, models: object) -> tuple[TrialModel, ...]:
        """Return the models of ``[trial]`` and ``[[model]]``.

        Parameters
        ----------
        trial
            The keys that all models share, or all of them.
        models
            The tables ``[[model]]``, each with a name and what differs; ``None`` for a file without.

        Raises
        ------
        InputError
            Models that do not fit the kind of campaign, or a cell that cannot be used.
        """
        if models is not None:
            return self._from_tables(trial, models)
        curve = trial.take("curve")
        is_list = isinstance(curve, list) and bool(curve) and all(isinstance(each, str) for each in curve)
        if not is_list:
            return (self._model(trial.label, trial, trial.cells, self._name_of_one(trial)),)
        if self._kind != NAS:
            raise trial.error(
                "a campaign of kind 'hpo' has one curve", "curve", "one curve", 'name one, or write kind = "nas"'
            )
        if trial.has("model"):
            raise trial.error(
                "model has no effect beside a list of curves: models are called after them",
                "model",
                "no such key",
                "drop it, or write a [[model]] with a name for each",
            )
        for name in curve:
            if name not in self._known:
                raise trial.error(
                    f"no curve is called {name!r}",
                    "curve",
                    "a list of names of curves: " + (", ".join(sorted(self._known)) or "(no curves given)"),
                    "add [curves.NAME], give the file of curves, or write a [[model]] for each model",
                )
        return tuple(self._model(trial.label, trial, {**trial.cells, "curve": name}, name) for name in curve)

    def _from_tables(self, trial: TomlTable, models: object) -> tuple[TrialModel, ...]:
        if self._kind != NAS:
            raise InputError(
                "a campaign of kind 'hpo' has [[model]] tables",
                file=trial.file,
                row="[[model]] 1",
                expected="one model, in [trial]",
                fix='move its keys to [trial], or write kind = "nas"',
            )
        if not isinstance(models, list) or not models:
            raise InputError(
                "model is no array of tables",
                file=trial.file,
                column="model",
                value=models,
                expected="[[model]] before each model",
                fix="write [[model]] in double brackets, in a line of its own",
            )
        if trial.has("model"):
            raise trial.error(
                "[trial] names a model, and there are [[model]] tables", "model", "a name in each [[model]]", "drop it"
            )
        made: list[TrialModel] = []
        for i, cells in enumerate(models, start=1):
            table = TomlTable.of(trial.file, f"[[model]] {i}", cells, MODEL_KEYS)
            name = table.text("name")
            if name in [model.name for model in made]:
                raise table.error(f"two models are called {name!r}", "name", "unique names", "rename one of them")
            merged = {**trial.cells, **{key: cell for key, cell in table.cells.items() if key != "name"}}
            made.append(self._model(f"{table.label} ({name})", trial, merged, name))
        return tuple(made)

    def _name_of_one(self, trial: TomlTable) -> str:
        if trial.has("model"):
            return trial.text("model")
        curve = trial.cells["curve"]
        return curve.strip() if isinstance(curve, str) and curve.strip() in self._known else self._campaign

    def _model(self, label: str, trial: TomlTable, cells: Mapping[str, Cell], name: str) -> TrialModel:
        merged = TomlTable(trial.file, label, cells)
        samples_per_epoch = merged.number("samples_per_epoch", above=0)
        for key in _REQUIRED:
            merged.take(key)
        work = samples_per_epoch * trial.whole("epochs", 1)
        row = {
            **{key: cell for key, cell in cells.items() if key in _OF_MODELS and key != "samples_per_epoch"},
            "name": name,
            "model": name,
            "work_samples": work,
        }
        table = JobTable(trial.file, ((label, row),), tuple(row))
        jobs = with_place(merged, lambda: JobRows(table, self._known, self._shelf).jobs())
        return TrialModel(jobs[0], samples_per_epoch)
