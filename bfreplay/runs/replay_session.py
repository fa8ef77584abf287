"""``ReplaySession``: a run from a log that is there, or that comes in portions, with checkpoints."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from time import perf_counter
from types import NoneType, TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bfreplay import checks
from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.events import LAST_US, bound_us
from bfreplay.datasets.log.portion_rows import Rows
from bfreplay.datasets.log.portions import Portions
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError
from bfreplay.policies import Policy
from bfreplay.replay.checkpoint import Checkpoints, StoppedError, about, check_same
from bfreplay.replay.engine import Engine
from bfreplay.replay.ledger import Ledger
from bfreplay.replay.run_tables import RunTables
from bfreplay.replay.settings import ReplaySettings
from bfreplay.result_folders.records import RUN
from bfreplay.result_folders.writing import new_folder, record_json
from bfreplay.runs.baselines import IN_PORTIONS, RunBaselines
from bfreplay.runs.batch_delays import BatchJobsOfRun
from bfreplay.runs.live_reports import LiveReports
from bfreplay.runs.live_session import LiveSession
from bfreplay.runs.make_record import config_of, recorded_inputs, summary_of, with_costs
from bfreplay.runs.restored_session import KnownJob, in_order, jobs_after, known_jobs, nodes_after
from bfreplay.runs.run_checks import check_growing, check_length, check_policy, check_whole_log, jobs_in_window
from bfreplay.runs.run_record import BatchDelayCounts, RunRecord, Seconds, Session
from bfreplay.runs.run_result import RunResult
from bfreplay.runs.run_settings import Output, RunSettings, Saving
from bfreplay.saved_state import State, UnsavedError, classes_inside, read_state, restore_state, save_state, write_state
from bfreplay.versions import versions
from bfreplay.workload import ElasticJob, JobSet, JobSource


class ReplaySession(LiveSession):
    """One run, fed with portions of its log. A context manager: the policy is closed, and what is unfinished removed.

    ``advance`` takes portions, ``finish`` completes the run. However the log is cut into portions, the run is the same.

    Parameters
    ----------
    events
        The log; with ``portions`` one whose rows are still to come (``NodeEvents.to_come``).
    jobs
        Relative submit times count from the start of the window.
    policy
        Policy that decides the node counts; closed at the end.
    settings, run_settings
        Everything else that changes the result.
    output
        Folder, progress and checkpoints; by default nothing is written.
    batch_jobs
        File of the batch jobs of the log (``bfreplay ingest --batch-jobs``): the delays that the run caused are then
        propagated through their recorded schedule.
    portions
        The log comes by ``advance``; otherwise it is read by ``replay_log``.
    hold_back_s
        Rows of a log in portions wait for so long, and may be corrected meanwhile; nodes may appear. 0: every row is
        right when it is given.

    Raises
    ------
    InputError, OutputExistsError
        The log, the jobs or the output folder cannot be used, or there is no such run to resume.
    """

    not_saved = (
        "events",
        "policy",
        "settings",
        "_anchored",
        "_run_settings",
        "_stack",
        "_out",
        "_folder",
        "_saving",
        "_checkpoints",
        "_called",
        "_seconds",
        "_started",
        "_config",
        "_inputs",
        "_baselines",
        "_batch_jobs",
        "_in_place",
        "_ended_by",
        "_given",
    )

    def __init__(
        self,
        events: NodeEvents,
        jobs: JobSet | JobSource,
        policy: Policy,
        settings: ReplaySettings,
        run_settings: RunSettings,
        output: Output | None = None,
        *,
        portions: bool = False,
        batch_jobs: str | PathLike[str] | None = None,
        hold_back_s: float = 0.0,
    ) -> None:
        self.events, self.policy, self.settings = events, policy, settings
        self._run_settings = run_settings
        self._seconds = dict.fromkeys(("dedicated_s", "loop_s", "isolated_s", "ideal_s", "bound_s"), 0.0)
        output = output or Output()
        self._called = dict(output.session)
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._out = None if output.folder is None else Path(output.folder)
        self._ended_by = ""
        self._stack = ExitStack()
        self._stack.callback(policy.close)
        with ExitStack() as undo:
            undo.push(self._stack)
            self.portions = Portions(events, round(hold_back_s * 1e6)) if portions else None
            self.events = events if self.portions is None else self.portions.log
            self._check(jobs, batch_jobs)
            self._saving = output.saving
            self._open(output)
            undo.pop_all()

    def _check(self, jobs: JobSet | JobSource, batch_jobs: str | PathLike[str] | None) -> None:
        """Refuse before the replay what cannot be replayed, or not be written after it."""
        events, policy, settings, run_settings = self.events, self.policy, self.settings, self._run_settings
        self._anchored = jobs_in_window(jobs, events, settings, unlimited_work=run_settings.unlimited_work)
        check_policy(policy, events, settings)
        if self.portions is not None and self.portions.is_followed:
            check_growing(policy)
        if isinstance(self._anchored, JobSet):
            policy.check_jobs(self._anchored.jobs, int(np.bincount(events.node_types.of_node).max()))
        check_length(policy, events, self._anchored, settings)
        self._config = config_of(events, policy, settings, unlimited_work=run_settings.unlimited_work)
        self._baselines = RunBaselines(
            events,
            self._anchored,
            policy,
            settings,
            run_settings,
            self._config.policy_description.t_fwd_s,
            in_portions=self.portions is not None,
        )
        if batch_jobs is not None and self.portions is not None:
            raise InputError(
                f"the delays of batch jobs cannot be propagated: {IN_PORTIONS}",
                column="batch_jobs",
                value=batch_jobs,
                expected="a log that is there as a whole",
                fix="omit batch_jobs",
            )
        self._batch_jobs = None if batch_jobs is None else BatchJobsOfRun.load(batch_jobs, events)
        is_followed = self.portions is not None and self.portions.is_followed
        self._known_jobs = (
            known_jobs(self._anchored, events.most_nodes) if is_followed and isinstance(self._anchored, JobSet) else []
        )
        self._given = {name for name, _, _ in self._known_jobs}
        self._jobs_added: list[str] = []
        self._inputs = recorded_inputs(events, jobs, None if self._batch_jobs is None else self._batch_jobs.source)
        record_json(self._called, "the run")
        record_json(self._inputs, "the run")

    def _open(self, output: Output) -> None:
        """Open the tables and build the engine, which goes on from its last state in a run that is resumed."""
        self._checkpoints = self._checkpoints_of(self._saving)
        state = None
        if self._checkpoints is not None:
            state = self._checkpoints.begin(resume=self._saving.resume, overwrite=output.overwrite)
            self._stack.callback(self._checkpoints.close)
        self._folder = self._stack.enter_context(new_folder(self._out, RUN, overwrite=output.overwrite))
        events, jobs, folder = self.events, self._anchored, self._folder
        if folder is None and not self._run_settings.tables:
            run_tables = RunTables.nowhere(events.node_types.names)
        else:
            run_tables = RunTables.open(
                events.nodes,
                folder=folder,
                checkpoints=self._checkpoints,
                with_nodes=self.settings.record_nodes,
                with_reports=not isinstance(jobs, JobSet),
                type_names=events.node_types.names,
                shared=isinstance(jobs, JobSet) and jobs.colocation is not None,
            )
        self.policy.foresee(events)
        if not isinstance(jobs, JobSet):  # before the run: a source describes its last replay, which must be this run
            with _measure_into(self._seconds, "dedicated_s"):
                self._baselines.measure_dedicated(events, events)
        self.engine = Engine(events, jobs, self.policy, self.settings, run_tables, output.progress)
        self.engine.feed.keep_calls()
        self.engine.pool.batch_starts.keeps_met = self._batch_jobs is not None
        self._reports = LiveReports(self.engine, self.portions)
        self._in_place = classes_inside(self)
        if state is not None:
            self._resume(state)
        elif self._checkpoints is not None:
            try:  # refuse before the replay what could not be saved during it
                self._state()
            except UnsavedError:
                self._checkpoints.end()
                raise

    def _checkpoints_of(self, saving: Saving) -> Checkpoints | None:
        if saving.every_s is None and not saving.resume:
            return None
        if self._out is None:
            raise InputError(
                "checkpoints need a run folder, beside which they are kept",
                column="checkpoint-every",
                value=saving.every_s,
                expected="a folder for the run",
                fix="give one: --out RUN (out= in Python)",
            )
        every_s = math.inf if saving.every_s is None else saving.every_s
        return Checkpoints(self._out, every_s, self._about(), saving.options)

    def _about(self) -> dict[str, Any]:
        run_settings = asdict(self._run_settings)
        inputs = self._inputs.to_json()
        if self.portions is not None and self.portions.is_followed:  # the state has its nodes and its jobs
            metadata = inputs["events"]["metadata"]
            inputs["events"] = {"metadata": {**metadata, "node_types": None, "n_nodes_at_start": None}}
            if isinstance(self._anchored, JobSet):
                inputs["jobs"] = {}
        return about(config=self._config.to_json(), inputs=inputs, run_settings=run_settings)

    def _resume(self, state: State) -> None:
        self._ended_by = "could not be restored"  # until it is, whole
        restore_state(self, state)
        if self.portions is not None and self.portions.is_followed:
            self._go_on_with_others(self.portions)
        else:
            self._reports.reapply()
        self.engine.resume()
        self._ended_by = ""

    def _go_on_with_others(self, portions: Portions) -> None:
        """Go on with the nodes and the jobs of this session, which may be more than those of the state."""
        nodes_after(portions, self.events)
        self.events = portions.log
        self.engine.add_nodes(portions.log)
        if not isinstance(self._anchored, JobSet):
            return
        names = {job.name for job in self._anchored}
        given = [*self._anchored, *(job for job in self._reports.submitted if job.name not in names)]
        known = known_jobs(given, self.events.most_nodes)
        self._take_jobs(
            self._anchored, given, jobs_after(self._known_jobs, known, portions.until_us), portions.until_us
        )

    def _take_jobs(self, jobs: JobSet, given: Sequence[ElasticJob], further: Sequence[KnownJob], since_us: int) -> None:
        """Go on with the known jobs and the ``further`` ones of those given, which are new from ``since_us`` on."""
        n_known = len(self._known_jobs)
        if further:
            if self.engine.is_over or self._run_settings.fairness:
                raise InputError(
                    "jobs cannot be added to a run " + ("that is over" if self.engine.is_over else "with fairness"),
                    column="jobs",
                    value=further[-1][0],
                    expected="the jobs of the state",
                    fix="open another session",
                )
            self._jobs_added.append(f"{len(further):,} at {iso_utc(since_us)}")
        self._known_jobs = [*self._known_jobs, *further]
        all_jobs = in_order(self._known_jobs, given)
        self.engine.feed.take_jobs(all_jobs, n_known)
        self._reports.reapply()
        self._anchored = JobSet(all_jobs, sources=jobs.sources, colocation=jobs.colocation)
        self._baselines.take_jobs(self._anchored)

    # -- the replay ---------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """True once all jobs are done in a run that ends with them."""
        return self.engine.is_over

    @property
    def until_us(self) -> int:
        """Time up to which the log is complete: a session that goes on is given the events from there on."""
        return self.engine.reached_us + 1 if self.portions is None else self.portions.until_us

    def advance(self, events: Rows = (), until: Any = None, *, node_types: Mapping[str, str] | None = None) -> pa.Table:
        """Take a portion of the log, and replay as far as nothing can change any more.

        Parameters
        ----------
        events
            Rows as for ``Portions.take``, in any order.
        until
            No event of an earlier time will follow: microseconds since 1970, ISO-8601 text, or ``datetime``. By default
            the time of the last event so far, of which more may follow. With a hold-back it is the time now: the log is
            complete up to it less the hold-back.
        node_types
            Type of each node that appears, with a hold-back, in a log with several types.

        Returns
        -------
        pyarrow.Table
            The decisions of this portion, rows of ``decisions.parquet``: they are final.

        Raises
        ------
        InputError
            A row is unknown, too late or contradicts another one: nothing of this portion is taken. Or the session has
            ended.
        """
        self._check_open()
        portions = self._portions
        checks.instance("node_types", node_types, (Mapping, NoneType), "a mapping of nodes to their types")
        until_us = None if until is None else bound_us("until", until)
        decisions = self.engine.run_tables.decisions
        decisions.latest = []
        with _measure_into(self._seconds, "loop_s"):
            batch = portions.take(events, until_us, node_types=node_types)
            if len(portions.log.nodes) > len(self.events.nodes):
                self.events = portions.log
                self.engine.add_nodes(portions.log)
            self._reports.advance(batch, portions.until_us)
        final = decisions.take_latest()
        if self._checkpoints is not None:
            self._checkpoints.visit(self._state)
        return final

    def run(self) -> RunResult:
        """Replay the whole log and return the run; errors as for ``run_replay``."""
        if self._checkpoints is not None:
            self.engine.after_instant = self._save_if_due
        self._saving.listens = self._checkpoints is not None
        with _measure_into(self._seconds, "loop_s"):
            self.engine.replay_log()
        self._saving.listens = False
        if self._checkpoints is not None:  # what follows takes its time too
            self._checkpoints.save(self._state())
        return self.finish()

    def _save_if_due(self, _: Engine) -> None:
        assert self._checkpoints is not None
        self._checkpoints.visit(self._state, stops=self._saving.stops)

    def _state(self) -> State:
        return save_state(self, self._in_place)

    def _check_open(self) -> None:
        if self._ended_by:
            raise InputError(
                f"this session {self._ended_by}", expected="a session that goes on", fix="open another one"
            )

    def save(self, file: str | Path) -> None:
        """Save the state of the session to a file, for ``restore`` of another one with equal arguments."""
        self._check_open()
        state = self._state()
        write_state(Path(file), State([self._about(), state.tree], state.arrays))

    def checkpoint(self) -> None:
        """Save the state now, as ``checkpoint_every`` does from time to time, for ``resume`` in another process.

        Raises
        ------
        InputError
            The session has no checkpoints, or has ended.
        """
        self._check_open()
        if self._checkpoints is None:
            raise InputError(
                "this session has no checkpoints",
                column="checkpoint_every",
                expected="a session with a folder and checkpoints",
                fix="open it with out= and checkpoint_every=, or save(file)",
            )
        self._checkpoints.save(self._state())

    def restore(self, file: str | Path) -> None:
        """Go on from the state in a file; portions before it are not given again.

        With a hold-back the nodes may be others than before: those that are new come after all others, and those that
        are gone are unknown from ``until_us`` on. There may be more jobs: they are submitted then, or later.

        Raises
        ------
        InputError
            The file has no state, or that of a session with other arguments. If jobs of the state are missing or have
            changed, or it is the state of another kind of object, this session has ended.
        """
        self._check_open()
        document, arrays = read_state(Path(file))
        if not (isinstance(document, list) and len(document) == 2 and isinstance(document[0], dict)):
            raise InputError(
                "this is the state of a run with a folder, not of a session",
                file=file,
                expected="a file that ReplaySession.save wrote",
            )
        about_before, tree = document
        check_same(about_before, self._about(), Path(file))
        self._resume(State(tree, arrays))

    # -- the end ------------------------------------------------------------------------------------------

    def finish(self, end: Any = None, log: NodeEvents | None = None) -> RunResult:
        """Replay the rest of the window, and return the run.

        Parameters
        ----------
        end
            End of the window of a log in portions that had none: a time as for ``advance``.
        log
            The whole log that came in portions, for its name, U and the upper bound, which need all of it.

        Raises
        ------
        InputError
            The window cannot end there, ``log`` is not what came in portions, or the session has ended.
        LedgerError
            The ledger does not close.
        """
        self._check_open()
        if self.portions is not None:
            self._end_portions(None if end is None else bound_us("end", end), log)
        self._ended_by = "has ended: finish() returned its run"
        with _measure_into(self._seconds, "loop_s"):
            ledger = self.engine.finish()
        result = self._result(ledger)
        if self._folder is not None:
            result = result.write(self._folder)
        self._stack.close()
        if self._checkpoints is not None:
            self._checkpoints.end()
        return result

    def _end_portions(self, end_us: int | None, log: NodeEvents | None) -> None:
        """Take what has not come in time order yet, and set the end of the window."""
        assert self.portions is not None
        events, engine = self.events, self.engine
        last_us, end_us = events.window_end_us, events.window_end_us if end_us is None else end_us
        # an instant at the very end was replayed as such if the end was known
        first_us = max(engine.reached_us + (last_us == LAST_US), events.window_start_us + 1)
        if end_us == LAST_US or not first_us <= end_us <= last_us:
            raise InputError(
                "the window has no end yet"
                if end_us == LAST_US
                else "the window ends before what is replayed already"
                if end_us < first_us
                else "the window ends elsewhere",
                column="end",
                value=None if end_us == LAST_US else iso_utc(end_us),
                expected=f"{iso_utc(first_us)} or later" if last_us == LAST_US else f"{iso_utc(last_us)}, or nothing",
                fix="say where it ends: finish(end)",
            )
        until_us = max(end_us + 1, self.portions.until_us)
        batch = self.portions.take((), until_us, holds_back=False)
        engine.end_us = end_us
        self._reports.advance(batch, until_us)
        if log is not None:
            log = log.counting_as_idle(events.idle_states)
            check_whole_log(log, self.portions, end_us)
        self.events = events.between(events.window_start_us, end_us) if log is None else log
        self._config = msgspec.structs.replace(self._config, window_end_us=end_us)
        inputs = recorded_inputs(events if log is None else log, self._anchored)
        self._inputs = msgspec.structs.replace(self._inputs, events=inputs.events)
        if log is not None:
            self._baselines.take_whole_log(log)

    def _result(self, ledger: Ledger) -> RunResult:
        """Measure the run against its baselines, and close its tables."""
        events, engine, config = self.events, self.engine, self._config
        baselines, seconds = self._baselines, self._seconds
        with _measure_into(seconds, "isolated_s"):
            baselines.measure_isolated(events)
        with _measure_into(seconds, "ideal_s"):
            baselines.measure_ideal(events)
        with _measure_into(seconds, "loop_s"):
            engine.outcomes.write(baselines.isolated_jct_s)
            whole_log = events
            if engine.end_us < events.window_end_us:
                events = events.between(events.window_start_us, engine.end_us)
                config = msgspec.structs.replace(config, window_end_us=engine.end_us)
            if not engine.active.has_risk:
                engine.run_tables.losses = None
            tables = engine.run_tables.close()
        if isinstance(self._anchored, JobSet):
            with _measure_into(seconds, "dedicated_s"):
                baselines.measure_dedicated(whole_log, events, ledger.idle_node_us)
        with _measure_into(seconds, "bound_s"):
            baselines.measure_bound(events, engine, frees_rescaling=config.frees_rescaling)
        delays = None if self._batch_jobs is None else self._delays(self._batch_jobs, tables)
        summary = summary_of(events, engine, ledger, baselines, delays)
        measures = {"parse_s": engine.read_s, "decide_s": engine.log.decide_s, "write_s": engine.run_tables.write_s}
        seconds["loop_s"] -= sum(measures.values())
        inputs = with_costs(self._inputs, engine.feed.jobs)
        told: dict[str, Any] = {"added": "; ".join(self._jobs_added), "corrected": self._reports.text}
        if isinstance(self._anchored, JobSet) and inputs.jobs.n_jobs is not None:
            told["n_jobs"] = inputs.jobs.n_jobs + sum(job.name not in self._given for job in self._reports.submitted)
        inputs = msgspec.structs.replace(inputs, jobs=msgspec.structs.replace(inputs.jobs, **told))
        caller_entries, version = self._called, RUN.schema_version
        return RunResult(
            RunRecord(schema_version=version, versions=versions(), config=config, inputs=inputs, summary=summary),
            None if self._out is None else self._out.resolve(),
            tables,
            session=Session(
                started=self._started,
                files=caller_entries.pop("files", {}),
                seconds=Seconds(**measures, **{name: max(took, 0.0) for name, took in seconds.items()}),
                slowest_decision=engine.log.slowest,
                peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                command=caller_entries.pop("command", ""),
                worker=caller_entries.pop("worker", None),
                load_s=caller_entries.pop("load_s", None),
                more=caller_entries,
            ),
        )

    def _delays(self, batch_jobs: BatchJobsOfRun, tables: dict[str, pa.Table]) -> BatchDelayCounts:
        """Propagate the delays of batch jobs, and keep their table."""
        clear_us = round(self.settings.clear_s * 1e6)
        delays, table = batch_jobs.delays(self.engine.pool.batch_starts.met, clear_us, self.engine.end_us)
        if self._folder is None:
            tables["batch_delays"] = table
        else:
            pq.write_table(table, self._folder / "batch_delays.parquet")
        return delays

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._ended_by:  # the folder of an unfinished run is removed
            kind, error = StoppedError, StoppedError("left without finish()")
        self._stack.__exit__(kind, error, trace)
        self._ended_by = self._ended_by or "has ended: it was left without finish()"


@contextmanager
def _measure_into(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Add the duration of the block to that of a part."""
    start_s = perf_counter()
    yield
    seconds[part] += perf_counter() - start_s
