"""``bfreplay jobs fit``: what it prints, writes and draws, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bfreplay.commands.jobs import fit
from bfreplay.datasets import load_jobs
from bfreplay.errors import BfreplayError, InputError, OutputExistsError
from bfreplay.scalability import Amdahl, CommunicationWeak, MeasuredLaw, UniversalScalability, fit_all
from tests.scalability.test_fitting import DESIGN, noisy

JOBS = "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\n"


def run(*words):
    """Standard output; what the command refuses is raised."""
    result = CliRunner().invoke(fit, [str(word) for word in words])
    if isinstance(result.exception, BfreplayError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def rates(law, scatter=0.03):
    return noisy(law, DESIGN, scatter, np.random.default_rng(0))


@pytest.fixture
def measured(tmp_path):
    file = tmp_path / "measured.csv"
    rows = [f"{n},{rate!r}" for n, rate in zip(DESIGN, rates(Amdahl(2831.0, 0.02)).tolist(), strict=True)]
    file.write_text("\n".join(["nodes,samples_per_s", *rows, ""]))
    return file


@pytest.fixture
def two(tmp_path):
    file = tmp_path / "two.csv"
    rows = ["curve,nodes,samples_per_s,repeat"]
    laws = {"bert/large": CommunicationWeak(100.0, 0.1, 0.01), "dlrm": UniversalScalability(9.0, 0.02, 2e-3)}
    for name, law in laws.items():
        for k, (n, rate) in enumerate(zip(DESIGN, rates(law).tolist(), strict=True)):
            rows.append(f"{name},{n},{rate!r},{k % 3}")
    file.write_text("\n".join([*rows, ""]))
    return file


def test_a_table_of_laws_with_verdicts_is_printed(measured):
    lines = run(measured, "--scaling", "strong").splitlines()
    assert lines[0].startswith("measured: 21 measurements at 7 node counts from 1 to 64; amdahl is used")
    assert any(line.startswith("amdahl") and line.endswith("best") for line in lines)
    assert any(line.startswith("power") and "does not fit" in line for line in lines)
    assert any(line.startswith("Strong scaling: the global batch is the same") for line in lines)
    assert not any(line.startswith(("gustafson", "communication-weak")) for line in lines)
    assert max(map(len, lines)) <= 120


def test_the_curves_written_are_those_fitted_and_jobs_can_use_them(two, tmp_path):
    out = tmp_path / "curves.toml"
    run(two, "-o", out, "--max-nodes", 128)
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(JOBS + "a,1,128,1,1,10,bert/large\nb,1,128,1,1,10,dlrm\n")
    first, second = load_jobs(jobs, out)
    fitted = fit_all(DESIGN, rates(CommunicationWeak(100.0, 0.1, 0.01))).curve
    assert first.throughput == MeasuredLaw(fitted, (1, 64))
    assert second.throughput.law.law == "usl"
    text = out.read_text()
    assert "# kappa: 0.00" in text
    assert "# warning: 128 nodes lie beyond the 64 measured" in text


def test_json_holds_every_curve_and_interval(two):
    document = json.loads(run(two, "--json"))
    assert list(document) == ["bert/large", "dlrm"]
    assert document["dlrm"]["best"] == "usl"
    kappa = document["dlrm"]["fits"][0]["parameters"]["kappa"]
    assert kappa["low"] < 2e-3 < kappa["high"]
    assert document["dlrm"]["left_out"][0]["law"] == "amdahl"


def test_a_named_law_alone_is_fitted(measured):
    document = json.loads(run(measured, "--law", "usl", "--json"))
    assert [each["law"] for each in document["measured"]["fits"]] == ["usl"]


@pytest.mark.slow
def test_pictures_are_drawn_one_for_each_curve(measured, two, tmp_path):
    run(measured, "--picture", tmp_path / "fit.svg")
    assert (tmp_path / "fit.svg").read_text().startswith("<?xml")
    run(two, "--picture", tmp_path / "fit.png")
    assert sorted(file.name for file in tmp_path.glob("*.png")) == ["fit-bert_large.png", "fit-dlrm.png"]


def test_files_that_are_there_are_kept_unless_forced(measured, tmp_path):
    out, picture = tmp_path / "c.toml", tmp_path / "p.png"
    for file, option in ((out, "-o"), (picture, "--picture")):
        file.write_text("mine")
        with pytest.raises(OutputExistsError, match="--force"):
            run(measured, option, file)
        assert file.read_text() == "mine"
    run(measured, "-o", out, "--picture", picture, "--force")
    assert "law = " in out.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--law", "amdal"], "did you mean 'amdahl'"),
        (["--law", "amdahl", "--scaling", "weak"], "amdahl describes strong scaling, and --scaling says weak"),
        (["-o", "curves.csv"], "curves are written as TOML"),
        (["--picture", "fit.pdf"], "pictures have another format"),
    ],
)
def test_options_that_make_no_sense_are_refused(measured, words, says):
    with pytest.raises(InputError, match=says):
        run(measured, *words)


def test_a_law_that_cannot_fall_is_refused_by_name_curve_and_count(two):
    with pytest.raises(InputError, match=r"curve 'dlrm': the rates fall from (16|32) nodes on, which amdahl cannot"):
        run(two, "--law", "amdahl")


def test_seconds_per_step_are_refused_with_the_file(tmp_path):
    file = tmp_path / "steps.csv"
    file.write_text("nodes,samples_per_s\n1,8.0\n2,4.1\n4,2.2\n")
    with pytest.raises(InputError, match="seconds per step") as caught:
        run(file)
    assert caught.value.file == str(file)


def test_names_that_would_share_a_picture_are_refused(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text("curve,nodes,samples_per_s\na/b,1,1\na/b,2,2\na b,1,1\na b,2,2\n")
    with pytest.raises(InputError, match="would have one name"):
        run(file, "--picture", tmp_path / "p.png")


@pytest.mark.slow
def test_curves_measured_from_many_nodes_up_say_so_in_text_json_and_file_and_jobs_begin_there(tmp_path):
    measured, out, jobs = (tmp_path / name for name in ("measured.csv", "curves.toml", "jobs.csv"))
    rows = [f"{n},{rate}" for n, rate in ((64, 20.8), (128, 41.0), (256, 80.9), (512, 159.0), (1024, 308.0))]
    measured.write_text("\n".join(["nodes,samples_per_s", *rows, *rows, ""]))
    said = "nothing was measured below 64 nodes"
    assert said in run(measured, "-o", out)
    assert f"# warning: {said}" in out.read_text()
    document = json.loads(run(measured, "--json"))["measured"]
    assert document["min_nodes"] == 64
    assert any(each.startswith(said) for each in document["warnings"])
    jobs.write_text(JOBS.replace("min_nodes,", "") + "a,256,1,1,10,measured\n")
    (job,) = load_jobs(jobs, out)
    assert (job.min_nodes, job.throughput.measured) == (64, (64, 1024))
