"""The front: schemas of any kind parsed, made comparable, and checked against earlier ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from penstock.errors import InvalidSchemaError
from penstock.schemas.compatibility import avro, jsonschema, protobuf
from penstock.schemas.compatibility.avro import AvroSchema
from penstock.schemas.compatibility.jsonschema import JsonSchema
from penstock.schemas.compatibility.kind import SchemaKind
from penstock.schemas.compatibility.mode import Mode, problems_in_mode
from penstock.schemas.compatibility.problem import Problem
from penstock.schemas.compatibility.protobuf import ProtobufSchema

Content = AvroSchema | JsonSchema | ProtobufSchema
_NO_REFERENCES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class ParsedSchema:
    """A valid schema; those of equal `kind`, `canonical` and references are the same."""

    kind: SchemaKind
    canonical: str
    content: Content


def parse(kind: SchemaKind, text: str, references: Mapping[str, str] = _NO_REFERENCES) -> ParsedSchema:
    """The schema of a text, or an InvalidSchemaError that says what is wrong and where.

    >>> parse(SchemaKind.AVRO, '{"type": "string"}').canonical
    '"string"'

    `references` are the texts of the schemas it refers to, and of those they refer to, by name.
    """
    try:
        content = _PARSERS[kind](text, references)
    except RecursionError:
        message = "the schema is nested too deeply"
        raise InvalidSchemaError(message, hint="split it into named types") from None
    return ParsedSchema(kind, content.canonical, content)


def check(new: ParsedSchema, earlier: Sequence[ParsedSchema], mode: Mode) -> list[Problem]:
    """Why a new schema may not follow the earlier ones, oldest first; empty if it may.

    >>> order = '{"type": "record", "name": "Order", "fields": [%s]}'
    >>> old = parse(SchemaKind.AVRO, order % "")
    >>> new = parse(SchemaKind.AVRO, order % '{"name": "price", "type": "long"}')
    >>> [(problem.path, problem.rule) for problem in check(new, [old], Mode.BACKWARD)]
    [('Order.price', 'reader-field-missing-default')]
    """
    return problems_in_mode(new, earlier, mode, read_problems)


def read_problems(reader: ParsedSchema, writer: ParsedSchema) -> list[Problem]:
    """Why one schema can't read everything that another writes; empty if it can."""
    match reader.content, writer.content:
        case AvroSchema() as mine, AvroSchema() as theirs:
            return avro.read_problems(mine, theirs)
        case JsonSchema() as mine, JsonSchema() as theirs:
            return jsonschema.read_problems(mine, theirs)
        case ProtobufSchema() as mine, ProtobufSchema() as theirs:
            return protobuf.read_problems(mine, theirs)
    message = f"the writer's schema is {writer.kind}, the reader's {reader.kind}; use another subject"
    return [Problem("", "kind-changed", message)]


_PARSERS: dict[SchemaKind, Callable[[str, Mapping[str, str]], Content]] = {
    SchemaKind.AVRO: avro.parse,
    SchemaKind.JSON: jsonschema.parse,
    SchemaKind.PROTOBUF: protobuf.parse,
}
