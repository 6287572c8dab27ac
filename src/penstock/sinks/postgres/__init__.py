"""Results into a table of PostgreSQL, each exactly once."""

from penstock.sinks.postgres.ledger import last_entry
from penstock.sinks.postgres.sink import PostgresSink
from penstock.sinks.postgres.table import PostgresTable

__all__ = ["PostgresSink", "PostgresTable", "last_entry"]
