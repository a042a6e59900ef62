"""Runs without a live coordinator: scripts and bundles out, results of hosts in."""
