"""Names of hosts as names of files: no two hosts have the same, and no shell trips over one."""

from __future__ import annotations

from urllib.parse import quote


def safe_name(host: str) -> str:
    """Give a host's name as the name of a file or folder, percent-encoded where that is needed."""
    name = quote(host, safe="")
    # Neither a hidden file nor another folder, and no option of a command.
    return escape_first(name) if name.startswith((".", "-")) else name


def escape_first(name: str) -> str:
    """Give a name with its first character percent-encoded."""
    return f"%{ord(name[0]):02X}{name[1:]}"
