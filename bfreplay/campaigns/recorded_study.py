"""A study that Optuna has run, read from its file: the trials of a campaign, with the values that they reported."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from bfreplay import checks
from bfreplay.campaigns.optuna_study import load_optuna, quiet
from bfreplay.campaigns.parts import Advice, Params
from bfreplay.campaigns.pruners import NoPruner
from bfreplay.datasets.jobs.tables import read_csv_table
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.outputs import scratch_prefix
from bfreplay.registry import one_line
from bfreplay.typed_tables import TypedTable, Whole, typed_table
from bfreplay.wording import count

_TABLE = "[study]"
_SQLITE, _JOURNAL, _CSV = "SQLite format 3\0", '{"op_code"', "csv"
_OTHER_THAN_TABLES = "SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE '%virtual%'"
"""Optuna makes none of these, and a view may compute without end."""

_ENDS = _FINISHED, _PRUNED, _FAILED = "COMPLETE", "PRUNED", "FAIL"
_STEP, _STEP_FROM_0, _ATTRIBUTE = "step", "step+1", "user_attrs."
_EPOCHS = "user_attrs.epochs"
_FILES = "a study of Optuna: its storage (SQLite or journal), or the CSV of study.trials_dataframe()"
_REPORT = "trial.report(value, epoch) after each epoch; "
_EPOCHS_OF_TRIAL = 'trial.set_user_attr("epochs", n); or the column user_attrs_epochs in its CSV'
_FIX = "record one of these, or add the column to the CSV of a study that was run: docs/optuna.md"
_STEP_WORDS = 'with "step", every step is an epoch of samples_per_epoch'
_TWO_HEADERS = {"params", "user_attrs", "system_attrs", "values"}
"""Columns that a CSV with ``multi_index=True`` has in the first of two header rows."""


class StudyTable(TypedTable, frozen=True, kw_only=True):
    """``[study]`` of a campaign: a file, relative to the campaign's, and what is chosen in it."""

    file: str
    name: str | None = None
    objective: Whole | str | None = None
    epochs_from: str | None = None


class RecordedTrial(NamedTuple):
    """A trial as the file has it: final values by objective, and reported ones by step.

    In ``RecordedStudy.trials``, the reported ones are scores by epoch, ``None`` for no finite number.
    """

    number: int
    state: str
    params: Mapping[str, Any]
    user_attrs: Mapping[str, Any]
    values: Sequence[float | None] | None
    reported: Mapping[int, float | None]

    @property
    def epochs(self) -> int:
        """Whole epochs until it ended; one that failed did so in the next."""
        return max(self.reported, default=0)


_fields_of_optuna = attrgetter("number", "state.name", "params", "user_attrs", "values", "intermediate_values")

_Contents = tuple[list[RecordedTrial], list[str], list[bool | None]]
"""Trials, objectives, and for each of these whether higher is better, ``None`` if the file does not say it."""


def kind_of_study(file: Path) -> str | None:
    """Return the kind of a file that may be a study, by its first bytes; ``None`` for any other file."""
    start = _first_line(file)
    kinds = (kind for kind in (_SQLITE, _JOURNAL) if start.startswith(kind))
    return next(kinds, _CSV if {"number", "state"} <= {*start.split(",")} else None)


def _first_line(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.readline(1 << 16).decode("utf-8-sig", "replace").strip()


class RecordedStudy(NoPruner):
    """Proposes the trials of a study in its order, gives the scores that they reported, and prunes where they were.

    Attributes
    ----------
    trials
        Those that can be replayed, by number.
    epochs
        Whole work of a trial that ended early: at least one epoch more than it had.
    higher_is_better
        True if higher scores are better; ``None`` if the file does not say it.
    sources
        Its files, with their SHA-256.
    warnings
        Sentences for the run's record.

    Raises
    ------
    InputError
        The file is no study, or does not tell the epochs of the trials; or several things can be meant.
    """

    def __init__(self, cells: Cell, campaign_file: Path) -> None:
        table = typed_table(cells, StudyTable, campaign_file, _TABLE)
        with locate_errors(campaign_file, _TABLE):
            self._file = file = campaign_file.parent / checks.local_path("file", table.file)
        self._campaign_file = campaign_file
        try:
            check_is_file(file)
            kind = kind_of_study(file)
            if kind is None:
                raise InputError("this is no study of Optuna", file=file, expected=_FILES)
        except InputError as error:
            raise error.with_changes(fix=f"correct [study] file in {campaign_file}") from error
        files = [file, *filter(Path.is_file, (Path(f"{file}{suffix}") for suffix in ("-wal", "-journal")))]
        self.sources = [(source.name, source.sha256) for source in map(SourceFile.of, files)]
        self._name = table.name
        contents = self._from_csv() if kind == _CSV else self._from_storage(files, kind == _SQLITE)
        trials, objectives, is_higher_better = contents
        if not trials:
            raise InputError("the study has no trials", file=file, expected="a study that was run", fix="run it")
        self._objective = self._choose("objective", table.objective, objectives, "objective")
        self._n_objectives, objective_index = len(objectives), objectives.index(self._objective)
        self.higher_is_better = is_higher_better[objective_index]
        self._first_step = min((step for trial in trials for step in trial.reported), default=1)
        self._epochs_from = self._source_of_epochs(trials, table.epochs_from)
        courses = (self._with_scores(trial, objective_index) for trial in sorted(trials, key=attrgetter("number")))
        self.trials = [trial for trial in courses if trial.state == _FAILED or (trial.state in _ENDS and trial.epochs)]
        reason = "they still run, or ended without a report after an epoch"
        if not self.trials:
            raise self._error(f"no trial can be replayed: {reason}", "epochs_from", self._epochs_from)
        n_left_out = len(trials) - len(self.trials)
        left_out = f"{n_left_out:,} of {count(len(trials), 'trial')} of the study are left out: {reason}."
        self.warnings = [left_out] if n_left_out else []
        self.epochs = max(trial.epochs + (trial.state != _FINISHED) for trial in self.trials)

    def propose(self, number: int) -> Params:
        """Return the hyper-parameters of the trial."""
        return self.trials[number].params

    def course(self, number: int) -> tuple[int, float | None]:
        """Return the epochs of the trial's whole work, and those at which it fails; ``None`` if it does not."""
        trial = self.trials[number]
        work_epochs = trial.epochs if trial.state == _FINISHED else self.epochs
        return work_epochs, trial.epochs + 0.5 if trial.state == _FAILED else None

    def score(self, number: int, params: Params, epoch: float) -> float | None:
        """Return what the trial reported after ``epoch`` epochs; ``None`` for nothing, or no number."""
        return self.trials[number].reported.get(int(epoch))

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Return the epochs at which any trial reported."""
        return sorted({epoch for trial in self.trials for epoch in trial.reported if epoch < epochs})

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Prune the trial where it was pruned."""
        trial = self.trials[number]
        return Advice.PRUNE if trial.state == _PRUNED and epoch == trial.epochs else Advice.CONTINUE

    def describe(self) -> dict[str, object]:
        """Return the study, the objective, and the source of epochs."""
        return {"name": self._name, "objective": self._objective, "epochs_from": self._epochs_from}

    def assume(self, table: str, cells: Mapping[str, Cell]) -> None:
        """Warn of keys of a table of the campaign that are assumed."""
        if cells:
            assumed = ", ".join(f"{key} = {json.dumps(value)}" for key, value in cells.items())
            file = f'a campaign file with [study] file = "{self._file.name}"'
            if self._campaign_file != self._file:
                file = self._campaign_file.name
            study = f"The study {self._name or self._file.name} does not say everything"
            self.warnings.append(f"{study}; assumed: {assumed}. Give yours in [{table}] of {file}: docs/optuna.md.")

    def _error(self, problem: str, key: str, value: object, names: Sequence[str] = ()) -> InputError:
        """Return the error for a key that is none of ``names``; without names, for a study that cannot be replayed."""
        place: dict[str, Any] = {"file": self._campaign_file, "row": _TABLE, "column": key, "value": value}
        if not names:
            # Optuna takes no reports of several objectives
            expected = _EPOCHS_OF_TRIAL if self._n_objectives > 1 else _REPORT + _EPOCHS_OF_TRIAL
            return InputError(problem, **place, expected=expected, fix=_FIX)
        fix = f'{key} = "{names[0]}", say, below [study] file = "{self._file.name}" in a campaign file: docs/optuna.md'
        fix = checks.nearest(str(value), names, fix)
        return InputError(problem, **place, expected="one of " + ", ".join(names), fix=fix)

    def _choose(self, key: str, choice: str | int | None, names: Sequence[str], noun: str) -> str:
        """Return the only name, or the one that was chosen."""
        if not names:
            raise InputError(f"there is no {noun} of Optuna", file=self._file, expected=_FILES)
        if choice is None and len(names) == 1:
            return names[0]
        if str(choice) not in names:
            problem = f"it is not plain which {noun} is meant" if choice is None else f"there is no {noun} {choice!r}"
            raise self._error(problem, key, choice, names)
        return str(choice)

    def _from_storage(self, files: Iterable[Path], is_sqlite: bool) -> _Contents:
        """Read a copy: opening a storage may create or upgrade its tables."""
        optuna = load_optuna(self._file, _TABLE)
        with TemporaryDirectory(prefix=scratch_prefix("study")) as folder, quiet():
            path = f"{folder}/study"
            for file in files:
                shutil.copy(file, path + file.name.removeprefix(self._file.name))
            try:
                if is_sqlite:
                    with closing(sqlite3.connect(path)) as database:
                        if database.execute(_OTHER_THAN_TABLES).fetchone() is not None:
                            raise InputError("the database has views, triggers or virtual tables", file=self._file)
                    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
                else:
                    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
                self._name = self._choose("name", self._name, optuna.study.get_all_study_names(storage), "study")
                study = optuna.load_study(study_name=self._name, storage=storage)
                is_higher_better: list[bool | None] = [direction.name == "MAXIMIZE" for direction in study.directions]
                objectives = [str(name) for name in study.metric_names or range(len(is_higher_better))]
                # with types checked: a journal may have anything
                trials = msgspec.convert([_fields_of_optuna(trial) for trial in study.trials], list[RecordedTrial])
                return trials, objectives, is_higher_better
            except InputError:
                raise
            except Exception as error:  # a file may have anything
                problem, fix = f"Optuna cannot read it: {one_line(error)}", "open it with optuna.load_study in Python"
                raise InputError(problem, file=self._file, expected="a storage of Optuna", fix=fix) from error

    def _from_csv(self) -> _Contents:
        if _TWO_HEADERS.intersection(_first_line(self._file).split(",")):
            problem, fix = "the CSV has two header rows", "write it with study.trials_dataframe(multi_index=False)"
            raise InputError(problem, file=self._file, expected="one header row", fix=fix)
        table, trials = read_csv_table(self._file), []
        columns = [column for column in table.columns if column.startswith("value")]
        if not columns:
            problem, fix = "the column 'value' is missing", "write the CSV with study.trials_dataframe()"
            raise InputError(problem, file=self._file, expected=_FILES, fix=fix)
        for row_number, cells in table.rows:
            row = {name: _value_of(str(text)) for name, text in cells.items()}
            params = {name.removeprefix("params_"): row[name] for name in row if name.startswith("params_")}
            attributes = {name.removeprefix("user_attrs_"): row[name] for name in row if name.startswith("user_attrs_")}
            with locate_errors(self._file, row_number):
                number = checks.whole("number", row.get("number"), 0)
                values = [checks.number(column, row[column]) if column in row else None for column in columns]
            trials.append(RecordedTrial(number, str(row.get("state")), params, attributes, values, {}))
        return trials, [column.removeprefix("values_") for column in columns], [None] * len(columns)

    def _source_of_epochs(self, trials: Sequence[RecordedTrial], choice: str | None) -> str:
        """Return the choice, or what is plain: steps without gaps from 0 or 1; without steps, ``_EPOCHS``."""
        steps = [sorted(trial.reported) for trial in trials if trial.reported]
        first = self._first_step
        is_plain = first in (0, 1) and all(of_trial == [*range(first, first + len(of_trial))] for of_trial in steps)
        attributes = dict.fromkeys(_ATTRIBUTE + name for trial in trials for name in trial.user_attrs)
        choices = [*([_STEP, _STEP_FROM_0] if steps else []), *attributes]
        if choice is None and (is_plain if steps else _EPOCHS in choices):
            return _STEP if steps else _EPOCHS
        if choice is not None and choice in choices:
            return choice
        problem = "there are no intermediate values: it is unknown how many epochs each trial trained"
        if choice not in (None, _STEP, _STEP_FROM_0):
            problem = f"there is no {choice!r} in the study"
        elif steps:
            examples = ", ".join(map(str, max(steps, key=len)[:5]))
            problem = f"it is not plain how many epochs a step is (a trial has the steps {examples}); {_STEP_WORDS}"
        raise self._error(problem, "epochs_from", choice, choices)

    def _with_scores(self, trial: RecordedTrial, objective_index: int) -> RecordedTrial:
        """Return the trial with scores by epoch."""
        if self._epochs_from in (_STEP, _STEP_FROM_0):
            shift = int(self._first_step < 1 or self._epochs_from == _STEP_FROM_0)
            scores = {step + shift: value for step, value in trial.reported.items() if step + shift > 0}
        else:
            with locate_errors(self._file, f"trial {trial.number}"):
                value = trial.user_attrs.get(self._epochs_from.removeprefix(_ATTRIBUTE), 0)
                epochs = checks.whole(self._epochs_from, value, 0)
            scores = {epochs: None} if epochs else {}
        if scores and trial.values:
            scores[max(scores)] = trial.values[objective_index]
        scores = {epoch: score if _is_plain(score) else None for epoch, score in scores.items()}
        params = {name: value if _is_plain(value) else str(value) for name, value in trial.params.items()}
        return trial._replace(params=params, reported=scores)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _value_of(text: str) -> str | int | float:
    """Return the number in a cell, or its text."""
    with suppress(ValueError, OverflowError):
        number = float(text)
        return int(number) if number.is_integer() else number
    return text
