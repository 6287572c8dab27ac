"""The schema registry: kept in the log, served over HTTP as Confluent's is."""

from penstock.registry.access import check_address
from penstock.registry.limits import Limits
from penstock.registry.records import Reference, SchemaRecord
from penstock.registry.registry import Registry
from penstock.registry.server import application, serve

__all__ = ["Limits", "Reference", "Registry", "SchemaRecord", "application", "check_address", "serve"]
