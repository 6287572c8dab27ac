"""Captured tables as Python: the event classes and tables that flows import."""

import keyword
import re
from collections.abc import Iterable

from penstock.capture.capture import Capture
from penstock.capture.tables import Column, TableShape
from penstock.capture.types import Type

_KINDS = {
    "bool": "bool",
    "int2": "int",
    "int4": "int",
    "int8": "int",
    "oid": "int",
    "float4": "float",
    "float8": "float",
    "bytea": "bytes",
    "date": "date",
    "timestamptz": "datetime",
    "uuid": "UUID",
    "varbit": "bytes",
}
_IMPORTS = {
    "datetime": "from datetime import datetime",
    "date": "from datetime import date",
    "Decimal": "from decimal import Decimal",
    "Annotated": "from typing import Annotated",
    "UUID": "from uuid import UUID",
}
_MOST_DIGITS = 38


def classes(capture: Capture, shapes: Iterable[TableShape]) -> str:
    """Return a module with a class and a table for each captured table."""
    made = [(shape, _class_name(shape)) for shape in shapes]
    bodies = [_class(shape, name) for shape, name in made]
    tables = [_table(capture, shape, name) for shape, name in made]
    text = "\n\n\n".join(bodies)
    needed = [line for word, line in _IMPORTS.items() if re.search(rf"\b{word}\b", text)]
    precision = ", Precision" if "Precision(" in text else ""
    heads = ["from dataclasses import dataclass", *needed]
    own = [f"from penstock.events import Event{precision}", "from penstock.log import Table, Topic"]
    return "\n".join([*sorted(heads), "", *own]) + f"\n\n\n{text}\n\n\n" + "\n".join(tables) + "\n"


def _class_name(shape: TableShape) -> str:
    words = re.split(r"[^A-Za-z0-9]+", shape.name)
    name = "".join(word[:1].upper() + word[1:] for word in words if word)
    return name[:-1] if name.endswith("s") and not name.endswith("ss") and len(name) > 2 else name


def _class(shape: TableShape, name: str) -> str:
    lines = [_line(each, each.name in shape.key) for each in shape.columns if _is_name(each.name)]
    left_out = [
        f"    # {each.name!r} is no name in Python" for each in shape.columns if not _is_name(each.name)
    ]
    return "\n".join(["@dataclass(frozen=True, kw_only=True)", f"class {name}(Event):", *lines, *left_out])


def _line(column: Column, in_key: bool) -> str:
    kind = _kind(column.type)
    if column.required or in_key:
        return f"    {column.name}: {kind}"
    return f"    {column.name}: {kind} | None = None"


def _kind(type: Type) -> str:
    """Return how Python has a type; what has more digits than any decimal of Spark's stays text."""
    if type.element is not None:
        return f"list[{_kind(type.element)} | None]"
    if type.name == "timestamp":
        return "datetime" if type.precision > 3 else "int"
    if type.name == "bit":
        return "bool" if type.modifier == 1 else "bytes"
    if type.name == "time":
        return "int"
    digits, scale = type.digits, type.scale
    if digits is not None and scale is not None and digits <= _MOST_DIGITS and 0 <= scale <= digits:
        return f"Annotated[Decimal, Precision({digits}, {scale})]"
    return _KINDS.get(type.name, "str")


def _table(capture: Capture, shape: TableShape, name: str) -> str:
    variable, topic = re.sub(r"\W", "_", shape.name).upper(), capture.topic(shape.path)
    format = "json" if capture.format == "flat-json" else capture.format
    if len(shape.key) != 1:
        return f'{variable} = Topic("{topic}", {name}, format="{format}", partitions={capture.partitions})'
    return (
        f'{variable} = Table("{topic}", {name}, key="{shape.key[0]}", format="{format}", '
        f"partitions={capture.partitions})"
    )


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
