"""What all tests share: how hypothesis behaves on a machine that is busy with other things."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: the time of one example says nothing on a shared machine. In CI the same examples
# every time: a change is judged by its own merits.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
