"""``bfreplay describe``, ``solvers``, ``--version``, and what ``--help`` costs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import bfreplay
from bfreplay.cli import main
from bfreplay.commands.inputs import say
from tests.conftest import REPOSITORY


def test_describe_characterises_the_bundled_log():
    result = CliRunner().invoke(main, ["describe", "sample"])
    assert result.exit_code == 0, result.output
    for word in ("equivalent nodes", "idle node-hours", "length of an idle interval", "events an hour"):
        assert word in result.stdout


def test_describe_as_json_agrees_with_the_text():
    document = json.loads(CliRunner().invoke(main, ["describe", "sample", "--json"]).stdout)
    text = CliRunner().invoke(main, ["describe", "sample"]).stdout
    assert f"{document['mean_idle_nodes']:,.1f}" in text


def test_describe_refuses_what_is_no_log(tmp_path):
    (tmp_path / "log.txt").write_text("hello")
    result = CliRunner().invoke(main, ["describe", str(tmp_path / "log.txt")])
    assert result.exit_code == 2
    assert "log.txt" in result.stderr
    assert "Traceback" not in result.output


def test_solvers_lists_what_works_here():
    result = CliRunner().invoke(main, ["solvers"])
    assert "exact" in result.stdout
    entries = {e["name"]: e for e in json.loads(CliRunner().invoke(main, ["solvers", "--json"]).stdout)}
    assert entries["exact"]["problem"] == ""
    assert set(entries["cbc"]["formulations"]) >= {"published", "node_level", "choices"}


def test_version_is_the_packages():
    assert bfreplay.__version__ in CliRunner().invoke(main, ["--version"]).stdout


def test_show_versions_names_everything_a_bug_report_needs(capsys):
    bfreplay.show_versions()
    text = capsys.readouterr().out
    for name in ("python", "bfreplay", "numpy", "pyarrow", "numba", "mip", "machine", "hot loops"):
        assert name in text


def test_help_loads_neither_pandas_nor_numba_nor_pyarrow():
    code = (
        "import sys\n"
        "from bfreplay.cli import main\n"
        "names = main.list_commands(None)\n"
        "assert 'replay' in names\n"
        "for arguments in ([], *([name] for name in names)):\n"
        "    main([*arguments, '--help'], standalone_mode=False)\n"
        "    heavy = {'pandas', 'numba', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "    assert not heavy, f'{arguments} loaded {heavy}'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--t-fwd" in done.stdout


def test_every_public_name_can_be_used():
    for name in bfreplay.__all__:
        assert getattr(bfreplay, name) is not None
    assert set(bfreplay.__all__) <= set(dir(bfreplay))


def test_ctrl_c_while_the_program_is_loaded_ends_it_without_a_traceback(tmp_path):
    (tmp_path / "rich_click.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-m", "bfreplay", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Aborted.\n")


@pytest.mark.parametrize(
    ("encoding", "node"),
    [pytest.param("utf-8", "結".encode(), marks=pytest.mark.thorough), ("latin-1", rb"\u7d50")],
    ids=["utf-8", "latin-1"],
)
def test_text_that_the_terminal_cannot_show_ends_no_command(tmp_path, encoding, node):
    log = tmp_path / "jobs.psv"
    log.write_bytes(
        b"JobIDRaw|State|Start|End|NodeList\n1|COMPLETED|2024-05-01T00:00:00|2024-05-01T01:00:00|n[1-2]\n"
        b"2|\x1b[31m\xff\xe7\xb5\x90|2024-05-01T00:00:00|2024-05-01T01:00:00|n\x1b[31m\n\x1b[31m\xff\n"
    )
    command = [sys.executable, "-m", "bfreplay", "ingest", "slurm", str(log), "--tz", "UTC"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\x1b[31m\udcff" + node in done.stdout
    assert b"\x1b" not in done.stdout


def test_all_that_commands_print_is_escaped_in_one_place(capsys):
    say("a\x1b]0;title\x07\x9b31m\u202e\r\nb")
    assert capsys.readouterr().out == "a\\x1b]0;title\\x07\\x9b31m\\u202e\\r\nb\n"
    folder = Path(bfreplay.__file__).parent / "commands"
    others = [file.name for file in folder.glob("*.py") if re.search(r"click\.s?echo\(|\bprint\(", file.read_text())]
    assert others == ["inputs.py"]
