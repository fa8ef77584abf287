"""Typed tables of TOML files: what they take, and the place and words of what they refuse."""

import math
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from bfreplay.errors import InputError
from bfreplay.typed_tables import Count, Finite, NotNegative, Positive, TypedTable, Whole, typed_table


class Limits(TypedTable, frozen=True):
    hours: Positive | None = None
    trials: Count | None = None


class Main(TypedTable, frozen=True, kw_only=True):
    name: str = "n"
    kind: Literal["hpo", "nas"] = "hpo"
    rate: NotNegative
    start: Finite = 0
    seed: Whole = 0
    is_loss: bool = False
    origin: str = field(name="from", default="start")
    pace: Annotated[list[Positive], Meta(min_length=2, max_length=2)] | None = None
    choices: list[str | int] | None = None
    limits: Limits = Limits()
    options: dict[str, Any] = field(default_factory=dict)


class Document(TypedTable, frozen=True):
    main: Main
    model: Annotated[list[Limits], Meta(min_length=1)] | None = None
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)


def refusal(document, kind=Document, label=None):
    with pytest.raises(InputError) as caught:
        typed_table(document, kind, "x.toml", label)
    error = caught.value
    assert error.file == "x.toml"
    assert error.expected
    assert error.fix
    return error


def test_numbers_stay_as_they_are_written():
    main = typed_table({"main": {"rate": 3, "start": -2.5, "pace": [1, 2.0], "from": "end"}}, Document, "x.toml").main
    assert (main.rate, main.start, main.pace, main.origin) == (3, -2.5, [1, 2.0], "end")
    assert [type(number) for number in (main.rate, *main.pace)] == [int, int, float]


@pytest.mark.parametrize(
    ("main", "row", "column", "words"),
    [
        ({"rate": True}, "[main]", "rate", "no number"),
        ({"rate": "3"}, "[main]", "rate", "without quotes"),
        ({"rate": math.nan}, "[main]", "rate", "not finite"),
        ({"rate": math.inf}, "[main]", "rate", "not finite"),
        ({"rate": 1, "start": -math.inf}, "[main]", "start", "not finite"),
        ({"rate": 10**400}, "[main]", "rate", "out of range"),
        ({"rate": 10**30}, "[main]", "rate", "a whole number <="),
        ({"rate": date(2024, 1, 1)}, "[main]", "rate", "no number"),
        ({"rate": -1}, "[main]", "rate", ">= 0"),
        ({"rate": 1, "seed": 1.0}, "[main]", "seed", "no whole number"),
        ({"rate": 1, "seed": -1}, "[main]", "seed", "0 or more"),
        ({"rate": 1, "seed": 2**60}, "[main]", "seed", "above"),
        ({"rate": 1, "is_loss": 1}, "[main]", "is_loss", "true or false"),
        ({"rate": 1, "name": 3}, "[main]", "name", "in quotes"),
        ({"rate": 1, "kind": "hop"}, "[main]", "kind", "did you mean 'hpo'?"),
        ({"rate": 1, "kind": []}, "[main]", "kind", "one of 'hpo', 'nas'"),
        ({"rate": 1, "form": "x"}, "[main]", "form", "did you mean 'from'?"),
        ({"seed": 1}, "[main]", "rate", "'rate' is missing"),
        ({"rate": 1, "pace": 3}, "[main]", "pace", "a list"),
        ({"rate": 1, "pace": [1]}, "[main]", "pace", "a list of length >= 2"),
        ({"rate": 1, "pace": [1, -1]}, "[main]", "pace", "> 0"),
        ({"rate": 1, "choices": [[]]}, "[main]", "choices", "a whole number or text"),
        ({"rate": 1, "limits": 3}, "[main.limits]", None, "is no table"),
        ({"rate": 1, "limits": {"hours": 0}}, "[main.limits]", "hours", "> 0"),
        ({"rate": 1, "limits": {"hour": 0}}, "[main.limits]", "hour", "'hours'"),
        ({"rate": 1, "options": 3}, "[main]", "options", "is no table"),
        (3, "[main]", None, "is no table"),
    ],
)
def test_an_error_names_table_key_and_what_is_expected(main, row, column, words):
    error = refusal({"main": main})
    assert (error.row, error.column) == (row, column)
    assert words in str(error)


@pytest.mark.parametrize(
    ("document", "row", "column", "words"),
    [
        ({}, "[main]", None, "the table [main] is missing"),
        ({"main": {"rate": 1}, "mian": 3}, None, "mian", "did you mean 'main'?"),
        ({"main": {"rate": 1}, "model": 3}, None, "model", "[[model]] before each"),
        ({"main": {"rate": 1}, "model": []}, None, "model", "[[model]] before each"),
        ({"main": {"rate": 1}, "model": [{}, {"trials": 0}]}, "[[model]] 2", "trials", "1 or more"),
        ({"main": {"rate": 1}, "model": [{}, {"trails": 0}]}, "[[model]] 2", "trails", "'trials'"),
        ({"main": {"rate": 1}, "model": [{}, 3]}, "[[model]] 2", None, "is no table"),
        ({"main": {"rate": 1}, "curves": 3}, "[curves]", None, "is no table"),
        ({"main": {"rate": 1}, "curves": {"a": 3}}, "[curves]", None, "a is no table"),
        ({"main": {"rate": 1}, "x` - at `$.none": 3}, None, "x` - at `$.none", "has no key"),
        ({"main": {"rate": 1, "x` - at `$.main.seed": 3}}, "[main]", "x` - at `$.main.seed", "has no key"),
    ],
)
def test_an_error_of_a_whole_file_names_its_table(document, row, column, words):
    error = refusal(document)
    assert (error.row, error.column) == (row, column)
    assert words in str(error)


def test_a_table_by_itself_has_the_label_that_it_was_given():
    error = refusal({"hours": "x"}, Limits, "[limits.of.a]")
    assert (error.row, error.column) == ("[limits.of.a]", "hours")
    error = refusal({"options": 3, "rate": 1}, Main, "[main]")
    assert (error.row, error.column) == ("[main]", "options")


def test_an_unknown_key_is_told_before_a_wrong_value():
    assert refusal({"main": {"rate": "x", "unknown": 1}}).column == "unknown"
