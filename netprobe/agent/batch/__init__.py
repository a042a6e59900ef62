"""A run without a live coordinator: a script is carried out, and its answers go to a file."""
