"""Names that a file format, or a file system, can take."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence


def usable_names(names: Sequence[str], pattern: re.Pattern[str], letter: str) -> Sequence[str]:
    """``names`` if all match ``pattern`` and are unique; otherwise all become ``letter`` and a number, from 0.

    All or none, so that a new name never meets an old one.
    """
    if len(set(names)) == len(names) and all(pattern.fullmatch(name) for name in names):
        return names
    return [f"{letter}{i}" for i in range(len(names))]


def unused_name(wish: str, taken: Collection[str]) -> str:
    """``wish``, with as many underscores after it as it takes to be none of ``taken``."""
    while wish in taken:
        wish += "_"
    return wish


def file_stem(name: str) -> str:
    """``"choices on cbc"`` as ``"choices-on-cbc"``: letters, digits, ``. _ -``, and ``-`` for everything else."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name)
