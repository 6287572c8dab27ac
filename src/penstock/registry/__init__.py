"""The schema registry: kept in the log, served over HTTP as Confluent's is."""

from penstock.registry.records import Reference, SchemaRecord
from penstock.registry.registry import Registry
from penstock.registry.server import application, serve

__all__ = ["Reference", "Registry", "SchemaRecord", "application", "serve"]
