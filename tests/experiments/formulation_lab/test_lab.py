"""Formulations compared on few decisions: counts, failures, folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import bfreplay
from bfreplay.errors import InputError, OutputExistsError, SolverUnavailableError
from bfreplay.experiments import LabResult, LabSettings, compare_formulations
from bfreplay.experiments.formulation_lab import lab as lab_module
from bfreplay.experiments.formulation_lab import sampling
from bfreplay.experiments.formulation_lab import trials as trials_module
from bfreplay.experiments.formulation_lab.lab_text import milliseconds, render
from bfreplay.experiments.formulation_lab.sampling import sample_decisions
from bfreplay.experiments.formulation_lab.summary import ROWS
from bfreplay.milp import ExactSolver
from bfreplay.milp.files.decision_json import read_decision
from bfreplay.milp.formulations.choices import Choices
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.policies.bftrainer import problem_of
from bfreplay.result_folders.records import schema_of
from bfreplay.workload import JobSet
from tests.experiments.formulation_lab.test_sampling import EVENTS, JOBS, OPTIONS
from tests.milp.formulations.checking import BY_COUNT
from tests.milp.small_problems import by_count
from tests.replay.tiny import job, log

FAULTY = "tests.milp.faulty_backends:"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "formulation-lab.md"
QUICK = LabSettings(sample=4, time_limit_s=2.0, grace_s=2.0)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Two formulations on two back ends, on the bundled log."""
    return compare_formulations(
        bfreplay.sample_events_path(),
        bfreplay.sample_jobs_path(),
        LabSettings(sample=6),
        formulations=["choices", "counts_sos2"],
        backends=["cbc", "highs"],
        out=tmp_path_factory.mktemp("labs") / "lab",
        pictures=lambda folder: (folder / "drawn").touch(),
    )


def _tiny(**options):
    return compare_formulations(EVENTS, JOBS, **{"settings": QUICK, "formulations": ["choices"], **options})


def _outcomes(result, pair):
    answers = result.answers[result.answers["pair"] == pair]
    return answers["outcome"].tolist()


def test_every_decision_is_answered_by_every_pair_and_by_the_exact_solver(lab):
    pairs = ["exact", "choices on cbc", "choices on highs", "counts_sos2 on cbc"]
    assert lab.summary["pair"].tolist() == pairs
    assert lab.answers["pair"].tolist() == pairs * 6
    assert (lab.summary["decisions"] == 6).all()
    assert (lab.summary["proven"] == 6).all()
    assert lab.answers.groupby("decision").size().tolist() == [4] * 6
    assert lab.answers["decision"].unique().tolist() == lab.decisions["index"].tolist()


def test_sizes_times_and_optima_are_those_of_the_answers(lab):
    milp = lab.answers[lab.answers["pair"] != "exact"]
    assert (milp["columns"] > 0).all()
    assert (milp["sets"] > 0).tolist() == (milp["formulation"] == "counts_sos2").tolist()
    assert lab.answers.loc[lab.answers["pair"] == "exact", "columns"].isna().all()
    assert (lab.answers["total_s"] == lab.answers["build_s"] + lab.answers["solve_s"]).all()
    assert (lab.answers["total_s"] > 0).all()
    optimum = lab.decisions.set_index("index")["optimum"]
    assert lab.answers["optimum"].tolist() == optimum[lab.answers["decision"]].tolist()
    assert lab.answers["posed_optimum"].equals(lab.answers["optimum"])
    assert lab.answers["relative_loss"].abs().max() <= 1e-6


def test_what_the_published_limit_on_changes_costs_is_seen():
    six_nodes, one_job = log(6, [], 60, idle_first=range(6)), JobSet([job(rates=tuple(10.0 * n for n in range(7)))])
    result = compare_formulations(six_nodes, one_job, QUICK, formulations=["published", "node_level"], backends=["cbc"])
    (decision,) = result.decisions.to_dict("records")
    assert (decision["optimum"], decision["published_optimum"]) == (7200.0, 3600.0)  # 6 and 3 nodes x 10/s x 120 s
    rows = result.summary.set_index("pair")
    assert rows["proven"].tolist() == [1, 1, 1]
    assert rows["loss_worst"].tolist() == pytest.approx([0.0, 0.5, 0.0], abs=1e-6)
    assert "the limit on changes in published costs up to 50 % of the true optimum" in render(result)


def test_decisions_with_losses_by_count_are_measured_and_refused_by_the_published_rows(monkeypatch):
    def left_on_three(state, t_fwd_s):
        """Counts 1, 2 and 4, and 3 where it is held; a start costs 50, and 500 from 4 nodes on."""
        problem = problem_of(state, t_fwd_s)
        counts, held = np.arange(problem.gain.shape[1]), problem.current[:, None]
        costs = np.where(counts == held, 0.0, np.where(counts < 4, 50.0, 500.0))
        return by_count(problem, np.where((counts == 3) & (held != 3), np.inf, costs * (counts > 0)))

    monkeypatch.setattr(sampling, "problem_of", left_on_three)
    four_nodes, jobs = log(4, [(10, 3, False)], 60, idle_first=range(4)), JobSet([job("a", rates=(0.0, 4, 9, 9, 20))])
    names = ["published", *BY_COUNT]
    result = compare_formulations(four_nodes, jobs, QUICK, formulations=names, backends=["cbc"])
    assert [decision["optimum"] for decision in result.decisions.to_dict("records")] == [1900.0, 1080.0]
    rows = result.summary.set_index("pair")
    assert rows["proven"].to_dict() == {"exact": 2, "published on cbc": 0, **{f"{name} on cbc": 2 for name in BY_COUNT}}
    assert rows["refused"].sum() == rows.loc["published on cbc", "refused"] == 2
    assert "published on cbc, refused: published takes one loss of a job that gains nodes" in render(result)


def test_the_pair_that_cannot_be_is_named_with_the_reason(lab):
    (left_out,) = lab.record["left_out"]
    assert (left_out["formulation"], left_out["backend"]) == ("counts_sos2", "highs")
    assert "counts_sos2 on highs: highs takes no special ordered sets" in render(lab)


def test_the_folder_holds_everything_and_can_be_loaded_again(lab):
    names = {path.name for path in lab.folder.iterdir()}
    assert names == {"lab.json", "drawn", *(f"{name}.parquet" for name in ROWS)}
    again = LabResult.load(lab.folder)
    assert again.record == lab.record
    for name, row in ROWS.items():
        assert again.table(name).equals(lab.table(name))
        assert again.table(name).schema.equals(schema_of(row))
    assert [row["pair"] for row in lab.record["summary"]] == lab.summary["pair"].tolist()


def test_the_record_has_every_option_the_inputs_and_the_solvers(lab):
    config = lab.record["config"]
    assert (config["sample"], config["seed"], config["t_fwd_s"], config["time_limit_s"]) == (6, 0, 120.0, 10.0)
    assert config["formulations"] == ["choices", "counts_sos2"]
    assert [len(source["sha256"]) for source in lab.record["inputs"]["events"]["files"]] == [64]
    assert [each["backend"] for each in lab.record["backends"]] == ["cbc", "highs"]
    assert all(each["version"] and each["licence"] for each in lab.record["backends"])
    sampling = lab.record["sampling"]
    assert (sampling["asked"], sampling["taken"]) == (6, 6)
    assert sum(stratum["available"] for stratum in sampling["strata"]) == sampling["available"] > 1000


@pytest.mark.thorough
def test_decisions_and_pairs_are_the_same_for_the_same_seed(lab, tmp_path):
    again = compare_formulations(
        bfreplay.sample_events_path(),
        bfreplay.sample_jobs_path(),
        LabSettings(sample=6),
        formulations=["choices", "counts_sos2"],
        backends=["cbc", "highs"],
        out=tmp_path / "again",
    )
    first, second = (folder / "decisions.parquet" for folder in (lab.folder, again.folder))
    assert first.read_bytes() == second.read_bytes()
    for key in ("pairs", "left_out", "sampling", "inputs", "config", "backends", "versions"):
        assert again.record[key] == lab.record[key]


def test_the_text_says_who_wins_and_that_nothing_was_wrong(lab):
    text = render(lab)
    assert "fastest proof on" in text
    assert f"the decisions: {lab.record['winner']['pair']}; exact is" in text
    assert "Wrong       none" in text
    assert str(lab.folder) in text


@pytest.mark.slow
def test_every_failure_lands_in_its_own_column_and_costs_the_others_nothing(tmp_path):
    result = _tiny(
        settings=LabSettings(sample=2, time_limit_s=2.0, grace_s=2.0),
        backends=["cbc"],
        more_backends=[
            FAULTY + name for name in ("Aborts", "CallsSuboptimalOptimal", "Raises", "Refuses", "KnowsNothing")
        ],
        more_formulations=["tests.milp.faulty_formulations:RaisesInBuild"],
        out=tmp_path / "lab",
    )
    rows = {row["pair"]: row for row in result.record["summary"]}
    expected = {
        "exact": "proven",
        "choices on cbc": "proven",
        "choices on faulty": "crashed",
        "choices on CallsSuboptimalOptimal": "wrong",
        "choices on Raises": "error",
        "choices on Refuses": "refused",
        "choices on KnowsNothing": "no_answer",
        "RaisesInBuild on cbc": "error",
        "RaisesInBuild on faulty": "error",
    }
    for pair, outcome in expected.items():
        assert rows[pair][outcome] == 2, pair
        assert _outcomes(result, pair) == [outcome] * 2
    assert rows["choices on faulty"]["workers_lost"] == 2
    assert rows["choices on cbc"]["workers_lost"] == 0
    assert result.record["session"]["worker_starts"]["cbc"] == 1
    text = render(result)
    assert "2 answers wrong" in text
    assert "2 of choices on CallsSuboptimalOptimal" in text
    assert "2 answers crashed: 2 of choices on faulty" in text
    wrong = tmp_path / "lab" / "failures" / "choices-on-CallsSuboptimalOptimal"
    assert len(list(wrong.glob("*.mps"))) == len(list(wrong.glob("*.json"))) == 2
    kept = read_decision(sorted(wrong.glob("*.json"))[0])
    assert ExactSolver().solve(kept).objective == result.decisions["optimum"][0]
    assert not (tmp_path / "lab" / "failures" / "choices-on-cbc").exists()


@pytest.mark.thorough
def test_a_hanging_solver_is_killed_and_counted():
    settings = LabSettings(sample=2, time_limit_s=0.2, grace_s=0.2)
    result = _tiny(settings=settings, backends=["cbc", FAULTY + "Hangs"])
    assert _outcomes(result, "choices on faulty") == ["timed_out"] * 2
    told = result.answers[result.answers["pair"] == "choices on faulty"]["message"]
    assert told.str.contains("no answer after 0.4 s").all()
    assert result.summary.set_index("pair").loc["choices on faulty", "workers_lost"] == 2
    assert _outcomes(result, "exact") == ["proven"] * 2
    assert "2 answers killed at the deadline" in render(result)
    assert result.summary.set_index("pair").loc["choices on faulty", "sgm_s"] >= 0.2


def test_a_claim_that_a_decision_is_infeasible_is_wrong():
    result = _tiny(backends=["tests.milp.faulty_backends:ClaimsInfeasible"])
    assert _outcomes(result, "choices on faulty") == ["wrong"] * 4
    assert set(result.answers["solver_status"]) == {"optimal", "infeasible"}
    assert "none: no pair proved an optimum" in render(result)


@pytest.mark.slow
def test_a_worker_that_crashed_is_warm_again_before_the_next_pair_is_measured():
    settings = LabSettings(sample=2, time_limit_s=2.0, grace_s=2.0)
    result = _tiny(settings=settings, backends=[FAULTY + "CrashesEverySecondTime"])
    # the tiny decision is the first solve of every worker, so each of the two measured ones is a second: it crashes
    assert result.record["session"]["worker_starts"]["cbc"] == 3


def test_only_so_many_failures_of_a_kind_are_kept_unless_a_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(lab_module, "KEPT_FAILURES", 2)
    _tiny(backends=[FAULTY + "Raises"], out=tmp_path / "lab")
    assert len(list((tmp_path / "lab" / "failures" / "choices-on-faulty").iterdir())) == 4  # two models, two decisions
    _tiny(backends=[FAULTY + "Raises"], save_failures=tmp_path / "all")
    assert len(list((tmp_path / "all" / "choices-on-faulty").iterdir())) == 8


def test_without_out_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = _tiny(backends=[FAULTY + "Raises"])
    assert result.folder is None
    assert list(tmp_path.iterdir()) == []


def test_fewer_decisions_than_asked_are_all_taken_and_it_says_so():
    result = _tiny(settings=LabSettings(sample=500), backends=["cbc"])
    assert len(result.decisions) == result.record["sampling"]["available"]
    assert f"all {len(result.decisions)} that need a solver (500 requested)" in render(result)


def test_the_order_of_the_pairs_turns_from_decision_to_decision():
    order = []
    _tiny(
        formulations=["choices", "node_level"],
        backends=["cbc"],
        progress=lambda stage, done, total, what: order.append(what) if stage == "solve" else None,
    )
    assert order[:3] == ["exact", "choices on cbc", "node_level on cbc"]
    assert order[3:6] == ["choices on cbc", "node_level on cbc", "exact"]
    assert order[6:9] == ["node_level on cbc", "exact", "choices on cbc"]


def test_a_folder_that_exists_is_replaced_only_when_asked_and_only_if_it_is_a_lab(tmp_path):
    _tiny(backends=["cbc"], out=tmp_path / "lab")
    with pytest.raises(OutputExistsError, match="--force"):
        _tiny(backends=["cbc"], out=tmp_path / "lab")
    settings = LabSettings(sample=2)
    assert len(_tiny(settings=settings, backends=["cbc"], out=tmp_path / "lab", overwrite=True).decisions) == 2
    assert len(LabResult.load(tmp_path / "lab").decisions) == 2
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    with pytest.raises(OutputExistsError, match="not a lab folder"):
        _tiny(backends=["cbc"], out=tmp_path / "mine", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab", "mine"]


@pytest.mark.parametrize("stage", ["count", pytest.param("warm-up", marks=pytest.mark.thorough), "solve"])
def test_ctrl_c_leaves_no_folder_and_no_worker(tmp_path, monkeypatch, stage):
    workers = []

    class Watched(IsolatedBackend):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            workers.append(self)

    def interrupt(at, done, total, what):
        if at == stage and done > 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(trials_module, "IsolatedBackend", Watched)
    with pytest.raises(KeyboardInterrupt):
        _tiny(backends=["cbc", "highs"], out=tmp_path / "lab", progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert len(workers) == 2
    assert all(worker.worker_pid is None for worker in workers)


def test_pictures_that_fail_leave_no_folder(tmp_path):
    def fails(folder):
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError):
        _tiny(backends=["cbc"], out=tmp_path / "lab", pictures=fails)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sample": 0}, "sample is below 1"),
        ({"seed": -1}, "seed is below 0"),
        ({"time_limit_s": 0.0}, "time_limit_s is out of range"),
        ({"t_fwd_s": -1.0}, "forward-looking time"),
        ({"max_parallel": 0}, "max_parallel"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        _tiny(settings=LabSettings(**options), backends=["cbc"])


def test_a_back_end_that_is_named_and_does_not_work_is_refused():
    with pytest.raises(SolverUnavailableError, match="no licence found"):
        _tiny(backends=[FAULTY + "Unavailable"])


def test_what_is_no_lab_folder_is_refused(lab, tmp_path):
    with pytest.raises(InputError, match="not a lab folder"):
        LabResult.load(tmp_path)
    (tmp_path / "lab.json").write_text(json.dumps({**lab.record.to_json(), "schema_version": 99}))
    with pytest.raises(InputError, match="another schema version"):
        LabResult.load(tmp_path)


def test_every_column_of_every_table_is_documented():
    text = PAGE.read_text()
    names = {name for row in ROWS.values() for name in schema_of(row).names}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody may write: /proc")
def test_a_folder_that_cannot_be_written_is_an_input_error():
    with pytest.raises(InputError, match="cannot be written"):
        _tiny(backends=["cbc"], out=Path("/proc") / f"lab{os.getpid()}")


def test_within_the_gap_that_was_asked_for_is_what_was_asked_for():
    result = _tiny(settings=LabSettings(sample=4, relative_gap=0.5), backends=["highs", "scip"])
    for backend in ("highs", "scip"):
        assert _outcomes(result, f"choices on {backend}") == ["proven"] * 4
    assert (result.answers["relative_loss"] <= 0.5).all()


def test_what_a_gap_leaves_open_is_not_blamed_on_the_published_limit():
    """At most one node: the limit never binds, and a back end that stays at the start loses half within the gap."""
    few = log(6, [(10, 1, True), (20, 2, True), (30, 3, True)], 60, idle_first=range(1))
    one = JobSet([job(rates=tuple(10.0 * n for n in range(7)))])
    result = compare_formulations(
        few,
        one,
        LabSettings(sample=10, relative_gap=0.9),
        formulations=["published"],
        backends=[FAULTY + "CallsTheStartOptimal"],
    )
    row = result.summary.set_index("pair").loc["published on cbc"]
    assert row["proven"] > 0
    assert row["loss_worst"] > 0.1
    assert row["loss_proven_worst"] == 0.0
    assert "costs up to" not in render(result)


def test_every_option_reaches_the_back_end():
    settings = LabSettings(
        sample=2,
        time_limit_s=3.0,
        relative_gap=0.25,
        threads=2,
        solver_seed=7,
        warm_start=False,
        memory_limit_bytes=1 << 34,
    )
    result = _tiny(settings=settings, backends=[FAULTY + "TellsItsOptions"])
    told = result.answers[result.answers["pair"] != "exact"]["message"].tolist()
    said = "time_limit_s=3.0, relative_gap=0.25, threads=2, seed=7), start False, 17179869184"
    assert [said in message for message in told] == [True] * 2
    started = _tiny(settings=LabSettings(sample=2), backends=[FAULTY + "TellsItsOptions"])
    assert started.answers[started.answers["pair"] != "exact"]["message"].str.contains("start True").all()


def test_every_pair_gets_a_decision_whose_table_is_still_to_be_made():
    """Making it is a part of the build, and the pair that comes first would pay for all."""
    tables = []

    class Notes(Choices):
        name = "notes"

        def build(self, problem):
            tables.append("value" in vars(problem))
            return super().build(problem)

    _tiny(formulations=[Notes(), "choices"], backends=["cbc"])
    assert tables
    assert set(tables) == {False}


def test_optima_are_told_with_and_without_the_limit():
    six, one = log(6, [], 60, idle_first=range(6)), JobSet([job(rates=tuple(10.0 * n for n in range(7)))])
    result = compare_formulations(six, one, QUICK, formulations=["published"], backends=["cbc"])
    # 10 samples a node and second for 120 s, on 6 nodes or on the 3 of the limit
    assert result.answers.set_index("pair")["posed_optimum"].to_dict() == {"exact": 7200.0, "published on cbc": 3600.0}


def test_the_table_of_decisions_tells_their_sizes():
    sample = sample_decisions(EVENTS, JOBS, LabSettings(sample=100, **OPTIONS))
    result = _tiny(settings=LabSettings(sample=100), backends=["cbc"])
    sizes = result.decisions[["n_idle", "n_jobs", "n_held"]].to_numpy().tolist()
    assert sizes == [[d.problem.capacity, d.problem.n_jobs, d.problem.current.sum()] for d in sample.decisions]
    assert any(held for *_, held in sizes)


def test_an_answer_better_than_the_optimum_is_called_a_defect_and_a_slow_exact_solver_slow():
    result = _tiny(backends=["cbc"])
    exact, pair = result.record.summary
    found = msgspec.structs.replace(
        result.record,
        summary=[exact, msgspec.structs.replace(pair, better_than_exact=2)],
        winner=msgspec.structs.replace(result.record.winner, times_exact=0.25),
    )
    text = render(LabResult(found, None, {"answers": result.table("answers")}))
    assert "Defect      2 answers of choices on cbc better than the exact optimum" in text
    assert "exact takes 4.0 x its time" in text


def test_the_first_message_of_each_outcome_without_an_answer_is_shown():
    result = _tiny(backends=["cbc"])
    answers = result.table("answers")
    rows = answers.to_pylist()
    rows[-1] |= {"outcome": "error", "message": "build() failed:\nno x"}
    text = render(LabResult(result.record, None, {"answers": pa.Table.from_pylist(rows, answers.schema)}))
    assert "Example     choices on cbc, error: build() failed: no x" in text
    assert "Example" not in render(result)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.2e-5, "0.042"), (7.1e-4, "0.71"), (7.31e-3, "7.31"), (0.0152, "15.2"), (10.0, "10,000"), (None, "-")],
)
def test_milliseconds_have_three_digits(seconds, text):
    assert milliseconds(seconds) == text
