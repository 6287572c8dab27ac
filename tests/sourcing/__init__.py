"""The event store, its publisher, its process manager and its projections, under kills."""
