"""The agents of a run, as objects with typed methods."""
