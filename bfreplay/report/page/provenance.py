"""Where a run came from: what it takes to make it again, and to trust it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bfreplay.datasets.times import iso_utc
from bfreplay.replay.result import RunResult


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
        First and last time.
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
    window: tuple[str, str]
    inputs: list[tuple[str, str, str]]
    versions: list[tuple[str, str]]
    config: str


def provenance_of(label: str, run: RunResult) -> Provenance:
    """Read it from the record and the session."""
    config, inputs = run.record["config"], run.record["inputs"]
    files = [(kind, each["name"], each["sha256"]) for kind in ("events", "jobs") for each in inputs[kind]["files"]]
    known = {each[2] for each in files}
    sources = inputs["events"]["metadata"].get("source_files", [])
    files += [("made from", each["name"], each["sha256"]) for each in sources if each["sha256"] not in known]
    return Provenance(
        label=label,
        name="" if run.folder is None else run.folder.name,
        command=str(run.session.get("command", "")),
        started=str(run.session.get("started", "")),
        window=(iso_utc(config["window_start_us"]), iso_utc(config["window_end_us"])),
        inputs=files,
        versions=sorted((name, str(version)) for name, version in run.record["versions"].items()),
        config=json.dumps(config, indent=2, sort_keys=True),
    )
