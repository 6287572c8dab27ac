"""Event sourcing: events are kept, the balance is derived from them."""
