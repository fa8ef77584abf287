"""Same content, same id; anything else, another."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import pytest

from bfreplay.errors import InputError
from bfreplay.experiments.declared_options import FILE_OPTIONS
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep.identity import content_of, id_of
from bfreplay.experiments.sweep.plan import plan_runs
from bfreplay.experiments.sweep.spec import spec_of_options
from bfreplay.options import option_name
from tests.experiments.sweep.small_sweeps import options, write_files

CAMPAIGN = """
[campaign]
name = "c"
kind = "hpo"
trials = 3
proposer = "{proposer}"
[trial]
epochs = 2
samples_per_epoch = 1000
min_nodes = 1
max_nodes = 2
scale_up_cost_s = 1
scale_down_cost_s = 1
curve = "0:0 1:10 2:18"
[search.lr]
low = 0.1
high = 0.9
"""


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


def _ids(*runs: RunOptions) -> list[str]:
    return list(plan_runs(spec_of_options(runs)).ids)


def test_names_paths_and_the_way_numbers_are_written_do_not_count(files):
    (files / "sub").mkdir()
    shutil.copy(files / "events.csv", files / "sub" / "other.csv")
    run = options(files, window=("2024-05-01", "2024-05-01T00:30"))
    same = [
        run,
        replace(run, events=files / "sub" / "other.csv"),
        replace(run, t_fwd=120),
        replace(run, window=("1714521600", "2024-05-01T02:30+02:00")),
    ]
    assert len(set(_ids(*same))) == 1


def test_defaults_count_as_what_they_are(files):
    run = options(files, policy="bftrainer")
    assert len(set(_ids(run, replace(run, objective="own"), replace(run, formulation="counts")))) == 1
    cbc = replace(run, solver="cbc")
    assert len(set(_ids(cbc, replace(cbc, formulation="choices_reduced")))) == 1
    assert _ids(run) != _ids(cbc)


def test_options_that_change_nothing_do_not_count(files):
    run = options(files, policy="bftrainer")
    assert len(set(_ids(run, replace(run, time_limit=3, threads=2), replace(run, measurement_noise=0.1)))) == 1
    cbc = replace(run, solver="cbc")
    assert len(set(_ids(cbc, replace(cbc, time_limit=3)))) == 2
    share = options(files)
    assert len(set(_ids(share, replace(share, solver="cbc"), replace(share, solver="highs", threads=2)))) == 1


def test_no_option_without_effect_is_part_of_the_identity(files):
    for run in (
        options(files),
        options(files, policy="bftrainer"),
        options(files, policy="gavel.fifo", measure=(0, 1)),
        options(files, policy="bftrainer", solver="cbc", learn_curves="job"),
    ):
        prepared = run.prepare()
        counted = content_of(run, prepared.log, prepared.jobs)["options"]
        prepared.policy.close()
        left_out = {*FILE_OPTIONS, "window", *map(option_name, run.without_effect())}
        given = {*run.to_json(), "objective", "formulation", "max-parallel"}
        assert set(counted) == given - left_out


@pytest.mark.parametrize(
    "changed",
    [
        {"t_fwd": 60},
        {"max_parallel": 3},
        {"unlimited_work": True},
        {"window": ("2024-05-01", "2024-05-01T00:30")},
        {"semantics": "published"},
        {"record_nodes": True},
        {"efficiency": False},
        {"bound": True},
        {"policy": "bftrainer"},
        {"learn_curves": "job"},
    ],
    ids=str,
)
def test_what_changes_a_result_changes_the_id(files, changed):
    run = options(files)
    assert len(set(_ids(run, replace(run, **changed)))) == 2


def test_a_policy_counts_as_what_it_is_however_it_is_written(files):
    run = options(files, policy="foresight(events=3)")
    same = [run, replace(run, policy="foresight( events = 3 )")]
    assert len(set(_ids(*same))) == 1
    assert _ids(run) != _ids(replace(run, policy="foresight(events=4)"))
    both = ["look-ahead(events=2, futures=3)", "look-ahead(futures=3, events=2)"]
    assert len(set(_ids(*(replace(run, policy=policy) for policy in both)))) == 1
    (settled,) = plan_runs(spec_of_options([replace(run, policy="foresight")])).runs.values()
    default = settled.content["options"]["policy"]
    assert default.startswith("foresight(")
    assert _ids(replace(run, policy=default)) == _ids(replace(run, policy="foresight"))
    share = options(files)
    assert len(set(_ids(share, replace(share, policy=" equal-share ", solver="cbc")))) == 1


def test_a_seed_counts_where_something_is_drawn(files):
    run = options(files)
    learning = replace(run, policy="bftrainer", learn_curves="job")
    assert len(set(_ids(run, replace(run, seed=1)))) == 1
    assert len(set(_ids(learning, replace(learning, seed=1)))) == 1
    for drawing in (replace(run, semantics="published"), replace(learning, measurement_noise=0.1)):
        assert len(set(_ids(drawing, replace(drawing, seed=1)))) == 2


def test_the_content_of_a_file_counts(files):
    before = _ids(options(files))
    (files / "jobs.csv").write_text((files / "jobs.csv").read_text().replace("50000", "60000"))
    assert _ids(options(files)) != before


def test_code_that_is_named_counts(files, monkeypatch):
    monkeypatch.syspath_prepend(str(files))
    monkeypatch.delitem(sys.modules, "noting", raising=False)  # the one of another test
    run = options(files, policy="noting:Noting")
    before = _ids(run)
    assert _ids(run) == before
    (files / "noting.py").write_text((files / "noting.py").read_text() + "\n# another version\n")
    assert _ids(run) != before


def test_code_that_an_objective_or_a_campaign_names_counts(files, monkeypatch):
    monkeypatch.syspath_prepend(str(files))
    monkeypatch.delitem(sys.modules, "worth", raising=False)
    (files / "worth.py").write_text(
        "def worth(state, counts):\n    return counts * 1.0\ndef score(trial, params, epochs):\n    return epochs\n"
    )
    (files / "c.toml").write_text(CAMPAIGN.format(proposer="random") + '[scores]\nfunction = "worth:score"\n')
    for run in (
        options(files, policy="bftrainer", objective="0.5*throughput + 0.5*worth:worth"),
        options(files, jobs=files / "c.toml", allow_code=True),
    ):
        (found,) = plan_runs(spec_of_options([run])).runs.values()
        assert len(found.content["code"]) == 1
        assert all(place.startswith("worth:") and len(digest) == 64 for place, digest in found.content["code"].items())


def test_versions_of_the_solver_and_of_optuna_count_where_they_are_used(files):
    (files / "tpe.toml").write_text(CAMPAIGN.format(proposer="optuna"))
    (files / "random.toml").write_text(CAMPAIGN.format(proposer="random"))
    plan = plan_runs(
        spec_of_options(
            [
                options(files, policy="bftrainer"),
                options(files, policy="bftrainer", solver="cbc"),
                options(files, jobs=files / "tpe.toml"),
                options(files, jobs=files / "random.toml", bound=True),
            ]
        )
    )
    exact, cbc, tpe, plain = (plan.runs[run_id].content for run_id in plan.ids)
    assert exact["solver"] is None
    assert exact["scipy"] is None
    assert plain["scipy"][0].isdigit()
    assert "mip" in cbc["solver"]
    assert tpe["optuna"][0].isdigit()
    assert plain["optuna"] is None


def test_the_content_has_no_path(files):
    run = options(files, policy="bftrainer", solver="cbc")
    prepared = run.prepare()
    content = content_of(run, prepared.log, prepared.jobs)
    prepared.policy.close()
    assert str(files) not in str(content)
    assert "events.csv" not in str(content)
    assert len(id_of(content)) == 16


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"events": "nowhere.csv"}, "no such file"),
        ({"jobs": "nowhere.csv"}, "no such file"),
        ({"policy": "equal-shore"}, "unknown policy"),
        ({"policy": "bftrainer", "objective": "thruput"}, "unknown objective"),
        ({"solver": "cplex"}, "unknown solver"),
        ({"window": ("2023-01-01", "2023-01-02")}, "outside the log"),
        ({"objective": "throughput"}, "takes no objective"),
    ],
)
def test_whatever_can_be_known_at_once_is_refused_before_anything_runs(files, changed, says):
    with pytest.raises(InputError, match=says):
        _ids(options(files), options(files, **changed))


def test_a_campaign_under_the_published_clock_is_refused_at_once(files):
    (files / "c.toml").write_text(CAMPAIGN.format(proposer="random"))
    with pytest.raises(InputError, match="semantics"):
        _ids(options(files, jobs=files / "c.toml", semantics="published"))
