"""The temporary listeners of a round, and what arrives at them."""
