"""Counts that describe the source tree: files, lines of code, loose types, long parameter lists, imports.

    python benchmarks/house.py [FOLDER]        # of the package beside this file, or of another checkout's
    python benchmarks/house.py --by-folder

A line of code is one that holds a token other than a comment or a docstring; a statement over three lines is three.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import tokenize
from collections import Counter
from pathlib import Path

_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
_MAPPINGS = {"dict", "Mapping", "MutableMapping"}
_MOST_PARAMETERS = 6


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "bfreplay")
    parser.add_argument("--by-folder", action="store_true", help="files and lines of code of each folder")
    arguments = parser.parse_args()
    package = arguments.folder if arguments.folder.name == "bfreplay" else arguments.folder / "bfreplay"
    files = sorted(package.rglob("*.py"))
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    lines = {file: code_lines(file.read_text(encoding="utf-8"), trees[file]) for file in files}
    if arguments.by_folder:
        for folder in sorted({_top(file, package) for file in files}):
            here = [file for file in files if _top(file, package) == folder]
            print(f"{folder:<14} {len(here):>4} files {sum(lines[file] for file in here):>7,} lines")
        return
    modules = {file: _module(file, package) for file in files}
    importers = imported_by(trees, modules)
    long = [name for tree in trees.values() for name in long_parameter_lists(tree)]
    counts = {
        "files": len(files),
        "lines of code": sum(lines.values()),
        "median lines of a module": int(statistics.median(lines.values())),
        "mappings of Any": sum(map(any_mappings, trees.values())),
        f"functions with more than {_MOST_PARAMETERS} parameters": len(long),
        "modules with one importer": sum(n == 1 for n in importers.values()),
        "modules under 50 lines": sum(n < 50 for file, n in lines.items() if file.name != "__init__.py"),
        "deepest folder": max(len(file.relative_to(package).parts) - 1 for file in files),
        "folders": len({file.parent for file in files}),
    }
    for what, count in counts.items():
        print(f"{count:>8,}  {what}")


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines with a token of code."""
    is_docstring: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            is_docstring.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - is_docstring)


def any_mappings(tree: ast.Module) -> int:
    """Annotations such as ``dict[str, Any]`` and ``Mapping[str, Any]``."""
    return sum(
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in _MAPPINGS
        and any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(node.slice))
        for node in ast.walk(tree)
    )


def long_parameter_lists(tree: ast.Module) -> list[str]:
    """Functions and methods that take more than a reader keeps in mind; ``self`` and ``cls`` are not counted."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len([name for name in names if name not in ("self", "cls")]) > _MOST_PARAMETERS:
                found.append(node.name)
    return found


def imported_by(trees: dict[Path, ast.Module], modules: dict[Path, str]) -> Counter[str]:
    """How many other modules import each module, packages' own ``__init__`` included."""
    known = set(modules.values())
    found: Counter[str] = Counter(dict.fromkeys(known, 0))
    for file, tree in trees.items():
        imports: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                parts = {f"{node.module}.{alias.name}" for alias in node.names}
                imports.update(parts & known or {node.module})
        found.update((imports & known) - {modules[file]})
    return found


def _module(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _top(file: Path, package: Path) -> str:
    parts = file.relative_to(package).parts
    return parts[0] if len(parts) > 1 else "."


if __name__ == "__main__":
    main()
