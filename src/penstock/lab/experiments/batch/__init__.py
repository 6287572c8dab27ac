"""Batch against stream: fraud judged as it comes, and every N seconds."""
