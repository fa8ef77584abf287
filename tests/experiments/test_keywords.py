"""Options as typed keywords: the stub is that of the declarations, and mypy reads it."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RIGHT = """
from datetime import date
from pathlib import Path

import bfreplay

events, jobs = bfreplay.load_events("sample"), bfreplay.load_jobs("sample")
campaign = bfreplay.load_campaign({"campaign": {"trials": 8}, "trial": {}})
run = bfreplay.replay_log(
    events, jobs, policy="bftrainer", t_fwd="auto", window=["2024-07-01", "2024-07-02"], measure="0:5", max_parallel=5,
    objective=None, solver="cbc", gap=0.01, time_limit=5, clear="30s", min_age=60, prices={"v100": 0.74},
    semantics=bfreplay.Semantics.CONTINUOUS, efficiency=False, out=Path("run"), batch_jobs=Path("batch.parquet"),
)
bfreplay.replay_log("sample", list(jobs), t_fwd=120, window=(date(2024, 7, 1), date(2024, 7, 2)), measure=(0, 5))
bfreplay.finish(events, campaign, dedicated=32, starts=2, policy="equal-share", node_type="v100")
bfreplay.tune(Path("log.parquet"), jobs, t_fwd=[60, "auto"], max_parallel=(5, 10), policy="bftrainer", reserve=[0, 2])
bfreplay.sweep([bfreplay.RunOptions(events=events, jobs=jobs, t_fwd=t) for t in (60, 120)], "out", processes=2)
bfreplay.compare(run, "other", bin="1h", resamples=100)
"""
WRONG = {
    'bfreplay.replay_log("sample", "sample", polcy="bftrainer")': 'did you mean "policy"?',
    'bfreplay.replay_log("sample", "sample", max_parallel="many")': 'expected "int | None"',
    'bfreplay.finish("sample", "sample", max_paralel=5)': 'did you mean "max_parallel"?',
    'bfreplay.finish("sample", "sample", cluster="v100=2")': 'Unexpected keyword argument "cluster"',
    'bfreplay.tune("sample", "sample", objectiv="own")': 'did you mean "objective"?',
    'bfreplay.tune("sample", "sample", solver=3)': 'expected "str"',
    'bfreplay.sweep({}, "out", proceses=2)': 'did you mean "processes"?',
    'bfreplay.compare("a", "b", seeds=1)': 'did you mean "seed"?',
}
"""Lines that a type checker refuses, with a part of mypy's message."""


def test_the_stub_of_keywords_is_what_the_declarations_give():
    written = runpy.run_path(str(ROOT / "benchmarks" / "write_keywords.py"))
    assert written["STUB"].read_text(encoding="utf-8") == written["stub"](), "run python benchmarks/write_keywords.py"


@pytest.mark.slow
def test_a_type_checker_takes_right_options_and_refuses_misspelt_ones(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text("import bfreplay\n" + "\n".join(WRONG))
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "right.py", "wrong.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYPY_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert [line.split(": error: ")[0] for line in errors] == [f"wrong.py:{row}" for row in range(2, 2 + len(WRONG))]
    for line, message in zip(errors, WRONG.values(), strict=True):
        assert message in line
