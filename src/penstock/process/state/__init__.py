"""State in columns: buckets of keys, runs, what they are described by and how they are migrated."""
