"""The plug-in that a contract tests."""

from __future__ import annotations

from typing import Any

import pytest


def subject(tests: type, attribute: str, *methods: str) -> Any:
    """Return the plug-in that a class of tests names: a class with ``methods``, or a text if there are none.

    The test fails with a sentence if it names none, or something else.
    """
    named = getattr(tests, attribute, None)
    is_right = isinstance(named, type if methods else str) and all(hasattr(named, method) for method in methods)
    if not is_right:
        expected = f"Mine, your class with {', '.join(methods)}" if methods else '"mine:Mine", its name as a text'
        problem = f"{tests.__name__} does not say what to test: {attribute} is {named!r}"
        pytest.fail(f"{problem}\n  expected: {attribute} = {expected}", pytrace=False)
    return named
