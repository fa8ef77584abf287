"""Who is compared with whom, and who is not and why."""

from __future__ import annotations

import pytest

from bfreplay.errors import InputError, SolverUnavailableError
from bfreplay.experiments.formulation_lab.pairs import distinct_names, plan_pairs
from bfreplay.milp.backends import BACKENDS, backend_of, why_not
from bfreplay.milp.formulations import FORMULATIONS
from bfreplay.milp.formulations.choices import Choices

FAULTY = "tests.milp.faulty_backends:"


def test_by_default_everything_that_works_here_is_compared():
    plan = plan_pairs()
    works = [name for name in BACKENDS.names() if not why_not(backend_of(name))]
    assert {pair.backend.name for pair in plan.pairs} == set(works)
    compared = {(pair.formulation.name, pair.backend.name) for pair in plan.pairs}
    left_out = {(each.formulation, each.backend) for each in plan.left_out if each.formulation and each.backend}
    assert compared | left_out == {(f, b) for f in FORMULATIONS.names() for b in works}
    assert not compared & left_out


def test_a_pair_that_cannot_be_is_named_with_the_reason():
    plan = plan_pairs(["choices", "published"], ["cbc"], more_backends=[FAULTY + "WithoutSets"])
    assert [pair.name for pair in plan.pairs] == ["choices on cbc", "choices on faulty", "published on cbc"]
    (refusal,) = plan.left_out
    assert (refusal.formulation, refusal.backend) == ("published", "faulty")
    assert "special ordered sets" in refusal.reason


def test_with_sets_reformulated_no_pair_is_refused_for_them():
    plan = plan_pairs(["published"], [FAULTY + "WithoutSets"], reformulate_sets=True)
    assert [pair.name for pair in plan.pairs] == ["published on faulty"]


def test_a_back_end_that_does_not_work_is_left_out_by_default_and_refused_when_named(monkeypatch):
    monkeypatch.setitem(BACKENDS.built_in, "sick", FAULTY + "Unavailable")
    monkeypatch.setitem(BACKENDS.built_in, "broken", "no.such.module:Class")
    reasons = {each.backend: each.reason for each in plan_pairs(["choices"]).left_out if not each.formulation}
    assert reasons["sick"] == "no licence found; pip install 'gurobipy>=13'"
    assert "cannot be imported" in reasons["broken"]
    with pytest.raises(SolverUnavailableError, match="sick does not work here: no licence found"):
        plan_pairs(["choices"], ["sick"])
    with pytest.raises(InputError, match="cannot be imported"):
        plan_pairs(["choices"], ["broken"])


def test_a_registered_formulation_that_cannot_be_made_is_left_out_by_default(monkeypatch):
    monkeypatch.setitem(FORMULATIONS.built_in, "broken", "tests.milp.faulty_formulations:RaisesWhenMade")
    plan = plan_pairs(backends=["cbc"])
    assert "broken" not in {pair.formulation.name for pair in plan.pairs}
    assert "no configuration found" in next(each.reason for each in plan.left_out if each.formulation == "broken")


def test_without_any_pair_there_is_nothing_to_compare():
    with pytest.raises(InputError, match="no pair") as caught:
        plan_pairs(["published"], [FAULTY + "WithoutSets"])
    assert "takes no special ordered sets" in str(caught.value)


def test_a_class_in_place_of_a_formulation_is_refused():
    with pytest.raises(InputError, match="Choices is a class"):
        plan_pairs([Choices], ["cbc"])
    assert [pair.name for pair in plan_pairs([Choices()], ["cbc"]).pairs] == ["choices on cbc"]


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="did you mean 'choices'"):
        plan_pairs(["choises"], ["cbc"])
    with pytest.raises(InputError, match="unknown back end"):
        plan_pairs(["choices"], ["cplex"])


def test_what_is_named_twice_is_compared_once_and_strangers_of_one_name_are_told_apart():
    plan = plan_pairs(["choices", "choices"], ["cbc", "cbc"], more_formulations=["choices", Choices()])
    assert [pair.name for pair in plan.pairs] == ["choices on cbc", "Choices (4) on cbc"]
    typed = [("cbc", "cbc"), ("m:Loud", "cbc"), ("m:Odd", "odd"), ("n:Loud", "cbc")]
    assert distinct_names(typed) == ["cbc", "Loud", "odd", "n:Loud"]


def test_a_strangers_class_never_takes_the_name_of_a_registered_one_in_either_order():
    theirs = ("mine:MyHighs", "highs")
    assert distinct_names([theirs, ("highs", "highs")]) == ["MyHighs", "highs"]
    assert distinct_names([("highs", "highs"), theirs]) == ["highs", "MyHighs"]
    assert distinct_names([theirs, ("other:MyHighs", "highs"), ("highs", "highs")]) == [
        "MyHighs",
        "other:MyHighs",
        "highs",
    ]
