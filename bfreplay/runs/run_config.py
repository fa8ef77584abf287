"""Configuration and inputs of a run: the first entries of ``run.json``, with units and meaning."""

from __future__ import annotations

from typing import Any

import msgspec

from bfreplay.datasets import EventsMetadata
from bfreplay.datasets.log.metadata import SourceFile
from bfreplay.datasets.log.node_types import ANY_TYPE
from bfreplay.datasets.log.states import STATE_WORDS
from bfreplay.errors import InputError
from bfreplay.policies.names import OWN
from bfreplay.replay.placement import PlacementRule
from bfreplay.replay.progress import Semantics
from bfreplay.result_folders.records import Amount, Count, JsonObject, RecordPart, TimeUs


class PolicyComponent(msgspec.Struct, frozen=True):
    """A part of a policy that has a name: its solver, its forward-looking time."""

    name: str
    fallback: str | None = None  # of a solver: name of its fallback
    start_s: float | None = None  # of a forward-looking time


class ObjectiveDescription(msgspec.Struct, frozen=True):
    """Objective of a policy."""

    spec: str  # as --objective has it
    terms: Any = None


class PolicyDescription(msgspec.Struct, frozen=True):
    """Entries that bfreplay reads from a policy's description of itself, which may have others."""

    name: str
    t_fwd_s: float | None = None
    forward_time: PolicyComponent | None = None  # where it is not fixed
    solver: PolicyComponent | None = None
    objective: ObjectiveDescription | None = None
    learning: Any = None  # where the policy does not know the jobs' curves

    @property
    def objective_spec(self) -> str:
        """Objective, as ``--objective`` has it; by default each job's own."""
        return OWN if self.objective is None else self.objective.spec

    @classmethod
    def of(cls, described: Any, policy: str) -> PolicyDescription:
        """Read a description; InputError, with the name of the policy's class, for one that cannot be read."""
        try:
            return msgspec.convert(described, cls)
        except msgspec.ValidationError as error:
            raise InputError(
                f"the policy {policy} describes itself in a way that cannot be read: {error}",
                value=described,
                expected="a mapping with a name; t_fwd_s a number, forward_time and solver with a name, objective "
                "with a spec",
            ) from error


class RunConfig(RecordPart, frozen=True, kw_only=True):
    """Configuration of a run, with every default."""

    policy: JsonObject  # its description of itself
    max_parallel: Count
    semantics: Semantics
    seed: int
    record_nodes: bool
    unlimited_work: bool
    decides_in_rounds: bool = False
    until_done: bool = False  # the run ends with its jobs
    measured: tuple[Count, Count] | None = None  # numbers of the first measured job, and one after the last
    prices: dict[str, Amount] = msgspec.field(default_factory=dict)  # dollars per node-hour by node type
    clear_s: Amount = 0.0  # to clear a node of a job for a batch job
    notice: bool = False  # jobs save their state while a node is cleared
    reserve: Count = 0  # idle nodes left alone
    min_age_s: Amount = 0.0  # for which a node has to be idle before jobs may have it
    settle_s: Amount = 0.0  # for which all is quiet before a decision
    placement: PlacementRule = PlacementRule.LOWEST_ID  # rule by which jobs get their nodes
    also_idle: tuple[str, ...] = ()  # states of nodes that count as idle besides
    selection: dict[str, str] = msgspec.field(default_factory=dict)  # options that chose a part of the nodes
    restart_cost: Amount | str | None = None  # what replaces the costs of the jobs
    work_saved_every: Amount | None = None
    saves: str | None = None
    window_start_us: TimeUs
    window_end_us: TimeUs

    def __post_init__(self) -> None:
        if self.window_end_us <= self.window_start_us:
            raise ValueError("window_end_us: a time after the window's start")
        if not {*self.also_idle} <= {*STATE_WORDS}:
            raise ValueError("also_idle: states of nodes, such as planned")
        if not self.selection.keys() <= {"partition", "only_nodes", "without"}:
            raise ValueError("selection: partition, only_nodes or without")
        try:
            self.policy_description  # noqa: B018  # refused here, not at its first use
        except msgspec.ValidationError as error:
            raise ValueError(f"policy: {error}") from None

    @property
    def policy_description(self) -> PolicyDescription:
        """The policy's description, typed."""
        return msgspec.convert(self.policy, PolicyDescription)

    @property
    def notice_s(self) -> float:
        """Seconds of notice of a reclaim."""
        return self.clear_s if self.notice else 0.0

    @property
    def frees_rescaling(self) -> bool:
        """True if the upper bound has to count rescaling as free: some changes of a job's nodes cost less."""
        return self.decides_in_rounds or self.notice or self.settle_s > 0

    def after_s(self, time_us: int | None) -> float | None:
        """Convert a time to seconds from the start of the window; ``None`` for no time."""
        return None if time_us is None else (time_us - self.window_start_us) / 1e6


class EventInputs(RecordPart, frozen=True, kw_only=True):
    """The log that was replayed."""

    files: tuple[SourceFile, ...]
    metadata: EventsMetadata
    n_nodes: Count


class JobInputs(RecordPart, frozen=True, kw_only=True):
    """The jobs that were replayed: a set of ``n_jobs``, or a source with its description of itself."""

    files: tuple[SourceFile, ...]
    n_jobs: Count | None
    source: JsonObject | None
    # what their changes cost, of those with other costs than BFTrainer's model knows
    costs: str = ""
    # jobs that were added while the run was followed: how many, and when
    added: str = ""
    # what was measured and reported while the run was followed: how many reports of each kind
    corrected: str = ""

    @property
    def of_source(self) -> bool:
        """True if jobs were made while the replay ran."""
        return self.source is not None

    @property
    def is_recorded(self) -> bool:
        """True if they are the trials of a study that was run, with its ends: none is pruned because of this replay."""
        return "study" in (self.source or {})

    @property
    def higher_is_better(self) -> bool:
        """True if higher scores are better."""
        return bool((self.source or {}).get("higher_is_better", True))


class RunInputs(RecordPart, frozen=True, kw_only=True):
    """Files that were read, with the SHA-256 of their contents; ``batch_jobs`` if they were given."""

    events: EventInputs
    jobs: JobInputs
    batch_jobs: SourceFile | None = None

    @property
    def is_relative(self) -> bool:
        """True if the log has no calendar: its times count from its start."""
        return self.events.metadata.time_origin == "relative"

    @property
    def node_types(self) -> tuple[str, ...]:
        """Node types; one name for all nodes in a log without types."""
        return tuple(self.events.metadata.node_types) or (ANY_TYPE,)

    def to_json(self) -> JsonObject:
        """Return plain data, with the metadata as in the log's own file."""
        document = super().to_json()
        document["events"]["metadata"] = self.events.metadata.to_json()
        return document
