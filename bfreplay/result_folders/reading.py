"""Reads a folder of results: its JSON documents, and its tables when they are asked for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bfreplay.documents import parse_json, printable_json
from bfreplay.errors import InputError, printable
from bfreplay.result_folders.kinds import ResultKind

if TYPE_CHECKING:
    import pandas as pd


def read_documents(folder: Path, kind: ResultKind) -> list[dict[str, Any]]:
    """Read the record of a result folder, then its other documents, in the order in which ``kind`` has them.

    Raises
    ------
    InputError
        The folder is not of this kind, damaged, or of another schema version.
    """
    documents = [_read_document(folder, name, kind) for name in (kind.record_file, *kind.more_documents)]
    found = documents[0].get("schema_version")
    if found != kind.schema_version:
        raise InputError(
            f"the {kind.word} folder has another schema version",
            file=folder / kind.record_file,
            column="schema_version",
            value=found,
            expected=str(kind.schema_version),
            fix=f"make it again with this version of bfreplay: '{kind.made_by}'",
        )
    return documents


def _read_document(folder: Path, name: str, kind: ResultKind) -> dict[str, Any]:
    try:
        text = (folder / name).read_text(encoding="utf-8")
        document = parse_json(text, parse_constant=_refused, parse_float=_finite)
    except FileNotFoundError:
        why = f"it has no {name}" if folder.is_dir() else "there is no such folder"
    except OSError as error:
        why = f"{name}: {error.strerror or error}"
    except ValueError as error:
        why = f"{name} is no JSON document ({error})"
    else:
        if isinstance(document, dict):
            escaped: dict[str, Any] = printable_json(document)
            return escaped
        why = f"{name} is a JSON {type(document).__name__}, not an object"
    raise InputError(
        f"this is not a {kind.word} folder: {why}",
        file=folder,
        expected="a folder with " + " and ".join((kind.record_file, *kind.more_documents)),
        fix=f"give the folder that '{kind.made_by}' wrote",
    )


def _refused(constant: str) -> float:
    """Not in JSON, but Python reads it, and writes it when it is not told not to."""
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refused(text)


def _printable_table(table: pa.Table) -> pa.Table:
    """Return the table with control characters in names and texts escaped: a stranger's folder steers no terminal."""
    if (names := [printable(name) for name in table.column_names]) != table.column_names:
        table = table.rename_columns(names)
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        innermost = kind
        while isinstance(innermost, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.DictionaryType):
            innermost = innermost.value_type
        if not (pa.types.is_string(innermost) or pa.types.is_large_string(innermost)):
            continue
        column = table.column(i)
        column.validate(full=True)  # refuses bytes that are no text
        if innermost is not kind:
            lists = column.to_pylist()
            if (shown := printable_json(lists)) != lists:
                table = table.set_column(i, field.name, pa.array(shown))
            continue
        texts = pc.unique(column.cast(kind)).to_pylist()
        escaped = {text: shown for text in texts if text is not None and (shown := printable(text)) != text}
        if escaped:
            shown = pa.array([escaped.get(text, text) for text in column.to_pylist()], kind)
            table = table.set_column(i, field.with_type(kind), shown)
    return table


class ResultTables:
    """Tables of a result by name: those in memory, and those of its folder, read when first asked for.

    For dataclasses with the fields ``folder`` (``None`` in memory) and ``tables``.
    """

    kind: ClassVar[ResultKind]
    folder: Path | None
    tables: dict[str, pa.Table]

    def table(self, name: str) -> pa.Table:
        """Table ``name``, without ``.parquet``.

        Raises
        ------
        InputError
            There is no such table, or its file is damaged.
        """
        if name not in self.tables:
            path = None if self.folder is None else self.folder / f"{name}.parquet"
            if path is None or not path.exists():
                message = f"the {self.kind.word} has no table {name!r}"
                raise InputError(message, file=path, fix=self.kind.hints.get(name))
            if not path.is_file():  # pyarrow takes a folder for a table in parts, and an empty one for an empty table
                raise self._unreadable(path, "it is no file")
            try:
                self.tables[name] = _printable_table(pq.read_table(path))
            except (pa.ArrowException, OSError) as error:
                raise self._unreadable(path, error) from error
        return self.tables[name]

    def _unreadable(self, path: Path, why: object) -> InputError:
        return InputError(
            f"the table cannot be read: {why}",
            file=path,
            expected="a whole Parquet file",
            fix=f"make the folder again: '{self.kind.made_by}'",
        )

    def has_table(self, name: str) -> bool:
        """Whether there is such a table, damaged or not: older versions did not write all of them."""
        return name in self.tables or (self.folder is not None and (self.folder / f"{name}.parquet").exists())

    def frame(self, name: str) -> pd.DataFrame:
        """Table ``name`` as a data frame; raises as ``table`` does."""
        frame: pd.DataFrame = self.table(name).to_pandas()
        return frame


class SavedResult(ResultTables):
    """A folder of results as others read it: ``record`` and tables. Subclasses say of which ``kind``.

    Parameters
    ----------
    folder
        Where it lies.

    Raises
    ------
    InputError
        It is none of this kind, or one of another schema version.
    """

    def __init__(self, folder: Path) -> None:
        self.record = read_documents(folder, self.kind)[0]
        self.folder = folder
        self.tables = {}
