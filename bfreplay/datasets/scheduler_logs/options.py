"""What a person may have to tell a reader, because the log does not say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of readers; each reader uses those that its format needs.

    Parameters
    ----------
    timezone
        Zone of local times in the log (IANA name, e.g. ``"Europe/Paris"``), ``None`` when nobody said.
    dst_fold
        What to make of a local time that occurs twice when summer time ends and that nothing else settles:
        ``"reject"``, ``"earlier"`` or ``"later"``.
    n_nodes, procs_per_node
        Nodes of the machine, processors of each, where the log gives only counts.
    columns
        Names of the columns of a table without a header, in order.
    delimiter
        What separates its columns.
    mapping
        Role -> column name, for tables of any make: ``{"start": "start_time", "elapsed": "dur:min", ...}``; the role
        ``nodes`` may be ``ALL`` in a table of outages.
    time_unit
        Of numbers in start and end of such tables: ``"s"``, ``"ms"``, ``"us"``, ``"ns"``.
    time_format
        How times in such tables are written, in the terms of ``datetime.strptime``, where they are not ISO-8601.
    missing_wait_is_zero
        SWF: a job without a waiting time started when it was submitted.
    node_names
        How names of nodes are read, in jobs, outages and inventory: ``"as-is"``, ``"short"`` (without the domain),
        ``"lower"`` or ``"short-lower"``. A log that spells nodes in several ways has them several times otherwise.
    reservations
        Whether reservations other than for maintenance take nodes away: ``"idle"`` (no) or ``"reserved"`` (yes).
    """

    timezone: str | None = None
    dst_fold: str = "reject"
    n_nodes: int | None = None
    procs_per_node: int | None = None
    columns: tuple[str, ...] | None = None
    delimiter: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    time_unit: str = "s"
    time_format: str | None = None
    missing_wait_is_zero: bool = False
    node_names: str = "as-is"
    reservations: str = "idle"
