"""The map of the code: what it names is there, and no folder of the package is missing from it."""

import graphlib
import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bfreplay"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
NAMED = re.compile(r"`((?:bfreplay|tests|benchmarks|docs|fuzz)/[\w./-]*)`")


@pytest.mark.parametrize("page", [ARCHITECTURE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_file_and_folder_that_a_page_names_is_there(page):
    named = set(NAMED.findall(page.read_text(encoding="utf-8")))
    assert len(named) > 2
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_every_step_of_the_main_path_is_a_module():
    (block,) = re.findall(r"^```text\n(.*?)^```", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    steps = [line for line in block.splitlines() if re.match(r"\s?\d", line)]
    assert len(steps) == 15
    paths = [path for step in steps for path in re.findall(r"\b[a-z]+/[\w/]*(?:\.py)?", step)]
    assert len(paths) >= 15
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


def test_every_folder_of_the_package_is_on_the_map():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    on_map = set(re.findall(r"`bfreplay/(\w+)/", ARCHITECTURE.read_text(encoding="utf-8").split("## One replay")[0]))
    assert folders - on_map == set()


def test_no_modules_import_each_other_in_a_circle():
    """Imports for types and within functions count too; lint-imports holds the floors, not the modules of a folder."""
    graph = grimp.build_graph("bfreplay", exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order = list(graphlib.TopologicalSorter(imports).static_order())  # raises CycleError, which names the circle
    assert len(order) == len(graph.modules) > 300


def test_parameters_that_make_test_tries_are_there(unknown_parameters):
    assert unknown_parameters == [], "a mark `often` names them"
