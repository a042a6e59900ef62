"""A run's findings → firewall rules that would mend them, in the syntax of who keeps the firewall.

``build`` makes the rules, ``boxes`` makes them few, and every file of ``syntaxes`` writes them.
"""
