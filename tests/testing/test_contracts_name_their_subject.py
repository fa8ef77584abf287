"""A class of tests that names nothing, or a thing of another kind, fails with a sentence that says what to write."""

import subprocess
import sys

import pytest

from bfreplay.policies import EqualSharePolicy
from bfreplay.testing import FormulationContract, JobSourceContract, ObjectiveContract, PolicyContract

CONTRACTS = {
    "policy": (PolicyContract, "make", "policy = Mine, your class with decide, from_options"),
    "formulation": (FormulationContract, "make", "formulation = Mine, your class with build, read"),
    "source": (JobSourceContract, "make", "source = Mine, your class with begin, ask, tell, describe"),
    "objective": (ObjectiveContract, "make_objective", 'objective = "mine:Mine", its name as a text'),
}
FORGOTTEN = """
from bfreplay.testing import BackendContract, FormulationContract

class TestForgotten(FormulationContract):
    pass

class TestByItsClass(BackendContract):
    backend = BackendContract
"""


class NoPlugIn:
    pass


@pytest.mark.parametrize("attribute", CONTRACTS)
@pytest.mark.parametrize("named", [None, 5, NoPlugIn, EqualSharePolicy()])
def test_a_contract_without_a_plug_in_of_its_kind_says_what_to_write(attribute, named):
    contract_class, method, line = CONTRACTS[attribute]
    contract = type("TestMine", (contract_class,), {} if named is None else {attribute: named})()
    with pytest.raises(pytest.fail.Exception) as failure:
        getattr(contract, method)()
    problem, expected = str(failure.value).splitlines()
    assert problem == f"TestMine does not say what to test: {attribute} is {named!r}"
    assert expected == f"  expected: {line}"


@pytest.mark.slow
def test_the_tests_of_a_stranger_say_it_plainly(tmp_path):
    (tmp_path / "test_mine.py").write_text(FORGOTTEN)
    tests = [sys.executable, "-m", "pytest", "-q", "-k", "says_what_it_is", "-p", "no:cacheprovider", "test_mine.py"]
    output = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "TestForgotten does not say what to test: formulation is None" in output
    assert 'expected: backend = "mine:Mine", its name as a text' in output
    assert "Traceback" not in output
    assert "AttributeError" not in output
