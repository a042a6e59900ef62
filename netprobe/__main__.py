"""``python -m netprobe``."""

from netprobe.cli import main

main()
