"""A class of tests that names nothing, or a thing of another kind, is told in a sentence what to write."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bfreplay.policies import EqualSharePolicy
from bfreplay.testing import (
    FormulationContract,
    JobSourceContract,
    ObjectiveContract,
    PolicyContract,
)

CONTRACTS = {
    "policy": (PolicyContract, "make", "policy", "policy = Mine, your class itself"),
    "formulation": (FormulationContract, "make", "formulation", "formulation = Mine, your class itself"),
    "source": (JobSourceContract, "make", "job source", "source = Mine, your class itself"),
    "objective": (ObjectiveContract, "make_objective", "objective", 'objective = "mine:function"'),
}


FORGOTTEN = """
from bfreplay.testing import BackendContract, FormulationContract

class TestForgotten(FormulationContract):
    pass

class TestByItsClass(BackendContract):
    backend = BackendContract
"""


class NeitherPolicyNorFormulation:
    pass


@pytest.mark.parametrize("attribute", CONTRACTS)
@pytest.mark.parametrize("named", [None, 5, "mine:Mine", NeitherPolicyNorFormulation, EqualSharePolicy])
def test_what_to_test_is_asked_for_in_a_sentence(attribute, named):
    contract_class, method, kind, line = CONTRACTS[attribute]
    contract = type("TestMine", (contract_class,), {} if named is None else {attribute: named})()
    if (attribute, named) in (("objective", "mine:Mine"), ("policy", EqualSharePolicy)):
        return  # of the right kind
    with pytest.raises(pytest.fail.Exception) as failure:
        getattr(contract, method)()
    message = str(failure.value)
    assert "TestMine" in message
    assert (
        f"which {kind} to test" in message
        or f"{attribute} of TestMine is no class" in message
        or "it has no" in message
    )
    assert line in message or re.search(r"no (decide|build|read|begin)[\s\S]*fix: write them", message)


@pytest.mark.slow
def test_the_tests_of_a_stranger_say_it_plainly(tmp_path):
    (tmp_path / "test_mine.py").write_text(FORGOTTEN)
    tests = [sys.executable, "-m", "pytest", "-q", "-k", "says_what_it_is", "-p", "no:cacheprovider", "test_mine.py"]
    output = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "TestForgotten does not say which formulation to test" in output
    assert 'fix: write in it: backend = "module:Class"' in output
    assert "Traceback" not in output
    assert "AttributeError" not in output
