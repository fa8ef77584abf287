"""Names of jobs by key, in little memory."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray


class JobNames:
    """Names of the jobs whose name is not their key as a number; those of others need no room."""

    def __init__(self) -> None:
        self._keys, self._ends, self._texts = array("q"), array("q"), bytearray()
        self._order = np.empty(0, np.int64)

    def add(self, key: int, name: str) -> None:
        """Note the name of a job."""
        if name != str(key):
            self._keys.append(key)
            self._texts += name.encode("utf-8", "surrogateescape")
            self._ends.append(len(self._texts))

    def of(self, keys: NDArray[np.int64]) -> list[str]:
        """Return the name of each job; of names with one key the first."""
        names = list(map(str, keys.tolist()))
        keys_with_name = np.array(self._keys, dtype=np.int64)
        if len(self._order) != len(keys_with_name):
            self._order = np.argsort(keys_with_name, kind="stable")
        place = np.searchsorted(keys_with_name, keys, sorter=self._order)
        for position in np.flatnonzero(place < len(keys_with_name)).tolist():
            number = int(self._order[place[position]])
            if keys_with_name[number] == keys[position]:
                begin = self._ends[number - 1] if number else 0
                names[position] = self._texts[begin : self._ends[number]].decode("utf-8", "replace")
        return names
