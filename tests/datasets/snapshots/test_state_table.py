"""The table of states: the first row with a word of the node decides, and a user can edit it."""

import pytest

from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.snapshots import state_table
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.errors import InputError


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ("IDLE", "idle"),
        ("IDLE+CLOUD", "idle"),
        ("IDLE+PLANNED", "planned"),
        ("IDLE+RESERVED+PLANNED", "reserved"),
        ("IDLE+COMPLETING+PLANNED", "completing"),
        ("IDLE+COMPLETING+MAINTENANCE+RESERVED+PLANNED", "maintenance"),
        ("IDLE+DRAIN", "drain"),
        ("IDLE+DRAIN+PLANNED", "drain"),
        ("IDLE+POWERED_DOWN+PLANNED", "off"),
        ("IDLE+POWERING_DOWN", "off"),
        ("IDLE+NOT_RESPONDING", "down"),
        ("IDLE+POWERED_DOWN+NOT_RESPONDING", "off"),
        ("IDLE+FAIL", "down"),
        ("DOWN+POWERED_DOWN", "down"),
        ("UNKNOWN", "unknown"),
        ("UNKNOWN+NOT_RESPONDING", "unknown"),
        ("ALLOCATED", "busy"),
        ("MIXED+DRAIN", "busy"),
        ("ALLOCATED+MAINTENANCE+RESERVED", "busy"),
        ("ALLOCATED+NOT_RESPONDING+POWERING_UP", "off"),
        ("ALLOCATED+COMPLETING", "busy"),
        ("DOWN+ALLOCATED", "down"),
        ("idle*", "down"),
        ("idle-", "planned"),
        ("mix-", "busy"),
        ("alloc#", "off"),
        ("idle$", "maintenance"),
        ("idle~", "off"),
        ("idle@", "drain"),
        ("free", "idle"),
        ("free,has-jobs", "busy"),
        ("down,offline", "down"),
        ("job-exclusive,resv-exclusive", "busy"),
        ("resv-exclusive", "reserved"),
        ("offline", "drain"),
        ("state-unknown", "unknown"),
        ("wait-provisioning", "off"),
    ],
)
def test_the_first_row_with_a_word_of_the_node_decides(raw, word):
    assert STATE_WORDS[StateTable.default().state_of(raw)] == word


@pytest.mark.parametrize("word", STATE_WORDS)
def test_the_words_of_a_log_mean_themselves(word):
    assert StateTable.default().state_of(word) == NodeState[word.upper()]


def test_a_word_that_is_in_no_row_is_never_idle_and_reported_with_its_state():
    table = StateTable.default()
    assert table.state_of("IDLE+QUANTUM") is None
    assert table.state_of("IDLE+PLANNED+QUANTUM") is None
    assert table.state_of("") is None
    assert table.state_of("ALLOCATED+QUANTUM") == NodeState.BUSY
    assert table.state_of("DOWN+MURKY") == NodeState.DOWN
    assert table.strange_words == {"quantum": "IDLE+QUANTUM", "murky": "DOWN+MURKY"}


def test_nonsense_that_is_new_at_every_poll_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(state_table, "_MOST_KNOWN", 10)
    table = StateTable.default()
    for number in range(200):
        assert table.state_of(f"odd{number}+idle") is None
    assert len(table.strange_words) == 50
    assert len(table._known) <= 10
    assert table.state_of("idle") == NodeState.IDLE


def test_without_its_jobs_a_node_is_what_its_flags_say_else_idle():
    table = StateTable.default()
    states = {raw: table.state_without_jobs(raw) for raw in ("ALLOCATED", "MIXED+DRAIN", "ALLOCATED+PLANNED", "IDLE")}
    assert states == {
        "ALLOCATED": NodeState.IDLE,
        "MIXED+DRAIN": NodeState.DRAIN,
        "ALLOCATED+PLANNED": NodeState.PLANNED,
        "IDLE": NodeState.IDLE,
    }


def test_the_printed_table_can_be_edited_and_given_back(tmp_path):
    file = tmp_path / "states.toml"
    file.write_text(StateTable.default().to_text())
    same = StateTable.load(file)
    assert same.rows == StateTable.default().rows
    file.write_text(
        same.to_text().replace('words = "planned plnd"', 'words = "plnd"').replace('"idle free', '"idle planned free')
    )
    edited = StateTable.load(file)
    assert edited.state_of("IDLE+PLANNED") == NodeState.IDLE
    assert edited.state_of("plnd") == NodeState.PLANNED


def test_a_row_that_is_moved_up_wins(tmp_path):
    file = tmp_path / "states.toml"
    file.write_text('[[row]]\nstate = "drain"\nwords = "drain"\n' + '[[row]]\nstate = "busy"\nwords = "allocated"\n')
    assert StateTable.load(file).state_of("ALLOCATED+DRAIN") == NodeState.DRAIN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[row]]\nstate = "lazy"\nwords = "idle"\n', "a log has no such state"),
        ('[[row]]\nstate = "idle"\nwords = "idle"\n[[row]]\nstate = "busy"\nwords = "IDLE"\n', "in row 1 already"),
        ('[[row]]\nstate = "idle"\nwords = ""\n', "the table has no words"),
        ('[[row]]\nstate = "idle"\n', "words"),
        ('[[row]]\nstate = 3\nwords = "idle"\n', "state"),
        ('[[rows]]\nstate = "idle"\nwords = "idle"\n', "row"),
        ("idle = [", "this is no TOML"),
        ("", "row"),
        (b"\xff\xfe", "this is no TOML"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, problem):
    file = tmp_path / "states.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        StateTable.load(file)
    assert problem in str(error.value)
    assert str(error.value.file) == str(file)
    assert error.value.fix


def test_a_command_that_prints_new_words_for_ever_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(state_table, "_MOST_KNOWN", 10)
    monkeypatch.setattr(state_table, "_MOST_STRANGE", 10)
    table = StateTable.default()
    for number in range(100):
        assert table.state_of(f"quantum{number}") is None
    assert table.state_of("IDLE") == NodeState.IDLE
    assert len(table.strange_words) == 10
    assert len(table._known) <= 10
