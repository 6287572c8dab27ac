"""Fraud: transactions judged as they come, by rules, by a model and by a pattern."""
