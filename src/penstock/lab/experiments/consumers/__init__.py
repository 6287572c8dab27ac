"""One stream, three consumers: each has a position of its own, and can go back."""
