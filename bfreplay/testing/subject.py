"""The plug-in that a contract tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from bfreplay.checks import near_name
from bfreplay.errors import InputError
from bfreplay.registry import make_from_code

_FIRST_TEST: dict[str, str] = {}
"""Test that failed first, by problem."""


def _fail_once(problem: str) -> NoReturn:
    """Fail the first test with this problem; skip the others."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if _FIRST_TEST.setdefault(problem, test) != test:
        pytest.skip(f"as {_FIRST_TEST[problem]}: {problem}")
    pytest.fail(problem, pytrace=False)


def subject(tests: object, attribute: str, *methods: str) -> Any:
    """Return the plug-in that a class of tests, or an object of it, names: a class with ``methods``, else a text.

    The first test fails with a sentence if it names none, or something else, and the others are skipped.
    """
    named = getattr(tests, attribute, None)
    missing = [method for method in methods if not hasattr(named, method)]
    is_right = isinstance(named, type if methods else str) and not missing
    if not is_right:
        expected = f"Mine, your class itself, with {', '.join(methods)}" if methods else '"mine:Mine", its name as text'
        contract = tests if isinstance(tests, type) else type(tests)
        problem = f"{contract.__name__} does not say what to test: {attribute} is {named!r}"
        if isinstance(named, type) and missing:
            problem = f"{named.__name__} is no {attribute}: it has no {', '.join(missing)}"
        problem += f"\n  expected: {attribute} = {expected}"
        misspelt = near_name(attribute, vars(contract).keys() - {attribute})
        _fail_once(problem + (f"\n  fix:      rename {misspelt} to {attribute}" if misspelt else ""))
    return named


def made(make: Callable[[], Any], kind: str) -> Any:
    """Call a class without arguments; the first test fails with a sentence if that is impossible."""
    try:
        return make_from_code(make, f"the {kind}")
    except InputError as error:
        _fail_once(str(error))
