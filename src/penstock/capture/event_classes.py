"""Captured tables as Python: the event classes and tables that flows import."""

import json
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
    "blob": "bytes",
    "span": "int",
    "uint8": "Annotated[Decimal, Precision(20, 0)]",
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
    names = [name for _, name in made]
    made = [(each, f"{_words(each.schema)}{name}" if names.count(name) > 1 else name) for each, name in made]
    flat = capture.format == "flat-json"
    bodies = [_class(shape, name, _time(shape) if flat else None) for shape, name in made]
    tables = [
        f"# {name}: a flow needs an event time, and no column that is never null has one"
        if flat and _time(shape) is None
        else _table(capture, shape, name)
        for shape, name in made
    ]
    text = "\n\n\n".join(bodies)
    needed = [line for word, line in _IMPORTS.items() if re.search(rf"\b{word}\b", text)]
    precision = ", Precision" if "Precision(" in text else ""
    heads = ["from dataclasses import dataclass", *needed]
    own = [f"from penstock.events import Event{precision}", "from penstock.log import Table, Topic"]
    return "\n".join([*sorted(heads), "", *own]) + f"\n\n\n{text}\n\n\n" + "\n".join(tables) + "\n"


def _class_name(shape: TableShape) -> str:
    name = _words(shape.name)
    return name[:-1] if name.endswith("s") and not name.endswith("ss") and len(name) > 2 else name


def _words(text: str) -> str:
    words = re.split(r"[^A-Za-z0-9]+", text)
    name = "".join(word[:1].upper() + word[1:] for word in words if word)
    return name if name[:1].isalpha() else f"T{name}"


def _time(shape: TableShape) -> str | None:
    """Return the column that can be the event time of a flat row."""
    return next((c.name for c in shape.columns if c.required and _kind(c.type) == "datetime"), None)


def _class(shape: TableShape, name: str, time: str | None) -> str:
    lines = [_line(each, each.name in shape.key) for each in shape.columns if _is_name(each.name)]
    odd = [each.name for each in shape.columns if not _is_name(each.name)]
    left_out = [f"    # {each!r} is no name in Python" for each in odd]
    given = f", time={json.dumps(time)}" if time else ""
    head = ["@dataclass(frozen=True, kw_only=True)", f"class {name}(Event{given}):"]
    return "\n".join([*head, *lines, *left_out])


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
    plural = (
        name
        if name.lower().rstrip("s") != re.sub(r"\W|_", "", shape.name).lower().rstrip("s")
        else shape.name
    )
    variable, topic = re.sub(r"\W", "_", plural).upper(), capture.topic(shape.path)
    format = "json" if capture.format == "flat-json" else capture.format
    if not shape.key:
        return f"# {variable}: flows need a key, and the table has none"
    kind, key = "Table" if len(shape.key) == 1 else "Topic", json.dumps(shape.key[0])
    of_all = "" if len(shape.key) == 1 else f"  # the key is {', '.join(shape.key)}"
    return (
        f'{variable} = {kind}("{topic}", {name}, key={key}, format="{format}", '
        f"partitions={capture.partitions}){of_all}"
    )


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
