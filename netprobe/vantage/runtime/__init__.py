"""A Python for hosts that have none: built here of our own interpreter, unpacked on a tmpfs there."""
