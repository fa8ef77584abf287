"""Names and what is behind them: classes, and functions where those are taken."""

from __future__ import annotations

import math
from importlib.metadata import EntryPoint

import pytest

from bfreplay.errors import InputError
from bfreplay.registry import Registry, import_code, make_from_code, unknown_name

HERE = __name__


class Sound:
    def work(self):
        return 1

    class Inner:
        @staticmethod
        def score():
            return 5


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
        assert registry().load(name, allow_code=True) is Sound
        assert registry(takes_functions=True).load(name, allow_code=True) is Sound
    assert registry().make("ours", allow_code=True).work() == 1


def test_a_function_is_taken_only_where_functions_are():
    assert registry(takes_functions=True).load(f"{HERE}:function", allow_code=True) is function
    assert registry(takes_functions=True).load("math:hypot", allow_code=True) is math.hypot
    with pytest.raises(InputError, match=r"is no class(.|\n)*expected: package.module:Class"):
        registry().load(f"{HERE}:function", allow_code=True)


@pytest.mark.parametrize("takes_functions", [False, True])
def test_what_a_class_needs_is_asked_of_it(takes_functions):
    with pytest.raises(InputError, match="is no worker: it has no work"):
        registry(takes_functions=takes_functions).load(f"{HERE}:Lazy", allow_code=True)


def test_an_object_is_taken_as_it_is_and_a_class_in_its_place_is_told():
    sound = Sound()
    assert registry().make(sound, allow_code=True) is sound
    with pytest.raises(InputError, match="Sound is a class") as caught:
        registry().make(Sound, allow_code=True)
    assert caught.value.fix == "make one: Sound()"
    with pytest.raises(InputError, match=r"object at .* is no worker: it has no work"):
        registry().make(Lazy(), allow_code=True)


def test_what_is_neither_is_refused():
    with pytest.raises(InputError, match=r"neither a function nor a class(.|\n)*package.module:function"):
        registry(takes_functions=True).load(f"{HERE}:NUMBER", allow_code=True)
    with pytest.raises(InputError, match="is no class"):
        registry().load(f"{HERE}:NUMBER", allow_code=True)


def test_an_unknown_name_is_answered_with_what_there_is():
    with pytest.raises(
        InputError, match=r"unknown worker 'our'(.|\n)*one of ours; or package.module:Class(.|\n)*'ours'"
    ):
        registry().load("our", allow_code=True)
    with pytest.raises(InputError, match=r"or package\.module:function"):
        registry(takes_functions=True).load("our", allow_code=True)
    assert unknown_name("thing", "x", ["long-one"]).fix is None


def test_a_place_may_have_dots_on_both_sides():
    assert import_code(f"{HERE}:Sound.Inner.score", "the score", "package.module:function", allow_code=True)() == 5


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("os", "the score is not spelled package.module:function"),
        ("os:", "is not spelled"),
        (":path", "is not spelled"),
        (f"{HERE}:Sound.Absent", r"the score cannot be imported: AttributeError(.|\n)*choose one of its .*Sound"),
        ("no.such:thing", r"the score cannot be imported: ModuleNotFoundError(.|\n)*the module must be importable"),
        ("mine.py:Mine", r"the score cannot be imported: ModuleNotFoundError(.|\n)*write the module without its .py"),
    ],
)
def test_what_cannot_be_imported_says_why_and_which_key_named_it(location, says):
    with pytest.raises(InputError, match=says) as caught:
        import_code(location, "the score", "package.module:function", "function", allow_code=True)
    assert (caught.value.column, caught.value.value) == ("function", location)


def fails():
    raise KeyError("x")


def exits():
    raise SystemExit(3)


def refuses():
    raise InputError("eta is below 2")


def test_what_fails_while_it_is_made_is_told_in_one_line():
    assert make_from_code(Sound, "the worker 'a'").work() == 1
    with pytest.raises(InputError, match=r"the worker 'a' cannot be made: KeyError: 'x' \(test_registry.py") as caught:
        make_from_code(fails, "the worker 'a'", value={"k": 1}, fix="try another")
    assert (caught.value.value, caught.value.fix) == ({"k": 1}, "try another")
    with pytest.raises(InputError, match="cannot be made: SystemExit: 3"):
        make_from_code(exits, "the worker 'a'")


def test_what_it_refuses_itself_comes_through_as_it_is():
    with pytest.raises(InputError, match=r"^eta is below 2$"):
        make_from_code(refuses, "the worker 'a'")


def test_entry_points_are_read_once_and_of_equal_names_the_first_value_counts(monkeypatch):
    asked = []

    def entry_points(group):
        asked.append(group)
        return [EntryPoint("theirs", f"{HERE}:{thing}", group) for thing in ("Sound", "Lazy", "Sound")]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    found = registry(group="bfreplay.test_registry")
    assert found.names() == ["ours", "theirs"]
    assert found.location("theirs") == f"{HERE}:Lazy"
    assert asked == ["bfreplay.test_registry"]
