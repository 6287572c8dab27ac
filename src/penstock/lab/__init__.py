"""The lab: every idea of stream processing tried on the real system, in a browser."""
