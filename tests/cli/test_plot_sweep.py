"""``bfreplay plot sweep``: a picture of a sweep's folder."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from bfreplay.cli import main

SPEC = """
[run]
cluster = "v100=1,k80=1"
curves = "sample"
jobs = "gavel(n=3, jobs_per_hour=9, seed={draw})"

[vary]
round = [360, 720]
draw = [0, 1]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sweep")
    picture = '[picture]\nx = "round"\ny = ["average_jct_s"]\n'
    (place / "spec.toml").write_text(SPEC + 'policy = ["gavel.fifo_perf"]\n' + picture)
    done = CliRunner().invoke(main, ["sweep", str(place / "spec.toml"), "--out", str(place / "out"), "--quiet"])
    assert done.exit_code == 0, done.output
    return place / "out"


def call(*words: object):
    return CliRunner().invoke(main, ["plot", *map(str, words)])


def refused(*words: object) -> str:
    done = call(*words)
    assert done.exit_code == 2, done.output
    return re.sub(r"[\s│]+", " ", done.output)


@pytest.mark.slow
def test_a_sweep_is_drawn_and_says_what_a_point_is_the_mean_of(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("sweep", folder, "--x", "round", "--y", "average_jct_s,cost", "--by", "policy")
    assert done.exit_code == 0, done.output
    assert done.stdout == "wrote sweep.png\n"
    assert "differ in draw (2 values)" in done.stderr
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    quiet = call("sweep", folder, "--x", "draw", "--y", "average_jct_s", "--by", "round", "-o", "x.svg", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("wrote x.svg\n", "")
    assert "round 360" in (tmp_path / "x.svg").read_text()
    assert "exists already" in refused("sweep", folder, "--x", "round", "--y", "cost")


@pytest.mark.slow
def test_a_spec_with_a_picture_has_it_drawn_by_the_sweep(folder):
    assert "<svg" in (folder / "picture.svg").read_text()
    again = CliRunner().invoke(main, ["sweep", str(folder.parent / "spec.toml"), "--out", str(folder)])
    assert "picture.svg" in again.stdout
    as_json = CliRunner().invoke(main, ["sweep", str(folder.parent / "spec.toml"), "--out", str(folder), "--json"])
    assert as_json.stdout.startswith("[")


@pytest.mark.slow
def test_what_is_missing_or_misplaced_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "takes one sweep, --x COLUMN and --y COLUMN" in refused("sweep", folder, "--x", "round")
    assert "takes one sweep" in refused("sweep", folder, folder, "--x", "round", "--y", "cost")
    assert "--by applies to 'sweep' only" in refused("timeline", folder, "--by", "policy")
    assert "--log-y applies to 'sweep' only" in refused("timeline", folder, "--linear-y")
    assert "did you mean 'cost'?" in refused("sweep", folder, "--x", "round", "--y", "costs")
    assert "not a sweep folder" in refused("sweep", tmp_path, "--x", "round", "--y", "cost")
    assert "sweep " in call("--list").output
    assert list(tmp_path.iterdir()) == []
