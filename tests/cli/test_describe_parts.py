"""``bfreplay describe`` and ``report`` of parts of a machine, of several logs, and of reasons: words, JSON, page."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.datasets import EventsMetadata, write_events
from bfreplay.datasets.idleness.parts import BY
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from tests.datasets.small_logs import BUSY, IDLE, log

HOUR = 3_600
JOBS = """JobIDRaw|Partition|State|Submit|Start|End|NNodes|NodeList
1|batch|COMPLETED|2024-05-01T00:00:00|2024-05-01T00:00:00|2024-05-01T01:00:00|2|cn[1-2]
2|batch|COMPLETED|2024-05-01T00:00:00|2024-05-01T03:00:00|2024-05-01T04:00:00|3|cn[1-3]
3|gpu|COMPLETED|2024-05-01T00:00:00|2024-05-01T00:00:00|2024-05-01T03:00:00|1|cn3
4|gpu|COMPLETED|2024-05-01T04:00:00|2024-05-01T04:00:00|2024-05-01T05:00:00|1|cn4
"""


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def month(tmp_path, name, idle_h):
    """A log of two days, on which node a is idle for so many hours from 22:00."""
    rows = [(22 * HOUR, "a", IDLE), ((22 + idle_h) * HOUR, "a", BUSY)]
    metadata = EventsMetadata(partitions={"batch": ["a", "b"], "gpu": ["b", "c"]})
    write_events(log([BUSY] * 3, rows, end=48 * HOUR, metadata=metadata), tmp_path / name)
    return tmp_path / name


@pytest.fixture
def slurm(tmp_path):
    (tmp_path / "jobs.psv").write_text(JOBS)
    built = read_log(tmp_path / "jobs.psv", "slurm", ReadOptions(timezone="UTC"), job_names=True)
    built = built.build(OccupancyRules(window="full", min_gap_s=0))
    write_events(built.events, tmp_path / "events.parquet")
    built.write_batch_jobs(tmp_path / "batch.parquet")
    return tmp_path


def test_two_months_are_shown_side_by_side_with_what_changed(tmp_path):
    files = month(tmp_path, "june.parquet", 2), month(tmp_path, "july.parquet", 3)
    lines = run("describe", *files, "--by", "partition").stdout.splitlines()
    assert lines[:2] == [
        "From june.parquet to july.parquet, mean idle nodes went from 0.0417 to 0.0625 (+50 %).",
        "Part that changed most: batch, from 0.0417 to 0.0625 nodes on average.",
    ]
    table = {line[:36].strip(): line[36:].split() for line in lines[4:]}
    assert table["idle node-hours"] == ["2", "3", "+50", "%"]
    assert table["nodes"] == ["3", "3", "+0", "%"]
    document = json.loads(run("describe", *files, "--json").stdout)
    assert [part["log"] for part in document["logs"]] == ["june.parquet", "july.parquet"]
    assert [part["idle_node_hours"] for part in document["logs"]] == [2, 3]
    assert document["changes"] == lines[:1]


def test_logs_of_one_name_are_told_apart(tmp_path):
    for folder in ("june", "july"):
        (tmp_path / folder).mkdir()
    files = [month(tmp_path, f"{folder}/log.parquet", 2) for folder in ("june", "july")]
    first = run("describe", *files).stdout.splitlines()[0]
    assert first == "From log.parquet (1) to log.parquet (2), mean idle nodes went from 0.0417 to 0.0417 (+0 %)."


def test_logs_of_other_units_are_not_compared_and_sizes_are_in_their_own(tmp_path):
    files = []
    for unit, n_units in (("node", 1), ("gpu", 1), ("gpu", 2)):
        files.append(tmp_path / f"{unit}{n_units}.parquet")
        states, nodes = [BUSY] * n_units, ("a", "b")[:n_units]
        events = log(states, [(HOUR, "a", IDLE)], end=2 * HOUR, nodes=nodes, metadata=EventsMetadata(unit=unit))
        write_events(events, files[-1])
    lines = run("describe", *files[:2]).stdout.splitlines()
    assert lines[:2] == ["The logs cannot be compared: one is of nodes, another of GPUs.", ""]
    assert "The last log has 2 GPUs, not 1." in run("describe", *files[1:]).stdout
    assert run("report", files[1], "-o", tmp_path / "gpu.html", "--quiet").exit_code == 0
    page = (tmp_path / "gpu.html").read_text()
    assert (page.count("node-hours are GPU-hours."), page.count("On average")) == (1, 1)


def test_the_command_line_knows_every_way_of_grouping():
    for command in (main.commands["describe"], main.commands["report"]):
        assert next(option.type.choices for option in command.params if option.name == "by") == BY


def test_a_partition_that_is_full_and_one_that_is_not(slurm):
    options = ["--batch-jobs", slurm / "batch.parquet"]
    text = run("describe", slurm / "events.parquet", *options, "--by", "partition").stdout
    # cn1 and cn2 are idle from 1:00 to 3:00, when job 2 waits for three nodes of batch; later nobody waits
    first = text[: text.index("On average")].replace("\n", " ")
    assert first.startswith(
        "Of 11 node-hours without a job, 63.6 % were idle while no job waited for them, 36.4 % were idle while each "
        "waiting job was too wide. By partition, the nodes in batch have the largest share of the idle time: 54.5 %, "
    )
    document = json.loads(run("describe", slurm / "events.parquet", *options, "--json").stdout)
    assert document["reasons"]["node_hours"] == {"no job waited": 7, "waiting jobs were too wide": 4}
    part = json.loads(run("describe", slurm / "events.parquet", "--partition", "gpu", "--json").stdout)
    assert (part["selection"], part["n_nodes"]) == ({"partition": "gpu"}, 2)
    whole = json.loads(run("describe", slurm / "events.parquet", "--json").stdout)
    others = json.loads(run("describe", slurm / "events.parquet", "--without", "cn[3-4]", "--json").stdout)
    assert part["idle_node_us"] + others["idle_node_us"] == whole["idle_node_us"]
    assert others["left_out_node_hours_of_batch_jobs"] == 3 + 1 + 1


def test_the_page_of_logs_has_the_answer_and_every_part(slurm, tmp_path):
    options = ["--batch-jobs", slurm / "batch.parquet", "--by", "partition", "--quiet"]
    page = tmp_path / "idle.html"
    assert run("report", slurm / "events.parquet", *options, "-o", page).exit_code == 0
    text = page.read_text()
    for words in ("Idle nodes of events.parquet", "Why no job ran", "Idle time by partition", "batch + gpu", "63.6"):
        assert words in text
    files = month(tmp_path, "june.parquet", 2), month(tmp_path, "july.parquet", 3)
    assert run("report", *files, "-o", page, "--force", "--by", "month").exit_code == 0
    assert "From june.parquet to july.parquet, mean idle nodes went from 0.0417 to 0.0625" in page.read_text()
    assert "Side by side" in page.read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["describe", "sample", "sample", "--pictures", "here"], "--pictures are of one log"),
        (["describe", "sample", "sample", "--batch-jobs", "x.parquet"], "the number of files of batch jobs differs"),
        (["describe", "sample", "--by", "partition"], "the log does not say which partition its nodes are of"),
        (["describe", "sample", "--partition", "gpu"], "does not say which partitions its nodes are in"),
        (["describe", "sample", "--only-nodes", "nowhere"], "--only-nodes: the log has no such node"),
        (["report", "here", "--partition", "gpu"], "--partition is for logs: a run is of the nodes"),
        (["report", "sample", "here"], "a page is of runs, or of logs"),
        (
            ["replay", "--cluster", "v100=4", "--jobs", "sample", "--without", "n1"],
            "--without cannot be combined with --cluster",
        ),
    ],
)
def test_what_does_not_fit_is_refused(words, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    refused = run(*words)
    assert refused.exit_code == 2 or refused.exception is not None
    assert problem in refused.output + str(refused.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
