"""Which primitive types read which others, and what logical types add to that."""

from collections.abc import Iterator

from penstock.schemas.compatibility.avro.types import Fixed, Logical, Primitive, Resolved, label
from penstock.schemas.compatibility.problem import Problem

PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def promotable(reader: Primitive, writer: Primitive) -> bool:
    """Whether the specification lets the reader's type take the writer's."""
    return reader.name == writer.name or reader.name in PROMOTIONS.get(writer.name, ())


def type_mismatch(reader: Resolved, writer: Resolved, path: str) -> Problem:
    """The problem of two types that have nothing to do with each other."""
    seen = f"the writer's {label(writer)} can't be read as {label(reader)}"
    return Problem(path, "type-mismatch", f"{seen}; keep the type, or add a field")


def primitive_problems(reader: Primitive, writer: Primitive, path: str) -> Iterator[Problem]:
    """What is wrong with reading one primitive as another."""
    if not promotable(reader, writer):
        yield type_mismatch(reader, writer, path)
    elif (reader.name, writer.name) == ("string", "bytes"):
        # The specification allows it, but bytes that are not UTF-8 fail or are replaced at read.
        message = (
            "the writer's bytes may not be text and can't be relied on to read as string; "
            "keep bytes (in a union, put bytes before string)"
        )
        yield Problem(path, "bytes-as-string", message)
    else:
        yield from logical_problems(reader, writer, path)


def logical_problems(reader: Primitive | Fixed, writer: Primitive | Fixed, path: str) -> Iterator[Problem]:
    """What differing logical types do to a value that reads well otherwise."""
    mine, theirs = reader.logical, writer.logical
    if mine and theirs and mine.name == theirs.name == "decimal":
        yield from _decimal_problems(mine, theirs, path)
    elif _meaning_changes(mine, theirs):
        message = (
            f"the writer's {label(writer)} would be taken for {label(reader)}, another value; "
            "keep the logical type, or add a field"
        )
        yield Problem(path, "logical-type-changed", message)


def _meaning_changes(reader: Logical | None, writer: Logical | None) -> bool:
    if reader == writer:
        return False
    if reader and writer:
        return True
    # Without its annotation a time is still the number it was; a decimal or duration is only bytes,
    # and a text is not always a uuid.
    only = reader or writer
    return only is not None and (
        only.name in ("decimal", "duration") or (only.name == "uuid" and reader is not None)
    )


def _decimal_problems(reader: Logical, writer: Logical, path: str) -> Iterator[Problem]:
    if reader.scale != writer.scale:
        message = (
            f"the writer's decimal has scale {writer.scale}, the reader's {reader.scale}; "
            "keep the scale, or add a field"
        )
        yield Problem(path, "decimal-scale-changed", message)
    if reader.precision < writer.precision:
        message = (
            f"the writer's decimal has {writer.precision} digits, the reader's only {reader.precision}; "
            f"give it a precision of {writer.precision} or more"
        )
        yield Problem(path, "decimal-precision-narrowed", message)
