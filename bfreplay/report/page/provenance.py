"""Where a run came from: what it takes to make it again, and to trust it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bfreplay.datasets.times import iso_utc
from bfreplay.replay.result import RunResult
from bfreplay.wording import duration


@dataclass(frozen=True, slots=True)
class Provenance:
    """Of one run, as text.

    Parameters
    ----------
    label
        The run's on the page.
    name
        Of its folder.
    command
        The command line; empty for a run made from Python.
    started
        When, in UTC.
    window
        When it began and ended, or how long it is where the log knows no calendar.
    inputs
        What each file was for, its name, and its SHA-256.
    versions
        Of bfreplay and what it stands on.
    config
        Every option that changes the result, as JSON.
    """

    label: str
    name: str
    command: str
    started: str
    window: str
    inputs: list[tuple[str, str, str]]
    versions: list[tuple[str, str]]
    config: str


def provenance_of(label: str, run: RunResult) -> Provenance:
    """Read it from the record and the session."""
    config, inputs = run.record.config, run.record.inputs
    files = [("events", each.name, each.sha256) for each in inputs.events.files]
    files += [("jobs", each.name, each.sha256) for each in inputs.jobs.files]
    known = {digest for _, _, digest in files}
    sources = inputs.events.metadata.source_files
    files += [("made from", each.name, each.sha256) for each in sources if each.sha256 not in known]
    return Provenance(
        label=label,
        name="" if run.folder is None else run.folder.name,
        command=run.session.command,
        started=run.session.started,
        window=window_words(run),
        inputs=files,
        versions=sorted(run.record.versions.items()),
        config=json.dumps(config.to_json(), indent=2, sort_keys=True),
    )


def is_relative(run: RunResult) -> bool:
    """Whether the log counts time from its own start, and knows no calendar."""
    return run.record.inputs.is_relative


def window_words(run: RunResult) -> str:
    """``2021-02-10 00:48:48 to 2021-02-24 22:19:29 UTC``, or ``0 to 2 h after the start of the log``."""
    start_us, end_us = run.record.config.window_start_us, run.record.config.window_end_us
    if is_relative(run):
        first = duration(start_us / 1e6) if start_us else "0"
        return f"{first} to {duration(end_us / 1e6)} after the start of the log"
    first, last = (iso_utc(time_us).removesuffix("Z").replace("T", " ") for time_us in (start_us, end_us))
    return f"{first} to {last} UTC"
