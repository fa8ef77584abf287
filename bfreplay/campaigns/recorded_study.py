"""A study that Optuna has run, read from its file: the trials of a campaign, with the values that they reported."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bfreplay import checks
from bfreplay.campaigns.campaign import MOST_TRIALS
from bfreplay.campaigns.optuna_study import load_optuna, quiet
from bfreplay.campaigns.parts import Params, TrialState
from bfreplay.datasets.jobs.tables import read_csv_table
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.named_inputs import local_path
from bfreplay.documents import Cell
from bfreplay.errors import InputError
from bfreplay.outputs import scratch_prefix
from bfreplay.registry import one_line
from bfreplay.typed_tables import TypedTable, Whole, typed_table

TABLE = "[study]"
_SQLITE, _JOURNAL, _CSV = b"SQLite format 3\0", b'{"op_code"', b"csv"
_START_BYTES = 1 << 16
_OTHER_THAN_TABLES = "SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'create virtual%'"
"""Of these Optuna has none, and a view may compute without end."""

_ENDS = {"COMPLETE": TrialState.FINISHED, "PRUNED": TrialState.PRUNED, "FAIL": TrialState.FAILED}
_STEP, _STEP_FROM_0 = "step", "step+1"
_ATTRIBUTES, _PARAMS = "user_attrs.", "params."
_TO_RECORD = "the storage of a study whose trials call trial.report(value, epoch) after each epoch"
_PLAIN = ("user_attrs.epochs", "user_attrs.epoch", "user_attrs.n_epochs")


class StudyTable(TypedTable, frozen=True, kw_only=True):
    """``[study]`` of a campaign: a file, relative to the campaign's, and what is chosen in it."""

    file: str
    name: str | None = None
    objective: Whole | str | None = None
    epochs_from: str | None = None


class RecordedTrial(NamedTuple):
    """A trial as it was: number in the study, end, whole epochs until then, and scores by epoch (``None``: no number).

    One that failed did so in the epoch after ``epochs``.
    """

    number: int
    params: Params
    state: TrialState
    epochs: int
    scores: Mapping[int, float | None]

    def course(self, usual_epochs: int) -> tuple[int, float | None, int | None]:
        """Return the epochs of its whole work, and those at which it failed, and was pruned; ``None`` if not.

        A trial that ended early was to have ``usual_epochs``, or more if it came so far.
        """
        if self.state is TrialState.FINISHED:
            return self.epochs, None, None
        work_epochs = max(usual_epochs, self.epochs + 1)
        return (work_epochs, *((self.epochs + 0.5, None) if self.state is TrialState.FAILED else (None, self.epochs)))


class _Trial(NamedTuple):
    """A trial as the file has it: final values by objective, and reported ones by step."""

    number: int
    state: str
    params: Mapping[str, Any]
    user_attrs: Mapping[str, Any]
    values: Mapping[str, float]
    steps: Mapping[int, float]

    def numbers(self) -> dict[str, int | float]:
        """Return its attributes and parameters that are numbers, by name."""
        named = {_ATTRIBUTES + name: value for name, value in self.user_attrs.items()}
        named |= {_PARAMS + name: value for name, value in self.params.items()}
        return {name: value for name, value in named.items() if isinstance(value, int | float) and _is_plain(value)}


def kind_of_study(file: Path) -> bytes | None:
    """Return the kind of a file that may be a study, by its first bytes; ``None`` for any other file."""
    with file.open("rb") as stream:
        start = stream.read(_START_BYTES)
    columns = start.partition(b"\n")[0].decode(errors="replace").strip().split(",")
    is_csv = {"number", "state"} <= {*columns} and any(map(_is_objective, columns))
    return next((kind for kind in (_SQLITE, _JOURNAL) if start.startswith(kind)), _CSV if is_csv else None)


class RecordedStudy:
    """Proposes the trials of a study in its order, and gives the scores that they reported.

    Attributes
    ----------
    trials
        Those that can be replayed, by number.
    epochs
        Of a trial that is not stopped early.
    higher_is_better
        ``None`` if the file does not say it.
    sources
        Its files, with their SHA-256.

    Raises
    ------
    InputError
        The file is no study, or does not tell the epochs of the trials; or several things can be meant.
    """

    def __init__(self, cells: Cell, campaign_file: Path) -> None:
        table = typed_table(cells, StudyTable, campaign_file, TABLE)
        self._file = file = campaign_file.parent / local_path(table.file)
        kind = kind_of_study(file) if file.is_file() else None
        if kind is None:
            expected = "a storage of Optuna (SQLite or journal), or the CSV of study.trials_dataframe()"
            place: dict[str, Any] = {"file": campaign_file, "row": TABLE, "column": "file", "value": table.file}
            raise InputError("this is no study", **place, expected=expected, fix="correct the path")
        files = [file, *filter(Path.is_file, (Path(f"{file}{suffix}") for suffix in ("-wal", "-journal")))]
        self.sources = [(source.name, source.sha256) for source in map(SourceFile.of, files)]
        self._name = table.name
        all_trials, directions = self._from_csv() if kind == _CSV else self._from_storage(files, kind == _SQLITE)
        self._objective = self._choose("objective", table.objective, [*directions])
        self.higher_is_better = directions[self._objective]
        self._epochs_from = self._source_of_epochs(all_trials, table.epochs_from)
        recorded = [self._recorded(trial) for trial in sorted(all_trials, key=lambda trial: trial.number)]
        self.trials: list[RecordedTrial] = [trial for trial in recorded if not isinstance(trial, str)]
        self._left_out = Counter(reason for reason in recorded if isinstance(reason, str))
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in self._left_out.items())
        self._warnings = [f"Of {len(recorded):,} trials of the study, some are left out: {reasons}."] if reasons else []
        if not self.trials:
            problem = f"the study has no trial to replay: {reasons or 'it is empty'}"
            raise self.error(problem, "epochs_from", self._epochs_from, _TO_RECORD)
        finished = [trial.epochs for trial in self.trials if trial.state is TrialState.FINISHED]
        self.epochs = max(finished, default=1 + max(trial.epochs for trial in self.trials))

    def begin(self, higher_is_better: bool) -> None:
        """Do nothing: nothing changes."""

    def propose(self, number: int) -> Params:
        """Return the hyper-parameters of the trial."""
        return self.trials[number].params

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Do nothing."""

    def score(self, number: int, params: Params, epoch: float) -> float | None:
        """Return what the trial reported after ``epoch`` epochs; ``None`` for nothing, or no number."""
        return self.trials[number].scores.get(int(epoch))

    def describe(self) -> dict[str, object]:
        """Return the study, the objective, the source of epochs, and the trials that are left out, by reason."""
        choices = {"study": self._name, "objective": self._objective, "epochs_from": self._epochs_from}
        return {"kind": "recorded", **choices, "left_out": dict(self._left_out), "warnings": self._warnings}

    def assume(self, cells: Mapping[str, Cell]) -> None:
        """Say in the run's warnings what is assumed of the trials."""
        assumed = ", ".join(f"{key} = {value!r}" for key, value in cells.items())
        fix = f'Give yours in [trial] of a campaign file with [study] file = "{self._file.name}": docs/optuna.md.'
        self._warnings += [f"The study does not say what a trial needs; assumed: {assumed}. {fix}"] if assumed else []

    def error(self, problem: str, key: str, value: object, expected: str) -> InputError:
        """Return the error for a key that has to be given in a campaign file."""
        table = TABLE if key in StudyTable.__struct_fields__ else "[campaign]"
        fix = (
            f'write a campaign file with [study] file = "{self._file.name}", and {key} = ... in {table}: docs/optuna.md'
        )
        return InputError(problem, file=self._file, column=key, value=value, expected=expected, fix=fix)

    def _choose(self, key: str, choice: str | int | None, names: Sequence[str]) -> str:
        """Return the only name, or the one that was chosen, by itself or by its number from 0."""
        if isinstance(choice, int) and choice < len(names):
            return names[choice]
        if choice in names or (choice is None and len(names) == 1):
            return names[0] if choice is None else str(choice)
        if not names:
            raise InputError("there is no study of Optuna", file=self._file, expected=_TO_RECORD)
        problem = f"there are {len(names):,} {'studies' if key == 'name' else 'objectives'}"
        raise self.error(problem, key, choice, "one of " + ", ".join(names))

    def _from_storage(self, files: Iterable[Path], is_sqlite: bool) -> tuple[list[_Trial], dict[str, bool | None]]:
        """Read a copy: opening a storage may create or upgrade its tables."""
        optuna = load_optuna(self._file, TABLE)
        with TemporaryDirectory(prefix=scratch_prefix("study")) as folder, quiet():
            path, *_ = [shutil.copy(file, folder) for file in files]
            try:
                if is_sqlite:
                    with closing(sqlite3.connect(path)) as database:
                        if database.execute(_OTHER_THAN_TABLES).fetchone() is not None:
                            raise InputError("the database has views, triggers or virtual tables", file=self._file)
                    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
                else:
                    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
                self._name = self._choose("name", self._name, optuna.study.get_all_study_names(storage))
                study = optuna.load_study(study_name=self._name, storage=storage)
                frozen_trials, directions = study.get_trials(deepcopy=False), study.directions
                names = study.metric_names or [str(number) for number in range(len(directions))]
            except InputError:
                raise
            except Exception as error:  # a file may have anything
                problem, fix = f"Optuna cannot read it: {one_line(error)}", "open it with optuna.load_study in Python"
                raise InputError(problem, file=self._file, expected="a storage of Optuna", fix=fix) from error
        trials = [
            _Trial(
                trial.number,
                trial.state.name,
                trial.params,
                trial.user_attrs,
                dict(zip(names, trial.values or (), strict=False)),
                trial.intermediate_values,
            )
            for trial in frozen_trials
        ]
        is_higher = (direction.name == "MAXIMIZE" for direction in directions)
        return trials, dict(zip(names, is_higher, strict=True))

    def _from_csv(self) -> tuple[list[_Trial], dict[str, bool | None]]:
        table, trials = read_csv_table(self._file), []
        for row_number, cells in table.rows:
            row = {name: _plain_value(str(text)) for name, text in cells.items()}
            params, attributes = (
                {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}
                for prefix in ("params_", "user_attrs_")
            )
            with locate_errors(self._file, row_number):
                trial_number = checks.whole("number", row.get("number"), 0)
                values = {name: checks.number(name, row[name]) for name in filter(_is_objective, row)}
            trials.append(_Trial(trial_number, str(row.get("state")), params, attributes, values, {}))
        return trials, dict.fromkeys(filter(_is_objective, table.columns))

    def _source_of_epochs(self, trials: Sequence[_Trial], given: str | None) -> str:
        """Return ``given``, or what plainly stands for epochs: steps without gaps from 0 or 1, or an attribute."""
        steps = [sorted(trial.steps) for trial in trials if trial.steps]
        first = min((of_trial[0] for of_trial in steps), default=0)
        names = sorted({name for trial in trials for name, value in trial.numbers().items() if value == int(value)})
        possible = [*([_STEP, _STEP_FROM_0] if steps else []), *names]
        plain = [name for name in _PLAIN if name in names]
        problem = "there are no intermediate values: it is unknown how many epochs each trial trained"
        if steps:
            is_plain = first <= 1 and all(of_trial == [*range(first, first + len(of_trial))] for of_trial in steps)
            plain = [_STEP if first else _STEP_FROM_0] if is_plain else []
            examples = ", ".join(map(str, max(steps, key=len)[:5]))
            problem = f"it is not plain how many epochs a step is: a trial reported at the steps {examples}"
        if given is None and len(plain) == 1:
            return plain[0]
        if given in possible:
            return str(given)
        problem = problem if given is None else f"no trial has {given!r}"
        expected = f"one of {', '.join(possible)}; or " if possible else ""
        raise self.error(problem, "epochs_from", given, expected + _TO_RECORD)

    def _recorded(self, trial: _Trial) -> RecordedTrial | str:
        """Return the trial, or the reason for leaving it out."""
        state, source, scores = _ENDS.get(trial.state), self._epochs_from, dict[int, float | None]()
        if state is None:
            return "still running or waiting"
        if source in (_STEP, _STEP_FROM_0):
            shift = int(source == _STEP_FROM_0)
            scores |= {step + shift: value for step, value in trial.steps.items()}
            epochs = max(scores, default=0)
        elif source.startswith(_PARAMS) and state is not TrialState.FINISHED:
            return f"{state} after an unknown number of epochs"
        else:
            value = trial.numbers().get(source, 0)
            with locate_errors(self._file, f"trial {trial.number}"):
                epochs = checks.whole(source, int(value) if value == int(value) else value, 0, MOST_TRIALS)
        if not epochs and state is not TrialState.FAILED:
            return f"{state} without a report after an epoch"
        if epochs:
            scores[epochs] = trial.values.get(self._objective, scores.get(epochs))
        scores = {epoch: score if _is_plain(score) else None for epoch, score in scores.items()}
        params = {name: value if _is_plain(value) else str(value) for name, value in trial.params.items()}
        return RecordedTrial(trial.number, params, state, epochs, scores)


def _is_objective(column: str) -> bool:
    return column == "value" or column.startswith("values_")


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _plain_value(text: str) -> str | int | float | bool:
    """Return the value of a cell: a finite number, a truth value, or the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return value if _is_plain(value := kind(text)) else text
    return {"True": True, "False": False}.get(text, text)
