"""Reads the log and the jobs of a saved run again, and checks that they are unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

from bfreplay.campaigns.workloads import JOB_SOURCES, is_source_name, load_workload
from bfreplay.datasets import NodeEvents, NodeState, load_events
from bfreplay.datasets.fixed_cluster import SOURCE_FORMAT, fixed_cluster
from bfreplay.datasets.located import locate_errors
from bfreplay.datasets.log.events import with_node_types
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.named_inputs import is_bundled
from bfreplay.datasets.node_selection import select_nodes
from bfreplay.errors import InputError
from bfreplay.result_folders.records import RUN
from bfreplay.runs.run_result import RunResult
from bfreplay.workload import JobSet, JobSource


class MissingInputsError(InputError):
    """An input of a run has moved, or its path is not recorded."""


class GivenInputs(TypedDict, total=False):
    """Keyword arguments of functions that read the inputs of a run again; see ``inputs_of``."""

    events: NodeEvents | str | Path | None
    jobs: JobSet | JobSource | str | Path | None
    curves: str | Path | None
    allow_code: bool


def inputs_of(
    run: RunResult,
    events: NodeEvents | str | Path | None = None,
    jobs: JobSet | JobSource | str | Path | None = None,
    curves: str | Path | None = None,
    *,
    allow_code: bool = False,
) -> tuple[NodeEvents, JobSet | JobSource]:
    """Read the inputs of ``run`` again: the log in the run's window, and the jobs as their file has them.

    Parameters
    ----------
    run
        The run.
    events, jobs, curves
        Their paths now, or the inputs themselves; by default the paths in ``session.json``.
    allow_code
        Import code that ``session.json`` and the files name. A class given as ``jobs`` is imported in any case.

    Raises
    ------
    MissingInputsError
        A path is not recorded, or the file is missing.
    InputError
        A file is not the one that the run read (by SHA-256, checked first), or it names code that may not be imported.
    """
    config, inputs_of_record = run.record.config, run.record.inputs
    if not isinstance(events, NodeEvents):
        events = _log_of(run, events)
    job_input = jobs_of(run, jobs, curves, allow_code=allow_code)
    _check_same("events", inputs_of_record.events.files, ((source.name, source.sha256) for source in events.sources))
    log = events.between(config.window_start_us, config.window_end_us)
    log = log if log.selection else select_nodes(log, **config.selection)
    return log.counting_as_idle(NodeState[word.upper()] for word in config.also_idle), job_input


def jobs_of(
    run: RunResult,
    jobs: JobSet | JobSource | str | Path | None = None,
    curves: str | Path | None = None,
    *,
    allow_code: bool = False,
) -> JobSet | JobSource:
    """Read the jobs of ``run`` again, a set or a source; arguments and errors as ``inputs_of``."""
    if jobs is None or isinstance(jobs, str | Path):
        jobs_file = _file(run, "jobs", jobs)
        if jobs is None and not allow_code and is_source_name(jobs_file):
            with locate_errors(run.folder / RUN.more_documents[0] if run.folder else "", "files"):
                JOB_SOURCES.refuse_code(str(jobs_file), "jobs")
        has_curves = curves is not None or "curves" in run.session.files
        jobs = load_workload(jobs_file, _file(run, "curves", curves) if has_curves else None, allow_code=allow_code)
    job_inputs = run.record.inputs.jobs
    is_set, was_set = isinstance(jobs, JobSet), not job_inputs.of_source
    if is_set != was_set:
        kinds = {True: "a set of jobs", False: "a source of jobs, such as a campaign"}
        raise InputError(
            "the jobs are not those of the run",
            value=kinds[is_set],
            expected=kinds[was_set],
            fix="give what the run read: --jobs FILE",
        )
    _check_same("jobs", job_inputs.files, jobs.sources)
    return jobs


def _log_of(run: RunResult, events: str | Path | None) -> NodeEvents:
    """Read the log, with the node types that the run gave it; or build the cluster, which has no file."""
    metadata = run.record.inputs.events.metadata
    if events is None and metadata.source_format == SOURCE_FORMAT:
        return fixed_cluster(str(metadata.notes["cluster"]))
    log = select_nodes(load_events(_file(run, "events", events)), **run.record.config.selection)
    by_type = metadata.node_types
    return with_node_types(log, by_type) if by_type and not log.node_types.has_type_names else log


def _file(run: RunResult, input_name: str, given_path: str | Path | None) -> Path:
    advice = f"say where the file is now: --{input_name} FILE ({input_name}=... in Python)"
    session_files = run.session.files
    if given_path is None and input_name not in session_files:
        raise MissingInputsError(
            f"the path of the {input_name} is not recorded in the run",
            file=run.folder,
            expected="an entry of 'files' in its session",
            fix=advice,
        )
    file = Path(session_files[input_name] if given_path is None else given_path)
    if (input_name == "jobs" and is_source_name(file)) or (input_name == "curves" and is_bundled(file)):
        return file
    if given_path is None and not file.exists():
        raise MissingInputsError(
            f"the {input_name} of the run are no longer at their recorded path", file=file, fix=advice
        )
    source_files = (run.record.inputs.events if input_name == "events" else run.record.inputs.jobs).files
    if source_files and file.is_file():  # checked before the file is read any further
        digest = SourceFile.of(file).sha256
        if digest not in {source.sha256 for source in source_files}:
            raise _other_content(input_name, file.name, digest, source_files)
    return file


def _check_same(input_name: str, record_files: Sequence[SourceFile], pairs: Iterable[tuple[str, str]]) -> None:
    """Compare contents, not names. Inputs made in memory have no files: the replay itself then shows a difference."""
    files = list(pairs)
    if not record_files or not files:
        return
    for position, source in enumerate(record_files):
        name, digest = files[position] if position < len(files) else ("nothing", "")
        if digest != source.sha256:
            raise _other_content(input_name, name, digest, [source])
    if len(files) > len(record_files):
        raise InputError(
            f"the {input_name} are not those of the run: one file too many",
            file=files[len(record_files)][0],
            expected=", ".join(source.name for source in record_files),
            fix=_GIVE_FILES[input_name],
        )


_GIVE_FILES = {
    "events": "give the file that the run read: --events FILE",
    "jobs": "give the files that the run read: --jobs FILE, --curves FILE",
}


def _other_content(input_name: str, name: str, digest: str, sources: Sequence[SourceFile]) -> InputError:
    return InputError(
        f"the {input_name} are not those of the run: their content differs",
        file=name,
        column="sha256",
        value=digest,
        expected=" or ".join(f"{source.sha256} ({source.name})" for source in sources),
        fix=_GIVE_FILES["events" if input_name == "events" else "jobs"],
    )
