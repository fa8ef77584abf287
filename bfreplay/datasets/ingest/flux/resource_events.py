"""Resource eventlog of Flux: times at which nodes were drained, offline or torpid (events: Flux RFC 44)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bfreplay.datasets.ingest.hostlists import expand_nodes, numbers_in
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.times import FIRST_TIME_US, LAST_TIME_US, seconds_to_us
from bfreplay.documents import Json, parse_json

UNREADABLE = "events of nodes that cannot be read were skipped: unusable nodes may look idle"
WHICH_IS_UNKNOWN = "which nodes it means is not known"
NO_NAMES = (
    "events give ranks, and no event before them says which nodes those are: they were skipped, and nodes may look "
    "idle that were not usable (the whole journal has the names: flux resource eventlog -f json)"
)

_STATE = {"drain": NodeState.DRAIN, "offline": NodeState.DOWN, "torpid": NodeState.DOWN}
_BACK = {"undrain": "drain", "online": "offline", "lively": "torpid"}
_SNAPSHOTS = ("restart", "resource-init", "truncate")
_OTHERS = ("resource-define", "resource-update")
_LONGEST_S = 1e12
_SIGNS = (b'"timestamp"', b'"name"', b'"context"')


def looks_like_events(file: LogFile) -> bool:
    """Return whether the first line is an event: an object with a timestamp, a name and a context."""
    head = file.head().lstrip()
    if not head.startswith(b"{") or not any(sign in head for sign in _SIGNS):
        return False
    first = next((line for line in file.head_lines() if line.strip()), "")
    event = _parse_event(first)
    if event is None:
        return False
    return event.get("name") in (*_STATE, *_BACK, *_SNAPSHOTS, *_OTHERS) and "timestamp" in event


def read_events(file: LogFile, record: ScheduleRecord) -> None:
    """Read the events of a file, one a line, into outages.

    An event that begins an outage is kept; all others (the end of one, a restart) are skipped by kind. Nodes
    drained before the first event of a truncated journal count from the time that it gives.
    """
    record.add_format("flux resource eventlog")
    state = _Nodes(record, file)
    for number, text in file.lines():
        if not text.strip():
            continue
        record.report.read()
        at = file.name, number, text
        event = _parse_event(text)
        time_us = None if event is None else _time_us(event.get("timestamp"))
        name, context = ("", {}) if event is None else (event.get("name"), event.get("context", {}))
        if time_us is None or not isinstance(name, str) or not isinstance(context, dict):
            reason = "an event that is not a JSON object with timestamp, name and context"
            record.report.skip_with_warning(reason, *at, warning=UNREADABLE, why=WHICH_IS_UNKNOWN)
            continue
        record.stamp(time_us)
        try:
            state.take(name, time_us, context, number, text)
        except _NamelessError:
            record.report.skip_with_warning(
                "an event of ranks without names", *at, warning=NO_NAMES, why=WHICH_IS_UNKNOWN
            )
        except ValueError:
            record.report.skip_with_warning(
                "an event whose nodes or ranks cannot be read", *at, warning=UNREADABLE, why=WHICH_IS_UNKNOWN
            )
    state.finish()


class _NamelessError(ValueError):
    """A rank without a known node."""


class _Nodes:
    """Current outages, by kind and node, with their start."""

    def __init__(self, record: ScheduleRecord, file: LogFile) -> None:
        self._record, self._file = record, file
        self._out: dict[str, dict[str, tuple[int, int]]] = {kind: {} for kind in _STATE}
        self._names: dict[int, str] = {}

    def take(self, name: str, time_us: int, context: dict[str, Json], line: int, text: str) -> None:
        if name in _SNAPSHOTS:
            opened = self._start_over(name, time_us, context, line)
            what = "restart of the resource service"
        elif name in _STATE or name in _BACK:
            nodes = self._nodes(context)
            if name in _STATE:
                opened, what = self._begin(name, nodes, time_us, line), "event of nodes that were out already"
            else:
                self._end(_BACK[name], nodes, time_us)
                opened, what = False, "event of nodes that came back"
        else:
            opened, what = False, "event of another kind"
        if not opened:
            self._record.report.skip(what, self._file.name, line, text)

    def finish(self) -> None:
        """Add the outages that last to the end of the log."""
        for kind, out in self._out.items():
            self._close(kind, list(out), None)

    def _nodes(self, context: dict[str, Json]) -> Sequence[str]:
        listed = context.get("nodelist")
        if isinstance(listed, str) and listed:
            return expand_nodes(listed)
        return self._node_names(ranks_in(context.get("idset")))

    def _node_names(self, ranks: Iterable[int]) -> Sequence[str]:
        try:
            return [self._names[rank] for rank in ranks]
        except KeyError as error:
            raise _NamelessError(str(error)) from None

    def _begin(self, kind: str, nodes: Sequence[str], since_us: int, line: int) -> bool:
        """Begin outages of nodes that are not out already; return whether any is new."""
        out = self._out[kind]
        new = [node for node in nodes if node not in out]
        out.update(dict.fromkeys(new, (since_us, line)))
        return bool(new)

    def _end(self, kind: str, nodes: Iterable[str], time_us: int) -> None:
        self._close(kind, [node for node in nodes if node in self._out[kind]], time_us)

    def _close(self, kind: str, nodes: Sequence[str], time_us: int | None) -> None:
        together: dict[tuple[int, int], list[str]] = {}
        for node in nodes:
            together.setdefault(self._out[kind].pop(node), []).append(node)
        for (since_us, line), names in together.items():
            held = self._record.node_ids(names)
            self._record.add_outage(_STATE[kind], since_us, time_us, held, self._file.name, line)

    def _start_over(self, name: str, time_us: int, context: dict[str, Json], line: int) -> bool:
        """Process a snapshot: the node of each rank, and the online, torpid and drained nodes."""
        before = self._names
        try:
            self._names = _names_of(context) or before
            online = context.get("online")
            up = frozenset(self._node_names(ranks_in(online))) if isinstance(online, str) and self._names else None
            torpid = self._node_names(ranks_in(context.get("torpid", "")))
            drained = self._drained_nodes(context.get("drain"), time_us)
        except ValueError:
            self._names = before  # a skipped event changes nothing
            raise
        opened = False
        if up is not None:
            self._end("offline", [node for node in self._out["offline"] if node in up], time_us)
            opened |= self._begin("offline", [node for node in self._names.values() if node not in up], time_us, line)
        self._end_others("torpid", torpid, time_us)
        opened |= self._begin("torpid", torpid, time_us, line)
        if drained is not None:
            for nodes, since_us in drained:
                opened |= self._begin("drain", nodes, since_us, line)
            self._end_others("drain", [node for nodes, _ in drained for node in nodes], time_us)
        return opened

    def _drained_nodes(self, drained: object, time_us: int) -> list[tuple[Sequence[str], int]] | None:
        """Return the drained nodes of a snapshot and their start; ``None`` if it has none listed."""
        if not isinstance(drained, dict):
            return None
        found = []
        for idset, entry in drained.items():
            since_us = _time_us(entry.get("timestamp")) if isinstance(entry, dict) else None
            found.append((self._node_names(ranks_in(idset)), time_us if since_us is None else since_us))
        return found

    def _end_others(self, kind: str, nodes: Iterable[str], time_us: int) -> None:
        still = frozenset(nodes)
        self._end(kind, [node for node in self._out[kind] if node not in still], time_us)


def _names_of(context: dict[str, Json]) -> dict[int, str]:
    """Return the node of each rank, if the event lists them."""
    listed = context.get("nodelist")
    if not isinstance(listed, str) or not listed:
        return {}
    ranks, names = ranks_in(context.get("ranks")), expand_nodes(listed)
    if len(ranks) != len(names):
        raise ValueError("several ranks on a node, or none")
    return dict(zip(ranks, names, strict=True))


def _parse_event(text: str) -> dict[str, Json] | None:
    try:
        event = parse_json(text)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _time_us(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LONGEST_S:
        return None
    time_us = seconds_to_us(value, exact=False)
    return time_us if FIRST_TIME_US < time_us < LAST_TIME_US else None


def ranks_in(text: object) -> list[int]:
    """Return the numbers of an idset, ``0-3,7`` or ``[0-3,7]``.

    Raises
    ------
    ValueError
        Not an idset.
    """
    if not isinstance(text, str):
        raise ValueError("no idset")
    return numbers_in(text.removeprefix("[").removesuffix("]").split(",") if text else ())
