"""Campaigns on the bundled log and on two weeks of Summit: pruned, finished, and the same bytes every time."""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.runs import RunResult

ROOT = Path(__file__).resolve().parents[2]
SHUFFLENET = "0:0 1:2831 2:5259 4:9988 8:20379.2 16:38895.3 32:74125.1 64:145081.5"
SAME_EVERY_TIME = ("run.json", "decisions.parquet", "jobs.parquet", "allocations.parquet", "reports.parquet")


def bfreplay(folder: Path, hash_seed: int, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "bfreplay.cli", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(hash_seed)},
    )


@pytest.fixture(
    params=[
        pytest.param((40, "sample"), id="sample"),
        pytest.param((200, None), id="summit", marks=pytest.mark.thorough),
    ]
)
def trials_on_log(request) -> tuple[int, str]:
    """A number of trials, and the log to replay them on."""
    trials, log = request.param
    if log is None:
        data = request.getfixturevalue("shared") / "data"
        log = str(data / "bftrainer" / "summit-2021-02-node-events.parquet")
    return trials, log


@pytest.mark.slow
@pytest.mark.parametrize(
    "made_by",
    [["--pruner", "asha"], pytest.param(["--proposer", "optuna", "--parallel", "20"], marks=pytest.mark.thorough)],
)
def test_a_campaign_gives_the_same_bytes_whatever_the_hash_seed(trials_on_log, tmp_path, made_by):
    trials, log = trials_on_log
    command = [
        "jobs",
        "make",
        "hpo",
        "-o",
        str(tmp_path / "campaign.toml"),
        "--trials",
        str(trials),
        "--max-nodes",
        "64",
        "--samples-per-epoch",
        "1281167",
        "--curve",
        SHUFFLENET,
        *made_by,
    ]
    assert CliRunner().invoke(main, command).exit_code == 0
    for hash_seed in (1, 2):
        bfreplay(
            tmp_path,
            hash_seed,
            "replay",
            log,
            "--jobs",
            "campaign.toml",
            "--max-parallel",
            "20",
            "--no-efficiency",
            "--out",
            f"run{hash_seed}",
        )
    same, different, missing = filecmp.cmpfiles(tmp_path / "run1", tmp_path / "run2", SAME_EVERY_TIME, shallow=False)
    assert (sorted(same), different, missing) == (sorted(SAME_EVERY_TIME), [], [])
    summary = RunResult.load(tmp_path / "run1").summary
    assert summary["jobs"]["finished"] + summary["jobs"]["pruned"] == trials
    assert min(summary["jobs"]["finished"], summary["jobs"]["pruned"]) > 0
    assert summary["scores"]["best_score"] > 0.9
