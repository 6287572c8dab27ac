"""Benchmarks: each compares two ways of doing the same work in one run; ratios count, not seconds."""
