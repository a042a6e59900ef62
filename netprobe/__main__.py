"""``netprobe``, and ``python -m netprobe``."""

from __future__ import annotations

import gc
import signal
import sys
from typing import NoReturn


def run() -> NoReturn:
    """The command line; a Ctrl-C while it is still being imported is no traceback either."""
    # What is imported stays: looking for garbage in it takes longer than printing the help.
    gc.disable()
    try:
        from netprobe.cli.main import main  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    gc.freeze()
    gc.enable()
    main()


if __name__ == "__main__":
    run()
