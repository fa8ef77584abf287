"""Reruns a saved run: the replay follows the recorded counts instead of a policy.

No solver runs, and every row of the decision table must equal the recorded one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bfreplay.datasets.times import iso_utc
from bfreplay.documents import pick
from bfreplay.errors import BfreplayError, InputError
from bfreplay.milp.solution import ProcessStatus
from bfreplay.policies import Decision, Policy, PolicyState
from bfreplay.policies.catalogue import policy_of_record
from bfreplay.policies.objectives.catalogue import objective_of
from bfreplay.policies.reclaims.policy import Reasons, ReclaimAwarePolicy
from bfreplay.replay.engine import Engine, ProgressCallback
from bfreplay.replay.run_tables import RunTables
from bfreplay.replay.settings import ReplaySettings, random_seed_map
from bfreplay.replay.tables import DECISIONS, RowTable, TableSink
from bfreplay.runs.run_checks import jobs_in_window
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.saved_inputs import GivenInputs, inputs_of
from bfreplay.workload import ElasticJob

OF_THE_ANSWER = (
    "objective",
    "bound",
    "gap",
    "solver",
    "process_status",
    "solver_status",
    "quality",
    "fell_back_from",
    "rejected_process_status",
    "rejected_solver_status",
    "rejected_quality",
    "message",
)
"""Columns that describe an answer and its solver."""

_SAME = (
    "time",
    "trigger",
    "n_idle",
    "n_joined",
    "n_reclaimed",
    "n_jobs",
    "n_jobs_running",
    "n_jobs_preempted",
    "n_jobs_scaled_up",
    "n_jobs_scaled_down",
    "n_nodes_used",
)
_CLOSE = ("rate_samples_per_s", "samples_since_last", "rescale_cost_samples", "preemption_cost_samples")
_COLUMNS = (*_SAME, *_CLOSE, *OF_THE_ANSWER, "t_fwd_s")
_ROWS = 4_096
"""Recorded rows that are compared at once."""
_POSITION = {name: k for k, name in enumerate(DECISIONS.names)}
_OF_WHOLE_RUNS = {"record_nodes", "until_done", "measured", "prices", "seed_map"}
_SETTINGS = tuple(field.name for field in fields(ReplaySettings) if field.name not in _OF_WHOLE_RUNS)
"""Settings of the replay that a rerun has as well, by their names in the record."""
_TOLERANCE = 1e-6
"""Another processor may round sums of samples otherwise."""


class EndOfRerun(Exception):  # noqa: N818  # no error: it ends the replay
    """Stops the rerun after the last requested decision."""


class ComparedDecisions(RowTable):
    """Compares the decisions of a replay, row by row, with the decision table of ``run_result`` up to row ``last``.

    Raises
    ------
    InputError
        There is no such row.
    """

    def __init__(self, run_result: RunResult, last: int) -> None:
        super().__init__(DECISIONS, TableSink())
        check_decision(run_result, last)
        self.last = last
        self._version = run_result.record.versions.get("bfreplay")
        self._corrected = run_result.record.inputs.jobs.corrected
        batches = run_result.batches("decisions", (*_COLUMNS, "counts"))
        self._recorded = (piece for rows in batches for piece in rows.to_batches(max_chunksize=_ROWS) if len(piece))
        self._n_read = 0
        self._read()

    def _read(self) -> None:
        """Read the next recorded rows: as Python's numbers and texts, they are large."""
        rows = next(self._recorded)
        self._first_row, self._n_read = self._n_read, self._n_read + len(rows)
        columns = {name: rows[name].cast("int64") if name == "time" else rows[name] for name in _COLUMNS}
        self._columns_of_run = {name: column.to_pylist() for name, column in columns.items()}
        ends = np.cumsum(np.asarray(rows["counts"].value_lengths()), dtype=np.int64)
        self._counts = np.split(np.asarray(rows["counts"].flatten(), dtype=np.int64), ends[:-1])

    def row(self) -> dict[str, Any]:
        """Return the recorded row of the next decision, without its counts."""
        return {name: self.value(name) for name in self._columns_of_run}

    @property
    def counts(self) -> NDArray[np.int64]:
        """(J,) recorded counts of the next decision."""
        return self._counts[self.n_rows - self._first_row]

    @property
    def was_asked(self) -> bool:
        """Whether the policy of the run was asked for the next decision; the first map counts as well."""
        return self.value("process_status") != ProcessStatus.NOT_NEEDED or self.value("solver_status") is not None

    def difference(self, replay_value: str, record_value: str) -> InputError:
        """Return the error for a replay that differs from the run at the next decision."""
        fix = (
            f"the run was made by bfreplay {self._version}: replay again with this version, and with code of your own "
            "(score function, pruner, job source, objective) as it was then. A run whose policy places nodes itself or "
            "restarts jobs, or whose first map was not the seeded one, cannot be rerun from its counts"
        )
        if self._corrected:
            fix = f"the run was corrected by what was measured as it ran ({self._corrected}): no replay has that"
        return InputError(
            f"the replay differs from the run: here {replay_value}, recorded {record_value}",
            row=f"decision {self.n_rows} at {iso_utc(self.value('time'))}",
            fix=fix,
        )

    def value(self, name: str) -> Any:
        """Return the recorded value of a column for the next decision."""
        return self._columns_of_run[name][self.n_rows - self._first_row]

    def check(self, name: str, replay_value: Any) -> None:
        """Compare a number of the next decision with the recorded one."""
        record_value = self.value(name)
        if replay_value != record_value:
            raise self.difference(f"{name} is {replay_value!r}", f"{record_value!r}")

    def append(self, row: Sequence[Any]) -> None:
        """Compare one row of the replay, in the order of the schema."""
        for name in _SAME:
            self.check(name, row[_POSITION[name]])
        counts = row[_POSITION["counts"]]
        if not np.array_equal(counts, self.counts):
            raise self.difference(f"counts are {counts.tolist()}", f"{self.counts.tolist()}")
        for name in _CLOSE:
            replay_value, record_value = row[_POSITION[name]], self.value(name)
            if not math.isclose(replay_value, record_value, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                raise self.difference(f"{name} is {replay_value!r}", f"{record_value!r}")
        self.n_rows += 1
        if self.n_rows > self.last:
            raise EndOfRerun
        if self.n_rows == self._n_read:
            self._read()


def check_decision(run_result: RunResult, index: int) -> None:
    """Raise ``InputError`` unless the run has a decision ``index``."""
    total = run_result.n_rows("decisions")
    if not 0 <= index < total:
        raise InputError(
            "the run has no such decision",
            file=run_result.folder,
            column="decision",
            value=index,
            expected=f"0 to {total - 1}" if total else "a run with decisions",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A decision with jobs and idle nodes, just before it takes effect. Arrays belong to the replay: copy them.

    Parameters
    ----------
    index
        Row of the decision table.
    state
        State that a policy sees; its jobs are ``jobs[state.job]``.
    held : (J,) int64
        Nodes of each job before this instant, or with ``--settle`` after the decision before.
    reclaimed : (J,) int64
        Number of these reclaimed since then. ``held - reclaimed - state.current`` is not 0 for a job that was
        paused and resumed at this instant.
    counts : (J,) int64
        Recorded counts.
    row
        Recorded row of the decision, without its counts.
    reasons
        What the decision of a ``ReclaimAwarePolicy`` came from; ``None`` for any other.
    policy
        The policy that has just made the decision again, and says ``why``; ``None`` where counts are enough.
    """

    index: int
    state: PolicyState
    held: NDArray[np.int64]
    reclaimed: NDArray[np.int64]
    counts: NDArray[np.int64]
    row: dict[str, Any]
    reasons: Reasons | None = None
    policy: Policy | None = None


Watcher = Callable[[Moment], None]
"""Called at every decision with jobs and idle nodes; all others have no nodes to give."""


class _EngineOfRerun(Engine):
    """Engine whose policy is asked at every recorded decision, as the rerun watches all of them."""

    def _carry_out(self, decision: Decision, state: PolicyState) -> None:
        """Leave the nodes where they are at a decision that the policy of the run was not asked for."""
        compared = self.run_tables.decisions
        assert isinstance(compared, ComparedDecisions)
        if compared.was_asked or not np.array_equal(decision.counts, state.current):
            super()._carry_out(decision, state)


class Rerun:
    """One rerun of a saved run up to decision ``last``.

    Parameters
    ----------
    run
        The run.
    last
        Decision to stop after; by default the last of the run.
    progress
        Called after every instant with (time reached in us, decisions so far).
    inputs
        Inputs of the run, as for ``inputs_of``.

    Raises
    ------
    InputError
        There is no such decision, or the inputs are missing or not those of the run.
    """

    def __init__(
        self,
        run: RunResult,
        last: int | None = None,
        progress: ProgressCallback | None = None,
        **inputs: Unpack[GivenInputs],
    ) -> None:
        self._compared = ComparedDecisions(run, run.n_rows("decisions") - 1 if last is None else last)
        config = run.record.config
        log, jobs_of_record = inputs_of(run, **inputs)
        own = _aware_policy(run, inputs.get("allow_code", False)) or policy_of_record(config.policy)
        policy = _PolicyOfRecord(self, own)
        of_record: dict[str, Any] = pick(config, *_SETTINGS)
        settings = ReplaySettings(seed_map=policy.first_map, **of_record)
        jobs = jobs_in_window(jobs_of_record, log, settings, unlimited_work=config.unlimited_work)
        run_tables = RunTables.nowhere(log.node_types.names)
        run_tables.decisions = self._compared
        self._engine = _EngineOfRerun(log, jobs, policy, settings, run_tables, progress)
        self._watch: Watcher | None = None
        # index, counts by number of the job
        self._before: tuple[int, dict[int, int]] = -1, {}

    @property
    def jobs(self) -> list[ElasticJob]:
        """Jobs submitted so far, by number."""
        return self._engine.feed.jobs

    @property
    def n_rows(self) -> int:
        """Number of decisions so far."""
        return self._compared.n_rows

    def run(self, watch: Watcher) -> None:
        """Rerun it; ``watch`` is called at every decision with jobs and idle nodes.

        Raises
        ------
        InputError
            The replay differs from the run (with the first difference), or the log is faulty.
        """
        record = self._compared
        self._watch = watch
        try:
            self._engine.run()
        except EndOfRerun:
            return
        except InputError:
            raise  # a difference, or a fault of the log
        except BfreplayError as error:  # the recorded counts are impossible here
            raise record.difference(str(error), f"counts {record.counts.tolist()}") from error
        raise record.difference("it ends", f"{record.last + 1 - record.n_rows} decisions more")

    def is_active(self, number: int) -> bool:
        """Return whether job ``number`` is active after the last decision of this rerun."""
        active = self._engine.active
        return number in active.records["job"][: active.n].tolist()

    def counts_for(
        self,
        state: PolicyState,
        decision: Decision | None = None,
        reasons: Reasons | None = None,
        policy: Policy | None = None,
    ) -> NDArray[np.int64]:
        """Return the recorded counts for ``state``, after comparing it with the record and calling ``watch``.

        So is the ``decision`` of a policy that decides again; ``reasons`` and ``policy`` are for ``watch``.
        """
        record, index = self._compared, self._compared.n_rows
        for name, replay_value in (("time", state.time_us), ("n_idle", state.n_idle), ("n_jobs", state.n_jobs)):
            record.check(name, replay_value)
        counts = record.counts
        if counts.size != state.n_jobs:
            raise record.difference(f"there are {state.n_jobs} jobs", f"counts {counts.tolist()}")
        if decision is not None and not np.array_equal(decision.counts, counts):
            raise record.difference(f"counts are {decision.counts.tolist()}", f"{counts.tolist()}")
        nodes_before = self._counts_before(index, state.job)
        assert self._watch is not None
        assert state.lost_nodes is not None
        n_missing = np.maximum(nodes_before - state.current, 0)
        n_reclaimed = np.minimum(state.lost_nodes, n_missing) if record.value("n_reclaimed") else 0 * n_missing
        self._watch(Moment(index, state, nodes_before, n_reclaimed, counts, record.row(), reasons, policy))
        self._before = index, dict(zip(state.job.tolist(), counts.tolist(), strict=True))
        return counts

    def _counts_before(self, index: int, job_numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts of the row before: none where that had no job, or no node."""
        index_before, counts = self._before
        known = counts if index_before == index - 1 else {}
        return np.array([known.get(number, 0) for number in job_numbers.tolist()], dtype=np.int64)

    def difference(self, replay_words: str, record_words: str) -> InputError:
        """Return the error for a decision that is not the recorded one."""
        return self._compared.difference(replay_words, record_words)


def _aware_policy(run: RunResult, allow_code: bool) -> ReclaimAwarePolicy | None:
    """Return the policy of the run if it chose nodes by what it had learned: it chooses the same ones again."""
    policy = run.record.config.policy_description
    if policy.name != ReclaimAwarePolicy.name or policy.t_fwd_s is None:
        return None
    objective = objective_of(policy.objective_spec, allow_code=allow_code or run.folder is None)
    return ReclaimAwarePolicy(policy.t_fwd_s, None, objective)


class _PolicyOfRecord(Policy):
    """Policy that repeats the recorded decisions; ``own`` decides again, for more than counts."""

    name = "recorded"

    def __init__(self, rerun: Rerun, own: Policy | None) -> None:
        self._rerun = rerun
        self._own = own
        if own is not None:
            self.wakes_on, self.capabilities = own.wakes_on, own.capabilities

    def decide(self, state: PolicyState) -> Decision:
        """Return the counts of the run."""
        own = self._own
        if own is None:
            return Decision(self._rerun.counts_for(state))
        reasons = own.reasons(state) if isinstance(own, ReclaimAwarePolicy) else None
        decision = own.decide(state) if reasons is None else reasons.decision
        return replace(decision, counts=self._rerun.counts_for(state, decision, reasons, own))

    def first_map(self, state: PolicyState, free: NDArray[np.int64], rng: np.random.Generator) -> Decision:
        """Return the seeded first map of the published semantics, which names nodes, not only counts."""
        self._rerun.counts_for(state)
        return random_seed_map(state, free, rng)
