"""Fields in Slurm's output: numbers, running times, identities of jobs, states of jobs and nodes."""

from __future__ import annotations

import re
from collections.abc import Container

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.state_table import SUFFIXES, StateTable
from bfreplay.datasets.times import US

HOW = "`bfreplay ingest slurm --how` prints the command to run on your cluster"
"""Short hint for messages, in place of the export command."""

ABSENT_TIMES = frozenset({"", "0", "unknown", "none", "n/a", "(null)"})
"""Texts for no time, in lower case."""

ABSENT_NODES = frozenset({"none assigned", "(null)", "none"})
"""Texts for a job without nodes, in lower case."""

WAITING_STATES, RUNNING_STATES, FINISHED_STATES = (
    frozenset(words.split())
    for words in (
        "PENDING REQUEUE_HOLD REQUEUE_FED RESV_DEL_HOLD SPECIAL_EXIT",
        "RUNNING SUSPENDED COMPLETING CONFIGURING RESIZING STOPPED SIGNALING STAGE_OUT",
        "COMPLETED CANCELLED FAILED TIMEOUT OUT_OF_MEMORY DEADLINE REVOKED REQUEUED NODE_FAIL PREEMPTED BOOT_FAIL "
        "LAUNCH_FAILED RECONFIG_FAIL",
    )
)
JOB_STATES = tuple(sorted(WAITING_STATES | RUNNING_STATES | FINISHED_STATES))

_LONGEST_SHOWN = 100
_LARGEST_WHOLE = 15  # digits of any count and any second
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,4}):)?(\d\d):(\d\d)(?:\.\d+)?", re.ASCII)
_JOB_ID = re.compile(r"(\d+)(_\d+|_\[[^\]]*\]?)?(\+\d+)?(\.\S+)?", re.ASCII)


def short(cell_text: str) -> str:
    """Return the beginning of a row, for messages."""
    return cell_text if len(cell_text) <= _LONGEST_SHOWN else cell_text[: _LONGEST_SHOWN - 3] + "..."


def whole(cell_text: str) -> int | None:
    """Return a number of plain digits, ``None`` for anything else."""
    if cell_text.isascii() and cell_text.isdigit() and len(cell_text) <= _LARGEST_WHOLE:
        return int(cell_text)
    return None


def count_column(column_names: Container[str]) -> str:
    """Return the column of ``sacct`` with the number of nodes, among these (lower case)."""
    return "nnodes" if "nnodes" in column_names else "allocnodes"


def eligible_column(column_names: Container[str]) -> str:
    """Return the column of ``sacct`` with the time from which a job could have started, among these (lower case).

    Jobs that never could have no eligible time: their submit time must not stand for it.
    """
    return "eligible" if "eligible" in column_names else "submit"


def duration_us(cell_text: str) -> int | None:
    """Return microseconds of ``[D-][HH:]MM:SS`` (Elapsed, Suspended, Timelimit); else ``None``."""
    match = _ELAPSED.fullmatch(cell_text)
    if match is None or int(match[3]) > 59 or int(match[4]) > 59 or (match[1] and not match[2]):
        return None
    whole_hours = 24 * int(match[1] or 0) + int(match[2] or 0)
    return (3600 * whole_hours + 60 * int(match[3]) + int(match[4])) * US


class JobStepError(ValueError):
    """The row is of a step of a job, on the nodes of the job."""


def job_identity(raw_id: str | None, job_id: str | None) -> str:
    """Return the identity of a job: JobIDRaw, else JobID, plus the offset of a part of a heterogeneous job.

    Raises
    ------
    JobStepError
        A step of a job.
    ValueError
        Not an identity of a job.
    """
    id_match = None if job_id is None else _JOB_ID.fullmatch(job_id)
    if raw_id is None:
        if id_match is None:
            raise ValueError("no identity of a job")
        if id_match[4]:
            raise JobStepError
        return id_match[0]
    raw_match = _JOB_ID.fullmatch(raw_id)
    if raw_match is None or not (raw_match[4] or raw_id.isdigit()):
        raise ValueError("no identity of a job")
    is_step = bool(raw_match[4])
    if id_match is not None and bool(id_match[4]) != is_step:
        raise ValueError("JobID and JobIDRaw contradict each other")
    if is_step:
        raise JobStepError
    return raw_id if id_match is None or not id_match[3] else raw_id + id_match[3]


def job_state(cell_text: str) -> str:
    """Return the first word of a job's state in upper case; a cut one (``CANCELLE+``) is completed if unique."""
    state_word = cell_text.split(" ", 1)[0].upper()
    if state_word.endswith("+"):
        whole_words = [state for state in JOB_STATES if state.startswith(state_word[:-1])]
        return whole_words[0] if len(whole_words) == 1 else state_word[:-1]
    return state_word


def is_known_state(state: str) -> bool:
    """Return whether Slurm has this state of jobs."""
    return state in FINISHED_STATES or state in RUNNING_STATES or state in WAITING_STATES


# ---- states of nodes ------------------------------------------------------------------------------------------------

_WEAKEST_FIRST = (
    NodeState.IDLE,
    NodeState.BUSY,
    NodeState.UNKNOWN,
    NodeState.RESERVED,
    NodeState.DRAIN,
    NodeState.OFF,
    NodeState.DOWN,
)
_STRENGTH = {state: i for i, state in enumerate(_WEAKEST_FIRST)}
_AS_ACCOUNTED = {
    NodeState.PLANNED: NodeState.IDLE,
    NodeState.COMPLETING: NodeState.BUSY,
    NodeState.MAINTENANCE: NodeState.RESERVED,
}
"""States that accounting does not tell apart."""
_STATE_OF_WORD = {word: _AS_ACCOUNTED.get(state, state) for state, words in StateTable.default().rows for word in words}
_STATE_OF_SUFFIX = {sign: _STATE_OF_WORD[word] for sign, word in SUFFIXES.items()}


def stronger(state: NodeState, other_state: NodeState) -> NodeState:
    """Return the stronger of two states of a node: down, off, drain, reserved, unknown, busy, idle."""
    return state if _STRENGTH[state] >= _STRENGTH[other_state] else other_state


def has_strange_word(cell_text: str) -> bool:
    """Return whether a node's state has a word unknown to ``node_state``."""
    return any(state_part.rstrip("*^~#%!@$-") not in _STATE_OF_WORD for state_part in cell_text.lower().split("+"))


def node_state(cell_text: str) -> NodeState | None:
    """Return the state of a node from Slurm's words and suffixes (``DOWN*``, ``IDLE+DRAIN``, ``mixed-``, ``idle~``).

    ``None`` if no word is known. An unknown word beside a known one is ignored. ``*`` is not
    responding, ``^`` being rebooted, ``@`` to be rebooted, ``~ # % !`` powered off, up, down or about to be, ``$`` in
    maintenance; of an allocated node that is being powered up (``alloc#``) the job counts.
    """
    strongest: NodeState | None = None
    for state_part in cell_text.lower().split("+"):
        state_word = state_part.rstrip("*^~#%!@$-")
        word_state = _STATE_OF_WORD.get(state_word)
        if word_state is None:
            continue
        for suffix in state_part[len(state_word) :]:
            if suffix == "#" and word_state == NodeState.BUSY:
                continue
            word_state = stronger(word_state, _STATE_OF_SUFFIX[suffix])
        strongest = word_state if strongest is None else stronger(strongest, word_state)
    return strongest
