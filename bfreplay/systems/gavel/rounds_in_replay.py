"""Translation between the replay and the rounds: numbers of jobs, and an assignment as a decision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bfreplay.policies.policy import Decision, Placement, Round
from bfreplay.policies.state import LONG_AGO_US, NodesSeen, PolicyState
from bfreplay.saved_state import restorable
from bfreplay.systems.gavel.rounds.state import NOBODY, Assignment, RoundRules, RoundState


class KnownJobs:
    """Numbers of the active jobs, increasing in order of arrival; a job that returns gets a new one."""

    def __init__(self) -> None:
        self.job: list[int] = []
        self.number: NDArray[np.int64] = np.zeros(0, np.int64)
        self._next = 0

    @property
    def number_of(self) -> dict[int, int]:
        """Numbers by job of the replay."""
        return dict(zip(self.job, self.number.tolist(), strict=True))

    def remaining_jobs(self, job: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the known jobs in ``job (J,)`` of a ``PolicyState`` that did not leave meanwhile."""
        return self.number[self._stays(job)]

    def _stays(self, job: NDArray[np.int64]) -> NDArray[np.bool_]:
        row_of = {job_number: job_row for job_row, job_number in enumerate(job.tolist())}
        stays = np.zeros(len(self.job), np.bool_)
        n_stay = 0
        for position, job_number in enumerate(self.job):
            stays[position] = row_of.get(job_number, -1) == n_stay  # a job that left and returned is behind all others
            n_stay += int(stays[position])
        return stays

    def follow(self, job: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Update to the jobs that are active now.

        Parameters
        ----------
        job : (J,) int64
            Jobs of a ``PolicyState``: earlier ones in their old order, then new ones.

        Returns
        -------
        leaving, arriving
            Numbers of the jobs that left, and of the new ones. ``number (J,)`` then has one for each row.
        """
        stays = self._stays(job)
        n_stay = int(np.count_nonzero(stays))
        leaving = self.number[~stays]
        arriving = np.arange(self._next, self._next + job.size - n_stay, dtype=np.int64)
        self._next += arriving.size
        self.number = np.concatenate([self.number[stays], arriving])
        self.job = job.tolist()
        return leaving, arriving

    def rows_of(self, state: PolicyState, number: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the job in each row of the state is one of these, (J,)."""
        if not number.size:
            return np.zeros(state.n_jobs, np.bool_)
        jobs = np.array(self.job, np.int64)[np.isin(self.number, number)]
        return np.isin(state.job, jobs)

    def lost_nodes(self, state: PolicyState, rounds: RoundState) -> NDArray[np.bool_]:
        """Return the jobs of the mechanism that are still active and hold fewer nodes than they got, (m,)."""
        count_of = dict(zip(state.job.tolist(), state.current.tolist(), strict=True))
        gang = rounds.jobs.gang
        counts = np.array(
            [count_of.get(job, gang_nodes) for job, gang_nodes in zip(self.job, gang.tolist(), strict=True)], np.int64
        )
        return (rounds.jobs.task >= 0) & (counts < gang)

    def continuing_tasks(self, state: PolicyState, rounds: RoundState) -> NDArray[np.bool_]:
        """Return whether all members and all nodes of each micro-task are still present, (k,)."""
        previous = rounds.last
        is_idle = nodes_of_state(state).is_idle
        is_present = np.isin(previous.member, self.remaining_jobs(state.job)) | (previous.member == NOBODY)
        has_nodes = np.array(
            [bool(is_idle[previous.nodes_of(task)].all()) for task in range(previous.n_tasks)], np.bool_
        )
        # nodes may have left and rejoined while no node was idle and so no decision was taken
        losers = self.number[self.lost_nodes(state, rounds)]
        continues: NDArray[np.bool_] = (
            is_present.all(axis=1) & has_nodes & ~rounds.is_credited & ~np.isin(previous.member, losers).any(axis=1)
        )
        return continues


@restorable
class PairRates:
    """Cache of rates of pairs by model and width; empty unless ``is_wanted``."""

    def __init__(self, type_names: tuple[str, ...], *, is_wanted: bool) -> None:
        self._type_names = type_names
        self._is_wanted = is_wanted
        self._known: dict[tuple[int, int, int], NDArray[np.float64]] = {}

    def of_new(
        self, state: PolicyState, gang: NDArray[np.int64], job_rows: NDArray[np.int64], first_new: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all pairs of jobs with equal widths and known models, at least one of them new.

        Parameters
        ----------
        gang : (J,) int64
            Nodes of each job of the state.
        job_rows : (m,) int64
            Rows of the state to consider.
        first_new
            Position in ``job_rows`` of the first new job.

        Returns
        -------
        pairs : (p, 2) int64
            Positions ``earlier < b`` in ``job_rows``.
        pair_rates : (p, T, 2) float64
            Samples/s of ``earlier`` and of ``later`` on shared nodes of each type; zeros where they cannot share them.
        """
        if not self._is_wanted or state.colocation is None:
            return np.zeros((0, 2), np.int64), np.zeros((0, len(self._type_names), 2))
        gangs, models = gang[job_rows], state.model[job_rows]
        new = np.arange(first_new, gangs.size)[:, None]
        is_pair = (np.arange(gangs.size) < new) & (gangs == gangs[new]) & (models >= 0) & (models[new] >= 0)
        position, earlier = np.nonzero(is_pair)
        pairs = np.column_stack([earlier, first_new + position])
        models_and_gangs = zip(*models[pairs.T].tolist(), gangs[earlier].tolist(), strict=True)
        pair_rates = [self._of(state, model, other, width) for model, other, width in models_and_gangs]
        return pairs, np.array(pair_rates).reshape(-1, len(self._type_names), 2)

    def _of(self, state: PolicyState, model: int, other: int, gang_size: int) -> NDArray[np.float64]:
        pair_key = (model, other, gang_size)
        if pair_key not in self._known and state.colocation is not None:
            model_name, other_name = state.model_names[model], state.model_names[other]
            self._known[pair_key] = np.array(
                [state.colocation.rates(model_name, other_name, gang_size, type_name) for type_name in self._type_names]
            )
        return self._known[pair_key]


US_PER_S = 1e6


def whole_us(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return spans rounded up to the microsecond, as the replay rounds the end of a job."""
    return np.ceil(np.maximum(seconds, 0.0) * US_PER_S).astype(np.int64)


_NO_NODES = np.zeros(0, np.int64)


def nodes_of_state(state: PolicyState) -> NodesSeen:
    """Return the nodes of a state.

    Raises
    ------
    ValueError
        The state has none, and policies that place jobs need them.
    """
    if state.nodes is None:
        raise ValueError("the state has no nodes")
    return state.nodes


def busy_node_s(
    rounds: RoundState, end_s: NDArray[np.float64] | None = None, chosen_tasks: NDArray[np.bool_] | None = None
) -> float:
    """Return the node-seconds of the micro-tasks that ``credit`` would count now, with the same arguments."""
    previous = rounds.last
    counts = ~rounds.is_credited & ~previous.fails
    if chosen_tasks is not None:
        counts &= chosen_tasks
    return float((previous.ran_s(end_s) * np.diff(previous.node_offset))[counts].sum())


class PlacedRound:
    """Builder of the decision for each job of a state in (the rest of) a round.

    Parameters
    ----------
    state
        State of the decision.
    rounds
        The mechanism after it has made ``assignment``.
    assignment
        Micro-tasks and their nodes.
    job_rows : (m,) int64
        Row in ``state`` of each job of ``rounds``.
    step_samples : (J,) int64
        Samples of a step of each job.

    Attributes
    ----------
    until_us
        End of the last micro-task that began; ``LONG_AGO_US`` before the first.
    """

    def __init__(
        self,
        state: PolicyState,
        rounds: RoundState,
        assignment: Assignment,
        job_rows: NDArray[np.int64],
        step_samples: NDArray[np.int64],
    ) -> None:
        n_jobs = state.n_jobs
        self.until_us = LONG_AGO_US
        self._state = state
        self._assignment = assignment
        entries = rounds.entries
        running = np.flatnonzero(entries.task >= 0)
        entry_of = np.zeros(assignment.n_tasks, np.int64)
        entry_of[entries.task[running]] = running
        member = entries.member_row[entry_of]
        self._is_present = member >= 0
        self._row = np.where(self._is_present, job_rows[member], -1) if job_rows.size else member
        samples_per_step = np.where(self._is_present, step_samples[self._row], 1)
        self._rate = entries.rate[entry_of, assignment.node_type] * samples_per_step
        self._task_samples = assignment.steps * samples_per_step
        self._counts = np.zeros(n_jobs, np.int64)
        self._assigned = [_NO_NODES] * n_jobs
        self._partner = np.full(n_jobs, -1, np.int64)
        self._samples = np.full(n_jobs, np.inf)
        self._restart_s = np.zeros(n_jobs)
        self._not_before_us = np.full(n_jobs, LONG_AGO_US)

    def begin(self, rules: RoundRules, tasks: slice, remaining_us: int, restart_s: float) -> None:
        """Add micro-tasks that start now, with ``remaining_us`` left of the round; a restart takes ``restart_s``."""
        state, assignment = self._state, self._assignment
        is_present, job_row = self._place(tasks)
        rate = self._rate[tasks][is_present]
        fails = assignment.fails[tasks]
        samples = (self._task_samples[tasks] * ~fails[:, None])[is_present]
        restarts_s = (restart_s * assignment.restarts[tasks])[is_present]
        self._samples[job_row] = samples
        self._restart_s[job_row] = restarts_s
        # as the replay will compute it, to the microsecond
        progress = state.progress[job_row]
        run_us = np.zeros(is_present.shape, np.int64)
        samples_to_do = (progress + samples) - progress + rate * restarts_s
        run_us[is_present] = whole_us(samples_to_do / rate)
        if state.owed is not None and state.owed[job_row].any():
            # owed samples take their time first; no round becomes longer for that
            most_us = np.maximum(run_us[is_present], remaining_us)
            run_us[is_present] = np.minimum(whole_us((samples_to_do + state.owed[job_row]) / rate), most_us)
        ends_us = run_us.max(axis=1)
        if rules.quirks.pairs_end_together:
            is_pair = is_present.all(axis=1)
            self._not_before_us[self._row[tasks][is_pair]] = state.time_us + ends_us[is_pair, None]
        assigned_us = whole_us(assignment.finish_s[tasks] - assignment.start_s[tasks])
        # a restart may cost steps instead of time; otherwise the two differ by rounding alone
        ends_us = np.where(fails | (assigned_us > ends_us + 1), assigned_us, ends_us)
        if ends_us.size:
            self.until_us = max(self.until_us, state.time_us + max(int(ends_us.max()), 1))

    def add_running(self, tasks: slice, limit: NDArray[np.float64]) -> None:
        """Add micro-tasks that began earlier in the round; ``limit (J,)``: largest progress of each job."""
        _, job_row = self._place(tasks)
        self._samples[job_row] = np.maximum(limit[job_row] - self._state.progress[job_row], 0.0)

    def _place(self, tasks: slice) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Give the members of micro-tasks their nodes; return which members are present, (k, 2), and their rows."""
        assignment = self._assignment
        offset, row_of = assignment.node_offset.tolist(), self._row.tolist()
        for task in range(*tasks.indices(assignment.n_tasks)):
            nodes = assignment.node[offset[task] : offset[task + 1]]
            for job_row in row_of[task]:
                if job_row >= 0:
                    self._assigned[job_row] = nodes
        is_present = self._is_present[tasks]
        job_rows = self._row[tasks]
        sizes = np.repeat(np.diff(assignment.node_offset)[tasks], 2).reshape(-1, 2)
        self._counts[job_rows[is_present]] = sizes[is_present]
        pairs = job_rows[is_present.all(axis=1)]
        self._partner[pairs] = pairs[:, ::-1]
        return is_present, job_rows[is_present]

    def _limits(self) -> NDArray[np.float64]:
        """Return the samples that each job may process, (J,), at its new rate where it changes on the way."""
        change_at = self._state.change_at
        if change_at is None:
            return self._samples
        return np.where(self._state.progress + self._samples > change_at, np.inf, self._samples)

    def decision(self, is_given_up: NDArray[np.bool_] | None, until_us: int) -> Decision:
        """Return the decision, valid until ``until_us``; if ``LONG_AGO_US`` (nothing runs), until an event."""
        placement = Placement(
            tuple(self._assigned),
            self._partner if (self._partner >= 0).any() else None,
            self._restart_s if self._restart_s.any() else None,
        )
        round_plan = Round(
            None if until_us == LONG_AGO_US else until_us,
            self._limits(),
            self._not_before_us if (self._not_before_us > LONG_AGO_US).any() else None,
            is_given_up,
        )
        return Decision(self._counts, placement=placement, round=round_plan)

    def limits(self) -> dict[int, float]:
        """Return the largest progress of each job that runs, by its number in the replay."""
        running = np.flatnonzero(self._counts)
        limit = self._state.progress[running] + self._limits()[running]
        return dict(zip(self._state.job[running].tolist(), limit.tolist(), strict=True))
