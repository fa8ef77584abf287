"""Node lists of many rows at once, for nodes that a log has named before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bfreplay._compiled import compiled, compiled_inline
from bfreplay.datasets.ingest.occupancy.schedule import ScheduleRecord
from bfreplay.datasets.ingest.occupancy.spool import first_of_each

LEAST_NODES = 1 << 20
"""Nodes of one call of ``KnownNodes.read_lists``, unless the machine has more."""

_NONE = -1
_LONGEST_PREFIX, _MOST_DIGITS, _NAME_BYTES = 100, 9, 128
_COMMA, _DASH, _DOT, _OPEN, _CLOSE, _UNDERSCORE, _ZERO, _NINE = (ord(sign) for sign in ",-.[]_09")
_HASH_START, _HASH_FACTOR, _HASH_MASK = 2_166_136_261, 16_777_619, 0xFFFF_FFFF  # FNV-1a of 32 bits


class _Names(NamedTuple):
    """Names (N) one after another, each with the index of its node, found by their hash."""

    text: NDArray[np.uint8]
    first: NDArray[np.int64]
    node: NDArray[np.int32]
    slots: NDArray[np.int32]


class KnownNodes:
    """Names of a record's nodes, as spelt in the log so far, for lists that have no other.

    Lists of other forms than ``hostlists`` expands by itself, and lists with a new name, are not read here.
    """

    def __init__(self, record: ScheduleRecord) -> None:
        self._record = record
        self._n_learned = 0
        self._seen = np.zeros(0, np.int64)
        self._n_lists = 0
        self._names = _hash_table([], [])

    def learn(self) -> None:
        """Learn the names that the record got since the last call."""
        record, spellings = self._record, self._record.spellings
        if len(spellings) == self._n_learned:
            return
        # a job outside of a given inventory is a warning, for which its row is read alone
        n_inventory = record.n_given if record.n_given and not record.is_restricted else len(record.nodes)
        spelling_nodes = [(node_name, node) for node_name, node in spellings.items() if node < n_inventory]
        self._names = _hash_table([node_name for node_name, _ in spelling_nodes], [node for _, node in spelling_nodes])
        self._n_learned = len(spellings)
        self._seen = np.zeros(len(record.nodes), np.int64)
        self._n_lists = 0

    def read_lists(
        self,
        text_bytes: NDArray[np.uint8],
        first_byte: NDArray[np.int64],
        after_byte: NDArray[np.int64],
        count: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the number of nodes of each list, 0 for a list that is not read, and the nodes one after another.

        Stops early, with fewer numbers than lists, when the nodes are ``LEAST_NODES`` or more.

        Parameters
        ----------
        text_bytes, first_byte, after_byte
            Lists (L) from byte ``first_byte (L,)`` up to ``after_byte (L,)``.
        count
            Nodes that each list must have, ``(L,)``; 0: any number.
        """
        node_ids = np.empty(max(LEAST_NODES, len(self._seen)), np.int32)
        list_lengths = np.zeros(len(first_byte), np.int64)
        n_read, n_nodes = _read_lists(
            text_bytes, first_byte, after_byte, count, self._names, self._seen, self._n_lists, list_lengths, node_ids
        )
        self._n_lists += n_read + 1
        return list_lengths[:n_read], node_ids[:n_nodes].copy()


def _hash_table(node_names: list[str], node_ids: list[int]) -> _Names:
    name_bytes = [node_name.encode("utf-8", "surrogateescape") for node_name in node_names]
    first_byte = first_of_each(list(map(len, name_bytes)))
    slots = np.full(1 << (2 * len(node_names) + 2).bit_length(), _NONE, np.int32)
    names_table = _Names(np.frombuffer(b"".join(name_bytes), np.uint8), first_byte, np.array(node_ids, np.int32), slots)
    _fill_slots(names_table)
    return names_table


@compiled_inline
def _hash(state: int, text_bytes: NDArray[np.uint8], begin: int, end: int) -> int:
    for position in range(begin, end):
        state = ((state ^ int(text_bytes[position])) * _HASH_FACTOR) & _HASH_MASK
    return state


@compiled
def _fill_slots(names: _Names) -> None:
    mask = len(names.slots) - 1
    for i in range(len(names.node)):
        slot = _hash(_HASH_START, names.text, names.first[i], names.first[i + 1]) & mask
        while names.slots[slot] != _NONE:
            slot = (slot + 1) & mask
        names.slots[slot] = i


@compiled_inline
def _node_of(name: NDArray[np.uint8], length: int, state: int, names: _Names) -> int:
    """Return the node of a name with hash ``state``, -1 for an unknown name."""
    mask = len(names.slots) - 1
    slot = state & mask
    while names.slots[slot] != _NONE:
        i = names.slots[slot]
        if names.first[i + 1] - names.first[i] == length:
            is_same = True
            for position in range(length):
                if names.text[names.first[i] + position] != name[position]:
                    is_same = False
                    break
            if is_same:
                return int(names.node[i])
        slot = (slot + 1) & mask
    return _NONE


@compiled_inline
def _is_letter(sign: int) -> bool:
    return 97 <= sign <= 122 or 65 <= sign <= 90


@compiled_inline
def _is_digit(sign: int) -> bool:
    return _ZERO <= sign <= _NINE


@compiled
def _read_lists(
    text_bytes: NDArray[np.uint8],
    first: NDArray[np.int64],
    after_last: NDArray[np.int64],
    count: NDArray[np.int64],
    names: _Names,
    list_of_node: NDArray[np.int64],
    n_lists: int,
    list_lengths: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> tuple[int, int]:
    """Fill ``list_lengths`` and ``nodes``; return the lists and nodes done. ``list_of_node``: the last list of each."""
    n_nodes = 0
    for number in range(len(first)):
        n_before, list_number = n_nodes, n_lists + number + 1
        n_nodes = _read_list(
            text_bytes, first[number], after_last[number], names, list_of_node, list_number, nodes, n_before
        )
        if n_nodes < 0:
            if n_nodes == _FULL:
                return number, n_before
            n_nodes = n_before
        if count[number] > 0 and n_nodes - n_before != count[number]:
            n_nodes = n_before
        list_lengths[number] = n_nodes - n_before
    return len(first), n_nodes


_OTHER, _FULL = -1, -2


@compiled
def _read_list(
    text_bytes: NDArray[np.uint8],
    place: int,
    after_last: int,
    names: _Names,
    list_of_node: NDArray[np.int64],
    list_number: int,
    nodes: NDArray[np.int32],
    n_nodes: int,
) -> int:
    """Append the nodes of a list, each once; return the new number of nodes, ``_OTHER`` or ``_FULL``.

    The grammar is that of ``hostlists`` for ordinary parts, and for single names.
    """
    name = np.empty(_NAME_BYTES, np.uint8)
    while True:
        length, state = 0, _HASH_START
        if place >= after_last or not _is_letter(text_bytes[place]):
            return _OTHER
        while place < after_last and text_bytes[place] != _COMMA and text_bytes[place] != _OPEN:
            if length == _LONGEST_PREFIX:
                return _OTHER
            name[length] = text_bytes[place]
            length += 1
            place += 1
        state = _hash(state, name, 0, length)
        if place == after_last or text_bytes[place] == _COMMA:
            n_nodes = _append(_node_of(name, length, state, names), list_of_node, list_number, nodes, n_nodes)
            if n_nodes < 0:
                return n_nodes
        else:
            if _is_digit(name[length - 1]):
                return _OTHER
            width_before, number_before = 0, -1
            while text_bytes[place] != _CLOSE:
                place += 1  # the bracket, or the comma before a range
                begin, number = place, 0
                while place < after_last and _is_digit(text_bytes[place]):
                    number = 10 * number + int(text_bytes[place]) - _ZERO
                    place += 1
                width, last = place - begin, number
                last_width, last_begin = width, begin
                if place < after_last and text_bytes[place] == _DASH:
                    last_begin, last = place + 1, 0
                    place += 1
                    while place < after_last and _is_digit(text_bytes[place]):
                        last = 10 * last + int(text_bytes[place]) - _ZERO
                        place += 1
                    last_width = place - last_begin
                if place >= after_last or not 0 < width <= _MOST_DIGITS or not width <= last_width <= _MOST_DIGITS:
                    return _OTHER
                if text_bytes[place] != _COMMA and text_bytes[place] != _CLOSE:
                    return _OTHER
                has_zeros = (text_bytes[begin] == _ZERO and width > 1) or text_bytes[last_begin] == _ZERO
                if last < number or (has_zeros and width != last_width):
                    return _OTHER
                if width < width_before or (width == width_before and number <= number_before):
                    return _OTHER
                width_before, number_before = last_width, last
                while number <= last:
                    remainder, digits = number, width
                    power = 10**width
                    while number >= power:
                        digits += 1
                        power *= 10
                    for i in range(length + digits - 1, length - 1, -1):
                        name[i] = _ZERO + remainder % 10
                        remainder //= 10
                    node = _node_of(name, length + digits, _hash(state, name, length, length + digits), names)
                    n_nodes = _append(node, list_of_node, list_number, nodes, n_nodes)
                    if n_nodes < 0:
                        return n_nodes
                    number += 1
            place += 1
            if place < after_last and text_bytes[place] != _COMMA:
                return _OTHER
        if place == after_last:
            return n_nodes
        place += 1


@compiled_inline
def _append(
    node: int, list_of_node: NDArray[np.int64], list_number: int, nodes: NDArray[np.int32], n_nodes: int
) -> int:
    if node == _NONE:
        return _OTHER
    if list_of_node[node] == list_number:
        return n_nodes
    if n_nodes == len(nodes):
        return _FULL
    list_of_node[node] = list_number
    nodes[n_nodes] = node
    return n_nodes + 1
