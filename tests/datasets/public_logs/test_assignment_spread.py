"""Effect of the rule of node assignment on two logs, as in docs/your-log.md and as measured by others."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bfreplay.cli import main
from bfreplay.datasets.ingest.occupancy.rules import ASSIGNMENTS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "your-log.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "measured_before"),
    [  # median idle intervals in s in the order of ASSIGNMENTS, from an allocator written for LOG-FORMATS.md, section 0
        ("kth-sp2-1996", "KTH-SP2-1996-2.1-cln.swf.gz", (654, 611, 1_569, 1_145)),
        # that one gave no freed node to jobs above the machine: 94, 83, 726, 373 here, where 2,432 jobs are
        pytest.param("sdsc-blue-2000", "SDSC-BLUE-2000-4.2-cln.swf.gz", (93, 83, 723, 369), marks=pytest.mark.thorough),
    ],
)
def test_the_rule_decides_how_long_idle_intervals_are_and_not_how_much_is_idle(shared, name, file, measured_before):
    options = ["--full-window", "--min-gap", "0", "--empty-machine", "idle", "--assignment", "all", "--json"]
    result = CliRunner().invoke(main, ["ingest", "swf", str(shared / "data" / "logs" / file), *options])
    assert result.exit_code == 0, result.output
    spread = json.loads(result.stdout)["spread"]
    assert [row["assignment"].split(",")[0] for row in spread] == list(ASSIGNMENTS)
    assert len({row["mean_idle_nodes"] for row in spread}) == 1
    medians = [row["idle_interval_length_s"]["p50"] for row in spread]
    assert medians == pytest.approx(measured_before, rel=0.005)
    cells = [f"{median:,.0f} s" for median in medians]
    assert f"| {name} | {' | '.join(cells)} | {spread[0]['mean_idle_nodes']:.2f} |" in PAGE.read_text().splitlines()
