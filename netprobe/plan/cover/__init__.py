"""A part of a plan that covers the rest, and what is known of the rest while it is probed.

``zones``, ``pairing`` and ``cover`` choose; while it is probed, ``ledger``, ``completion`` and
``conclusion``.
"""
