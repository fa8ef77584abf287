"""Rules by which intervals become node states, each an option with a default."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bfreplay.datasets.times import US
from bfreplay.documents import Json
from bfreplay.errors import InputError

ASSIGNMENTS = ("lowest-id", "most-recently-used", "least-recently-used", "random")
"""Rules of node assignment for logs of counts; the position in this tuple is the rule's code in the sweep."""

OVERSUBSCRIPTION = ("clip", "drop", "delay")
SHARED_NODES = ("count", "refuse")
EMPTY_MACHINE = ("auto", "down", "idle")
WINDOWS = ("estimate", "full")

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class OccupancyRules:
    """Rules that make node states of job intervals, outages and an inventory.

    Parameters
    ----------
    assignment, seed
        If the log has only counts, a job gets the free nodes of lowest id (as in the inventory's order), the ones that
        became free last (``most-recently-used``) or first (``least-recently-used``), or ``random`` ones (by ``seed``).
    oversubscription
        A job that needs more nodes than are free gets the free ones, and the others as they become free, in order of
        start (``clip``); or it is skipped (``drop``), or starts when enough are free, first come first served
        (``delay``).
    shared_nodes
        A node is idle when its last job has left (``count``); ``refuse``: jobs that share a node are an error.
    empty_machine, empty_after_s
        Time without any job on the whole machine, longer than ``empty_after_s``: ``down`` (assumed), or ``idle``.
        ``auto``: down, unless the log records outages, which then tell when it was down, or is of a simulation.
    min_gap_s
        Shorter idle intervals between two uses of a node are ignored: the node keeps its state.
    release_delay_s
        Time from the end of a job until its nodes are free (epilog, cleaning up).
    window
        ``estimate``: the part of the log unaffected by missing jobs, by the load; ``full``: from the first start to
        the last stamp; or two times, microseconds UTC.
    log_end_us
        Time at which the log was written: jobs without an end ran until then. ``None``: the latest time in it.
    limit_grace_s
        Time from its limit to the assumed end of a job without an end, if inside the log (a *runaway* job).
    absent_after_s
        Without a full list of nodes, a node that no job used for this long before its first or after its last job was
        absent then: ``unknown``, not idle.
    """

    assignment: str = "lowest-id"
    seed: int = 0
    oversubscription: str = "clip"
    shared_nodes: str = "count"
    empty_machine: str = "auto"
    empty_after_s: float = 3_600.0
    min_gap_s: float = 10.0
    release_delay_s: float = 0.0
    window: str | tuple[int, int] = "estimate"
    log_end_us: int | None = None
    limit_grace_s: float = 3_600.0
    absent_after_s: float = 7 * DAY_S

    def __post_init__(self) -> None:
        for column, value, valid_words in (
            ("assignment", self.assignment, ASSIGNMENTS),
            ("oversubscription", self.oversubscription, OVERSUBSCRIPTION),
            ("shared_nodes", self.shared_nodes, SHARED_NODES),
            ("empty_machine", self.empty_machine, EMPTY_MACHINE),
        ):
            if value not in valid_words:
                raise InputError(f"{column} is unknown", column=column, value=value, expected=f"one of {valid_words}")
        if isinstance(self.window, str) and self.window not in WINDOWS:
            raise InputError(
                "the window is unknown", column="window", value=self.window, expected=f"one of {WINDOWS}, or two times"
            )
        for column in ("empty_after_s", "min_gap_s", "release_delay_s", "limit_grace_s", "absent_after_s"):
            value = getattr(self, column)
            if not 0 <= value < 1e9:
                raise InputError(f"{column} is out of range", column=column, value=value, expected="seconds, 0 or more")

    def to_json(self) -> dict[str, Json]:
        """Return every rule with its value, for the metadata."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def microseconds(seconds: float) -> int:
    """Return whole microseconds of a rule given in seconds."""
    return round(seconds * US)
