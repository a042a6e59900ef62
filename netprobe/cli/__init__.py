"""The command line: arguments and exit status only."""
