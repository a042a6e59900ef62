"""``netprobe``, and ``python -m netprobe``."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn


def run() -> NoReturn:
    """The command line; a Ctrl-C while it is still being imported is no traceback either."""
    try:
        from netprobe.cli import main  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    main()


if __name__ == "__main__":
    run()
