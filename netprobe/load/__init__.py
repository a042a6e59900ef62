"""Stage 1: files that people write become matrices and an inventory, or a list of problems."""
