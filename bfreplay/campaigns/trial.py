"""State of one trial during a replay: attempts, reports and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bfreplay.campaigns.campaign import TrialModel
from bfreplay.campaigns.parts import Params, TrialState


@dataclass(frozen=True, slots=True)
class Mark:
    """Progress at which an attempt reports or crashes.

    Parameters
    ----------
    samples
        Progress of the attempt's job.
    epochs
        Progress of the trial: whole, but for a crash.
    is_crash
        True if the attempt ends here.
    for_pruner
        True if the pruner is asked.
    """

    samples: float
    epochs: float
    is_crash: bool = False
    for_pruner: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One job of a trial.

    Parameters
    ----------
    index
        0 for the first, 1 for the first retry.
    first_epoch
        Epochs that it begins with.
    marks
        Progress at which it reports, in order.
    """

    index: int
    first_epoch: int
    marks: tuple[Mark, ...]


class Trial:
    """One trial, changed by ``CampaignSource``.

    Attributes
    ----------
    number, name, model, params, deadline_us
        Identity and parameters.
    attempt
        Its present or last job.
    state
        State at its end; ``None`` before.
    score, best_score
        Last and best score that it reported; ``None`` for none.
    epochs
        Number of whole epochs in its last report.
    """

    def __init__(self, number: int, name: str, model: TrialModel, params: Params, deadline_us: int | None) -> None:
        self.number = number
        self.name = name
        self.model = model
        self.params = params
        self.deadline_us = deadline_us
        self.attempt = Attempt(0, 0, ())
        self.state: TrialState | None = None
        self.epochs = 0
        self.score: float | None = None
        self.best_score: float | None = None
        self._node_us: list[int] = []  # of each attempt
        self._samples: list[float] = []
        self._next_mark = 0

    def __repr__(self) -> str:
        state = "not ended" if self.state is None else self.state.value
        score = "" if self.score is None else f", score {self.score:g}"
        return f"<Trial {self.name}: {state} after {self.epochs} epochs{score}>"

    def start(self, attempt: Attempt) -> None:
        """Begin an attempt."""
        self.attempt = attempt
        self._next_mark = 0
        self._node_us.append(0)
        self._samples.append(0.0)

    def use(self, node_us: int, samples: float) -> tuple[int, float]:
        """Note the use of the present attempt, and return the increase since its last report."""
        more = node_us - self._node_us[-1], samples - self._samples[-1]
        self._node_us[-1], self._samples[-1] = node_us, samples
        return more

    def take_mark(self) -> Mark:
        """Return the next mark, which the attempt has reached."""
        mark = self.attempt.marks[self._next_mark]
        self._next_mark += 1
        return mark

    def report(self, epoch: int, score: float, higher_is_better: bool) -> None:
        """Note a score."""
        self.epochs, self.score = epoch, score
        best = self.best_score
        if best is None or (score > best if higher_is_better else score < best):
            self.best_score = score

    @property
    def node_hours(self) -> float:
        """Node-hours of its jobs up to their last reports, those of crashed attempts included."""
        return sum(self._node_us) / 3.6e9

    @property
    def samples(self) -> float:
        """Samples that its jobs processed."""
        return sum(self._samples)


def marks_of(
    epochs: int,
    samples_per_epoch: float,
    pruner_epochs: Sequence[int],
    other_epochs: Sequence[int],
    *,
    first_epoch: int,
    reported_epochs: int,
    crash_epoch: float | None,
) -> tuple[Mark, ...]:
    """Return the marks at which an attempt reports, in order, without its end.

    Parameters
    ----------
    epochs, samples_per_epoch
        Epochs of the trial, and samples of each.
    pruner_epochs, other_epochs
        Epochs after which the pruner is asked, and others after which the trial reports.
    first_epoch
        Epochs that the attempt begins with.
    reported_epochs
        Epochs that the trial has reported already, and does not repeat.
    crash_epoch
        Progress at which the attempt crashes; ``None``, or ``epochs`` and more: it does not.
    """
    asks = set(pruner_epochs)
    end = epochs if crash_epoch is None else min(crash_epoch, epochs)
    begin = max(first_epoch, reported_epochs)
    wanted = sorted(epoch for epoch in asks.union(other_epochs) if begin < epoch < end)
    marks = [Mark((epoch - first_epoch) * samples_per_epoch, epoch, for_pruner=epoch in asks) for epoch in wanted]
    if end < epochs:
        crash = (end - first_epoch) * samples_per_epoch
        work = (epochs - first_epoch) * samples_per_epoch
        # rounding may put the crash on a report or an end: it then does not happen
        if (marks[-1].samples if marks else 0.0) < crash < work:
            marks.append(Mark(crash, end, is_crash=True))
    return tuple(marks)
