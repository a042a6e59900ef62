"""YAML files with the place of every value, and all problems at once."""
