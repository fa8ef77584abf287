"""Tables of a TOML file as typed structs, and msgspec's refusals as errors that name file, table, key and value."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, inspect

from bfreplay import checks
from bfreplay.documents import fault_and_path
from bfreplay.errors import InputError

_LARGEST = sys.float_info.max
_LARGEST_WHOLE = 2**63 - 1
"""Of a whole number in TOML."""

FiniteFloat: TypeAlias = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
Finite: TypeAlias = Annotated[int, Meta(ge=-_LARGEST_WHOLE, le=_LARGEST_WHOLE)] | FiniteFloat
NotNegative: TypeAlias = Annotated[int, Meta(ge=0, le=_LARGEST_WHOLE)] | Annotated[float, Meta(ge=0, le=_LARGEST)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=_LARGEST_WHOLE)] | Annotated[float, Meta(gt=0, le=_LARGEST)]
"""Finite numbers; those that are written as whole numbers stay whole."""

Whole: TypeAlias = Annotated[int, Meta(ge=0, le=checks.LARGEST)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=checks.LARGEST)]

_WORDS = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "a table",
}
"""For msgspec's names of types."""

_Table = TypeVar("_Table")


class TypedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of the tables of a TOML file: a field for each key, and no other keys."""


def typed_table(content: object, kind: type[_Table], file: str | Path, label: str | None = None) -> _Table:
    """Convert a table of a TOML file, or all its tables together.

    Parameters
    ----------
    content
        The table as it was parsed.
    kind
        A ``TypedTable``, whose fields may be tables and lists of tables.
    file
        File of the table, for messages.
    label
        Name of the table in messages, such as ``"[search.lr]"``; ``None`` for the whole file.

    Raises
    ------
    InputError
        A key is unknown or missing, or a value is of another type or out of bounds.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise _located_error(error, content, kind, file, label) from error


def missing_key(key: str, table: Mapping[str, object], label: str | None) -> InputError:
    """Return the error for a required key that a table, or the whole file (``None``), does not have."""
    if label is None:
        problem, place = f"the table [{key}] is missing", f"[{key}]"
        return InputError(problem, row=place, expected=f"{place} in a line of its own", fix=f"add {place}")
    return InputError(
        f"the key {key!r} is missing",
        row=label,
        column=key,
        value=list(table),
        expected=f"{key} = ... in {label}",
        fix=f"add it below {label}",
    )


def _located_error(
    error: msgspec.ValidationError, content: Any, table_type: type, file: str | Path, label: str | None
) -> InputError:
    """Return the error for the value that msgspec refuses: its path leads through the tables and their types."""
    fault, key_path = fault_and_path(error)
    value: Any = content
    expected: Any = inspect.type_info(table_type)
    key, tables = None, []
    refusal = _refusal(label or "the file", value, expected, label)
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", key_path):
        if refusal is not None:
            break
        if index:
            value, expected = value[int(index)], expected.item_type
            if isinstance(expected, inspect.StructType | inspect.DictType):
                label, key = f"[[{key}]] {int(index) + 1}", None
        else:
            key, value, expected = name, value[name], _field_type(expected, name)
            if isinstance(expected, inspect.StructType) or (label is None and isinstance(expected, inspect.DictType)):
                tables.append(name)
                label, key = f"[{'.'.join(tables)}]", None
        refusal = _refusal(key or label or "the file", value, expected, label)
    if refusal is None:
        expected_words = _plain_words(fault)
        problem, remedy = f"{key or label} is unusable", f"give {expected_words}"
        refusal = InputError(problem, value=value, expected=expected_words, fix=remedy)
    return refusal.with_changes(file=file, row=refusal.row or label, column=key or refusal.column)


def _plain_words(fault: str) -> str:
    """Return what msgspec expected in the words of the other errors: ``"a list of length 2"``."""
    names = re.compile(r"`([\w |]+)`")
    return names.sub(
        lambda match: " or ".join(_WORDS.get(name, name) for name in match[1].split(" | ") if name != "null"),
        fault.removeprefix("Expected ").partition(", got ")[0],
    )


def _field_type(table: Any, key_name: str) -> inspect.Type:
    """Return the type of a key, without the ``None`` of one that may be left out."""
    field_type: inspect.Type = next(field.type for field in table.fields if field.encode_name == key_name)
    if not isinstance(field_type, inspect.UnionType):
        return field_type
    options = tuple(option for option in field_type.types if not isinstance(option, inspect.NoneType))
    return options[0] if len(options) == 1 else inspect.UnionType(options)


def _refusal(key_name: str, value: Any, expected: inspect.Type, label: str | None) -> InputError | None:
    """Return the error for a value of another type; ``None`` if it is of this one, or there is no check of the type."""
    try:
        _check(key_name, value, expected, label)
    except InputError as refusal:
        return refusal
    return None


def _check(key_name: str, value: Any, expected: inspect.Type, label: str | None) -> None:
    match expected:
        case inspect.StructType() | inspect.DictType() if not isinstance(value, Mapping):
            raise InputError(
                f"{key_name} is no table",
                value=value,
                expected=f"{key_name} in a line of its own, its keys below",
                fix=f"write {key_name} with its keys below",
            )
        case inspect.StructType(fields=fields):
            checks.known_keys(value, [field.encode_name for field in fields], key_name)
            for field in fields:
                if field.required and field.encode_name not in value:
                    raise missing_key(field.encode_name, value, label)
        case inspect.DictType(value_type=value_type):
            for key, inner in value.items():
                _check(key, inner, value_type, label)
        case inspect.ListType(item_type=inspect.StructType() | inspect.DictType()) if (
            not isinstance(value, list) or not value
        ):
            raise InputError(
                f"{key_name} is no array of tables",
                value=value,
                expected=f"[[{key_name}]] before each of them",
                fix=f"write [[{key_name}]] in double brackets, in a line of its own",
            )
        case inspect.IntType(ge=least, le=most):
            checks.whole(key_name, value, -checks.LARGEST if least is None else least, most or checks.LARGEST)
        case inspect.FloatType(gt=above, ge=least, le=most):
            least = None if least == -_LARGEST else least
            most = math.inf if most is None or most == _LARGEST else most
            checks.number(key_name, value, above=above, least=least, most=most)
        case inspect.UnionType(types=(inspect.IntType(), inspect.FloatType() as number)):
            _check(key_name, value, number, label)
        case inspect.BoolType():
            checks.truth(key_name, value)
        case inspect.StrType():
            checks.text(key_name, value)
        case inspect.LiteralType(values=words):
            checks.one_of(key_name, value, [str(word) for word in words])
