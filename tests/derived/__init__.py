"""Every system that is derived from a captured table, under kills."""
