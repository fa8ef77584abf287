"""The record of a run: entries of ``run.json`` and ``session.json``, declared once, with units and meaning."""

from __future__ import annotations

import msgspec

from bfreplay.bounds.upper_bound import Kind
from bfreplay.replay.decision_log import SlowestDecision
from bfreplay.replay.job_outcomes import JobTimes, Scores
from bfreplay.replay.ledger import US_PER_NODE_HOUR, Ledger
from bfreplay.result_folders.records import Amount, Count, JsonObject, RecordPart, ResultRecord, TimeUs
from bfreplay.runs.run_config import RunConfig, RunInputs


class WidestJob(RecordPart, frozen=True, kw_only=True):
    """Widest of the jobs that could never run."""

    name: str
    min_nodes: Count


class Efficiency(RecordPart, frozen=True, kw_only=True):
    """U of a run: samples on idle nodes over samples on as many dedicated nodes (arXiv:2106.12091, section IV).

    Parameters
    ----------
    equivalent_nodes
        Integral of the number of idle nodes over time, divided by the window's length.
    t_fwd_s
        Forward-looking time of the decisions on the dedicated nodes.
    samples, dedicated_samples
        Samples processed in the window on the idle nodes, and on ``equivalent_nodes`` dedicated ones (interpolated
        between the whole numbers of nodes below and above).
    last_finish_us, dedicated_last_finish_us
        End of the last job (on the nearest whole number of dedicated nodes), ``None`` while some have not ended. Where
        both replays finish all jobs, U is 1 by construction: compare these times instead.
    dedicated_jobs, dedicated_best_score
        Jobs by status on dedicated nodes, and the best score of a job source.
    u
        ``samples / dedicated_samples``; ``None`` where the dedicated nodes process nothing, where they are less than
        one and one does all the work, and for a job source, which may make and prune other jobs there.
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


class LearningCost(RecordPart, frozen=True, kw_only=True):
    """A run with learned curves against the same run with known ones.

    Parameters
    ----------
    samples, known_samples
        Samples processed in the window with learned and with known curves. Where both finish all jobs, they are equal:
        compare the times instead.
    last_finish_us, known_last_finish_us
        End of the last job, ``None`` while some have not ended.
    known_jobs, known_best_score
        Jobs by status with known curves, and the best score of a job source.
    lost
        Share of the samples that learning cost; negative where it helped; ``None`` without samples and for a job
        source.
    """

    samples: float
    known_samples: float
    last_finish_us: TimeUs | None
    known_last_finish_us: TimeUs | None
    known_jobs: dict[str, Count]
    known_best_score: float | None
    lost: float | None
    known_average_jct_s: Amount | None = None


class Bound(RecordPart, frozen=True, kw_only=True):
    """The upper bound (``bounds.UpperBound``), and the run's share of it (``None`` for a bound of 0)."""

    samples: Amount
    kind: Kind
    free_rescaling_samples: Amount | None
    earliest_finish_us: TimeUs | None
    share: float | None


class Fairness(RecordPart, frozen=True, kw_only=True):
    """Finish-time fairness: ``rho`` is the time of a job here over that under ``policy`` on the same nodes.

    Above 1, an equal part of the nodes would have served the job better (Themis, NSDI'20; Gavel, OSDI'20).
    """

    average_rho: Amount | None
    largest_rho: Amount | None
    share_above_1: Amount | None
    policy: str


class ContentionFairness(RecordPart, frozen=True, kw_only=True):
    """Finish-time fairness without another replay: ``rho = JCT / (time alone x contention)`` (Shockwave, NSDI'23).

    Time alone is a job's time on as many nodes as it may use, at its own rates; contention is jobs over nodes, at least
    1. Only jobs that finished and can run alone are included.

    Parameters
    ----------
    contention
        Number of measured jobs over the mean number of nodes.
    average_rho, largest_rho
        Mean and maximum; ``None`` where no job finished.
    unfair_share
        Share of the jobs with a ``rho`` above ``UNFAIR_RHO``.
    largest_rho_by_presence, unfair_share_by_presence
        The same with each job's own contention: mean number of jobs from its submission to its finish (the Themis
        variant).
    """

    contention: Amount
    average_rho: Amount | None
    largest_rho: Amount | None
    unfair_share: Amount | None
    largest_rho_by_presence: Amount | None
    unfair_share_by_presence: Amount | None


class Scheduling(RecordPart, frozen=True, kw_only=True):
    """Scheduling metrics, as in Gavel's evaluation (OSDI'20, section 7).

    Jobs are the measured ones (``RunConfig.measured``); node time is that of the whole run.

    Parameters
    ----------
    n_jobs, n_completed
        Number of jobs, and of finished jobs.
    average_jct_s, average_jct_s_by_weight
        Mean completion time of the finished jobs, also by weight as text.
    makespan_s
        Time from the start of the window to the last finish; ``None`` unless all jobs finished.
    utilisation
        Useful, rescaling, preempted and repeated node time over idle node time.
    node_hours_by_type
        Allocated node-hours of every node type; nodes that two jobs share count once.
    cost
        Cost of these in dollars; ``None`` where a type has no price.
    geometric_mean_jct_s, harmonic_mean_jct_s
        Other means of the completion times; ``None`` if no job finished.
    contention_fairness
        ``None`` for jobs without end.
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


class Ideal(RecordPart, frozen=True, kw_only=True):
    """Baseline that applies the policy's shares exactly, without rounds.

    Parameters
    ----------
    n_completed, average_jct_s
        Number of measured jobs that finish, and their mean completion time.
    """

    n_completed: Count
    average_jct_s: Amount | None


_MOST_NODE_US = 10**30


class BatchStartCounts(RecordPart, frozen=True, kw_only=True):
    """Counts of batch starts, of those that met a node of a training job, and their delay, to first order.

    All nodes that go from idle to busy at one instant are one batch start. One that meets a node of a job waits until
    that is clear (``RunConfig.clear_s``), with all its nodes.

    Parameters
    ----------
    n_starts, n_starts_met
        Batch starts, and those that met a node of a job.
    n_nodes_started, n_nodes_met
        Nodes of all starts, and those of them that a job held.
    delay_node_us
        Node time for which batch starts were late: all nodes of each start that met one, times the time to clear.
    busy_node_us
        Node time in which nodes were busy in the window.
    """

    n_starts: Count
    n_starts_met: Count
    n_nodes_started: Count
    n_nodes_met: Count
    delay_node_us: Count
    busy_node_us: Count

    def __post_init__(self) -> None:
        if self.n_starts_met > self.n_starts or self.n_nodes_met > self.n_nodes_started:
            raise ValueError("n_starts_met, n_nodes_met: no more than there are")
        if max(self.delay_node_us, self.busy_node_us) > _MOST_NODE_US:
            raise ValueError("delay_node_us, busy_node_us: node time of a machine")

    @property
    def delay_node_hours(self) -> float:
        """Delay in node-hours."""
        return self.delay_node_us / US_PER_NODE_HOUR

    @property
    def delay_share(self) -> float | None:
        """Delay as a share of the busy node time; ``None`` if no node was ever busy."""
        return self.delay_node_us / self.busy_node_us if self.busy_node_us else None

    @property
    def met_share(self) -> float | None:
        """Share of the batch starts that met a node of a job; ``None`` without any start."""
        return self.n_starts_met / self.n_starts if self.n_starts else None


class BatchDelayCounts(RecordPart, frozen=True, kw_only=True):
    """Delays of batch jobs, propagated through the recorded schedule: what a scheduler that cannot rearrange suffers.

    A batch job starts at its recorded start, or later when all its nodes are clear, on the same nodes in the same order
    (``runs.batch_delays``). The direct part is that of the jobs that met a node of a training job themselves.

    Parameters
    ----------
    n_jobs, n_jobs_met, n_jobs_delayed
        Batch jobs of the window; those of which a training job held a node at the start; those that start late.
    total_us, node_us
        Sum of the delays, and of the delays times the jobs' nodes.
    direct_us, direct_node_us
        The direct part of these.
    quantiles_s
        Delay that so many percent of the late jobs do not exceed.
    worst_job, worst_us
        The most delayed job.
    n_nodes_unmatched
        Nodes that became busy while a training job held them, at a time at which no batch job of the file starts there.
    """

    n_jobs: Count
    n_jobs_met: Count
    n_jobs_delayed: Count
    total_us: Count
    node_us: Count
    direct_us: Count
    direct_node_us: Count
    quantiles_s: dict[str, Amount]
    worst_job: str | None
    worst_us: Count
    n_nodes_unmatched: Count

    def __post_init__(self) -> None:
        if max(self.node_us, self.direct_node_us, self.worst_us) > _MOST_NODE_US:
            raise ValueError("node_us, direct_node_us, worst_us: times of a machine")

    @property
    def node_hours(self) -> float:
        """Delay times nodes, in node-hours."""
        return self.node_us / US_PER_NODE_HOUR

    @property
    def worst_s(self) -> float:
        """Longest delay in seconds."""
        return self.worst_us / 1e6

    @property
    def median_s(self) -> float | None:
        """Median delay of the late jobs; ``None`` without any."""
        return self.quantiles_s.get("50")

    @property
    def p99_s(self) -> float | None:
        """Delay that 99 % of the late jobs do not exceed; ``None`` without any."""
        return self.quantiles_s.get("99")


class Summary(RecordPart, frozen=True, kw_only=True):
    """Totals of a run.

    Parameters
    ----------
    decisions
        Number of decisions by kind (``decision_log.kind_of``).
    fallbacks, fallback_examples
        Fallback decisions by reason, and the first message of each.
    n_scale_ups, n_scale_downs, n_preemptions
        Number of times a job gained or lost nodes by a decision, or lost nodes to a reclaim.
    equivalent_nodes
        Mean number of idle nodes.
    jobs
        Number of jobs by status at the end of the window.
    n_jobs_wider_than_the_pool, widest_job
        Number of jobs that need more nodes than were ever idle at once, and the widest of them.
    deadlines
        Deadlines of the measured jobs: met, missed, declined (the policy did not take the job), open (may still be
        met), void (the job was ended before).
    declined
        Reasons for which the policy declined jobs, by job name.
    last_finish_us
        End of the last job; ``None`` unless all ended and none was declined.
    efficiency, learning, bound, reason_without_baselines
        Comparisons with baselines; ``None`` where not requested, or not possible for the given reason.
    ideal
        The same without rounds; ``None`` where not requested.
    policy
        The policy's own counts.
    extrapolation
        Warnings about node counts at which curves were not measured.
    costly_rescaling
        Warnings about rescale costs above the median idle interval.
    ignores_costs
        The policy does not count costs of changes that jobs have beside BFTrainer's (``Policy.knows_costs``).
    log_warnings
        Warnings about the log, from ``LogWarnings.to_json``.
    batch_starts
        What the run did to batch jobs; ``None`` on a cluster.
    batch_delays
        The same propagated through the recorded schedule; ``None`` without the batch jobs of the log.
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
    costly_rescaling: tuple[str, ...] = ()
    ignores_costs: bool = False
    log_warnings: JsonObject
    batch_starts: BatchStartCounts | None = None
    batch_delays: BatchDelayCounts | None = None

    def __repr__(self) -> str:
        jobs = ", ".join(f"{number:,} {status}" for status, number in self.jobs.items() if number)
        return f"<Summary: {self.n_decisions:,} decisions in {self.duration_s / 3600:,.1f} h; jobs: {jobs}>"


class RunRecord(ResultRecord, frozen=True, kw_only=True):
    """``run.json``: configuration, inputs and summary. No path, no clock, no measurement."""

    versions: dict[str, str]
    config: RunConfig
    inputs: RunInputs
    summary: Summary

    def to_json(self) -> JsonObject:
        """Return plain data, as the file has it."""
        return super().to_json() | {"inputs": self.inputs.to_json()}


class Seconds(RecordPart, frozen=True, kw_only=True):
    """Wall-clock seconds of each part of a run."""

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
        """Sum of all parts."""
        return float(sum(getattr(self, name) for name in self.__struct_fields__))


class Session(RecordPart, frozen=True, kw_only=True):
    """``session.json``: command, paths of the inputs and measurements, which may differ between equal runs.

    ``sha256`` has the digests of ``run.json`` and ``timings.parquet``, ``more`` the entries added by the caller.
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
    def nest_more(document: JsonObject) -> JsonObject:
        """Return the document of a file with the caller's entries moved under ``more``."""
        return {**document, "more": {key: document[key] for key in document.keys() - _OF_SESSION}}

    def to_json(self) -> JsonObject:
        """Return plain data, as the file has it."""
        document = super().to_json()
        more: JsonObject = document.pop("more", {})
        return more | document


_OF_SESSION = frozenset(Session.__struct_fields__)
