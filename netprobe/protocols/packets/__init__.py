"""Protocols whose requests and answers are bytes of one packet, and files of packets."""
