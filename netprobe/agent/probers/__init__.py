"""The probers: they send probe orders and report outcomes."""
