"""Counts, not clocks: what stays small however much is probed."""
