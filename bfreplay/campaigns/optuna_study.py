"""An Optuna study as the proposer, and the pruner, of a campaign."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bfreplay.campaigns.optuna_parts import PRUNERS, SAMPLERS, distributions, load_optuna, make, options_of
from bfreplay.campaigns.parts import Advice, Params, Released, TrialState
from bfreplay.campaigns.search_space import SearchSpace
from bfreplay.campaigns.toml_table import TomlTable, with_place
from bfreplay.checks import whole
from bfreplay.documents import Cell
from bfreplay.errors import BfreplayError, InputError
from bfreplay.registry import one_line

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial

_KEYS = ("sampler", "pruner", "report_every", "sampler_options", "pruner_options")
_STUDY_NAME = "bfreplay"
"""Always the same: Hyperband sorts trials into brackets by a checksum of the study's name and the trial's number, and
Optuna gives a study without a name a random one."""
_LARGEST_SEED = 2**32 - 1
"""Of the generator that Optuna uses."""


class OptunaStudy:
    """Asks Optuna which trial comes next, tells it every score, and lets it prune.

    The study lives in memory, and ``begin`` makes it, its sampler and its pruner anew: every replay starts from
    nothing but the seed. Trials in flight are known to the sampler; ``constant_liar`` of the sampler ``tpe`` (on unless
    it is set to false) takes them for bad ones, so that trials proposed at the same time differ.

    How a trial's end is told: finished with a score: complete. Pruned or stopped with a score: pruned, which for Optuna
    is any trial that ended early; its last score counts. Failed, or without a score that is a number: failed, which
    teaches nothing.

    As the proposer alone, beside a pruner that is not Optuna's, it hears of no score but the last. A pruned trial is
    then told with one report at step 1, and ranks among the other pruned ones by that score alone.

    Parameters
    ----------
    space
        The hyper-parameters.
    cells
        The table ``[optuna]`` of a campaign, each key of which may be left out. ``sampler``, ``pruner``: a name of
        ``SAMPLERS`` or ``PRUNERS``; or ``package.module:factory`` of a stranger's, called with its options, for a
        sampler with ``seed`` as well. ``sampler_options``, ``pruner_options``: tables of their options; the rest keep
        their defaults. ``report_every``: epochs from one report of a trial to the next.
    seed
        Seed of the sampler, from 0 to 2^32 - 1.
    higher_is_better
        True if a larger score is better.
    epochs
        Epochs of a whole trial.
    file
        File of the campaign, for messages.

    Raises
    ------
    InputError
        Optuna is not installed, a key is unknown, or a name, an option or the seed is invalid.
    """

    def __init__(
        self,
        space: SearchSpace,
        cells: Mapping[str, Cell],
        *,
        seed: int,
        higher_is_better: bool,
        epochs: int,
        file: Path,
    ) -> None:
        table = TomlTable.of(file, "[optuna]", cells, _KEYS)
        options = {key: _table_in(table, key) for key in ("sampler_options", "pruner_options")}
        self._file = file
        self._sampler, self._pruner = table.text("sampler", "tpe"), table.text("pruner", "median")
        self._report_every = table.whole("report_every", 1, 1)
        self._optuna = load_optuna(file)
        self._seed = with_place(table, lambda: whole("seed", seed, 0, _LARGEST_SEED))
        self._sampler_options = options_of("sampler", self._sampler, SAMPLERS, options["sampler_options"], file)
        given = options["pruner_options"]
        if self._pruner == "hyperband":
            given = {"max_resource": epochs, **given}
        self._pruner_options = options_of("pruner", self._pruner, PRUNERS, given, file)
        if self._pruner == "hyperband":
            least, most = (whole(key, self._pruner_options[key], 1) for key in ("min_resource", "max_resource"))
            if most < least:
                raise InputError(
                    "the least resource is above the largest",
                    file=file,
                    row="[optuna.pruner_options]",
                    column="min_resource",
                    value=least,
                    expected=f"at most max_resource, here {most} epochs",
                )
        self._distributions = distributions(space)
        self.begin(higher_is_better)

    def begin(self, higher_is_better: bool) -> None:
        """Make study, sampler and pruner anew: a replay begins."""
        optuna, self._exhausted = self._optuna, False
        options = {**self._sampler_options, "seed": self._seed}
        sampler = make("sampler", self._sampler, SAMPLERS, options, optuna.samplers.BaseSampler, self._file)
        pruner = make("pruner", self._pruner, PRUNERS, self._pruner_options, optuna.pruners.BasePruner, self._file)
        with _quiet():
            self._study: Study = optuna.create_study(
                study_name=_STUDY_NAME,
                sampler=sampler,
                pruner=pruner,
                direction="maximize" if higher_is_better else "minimize",
            )
        # how a sampler says that it has tried everything; outside Study.optimize Optuna's own raises
        self._study.stop = self._stop
        self._trials: dict[int, Trial] = {}
        self._has_reported: set[int] = set()

    def _stop(self) -> None:
        self._exhausted = True

    def propose(self, number: int) -> Params | None:
        """Return the hyper-parameters of trial ``number``; ``None`` when the sampler has tried everything.

        Raises
        ------
        BfreplayError
            The sampler fails.
        """
        if self._exhausted:
            return None
        try:
            trial = self._study.ask(self._distributions)
        except Exception as error:
            raise BfreplayError(f"the sampler {self._sampler!r} failed at trial {number}: {one_line(error)}") from error
        self._trials[number] = trial
        return {name: trial.params[name] for name in self._distributions}

    def report_epochs(self, epochs: int) -> Sequence[int]:
        """Return every ``report_every``-th epoch before the last."""
        return range(self._report_every, epochs, self._report_every)

    def advise(self, number: int, epoch: int, score: float) -> Advice:
        """Report the score to the study, and ask its pruner. A trial never waits."""
        trial = self._trials[number]
        trial.report(score, step=epoch)
        self._has_reported.add(number)
        return Advice.PRUNE if trial.should_prune() else Advice.CONTINUE

    def ended(self, number: int, state: TrialState, score: float | None) -> None:
        """Tell the study how a trial ended."""
        trial = self._trials.pop(number)
        states = self._optuna.trial.TrialState
        if score is None or math.isnan(score) or state is TrialState.FAILED:
            self._study.tell(trial, state=states.FAIL)
        elif state is TrialState.FINISHED:
            self._study.tell(trial, score, state=states.COMPLETE)
        else:
            if number not in self._has_reported:
                trial.report(score, step=1)
            self._study.tell(trial, state=states.PRUNED)

    def released(self, n_under_way: int) -> Released:
        """Return nothing: no trial waits."""
        return Released()

    def describe(self) -> dict[str, object]:
        """Return sampler and pruner with every option, the seed, and the version of Optuna."""
        return {
            "kind": "optuna",
            "version": version("optuna"),
            "seed": self._seed,
            "sampler": self._sampler,
            "sampler_options": dict(self._sampler_options),
            "pruner": self._pruner,
            "pruner_options": dict(self._pruner_options),
            "report_every": self._report_every,
        }


def _table_in(table: TomlTable, key: str) -> Mapping[str, Cell]:
    given = table.cells.get(key, {})
    if not isinstance(given, Mapping):
        raise InputError(
            f"{key} is no table", file=table.file, row=table.label, column=key, value=given, expected="a table"
        )
    return given


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from announcing a new study on stderr.

    That is the only message below a warning that asking and telling gives, so its logger is set for this moment alone:
    the program around may have its own studies, and its own wish of how much they say.
    """
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)
