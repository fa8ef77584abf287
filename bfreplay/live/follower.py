"""The follower: polls, feeds a session, keeps the log, the run folder and the status of now. It never acts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np
from filelock import FileLock, Timeout

from bfreplay.datasets import NodeEvents
from bfreplay.datasets.log.event_tables import sidecar_path
from bfreplay.datasets.log.metadata import EventsMetadata
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import US, iso_utc
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.experiments.one_run import open_session
from bfreplay.live.feed import Feed, Portion
from bfreplay.live.journal import LOG_FILE, Journal
from bfreplay.live.status import StatusKeeper, span_notes
from bfreplay.outputs import make_folder, remove_empty, remove_leftovers, write_whole
from bfreplay.result_folders.live import LiveStatus
from bfreplay.runs import ReplaySession

STATUS_FILE, LOCK_FILE, SESSION = "status.json", ".lock", "session"
_OF_BEGINNING = {LOG_FILE, STATUS_FILE, f"{SESSION}.checkpoint"}
_NEVER = "1000d"
_RESUMED_ROWS = 100_000
_LONGEST_PAUSE_S = 8.0
"""Time that a run folder may take between two polls: a longer one would soon be a gap."""
_STALE_S = 10.0
"""Age of a first answer that no log begins with."""


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """Times of a follower, in seconds.

    Parameters
    ----------
    poll_s
        From one poll to the next.
    hold_back_s
        By how much decisions lag behind the polls, so that exact times that are known later still fit.
    checkpoint_every_s
        From one checkpoint, with its run folder, to the next.
    """

    poll_s: float = 10.0
    hold_back_s: float = 12.0
    checkpoint_every_s: float = 600.0


class Follower:
    """Follows a cluster into a folder; a context manager.

    The folder has the log (``log.csv``), the run as of the last checkpoint (``run``), the state from which a restarted
    follower resumes (``session.checkpoint``), and the status of now (``status.json``).

    Parameters
    ----------
    feed
        Source of the events.
    folder
        New, or of an earlier follower, which is then resumed.
    jobs, options
        As for ``open_session``.
    settings
        Its times.
    tell
        Called with messages for the user.
    publish
        Each called with every status: writes a page, or metrics.

    Raises
    ------
    InputError, OutputExistsError, NoAnswerError
        The folder is another's or in use, an option cannot be used, or the first poll has no answer.
    """

    def __init__(
        self,
        feed: Feed,
        folder: Path,
        jobs: Any,
        options: Mapping[str, Any],
        settings: FollowSettings,
        *,
        tell: Callable[[str], None] = lambda text: None,
        publish: Sequence[Callable[[LiveStatus], object]] = (),
    ) -> None:
        self._feed, self._folder, self._jobs, self._options = feed, folder, jobs, dict(options)
        self._settings, self._tell = settings, tell
        self._publish = [lambda status: write_whole(folder / STATUS_FILE, status.to_text()), *publish]
        self._told: set[str] = set()
        self._last_checkpoint, self._run_took_s = monotonic(), 0.0
        self._stack = ExitStack()
        with ExitStack() as undo:
            undo.push(self._stack)
            self._hold_folder(undo)
            if self.has_log:
                self._resume()
            else:
                self._begin()
            facts = {
                "cluster": self._journal.metadata.cluster,
                "poll_s": settings.poll_s,
                "hold_back_s": settings.hold_back_s,
            }
            self._status = StatusKeeper(self._session, feed, facts, folder / STATUS_FILE)
            undo.pop_all()

    def _hold_folder(self, undo: ExitStack) -> None:
        folder = self._folder
        names = {file.name for file in folder.glob("[!.]*")}
        is_ours = (folder / LOCK_FILE).exists()
        if is_ours:
            Journal.check_is_whole(folder)
        # a follower that was refused or killed early left no whole log
        is_begun = names <= _OF_BEGINNING and (is_ours or LOG_FILE not in names)
        if names and not is_begun and not self.has_log:
            raise OutputExistsError(
                f"{folder} exists already, and is not the folder of a follower; choose another name"
            )
        new_folders = make_folder(folder)
        lock = FileLock(folder / LOCK_FILE)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise InputError(
                "another process follows into this folder", file=folder, fix="stop it, or choose another folder"
            ) from error
        self._stack.callback(lock.release)
        for file in (folder / STATUS_FILE, sidecar_path(folder / LOG_FILE)):
            remove_leftovers(file)
        if not (folder / LOG_FILE).exists():
            undo.callback(remove_empty, new_folders)
            undo.callback((folder / LOCK_FILE).unlink, missing_ok=True)

    @property
    def has_log(self) -> bool:
        """True once the first states are final."""
        return Journal.exists(self._folder)

    def _begin(self) -> None:
        for is_last in (False, True):
            begin_s = monotonic()
            beginning = self._feed.begin()
            states = np.array(beginning.states, np.int8)
            log = NodeEvents.to_come(beginning.nodes, beginning.start_us, initial_state=states)
            session = self._open(log, SESSION, overwrite=True)
            if is_last or monotonic() - begin_s < _STALE_S:
                break
            with session:  # loops were compiled meanwhile, once: begin with the states of now
                self._tell("Compiled; following begins now.")
        self._session = self._stack.enter_context(session)
        metadata = EventsMetadata(cluster=beginning.cluster, source_format=f"followed: {self._feed.name}")
        self._journal = Journal.create(self._folder, beginning.nodes, beginning.start_us, metadata)

    def _resume(self) -> None:
        """Go on from the last checkpoint and the log after it, or replay the log where that does not fit any more."""
        self._journal = Journal.open(self._folder)
        log = self._journal.load()
        self._tell(f"Resumes the log in {self._folder}, which ends at {iso_utc(log.window_end_us)}.")
        self._feed.spans[:0] = self._journal.followed.spans
        self._feed.notes[:0] = self._journal.followed.notes
        first_states = log.first_states()
        to_come = NodeEvents.to_come(
            log.nodes,
            log.window_start_us,
            initial_state=first_states,
            n_nodes_at_start=log.metadata.n_nodes_at_start,
        )
        try:
            session = self._open(to_come, SESSION, resume=True)
            session.forget_waiting()
            if session.until_us > log.window_end_us:
                session.__exit__(None, None, None)
                raise InputError("the last checkpoint is of a later time")
        except InputError as error:
            self._tell(f"The run is replayed from the log, as its last state does not fit: {error.problem}.")
            session = self._open(to_come, SESSION, overwrite=True)
            (self._folder / STATUS_FILE).unlink(missing_ok=True)  # its ledger is that of the other run
        self._session = self._stack.enter_context(session)
        states = dict(zip(log.nodes, first_states.tolist(), strict=True))
        for batch in log.batches(_RESUMED_ROWS):
            states.update(zip((log.nodes[node] for node in batch.node.tolist()), batch.state.tolist(), strict=True))
            rows = batch.take((batch.time_us >= session.until_us) & (batch.time_us > log.window_start_us))
            names = [log.nodes[node] for node in rows.node.tolist()]
            session.advance(list(zip(rows.time_us.tolist(), names, rows.state.tolist(), strict=True)))
        session.advance(until=log.window_end_us + round(self._settings.hold_back_s * US))
        self._feed.resume({node: NodeState(state) for node, state in states.items()}, log.window_end_us)

    def _open(self, log: NodeEvents, name: str, *, resume: bool = False, overwrite: bool = False) -> ReplaySession:
        return open_session(
            log,
            self._jobs,
            out=self._folder / name,
            overwrite=overwrite or resume,
            resume=resume,
            checkpoint_every=_NEVER,
            hold_back=self._settings.hold_back_s,
            warm_up=name == SESSION,  # not again for the copy that makes the run folder
            **self._options,
        )

    # -- following ----------------------------------------------------------------------------------------

    def poll(self) -> LiveStatus:
        """Ask once, decide as far as nothing can change any more, and return the status of now."""
        portion = self._feed.poll()
        decisions = None if portion is None else self._take(portion)
        status = self._status.update(decisions)
        self._publish_status(status)
        if monotonic() - self._last_checkpoint >= self._settings.checkpoint_every_s:
            self.checkpoint()
        return status

    def _publish_status(self, status: LiveStatus) -> None:
        """Write the status, pages and metrics; a failure is reported once, and does not end following."""
        for publish in self._publish:
            try:
                publish(status)
            except (BfreplayError, OSError) as error:
                self._tell_once(f"The status cannot be published: {' '.join(str(error).split())}")

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _take(self, portion: Portion) -> Any:
        session = self._session
        decisions = session.advance(portion.rows, until=portion.until_us)
        self._journal.append(session.final_events, session.events, session.until_us, self._notes())
        return decisions

    def _notes(self) -> dict[str, Any]:
        return span_notes(self._feed.spans, self._feed.notes, len(self._session.events.nodes))

    def checkpoint(self, *, is_last: bool = False) -> None:
        """Save the state, and write the run folder of the log so far; one that takes long is left for the end."""
        self._last_checkpoint = monotonic()
        if not self.has_log:
            return  # nothing is final yet
        self._journal.sync()
        try:
            self._session.checkpoint()
            if is_last or self._run_took_s < _LONGEST_PAUSE_S:
                self._write_run()
                self._run_took_s = monotonic() - self._last_checkpoint
            else:
                self._tell_once("The run folder takes long by now: the next one is written when following ends.")
        except (BfreplayError, OSError) as error:  # both can be made later; following goes on
            self._tell(f"The run folder was not made: {' '.join(str(error).split())}")

    def _write_run(self) -> None:
        """Finish a copy of the session: the run folder of the log so far."""
        checkpoint = self._folder / f"{SESSION}.checkpoint"
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder / "run.checkpoint")
        shutil.copytree(checkpoint, self._folder / "run.checkpoint")
        with self._open(self._session.events, "run", resume=True) as session:
            session.forget_waiting()
            session.finish(self._journal.until_us, self._journal.load())

    def stop(self) -> None:
        """End the log where decisions are final, save the state, and make the run folder."""
        if self.has_log:
            self._journal.close(self._notes())
        self.checkpoint(is_last=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
