"""TCP connects, thousands at a time."""
