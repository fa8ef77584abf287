"""Names and what is behind them: classes, and functions where those are taken."""

from __future__ import annotations

import math

import pytest

from bfreplay.errors import InputError
from bfreplay.registry import Registry, unknown_name

HERE = __name__


class Sound:
    def work(self):
        return 1


class Lazy:
    pass


def function():
    return 2


NUMBER = 3


def registry(**changes):
    fields = {"kind": "worker", "group": "bfreplay.nobody", "needs": ("work",), "built_in": {"ours": f"{HERE}:Sound"}}
    return Registry(**{**fields, **changes})


def test_a_class_is_found_by_its_name_and_by_its_place():
    for name in ("ours", f"{HERE}:Sound"):
        assert registry().load(name) is Sound
        assert registry(takes_functions=True).load(name) is Sound
    assert registry().make("ours").work() == 1


def test_a_function_is_taken_only_where_functions_are():
    assert registry(takes_functions=True).load(f"{HERE}:function") is function
    assert registry(takes_functions=True).load("math:hypot") is math.hypot
    with pytest.raises(InputError, match=r"is no class(.|\n)*expected: package.module:Class"):
        registry().load(f"{HERE}:function")


@pytest.mark.parametrize("takes_functions", [False, True])
def test_what_a_class_needs_is_asked_of_it(takes_functions):
    with pytest.raises(InputError, match="is no worker: it has no work"):
        registry(takes_functions=takes_functions).load(f"{HERE}:Lazy")


def test_what_is_neither_is_refused():
    with pytest.raises(InputError, match=r"neither a function nor a class(.|\n)*package.module:function"):
        registry(takes_functions=True).load(f"{HERE}:NUMBER")
    with pytest.raises(InputError, match="is no class"):
        registry().load(f"{HERE}:NUMBER")


def test_an_unknown_name_is_answered_with_what_there_is():
    with pytest.raises(
        InputError, match=r"unknown worker 'our'(.|\n)*one of ours; or package.module:Class(.|\n)*'ours'"
    ):
        registry().load("our")
    with pytest.raises(InputError, match=r"or package\.module:function"):
        registry(takes_functions=True).load("our")
    assert unknown_name("thing", "x", ["long-one"]).fix is None
