"""Joins: streams with streams, streams with tables, tables with tables."""

from penstock.process.joins.as_of import as_of
from penstock.process.joins.latest import latest
from penstock.process.joins.remote import Postgres, remote
from penstock.process.joins.tables import tables
from penstock.process.joins.within import within
from penstock.process.time.reordering import merged

__all__ = ["Postgres", "as_of", "latest", "merged", "remote", "tables", "within"]
