"""Counts that describe the source tree: files, lines of code, loose types, long parameter lists, imports, language.

    python benchmarks/house.py [FOLDER]        # of the package beside this file, or of another checkout's
    python benchmarks/house.py --by-folder

A line of code is one that holds a token other than a comment or a docstring; a statement over three lines is three.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
_MAPPINGS = {"dict", "Mapping", "MutableMapping"}
_MOST_PARAMETERS = 6
_FRAGMENT = re.compile(
    r"(what|who|whose|whom|whether|where|which|when|how|why|that|those|all that|as many|as much|one of|for|of|by|in|"
    r"with|to)\b",
    re.IGNORECASE,
)  # the openings of a docstring that says neither what a thing is nor what it does
_IRREGULAR = re.compile(
    r"(held|taken|given|kept|left|known|seen|shown|written|done|gone|drawn|chosen|lost|met|paid|sent|spent|"
    r"built|bought|brought|caught|thrown|grown|won|woven|begun|broken|forgotten|hidden|laid|led|lent|meant|"
    r"sold|stood|struck|swept|taught|thought|understood|withdrawn|wound|told|said|found|made)$"
)


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
        **language(trees.values()),
        **{f"words in {pages.name}": words(pages) for pages in [package.parent / "docs"] if pages.is_dir()},
    }
    for what, count in counts.items():
        print(f"{count:>8,}  {what}")


def language(trees: Iterable[ast.Module]) -> dict[str, int]:
    """Docstrings that open with a fragment, and functions named by a participle, per thousand."""
    docstrings, names = [], []
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            docstrings += filter(None, [ast.get_docstring(node)])
    return {
        "docstrings": len(docstrings),
        "of 1,000 docstrings open with a fragment": _per_mille(map(_FRAGMENT.match, docstrings)),
        "of 1,000 functions are named by a participle": _per_mille(map(is_participle, names)),
    }


def is_participle(name: str) -> bool:
    """Return whether a function is named by a participle: ``held``, ``nodes_held``, ``_placed``."""
    last = name.strip("_").rpartition("_")[2]
    return last.endswith("ed") or bool(_IRREGULAR.match(last))


def words(pages: Path) -> int:
    """Words of the Markdown pages of a folder and its subfolders."""
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages.rglob("*.md"))


def _per_mille(found: Iterable[object]) -> int:
    flags = [bool(each) for each in found]
    return round(1000 * sum(flags) / len(flags)) if flags else 0


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
