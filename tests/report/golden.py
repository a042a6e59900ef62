"""Golden files: what a report looked like when somebody last read it.

``NETPROBE_REWRITE=golden`` (`make golden`) rewrites them; a human reads the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden" / "report"


def check_golden(name: str, text: str, folder: Path = FOLDER) -> None:
    """Compare with the golden file, or rewrite it."""
    path = folder / name
    if os.environ.get("NETPROBE_REWRITE") == "golden":
        path.write_text(text, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == text
