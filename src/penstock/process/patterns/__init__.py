"""Patterns: one thing, then another, within a time, by key; found when their last event comes."""

from penstock.process.patterns.match import match
from penstock.process.patterns.pattern import Pattern

__all__ = ["Pattern", "match"]
