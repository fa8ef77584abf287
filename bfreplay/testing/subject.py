"""The thing that a contract tests, as a class of tests names it."""

from __future__ import annotations

from typing import Any

import pytest


def class_to_test(contract: object, attribute: str, kind: str, methods: tuple[str, ...]) -> Any:
    """Return the class that a contract names; fail with a sentence if it names none, or a class of another kind."""
    named = getattr(contract, attribute, None)
    tests, line = type(contract).__name__, f"{attribute} = Mine, your class itself"
    if named is None:
        pytest.fail(f"{tests} does not say which {kind} to test\n  fix: write in it: {line}", pytrace=False)
    if not isinstance(named, type):
        pytest.fail(f"{attribute} of {tests} is no class: {named!r}\n  fix: write {line}", pytrace=False)
    if missing := [method for method in methods if not callable(getattr(named, method, None))]:
        problem = f"{named.__name__}, which {tests} names as {attribute}, is no {kind}: it has no {', '.join(missing)}"
        base = ": let it inherit from bfreplay.Policy" if kind == "policy" else ""
        pytest.fail(f"{problem}\n  fix: write them{base}; or use the contract of its own kind", pytrace=False)
    return named


def name_to_test(tests: type, attribute: str, kind: str, example: str) -> str:
    """Return the name that a contract gives; fail with a sentence if it gives none, or something else than text."""
    named = getattr(tests, attribute, None)
    if not isinstance(named, str):
        problem = "does not say" if named is None else f"names {named!r}, no text, to say"
        fix = f'write in it: {attribute} = "{example}"'
        pytest.fail(f"{tests.__name__} {problem} which {kind} to test\n  fix: {fix}", pytrace=False)
    return named
