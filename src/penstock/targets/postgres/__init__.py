"""Results into a table of PostgreSQL, each exactly once."""

from penstock.targets.postgres.ledger import last_entry
from penstock.targets.postgres.sink import PostgresSink
from penstock.targets.postgres.target import PostgresTable

__all__ = ["PostgresSink", "PostgresTable", "last_entry"]
