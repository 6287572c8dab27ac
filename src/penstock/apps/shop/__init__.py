"""A shop: its database captured, an order view and copies of it, and three services behind its events."""
