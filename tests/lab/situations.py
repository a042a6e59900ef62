"""``python -m tests.lab.situations``: every rehearsal of the labs, and how each one ended.

Each line is a test of ``make lab``: its name and parameters, what its docstring says, its result.
In each one an independent observer says what is true (a server's own statistics, tcpdump, counters
of nft, a tunnel made with ``ip``), and a flow that is well passes. It takes about 20 minutes.
``--list`` runs none of them.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest

PARTS = {
    "overlay": "overlay overlay_ends",
    "balancer": "balancer removal removal_ends held_pool",
    "segment": "segment segment_dhcp segment_multicast segment_keepalived",
    "quality": "quality",
    "idle": "memories memories_udp",
    "session": "rehearsed_faults",
}


class Table:
    """Collects a line a test."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self._docstrings: dict[str, str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Add a line for what is only listed."""
        for item in session.items if session.config.option.collectonly else ():
            self._add_line(item.nodeid, "listed")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what each test says of itself."""
        for item in items:
            docstring = getattr(getattr(item, "obj", None), "__doc__", None) or ""
            self._docstrings[item.nodeid] = " ".join(docstring.split()).partition(". ")[0]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a line for what ran, and for what could not begin."""
        if report.when != "call" and report.passed:
            return
        result = "right" if report.passed else "not run" if report.skipped else "WRONG"
        self._add_line(report.nodeid, result)

    def _add_line(self, nodeid: str, result: str) -> None:
        self.counts[result] += 1
        _, _, name = nodeid.rpartition("::")
        words = name.removeprefix("test_").replace("_", " ").replace("|", "/")
        said = self._docstrings.get(nodeid, "").rstrip(".").replace("|", "/")
        self.lines.append(f"| {words} | {said} | {result} |")


def main(words: list[str]) -> int:
    """Run the labs of some parts, or of all, and print the table. The status is pytest's."""
    os.environ["NETPROBE_LAB_FULL"] = "1"
    parts = [word for word in words if word != "--list"]
    names = " ".join(PARTS[part] for part in parts or PARTS).split()
    files = [f"tests/lab/test_{name}.py" for name in names]
    options = ["-qq", "--collect-only"] if "--list" in words else ["-q"]
    table = Table()
    status = pytest.main([*options, *files], plugins=[table])
    head = ("| situation | what is shown | result |", "|-|-|-|")
    count = f"{sum(table.counts.values())} situations: {dict(table.counts)}"
    sys.stdout.write("\n".join((*head, *table.lines, count, "")))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
