"""``bfreplay describe``: what it prints and draws, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.datasets import EventsMetadata, write_events
from tests.datasets.small_logs import BUSY, IDLE, log

HOUR = 3_600
NAMES = ["bursts", "hour-and-weekday", "idle-over-time", "interval-lengths", "widths"]


def run(*words):
    return CliRunner().invoke(main, ["describe", *(str(word) for word in words)])


@pytest.fixture
def small(tmp_path):
    """Three nodes on 1970-01-01 and 02; a is idle from 22:00 to 24:00 UTC."""

    def write(**metadata):
        rows = [(22 * HOUR, "a", IDLE), (24 * HOUR, "a", BUSY)]
        file = tmp_path / "log.parquet"
        events = log([BUSY] * 3, rows, end=48 * HOUR, metadata=EventsMetadata(**metadata))
        write_events(events, file, overwrite=True)
        return file

    return write


def test_the_answer_comes_before_the_tables():
    lines = run("sample").stdout.splitlines()
    assert lines[0].startswith("On average 25.7 of 256 nodes are idle, 10.1 % of all node-time: 2,470 idle node-hours")
    first = " ".join(lines[: lines.index("")])
    for said in ("longer than 10 min", "dedicated", "at a stretch", "reclaimed", "Over the day (UTC)"):
        assert said in first


def test_json_keeps_the_keys_it_had_and_has_more():
    document = json.loads(run("sample", "--json").stdout)
    before = (
        "window_start window_end duration_s n_nodes nodes_ever_idle idle_node_us idle_node_hours mean_idle_nodes "
        "idle_share idle_nodes share_without_idle pool_events joins reclaims transitions idle_nodes_per_event "
        "mean_events_per_hour events_per_hour gap_s idle_intervals censored_idle_intervals join_bursts reclaim_bursts"
    )
    after = (
        "cluster time_origin node_inventory node_assignment_simulated_by log_warnings "
        "idle_node_hours_by_oversubscription "
        "states longer_idle_intervals widths week longest_idle_intervals"
    )
    assert list(document) == [*before.split(), *after.split()]
    assert set(document["idle_intervals"]) == {"complete", "length_s", "bins"}
    assert set(document["join_bursts"]) == {"events", "mean_nodes", "nodes", "at_least", "of_idle_nodes"}
    assert sum(each["node_us"] for each in document["states"]) == 256 * 4 * 24 * HOUR * 1_000_000
    assert [each["nodes"] for each in document["widths"]] == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_hours_are_told_by_the_clocks_of_the_zone_asked_for(small):
    def idle_hours(*words):
        week = json.loads(run(*words, "--json").stdout)["week"]
        return week["time_zone"], [hour for hour, mean in enumerate(week["by_hour"]) if mean]

    assert idle_hours(small()) == ("UTC", [22, 23])
    assert idle_hours(small(source_timezone="Europe/Paris")) == ("Europe/Paris", [0, 23])
    assert idle_hours(small(source_timezone="Europe/Paris"), "--tz", "Asia/Tokyo") == ("Asia/Tokyo", [7, 8])
    assert idle_hours(small(source_timezone="the site's")) == ("UTC", [22, 23])


def test_a_zone_that_is_not_known_is_refused_with_an_example(small):
    result = run(small(), "--tz", "Mars/Olympus")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Mars/Olympus" in result.stderr
    assert "Europe/Paris" in result.stderr


def test_relative_logs_have_no_hours_and_take_no_zone(small):
    file = small(time_origin="relative")
    assert json.loads(run(file, "--json").stdout)["week"] is None
    assert "the times of the log are relative" in run(file).stdout
    refused = run(file, "--tz", "Europe/Paris")
    assert refused.exit_code == 2
    assert "relative" in refused.stderr


def test_a_simulated_node_assignment_is_named(small):
    file = small(allocator={"name": "lowest_first", "seed": 0}, notes={"ingest": {"anything": [1, 2]}})
    assert "a job had is simulated (lowest_first, seed 0)" in run(file).stdout
    assert json.loads(run(file, "--json").stdout)["node_assignment_simulated_by"] == "lowest_first, seed 0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "endings"),
    [pytest.param((), ["png"], marks=pytest.mark.thorough), (("--picture-format", "both"), ["png", "svg"])],
)
def test_pictures_are_drawn_into_a_folder_that_is_made(small, tmp_path, choice, endings):
    folder = tmp_path / "new" / "pictures"
    result = run(small(), "--pictures", folder, *choice)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.{end}" for name in NAMES for end in endings]
    assert result.stdout == run(small()).stdout
    assert f"wrote {folder / NAMES[0]}.{endings[0]}" in result.stderr


@pytest.mark.slow
def test_pictures_that_are_there_are_kept_unless_forced_and_nothing_is_printed(small, tmp_path):
    (tmp_path / "bursts.png").write_text("mine")
    refused = run(small(), "--pictures", tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "bursts.png exists already" in refused.stderr
    assert "--force" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bursts.png", "log.parquet"]
    assert run(small(), "--pictures", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "bursts.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_folder_is_not_the_log_that_it_was_made_of(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    refused = run(tmp_path)
    assert refused.exit_code == 2
    assert "this is a run folder" in refused.stderr
    assert "session.json says where it was" in refused.stderr


def test_a_log_that_cannot_be_read_leaves_no_folder(tmp_path):
    (tmp_path / "log.txt").write_text("hello")
    assert run(tmp_path / "log.txt", "--pictures", tmp_path / "pictures").exit_code == 2
    assert not (tmp_path / "pictures").exists()


def test_without_matplotlib_pictures_are_refused_and_the_text_is_not(small, tmp_path, monkeypatch):
    monkeypatch.setattr("bfreplay.commands.inputs.find_spec", lambda name: None)
    refused = run(small(), "--pictures", tmp_path / "pictures")
    assert refused.exit_code == 2
    assert "matplotlib is not installed" in refused.stderr
    assert run(small()).exit_code == 0


def test_a_window_is_described_as_a_log_of_its_own(small):
    document = json.loads(run(small(), "--window", "1970-01-01T23:00:00Z", "1970-01-02", "--json").stdout)
    assert (document["duration_s"], document["mean_idle_nodes"]) == (3_600.0, 1.0)
    assert document["longer_idle_intervals"][0]["censored_share"] == 1.0


def test_text_alone_loads_no_matplotlib():
    code = (
        "import sys\nfrom bfreplay.cli import main\n"
        "main(['describe', 'sample'], standalone_mode=False)\n"
        "sys.exit('loaded matplotlib' if 'matplotlib' in sys.modules else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
