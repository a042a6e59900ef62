"""Which network flows a Kubernetes platform requires are blocked, by whom, and how sure it is."""

import time

# When the command began, by the steady clock: before its libraries were imported.
BEGUN_S = time.monotonic()

__version__ = "0.1.0"
