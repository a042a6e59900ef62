"""Rules of sudo for the users that tests make: every other sudo of this machine reads them too."""

from __future__ import annotations

from pathlib import Path


def write_rules(path: Path, text: str) -> None:
    """Write a file of ``/etc/sudoers.d``, whole or not at all."""
    # sudo passes over names with a dot, and complains of files that others may read.
    new = path.with_name(f"{path.name}.new")
    new.touch(0o440)
    new.write_text(text)
    new.chmod(0o440)
    new.replace(path)
