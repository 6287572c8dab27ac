"""Whether schemas that change can still read each other: Avro, JSON Schema and Protobuf."""

from penstock.errors import InvalidSchemaError
from penstock.schemas.compatibility.kind import SchemaKind
from penstock.schemas.compatibility.mode import Mode
from penstock.schemas.compatibility.problem import Direction, Problem
from penstock.schemas.compatibility.schema import ParsedSchema, check, parse, read_problems

__all__ = [
    "Direction",
    "InvalidSchemaError",
    "Mode",
    "ParsedSchema",
    "Problem",
    "SchemaKind",
    "check",
    "parse",
    "read_problems",
]
