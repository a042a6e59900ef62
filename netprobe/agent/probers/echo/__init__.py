"""ICMP echo requests."""
