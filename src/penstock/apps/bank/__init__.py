"""A bank: accounts and transfers as event-sourced aggregates, balances and statements derived from them."""
