"""Answers out, exactly once: sinks that write a batch and the ledger in one transaction."""
