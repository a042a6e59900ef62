"""Names of hosts as names of files: no two hosts have the same, and no shell trips over one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

# Results of later rounds stand beside the first (``agent/batch/carried.py``).
_ROUND = re.compile(r"\.round\d+$")


def safe_name(host: str) -> str:
    """Give a host's name as the name of a file or folder, percent-encoded where that is needed."""
    name = quote(host, safe="")
    # Neither a hidden file nor another folder, and no option of a command.
    return escape_first(name) if name.startswith((".", "-")) else name


def escape_first(name: str) -> str:
    """Give a name with its first character percent-encoded."""
    return f"%{ord(name[0]):02X}{name[1:]}"


def find_host(stem: str, hosts: Iterable[str]) -> str | None:
    """Find the host after which a file of results is named; None where that is not one of them.

    ``stem``: the file's name without its folder and ending.
    """
    known = set(hosts)
    for name in (stem, _ROUND.sub("", stem)):
        found = {one for one in known if name in (one, safe_name(one), _name_results(one))}
        if name in found or len(found) == 1:
            return name if name in found else found.pop()
    return None


def _name_results(host: str) -> str:
    """Give the name that a host gives to its results."""
    return re.sub("[^A-Za-z0-9._-]", "_", host)
