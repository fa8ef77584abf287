"""Two minutes of a real Slurm: followed, held against its accounting, and replayed to the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bfreplay import compare_logs, write_events
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from tests.live.conftest import SCRIPT

pytestmark = pytest.mark.slow

MEASURED = ("session.json", "timings.parquet")


def test_a_followed_slurm_agrees_with_its_accounting_also_over_a_time_without_a_controller(own_slurm, tmp_path):
    own_slurm.start(12)
    environment = {**os.environ, "SLURM_CONF": str(own_slurm.cluster.conf)}
    words = [sys.executable, "-m", "bfreplay", "follow", "slurm", "--jobs", "sample", "--out", tmp_path / "live"]
    more = ["--poll", "1s", "--timeout", "2s", "--page", tmp_path / "now.html", "--metrics", tmp_path / "now.prom"]
    follower = subprocess.Popen([*words, *more], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        load = [sys.executable, SCRIPT.with_name("load.py"), "ordinary", "--minutes=1.8", "--dir", own_slurm.folder]
        load += ["--log", tmp_path / "load.jsonl", "--export", tmp_path / "accounting"]
        loading = subprocess.Popen(load)
        time.sleep(50)
        assert own_slurm.run("stop-controller").returncode == 0
        time.sleep(14)
        assert own_slurm.run("start-controller").returncode == 0
        assert loading.wait(timeout=180) == 0
        time.sleep(5)
    finally:
        follower.send_signal(signal.SIGTERM)
    told = follower.communicate(timeout=120)[1]
    assert follower.returncode == 0, told

    log_file = tmp_path / "live" / "log.csv"
    spans = json.loads((tmp_path / "live" / "log.csv.meta.json").read_text())["notes"]["followed"]["spans"]
    assert [(span["kind"], span["is_filled"]) for span in spans] == [("gap", True)], told
    inventory = tmp_path / "nodes"
    inventory.write_text("".join(f"n{number:02d}\n" for number in range(1, 13)))
    files = [tmp_path / "accounting" / name for name in ("jobs.psv", "outages.psv", "resv.psv")]
    rules = OccupancyRules(window="full", min_gap_s=0.0, empty_machine="idle")
    accounted = read_log(files, "slurm", ReadOptions(timezone="UTC"), inventory=inventory).build(rules).events
    write_events(accounted, tmp_path / "accounted.csv")
    result = compare_logs(log_file, tmp_path / "accounted.csv")
    # planned nodes are idle in accounting, and in the seconds after its start a controller does not know its nodes
    explained = {"planned", "not followed"}
    differing_us = sum(rule.node_us for rule in result.rules if rule.rule not in explained)
    assert differing_us <= 0.01 * result.node_us, f"{result}\n{told}"
    not_followed_us = sum(rule.node_us for rule in result.rules if rule.rule == "not followed")
    assert not_followed_us <= 12 * 30e6, f"{result}\n{told}"

    again = tmp_path / "again"
    replay = [sys.executable, "-m", "bfreplay", "replay", log_file, "--jobs", "sample", "--out", again, "--quiet"]
    subprocess.run(replay, check=True, stdout=subprocess.DEVNULL)
    files = sorted(file.name for file in again.iterdir() if file.name not in MEASURED)
    assert "decisions.parquet" in files
    for name in files:
        assert (again / name).read_bytes() == (tmp_path / "live" / "run" / name).read_bytes(), name
    assert "bfreplay_startable_nodes" in (tmp_path / "now.prom").read_text()
