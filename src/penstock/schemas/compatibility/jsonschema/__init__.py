"""JSON Schema: parsing, and the proof that one schema's documents satisfy another."""

from penstock.schemas.compatibility.jsonschema.containment import read_problems
from penstock.schemas.compatibility.jsonschema.document import JsonSchema, parse

__all__ = ["JsonSchema", "parse", "read_problems"]
