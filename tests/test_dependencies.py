"""Declared dependencies, their lowest versions, and what the back ends ask for."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from bfreplay.errors import InputError
from bfreplay.milp import linear_program
from bfreplay.milp.backends import cbc
from bfreplay.report.page import templates
from tests.conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def declared(*extras):
    """Direct dependencies of the package and of these extras, with those of extras that they name."""
    lists, found = [PROJECT["dependencies"]], {}
    lists += [PROJECT["optional-dependencies"][extra] for extra in extras]
    for each in lists:
        for requirement in map(Requirement, each):
            if requirement.name == PROJECT["name"]:
                lists += [PROJECT["optional-dependencies"][extra] for extra in requirement.extras]
            else:
                found[canonicalize_name(requirement.name)] = requirement
    return found


def pinned():
    lines = (REPOSITORY / "constraints-lowest.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def test_every_direct_dependency_is_pinned_at_its_lowest_declared_version_and_nothing_else_is():
    floors = {
        name: [Version(one.version) for one in requirement.specifier if one.operator == ">="]
        for name, requirement in declared("test").items()
    }
    assert {name: [Version(pin)] for name, pin in pinned().items()} == floors


def test_the_lowest_versions_are_allowed_ones():
    assert [name for name, one in declared("test").items() if not one.specifier.contains(pinned()[name])] == []


def test_the_pins_are_plain_and_name_no_address():
    for line in (REPOSITORY / "constraints-lowest.txt").read_text().splitlines()[1:]:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9.]+", line), line


def test_the_script_of_the_page_is_of_one_version_everywhere_and_put_where_the_page_looks_for_it():
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) - {"hatchling>=1.27"} <= set((REPOSITORY / "constraints.txt").read_text().splitlines())
    (place,) = re.findall(r'^PLACE = "(.*)"$', (REPOSITORY / "hatch_build.py").read_text(), re.MULTILINE)
    assert REPOSITORY / place == templates.HERE / "plotly.min.js"


def test_the_page_takes_the_script_that_was_installed_before_that_of_the_package_plotly(tmp_path, monkeypatch):
    assert templates._plotly_script().startswith("/**\n* plotly.js v")
    (tmp_path / "plotly.min.js").write_text("installed")
    monkeypatch.setattr(templates, "HERE", tmp_path)
    assert templates._plotly_script() == "installed"


def test_where_there_is_neither_script_nor_package_the_page_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "HERE", tmp_path)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InputError, match="pip install plotly"):
        templates._plotly_script()


ASKED = [
    *re.findall(
        r'unmet\("(\w+)", "([^"]+)"', "".join(each.read_text() for each in (REPOSITORY / "bfreplay").rglob("*.py"))
    ),
    ("highspy", linear_program.SOUND),
]


def test_requirements_in_the_code_are_those_of_the_project_file():
    extras = declared(*PROJECT["optional-dependencies"])
    assert {package for package, _ in ASKED} >= {"mip", "cbcbox", "pulp", "gurobipy", "pyscipopt", "ortools", "optuna"}
    assert [asked for asked in ASKED if Requirement("".join(asked)).specifier != extras[asked[0]].specifier] == []
    for asked in map(Requirement, re.findall(r"'(.*?)'", cbc.REQUIREMENT)):
        assert asked.specifier == declared()[asked.name].specifier


def test_the_citation_is_of_this_version_by_its_authors_and_of_the_paper():
    citation = (REPOSITORY / "CITATION.cff").read_text().splitlines()
    assert {f"version: {PROJECT['version']}", f"license: {PROJECT['license']}"} <= set(citation)
    assert [line for line in citation if line.startswith("  - name: ")] == [
        f"  - name: {author['name']}" for author in PROJECT["authors"]
    ]
    assert '        value: "arXiv:2106.12091"' in citation
