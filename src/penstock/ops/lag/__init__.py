"""Lag, judged over a window of commits as Burrow does it: by what a group did, not by a threshold."""
