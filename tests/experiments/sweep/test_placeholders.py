"""Parameters of a sweep that stand in the texts of options."""

from __future__ import annotations

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.sweep.spec import read_spec, spec_of

RUN = {"events": "sample", "jobs": "gavel(n={many}, seed={draw})", "policy": "gavel.{policy_name}(seed={draw})"}


def test_a_parameter_is_filled_into_every_text_and_has_a_column():
    vary = {"draw": [0, 1], "t-fwd": [60], "policy_name": ["fifo", "gandiva"]}
    spec = spec_of({"run": {**RUN, "many": 5}, "vary": vary})
    assert spec.columns == ("draw", "t_fwd", "policy_name")
    assert [tuple(point.cells.values()) for point in spec.points][1:3] == [(0, 60, "gandiva"), (1, 60, "fifo")]
    assert [(point.options.jobs, point.options.policy) for point in spec.points][1:3] == [
        ("gavel(n=5, seed=0)", "gavel.gandiva(seed=0)"),
        ("gavel(n=5, seed=1)", "gavel.fifo(seed=1)"),
    ]


def test_values_are_written_as_the_text_needs_them():
    jobs = "gavel(n=3, jobs_per_hour={load}, multi_gpu={wide})"
    spec = spec_of({"run": {"events": "sample", "jobs": jobs}, "vary": {"load": [0.4, 2.0, 3], "wide": [True]}})
    assert [point.options.jobs for point in spec.points] == [
        f"gavel(n=3, jobs_per_hour={load}, multi_gpu=true)" for load in ("0.4", "2", "3")
    ]
    assert [point.cells["load"] for point in spec.points] == [0.4, 2.0, 3]


def test_labels_and_single_runs_may_set_parameters():
    spec = spec_of(
        {
            "run": {**RUN, "draw": 7, "policy_name": "fifo"},
            "vary": {"size": {"small": {"many": 1, "max-parallel": 2}, "large": {"many": 9}}},
            "runs": [{"many": 3, "draw": 8}, {"size": "small", "draw": 9}],
        }
    )
    assert spec.columns == ("size", "many", "draw")
    assert [point.options.jobs for point in spec.points] == [
        "gavel(n=1, seed=7)",
        "gavel(n=9, seed=7)",
        "gavel(n=3, seed=8)",
        "gavel(n=1, seed=9)",
    ]
    assert [point.cells["many"] for point in spec.points] == [1, 9, 3, 1]


def test_a_path_with_a_parameter_counts_from_the_folder_and_is_shown_filled(tmp_path):
    (tmp_path / "s.toml").write_text('[run]\nevents = "sample"\n[vary]\njobs = ["{set}-{{x}}.csv"]\nset = ["a", "b"]\n')
    points = read_spec(tmp_path / "s.toml").points
    assert [point.options.jobs for point in points] == [str(tmp_path / "a-{x}.csv"), str(tmp_path / "b-{x}.csv")]
    assert [point.cells["jobs"] for point in points] == ["a-{x}.csv", "b-{x}.csv"]


def test_a_window_may_have_parameters():
    window = ["2024-07-{day}T00:00", "2024-07-{day}T12:00"]
    spec = spec_of({"run": {"events": "sample", "jobs": "sample", "window": window}, "vary": {"day": ["01", "02"]}})
    assert [point.options.window[0] for point in spec.points] == ["2024-07-01T00:00", "2024-07-02T00:00"]


@pytest.mark.parametrize(
    ("text", "says", "where"),
    [
        ("jobs = 'gavel(n={many})'\n", "the placeholder {many} has no value", "[run]"),
        ("jobs = 'sample'\n[vary]\nmany = [1]\n", "'many' in [vary] is neither an option nor a placeholder", "[vary]"),
        ("jobs = 'gavel(n={many})'\n[vary]\nmayn = [1]\n", "did you mean 'many'?", "[vary]"),
        ("jobs = 'gavel(n={many})'\n[vary]\nmany = []\n", "many in [vary] has no values", "[vary] many"),
        ("jobs = 'gavel(n={many})'\n[vary]\nmany = [[1]]\n", "many cannot be part of a text", "[vary] many"),
        (
            "jobs = 'gavel(seed={seed})'\n[vary]\nseed = [1]\n",
            "{seed} cannot have this name: it is an option",
            "the file",
        ),
        ("jobs = 'gavel(n={samples})'\n", "a column of the results", "the file"),
        ("jobs = 'gavel(n={size})'\n[vary.size]\nsmall = { t-fwd = 1 }\n", "it is a placeholder", "[vary.size]"),
        ("jobs = 'sample'\nt-fwd = '{t}'\n[vary]\nt = [60]\n", "neither a number nor 'auto'", "t = 60"),
        ("jobs = 'gavel(n={many})'\n[[runs]]\nmany = 1\n[[runs]]\nmnay = 1\n", "has no key 'mnay'", "[[runs]] 2"),
    ],
)
def test_placeholders_without_values_and_values_without_placeholders_are_refused(tmp_path, text, says, where):
    (tmp_path / "sweep.toml").write_text("[run]\nevents = 'sample'\n" + text)
    with pytest.raises(InputError) as caught:
        read_spec(tmp_path / "sweep.toml")
    assert says in str(caught.value)
    assert where in str(caught.value)
    assert str(tmp_path / "sweep.toml") in str(caught.value)
