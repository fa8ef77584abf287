"""Counts that describe the source tree: files, lines of code, loose types, long parameter lists, imports, language.

    python benchmarks/house.py [FOLDER]        # of the package beside this file, or of another checkout's
    python benchmarks/house.py --by-folder
    python benchmarks/house.py --names short   # or participles: where they stand, most frequent first
    python benchmarks/house.py --one-importer  # modules that one other module imports, and this module

A line of code is one that holds a token other than a comment or a docstring, after `ruff format` at 120 columns that
heeds no `# fmt: skip`; a statement over three lines is three. A name is each place that names a function, a class or a
parameter or assigns to a variable, without outer underscores; `self` and `cls` do not count. It is a participle when
its first or last word is one: `held`, `given_name`, `nodes_placed`.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
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
_SKIP = re.compile(r"[ \t]*# fmt: (?:skip|off|on)\b.*")
_SHORT = 4  # letters
_FRAGMENT = re.compile(
    r"(what|who|whose|whom|whether|where|which|when|how|why|that|those|all that|as many|as much|one of|for|of|by|in|"
    r"with|to)\b",
    re.IGNORECASE,
)  # the openings of a docstring that says neither what a thing is nor what it does
_NO_PARTICIPLES = {"seed", "need", "speed", "feed", "red", "embed", "shed", "bed", "proceed", "succeed", "exceed"}
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
    parser.add_argument(
        "--names", choices=["short", "participles"], help=f"of at most {_SHORT} letters, or participles"
    )
    parser.add_argument(
        "--one-importer", action="store_true", help="modules that one other imports: candidates to merge"
    )
    arguments = parser.parse_args()
    package = arguments.folder if arguments.folder.name == "bfreplay" else arguments.folder / "bfreplay"
    files = sorted(package.rglob("*.py"))
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    if arguments.names:
        _print_names(trees, package, arguments.names)
        return
    plain = plainly_formatted(files, package)
    code = {file: code_lines(text, ast.parse(text)) for file, text in plain.items()}
    lines = {file: len(texts) for file, texts in code.items()}
    modules = {file: _module(file, package) for file in files}
    importers = imported_by(trees, modules)
    if arguments.one_importer:
        for file, module in modules.items():
            if len(importers[module]) == 1:
                print(f"{lines[file]:>5}  {module} <- {importers[module][0]}")
        return
    all_lines = [text.strip() for texts in code.values() for text in texts]
    if arguments.by_folder:
        for folder in sorted({_top(file, package) for file in files}):
            here = [file for file in files if _top(file, package) == folder]
            print(f"{folder:<14} {len(here):>4} files {sum(lines[file] for file in here):>7,} lines")
        return
    long = [name for tree in trees.values() for name in long_parameter_lists(tree)]
    counts = {
        "files": len(files),
        "lines of code": sum(lines.values()),
        "characters in a line of code": round(statistics.mean(map(len, all_lines)), 1),
        "median lines of a module": int(statistics.median(lines.values())),
        "mappings of Any": sum(map(any_mappings, trees.values())),
        f"functions with more than {_MOST_PARAMETERS} parameters": len(long),
        "modules with one importer": sum(len(names) == 1 for names in importers.values()),
        "modules under 50 lines": sum(n < 50 for file, n in lines.items() if file.name != "__init__.py"),
        "deepest folder": max(len(file.relative_to(package).parts) - 1 for file in files),
        "folders": len({file.parent for file in files}),
        "fmt: skip in package and tests": skips(package) + skips(package.parent / "tests"),
        **language(trees.values()),
        **{f"words in {pages.name}": words(pages) for pages in [package.parent / "docs"] if pages.is_dir()},
    }
    for what, count in counts.items():
        print(f"{count:>8,}  {what}")


def plainly_formatted(files: Iterable[Path], package: Path) -> dict[Path, str]:
    """Text of each file as ``ruff format`` writes it at 120 columns with every ``# fmt: skip`` removed."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff") or ".venv/bin/ruff"
    with tempfile.TemporaryDirectory() as folder:
        copies = {file: Path(folder) / file.relative_to(package.parent) for file in files}
        for file, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(_SKIP.sub("", file.read_text(encoding="utf-8")), encoding="utf-8")
        subprocess.run([ruff, "format", "--isolated", "--quiet", "--line-length", "120", folder], check=True)
        return {file: copy.read_text(encoding="utf-8") for file, copy in copies.items()}


def skips(folder: Path) -> int:
    """Places that the formatter is told to leave alone."""
    return sum(len(_SKIP.findall(file.read_text(encoding="utf-8"))) for file in folder.rglob("*.py"))


def language(trees: Iterable[ast.Module]) -> dict[str, float]:
    """Docstrings that open with a fragment, letters in a name, and participles among functions and among all names."""
    docstrings, functions, all_names = [], [], []
    for tree in trees:
        all_names += names(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(node.name)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                docstrings += filter(None, [ast.get_docstring(node)])
    return {
        "docstrings": len(docstrings),
        "of 1,000 docstrings open with a fragment": _per_mille(map(_FRAGMENT.match, docstrings)),
        "of 1,000 functions are named by a participle": _per_mille(
            _is_participle(name.rpartition("_")[2]) for name in functions
        ),
        "names": len(all_names),
        "letters in a name": round(statistics.mean(map(len, all_names)), 2),
        "of 1,000 names are participles": _per_mille(map(is_participle, all_names)),
    }


def names(tree: ast.Module) -> list[str]:
    """Every name that the module gives: functions, classes, parameters, variables at each assignment."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.arg):
            found.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
    return [name for name in (name.strip("_") for name in found) if name not in ("", "self", "cls")]


def is_participle(name: str) -> bool:
    """Return whether the first or last word is a participle: ``held``, ``given_name``, ``nodes_placed``."""
    words_of_name = name.lower().split("_")
    return _is_participle(words_of_name[0]) or _is_participle(words_of_name[-1])


def _is_participle(word: str) -> bool:
    return (word.endswith("ed") and word not in _NO_PARTICIPLES) or bool(_IRREGULAR.match(word))


def _print_names(trees: dict[Path, ast.Module], package: Path, which: str) -> None:
    files: dict[str, Counter[Path]] = {}
    for file, tree in trees.items():
        for name in names(tree):
            if is_participle(name) if which == "participles" else len(name) <= _SHORT:
                files.setdefault(name, Counter())[file.relative_to(package)] += 1
    for name, places in sorted(files.items(), key=lambda item: -item[1].total()):
        print(f"{places.total():>5} {name:<24} {', '.join(f'{file} {n}' for file, n in places.most_common(4))}")


def words(pages: Path) -> int:
    """Words of the Markdown pages of a folder and its subfolders."""
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages.rglob("*.md"))


def _per_mille(found: Iterable[object]) -> int:
    flags = [bool(each) for each in found]
    return round(1000 * sum(flags) / len(flags)) if flags else 0


def code_lines(text: str, tree: ast.Module) -> list[str]:
    """Lines with a token of code, as they stand."""
    is_docstring: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            is_docstring.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    all_lines = text.splitlines()
    return [all_lines[number - 1] for number in sorted(found - is_docstring)]


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


def imported_by(trees: dict[Path, ast.Module], modules: dict[Path, str]) -> dict[str, list[str]]:
    """Which other modules import each module, packages' own ``__init__`` included."""
    known = set(modules.values())
    importers: dict[str, list[str]] = {module: [] for module in modules.values()}
    for file, tree in trees.items():
        imports: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                parts = {f"{node.module}.{alias.name}" for alias in node.names}
                imports.update(parts & known or {node.module})
        for module in sorted((imports & known) - {modules[file]}):
            importers[module].append(modules[file])
    return importers


def _module(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _top(file: Path, package: Path) -> str:
    parts = file.relative_to(package).parts
    return parts[0] if len(parts) > 1 else "."


if __name__ == "__main__":
    main()
