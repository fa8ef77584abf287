"""The record of a run: what ``run.json`` and ``session.json`` hold, declared once, with units and meaning."""

from __future__ import annotations

from typing import Any

import msgspec

from bfreplay.bounds.upper_bound import Kind
from bfreplay.datasets import EventsMetadata
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.errors import InputError
from bfreplay.policies.objectives.built_in import OWN
from bfreplay.replay.decision_log import SlowestDecision
from bfreplay.replay.job_outcomes import JobTimes, Scores
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.progress import Semantics
from bfreplay.result_folders.records import Amount, Count, JsonObject, Part, ResultRecord, TimeUs


class Named(msgspec.Struct, frozen=True):
    """A part of a policy that has a name: its solver, its forward-looking time."""

    name: str
    fallback: str | None = None  # of a solver: what answers where it does not
    start_s: float | None = None  # of a forward-looking time


class ObjectiveDescription(msgspec.Struct, frozen=True):
    """What a policy maximises."""

    spec: str  # as --objective has it
    terms: Any = None


class PolicyDescription(msgspec.Struct, frozen=True):
    """What is read of a policy's own description, which may say anything else as well."""

    name: str
    t_fwd_s: float | None = None
    forward_time: Named | None = None  # where it is no fixed time
    solver: Named | None = None
    objective: ObjectiveDescription | None = None
    learning: Any = None  # where the policy does not know the jobs' curves

    @property
    def objective_spec(self) -> str:
        """What is maximised; each job's own objective where nothing is said."""
        return OWN if self.objective is None else self.objective.spec

    @classmethod
    def of(cls, described: Any, policy: str) -> PolicyDescription:
        """Read a description; InputError, with the name of its class, for one that others could not read."""
        try:
            return msgspec.convert(described, cls)
        except msgspec.ValidationError as error:
            raise InputError(
                f"the policy {policy} describes itself in a way that cannot be read: {error}", value=described,
                expected="a mapping with a name; t_fwd_s a number, forward_time and solver with a name, objective "
                "with a spec",
            ) from error  # fmt: skip


class RunConfig(Part, frozen=True, kw_only=True):
    """What the run was asked for, with every default."""

    policy: JsonObject  # its description of itself
    max_parallel: Count
    semantics: Semantics
    seed: int
    record_nodes: bool
    unlimited_work: bool
    decides_in_rounds: bool = False
    until_done: bool = False  # the run ends with its jobs
    measured: tuple[Count, Count] | None = None  # jobs that the run is about, by number: the first, one after the last
    prices: dict[str, Amount] = msgspec.field(
        default_factory=dict
    )  # dollars of a node-hour by node type, where they are known
    window_start_us: TimeUs
    window_end_us: TimeUs

    def __post_init__(self) -> None:
        if self.window_end_us <= self.window_start_us:
            raise ValueError("window_end_us: a time after the window's start")
        try:
            self.described  # noqa: B018  # refused here, whatever is read of it later
        except msgspec.ValidationError as error:
            raise ValueError(f"policy: {error}") from None

    @property
    def described(self) -> PolicyDescription:
        """What is read of the policy's description."""
        return msgspec.convert(self.policy, PolicyDescription)

    def after_s(self, time_us: int | None) -> float | None:
        """Seconds from the start of the window; ``None`` for no time."""
        return None if time_us is None else (time_us - self.window_start_us) / 1e6


class EventInputs(Part, frozen=True, kw_only=True):
    """The log that was replayed."""

    files: tuple[SourceFile, ...]
    metadata: EventsMetadata
    n_nodes: Count


class JobInputs(Part, frozen=True, kw_only=True):
    """The jobs that were replayed: a set of ``n_jobs``, or a source with what it says of itself."""

    files: tuple[SourceFile, ...]
    n_jobs: Count | None
    source: JsonObject | None

    @property
    def of_source(self) -> bool:
        """Whether jobs were made while the replay ran."""
        return self.source is not None

    @property
    def higher_is_better(self) -> bool:
        """Of scores."""
        return bool((self.source or {}).get("higher_is_better", True))


class RunInputs(Part, frozen=True, kw_only=True):
    """Files that were read, with the SHA-256 of their contents."""

    events: EventInputs
    jobs: JobInputs

    @property
    def is_relative(self) -> bool:
        """Whether the log has no calendar: its times count from its start."""
        return self.events.metadata.time_origin == "relative"

    @property
    def node_types(self) -> tuple[str, ...]:
        """Types of the nodes; one that stands for all where the log does not tell them apart."""
        return tuple(self.events.metadata.node_types) or (ANY_TYPE,)

    def to_json(self) -> JsonObject:
        """Plain data; the metadata as the log's own file has it."""
        document = super().to_json()
        document["events"]["metadata"] = self.events.metadata.to_json()
        return document


class WidestJob(Part, frozen=True, kw_only=True):
    """The job that needed most nodes of those that could never run."""

    name: str
    min_nodes: Count


class Efficiency(Part, frozen=True, kw_only=True):
    """U of a run: samples on idle nodes over samples on as many dedicated nodes (arXiv:2106.12091, section IV).

    Parameters
    ----------
    equivalent_nodes
        Integral of the number of idle nodes over time, divided by the window's length.
    t_fwd_s
        Forward-looking time of the decisions on the dedicated nodes.
    samples, dedicated_samples
        Processed in the window on the idle nodes, and on ``equivalent_nodes`` dedicated ones: interpolated between
        the whole numbers of nodes below and above.
    last_finish_us, dedicated_last_finish_us
        When the last job left (on the nearest whole number of dedicated nodes), ``None`` when not all did; when
        both finished everything, U is 1 by construction and these tell the difference.
    dedicated_jobs, dedicated_best_score
        Jobs by status there, and the best score of a job source.
    u
        ``samples / dedicated_samples``; ``None`` when the dedicated nodes make nothing, and for the jobs of a source,
        which may make and prune other ones there: samples are then no measure of the nodes.
    """

    equivalent_nodes: Amount
    t_fwd_s: Amount
    samples: float
    dedicated_samples: Amount
    last_finish_us: TimeUs | None
    dedicated_last_finish_us: TimeUs | None
    dedicated_jobs: dict[str, Count]
    dedicated_best_score: float | None
    u: float | None


class LearningCost(Part, frozen=True, kw_only=True):
    """A run with learned curves against the same run with known ones.

    Parameters
    ----------
    samples, known_samples
        Processed in the window with learned and with known curves. Equal where both finish everything: then the times
        tell the difference.
    last_finish_us, known_last_finish_us
        When the last job left, ``None`` when not all did.
    known_jobs, known_best_score
        Jobs by status with known curves, and the best score of a job source.
    lost
        Share of the samples that learning cost; negative where it happened to help; ``None`` for no samples at all and
        for the jobs of a source.
    """

    samples: float
    known_samples: float
    last_finish_us: TimeUs | None
    known_last_finish_us: TimeUs | None
    known_jobs: dict[str, Count]
    known_best_score: float | None
    lost: float | None
    known_average_jct_s: Amount | None = None


class Bound(Part, frozen=True, kw_only=True):
    """The upper bound (``bounds.UpperBound``), and the share of it that the run has; ``None`` of a bound of 0."""

    samples: Amount
    kind: Kind
    free_rescaling_samples: Amount | None
    earliest_finish_us: TimeUs | None
    share: float | None


class Fairness(Part, frozen=True, kw_only=True):
    """Finish-time fairness: ``rho`` is the time of a job here over that under ``policy`` on the same nodes.

    Above 1 a job would have been better off with its equal part of the nodes (Themis, NSDI'20; Gavel, OSDI'20).
    """

    average_rho: Amount | None
    largest_rho: Amount | None
    share_above_1: Amount | None
    policy: str


class ContentionFairness(Part, frozen=True, kw_only=True):
    """Finish-time fairness without another replay: ``rho = JCT / (time alone x contention)`` (Shockwave, NSDI'23).

    A job's time alone is that on as many nodes as it may use, at its own rates; contention is jobs over nodes, at least
    1. Of the jobs that finished and can run alone.

    Parameters
    ----------
    contention
        All jobs that the run is about over the nodes there were on average.
    average_rho, largest_rho
        Mean and maximum; ``None`` where no job finished.
    unfair_share
        Share of the jobs with a ``rho`` above ``UNFAIR_RHO``.
    largest_rho_by_presence, unfair_share_by_presence
        The same with the contention that each job met: jobs that were there from its submission to its finish, on
        average (the Themis variant).
    """

    contention: Amount
    average_rho: Amount | None
    largest_rho: Amount | None
    unfair_share: Amount | None
    largest_rho_by_presence: Amount | None
    unfair_share_by_presence: Amount | None


class Scheduling(Part, frozen=True, kw_only=True):
    """Metrics of scheduling, as Gavel's evaluation has them (OSDI'20, section 7).

    Jobs are those that the run is about (``RunConfig.measured``), node time is that of the whole run.

    Parameters
    ----------
    n_jobs, n_completed
        Jobs, and those of them that finished.
    average_jct_s, average_jct_s_by_weight
        Mean time from submission to finish of the finished ones, also by weight as text.
    makespan_s
        From the start of the window until the last of them finished; ``None`` unless all did.
    utilisation
        Useful, rescaling and preempted node time over the idle one.
    node_hours_by_type
        Held by jobs, of every node type of the log; nodes that two jobs share count once.
    cost
        Dollars of these; ``None`` where a type has no price.
    geometric_mean_jct_s, harmonic_mean_jct_s
        Other means of the times from submission to finish; ``None`` in runs of earlier versions.
    contention_fairness
        ``None`` in runs of earlier versions, and of jobs without end.
    """

    n_jobs: Count
    n_completed: Count
    average_jct_s: Amount | None
    average_jct_s_by_weight: dict[str, Amount]
    makespan_s: Amount | None
    utilisation: Amount | None
    node_hours_by_type: dict[str, Amount]
    cost: Amount | None
    finish_time_fairness: Fairness | None
    geometric_mean_jct_s: Amount | None = None
    harmonic_mean_jct_s: Amount | None = None
    contention_fairness: ContentionFairness | None = None


class Ideal(Part, frozen=True, kw_only=True):
    """What comes of the run where the policy's shares are applied as they are, without rounds.

    Parameters
    ----------
    n_completed, average_jct_s
        Of the jobs that the run is about, those that finish, and their mean time from submission to finish.
    """

    n_completed: Count
    average_jct_s: Amount | None


class Summary(Part, frozen=True, kw_only=True):
    """Totals of a run.

    Parameters
    ----------
    decisions
        By what stands behind them (``decision_log.kind_of``).
    fallbacks, fallback_examples
        Decisions that another solver had to answer, by reason, and the first message of each.
    n_scale_ups, n_scale_downs, n_preemptions
        Times that a job gained or lost nodes by a decision, or lost nodes to a reclaim.
    equivalent_nodes
        Idle nodes on average.
    jobs
        By status at the end of the window.
    n_jobs_wider_than_the_pool, widest_job
        Jobs that need more nodes than were ever idle at once.
    deadlines
        Of the jobs that the run is about: met, missed, declined (the policy did not take the job), open (may still be
        met), void (the job was ended before).
    declined
        Why the policy did not take a job, by its name.
    last_finish_us
        When the last job left; ``None`` unless all did, and none was declined.
    efficiency, learning, bound, reason_without_baselines
        Comparisons, ``None`` where they were not asked for or, for the reason given, cannot be made.
    ideal
        The same without rounds, where it was asked for.
    policy
        What the policy counts itself.
    extrapolation
        Warnings about node counts at which curves were not measured.
    log_warnings
        As ``LogWarnings.to_json`` has them.
    """

    duration_s: Amount
    n_pool_events: Count
    n_decisions: Count
    decisions: dict[str, Count]
    fallbacks: dict[str, Count]
    fallback_examples: dict[str, str]
    n_preemptions: Count
    n_scale_ups: Count
    n_scale_downs: Count
    equivalent_nodes: Amount
    jobs: dict[str, Count]
    n_jobs_wider_than_the_pool: Count
    widest_job: WidestJob | None
    most_idle_nodes: Count
    job_times: JobTimes
    deadlines: dict[str, Count]
    scores: Scores | None
    last_finish_us: TimeUs | None
    ledger: Ledger
    efficiency: Efficiency | None
    learning: LearningCost | None
    bound: Bound | None
    reason_without_baselines: str | None
    scheduling: Scheduling
    ideal: Ideal | None = None
    declined: dict[str, str] = msgspec.field(default_factory=dict)
    policy: JsonObject | None
    extrapolation: tuple[str, ...] = ()
    log_warnings: JsonObject

    def __repr__(self) -> str:
        jobs = ", ".join(f"{number:,} {status}" for status, number in self.jobs.items() if number)
        return f"<Summary: {self.n_decisions:,} decisions in {self.duration_s / 3600:,.1f} h; jobs: {jobs}>"


class RunRecord(ResultRecord, frozen=True, kw_only=True):
    """``run.json``: what the result depends on, and what came out. No path, no clock, no measurement."""

    versions: dict[str, str]
    config: RunConfig
    inputs: RunInputs
    summary: Summary

    def to_json(self) -> JsonObject:
        """Plain data, as the file has it."""
        return super().to_json() | {"inputs": self.inputs.to_json()}


class Seconds(Part, frozen=True, kw_only=True):
    """Where the time went."""

    parse_s: Amount
    decide_s: Amount
    loop_s: Amount
    write_s: Amount
    dedicated_s: Amount
    bound_s: Amount
    isolated_s: Amount
    ideal_s: Amount = 0.0

    @property
    def total_s(self) -> float:
        """All together."""
        return float(sum(getattr(self, name) for name in self.__struct_fields__))


class Session(Part, frozen=True, kw_only=True):
    """``session.json``: how the run was called, where its inputs lay, and what was measured; all of it may differ.

    ``sha256`` has the digests of ``run.json`` and ``timings.parquet``, ``more`` has what the caller added.
    """

    started: str
    files: dict[str, str]
    seconds: Seconds
    slowest_decision: SlowestDecision | None
    peak_memory_mb: Amount
    command: str = ""
    worker: str | None = None  # of a sweep
    load_s: Amount | None = None
    sha256: dict[str, str] = msgspec.field(default_factory=dict)
    more: JsonObject = msgspec.field(default_factory=dict)

    @staticmethod
    def nested(document: JsonObject) -> JsonObject:
        """The document of a file with what the caller added under ``more``."""
        return {**document, "more": {key: document[key] for key in document.keys() - _OF_SESSION}}

    def to_json(self) -> JsonObject:
        """Plain data, as the file has it."""
        document = super().to_json()
        more: JsonObject = document.pop("more", {})
        return more | document


_OF_SESSION = frozenset(Session.__struct_fields__)
