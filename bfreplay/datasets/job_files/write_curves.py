"""Curves to a TOML file of ``[curves.NAME]`` tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from bfreplay.datasets.job_files.law_cells import law_cells
from bfreplay.errors import InputError
from bfreplay.outputs import written_whole
from bfreplay.scalability import Curve, Law, MeasuredLaw, TabulatedCurve

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_curves(
    curves: Mapping[str, Curve],
    path: str | PathLike[str],
    remarks: Mapping[str, Sequence[str]] | None = None,
    overwrite: bool = False,
) -> None:
    """Write curves by name as TOML that ``load_jobs`` takes as ``curves``, exactly.

    Parameters
    ----------
    curves
        Laws or points; a curve that is neither cannot be written.
    path
        A name ending in ``.toml``.
    remarks
        Lines of comment before a curve, by its name.
    overwrite
        Replace a file that is there.

    Raises
    ------
    OutputExistsError
        The file is there and ``overwrite`` is false.
    InputError
        Another ending, or a curve that is neither a law nor points.
    """
    file = Path(path)
    if file.suffix.lower() != ".toml":
        raise InputError("curves are written as TOML", file=file, value=file.name, expected="a name ending in .toml")
    text = "\n".join(_table(name, curve, (remarks or {}).get(name, ())) for name, curve in curves.items())
    with written_whole([file], overwrite) as (temporary,):
        temporary.write_text(text, encoding="utf-8")


def _table(name: str, curve: Curve, remarks: Sequence[str]) -> str:
    lines = [f"# {' '.join(remark.split())}" for remark in remarks]
    lines.append(f"[curves.{name if _BARE.fullmatch(name) else _text(name)}]")
    if isinstance(curve, Law | MeasuredLaw):
        cells = law_cells(curve).items()
        lines += [f"{key} = {_text(value) if isinstance(value, str) else value}" for key, value in cells]
    elif isinstance(curve, TabulatedCurve):
        lines += [f"nodes = {list(curve.nodes)}", f"values = {list(curve.values)}"]
    else:
        raise InputError(
            f"the curve {name!r} cannot be written as TOML", value=type(curve).__name__, expected="a law, or points"
        )
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a basic string of TOML; JSON's escapes are among its own, but it wants DEL escaped as well."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
