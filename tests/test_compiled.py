"""Machine code on disk is of the sources as they are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bfreplay._compiled import IS_COMPILED, ascending, callable_when_compiled, compiled, copy_into, sources_digest

ROOT = Path(__file__).resolve().parents[1]


def test_the_digest_is_that_of_every_module_with_compiled_functions(tmp_path):
    (tmp_path / "below").mkdir()
    callee, other = tmp_path / "below" / "callee.py", tmp_path / "other.py"
    callee.write_text("@compiled\ndef one(): return 1\n")
    other.write_text("plain = 1\n")
    before = sources_digest(tmp_path)
    other.write_text("plain = 2\n")
    assert sources_digest(tmp_path) == before
    callee.write_text("@compiled\ndef one(): return 2\n")
    assert sources_digest(tmp_path) != before


@pytest.mark.skipif(
    not IS_COMPILED and "BFREPLAY_REQUIRE_SHARED" not in os.environ, reason="numba is missing or switched off"
)
def test_a_function_on_disk_carries_the_digest_of_all_compiled_sources():
    """numba looks at the caller's file alone; what it calls is inside its machine code."""
    import bfreplay
    from bfreplay.milp.exact.solver import optimal_counts

    version = optimal_counts._cache._cache_file._version
    assert version[1] == sources_digest(Path(bfreplay.__file__).parent)


@pytest.mark.slow
@pytest.mark.skipif(
    not IS_COMPILED and "BFREPLAY_REQUIRE_SHARED" not in os.environ, reason="numba is missing or switched off"
)
def test_machine_code_of_an_earlier_version_that_names_what_has_moved_is_compiled_again(tmp_path):
    """An upgrade leaves the folder of machine code as it is."""
    script = tmp_path / "script.py"
    script.write_text(_USES_A_TUPLE.format(module="there"))
    (tmp_path / "there.py").write_text(_TUPLE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled"), "PYTHONPATH": str(ROOT)}
    for _ in range(2):  # compiled, then read
        assert _output_of(script, environment) == "digest-1 3"
    assert list((tmp_path / "compiled").rglob("*.nbi"))
    (tmp_path / "there.py").rename(tmp_path / "elsewhere.py")
    script.write_text(_USES_A_TUPLE.format(module="elsewhere").replace("digest-1", "digest-2"))
    assert _output_of(script, environment) == "digest-2 3"


def _output_of(script, environment):
    command = [sys.executable, str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_a_compiled_function_gives_what_it_gives_uncompiled():
    def twice(x):
        return 2 * x

    assert compiled(twice)(21) == 42


_TUPLE = """
from typing import NamedTuple
class Pair(NamedTuple):
    a: int
    b: int
"""
_USES_A_TUPLE = """
from {module} import Pair
from bfreplay import _compiled
_compiled._DIGEST = "digest-1"
@_compiled.compiled
def total(pair):
    return pair.a + pair.b
print(_compiled._DIGEST, total(Pair(1, 2)))
"""


@callable_when_compiled
def _doubled(x, times=1):
    return 2 * times * x


@compiled
def _doubled_by_machine_code(x):
    return _doubled(x) + _doubled(x, 2)


def test_compiled_functions_call_a_rule_that_stays_plain_python_for_arrays():
    assert _doubled_by_machine_code(1.5) == _doubled(1.5) + _doubled(1.5, 2) == 9.0
    assert _doubled(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_no_compiled_function_assigns_to_a_slice():
    """numba compiles its message of sizes that differ for 3 s in each command: `copy_into` and `fill` need none."""
    at = []
    for path in (ROOT / "bfreplay").rglob("*.py"):
        content = path.read_bytes()
        for function in ast.walk(ast.parse(content)) if b"@compiled" in content else ():
            decorators = map(ast.unparse, getattr(function, "decorator_list", ()))
            if not any(decorator.startswith("compiled") for decorator in decorators):
                continue
            for line in ast.walk(function):
                for target in line.targets if isinstance(line, ast.Assign) else ():
                    index = target.slice if isinstance(target, ast.Subscript) else None
                    if any(isinstance(part, ast.Slice) for part in getattr(index, "elts", [index])):
                        at.append(f"{path.relative_to(ROOT)}:{line.lineno}")
    assert at == []


def test_values_are_copied_to_the_first_places_and_never_beyond_the_last():
    target = np.zeros(3)
    copy_into(target, np.array([1.0, 2.0]))
    assert target.tolist() == [1.0, 2.0, 0.0]
    with pytest.raises(ValueError, match="more values than places"):
        copy_into(target[:1], np.array([1.0, 2.0]))


@pytest.mark.parametrize("size", [0, 1, 8, 9, 40, 64, 65, 300])
def test_equal_keys_stay_in_their_order(size):
    key = np.random.default_rng(size).integers(0, 9, size) / 2
    assert ascending(key).tolist() == sorted(range(size), key=key.__getitem__)
