"""Options of a run together: those that have no effect beside others, and those that exclude one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfreplay.defaults import BUNDLED
from bfreplay.errors import InputError
from bfreplay.options import NoEffect, option_name, options_of

if TYPE_CHECKING:
    from bfreplay.experiments.declared_options import DeclaredOptions

_CLUSTER = "v100=36,p100=36,k80=36"


def _has_solver(options: DeclaredOptions) -> bool:
    from bfreplay.policies.catalogue import capabilities_of

    return capabilities_of(options.policy).asks_solver


def _looks_ahead(options: DeclaredOptions) -> bool:
    """Return whether decisions have a forward-looking time: those of the run, or those on dedicated nodes for U."""
    from bfreplay.policies.catalogue import capabilities_of

    return not capabilities_of(options.policy).in_rounds or (options.efficiency and not options.ends_with_its_jobs)


def _learns(options: DeclaredOptions) -> bool:
    """Return whether the policy has to learn rates that a baseline knows."""
    from bfreplay.policies.catalogue import learns

    return options.learn_curves is not None or learns(options.policy)


def _draws(options: DeclaredOptions) -> bool:
    return options.semantics == "published" or (options.learn_curves is not None and options.measurement_noise > 0)


NO_SOLVER = NoEffect(lambda run: not _has_solver(run), "with --policy {0.policy}")
NO_BACKEND = (NO_SOLVER, NoEffect(lambda run: run.solver == "exact", "with --solver exact"))
NO_FORWARD_TIME = NoEffect(lambda run: not _looks_ahead(run), "with --policy {0.policy}")
NO_LEARNING = NoEffect(lambda run: run.learn_curves is None, "without --learn-curves")
NO_RANDOMNESS = NoEffect(lambda run: not _draws(run), "with --semantics continuous and without --measurement-noise")
ENDS_ON_CLUSTER = NoEffect(lambda run: run.cluster is not None, "with --cluster: such a run ends with its jobs")
NO_BOUND = (
    NoEffect(lambda run: run.cluster is not None, "with --cluster: U and the upper bound are not computed"),
    NoEffect(lambda run: run.measure is not None, "with --measure: U and the upper bound are not computed"),
    NoEffect(lambda run: run.until_done, "with --until-done: U and the upper bound are not computed"),
)
NO_BASELINES = tuple(
    NoEffect(lambda run, without_bound=reason: without_bound.holds(run) and not _learns(run), reason.when)
    for reason in NO_BOUND
)


def check_together(options: DeclaredOptions) -> None:
    """Raise ``InputError`` for options that are missing or exclude one another, whatever is in the files."""
    if options.jobs is None:
        raise InputError(
            "the option 'jobs' is missing: the training jobs to replay",
            column="jobs",
            expected='jobs = "FILE" (--jobs FILE)',
            fix=f"{BUNDLED!r} stands for the bundled jobs",
        )
    if options.cluster is not None:
        _check_cluster(options)
    elif options.events is None:
        raise InputError(
            "the option 'events' is missing: neither a log nor a cluster is given",
            column="events",
            expected=f'events = "FILE", or cluster = "{_CLUSTER}" (replay EVENTS, or --cluster {_CLUSTER})',
            fix=f"name one of the two; {BUNDLED!r} stands for the bundled log",
        )
    if options.unlimited_work and options.until_done:
        raise InputError(
            "the run is to end with its jobs, but unlimited work never ends",
            column="until-done",
            value=True,
            expected="--until-done, or --unlimited-work",
            fix="remove one of the two",
        )
    if options.unlimited_work and options.measure is not None:
        raise InputError(
            "a run with measured jobs ends when they are done, but unlimited work never ends",
            column="measure",
            value=f"{options.measure[0]}:{options.measure[1]}",
            expected="--measure, or --unlimited-work",
            fix="remove one of the two",
        )


def _check_cluster(options: DeclaredOptions) -> None:
    if options.events is not None:
        raise InputError(
            "both a log and a cluster are given",
            column="cluster",
            value=options.cluster,
            expected=f"one of the two; the log is {options.events}",
            fix="remove EVENTS (events) or --cluster",
        )
    for own_name, declaration in options_of(type(options)).items():
        option_value = getattr(options, own_name)
        if declaration.not_on_cluster is not None and option_value != declaration.default:
            name, (reason, fix) = option_name(own_name), declaration.not_on_cluster
            raise InputError(
                f"--{name} cannot be combined with --cluster: {reason}",
                column=name,
                value=option_value,
                expected=f"a log of events with --{name}",
                fix=fix,
            )
