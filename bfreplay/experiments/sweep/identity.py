"""Identity of a run: everything that its result depends on, and an id computed from that."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bfreplay import __version__, defaults
from bfreplay.campaigns.source import CampaignSource
from bfreplay.campaigns.workloads import CLASS_PLACE, JOB_SOURCES, is_source_name
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.named_inputs import window_us
from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FILE_OPTIONS
from bfreplay.experiments.given_objects import digest_of, is_object
from bfreplay.experiments.prepared_run import max_parallel_of
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.placeholders import texts_in
from bfreplay.milp.backends import BACKENDS, backend_of, version_of
from bfreplay.milp.formulations import FORMULATIONS
from bfreplay.milp.named_solvers import COUNTS, EXACT
from bfreplay.options import option_name
from bfreplay.policies.catalogue import capabilities_of, policy_settings
from bfreplay.policies.names import OBJECTIVES, POLICIES
from bfreplay.registry import Registry
from bfreplay.result_folders.records import RUN
from bfreplay.versions import versions
from bfreplay.workload import JobSet, JobSource

ID_DIGITS = 16
"""Hexadecimal digits of an id: among a million runs, two ids collide once in 3e7 sweeps."""

_NAME = re.compile(r"[^\W\d][\w.:-]*")
_PACKAGE = "bfreplay"


def id_of(content: Mapping[str, Any]) -> str:
    """Return the id of a run with this content: the first digits of the SHA-256 of its canonical JSON."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:ID_DIGITS]


def input_digests(given: object, sources: Iterable[str]) -> list[str]:
    """Return the digests of a log or jobs: of the object that was given, or of the files."""
    return [digest_of(given)] if is_object(given) else list(sources)


def content_of(options: RunOptions, log: NodeEvents, jobs: JobSet | JobSource) -> dict[str, Any]:
    """Return everything that the result depends on, JSON-ready, without names and paths, with all defaults.

    Parameters
    ----------
    options
        Options of the run.
    log, jobs
        Its inputs, loaded: files count by their content.

    Notes
    -----
    User code (``package.module:Class``) counts by the content of its file, without the modules that it imports.
    """
    named_code, policy = _code_of(options, jobs), capabilities_of(options.policy)
    return {
        "bfreplay": __version__,
        "schema_version": RUN.schema_version,
        "options": {**_effective(options), "max-parallel": max_parallel_of(options, log, jobs)},
        "window_us": None if options.window is None else list(window_us(options.window)),
        "events": input_digests(options.events, (source_file.sha256 for source_file in log.sources)),
        "jobs": input_digests(options.jobs, (digest for _, digest in jobs.sources)),
        "batch_jobs": None if options.batch_jobs is None else SourceFile.of(Path(options.batch_jobs)).sha256,
        "job_source": str(options.jobs) if is_source_name(options.jobs) and not isinstance(jobs, JobSet) else None,
        "code": {code_place: digest_of_module(code_place.partition(":")[0]) for code_place in sorted(named_code)},
        "solver": _solver_version(options.solver) if policy.asks_solver else None,
        "highspy": versions()["highspy"] if policy.linear_programs else None,
        "scipy": versions()["scipy"] if options.bound and not options.ends_with_its_jobs else None,
        "optuna": _optuna_version(options, jobs),
    }


def _effective(options: RunOptions) -> dict[str, Any]:
    """Return the options with their defaults, without those that have no effect."""
    values: dict[str, Any] = {"objective": "own", **options.to_json(), "policy": _policy_text(options.policy)}
    values.setdefault("formulation", COUNTS if options.solver == EXACT else defaults.MILP_FORMULATION)
    omitted_names = {*map(option_name, FILE_OPTIONS), "window", *map(option_name, options.without_effect())}
    return {option: option_value for option, option_value in values.items() if option not in omitted_names}


def _policy_text(spec: str) -> str:
    """Return the policy with all its parameters, sorted."""
    policy_name, settings = policy_settings(spec)
    parameters = ", ".join(f"{parameter}={value!r}" for parameter, value in sorted(settings.items()))
    return f"{policy_name}({parameters})" if parameters else policy_name


def _code_of(options: RunOptions, jobs: JobSet | JobSource) -> set[str]:
    """Return the places of code outside bfreplay that a run uses, named by the user or by entry points."""
    places = set(_named_code(options.policy, options.objective or "", options.formulation or "", options.solver))
    if isinstance(jobs, JobSet):
        curves = {
            type(curve)
            for job in jobs
            for curve in (job.throughput, job.objective, *(job.throughput_by_type or {}).values())
        }
        places |= {f"{curve_type.__module__}:{curve_type.__qualname__}" for curve_type in curves}
    elif is_source_name(options.jobs):
        places |= set(_foreign(JOB_SOURCES, str(options.jobs)))
    else:
        own_place = f"{type(jobs).__module__}:{type(jobs).__qualname__}"
        texts = [own_place, *texts_in(_tables_of(jobs))]
        places |= {text for text in texts if CLASS_PLACE.fullmatch(text) and _is_importable(text)}
    return {place for place in places if place.partition(":")[0].partition(".")[0] not in (_PACKAGE, "builtins")}


@cache  # looking for entry points is slow
def _named_code(policy: str, objective: str, formulation: str, solver: str) -> frozenset[str]:
    places: set[str] = set()
    for registry, spec in (
        (POLICIES, policy),
        (OBJECTIVES, objective),
        (FORMULATIONS, formulation),
        (BACKENDS, solver),
    ):
        places.update(code_place for code_name in _NAME.findall(spec) for code_place in _foreign(registry, code_name))
        places.update(code_place for code_place in CLASS_PLACE.findall(spec) if _is_importable(code_place))
    return frozenset(places)


def _foreign(registry: Registry, code_name: str) -> Iterator[str]:
    if code_name in registry.names() or CLASS_PLACE.fullmatch(code_name):
        yield registry.location(code_name)


@cache
def _solver_version(solver: str) -> str | None:
    return None if solver == EXACT else version_of(backend_of(solver))


def _is_importable(code_place: str) -> bool:
    return file_of_module(code_place.partition(":")[0]) is not None


def file_of_module(module: str) -> Path | None:
    """Return the file of a module, loaded or not; ``None`` for a missing module, or one of the interpreter.

    Unlike ``importlib.util.find_spec``, do not import the packages above it: the name may come from any text of a file.
    """
    package, *rest = module.split(".")
    try:
        spec = find_spec(module if module in sys.modules else package)
    except ValueError:  # a module without a spec
        return None
    if rest and module not in sys.modules and spec is not None:
        folders = [str(Path(folder, *rest[:-1])) for folder in spec.submodule_search_locations or ()]
        spec = PathFinder.find_spec(rest[-1], folders)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin is not None else None


def digest_of_module(module: str) -> str | None:
    """Return the SHA-256 of the file of a module; ``None`` for a module of the interpreter."""
    file = file_of_module(module)
    return None if file is None else SourceFile.of(file).sha256


def _tables_of(jobs: JobSet | JobSource) -> Mapping[str, Any]:
    return jobs.tables if isinstance(jobs, CampaignSource) else {}


def _optuna_version(options: RunOptions, jobs: JobSet | JobSource) -> str | None:
    """Return the version of Optuna for a campaign that uses it; otherwise ``None``."""
    tables = _tables_of(jobs)
    if "optuna" not in tables and "optuna" not in set(texts_in(tables)):
        return None
    try:
        return metadata.version("optuna")
    except metadata.PackageNotFoundError as error:
        raise InputError(
            "this campaign needs Optuna, which is not installed",
            file=str(options.jobs),
            fix="pip install 'bfreplay[hpo]'",
        ) from error
