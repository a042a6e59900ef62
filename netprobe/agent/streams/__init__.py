"""TCP connections over which the coordinator speaks."""
