"""Sensors: machines that run hot, and machines that have gone silent."""
