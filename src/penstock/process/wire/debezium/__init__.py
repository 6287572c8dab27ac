"""Debezium's changes of captured tables as rows: parsed, coerced and decoded by Spark."""
