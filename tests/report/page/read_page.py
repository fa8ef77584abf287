"""Reads a page as a program does: its text, its numbers, its tables, and what is packed inside."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np

_VOID = {"meta", "link", "br", "input", "img", "hr"}
_UNSEEN = {"script", "style", "title", "noscript"}


@dataclass
class ReadTable:
    """Cells as ``(value, text)``; those that the page has packed away included."""

    columns: list[str] = field(default_factory=list)
    rows: list[list[tuple[str, str]]] = field(default_factory=list)
    rest: str = ""


class ReadPage(HTMLParser):
    """``numbers``: key to (value, text); ``loose``: text that is neither a number, nor in a table, nor verbatim."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.numbers: dict[str, list[tuple[str, str]]] = {}
        self.tables: dict[str, ReadTable] = {}
        self.loose: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.words: dict[str, str] = {}
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._text: list[str] = []
        self._scripts: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        self.links += [given[name] for name in ("href", "src") if name in given]
        if tag == "table" and "id" in given:
            self.tables[given["id"]] = ReadTable(rest=given.get("data-rest") or "")
        if tag == "th" and "data-column" in given:
            self._table().columns.append(given["data-column"])
        if tag == "tr" and self._within("tbody") and self._table() is not None:
            self._table().rows.append([])
        if tag in ("data", "th", "td", "h1", "h2", "h3", "p"):
            self._text = []
        if tag not in _VOID:
            self._open.append((tag, given))

    def handle_endtag(self, tag):
        opened, given = self._open.pop()
        assert opened == tag, f"<{opened}> is closed by </{tag}>"
        text = "".join(self._text)
        if tag == "data":
            self.numbers.setdefault(given["data-key"], []).append((given["value"], text))
        if tag in ("th", "td") and "data-value" in given:
            self._table().rows[-1].append((given["data-value"], text))
        if tag in ("h1", "h2", "h3"):
            self.headings.append((tag, text))
        if tag == "p" and (given.get("id") or "").endswith("-words"):
            self.words[given["id"].removesuffix("-words")] = text

    def handle_data(self, data):
        self._text.append(data)
        tags = [tag for tag, _ in self._open]
        if tags and tags[-1] == "script":
            self._scripts[self._open[-1][1].get("id") or ""] = data
        elif not (_UNSEEN | {"data", "td", "th"}) & set(tags) and not self._within_verbatim():
            self.loose.append(data)

    def script(self, name):
        """Contents of the script element of this id."""
        return self._scripts[name]

    def all_rows(self, name):
        """Every row of a table, those packed away included."""
        table = self.tables[name]
        return json.loads(inflated(self._scripts[table.rest])) if table.rest else table.rows

    def figures(self):
        """What the page draws, by name."""
        return json.loads(self._scripts["data-figures"])

    def _within(self, tag):
        return any(each == tag for each, _ in self._open)

    def _within_verbatim(self):
        return any("data-verbatim" in given for _, given in self._open)

    def _table(self):
        names = [given["id"] for tag, given in self._open if tag == "table" and "id" in given]
        return self.tables[names[-1]] if names else None


def inflated(text):
    """The other end of ``packed``, as ``unpack.js`` has it."""
    return zlib.decompress(base64.b64decode(text))


def numbers_of(packed):
    """(N,) of a packed array."""
    values = np.frombuffer(inflated(packed["zlib"]), dtype=np.dtype(packed["type"]).newbyteorder("<"))
    assert len(values) == packed["n"]
    return values
