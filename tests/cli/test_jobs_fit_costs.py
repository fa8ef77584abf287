"""``bfreplay jobs fit --costs``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bfreplay.campaigns.load import load_campaign
from bfreplay.cli import main
from bfreplay.commands.jobs import fit
from bfreplay.datasets import load_jobs
from bfreplay.datasets.jobs.measurements import load_restarts
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.workload.cost_fit import MeasuredRestart

LOG = """model,nodes_before,nodes_after,pause_s
resnet,0,1,60
resnet,0,2,64
resnet,0,8,61.5
resnet,1,2,20
resnet,1,2,21
resnet,2,3,19
resnet,2,4,29
resnet,3,4,30
resnet,2,8,31
resnet,8,4,12
resnet,8,2,11
resnet,4,2,12.5
"""
KEYS = """start_cost_s = 61.5
scale_up_cost_s = "0:20 4:30"
scale_down_cost_s = 12
restart = "pause"
"""


def run(*words):
    result = CliRunner().invoke(fit, [*map(str, words), "--costs"])
    if isinstance(result.exception, InputError | OutputExistsError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def log(tmp_path):
    return log_of(tmp_path, LOG)


def log_of(folder, text):
    (folder / "restarts.csv").write_text(text)
    return folder / "restarts.csv"


def test_the_costs_are_printed_with_restarts_and_spread_behind_each(log):
    assert run(log).splitlines() == [
        "resnet: 12 restarts",
        "",
        "cost               on nodes  restarts  median, s  middle half, s",
        "start_cost_s       1 to 8           3       61.5  60.75 to 62.75",
        "scale_up_cost_s    2 to 3           3         20    19.5 to 20.5",
        "                   4 to 8           3         30    29.5 to 30.5",
        "scale_down_cost_s  2 to 4           3         12   11.5 to 12.25",
        "",
        *KEYS.splitlines(),
    ]


def test_the_keys_can_be_pasted_into_job_files_and_campaigns(log, tmp_path):
    run(log, "-o", tmp_path / "costs.toml")
    text = (tmp_path / "costs.toml").read_text()
    assert text.endswith(f'[[model]]\nname = "resnet"\n{KEYS}')
    jobs = tmp_path / "jobs.toml"
    rest = 'name = "a"\nmin_nodes = 1\nmax_nodes = 8\nwork_samples = 1e6\ncurve = "0:0 8:80"\n'
    jobs.write_text(f"[[job]]\n{rest}{KEYS}")
    (job,) = load_jobs(jobs)
    assert (job.start_cost_s, str(job.scale_up_cost_s), job.restart) == (61.5, "0:20 4:30", "pause")
    search = tmp_path / "search.toml"
    trial = '[campaign]\ntrials = 2\nkind = "nas"\n[trial]\nepochs = 3\nsamples_per_epoch = 10\nmin_nodes = 1\n'
    search.write_text(trial + 'max_nodes = 8\ncurve = "0:0 8:80"\n' + text)
    (model,) = load_campaign(search).campaign.models
    assert (model.name, str(model.job.scale_up_cost_s), model.job.scale_down_cost_s) == ("resnet", "0:20 4:30", 12.0)


def test_json_has_costs_and_steps(log):
    document = json.loads(run(log, "--json"))["resnet"]
    assert document["scale_up_cost_s"] == {
        "cost": "0:20 4:30",
        "steps": [
            {"first_nodes": 2, "last_nodes": 3, "n_restarts": 3, "median_s": 20.0, "quartiles_s": [19.5, 20.5]},
            {"first_nodes": 4, "last_nodes": 8, "n_restarts": 3, "median_s": 30.0, "quartiles_s": [29.5, 30.5]},
        ],
    }
    assert (document["start_cost_s"]["cost"], document["restart"], document["warnings"]) == (61.5, "pause", [])


def test_restarts_are_grouped_by_model_else_by_job_else_by_the_name_of_the_file(tmp_path):
    rows = {"nodes_before": [0, 1], "nodes_after": [1, 2], "pause_s": [60.0, 20.0]}
    one, other = MeasuredRestart(0, 1, 60.0), MeasuredRestart(1, 2, 20.0)
    for columns, expected in (
        ({}, ("model", {"log": [one, other]})),
        ({"job": ["a", "b"]}, ("job", {"a": [one], "b": [other]})),
        ({"job": ["a", "b"], "model": ["m", "m"]}, ("model", {"m": [one, other]})),
    ):
        pq.write_table(pa.table(rows | columns), tmp_path / "log.parquet")
        assert load_restarts(tmp_path / "log.parquet") == expected


def test_few_restarts_are_told_in_text_and_file(tmp_path):
    log = log_of(tmp_path, 'job,nodes_before,nodes_after,pause_s\n"a ""b""",0,4,100\n"a ""b""",4,0,5\n')
    text = run(log, "-o", tmp_path / "costs.toml")
    warnings = [
        "not used: 1 restart to 0 nodes.",
        "fewer than 3 restarts from 0 nodes: start_cost_s may be far off.",
        "no restart to more nodes: scale_up_cost_s is not known.",
        "no restart to fewer nodes: scale_down_cost_s is not known.",
    ]
    assert [line for line in text.splitlines() if line.startswith("Warning")] == [
        f"Warning: {each}" for each in warnings
    ]
    written = (tmp_path / "costs.toml").read_text()
    assert all(f"# warning: {each}\n" in written for each in warnings)
    assert tomllib.loads(written) == {"job": [{"name": 'a "b"', "start_cost_s": 100, "restart": "pause"}]}


@pytest.mark.parametrize(
    ("text", "problem", "row", "column", "value"),
    [
        (LOG.replace("0,8,61.5", "0,8,soon"), "not a number", 3, "pause_s", "soon"),
        (LOG.replace("0,8,61.5", "0,8,"), "'pause_s' is empty", 3, "pause_s", None),
        (LOG.replace("0,8,61.5", "0,8,-1"), "out of range", 3, "pause_s", -1.0),
        (LOG.replace("0,8,61.5", "0,8,inf"), "not finite", 3, "pause_s", None),
        (LOG.replace("0,8,61.5", "-1,8,61.5"), "below 0", 3, "nodes_before", -1),
        (LOG.replace("0,8,61.5", "0,8.5,61.5"), "no whole number", 3, "nodes_after", 8.5),
        (LOG.replace("0,8,61.5", "0,1e300,61.5"), "above", 3, "nodes_after", None),
        (LOG.replace("resnet,0,8,61.5", ",0,8,61.5"), "'model' is empty", 3, "model", None),
        (LOG.replace("pause_s", "pause"), "'pause_s' is missing", None, "pause_s", None),
        (LOG.replace("model,", "modle,"), "did you mean 'model' for 'modle'", None, "modle", None),
        (LOG.splitlines()[0] + "\n", "no restarts", None, None, None),
        ("nodes_before,nodes_after,pause_s\n4,0,9\n", "tells a cost", None, None, None),
        ("curve,nodes,value\na,1,2\n", "looks like a table of curves", None, "nodes_before", None),
    ],
)
def test_a_log_that_cannot_be_used_is_refused_and_nothing_is_written(tmp_path, text, problem, row, column, value):
    log = log_of(tmp_path, text)
    with pytest.raises(InputError, match=problem) as caught:
        run(log, "-o", tmp_path / "costs.toml")
    assert (caught.value.file, caught.value.row, caught.value.column) == (str(log), row, column)
    assert value is None or caught.value.value == value
    assert [file.name for file in tmp_path.iterdir()] == ["restarts.csv"]


@pytest.mark.parametrize(
    "words",
    [
        ("--law", "usl"),
        ("--scaling", "weak"),
        ("--max-nodes", 8),
        ("--picture", "p.png"),
        ("--global-batch", 64),
    ],
)
def test_options_of_curves_are_refused(log, words):
    with pytest.raises(InputError, match=f"{words[0]} is for curves") as caught:
        run(log, *words)
    assert caught.value.fix == f"drop {words[0]}"


def test_outputs_are_toml_and_are_kept_unless_forced(log, tmp_path):
    with pytest.raises(InputError, match="written as TOML"):
        run(log, "-o", tmp_path / "costs.csv")
    (tmp_path / "costs.toml").write_text("mine")
    with pytest.raises(OutputExistsError, match="--force"):
        run(log, "-o", tmp_path / "costs.toml")
    assert (tmp_path / "costs.toml").read_text() == "mine"
    run(log, "-o", tmp_path / "costs.toml", "--force")
    assert "[[model]]" in (tmp_path / "costs.toml").read_text()


def test_without_the_option_the_message_names_it(log):
    done = CliRunner().invoke(main, ["jobs", "fit", str(log)])
    assert done.exit_code == 2
    assert "a log of restarts, for jobs fit --costs" in done.stderr
