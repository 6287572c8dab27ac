"""Notifications: three services may ask for the same one, and each user receives it once."""
