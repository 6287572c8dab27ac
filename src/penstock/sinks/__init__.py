"""Answers out, exactly once: sinks that write a batch and the ledger in one transaction."""

from penstock.sinks.kafka import KafkaSink
from penstock.sinks.postgres import PostgresSink, PostgresTable
from penstock.sinks.sink import Sink

__all__ = ["KafkaSink", "PostgresSink", "PostgresTable", "Sink"]
