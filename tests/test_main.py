"""The entry point of the command line."""

from __future__ import annotations

import atexit
import gc

import pytest

from bfreplay.__main__ import main


def test_what_is_left_at_the_end_is_not_looked_through_for_garbage(monkeypatch):
    at_exit = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    monkeypatch.setattr("bfreplay.cli.main", lambda prog_name: pytest.exit(prog_name) if not at_exit else None)
    main()
    assert at_exit == [gc.freeze]
