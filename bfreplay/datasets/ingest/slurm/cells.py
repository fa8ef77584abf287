"""Fields as Slurm writes them: numbers, running times, identities of jobs, states of jobs and of nodes."""

from __future__ import annotations

import re

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import US

HOW = "`bfreplay ingest slurm --how` prints the command to run on your cluster"
"""For messages about single rows or small mistakes, in which the command itself would take most of the space."""

ABSENT_TIMES = frozenset({"", "0", "unknown", "none", "n/a", "(null)"})
"""What stands where there is no time, in lower case."""

ABSENT_NODES = frozenset({"none assigned", "(null)", "none"})
"""What stands where a job was given no nodes, in lower case."""

WAITING_STATES = frozenset({"PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
RUNNING_STATES = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"}
)
FINISHED_STATES = frozenset(
    {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "REVOKED", "REQUEUED", "NODE_FAIL",
     "PREEMPTED", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"}
)  # fmt: skip
JOB_STATES = tuple(sorted(WAITING_STATES | RUNNING_STATES | FINISHED_STATES))

_LONGEST_SHOWN = 100
_LARGEST_WHOLE = 15  # digits: enough for any count and any second
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,4}):)?(\d\d):(\d\d)(?:\.\d+)?", re.ASCII)
_JOB_ID = re.compile(r"(\d+)(_\d+|_\[[^\]]*\]?)?(\+\d+)?(\.\S+)?", re.ASCII)


def short(text: str) -> str:
    """Return the beginning of a row, for messages."""
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def whole(text: str) -> int | None:
    """Return a number written with plain digits and nothing else, ``None`` for anything else."""
    if text.isascii() and text.isdigit() and len(text) <= _LARGEST_WHOLE:
        return int(text)
    return None


def duration_us(text: str) -> int | None:
    """Microseconds in ``[D-][HH:]MM:SS`` (Elapsed, Suspended, Timelimit); ``None`` if it is not that."""
    match = _ELAPSED.fullmatch(text)
    if match is None or int(match[3]) > 59 or int(match[4]) > 59 or (match[1] and not match[2]):
        return None
    hours = 24 * int(match[1] or 0) + int(match[2] or 0)
    return (3600 * hours + 60 * int(match[3]) + int(match[4])) * US


class JobStepError(ValueError):
    """The row is of a step of a job, whose nodes are those of the job."""


def job_identity(raw: str | None, job_id: str | None) -> str:
    """What tells a job from others: JobIDRaw, or else JobID; the offset of a part of a heterogeneous job added.

    Raises
    ------
    JobStepError
        A step of a job.
    ValueError
        It is not an identity of a job.
    """
    match = None if job_id is None else _JOB_ID.fullmatch(job_id)
    if raw is None:
        if match is None:
            raise ValueError("no identity of a job")
        if match[4]:
            raise JobStepError
        return match[0]
    is_step = not raw.isdigit()
    if is_step:
        raw_match = _JOB_ID.fullmatch(raw)
        if raw_match is None or not raw_match[4]:
            raise ValueError("no identity of a job")
    elif not raw.isascii():
        raise ValueError("no identity of a job")
    if match is not None and bool(match[4]) != is_step:
        raise ValueError("JobID and JobIDRaw contradict each other")
    if is_step:
        raise JobStepError
    return raw if match is None or not match[3] else raw + match[3]


def is_pending_array(job_id: str | None) -> bool:
    """Whether it is the row for those tasks of an array that have not started: ``123_[5-9%2]``."""
    return job_id is not None and "_[" in job_id


def job_state(text: str) -> str:
    """First word of a job's state in upper case; one that was cut (``CANCELLE+``) is completed where that is unique."""
    word = text.split(" ", 1)[0].upper()
    if word.endswith("+"):
        whole_words = [state for state in JOB_STATES if state.startswith(word[:-1])]
        return whole_words[0] if len(whole_words) == 1 else word[:-1]
    return word


def is_known_state(state: str) -> bool:
    """Whether Slurm has such a state of jobs."""
    return state in FINISHED_STATES or state in RUNNING_STATES or state in WAITING_STATES


# ---- states of nodes ------------------------------------------------------------------------------------------------

_WORDS: dict[NodeState, str] = {  # the weakest state first
    NodeState.IDLE: "idle planned plnd cloud dynamic_norm dynamic_future external undrain resume net reboot_canceled",
    NodeState.BUSY: "allocated alloc mixed mix completing comp",
    NodeState.UNKNOWN: "unknown unk",
    NodeState.RESERVED: "reserved resv maint perfctrs npc blocked block",
    NodeState.DRAIN: "drain drained draining drng reboot_requested",
    NodeState.OFF: "powered_down power_down powering_down pow_dn powering_up power_up pow_up power_drain",
    NodeState.DOWN: "down fail failed failing failg error err not_responding no_respond reboot reboot_issued boot "
    "inval invalid_reg future futr",
}
_STATE_OF_WORD = {word: state for state, words in _WORDS.items() for word in words.split()}
# "planned by the backfill scheduler" (-) and "jobs are completing" (+) leave a node's state as it is
_STATE_OF_SUFFIX = {
    "*": NodeState.DOWN,
    "^": NodeState.DOWN,
    "~": NodeState.OFF,
    "#": NodeState.OFF,
    "%": NodeState.OFF,
    "!": NodeState.OFF,
    "@": NodeState.DRAIN,
    "$": NodeState.RESERVED,
    "-": NodeState.IDLE,
}
_STRENGTH = {state: i for i, state in enumerate(_WORDS)}


def stronger(one: NodeState, other: NodeState) -> NodeState:
    """Of two states of a node at one time, the one that counts: down, off, drain, reserved, unknown, busy, idle."""
    return one if _STRENGTH[one] >= _STRENGTH[other] else other


def has_strange_word(text: str) -> bool:
    """Whether some word of a node's state is not known to ``node_state``."""
    return any(part.rstrip("*^~#%!@$-") not in _STATE_OF_WORD for part in text.lower().split("+"))


def node_state(text: str) -> NodeState | None:
    """State of a node in Slurm's words and suffixes (``DOWN*``, ``IDLE+DRAIN``, ``mixed-``, ``idle~``).

    ``None`` if no word of it is known. A word that is not known beside one that is counts for nothing. ``*`` is not
    responding, ``^`` being rebooted, ``@`` to be rebooted, ``~ # % !`` powered off, up, down or about to be, ``$`` in
    maintenance; of an allocated node that is being powered up (``alloc#``) the job counts.
    """
    found: NodeState | None = None
    for part in text.lower().split("+"):
        word = part.rstrip("*^~#%!@$-")
        state = _STATE_OF_WORD.get(word)
        if state is None:
            continue
        for suffix in part[len(word) :]:
            if suffix == "#" and state == NodeState.BUSY:
                continue
            state = stronger(state, _STATE_OF_SUFFIX[suffix])
        found = state if found is None else stronger(found, state)
    return found
