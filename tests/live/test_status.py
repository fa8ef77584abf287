"""The status of now as metrics and as a page."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.readings import NodeReading
from bfreplay.errors import InputError
from bfreplay.live.status import metrics_text, span_notes, unusable_by_reason
from bfreplay.report.page.live_page import write_live_page
from bfreplay.result_folders.live import DecisionNow, JobNow, LiveStatus, PartitionNow, Span

STATES = ["idle", "busy", "down", "drain", "reserved", "off", "unknown", "planned", "completing", "maintenance"]


def status(**changes) -> LiveStatus:
    values = {
        "version": "1",
        "source": "slurm",
        "cluster": "tiny",
        "time": "2024-01-01T00:00:10Z",
        "began": "2024-01-01T00:00:00Z",
        "until": "2024-01-01T00:00:05Z",
        "poll_s": 5.0,
        "hold_back_s": 5.0,
        "pool": "startable",
        "problem": "",
        "n_nodes": 6,
        "by_state": {**dict.fromkeys(STATES, 0), "idle": 2, "planned": 1, "busy": 2, "drain": 1},
        "idle": 3,
        "startable": 2,
        "lent": 0,
        "partitions": [PartitionNow(name="gpu", by_state={"idle": 2, "drain": 1})],
        "reasons": {"fan <broken>": 1},
        "jobs": [JobNow(name="<b>A</b>", n_nodes=2, nodes="n[1-2]"), JobNow(name="B", n_nodes=0, nodes="")],
        "decisions": [
            DecisionNow(
                time="2024-01-01T00:00:04+00:00", trigger="pool", n_idle=2, n_joined=1, n_reclaimed=0, n_nodes_used=2,
                n_jobs_running=1, n_jobs_scaled_up=1, n_jobs_scaled_down=0, solver="exact", quality="proven",
            )
        ],
        "ledger_node_hours": {"idle": 1.5, "useful": 1.0},
        "ledger_since": "2024-01-01T00:00:00Z",
        "ledger_before": {},
        "spans": [],
        "notes": [],
        "polls": 3,
        "unanswered": 1,
    }  # fmt: skip
    return LiveStatus(**values | changes)


@pytest.mark.parametrize("parse", [openmetrics, prometheus])
def test_the_metrics_are_read_by_either_parser(parse):
    families = list(parse(metrics_text(status())))
    samples = {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}
    assert samples["bfreplay_nodes", (("state", "idle"),)] == 2
    assert samples["bfreplay_idle_nodes", ()] == 3
    assert samples["bfreplay_startable_nodes", ()] == 2
    assert samples["bfreplay_partition_nodes", (("partition", "gpu"), ("state", "drain"))] == 1
    assert samples["bfreplay_job_nodes", (("job", "<b>A</b>"),)] == 2
    assert samples["bfreplay_ledger_node_hours", (("label", "useful"),)] == 1.0
    assert samples["bfreplay_last_poll_timestamp_seconds", ()] == 1704067210
    assert samples["bfreplay_answered", ()] == 1
    assert all(
        sample.timestamp is None for family in families for sample in family.samples
    )  # node exporter refuses them


def test_without_an_answer_the_metrics_say_so():
    assert "bfreplay_answered 0.0" in metrics_text(status(problem="nobody there"))


def test_rare_reasons_of_administrators_are_counted_together():
    readings = {f"n{number}": NodeReading("DOWN", NodeState.DOWN, reason=f"ticket {number}") for number in range(60)}
    readings |= {f"m{number}": NodeReading("DOWN", NodeState.DOWN, reason="fan") for number in range(2)}
    reasons = unusable_by_reason(dict.fromkeys(readings, NodeState.DOWN), readings)
    assert next(iter(reasons.items())) == ("fan", 2)
    assert (len(reasons), reasons["other reasons"], sum(reasons.values())) == (51, 11, 62)


def page(tmp_path, **changes) -> str:
    file = tmp_path / "page.html"
    write_live_page(status(**changes), file)
    return file.read_text()


def test_the_page_loads_itself_anew_and_shows_both_answers(tmp_path):
    text = page(tmp_path)
    assert '<meta http-equiv="refresh" content="5">' in text
    assert '<span class="card-value">3</span>' in text
    assert '<span class="card-value">2</span>' in text
    assert "1 planned: idle, but promised to a waiting job" in text


def test_names_of_strangers_are_text_on_the_page(tmp_path):
    text = page(tmp_path)
    assert "&lt;b&gt;A&lt;/b&gt;" in text
    assert "<b>A</b>" not in text
    assert "fan &lt;broken&gt;" in text


def test_without_an_answer_the_page_says_why_and_shows_no_number(tmp_path):
    text = page(tmp_path, problem="squeue: <no> answer")
    assert "The states of now are not known: squeue: &lt;no&gt; answer" in text
    assert '<span class="card-value">?</span>' in text


def test_the_page_is_replaced_whole(tmp_path):
    page(tmp_path, startable=1)
    assert "card-value" in page(tmp_path, startable=2)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_status_is_read_back_and_nonsense_is_refused():
    assert LiveStatus.from_text(status().to_text().encode()) == status()
    for text in (b"{}", b"\xff", b"[1]", msgspec.json.encode({**status().to_json(), "polls": -1})):
        with pytest.raises(InputError, match="not the status of a follower"):
            LiveStatus.from_text(text)


def test_gaps_become_warnings_of_the_log_by_kind():
    hour = {"start": "2024-01-01T00:00:00Z", "end": "2024-01-01T01:00:00Z", "words": "w"}
    spans = [Span(kind="gap", is_filled=True, **hour), Span(kind="gap", **hour), Span(kind="clock", **hour)]
    notes = span_notes(spans, ["n"], 4)
    assert notes["ingest"]["warnings"] == {
        "gaps in which the cluster was not followed, filled from accounting": {"count": 1, "node_hours": 4.0},
        "gaps in which the cluster was not followed: all nodes are unknown there": {"count": 1, "node_hours": 4.0},
    }
    assert len(notes["followed"]["spans"]) == 3
