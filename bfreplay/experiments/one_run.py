"""``replay_log`` and ``open_session``: one replay, of objects, files or names."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bfreplay import checks
from bfreplay.datasets import NodeEvents
from bfreplay.defaults import T_FWD_S
from bfreplay.experiments.declared_options import OPTIONS, POLICY, SOLVER, DeclaredOptions
from bfreplay.experiments.prepared_run import prepare_run
from bfreplay.options import checked_keywords
from bfreplay.policies import Policy
from bfreplay.policies.policy import not_a_policy
from bfreplay.replay import ReplaySettings
from bfreplay.replay.engine import ProgressCallback
from bfreplay.runs import Output, ReplaySession, RunResult, Saving
from bfreplay.runs.run_replay import warm_up_once
from bfreplay.workload import ElasticJob, JobSet, JobSource

if TYPE_CHECKING:
    from bfreplay.experiments.keywords import ReplayKeywords

_OF_SETTINGS = {setting.name.removesuffix("_s") for setting in fields(ReplaySettings)} | {"measure", "cluster"}
_OF_POLICY_TEXT = {name for name, declaration in OPTIONS.items() if declaration.group in (POLICY, SOLVER)}
_OF_POLICY_TEXT = _OF_POLICY_TEXT - {"learn_curves", "measurement_noise"} | {"round"}


@checked_keywords(DeclaredOptions)
def replay_log(
    events: NodeEvents | str | PathLike[str] | None = None,
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str] | None = None,
    policy: Policy | str | None = None,
    settings: ReplaySettings | None = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    save_failures: str | Path | None = None,
    with_tables: bool = True,
    checkpoint_every: str | float | None = None,
    resume: bool = False,
    **options: Unpack[ReplayKeywords],
) -> RunResult:
    """Replay jobs on the idle nodes of a log, or on a cluster.

    The options have the names of the options of ``bfreplay replay``, with underscores for dashes.

    Parameters
    ----------
    events
        The log, its file, or ``"sample"``; omit it with ``cluster``.
    jobs
        Jobs, a job source (``workload.JobSource``), or a value of ``--jobs``: a file, ``"sample"``, ``"gavel(n=100)"``.
        Relative submit times count from the start of the window. A job submitted before the window waits at its start.
    policy
        A policy, which is closed at the end, or a value of ``--policy``: ``"bftrainer"`` (the default),
        ``"gavel.max_min_fairness"``, ``"look-ahead(events=3)"``.
    settings
        An object that replaces its options: ``max_parallel``, ``semantics``, ...
    out
        Folder to write, made when the run is complete; by default nothing is written.
    overwrite
        Replace an existing run folder.
    progress
        Called after every instant with (time reached in us, decisions so far).
    save_failures
        Folder for the models and decisions of rejected answers of a MILP back end.
    with_tables
        Without ``out``, keep the tables of decisions, jobs and allocations in memory; they grow with the log.
    checkpoint_every
        Wall time between two checkpoints in the folder ``OUT.checkpoint``: ``"1h"``, ``"10min"``, or seconds. A run
        that is killed goes on from the last one. By default there are none.
    resume
        Go on from the last checkpoint of the unfinished run ``out``, with the same inputs and options: the result has
        the same bytes as that of an unbroken run.

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        An input, an option or the output folder cannot be used.
    LedgerError
        The ledger does not close.

    Warns
    -----
    UserWarning
        An option has no effect with the others.
    """
    with _session_of(
        events,
        jobs,
        policy,
        settings,
        {**options},
        Output(folder=out, overwrite=overwrite, progress=progress, saving=_saving(checkpoint_every, resume)),
        save_failures=save_failures,
        with_tables=with_tables,
    ) as session:
        return session.run()


@checked_keywords(DeclaredOptions)
def open_session(
    events: NodeEvents,
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str] | None = None,
    policy: Policy | str | None = None,
    settings: ReplaySettings | None = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    save_failures: str | Path | None = None,
    with_tables: bool = True,
    checkpoint_every: str | float | None = None,
    resume: bool = False,
    hold_back: str | float = 0.0,
    warm_up: bool = True,
    **options: Unpack[ReplayKeywords],
) -> ReplaySession:
    """Open a replay whose log comes in portions: from a pipe, or a file that grows.

    Use it in a ``with`` statement: ``advance(rows, until)`` replays as far as nothing can change any more, ``finish()``
    returns the run. However the log is cut into portions, the run is that of the whole log.

    Parameters
    ----------
    events
        The log to come: ``NodeEvents.to_come(nodes, start, end)``.
    jobs, policy, settings, out, overwrite, progress, save_failures, with_tables, checkpoint_every, resume, options
        As for ``replay_log``. A session that is resumed is given the events from ``session.until_us`` on.
    hold_back
        For a cluster that is followed as it runs: ``advance(rows, until=now)`` replays up to now less this time
        (``"3s"``, or seconds). Rows that wait may be corrected, late and repeated ones are put right and counted
        (``session.feed_counts``), and nodes may appear. 0: every row has to be right when it is given.
    warm_up
        Load or compile the loops of the policy before the session is returned (half a minute once on a machine), so
        that its first decision is not late.

    Raises
    ------
    InputError, OutputExistsError, SolverUnavailableError
        An input, an option or the output folder cannot be used, or there is no session to resume.
    """
    session = _session_of(
        events,
        jobs,
        policy,
        settings,
        {**options},
        Output(folder=out, overwrite=overwrite, progress=progress, saving=_saving(checkpoint_every, resume)),
        save_failures=save_failures,
        with_tables=with_tables,
        portions=True,
        hold_back_s=checks.length_of_time("hold_back", hold_back, 0.0),
    )
    if warm_up:
        with ExitStack() as undo:
            undo.push(session)
            t_fwd = "auto" if options.get("t_fwd") == "auto" else T_FWD_S
            warm_up_once(session.policy.capabilities.warm_up or "bftrainer", t_fwd)
            undo.pop_all()
    return session


def _session_of(
    events: NodeEvents | str | PathLike[str] | None,
    jobs: JobSet | JobSource | Iterable[ElasticJob] | str | PathLike[str] | None,
    policy: Policy | str | None,
    settings: ReplaySettings | None,
    options: dict[str, Any],
    output: Output,
    *,
    save_failures: str | Path | None,
    with_tables: bool,
    portions: bool = False,
    hold_back_s: float = 0.0,
) -> ReplaySession:
    """Check what is given, load what is named, and return the session."""
    checks.instance("settings", settings, (ReplaySettings, type(None)), "a ReplaySettings; or give its options by name")
    if not isinstance(policy, Policy | str | None):
        raise not_a_policy("this is not a policy", policy)
    if settings is not None:
        _refuse(options, _OF_SETTINGS, "settings", "a ReplaySettings")
    policy_object = policy if isinstance(policy, Policy) else None
    if policy_object is not None:
        own_options = {"t_fwd"} if getattr(policy, "t_fwd_s", None) is not None else set()
        all_options = options if save_failures is None else {**options, "save_failures": save_failures}
        _refuse(all_options, {"save_failures", *_OF_POLICY_TEXT, *own_options}, "policy", "an object")
    values: dict[str, Any] = {"events": events, "jobs": jobs, **options}
    if policy is not None:
        values["policy"] = f"<{type(policy).__name__}>" if policy_object is not None else policy
    declaration = DeclaredOptions(**values)
    if policy_object is None:
        for name, reason in declaration.without_effect().items():
            if name in options:
                warnings.warn(f"{name} has no effect {reason}", stacklevel=4)
    prepared_run = prepare_run(declaration, policy=policy_object, settings=settings, save_failures=save_failures)
    return prepared_run.session(output, with_tables=with_tables, portions=portions, hold_back_s=hold_back_s)


def _saving(every: str | float | None, resume: bool) -> Saving:
    every_s = None if every is None else checks.length_of_time("checkpoint_every", every, 0.0)
    return Saving(every_s=every_s, resume=resume)


def _refuse(options: dict[str, Any], names: set[str], parameter: str, description: str) -> None:
    """Raise ``InputError`` for an option that is also part of a given object."""
    for option_name in options:
        if option_name in names:
            fault = f"is given twice: as an option and by {description} as {parameter}"
            fix = f"set it where the object is made, or remove {parameter}"
            raise checks.refusal(option_name, options[option_name], fault, "one of the two", fix)
