"""How to get an agent running somewhere: a vantage is an argv, and the agent crosses its stdin."""
