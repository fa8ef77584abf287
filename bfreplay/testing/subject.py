"""The plug-in that a contract tests."""

from __future__ import annotations

from typing import Any

import pytest


def subject(tests: object, attribute: str, *methods: str) -> Any:
    """Return the plug-in that a class of tests, or an object of it, names: a class with ``methods``, else a text.

    The test fails with a sentence if it names none, or something else.
    """
    named = getattr(tests, attribute, None)
    is_right = isinstance(named, type if methods else str) and all(hasattr(named, method) for method in methods)
    if not is_right:
        expected = f"Mine, your class with {', '.join(methods)}" if methods else '"mine:Mine", its name as a text'
        name = tests.__name__ if isinstance(tests, type) else type(tests).__name__
        problem = f"{name} does not say what to test: {attribute} is {named!r}"
        pytest.fail(f"{problem}\n  expected: {attribute} = {expected}", pytrace=False)
    return named
