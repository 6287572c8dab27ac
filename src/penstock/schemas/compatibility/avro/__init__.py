"""Avro: parsing, and the specification's schema resolution."""

from penstock.schemas.compatibility.avro.parser import parse
from penstock.schemas.compatibility.avro.resolution import read_problems
from penstock.schemas.compatibility.avro.types import AvroSchema

__all__ = ["AvroSchema", "parse", "read_problems"]
