"""StateTable: the editable table from a scheduler's words about a node to the states of a log."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bfreplay.datasets.log.states import STATE_WORDS, NodeState
from bfreplay.datasets.readers_by_ending import check_is_file
from bfreplay.documents import check_toml_size, parse_toml
from bfreplay.errors import InputError
from bfreplay.typed_tables import TypedTable, typed_table

DEFAULT_FILE = Path(__file__).with_name("states.toml")
SUFFIXES = {
    "*": "not_responding",
    "~": "powered_down",
    "#": "powering_up",
    "%": "powering_down",
    "!": "power_down",
    "@": "reboot_requested",
    "^": "reboot",
    "$": "maint",
    "-": "planned",
}
"""Signs that sinfo appends to a state, and their words."""

_SEPARATORS = re.compile(r"[+,\s]+")
_MOST_KEPT = 10_000
_FIX = "print the default table, with its explanations, and edit that"


class _Row(TypedTable, frozen=True):
    """Row of the table: the words that have a state, and the reason."""

    state: str
    words: str
    why: str = ""


class _File(TypedTable, frozen=True):
    row: list[_Row]


@dataclass(frozen=True, slots=True)
class StateTable:
    """States of nodes by the words of a scheduler: of the rows in order, the first with any of a node's words decides.

    Attributes
    ----------
    rows
        State and words of each row.
    text
        The table as TOML, with its explanations.
    strange_words
        Words met so far that are in no row, and the first state in which each occurred.
    """

    rows: tuple[tuple[NodeState, frozenset[str]], ...]
    text: str
    strange_words: dict[str, str] = field(default_factory=dict)
    _known: dict[str, tuple[NodeState | None, NodeState | None]] = field(default_factory=dict)

    @classmethod
    def default(cls) -> StateTable:
        """Return the table for Slurm and PBS."""
        rows, text = _default()
        return cls(rows, text)

    @classmethod
    def load(cls, file: Path | str) -> StateTable:
        """Read a table that ``to_text`` wrote, and a user may have edited.

        Raises
        ------
        InputError
            No such table, a state that a log does not have, or a word in two rows.
        """
        return cls(*_read(Path(file)))

    def to_text(self) -> str:
        """Return the table as TOML, with its explanations, to be edited."""
        return self.text

    def state_of(self, raw: str) -> NodeState | None:
        """Return the state of a node from a scheduler's words; ``None`` if an unknown word may change it."""
        return self._both_states(raw)[0]

    def state_without_jobs(self, raw: str) -> NodeState | None:
        """Return the state that a node would have if no job were there: that of its flags, else idle."""
        return self._both_states(raw)[1]

    def _both_states(self, raw: str) -> tuple[NodeState | None, NodeState | None]:
        states = self._known.get(raw)
        if states is None:
            if len(self._known) >= _MOST_KEPT:  # of a command that prints nonsense for days
                self._known.clear()
            words = words_of(raw)
            job_words = {word for state, row_words in self.rows if state == NodeState.BUSY for word in row_words}
            states = self._known[raw] = self._decide(words, raw), self._decide(words - job_words or {"idle"}, raw)
        return states

    def _decide(self, words: set[str], raw: str) -> NodeState | None:
        strange = words.difference(*(row_words for _, row_words in self.rows))
        for word in sorted(strange):
            if len(self.strange_words) < _MOST_KEPT:
                self.strange_words.setdefault(word, raw)
        state = next((state for state, row_words in self.rows if not words.isdisjoint(row_words)), None)
        return state if not strange or state in (NodeState.BUSY, NodeState.DOWN) else None


def words_of(raw: str) -> set[str]:
    """Return the words of a node's state in lower case, those of its suffixes among them."""
    words: set[str] = set()
    for part in _SEPARATORS.split(raw.lower()):
        word = part.rstrip("".join(SUFFIXES))
        words.update(SUFFIXES[sign] for sign in part[len(word) :])
        words.add(word)
    return words - {""}


@cache
def _default() -> tuple[tuple[tuple[NodeState, frozenset[str]], ...], str]:
    return _read(DEFAULT_FILE)


def _read(file: Path) -> tuple[tuple[tuple[NodeState, frozenset[str]], ...], str]:
    check_is_file(file)
    check_toml_size(file)
    try:
        text = file.read_bytes().decode()
        document = parse_toml(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"this is no TOML: {error}", file=file, expected="a table of states", fix=_FIX) from error
    rows: list[tuple[NodeState, frozenset[str]]] = []
    row_of: dict[str, int] = {}
    for number, row in enumerate(typed_table(document, _File, file).row, start=1):
        label, words = f"[[row]] {number}", row.words.lower().split()
        if row.state not in STATE_WORDS:
            expected, fix = "one of " + ", ".join(STATE_WORDS), "use one of these words"
            problem = "a log has no such state"
            raise InputError(problem, file=file, row=label, column="state", value=row.state, expected=expected, fix=fix)
        for word in words:
            if word in row_of:
                problem, fix = f"the word {word!r} is in row {row_of[word]} already", "remove it from one of the two"
                expected = "each word in one row"
                raise InputError(problem, file=file, row=label, column="words", value=word, expected=expected, fix=fix)
            row_of[word] = number
        rows.append((NodeState[row.state.upper()], frozenset(words)))
    if not row_of:
        raise InputError("the table has no words", file=file, value=len(rows), expected="rows with words", fix=_FIX)
    return tuple(rows), text
