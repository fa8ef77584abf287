"""A generated workload by the text that names it: ``gavel(n=1000, jobs_per_hour=1, seed=0, multi_gpu=true)``."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, NoReturn

from bfreplay import checks
from bfreplay.datasets.gavel.generated import generated_jobs
from bfreplay.datasets.gavel.made_up import throughputs_of
from bfreplay.errors import InputError
from bfreplay.workload import JobSet

_FORM = "gavel(n=1000, jobs_per_hour=1, seed=0, multi_gpu=true, priorities=false, slos=false, elastic=false)"
_COUNTS = ("n", "seed")
_FLAGS = ("multi_gpu", "priorities", "slos", "elastic")
_KEYS = ("n", "jobs_per_hour", "seed", *_FLAGS)
_WORDS = {"true": True, "false": False, "True": True, "False": False}


def jobs_named(text: str, curves: Path | None) -> JobSet:
    """Draw the workload that ``text`` names.

    Parameters
    ----------
    text
        Parameters of ``generated_jobs``, of which ``n`` alone is needed; without ``jobs_per_hour`` all jobs are there
        from the start.
    curves
        Gavel's throughput file; ``sample`` for made-up throughputs.

    Raises
    ------
    InputError
        The text is not written like that, a parameter has no sense, or there is no throughput file.
    """
    given = _parameters(text)
    for key, value in given.items():
        if key in _FLAGS:
            checks.truth(key, value)
        elif key in _COUNTS:
            checks.whole(key, value, 1 if key == "n" else 0)
    if "n" not in given:
        raise InputError(
            "the number of jobs is missing", column="n", value=text, expected=_FORM, fix="write gavel(n=NUMBER)"
        )
    if curves is None:
        raise InputError(
            "a generated workload of Gavel needs measured throughputs", value=text,
            expected="Gavel's throughput file as `curves`",
            fix="give it: --curves simulation_throughputs.json (curves=... in Python); --curves sample is made up",
        )  # fmt: skip
    n_jobs = given.pop("n")
    return generated_jobs(throughputs_of(curves), n_jobs, **given)


def _parameters(text: str) -> dict[str, Any]:
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        _refuse(text, error.msg if isinstance(error, SyntaxError) else str(error))
    if isinstance(call, ast.Name):
        return {}
    if not isinstance(call, ast.Call):
        _refuse(text, "it is not a name with parameters in brackets")
    if call.args or any(each.arg is None for each in call.keywords):
        _refuse(text, "a parameter has no name")
    found: dict[str, Any] = {}
    for each in call.keywords:
        key = str(each.arg)
        checks.known_keys([key], _KEYS, "gavel")
        if key in found:
            _refuse(text, f"{key!r} is set twice")
        found[key] = _value(key, each.value, text)
    return found


def _value(key: str, node: ast.expr, text: str) -> float | bool:
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        value = None
    if isinstance(value, bool | int | float):
        return value
    _refuse(text, f"the value of {key!r} is neither a number nor true or false", key)


def _refuse(text: str, problem: str, column: str | None = None) -> NoReturn:
    raise InputError(
        f"the workload cannot be read: {problem}", column=column, value=text, expected=_FORM,
        fix="write it like that, in quotes for the shell",
    )  # fmt: skip
