"""Values of a user, checked: what comes back, and what is said of those that will not do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bfreplay import checks
from bfreplay.errors import InputError


def test_whole_numbers_of_every_kind_come_back_as_python_has_them():
    for value in (3, np.int64(3), np.uint8(3)):
        found = checks.whole("n", value, 1)
        assert (found, type(found)) == (3, int)
    assert checks.whole("n", 1, 1, 1) == 1
    assert checks.whole("seed", 2**70, 0, math.inf) == 2**70


@pytest.mark.parametrize(
    ("value", "most", "problem", "expected"),
    [
        (0, checks.LARGEST, "n is below 1", "a whole number >= 1"),
        (2**53 + 1, checks.LARGEST, f"n is above {2**53}", "a whole number >= 1"),
        (9, 8, "n is above 8", "a whole number from 1 to 8"),
        (-1, math.inf, "n is below 1", "a whole number >= 1"),
        (2.0, 8, "n is no whole number", "a whole number from 1 to 8"),
        (True, 8, "n is no whole number", "a whole number from 1 to 8"),
        ("3", 8, "n is no whole number", "a whole number from 1 to 8"),
        (None, 8, "n is no whole number", "a whole number from 1 to 8"),
    ],
)
def test_other_values_are_no_whole_numbers_within_bounds(value, most, problem, expected):
    with pytest.raises(InputError) as caught:
        checks.whole("n", value, 1, most)
    assert (caught.value.problem, caught.value.column, caught.value.expected) == (problem, "n", expected)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("value", "bounds", "expected"),
    [
        (-0.1, {"least": 0.0}, "a finite number >= 0"),
        (0, {"above": 0.0}, "a finite number > 0"),
        (1.5, {"least": 0.0, "most": 1.0}, "a finite number >= 0 and <= 1"),
        (math.inf, {}, "a finite number"),
        (math.nan, {"least": 0.0}, "a finite number >= 0"),
        ("1", {}, "a finite number"),
        (False, {"least": 0.0}, "a finite number >= 0"),
    ],
)
def test_numbers_are_finite_and_within_bounds(value, bounds, expected):
    with pytest.raises(InputError, match=r"^price is (out of range|not finite|no number)") as caught:
        checks.number("price", value, **bounds)
    assert caught.value.expected == expected


def test_bounds_themselves_are_allowed_and_whole_numbers_become_floats():
    found = checks.number("price", 1, least=1.0, most=1.0)
    assert (found, type(found)) == (1.0, float)


def test_a_misspelt_key_is_answered_with_the_nearest():
    checks.known_keys(["eta"], ("eta", "first_epochs"), "the pruner")
    with pytest.raises(InputError, match=r"the pruner has no key 'eat'(.|\n)*did you mean 'eta'"):
        checks.known_keys(["eta", "eat"], ("eta", "first_epochs"), "the pruner")
    assert checks.near_name(" Bset", ("best", "last")) == "best"
    assert checks.near_name("zzz", ("best", "last")) is None
    assert checks.near_name("trial-6", ("trial-0056", "trial-0006")) == "trial-0006"


@pytest.mark.parametrize("value", ["two\nlines", "a\ttab", "a\x1b[31mcolour"])
def test_text_with_control_characters_is_refused(value):
    with pytest.raises(InputError, match="control character"):
        checks.text("name", value)


@pytest.mark.parametrize("value", ["n1", "ResNet-18 (batch size 16)", "größe", "結點", "x" * 255, "a;b"])
def test_printable_text_is_a_name(value):
    assert checks.is_name(value)
    assert checks.name("job", value, "name") == value


@pytest.mark.parametrize(
    ("value", "fault", "fix"),
    [
        ("", "it is no text, or empty", "give the job a name"),
        (None, "it is no text, or empty", "give the job a name"),
        ("x" * 256, "it has 256 characters", "rename the job"),
        (" a", "it has spaces around it", "remove the spaces"),
        ("\x1b[31mred", "it has a control character or another that no terminal shows", "rename the job"),
        ("a\nb", "it has a control character or another that no terminal shows", "rename the job"),
        ("\ud800", "it has a control character or another that no terminal shows", "rename the job"),
        ("\u202eabc", "it has a control character or another that no terminal shows", "rename the job"),
    ],
)
def test_other_text_is_no_name(value, fault, fix):
    assert not checks.is_name(value)
    with pytest.raises(InputError) as caught:
        checks.name("job", value, "name")
    assert (caught.value.problem, caught.value.fix) == (f"a job name is unusable: {fault}", fix)
    assert (caught.value.column, caught.value.value) == ("name", value)


def test_nothing_is_near_a_name_that_is_too_long():
    assert checks.near_name("idlee", ["idle"]) == "idle"
    assert checks.near_name("idle" * 5_000_000, ["idle"]) is None


def test_an_error_shows_nothing_that_a_terminal_obeys():
    red = "\x1b[31m\udcff\r"
    error = InputError(f"a{red}\nb", file=red, row=red, column=red, value=red, expected=red, fix=red)
    shown = r"\x1b[31m\udcff\r"
    assert str(error).split("\n") == [
        f"a{shown}",
        "b",
        f"  file:     {shown}",
        f"  row:      {shown}",
        f"  column:   {shown}",
        f"  value:    '{shown}'",
        f"  expected: {shown}",
        f"  fix:      {shown}",
    ]
    assert error.problem == f"a{shown}\nb"
    assert error.value == red


@pytest.mark.parametrize("value", [10**400, -(10**400), math.inf, -math.inf, math.nan])
def test_numbers_that_no_float_holds_are_refused(value):
    with pytest.raises(InputError, match="weight is"):
        checks.number("weight", value)
    assert math.copysign(1, checks.number("gap_s", -0.0, least=0)) == 1


@pytest.mark.parametrize("seconds", [0.0, 1e-320, 0.0009, 3.2e9, 1e300, 10**400, math.nan, True, "60"])
def test_rounds_last_between_a_millisecond_and_a_hundred_years(seconds):
    with pytest.raises(InputError, match="round_s is"):
        checks.round_length("round_s", seconds)
    assert checks.round_length("round_s", 60) == 60.0


def test_an_error_says_what_python_does_not_write():
    error = InputError("too many", value=[16**5_000])
    assert "  value:    a whole number of thousands of digits" in str(error)


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ({"file": "jobs.csv", "row": 3}, "column:"),
        ({"file": "search.toml"}, "key:"),
        ({"row": "[campaign]"}, "key:"),
        ({}, "option:"),
        ({"file": "jobs.csv", "column": "--map"}, "option:"),
    ],
)
def test_an_error_names_a_column_a_key_or_an_option(place, word):
    assert f"\n  {word:<10}" in str(InputError("wrong", **{"column": "x", **place}))


def test_lengths_of_bins_are_read_as_people_write_them():
    read = [checks.length_of_time("bin", text) for text in ("1h", "10min", " 30 s", "1d", "90", 0.5, "1.5h")]
    assert read == [3_600.0, 600.0, 30.0, 86_400.0, 90.0, 0.5, 5_400.0]


@pytest.mark.parametrize("text", ["", "0h", "-1h", "1 week", "h", "nan", "1e3", "inf"])
def test_what_is_no_length_is_refused(text):
    with pytest.raises(InputError, match="length of time"):
        checks.length_of_time("bin", text)


@pytest.mark.parametrize("text", ["1_000", "\u0661\u0662", "1e400", "9" * 400, "", "x"])
def test_numbers_are_written_in_plain_digits(text):
    with pytest.raises(ValueError, match=r"no number|could not convert"):
        checks.decimal(text)
    assert [checks.decimal(each) for each in ("12", " 1.5 ", "-1e3", "inf")] == [12, 1.5, -1e3, math.inf]
