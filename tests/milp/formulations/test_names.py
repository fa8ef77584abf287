"""Formulations by name."""

from __future__ import annotations

import pytest

from bfreplay.errors import InputError
from bfreplay.milp.formulations import FORMULATIONS, formulation_of
from tests.milp.formulations.checking import ALL


@pytest.mark.parametrize("name", ALL)
def test_a_formulation_has_the_name_it_is_registered_by(name):
    assert formulation_of(name).name == name


def test_an_unknown_name_is_refused_with_what_exists_and_the_nearest():
    with pytest.raises(InputError) as caught:
        formulation_of("choises")
    assert "published, node_level, counts_sos2, counts_segments, choices, choices_reduced" in str(caught.value)
    assert "did you mean 'choices'?" in str(caught.value)


def test_a_strangers_class_is_found_by_module_and_name():
    assert formulation_of("bfreplay.milp.formulations.choices:Choices").name == "choices"


@pytest.mark.parametrize(
    "location", ["no.such.module:Class", "bfreplay.milp.formulations.choices:Chioces", "json:loads", ":"]
)
def test_a_location_that_cannot_be_imported_is_refused(location):
    with pytest.raises(
        InputError, match=rf"the formulation '{location}' (cannot be imported|is no class|is not spelled)"
    ):
        formulation_of(location)


def test_other_packages_announce_formulations_by_entry_point(monkeypatch):
    theirs = {"theirs": "bfreplay.milp.formulations.choices:Choices"}
    monkeypatch.setattr("bfreplay.registry._entry_points_by_name", lambda group, path: theirs)
    assert FORMULATIONS.names() == [*ALL, "theirs"]
    assert formulation_of("theirs").name == "choices"
