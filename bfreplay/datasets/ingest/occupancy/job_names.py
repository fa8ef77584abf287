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

    def add(self, job_key: int, job_name: str) -> None:
        """Note the name of a job."""
        if job_name != str(job_key):
            self._keys.append(job_key)
            self._texts += job_name.encode("utf-8", "surrogateescape")
            self._ends.append(len(self._texts))

    def of(self, job_keys: NDArray[np.int64]) -> list[str]:
        """Return the name of each job; of names with one key the first."""
        job_names = list(map(str, job_keys.tolist()))
        keys_with_name = np.array(self._keys, dtype=np.int64)
        if len(self._order) != len(keys_with_name):
            self._order = np.argsort(keys_with_name, kind="stable")
        sorted_place = np.searchsorted(keys_with_name, job_keys, sorter=self._order)
        for position in np.flatnonzero(sorted_place < len(keys_with_name)).tolist():
            name_number = int(self._order[sorted_place[position]])
            if keys_with_name[name_number] == job_keys[position]:
                text_begin = self._ends[name_number - 1] if name_number else 0
                job_names[position] = self._texts[text_begin : self._ends[name_number]].decode("utf-8", "replace")
        return job_names
