"""``bfreplay jobs make``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bfreplay import load_jobs
from bfreplay.campaigns.load import load_campaign
from bfreplay.cli import main


def run(*words):
    return CliRunner().invoke(main, ["jobs", "make", *map(str, words)])


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["hpo", "nas"])
def test_a_campaign_is_written_and_the_command_it_names_replays_it(kind):
    done = run(kind, "-o", "my search.toml", "--trials", 12, "--epochs", 9, "--samples-per-epoch", 20_000)
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("next")]
    assert line.split(maxsplit=1)[1] == "bfreplay replay sample --jobs 'my search.toml'"
    words = ["replay", "sample", "--jobs", "my search.toml", "--json", "--no-efficiency", "--quiet"]
    replayed = CliRunner().invoke(main, words)
    assert replayed.exit_code == 0, replayed.output
    record = json.loads(replayed.stdout)
    assert sum(record["summary"]["jobs"].values()) == 12
    assert record["summary"]["jobs"]["pruned"] > 0
    assert record["inputs"]["jobs"]["source"]["kind"] == kind


def test_every_option_reaches_the_file(tmp_path):
    (tmp_path / "curves.csv").write_text("curve,nodes,value\na,0,0\na,1,3\na,32,60\nb,0,0\nb,1,3\nb,4,9\n")
    done = run(
        "hpo",
        "-o",
        "c.toml",
        "--trials",
        5,
        "--name",
        "n",
        "--parallel",
        2,
        "--arrival",
        "poisson:6",
        "--pruner",
        "median",
        "--pruner-option",
        "warmup_trials=2",
        "--pruner-option",
        "compare=last",
        "--failures-per-epoch",
        0.1,
        "--budget-node-hours",
        7,
        "--budget-hours",
        8.5,
        "--lower-is-better",
        "--seed",
        9,
        "--min-nodes",
        2,
        "--max-nodes",
        32,
        "--scale-up-cost",
        1,
        "--scale-down-cost",
        2,
        "--epochs",
        4,
        "--samples-per-epoch",
        10,
        "--curves",
        "curves.csv",
        "--curve",
        "a",
    )
    assert done.exit_code == 0, done.output
    made = load_campaign("c.toml")
    campaign, (model,) = made.campaign, made.campaign.models
    assert (campaign.name, campaign.trials, campaign.parallel, campaign.seed, campaign.epochs) == ("n", 5, 2, 9, 4)
    assert (campaign.arrival.per_hour, campaign.higher_is_better) == (6, False)
    assert (campaign.budget.node_hours, campaign.budget.hours) == (7, 8.5)
    assert (campaign.retries.failures_per_epoch, campaign.retries.most) == (0.1, 2)
    job = model.job
    assert (job.min_nodes, job.max_nodes, job.scale_up_cost_s, job.scale_down_cost_s) == (2, 32, 1, 2)
    assert (model.name, model.samples_per_epoch, job.throughput.table(32)[32]) == ("a", 10, 60)
    pruner = made.describe()["pruner"]
    assert (pruner["kind"], pruner["warmup_trials"], pruner["compare"]) == ("median", 2, "last")


MEASURED = "curve,nodes,samples_per_s\ns,1,40\ns,8,270\nm,2,15\nm,16,101\nl,4,3\nl,32,20\n"


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ((), [(1, 8), (2, 16), (4, 32)]),
        (("--max-nodes", 12), [(1, 8), (2, 12), (4, 12)]),
        (("--min-nodes", 5), [(5, 8), (5, 16), (5, 32)]),
        (("--min-nodes", 1, "--max-nodes", 16), [(1, 8), (1, 16), (1, 16)]),
    ],
)
def test_models_are_bounded_by_what_was_measured_where_no_bound_is_given(tmp_path, options, bounds):
    (tmp_path / "rates.csv").write_text(MEASURED)
    run("nas", "-o", "c.toml", "--curves", "rates.csv", *options)
    models = load_campaign("c.toml").campaign.models
    assert [(model.job.min_nodes, model.job.max_nodes) for model in models] == bounds
    run("list", "-o", "jobs.csv", "--curves", "rates.csv", "--job", "s:1", "--job", "m:1", "--job", "l:1", *options)
    assert [(job.min_nodes, job.max_nodes) for job in load_jobs("jobs.csv")] == bounds
    run("hpo", "-o", "h.toml", "--curves", "rates.csv", "--curve", "l", *options)
    (model,) = load_campaign("h.toml").campaign.models
    assert (model.job.min_nodes, model.job.max_nodes) == bounds[-1]


def test_a_nas_campaign_takes_the_curves_of_a_file(tmp_path):
    (tmp_path / "curves.csv").write_text("curve,nodes,value\na,0,0\na,1,3\na,32,60\nb,0,0\nb,1,3\nb,4,9\n")
    done = run("nas", "-o", "c.toml", "--curves", "curves.csv", "--model-choice", "by-seed")
    assert "60 trials of 2 models" in done.stdout
    campaign = load_campaign("c.toml").campaign
    assert [(model.name, model.job.max_nodes) for model in campaign.models] == [("a", 32), ("b", 4)]
    assert campaign.model_choice == "by-seed"


def test_the_same_options_write_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        assert run("nas", "-o", f"{name}.toml", "--name", "n").exit_code == 0
    one, two = ((tmp_path / f"{name}.toml").read_text().splitlines() for name in ("one", "two"))
    assert [line for line in one if "one.toml" not in line] == [line for line in two if "two.toml" not in line]


def test_a_list_is_a_job_set():
    done = run("list", "-o", "jobs.csv", "--job", "segmentation:3", "--job", "language-model:2", "--node-hours", 5)
    assert done.exit_code == 0, done.output
    jobs = load_jobs("jobs.csv")
    assert [job.model for job in jobs] == ["segmentation"] * 3 + ["language-model"] * 2
    assert CliRunner().invoke(main, ["replay", "sample", "--jobs", "jobs.csv", "--quiet"]).exit_code == 0


def test_what_is_there_is_replaced_only_when_asked(tmp_path):
    for words, ending in ((("hpo",), "toml"), (("nas",), "toml"), (("list", "--job", "segmentation:1"), "csv")):
        file = tmp_path / f"made.{ending}"
        file.write_text("mine")
        done = run(*words, "-o", file)
        assert (done.exit_code, file.read_text()) == (2, "mine")
        assert "--force" in done.stderr
        assert run(*words, "-o", file, "--force").exit_code == 0
        assert file.read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hpo", "-o", "c.csv"), "-o c.toml"),
        (("list", "-o", "c.toml", "--job", "segmentation:1"), "-o c.csv"),
        (("hpo", "-o", "c.toml", "--trials", 0), "trials is below 1"),
        (("hpo", "-o", "c.toml", "--max-nodes", 0), "--max-nodes"),
        (("hpo", "-o", "c.toml", "--seed", -1), "--seed"),
        (("hpo", "-o", "c.toml", "--pruner", "ahsa"), "did you mean 'asha'"),
        (("hpo", "-o", "c.toml", "--pruner-option", "eta=1"), "eta is below 2"),
        (("hpo", "-o", "c.toml", "--arrival", "often"), "poisson:PER_HOUR"),
        (("hpo", "-o", "c.toml", "--curve", "resnet"), "no curve is called 'resnet'"),
        (("hpo", "-o", "c.toml", "--samples-per-epoch", "nan"), "samples_per_epoch"),
        (("nas", "-o", "c.toml", "--curve", "resnet"), "--curves FILE"),
        (("nas", "-o", "c.toml", "--curves", "gone.csv"), "no such file"),
        (("nas", "-o", "gone/c.toml"), "folder"),
        (("list", "-o", "c.csv", "--job", "segmentation"), "segmentation"),
        (("list", "-o", "c.csv", "--job", "segmentaton:3"), "did you mean 'segmentation'"),
        (("list", "-o", "c.csv", "--job", "segmentation:3", "--min-nodes", 17), "min_nodes 17 is above"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(tmp_path, words, said):
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--help"], ["hpo", "--help"], ["nas", "--help"], ["list", "--help"]])
def test_help_shows_examples(words):
    done = run(*words)
    assert done.exit_code == 0
    assert "bfreplay jobs make" in done.stdout


COSTS = ("--scale-up-cost", "0:20 4:29", "--start-cost", "1min", "--restart", "pause")
COSTS += ("--work-saved-every", "10min", "--saves", "on-resize", "--max-nodes", "8", "--counts", "1,2,4,8")


@pytest.mark.parametrize("kind", ["hpo", "nas", "list"])
def test_jobs_pay_what_the_options_say(kind):
    out, words = ("made.csv", ("--job", "segmentation:1")) if kind == "list" else ("made.toml", ())
    done = run(kind, "-o", out, *words, *COSTS)
    assert done.exit_code == 0, done.output
    jobs = load_jobs(out) if kind == "list" else [model.job for model in load_campaign(out).campaign.models]
    for job in jobs:
        assert (str(job.scale_up_cost_s), job.scale_down_cost_s, job.start_cost_s) == ("0:20 4:29", 10.0, 60.0)
        assert (job.restart, job.work_saved_every_s, job.saves) == ("pause", 600.0, "on-resize")
        assert job.counts == (1, 2, 4, 8)


def test_usual_costs_stand_in_the_file_as_comments_only(tmp_path):
    assert run("hpo", "-o", "made.toml").exit_code == 0
    (model,) = load_campaign("made.toml").campaign.models
    assert model.job.has_published_costs
    assert "\n# start_cost_s = 60 " in (tmp_path / "made.toml").read_text()
    assert run("list", "-o", "made.csv", "--job", "segmentation:1").exit_code == 0
    assert (tmp_path / "made.csv").read_text().splitlines()[0].endswith(",model")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--start-cost", "4:20"), "do not begin at count 0"),
        (("--start-cost", "soon"), "--start-cost"),
        (("--scale-down-cost", "-1"), "scale_down_cost_s"),
        (("--restart", "puase"), "'charge', 'pause'"),
        (("--saves", "on-notice"), "nothing is ever at risk"),
        (("--work-saved-every", "0.1ms"), "--work-saved-every"),
        (("--counts", "1,two"), "--counts"),
        (("--counts", "1,2,4,8"), "increasing whole numbers from min_nodes 1 to max_nodes 16"),
    ],
)
@pytest.mark.parametrize("kind", ["hpo", "list"])
def test_wrong_costs_are_refused_and_nothing_is_written(tmp_path, kind, words, said):
    out, job = ("made.csv", ("--job", "segmentation:1")) if kind == "list" else ("made.toml", ())
    done = run(kind, "-o", out, *job, *words)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["toml", "csv"])
def test_a_saved_run_of_jobs_with_other_costs_is_run_again_from_its_inputs(ending):
    costs = ("--start-cost", "1min", "--restart", "pause", "--work-saved-every", "10min", "--saves", "on-notice")
    words = ("hpo", "--trials", 2, "--epochs", 3) if ending == "toml" else ("list", "--job", "segmentation:2")
    assert run(*words, "-o", f"made.{ending}", *costs).exit_code == 0
    replay = ["replay", "sample", "--jobs", f"made.{ending}", "--out", "run", "--no-efficiency", "--quiet"]
    replayed = CliRunner().invoke(main, replay)
    assert replayed.exit_code == 0, replayed.output
    name = "made-0000" if ending == "toml" else "segmentation-0000"
    explained = CliRunner().invoke(main, ["explain", "run", "--job", name])
    assert explained.exit_code == 0, explained.output
    assert f"{name} (" in explained.stdout
