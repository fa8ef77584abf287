"""A class of tests that names nothing, or a thing of another kind, fails with a sentence that says what to write."""

import re
import subprocess
import sys

import pytest

from bfreplay.policies import EqualSharePolicy
from bfreplay.testing import FormulationContract, JobSourceContract, ObjectiveContract, PolicyContract

CONTRACTS = {
    "policy": (PolicyContract, "make", "policy = Mine, your class itself, with decide, from_options"),
    "formulation": (
        FormulationContract,
        "make",
        "formulation = Mine, your class itself, with name, needs_sos, needs_continuous, change_limited, build, read",
    ),
    "source": (JobSourceContract, "make", "source = Mine, your class itself, with begin, ask, tell, describe"),
    "objective": (ObjectiveContract, "make_objective", 'objective = "mine:Mine", its name as text'),
}
WRONG = """
from bfreplay.policies import EqualSharePolicy
from bfreplay.testing import BackendContract, FormulationContract, PolicyContract

class NeedsSeconds(EqualSharePolicy):
    def __init__(self, seconds):
        self.seconds = seconds

class TestForgotten(FormulationContract):
    pass

class TestMisspelt(PolicyContract):
    polcy = EqualSharePolicy

class TestWithParameter(PolicyContract):
    policy = NeedsSeconds

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
    is_class = named is NoPlugIn and attribute != "objective"
    fault = f"NoPlugIn is no {attribute}: it has no " + line.partition(" with ")[2]
    assert problem == (fault if is_class else f"TestMine does not say what to test: {attribute} is {named!r}")
    assert expected == f"  expected: {line}"


@pytest.mark.slow
def test_the_tests_of_a_stranger_say_it_plainly(tmp_path):
    (tmp_path / "test_mine.py").write_text(WRONG)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    output = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "TestForgotten does not say what to test: formulation is None" in output
    assert "rename polcy to policy" in output
    assert "the policy NeedsSeconds cannot be made: TypeError: NeedsSeconds.__init__() missing 1 required" in output
    assert 'expected: backend = "mine:Mine", its name as text' in output
    assert re.search(r"^3 failed, \d+ skipped.* 1 error", output, re.MULTILINE), "a class fails once"
    assert "Traceback" not in output
    assert "AttributeError" not in output
