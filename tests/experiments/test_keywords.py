"""What mypy reads: the stub of the options, made from their declarations; models; plug-ins in examples and docs."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON_FILE = re.compile(r"`(\w+\.py)`(?:, complete)?:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RIGHT = """
from datetime import date
from pathlib import Path

import numpy as np

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
bfreplay.RunOptions(events=events, jobs=jobs, window=(1719792000, date(2024, 7, 2)))
bfreplay.compare(run, "other", bin="1h", resamples=100)

m = bfreplay.ModelBuilder()
y = m.binary("y", (2, 3))
total: bfreplay.Expression = m.sum(y[j, 1] for j in range(2)) + np.arange(3) @ y[0] - 0 * y[0, 0]
total += m.sum([y[0], 1.5])
m.add(y.sum(axis=1) == 1)
m.add(np.arange(3) <= total, "least")
formulation: bfreplay.Formulation = bfreplay.milp.formulations.formulation_of("choices")
bfreplay.solver_of("highs", formulation)
finished: bfreplay.Finish = bfreplay.finish(events, jobs, fallback="keep", starts=2)
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
    'bfreplay.replay_log("sample", "sample", window="2024-07-01")': 'has incompatible type "str"',
    'bfreplay.finish("sample", "sample", fallback="kep")': "expected \"Literal['exact', 'keep']\"",
    'bfreplay.tune("sample", "sample", semantics="publishd")': "Literal['continuous', 'published']",
    'bfreplay.RunOptions(events="sample", jobs="sample", fallback="kep")': "Literal['exact', 'keep']",
    'bfreplay.regret(["run"], effort="quik")': "Literal['quick', 'thorough']",
    'bfreplay.explain("run", "job").campaign': '"JobAnswer" has no attribute "campaign"',
    'y = bfreplay.ModelBuilder().binary("y", 3)': "",
    "y.summ()": 'maybe "sum"?',
    "y * y": 'Unsupported operand types for * ("Expression" and "Expression")',
    "bfreplay.ModelBuilder().add(y != 1)": 'expected "Constraint"',
}
"""Lines that a type checker refuses, with a part of mypy's message."""


def test_the_stub_of_keywords_is_what_the_declarations_give():
    written = runpy.run_path(str(ROOT / "benchmarks" / "write_keywords.py"))
    assert written["STUB"].read_text(encoding="utf-8") == written["stub"](), "run python benchmarks/write_keywords.py"


@pytest.mark.slow
def test_a_type_checker_takes_right_options_and_refuses_misspelt_ones(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text("import bfreplay\n" + "\n".join(WRONG))
    wrong_rows = [row for row, message in enumerate(WRONG.values(), 2) if message]
    errors = errors_of_mypy(tmp_path)
    assert [line.split(": error: ")[0] for line in errors] == [f"wrong.py:{row}" for row in wrong_rows]
    for line, message in zip(errors, filter(None, WRONG.values()), strict=True):
        assert message in line


@pytest.mark.slow
def test_plug_ins_of_the_examples_and_of_the_page_for_developers_are_typed(tmp_path):
    examples = [*(ROOT / "examples").glob("*.py"), *(ROOT / "examples" / "gallery").glob("*.py")]
    page = (ROOT / "docs" / "algorithm-developers.md").read_text()
    files = {file.name: file.read_text() for file in examples} | dict(PYTHON_FILE.findall(page))
    assert {"own_policy_with_parameter.py", "mine.py", "my_policy.py", "test_mine.py"} <= files.keys()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert errors_of_mypy(tmp_path, "--disable-error-code=import-untyped") == []  # PuLP


def errors_of_mypy(folder, *flags):
    pytest.importorskip("mypy")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", *flags, *sorted(folder.glob("*.py"))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYPY_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode in (0, 1), checked.stderr
    return [line for line in checked.stdout.splitlines() if ": error: " in line]
