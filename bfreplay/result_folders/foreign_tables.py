"""Tables of a folder that anyone may have written: texts that steer no terminal, and types of any release."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bfreplay.documents import printable_json
from bfreplay.errors import printable


def printable_table(table: pa.Table) -> pa.Table:
    """Return the table with control characters in names and texts escaped: a stranger's folder steers no terminal."""
    if (names := [printable(name) for name in table.column_names]) != table.column_names:
        table = table.rename_columns(names)
    for i, column_field in enumerate(table.schema):
        kind = column_field.type.value_type if pa.types.is_dictionary(column_field.type) else column_field.type
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
                table = table.set_column(i, column_field.name, pa.array(shown))
            continue
        words = column.unify_dictionaries() if column_field.type is not kind else column
        texts = pc.unique(words).cast(kind).to_pylist()
        escaped = {text: shown for text in texts if text is not None and (shown := printable(text)) != text}
        if escaped:
            shown = pa.array([escaped.get(text, text) for text in column.to_pylist()], kind)
            table = table.set_column(i, column_field.with_type(kind), shown)
    return table


def is_alike(found: pa.DataType, written: pa.DataType) -> bool:
    """Return whether a type is the one that was written, as any release of pyarrow reads it."""
    for is_nested in (pa.types.is_dictionary, pa.types.is_list):
        if is_nested(found) and is_nested(written):
            return is_alike(found.value_type, written.value_type)
    return bool(found == written)
