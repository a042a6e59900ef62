"""Manifests of installations: what they say becomes settings, hosts and proxies of a run."""
