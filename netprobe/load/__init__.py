"""Stage 1: the files people write become a matrix or an inventory, or every problem of every file."""
