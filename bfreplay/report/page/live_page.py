"""The page of a followed cluster: a plain file that reloads itself, replaced after every poll."""

from __future__ import annotations

from pathlib import Path
from time import time

from bfreplay.datasets.log.states import NodeState
from bfreplay.outputs import write_whole
from bfreplay.report.page.sections import PageTable, page_table
from bfreplay.report.page.templates import page_parts, template
from bfreplay.result_folders.live import LiveStatus
from bfreplay.wording import table_of

_SHOWN = {
    NodeState.IDLE: ("idle: a preemptible worker could start", "useful"),
    NodeState.PLANNED: ("planned: idle, but promised to a waiting job", "heat-2"),
    NodeState.RESERVED: ("reserved", "dedicated"),
    NodeState.MAINTENANCE: ("in maintenance", "run-7"),
    NodeState.COMPLETING: ("completing: cleaned up after a job", "rescaling"),
    NodeState.BUSY: ("busy", "unallocated"),
    NodeState.DRAIN: ("draining or drained", "run-6"),
    NodeState.DOWN: ("down", "lost"),
    NodeState.OFF: ("off", "muted"),
    NodeState.UNKNOWN: ("unknown", "ink"),
}
"""States in the order of the page, with their meaning and colour."""

_SHOWN_SPANS = 20
_STALE_POLLS, _STALE_S = 5, 120.0
"""Age from which a page says that nobody writes it any more."""

STATE_ORDER = tuple(state.name.lower() for state in _SHOWN)


def write_live_page(status: LiveStatus, file: Path) -> None:
    """Write the page of a status, in place of the last one.

    Raises
    ------
    InputError
        The folder of the file does not exist or is not writable.
    """
    text = template("live.html.j2").render(
        title="Idle nodes now" + (f": {status.cluster}" if status.cluster else ""),
        bar=_bar(status),
        status=status,
        refresh_s=max(1, round(status.poll_s)),
        written_s=round(time()),
        stale_s=round(max(_STALE_POLLS * status.poll_s, _STALE_S)),
        tables=[table for table in _tables(status) if table.rows],
        **page_parts(),
    )
    write_whole(file, text)


def _bar(status: LiveStatus) -> list[dict[str, str | int]]:
    """Return the states that occur, with their number of nodes."""
    counts = ((status.by_state[state.name.lower()], *shown) for state, shown in _SHOWN.items())
    return [{"n": n, "words": words, "colour": colour} for n, words, colour in counts if n]


def _tables(status: LiveStatus) -> list[PageTable]:
    partitions = [[part.name, *(part.by_state.get(state, 0) for state in STATE_ORDER)] for part in status.partitions]
    decisions = [
        [
            decision.time[:19].replace("T", " "),
            decision.trigger,
            *(decision.n_joined, decision.n_reclaimed, decision.n_idle, decision.n_nodes_used),
            *(decision.n_jobs_running, decision.n_jobs_scaled_up, decision.n_jobs_scaled_down),
            f"{decision.solver}, {decision.quality}",
        ]
        for decision in reversed(status.decisions)
    ]
    shown = (
        table_of("Nodes now, by partition", {"partition": "text", **dict.fromkeys(STATE_ORDER, "count")}, partitions),
        table_of(
            "Unusable nodes, by the administrators' reason",
            {"reason": "text", "nodes": "count"},
            [[reason, n] for reason, n in status.reasons.items()],
        ),
        table_of(
            "Jobs, and the nodes that they would hold",
            {"job": "text", "nodes": "count", "node list": "text"},
            [[job.name, job.n_nodes, job.nodes] for job in status.jobs if job.n_nodes],
        ),
        table_of(
            "Last decisions (UTC)",
            {
                **{"time": "text", "reason": "text"},
                **dict.fromkeys(
                    ("joined", "reclaimed", "idle", "used", "jobs running", "scaled up", "scaled down"), "count"
                ),
                "answer": "text",
            },
            decisions,
        ),
        table_of(
            f"Ledger in node-hours, since {status.ledger_since[:16].replace('T', ' ')} UTC",
            {"label": "text", "node-hours": "amount"},
            [[label, hours] for label, hours in status.ledger_node_hours.items()],
        ),
        table_of(
            "Times that were not followed, the last ones first",
            {"kind": "text", "from": "text", "to": "text", "what was done": "text"},
            [[span.kind, span.start, span.end, span.words] for span in status.spans[: -_SHOWN_SPANS - 1 : -1]],
        ),
    )
    return [page_table(table, is_packed=False) for table in shown]
