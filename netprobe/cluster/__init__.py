"""Runs in a cluster: nodes as hosts, results by the status of pods."""
