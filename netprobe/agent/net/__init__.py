"""Sockets, ICMP, netlink: what the kernel offers, and its error codes."""
