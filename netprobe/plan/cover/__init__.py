"""A part of a plan that covers the rest, and what is known of the rest while it is probed."""
