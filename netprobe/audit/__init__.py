"""The audit of listening ports: what the agents list, held against the registry (matrices)."""
