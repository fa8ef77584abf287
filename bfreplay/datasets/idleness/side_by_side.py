"""Idle nodes of one log, or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from bfreplay.datasets.idleness.characterise import describe
from bfreplay.datasets.idleness.figures import Idleness
from bfreplay.datasets.idleness.idleness_text import render, wrapped
from bfreplay.datasets.idleness.parts_text import comparison_sentences, comparison_table
from bfreplay.datasets.log.load import load_events
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.documents import Json
from bfreplay.errors import InputError
from bfreplay.wording import paragraphs


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Idle nodes of logs, such as of two months, with the name and the files of each."""

    labels: tuple[str, ...]
    logs: tuple[Idleness, ...]
    sources: tuple[tuple[SourceFile, ...], ...]

    @classmethod
    def describe(
        cls, events: Sequence[str | PathLike[str]], batch_jobs: Sequence[str | PathLike[str]] = (), **options: Any
    ) -> SideBySide:
        """Describe each of several logs; ``options`` are those of ``bfreplay.describe``, for all of them.

        Raises
        ------
        InputError
            As ``bfreplay.describe``; or the number of files of batch jobs is not that of the logs.
        """
        if len(batch_jobs) not in (0, len(events)):
            raise InputError(
                "the number of files of batch jobs differs from the number of logs",
                column="--batch-jobs",
                value=len(batch_jobs),
                expected=f"one for each of {len(events)} logs, in their order",
            )
        names = [Path(file).name for file in events]
        # two files of one name, in two folders
        labels = [
            f"{name} ({names[:place].count(name)})" if names.count(name) > 1 else name
            for place, name in enumerate(names, start=1)
        ]
        of_logs: Sequence[str | PathLike[str] | None] = batch_jobs or [None] * len(events)
        logs = [load_events(file) for file in events]
        described = [describe(log, batch_jobs=jobs, **options) for log, jobs in zip(logs, of_logs, strict=True)]
        return cls(tuple(labels), tuple(described), tuple(log.sources for log in logs))

    def to_dict(self) -> dict[str, Json]:
        """Return the figures JSON-ready: those of the log, or of each of several."""
        if len(self.logs) == 1:
            return self.logs[0].to_dict()
        logs: list[Json] = [{"log": label, **log.to_dict()} for label, log in zip(self.labels, self.logs, strict=True)]
        return {"changes": [*comparison_sentences(self.labels, self.logs)], "logs": logs}

    def to_text(self) -> str:
        """Return the text of the log; of several their warnings, what changed, and their figures side by side."""
        if len(self.logs) == 1:
            return render(self.logs[0])
        warnings = [
            f"Warning ({label}): {sentence}"
            for label, log in zip(self.labels, self.logs, strict=True)
            for sentence in log.origin.log_warnings.sentences()
        ]
        changes, table = comparison_sentences(self.labels, self.logs), comparison_table(self.labels, self.logs)
        return paragraphs([wrapped(warnings), wrapped(changes), table.lines()]) + "\n"
