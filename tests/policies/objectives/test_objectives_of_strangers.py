"""Objectives by name, with parameters, from anywhere; and what is said when one does not work."""

from __future__ import annotations

import numpy as np
import pytest

import bfreplay
from bfreplay.errors import InputError
from bfreplay.policies import BFTrainerPolicy
from bfreplay.policies.objectives.catalogue import OBJECTIVES, objective_of
from bfreplay.policies.objectives.own import OwnObjective
from tests.policies.objectives import strangers
from tests.policies.small_states import state_of

HERE = strangers.__name__
STATE = state_of([[0, 1, 2, 3]] * 2, 3, job=[5, 8], max_nodes=[3, 2])


def gain(spec, state=STATE, t_fwd_s=1.0):
    return objective_of(spec).problem(state, t_fwd_s).gain


def test_a_function_is_named_by_its_module_and_set_by_its_parameters():
    assert gain(f"{HERE}:steps").tolist() == [[0, 0, 2, 2]] * 2
    assert gain(f"{HERE}:steps(height=5)").tolist() == [[0, 0, 5, 5]] * 2
    assert gain(f"{HERE}:by_position(height=3)").tolist() == [[0, 3, 6, 9]] * 2
    assert gain(f"{HERE}:needs_one(height=4)").tolist() == [[4] * 4] * 2


def test_a_function_that_wants_the_forward_looking_time_gets_it():
    assert gain(f"{HERE}:over_the_time", t_fwd_s=20.0).tolist() == [[400.0] * 4] * 2
    with pytest.raises(InputError, match=r"no parameter 't_fwd_s'(.|\n)*the policy's forward-looking time is used"):
        objective_of(f"{HERE}:over_the_time(t_fwd_s=3)")


def test_the_record_holds_every_parameter_and_what_makes_it_again():
    made = objective_of(f"2*{HERE}:steps(height=5) + cost")
    assert made.describe() == {
        "spec": f"2*{HERE}:steps(height=5) + cost",
        "terms": [
            {"name": f"{HERE}:steps", "weight": 2.0, "parameters": {"height": 5, "shape": "square"}},
            {"name": "cost", "weight": 1.0, "parameters": {"price": 0.5}},
        ],
    }
    assert objective_of(f"{HERE}:Whole(share=1)").describe()["terms"] == [
        {"name": f"{HERE}:Whole", "weight": 1.0, "parameters": {"share": 1, "name": "x"}}
    ]


def test_the_default_is_read_from_the_replays_table_without_a_second_check():
    assert isinstance(objective_of("own"), OwnObjective)
    assert objective_of("own").describe() == {**objective_of("1*own").describe(), "spec": "own"}


def test_columns_beyond_max_nodes_are_not_read():
    spec = f"{HERE}:anything_beyond_the_most"
    for each in (spec, f"{spec} + throughput"):
        decision = BFTrainerPolicy(60.0, objective=each).decide(STATE)
        assert decision.counts.sum() == 3
    assert np.isfinite(gain(f"{spec} + throughput")[0]).all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("troughput", r"unknown objective 'troughput'(.|\n)*package.module:function(.|\n)*did you mean 'throughput'\?"),
        ("0.5*throughput + 0.5*max_min", r"unknown objective 'max_min'(.|\n)*did you mean 'max-min'\?"),
        ("cost(prise=1)", r"'cost' has no parameter 'prise'(.|\n)*did you mean 'price'\?"),
        ("own(price=1)", r"'own' has no parameter 'price'(.|\n)*own, without brackets"),
        ("cost(price=cheap)", r"'price' of the objective 'cost' is no number(.|\n)*'cheap'(.|\n)*default 0.5"),
        ("cost(price=true)", "'price' of the objective 'cost' is no number"),
        (f"{HERE}:needs_one", r"needs 'height'(.|\n)*needs_one\(height=VALUE\)"),
        (f"{HERE}:steps(table=3)", "has no parameter 'table'"),
        (f"{HERE}:absent", "cannot be imported: AttributeError"),
        ("nowhere_at_all:mine", r"cannot be imported: ModuleNotFoundError(.|\n)*package.module:function"),
        (f"{HERE}:NUMBER", "neither a function nor a class"),
        ("bfreplay.policies.equal_share:EqualSharePolicy", "is no objective: it has no problem"),
        (f"{HERE}:NeverMade", r"NeverMade' cannot be made: KeyError: 'x' \(strangers.py, line \d+\)"),
        (f"throughput + {HERE}:Whole", "no term of a sum"),
        ("builtins:max", "parameters of the objective 'builtins:max' cannot be told"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_replayed(spec, message):
    with pytest.raises(InputError, match=message):
        objective_of(spec)


AT = "2023-11-14T22:13:20"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", rf"failed at {AT}.*: KeyError: 3 \(strangers.py, line \d+\)"),
        ("refuses", "no model of this name is known"),
        ("forgets_to_return", rf"no table of numbers at {AT}(.|\n)*NoneType(.|\n)*is a return missing"),
        ("of_the_wrong_shape", r"float64 array of shape \(4,\)(.|\n)*a float64 array of shape \(2, 4\)"),
        ("of_text", "<U4 array"),
        ("of_truth", "bool array"),
        ("of_a_list", "'list'"),
        (
            "not_a_number_on_two_nodes",
            rf"no finite number(.|\n)*at {AT}(.|\n)*row: +job number 8(.|\n)*column: +2 nodes(.|\n)*value: +nan",
        ),
        ("infinite", "row: +job number 5(.|\n)*column: +1 nodes(.|\n)*value: +-inf"),
        ("too_large", "column: +0 nodes(.|\n)*value: +1e\\+31(.|\n)*up to 1e\\+30"),
        ("gives_up_what_is_no_number", "value: +inf"),
        ("Raises", rf"failed at {AT}.*: ZeroDivisionError: .* \(strangers.py, line \d+\)"),
        ("Refuses", "no model of this name is known"),
        ("ForgetsToReturn", "posed another decision(.|\n)*NoneType(.|\n)*is a return missing"),
        ("PosesForOneJob", "posed another decision(.|\n)*'1 jobs'(.|\n)*of 2 jobs"),
        ("PosesNoNumbers", rf"no sound decision at {AT}.*: gain holds a number that is not finite"),
    ],
)
def test_a_broken_answer_is_named_with_job_count_value_and_time(name, message):
    objective = objective_of(f"{HERE}:{name}")
    with pytest.raises(InputError, match=message) as refused:
        objective.problem(STATE, 60.0)
    assert name in str(refused.value) or "no model" in message


def test_a_replay_that_an_objective_stops_leaves_nothing_behind(tmp_path):
    log = bfreplay.load_events(bfreplay.sample_events_path())
    jobs = bfreplay.load_jobs(bfreplay.sample_jobs_path())
    policy = BFTrainerPolicy(60.0, objective=f"{HERE}:fails_when_something_has_been_made")
    with pytest.raises(InputError, match="has_been_made' returned no table of numbers at 2024-"):
        bfreplay.replay_log(log, jobs, policy, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_other_packages_announce_theirs_by_an_entry_point(monkeypatch):
    def announced(group, path):
        return {"steps": f"{HERE}:steps"} if group == "bfreplay.objectives" else {}

    monkeypatch.setattr("bfreplay.registry._entry_points_by_name", announced)
    assert OBJECTIVES.names()[-1] == "steps"
    assert gain("steps(height=1)").tolist() == [[0, 0, 1, 1]] * 2
    with pytest.raises(InputError, match="did you mean 'steps'"):
        objective_of("stebs")
