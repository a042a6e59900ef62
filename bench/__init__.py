"""Measurements side by side with nmap, masscan and fping: ``make bench`` or ``python -m bench``."""
