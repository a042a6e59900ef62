"""What the tests know of the verdict tables: `python -m tests.rows` (CONTRIBUTING.md)."""
