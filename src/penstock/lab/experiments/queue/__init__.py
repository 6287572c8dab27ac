"""Queue against log: the same tasks through both, with workers that can be killed."""
