"""Checkpoint and recovery: what a kill -9 loses and doubles under each guarantee."""
