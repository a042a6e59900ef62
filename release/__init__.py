"""Builds what users download: `make onefile`, `make dist` (docs/release.md)."""
