"""The history of an estate: looks at its required flows, and the outages between them.

looks      what one run found, as the history needs it
ledger     the file that keeps looks (SQLite)
outages    looks in order of time give outages as intervals with error bars
"""
