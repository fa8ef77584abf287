"""Writes ``bfreplay/experiments/keywords.pyi``: the options of a run as typed keywords, for type checkers and editors.

Usage: ``python benchmarks/write_keywords.py``, after a change of ``bfreplay/experiments/declared_options.py``.
"""

import inspect
from pathlib import Path

from bfreplay.experiments.declared_options import OPTIONS, DeclaredOptions
from bfreplay.experiments.finish_times import finish
from bfreplay.experiments.one_run import open_session
from bfreplay.experiments.rule_comparison import compare_rules
from bfreplay.experiments.tuning.tuner import tune

STUB = Path(__file__).parents[1] / "bfreplay" / "experiments" / "keywords.pyi"
CLASSES = {
    "ReplayKeywords": open_session,
    "FinishKeywords": finish,
    "TuneKeywords": tune,
    "RuleKeywords": compare_rules,
}
"""Class of keywords: the function that takes them."""
HEAD = '''"""Options of a run as keywords, made from their declarations by ``python benchmarks/write_keywords.py``."""

from collections.abc import Mapping, Sequence
from datetime import date
from os import PathLike
from typing import Any, Literal, TypedDict

from bfreplay.replay import Semantics
'''


def stub() -> str:
    """Return the text of the file."""
    classes = [
        f"class {name}(TypedDict, total=False):\n" + "".join(f"    {line}\n" for line in keywords(function))
        for name, function in CLASSES.items()
    ]
    return "\n".join([HEAD, *classes])


def keywords(function):
    """Yield the options that a function takes beside its named parameters, with the types that it accepts."""
    own = inspect.signature(inspect.unwrap(function)).parameters
    for name in inspect.signature(function).parameters:
        if name not in own:
            accepts = OPTIONS[name].accepts or DeclaredOptions.__annotations__[name]
            yield f"{name}: {accepts}".replace("'", '"')


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
