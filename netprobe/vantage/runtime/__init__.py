"""A Python for hosts that have none: built here of our own, unpacked on a tmpfs there."""
