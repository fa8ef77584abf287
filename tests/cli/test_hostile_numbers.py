"""Numbers that nobody means, where numbers enter: a result or a clear error, soon and in little memory."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bfreplay.cli import main

NUMBERS = (
    "1e300",
    "1" + "0" * 18,
    str(2**63),
    "9" * 4_000,
    "9" * 5_000,
    "inf",
    "nan",
    "-1",
    "-0.0",
    "1e-320",
    "0x" + "f" * 5_000,
    "\u0661\u0662",
    "",
)
LOG = "time,node,idle\n0,n1,true\n600,n1,false\n1200,n1,true\n1800,n1,false\n"
JOB = {
    "submit_after_s": "0",
    "min_nodes": "1",
    "max_nodes": "1",
    "scale_up_cost_s": "5",
    "scale_down_cost_s": "5",
    "work_samples": "1e4",
    "weight": "1",
    "deadline_after_s": "600",
}
CAMPAIGN = {
    "campaign": {"trials": "2", "parallel": "2", "seed": "0", "start_after_s": "0", "every_s": "1"},
    "campaign.budget": {"node_hours": "9", "samples": "1e9", "hours": "9", "failed_trials": "9"},
    "trial": {
        "epochs": "2", "samples_per_epoch": "100", "min_nodes": "1", "max_nodes": "1", "scale_up_cost_s": "1",
        "scale_down_cost_s": "1", "weight": "1", "deadline_after_s": "600",
    },
    "retries": {"failures_per_epoch": "0.01", "most": "1"},
    "scores": {"start": "0.1", "worst": "0.5", "best": "0.9", "noise": "0.01", "report_every_epochs": "1"},
}  # fmt: skip
GENERATED = {
    "gavel": ("n=2, seed=0, jobs_per_hour=9, duration_s=60", "gavel.fifo_perf"),
    "shockwave": ("n=2, seed=0, gap_s=9, min_hours=0.01, max_hours=0.02, dynamic=0.5", "shockwave.gavel"),
    "elasticflow": (
        "n=2, seed=0, gap_s=9, min_deadline=0.5, max_deadline=1.5, best_effort=0.1, most_gpus=2", "elasticflow.edf",
    ),
}  # fmt: skip
POLICIES = (
    "look-ahead(events={})",
    "foresight(events={})",
    "gavel.fifo(round_s={})",
    "gavel.fifo(gang={})",
    "gavel.fifo(restart_s={})",
    "elasticflow.edf(slot_s={})",
    "elasticflow.elasticflow(reserve={})",
    "elasticflow.chronus(lease_s={})",
    "shockwave.gavel(round_s={})",
)


def _said_or_done(*words: str) -> None:
    result = CliRunner().invoke(main, [*words, "--quiet"])
    assert isinstance(result.exception, SystemExit | None), (words, result.exception)
    assert result.exit_code in (0, 2), (words, result.stderr[-500:])
    assert not result.exit_code or "rror" in result.stderr


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


@pytest.mark.parametrize("key", JOB)
@pytest.mark.parametrize("form", ["csv", "toml"])
def test_in_jobs(form, key, files):
    for number in NUMBERS:
        cells = {"name": "a", "curve": "0:0 1:10", **JOB, key: number}
        quoted = {name: f'"{cell}"' if name in ("name", "curve") else cell for name, cell in cells.items()}
        text = {
            "csv": f"{','.join(cells)}\n{','.join(cells.values())}\n",
            "toml": "[[job]]\n" + "".join(f"{name} = {cell}\n" for name, cell in quoted.items()),
        }[form]
        (files / f"jobs.{form}").write_text(text)
        _said_or_done("replay", "log.csv", "--jobs", f"jobs.{form}")


@pytest.mark.parametrize(("table", "key"), [(table, key) for table, keys in CAMPAIGN.items() for key in keys])
def test_in_campaigns(table, key, files):
    for number in NUMBERS:
        tables = {**CAMPAIGN, table: {**CAMPAIGN[table], key: number}}
        text = "".join(
            f"[{name}]\n" + "".join(f"{each} = {cell}\n" for each, cell in keys.items())
            for name, keys in tables.items()
        )
        text = text.replace("[campaign.budget]", 'arrival = "every"\n[campaign.budget]', 1)
        text = text.replace("[retries]", 'curve = "0:0 1:10"\n[retries]', 1)
        (files / "search.toml").write_text(text)
        _said_or_done("replay", "log.csv", "--jobs", "search.toml")


@pytest.mark.parametrize("system", GENERATED)
def test_in_generated_workloads(system):
    parameters, policy = GENERATED[system]
    for part in parameters.split(", "):
        for number in NUMBERS:
            spec = parameters.replace(part, f"{part.partition('=')[0]}={number}")
            words = ("--jobs", f"{system}({spec})", "--curves", "sample", "--policy", policy)
            _said_or_done("replay", "--cluster", "v100=2", *words)


@pytest.mark.parametrize("policy", POLICIES)
def test_in_parameters_of_policies(policy, files):
    (files / "jobs.csv").write_text(f"name,curve,{','.join(JOB)}\na,0:0 1:10,{','.join(JOB.values())}\n")
    for number in NUMBERS:
        _said_or_done("replay", "log.csv", "--jobs", "jobs.csv", "--policy", policy.format(number))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("replay log.csv --jobs jobs.csv", "--threads"),
        ("replay log.csv --jobs jobs.csv", "--max-parallel"),
        ("replay log.csv --jobs jobs.csv --solver highs", "--threads"),
        pytest.param("finish log.csv --jobs jobs.csv --starts 1", "--processes", marks=pytest.mark.slow),
        pytest.param(
            "finish log.csv --jobs jobs.csv --starts 1 --processes 1", "--dedicated", marks=pytest.mark.thorough
        ),
        pytest.param("tune log.csv --jobs jobs.csv", "--processes", marks=pytest.mark.thorough),
    ],
)
def test_in_options_that_count(command, option, files):
    (files / "jobs.csv").write_text(f"name,curve,{','.join(JOB)}\na,0:0 1:10,{','.join(JOB.values())}\n")
    for number in ("1025", "100000", *NUMBERS):
        _said_or_done(*command.split(), option, number)


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--job", "image-classifier:{}"),
        ("nas", "--models", "{}"),
        ("hpo", "--arrival", "poisson:{}"),
        ("hpo", "--epochs", "{}"),
        ("hpo", "--scale-up-cost", "{}"),
        ("hpo", "--budget-hours", "{}"),
    ],
)
def test_in_made_jobs(words):
    for number in NUMBERS:
        kind, *rest = (word.format(number) for word in words)
        made = "made.csv" if kind == "list" else "made.toml"
        result = CliRunner().invoke(main, ["jobs", "make", kind, "-o", made, "--force", *rest])
        assert isinstance(result.exception, SystemExit | None), (words, number, result.exception)
        assert result.exit_code in (0, 2), (words, number, result.stderr[-500:])
